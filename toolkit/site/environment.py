"""The templates, and how values and texts look in them."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from toolkit.decisions.decision import interval_says
from toolkit.rules.values import Series, Value, fixed, printed
from toolkit.site.page import rule_file

if TYPE_CHECKING:
    import jinja2
    from markdown_it import MarkdownIt

# What pages say in words of their own.
WORDS: dict[str, Any] = tomllib.loads((files("toolkit.site") / "words.toml").read_text("utf-8"))
_FIGURE = re.compile(r"[+\u2212-]?\d[\d,]*(\.\d+)?( ?%| pp)?")
_STYLES = {
    **dict.fromkeys(("pass", "met", "verified", "passed", "holds", "public"), "good"),
    **dict.fromkeys(("miss", "missed", "failed", "not_verified", "does_not_hold"), "bad"),
    **dict.fromkeys(("partially_met", "superseded", "incomplete", "missing", "demonstration"), "mixed"),
}
# A fraction longer than this says nothing to a reader.
LONGEST_FRACTION = 15
LONGEST = 600
DEMOTED = 2  # a protocol's own title stands below the page's title and its section's
LOWEST = 6
SCROLL = '<div class="scroll" tabindex="0" role="region" aria-label="Table of the protocol">'
_HEADING = re.compile(r"<(/?)h([1-6])>")
_LINK = re.compile(r'<a href="([^"]*)"[^>]*>(.*?)</a>', re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_WEB = re.compile(r"https?://", re.IGNORECASE)
# What a POSIX shell, bash's history among it, reads as its own between double quotes.
_ACTIVE = frozenset('"$`\\!')


def environment(packages: Iterable[str] = ()) -> jinja2.Environment:
    """Return the environment that renders every template; text is escaped unless it says otherwise."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(p) for p in ("toolkit.site", *packages)]),
        autoescape=True,
        auto_reload=False,  # templates do not change under a build
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    shown_as = (
        *(verdict_class, words, data, size, rule_file, markdown, ticked, moment, brief, word, sentence),
        *(fixed, interval_says, shown),
    )
    made.filters.update({function.__name__: function for function in shown_as})
    made.tests["figure"] = is_figure
    return made


def is_figure(value: object) -> bool:
    """Whether a value is a number, or text that a number was printed as: columns of them line up."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float | Decimal) or bool(_FIGURE.fullmatch(str(value)))


def shown(value: Value | None, basis: Collection[str]) -> Any:
    """Return a number of a criterion, exactly where it is made of counts; by member where it is a series."""
    if isinstance(value, Series):
        prefix = "seed " if value.unit == "seed" else ""
        return {f"{prefix}{key}": shown(member, basis) for key, member in value.items}
    exact, decimal = printed(value)
    if exact is None:
        return None
    is_short = "counts" in basis and "/" in exact and len(exact) <= LONGEST_FRACTION
    return f"{exact} = {decimal:g}" if is_short else f"{decimal:g}"


def verdict_class(verdict: str) -> str:
    """Return the style of a verdict."""
    return _STYLES.get(verdict, "plain")


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
    return re.sub("[<>&\u2028\u2029]", lambda mark: f"\\u{ord(mark[0]):04x}", text)


def markdown(text: str) -> Any:
    """Return Markdown as markup for a section of a page: its HTML and images as text, links as words."""
    import markupsafe

    rendered = _parser().render(text)
    # The text's own angle brackets were escaped: every tag is the parser's.
    rendered = _LINK.sub(r"\2 (\1)", rendered)
    rendered = _HEADING.sub(lambda tag: f"<{tag[1]}h{min(LOWEST, int(tag[2]) + DEMOTED)}>", rendered)
    # A wide table scrolls by itself.
    rendered = rendered.replace("<table>", SCROLL + "<table>").replace("</table>", "</table></div>")
    return markupsafe.Markup(rendered)  # noqa: S704 - the parser escapes every text, and HTML is off


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    parser.validateLink = lambda url: bool(_WEB.match(url))  # type: ignore[method-assign]
    return parser


def ticked(text: object) -> Any:
    """Return a text as markup: what stands between backticks as code, everything else as it is."""
    import markupsafe

    escaped = str(markupsafe.escape(str(text)))  # no backtick among what it escapes
    return markupsafe.Markup(_CODE.sub(r"<code>\1</code>", escaped))  # noqa: S704 - see above


def moment(at: date, precision: str = "second") -> str:
    """Return a moment in UTC as far as it is known: a day, or to the second."""
    if not isinstance(at, datetime):
        return f"{at:%Y-%m-%d}"
    utc = at.astimezone(UTC)
    return f"{utc:%Y-%m-%d}" if precision == "day" else f"{utc:%Y-%m-%d %H:%M:%S} UTC"


def brief(value: object, longest: int = LONGEST) -> str:
    """Return a value as text, a huge one cut, with how long it was."""
    text = str(value)
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"


def word(text: object) -> str:
    """Return a text as one word of a command."""
    return shlex.quote(str(text))


def sentence(text: object) -> str:
    """Return a text with blanks as one word of a command, in double quotes where they hold it."""
    written = str(text)
    return shlex.quote(written) if _ACTIVE & set(written) else f'"{written}"'
