"""Printing: one JSON document on stdout, or text for people; messages and progress on stderr.

Text for people is laid out for the width of the terminal, for COLUMNS, or for 80 columns: `say_line` breaks a
line between its words, `print_unbroken` leaves one as it is, to be pasted, and `print_table` breaks
cells of prose and leaves out what does not fit. Nothing is cut inside a word, a number, an interval or a
command: a word that is longer than a line has a line of its own.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import re
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from toolkit.structs import Document, as_builtins, replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import TextIO

    from toolkit.errors import ToolkitError

    Watch = Callable[[int, int, str], None]
    Say = Callable[[str], None]


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

# 128 + SIGPIPE.
READER_LEFT = 141

MARKS = {
    "pass": "green",
    "met": "green",
    "verified": "green",
    "passed": "green",
    "miss": "red",
    "missed": "red",
    "failed": "red",
    "not_verified": "red",
    "partially_met": "yellow",
    "superseded": "yellow",
    "incomplete": "yellow",
    "missing": "yellow",
    "unproven": "yellow",
}


def tell(document: object, *lines: str, as_json: bool) -> None:
    """Print what a command has to say: as one JSON document, or as lines for people."""
    if as_json:
        print_json(document)
    else:
        for line in lines:
            say_line(line)


def print_json(document: object) -> None:
    """Print one JSON document; in ASCII where stdout would not hold every character."""
    narrow = not _is_utf8()
    click.echo(json.dumps(document, indent=2, ensure_ascii=narrow, default=_plain, allow_nan=False))


def print_error(error: ToolkitError) -> None:
    """Print an error for people on stderr."""
    remarks(f"error: {error}")


def visible(text: str) -> str:
    """Return text that does to a terminal nothing but appear: what is not printable is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


def visible_lines(text: str) -> str:
    """Return lines of which each is visible."""
    return "\n".join(map(visible, text.split("\n")))


def leave_quietly() -> NoReturn:
    """End without a word because the reader of our output has left, with the code a shell expects of that."""
    silence(sys.stdout)
    sys.exit(READER_LEFT)


def silence(stream: TextIO) -> None:
    """Send what a stream still holds nowhere: the interpreter would fail on it once more at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Styled(str):
    """Text that is visible already, and may carry colours."""

    __slots__ = ()


def styled(verdict: str, text: str | None = None) -> Styled:
    """Return a verdict, or a text, in the verdict's colour; away from a terminal no colour is printed."""
    return coloured(verdict if text is None else text, MARKS.get(verdict))


def coloured(text: str, colour: str | None) -> Styled:
    """Return text in a colour, if there is one."""
    return Styled(click.style(visible(text), fg=colour) if text and colour else visible(text))


def tick(holds: bool | None) -> Styled:  # noqa: FBT001 - the value itself
    """Return whether something holds as a mark: ✓, ✗, or ? where it is not known."""
    marks = {True: ("✓", "+", "green"), False: ("✗", "-", "red"), None: ("?", "?", "yellow")}
    mark, plain, colour = marks[holds]
    return coloured(mark if _is_utf8() else plain, colour)


def bold(text: str) -> Styled:
    """Return bold text."""
    return Styled(click.style(visible(text), bold=True))


def standing_mark(standing: str) -> str:
    """Return what a headline adds to a demonstration's name."""
    return "   DEMONSTRATION" if standing == "demonstration" else ""


def say_line(*parts: str) -> None:
    """Print a line of text, broken between words where it is too long."""
    for line in wrap("".join(map(_seen, parts)), width(sys.stdout)):
        _print(line)


def say_lines(text: str) -> None:
    """Print text of several lines, each broken between words where it is too long."""
    for line in text.split("\n"):
        say_line(line)


def print_unbroken(text: str) -> None:
    """Print a line that is never broken: a command or a query that somebody will paste, a path, a digest."""
    _print(visible(text))


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    title: str = "",
    *,
    numbers: Collection[str] | bool = False,
    whole: Collection[str] = (),
    dropped: Sequence[str] = (),
    more: str = "--json",
    spaced: bool = False,
) -> None:
    """Print a table under a bold title; what does not fit is left out, and a line below says so."""
    cells = [[_seen_lines(cell) for cell in row] for row in rows]
    if spaced:
        cells = [row for each in cells for row in (each, [""] * len(headings))][:-1]
    right = headings[1:] if numbers is True else numbers or ()
    columns = [
        Column(
            visible(heading), tuple(row[at] for row in cells), heading in right, heading in (*right, *whole)
        )
        for at, heading in enumerate(headings)
    ]
    wide = width(sys.stdout)
    shown, needed = fit(columns, dropped, wide)
    if title:
        say_line(bold(title))
    for line in table_lines(shown, "─" if _is_utf8() else "-"):
        _print(line)
    names = [column.heading for column in columns]
    for column in shown:
        names.remove(column.heading)
    if names:
        say_line(left_out(names, needed, more, wide))


def remarks(text: str) -> None:
    """Print text of several lines on stderr."""
    for line in text.split("\n"):
        remark(line)


def remark(text: str) -> None:
    """Print on stderr what a reader of the result has to know."""
    for line in wrap(visible(text), width(sys.stderr)):
        click.echo(line, err=True)


def _seen(text: str) -> str:
    return text if isinstance(text, Styled) else visible(text)


def _seen_lines(text: str) -> str:
    return text if isinstance(text, Styled) else visible_lines(text)


def _print(line: str) -> None:
    """Print a line, in colour only where a terminal shows colours and nobody has declined them."""
    declined = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    click.echo(line, color=sys.stdout.isatty() and not declined)


def _is_utf8() -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return encoding.lower().replace("-", "") == "utf8"


def _plain(value: object) -> Any:
    if isinstance(value, Document):
        return as_builtins(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date | Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _is_watched() -> bool:
    """Whether somebody sees how work goes on: stderr is a terminal that can draw over itself."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def steps(task: str) -> Iterator[Callable[[str], None]]:
    """Show what is being worked on, on a terminal; say nothing elsewhere."""
    if not _is_watched():
        yield lambda _: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(task) as status:
        yield lambda step: status.update(f"{task}: {step}")


@contextmanager
def counted(task: str) -> Iterator[tuple[Watch, Say]]:
    """Show how much of a known number of steps is done, and the time left, on a terminal."""
    if not _is_watched():
        yield lambda *_: None, remark
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as shown:
        bar = shown.add_task(task, total=None)

        def watch(done: int, total: int, doing: str) -> None:
            shown.update(bar, completed=done, total=total, description=f"{task}: {doing}")

        def say(text: str) -> None:
            lines = wrap(visible(text), width(sys.stderr))
            shown.console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)

        yield watch, say


@contextmanager
def stepped(task: str, total: int) -> Iterator[Say]:
    """Show on a terminal how many of a known number of steps are done, and which one is being worked on."""
    with counted(task) as (watch, _):
        begun = itertools.count()
        yield lambda step: watch(min(next(begun), total), total, step)


def cell(value: object) -> object:
    """Return a value as JSON holds it; what JSON has no word for becomes text."""
    match value:
        case bool() | int() | str() | None | datetime():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return value.hex()
        case dict():
            return {str(key): cell(inner) for key, inner in value.items()}
        case list() | tuple():
            return [cell(inner) for inner in value]
        case _:
            return str(value)


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
    plain = _CODES.sub("", text) if "\x1b" in text else text
    if plain.isascii():
        return len(plain)
    from rich.cells import cell_len

    return cell_len(plain)


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
