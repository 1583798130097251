"""What commands print on a real terminal, and on none."""

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from functools import cache

import pytest

from tests.conftest import CHECKOUT, WIDE
from tests.widths import too_long, unlike

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
