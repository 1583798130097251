"""The templates, and how values look in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from toolkit.decisions.values import fixed
from toolkit.website.page import rule_file
from toolkit.website.prose import brief, markdown, moment, sentence, ticked, word

if TYPE_CHECKING:
    import jinja2

_FIGURE = re.compile(r"[+\u2212-]?\d[\d,]*(\.\d+)?( ?%| pp)?")
_GOOD = ("pass", "met", "verified", "passed", "holds", "public")
_BAD = ("miss", "missed", "failed", "not_verified", "does_not_hold")
_MIXED = ("partially_met", "superseded", "incomplete", "missing", "demonstration")


def environment(packages: Iterable[str] = ()) -> jinja2.Environment:
    """Return the environment that renders every template; text is escaped unless it says otherwise.

    Args:
        packages: further ones with templates, which can extend those of the site.
    """
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(p) for p in ("toolkit.website", *packages)]),
        autoescape=True,
        auto_reload=False,  # templates do not change under a build
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    shown_as = (
        *(verdict_class, words, data, size, rule_file, markdown, ticked, moment, brief, word, sentence),
        fixed,
    )
    made.filters.update({function.__name__: function for function in shown_as})
    made.tests["figure"] = is_figure
    return made


def is_figure(value: object) -> bool:
    """Whether a value is a number, or text that a number was printed as: columns of them line up."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float | Decimal) or bool(_FIGURE.fullmatch(str(value)))


def verdict_class(verdict: str) -> str:
    """Return the style of a verdict."""
    for names, css in ((_GOOD, "good"), (_BAD, "bad"), (_MIXED, "mixed")):
        if verdict in names:
            return css
    return "plain"


def words(name: object) -> str:
    """Return a name as words."""
    return str(name).replace("_", " ")


def size(number: int) -> str:
    """Return a number of bytes as readers say it."""
    for unit, bound in (("MB", 10**6), ("KB", 10**3)):
        if number >= bound:
            return f"{number / bound:.1f} {unit}"
    return f"{number} bytes"


def data(document: Any) -> Any:
    """Return a document as JSON that can stand in a data block: no text of it can end the block."""
    import markupsafe

    return markupsafe.Markup(json_text(document))  # noqa: S704 - every mark that HTML knows was replaced


def json_text(document: Any) -> str:
    """Return a document as JSON without a character that HTML or a script would take for its own."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text
