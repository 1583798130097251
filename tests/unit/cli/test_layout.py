"""Where lines break and which columns fit; what is printed on a real terminal, and on none."""

import fcntl
import io
import os
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.conftest import CHECKOUT, WIDE
from tests.widths import too_long, unlike
from toolkit.cli import output
from toolkit.cli.output import Column, fit, left_out, shorten, wrap

WORDS = st.lists(st.text("abcé漢-_,.", min_size=1, max_size=30), min_size=1, max_size=40)


def column(heading: str, *cells: str, is_number: bool = False, is_whole: bool = False) -> Column:
    return Column(heading, cells, is_number, is_whole)


def names(columns: list[Column]) -> list[str]:
    return [shown.heading for shown in columns]


@given(WORDS, st.integers(0, 6), st.integers(20, 100))
def test_wrapping_keeps_every_word_and_the_width(words: list[str], indent: int, wide: int) -> None:
    lines = wrap(" " * indent + " ".join(words), wide)
    assert [word for line in lines for word in line.split()] == words
    assert too_long("\n".join(lines), wide) == []
    assert lines[0].startswith(" " * indent)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("  a line of words", ["  a line of", "    words"]),
        ("label  some words of it", ["label  some", "       words of", "       it"]),
        ("mean 95% [-0.1, +0.2] all", ["mean", "  95% [-0.1, +0.2]", "  all"]),
        ("so: `toolkit a b`.", ["so:", "  `toolkit a b`."]),
        ("then: toolkit a b", ["then:", "  toolkit a b"]),
        (f"see {'f' * 30} now", ["see", f"  {'f' * 30}", "  now"]),
    ],
)
def test_a_line_breaks_where_nothing_is_read_as_one(text: str, lines: list[str]) -> None:
    assert wrap(text, 16) == lines


def test_what_fits_stays_as_it_is() -> None:
    assert wrap("  a   b", 7) == ["  a   b"]


def test_columns_are_left_out_in_the_order_that_is_given_and_then_from_the_last() -> None:
    columns = [column(name, name * 30) for name in "abcd"]
    assert names(fit(columns, ["b"], 130)[0]) == ["a", "b", "c", "d"]
    columns = [column(name, name * 30, is_whole=True) for name in "abcd"]
    assert names(fit(columns, ["b"], 100)[0]) == ["a", "c", "d"]
    assert names(fit(columns, ["b"], 70)[0]) == ["a", "c"]
    assert names(fit(columns, ["b"], 10)[0]) == ["a"]


def test_an_empty_column_and_one_wider_than_the_line_are_left_out_first() -> None:
    columns = [column("a", "a" * 30), column("b", "b" * 90), column("c", ""), column("d", "d" * 30)]
    assert names(fit(columns, ["d"], 80)[0]) == ["a", "c", "d"]
    assert names(fit(columns, ["d"], 64)[0]) == ["a", "d"]


@given(st.lists(st.lists(st.text("ab 1", max_size=60), min_size=3, max_size=3), min_size=1, max_size=4))
def test_the_width_that_is_named_shows_every_column(rows: list[list[str]]) -> None:
    columns = [column(str(at), *(row[at] for row in rows)) for at in range(3)]
    _, needed = fit(columns, [], 20)
    assert names(fit(columns, [], needed)[0]) == ["0", "1", "2"]
    assert len(fit(columns, [], needed - 1)[0]) < 3


@given(st.lists(st.lists(st.text("ab 1漢", max_size=60), min_size=3, max_size=3), max_size=4))
def test_a_table_keeps_to_the_width(rows: list[list[str]]) -> None:
    columns = [column(str(at), *(row[at] for row in rows)) for at in range(3)]
    shown, _ = fit(columns, [], 40)
    lines = list(output.table_lines(shown, "─"))
    if len(shown) > 1:
        assert max(map(cell_len, lines)) <= 40
    assert all(line == line.rstrip() for line in lines)


def test_numbers_and_intervals_stay_whole_and_stand_to_the_right() -> None:
    columns = [column("a", "x" * 8), column("share", "0.5 [0.25, 0.75]", "10 of 15", is_number=True)]
    shown, _ = fit([columns[0], columns[1]], [], 22)
    lines = list(output.table_lines([Column("a", ("x", "y"), False, False, 8), shown[1]], "─"))
    assert lines[2:] == ["x                  0.5", "          [0.25, 0.75]", "y             10 of 15"]


def test_a_cell_is_coloured_on_each_of_its_lines() -> None:
    cell = output.coloured("two words", "red")
    lines = list(output.table_lines([Column("a", (cell,), False, False, 5)], "─"))
    assert lines[2:] == ["\x1b[31mtwo\x1b[0m", "\x1b[31mwords\x1b[0m"]


def test_what_is_left_out_is_named_where_the_line_has_room() -> None:
    assert left_out(["a"], 91, "--json", 80) == "not shown: a (COLUMNS=100 or --json shows it)"
    assert left_out(["a", "b"], 4000, "--csv", 80) == "not shown: a, b (--csv shows them)"
    assert left_out(["a" * 60, "b"], 4000, "--csv", 80) == "not shown: 2 columns (--csv shows them)"


def test_shortening_cuts_no_word() -> None:
    assert shorten("one two three", 9) == "one two …"
    assert shorten("f" * 64, 9) == "f" * 64
    assert shorten("f" * 64 + " g", 9) == "f" * 64 + " …"


@pytest.mark.parametrize(
    ("stated", "columns"),
    [(None, 80), ("", 80), ("wide", 80), ("0", 80), ("-5", 80), ("120", 120), ("20", 60), ("9" * 5000, 80)],
)
def test_without_a_terminal_the_width_is_stated_or_80(monkeypatch, stated, columns) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if stated is not None:
        monkeypatch.setenv("COLUMNS", stated)
    assert output.width(io.StringIO()) == columns


@pytest.mark.parametrize(("size", "columns"), [(132, 132), (30, 60), (0, 80)])
def test_a_terminal_is_as_wide_as_it_says(monkeypatch: pytest.MonkeyPatch, size: int, columns: int) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((size, 24)))
    terminal, other = os.openpty()
    with os.fdopen(other, "w") as stream:
        assert output.width(stream) == columns
    os.close(terminal)


COMMANDS = (
    ("registers", "schema", "evaluations"),
    ("episode", "replay", "tests/golden/episode.json"),
    ("verify-prereg", "nothing"),
)
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(columns: int, *arguments: str, **environment: str) -> str:
    """Return what a command prints on a terminal of its own, stdout and stderr together."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "toolkit", *arguments],
        cwd=CHECKOUT,
        env={**inherited, "TERM": "xterm-256color", **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    printed = b""
    with suppress(OSError):  # what Linux says when the last who could write has left
        while more := os.read(ours, 65536):
            printed += more
    process.wait()
    os.close(ours)
    return printed.decode().replace("\r\n", "\n")


@cache
def piped(*arguments: str, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "TERM")}
    command = [sys.executable, "-m", "toolkit", *arguments]
    done = subprocess.run(
        command,
        cwd=CHECKOUT,
        env={**inherited, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("command", "columns"), [*((command, 80) for command in COMMANDS), (COMMANDS[0], 120)], ids=str
)
def test_a_terminal_has_no_longer_line_and_no_broken_word(command: tuple[str, ...], columns: int) -> None:
    shown = CODES.sub("", on_terminal(columns, *command)).replace("\r", "")
    assert shown
    assert too_long(shown, columns) == []
    assert not unlike(shown, piped(*command, COLUMNS=str(WIDE)))


def test_a_terminal_shows_colours_unless_they_are_declined_or_it_has_none() -> None:
    command = COMMANDS[1]
    assert "\x1b[33m⚡" in on_terminal(80, *command)
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert on_terminal(80, *command, **environment) == piped(*command)


@pytest.mark.parametrize("command", COMMANDS[:2], ids=" ".join)
def test_without_a_terminal_the_bytes_are_plain_and_the_same(command: tuple[str, ...]) -> None:
    shown = piped(*command)
    assert too_long(shown, 80) == []
    assert "\x1b" not in shown
    assert shown == piped(*command, TERM="xterm-256color", FORCE_COLOR="1", COLORTERM="truecolor")
