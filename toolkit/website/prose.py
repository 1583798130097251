"""Texts of registrations on pages: Markdown of a protocol, code between backticks, moments."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST = 600
DEMOTED = 2  # a protocol's own title stands below the page's title and its section's
LOWEST = 6
SCROLL = '<div class="scroll" tabindex="0" role="region" aria-label="Table of the protocol">'
_HEADING = re.compile(r"h([1-6])")
_CODE = re.compile(r"`([^`\n]+)`")
_WEB = re.compile(r"https?://", re.IGNORECASE)


def markdown(text: str) -> Any:
    """Return Markdown as markup for a section of a page.

    HTML in it is shown as text, images as their words, and a link to the web as its words and its address: no
    page of the site leads elsewhere. Headings are moved down two levels.
    """
    import markupsafe

    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if match := _HEADING.fullmatch(token.tag):
            token.tag = f"h{min(LOWEST, int(match[1]) + DEMOTED)}"
        token.children = list(_without_links(token.children or ()))
    rendered = parser.renderer.render(tokens, parser.options, {})
    # A wide table scrolls by itself. The text's own angle brackets were escaped: these tags are the parser's.
    rendered = rendered.replace("<table>", SCROLL + "<table>").replace("</table>", "</table></div>")
    return markupsafe.Markup(rendered)  # noqa: S704 - the parser escapes every text, and HTML is off


def _without_links(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield the tokens of a line, the address of each link in brackets after its words."""
    from markdown_it.token import Token

    address = ""
    for token in tokens:
        if token.type == "link_open":
            address = str(token.attrGet("href"))
        elif token.type == "link_close":
            yield Token("text", "", 0, content=f" ({address})")
        else:
            yield token


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    parser.validateLink = lambda url: bool(_WEB.match(url))  # type: ignore[method-assign]
    return parser


def ticked(text: object) -> Any:
    """Return a text as markup: what stands between backticks as code, everything else as it is."""
    import markupsafe

    parts = _CODE.split(str(text))
    shown = (
        f"<code>{markupsafe.escape(p)}</code>" if i % 2 else markupsafe.escape(p) for i, p in enumerate(parts)
    )
    return markupsafe.Markup("".join(shown))  # noqa: S704 - every part was escaped


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


# What a POSIX shell, bash's history among it, reads as its own between double quotes.
_ACTIVE = frozenset('"$`\\!')


def word(text: object) -> str:
    """Return a text as one word of a command."""
    return shlex.quote(str(text))


def sentence(text: object) -> str:
    """Return a text with blanks as one word of a command, in double quotes where they hold it."""
    written = str(text)
    return shlex.quote(written) if _ACTIVE & set(written) else f'"{written}"'
