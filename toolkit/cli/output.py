"""Printing: one JSON document on stdout, or text for people; messages and progress on stderr.

Text for people is laid out for the width of the terminal, for COLUMNS, or for 80 columns: `say_line` breaks
a line between its words, `say_whole` leaves one as it is because somebody will paste it, `print_table` breaks
cells of prose and leaves out what does not fit.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import sys
from collections.abc import Callable
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from toolkit.cli import layout, offers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TextIO

    from toolkit.errors import ToolkitError

    Watch = Callable[[int, int, str], None]
    Say = Callable[[str], None]


# 128 + SIGPIPE.
READER_LEFT = 141

FILE = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)

STUDY = "NAME|PATH|OWNER/NAME@REVISION"
"""What `--study` takes."""

F = TypeVar("F", bound=Callable[..., Any])

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


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
study_option = click.option(
    "--study",
    "studies",
    multiple=True,
    metavar=STUDY,
    shell_complete=offers.studies,
    help="Study to read, here or on the Hub; every shipped one if left out.",
)
check_option = click.option(
    "--check", is_flag=True, help="Write nothing; compare with what is there, byte by byte."
)


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return what adds options to a command, in this order."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


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
    for line in layout.wrap("".join(map(_seen, parts)), layout.width(sys.stdout)):
        _print(line)


def say_lines(text: str) -> None:
    """Print text of several lines, each broken between words where it is too long."""
    for line in text.split("\n"):
        say_line(line)


def say_whole(text: str) -> None:
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
        layout.Column(
            visible(heading), tuple(row[at] for row in cells), heading in right, heading in (*right, *whole)
        )
        for at, heading in enumerate(headings)
    ]
    wide = layout.width(sys.stdout)
    shown, needed = layout.fit(columns, dropped, wide)
    if title:
        say_line(bold(title))
    for line in layout.table_lines(shown, "─" if _is_utf8() else "-"):
        _print(line)
    names = [column.heading for column in columns]
    for column in shown:
        names.remove(column.heading)
    if names:
        say_line(layout.left_out(names, needed, more, wide))


def remarks(text: str) -> None:
    """Print text of several lines on stderr."""
    for line in text.split("\n"):
        remark(line)


def remark(text: str) -> None:
    """Print on stderr what a reader of the result has to know."""
    for line in layout.wrap(visible(text), layout.width(sys.stderr)):
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
            lines = layout.wrap(visible(text), layout.width(sys.stderr))
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


def unfold(args: list[str], folded: Mapping[tuple[str, str], str]) -> list[str]:
    """Return the words of a hidden command where its option is given, and the same words elsewhere."""
    end = args.index("--") if "--" in args else len(args)
    for (command, option), hidden in folded.items():
        if args[0] == command and option in args[:end]:
            return [hidden, *(word for at, word in enumerate(args[1:], 1) if word != option or at > end)]
    return args


class Folding(click.Group):
    """A group some of whose commands are hidden, each an option of one that is listed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.folded: dict[tuple[str, str], str] = {}  # (command, option) → the hidden command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; with the option of a hidden one, that."""
        args = unfold(args, self.folded)
        return super().resolve_command(ctx, args)

    def fold(self, hidden: str, into: str, option: str, about: str) -> None:
        """Hide a command behind an option of another, whose help says what it does."""
        self.commands[hidden].hidden = True
        self.folded[into, option] = hidden
        flag = click.Option([option], is_flag=True, expose_value=False, help=about)
        self.commands[into].params.append(flag)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands that help lists."""
        return [name for name, command in self.commands.items() if not command.hidden]
