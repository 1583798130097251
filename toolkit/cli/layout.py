"""Where lines break and which columns fit: text of a known width, for terminals and for pipes alike.

Nothing is cut inside a word, a number, an interval or a command. A word that is longer than a line stands on
a line of its own, whole.
"""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import TextIO

PIPED = 80
"""Columns where no terminal says how many it has: the same output everywhere."""
LEAST = 60
GAP = "  "
READABLE = 20
"""Columns that a column of prose keeps at least; narrower ones are left out instead."""
MOST_LINES = 12
"""Lines of a cell of prose at most; a column that would have more is left out."""
WIDEST = 300
"""Columns that nobody's screen exceeds; what needs more is read otherwise."""
LONGEST_LABEL = 28

_CODES = re.compile(r"\x1b\[[0-9;]*m")
_BEFORE_INTERVAL = re.compile(r" (?=(?:\d+ ?% )?\[[-+\d])")
_LABEL = re.compile(r" *\S+(?: \S+)? {2,}(?=\S)")
# An interval with its level is never broken; quoted code and commands are where they would not fit a line.
_WORD = re.compile(
    r"(?P<spaces> *)"
    r"(?:(?P<interval>(?:\d+ ?% )?\[[-+\d.]+, [-+\d.]+\]\S*)"
    r"|(?P<code>\(?`[^`]+`\S*|(?:toolkit|pip install)(?: [^\s,;]+)+)"
    r"|(?P<word>\S+))"
)


def width(stream: TextIO) -> int:
    """Return how many columns a line may take: as COLUMNS says, as the terminal says, or 80."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and 0 < len(stated.lstrip("0")) <= len("99999"):
        return max(int(stated), LEAST)
    if not stream.isatty():
        return PIPED
    try:
        # A terminal that does not know its size says 0.
        return max(os.get_terminal_size(stream.fileno()).columns or PIPED, LEAST)
    except OSError:
        return PIPED


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes; colours take none."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    return sum(
        2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in _CODES.sub("", text)
        if not unicodedata.combining(character)
    )


def wrap(text: str, wide: int, hang: int | None = None) -> list[str]:
    """Return a line as lines of a width, broken between words."""
    if columns_of(text) <= wide:
        return [text.rstrip()]
    if hang is None:
        plain = _CODES.sub("", text)
        label = _LABEL.match(plain)
        own = len(plain) - len(plain.lstrip(" "))
        hang = label.end() if label and own < label.end() <= own + LONGEST_LABEL else own + 2
    lines, line, begun = [], "", False
    for spaces, word in _words(text, wide - hang):
        if begun and columns_of(line) + len(spaces) + columns_of(word) > wide:
            lines.append(line)
            line = " " * hang + word
        else:
            line += spaces + word
        begun = True
    return [*lines, line]


def _words(text: str, longest: int) -> Iterator[tuple[str, str]]:
    """Yield what is not broken, each with the spaces before it."""
    for found in _WORD.finditer(text):
        spaces, code = found["spaces"], found["code"]
        if code and columns_of(code) > longest:
            yield from ((between or spaces, part) for between, part in re.findall(r"( *)(\S+)", code))
        else:
            yield spaces, found[0][len(spaces) :]


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and its cells from the top."""

    heading: str
    cells: tuple[str, ...]
    is_number: bool
    is_whole: bool
    wide: int = 0

    @property
    def natural(self) -> int:
        """Columns that it takes if nothing is broken."""
        return max(columns_of(line) for cell in (self.heading, *self.cells) for line in cell.split("\n"))

    @property
    def longest(self) -> int:
        """Columns of the longest piece that is never broken."""
        head = max((columns_of(word) for word in self.heading.split()), default=0)
        lines = (line for cell in self.cells for line in cell.split("\n"))
        if self.is_number:
            pieces = (piece for line in lines for piece in _BEFORE_INTERVAL.split(line))
        elif self.is_whole:
            pieces = lines
        else:
            pieces = (word for line in lines for _, word in _words(line, 0))
        return max((head, *map(columns_of, pieces)))

    @property
    def least(self) -> int:
        """Columns that it takes at least to be readable."""
        if self.is_number or self.is_whole:
            return self.longest
        return max(self.longest, min(self.natural, READABLE), -(-self.natural // MOST_LINES))


def fit(columns: Sequence[Column], dropped: Sequence[str], wide: int) -> tuple[list[Column], int]:
    """Return the columns that fit a width, each with its own, and the width at which none is left out."""
    least = [column.least for column in columns]
    gap = len(GAP)
    rank = {heading: at for at, heading in enumerate(dropped)}
    order = sorted(
        range(1, len(columns)),
        key=lambda at: (
            least[at] <= wide,
            any(columns[at].cells),
            rank.get(columns[at].heading, len(dropped)),
            -at,
        ),
        reverse=True,
    )
    shown = list(range(len(columns)))
    while order and sum(least[at] + gap for at in shown) - gap > wide:
        shown.remove(order.pop())
    room = wide - gap * (len(shown) - 1)
    if len(shown) == 1:
        least[0] = max(columns[0].longest, min(least[0], room))
    widths = {at: max(least[at], min(columns[at].natural, room)) for at in shown}
    while sum(widths.values()) > room and (yielding := [at for at in shown if widths[at] > least[at]]):
        widths[max(yielding, key=lambda at: widths[at])] -= 1
    return [replace(columns[at], wide=widths[at]) for at in shown], sum(least) + gap * (len(columns) - 1)


def table_lines(columns: Sequence[Column], rule: str) -> Iterator[str]:
    """Yield the lines of a table whose columns fit: headings, a rule, rows."""
    if any(column.heading for column in columns):
        yield from _row_lines(columns, [column.heading for column in columns])
        yield rule * (sum(column.wide for column in columns) + len(GAP) * (len(columns) - 1))
    for cells in zip(*(column.cells for column in columns), strict=True):
        yield from _row_lines(columns, cells)


def _row_lines(columns: Sequence[Column], cells: Sequence[str]) -> Iterator[str]:
    broken = [_cell_lines(column, cell) for column, cell in zip(columns, cells, strict=True)]
    for lines in zip_longest(*broken, fillvalue=""):
        padded = [
            " " * spare + line if column.is_number else line + " " * spare
            for column, line in zip(columns, lines, strict=True)
            for spare in (column.wide - columns_of(line),)
        ]
        yield GAP.join(padded).rstrip()


def _cell_lines(column: Column, cell: str) -> list[str]:
    """Return the lines of a cell, each in the cell's colour."""
    codes = "".join(_CODES.findall(cell)[:-1])
    text = _CODES.sub("", cell)
    lines = [line for part in text.split("\n") for line in wrap(part, column.wide, 0)]
    return [f"{codes}{line}\x1b[0m" if codes else line for line in lines]


def shorten(text: str, most: int) -> str:
    """Return a text with an ellipsis for the words after so many characters; the first word stays whole."""
    if len(text) <= most or " " not in text:
        return text
    return f"{text[:most].rpartition(' ')[0] or text.partition(' ')[0]} …"


def left_out(names: Collection[str], needed: int, more: str, wide: int) -> str:
    """Return what a table does not show for want of width, on one line if that is possible at all."""
    wider = f"COLUMNS={-(-needed // 10) * 10} or " if needed <= WIDEST else ""
    how = f"({wider}{more} shows {'it' if len(names) == 1 else 'them'})"
    full = f"not shown: {', '.join(names)} {how}"
    number = "1 column" if len(names) == 1 else f"{len(names)} columns"
    return full if columns_of(full) <= wide else f"not shown: {number} {how}"
