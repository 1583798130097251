"""`--help` fits on a screen, and no line of it would be cut; Tab offers what there is."""

import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path

import click
import pytest
from click.shell_completion import ZshComplete

from tests import guide
from tests.conftest import CHECKOUT, Toolkit
from toolkit.cli import main
from toolkit.cli.main import GROUPS, cli
from toolkit.places import HOME_VARIABLE, Home

WIDTH, HEIGHT = 80, 45


def pages(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield the help of every command as a terminal of 80 columns shows it, by its path."""
    context = click.Context(command, info_name=" ".join(("toolkit", *path)), terminal_width=WIDTH)
    yield " ".join(path), command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            if not inner.hidden:
                yield from pages(inner, (*path, name))


PAGES = dict(pages(cli))


def test_the_first_page_fits_on_a_screen_and_says_how_to_start() -> None:
    page = PAGES[""]
    lines = page.splitlines()
    assert len(lines) <= HEIGHT
    assert "Check and run pre-registered" in lines[2]
    starts = ("  toolkit reproduce ", "  toolkit decide H2a ", "  toolkit explain H2a ")
    assert all(line.startswith(start) for line, start in zip(lines[4:7], starts, strict=True))
    assert "Exit codes: 0 " in page
    assert all(f" {code} " in page.partition("Exit codes:")[2] for code in range(5))


def test_every_command_stands_in_one_group_and_is_listed_once() -> None:
    assert list(GROUPS) == ["Ask", "Verify", "Register", "Run", "Noise", "Lab", "Site", "Shell"]
    names = [name for commands in GROUPS.values() for name in commands]
    assert len(names) == len(set(names))
    lines = [line for line in PAGES[""].splitlines() if line[9:10] == " " and line[10:11].isalpha()]
    assert [line[10:].split()[0] for line in lines if line[:9].strip() in {"", *GROUPS}] == names


def test_no_more_commands_are_listed_than_a_person_can_look_over() -> None:
    assert len(main.COMMANDS) <= 24
    assert len(list(guide.commands(cli))) <= 40


@pytest.mark.parametrize(
    "former", ["draw", "pairing inspect", "registers audit", "site check", "theory luck"]
)
def test_a_former_spelling_is_listed_nowhere_and_works(toolkit: Toolkit, former: str) -> None:
    assert f" {former.split(maxsplit=1)[0]} " not in PAGES[""] or " " in former
    assert former not in PAGES
    shown = toolkit(*former.split(), "--help")
    assert (shown.code, former.rsplit(maxsplit=1)[-1] in shown.out) == (0, True)


@pytest.mark.parametrize("path", PAGES)
def test_no_line_of_a_page_is_cut_or_too_wide(path: str) -> None:
    lines = PAGES[path].splitlines()
    assert [line for line in lines if len(line) > WIDTH or line.endswith(("…", "..."))] == (
        [lines[0]] if lines[0].endswith("...") else []  # what may be repeated ends the usage so
    )


def test_the_first_page_imports_no_command(monkeypatch: pytest.MonkeyPatch, toolkit: Toolkit) -> None:
    monkeypatch.setattr(main.importlib, "import_module", pytest.fail)
    assert toolkit("--help").out.rstrip() == PAGES[""].rstrip()


SHELLS = {
    "bash": ("bash", "--norc", "--noprofile", "-i"),
    "zsh": ("zsh", "-f", "-i"),
    "fish": ("fish", "--no-config", "-i"),
}
LOAD = {
    "bash": 'eval "$(toolkit completion bash)"',
    "zsh": 'autoload -Uz compinit && compinit -D && eval "$(toolkit completion zsh)"',
    "fish": "toolkit completion fish | source",
}
PATIENCE_S = 30
_ESCAPE = re.compile(r"\x1b(\[[0-9;?<>=]*[a-zA-Z]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>78])")


class Terminal:
    """A shell at a terminal."""

    def __init__(self, command: tuple[str, ...], environment: dict[str, str]) -> None:
        self.process, self.terminal = pty.fork()
        if not self.process:
            os.chdir(environment["HOME"])
            os.execvpe(command[0], command, environment)  # noqa: S606 - a shell is what is tested
        ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.shown = ""

    def types(self, keys: str, until: str) -> str:
        """Type, and return what was shown from then on until some text was."""
        before = len(self.shown)
        os.write(self.terminal, keys.encode())
        end = time.monotonic() + PATIENCE_S
        while until not in (new := _ESCAPE.sub("", self.shown[before:])):
            ready, _, _ = select.select([self.terminal], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{keys!r} never showed {until!r} but {new!r}"
            self.shown += os.read(self.terminal, 4096).decode(errors="replace")
        return new

    def ends(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.terminal)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Terminal]]:
    """A real shell that has read what `toolkit completion` prints."""
    name = request.param
    if shutil.which(name) is None:
        text = f"{name} is not installed, so that nobody has seen it complete (apt-get install {name})"
        pytest.fail(text, pytrace=False) if os.environ.get("CI") else pytest.skip(text)
    command = tmp_path / "bin" / "toolkit"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m toolkit "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    own = {
        "PATH": path,
        "HOME": str(tmp_path),
        "TERM": "xterm",
        "PYTHONPATH": str(CHECKOUT),
        "LANG": "C.UTF-8",
    }
    terminal = Terminal(SHELLS[name], {**own, HOME_VARIABLE: os.environ[HOME_VARIABLE]})
    terminal.types(f"{LOAD[name]}; echo rea''dy\n", "ready")
    yield name, terminal
    terminal.ends()


def test_tabs_complete_what_can_only_go_on_in_one_way_and_list_what_else(shell) -> None:
    name, terminal = shell
    for begun, rest in (("dec", "ide"), ("decide --study emb", "edded")):
        terminal.types(f"toolkit {begun}", begun.split()[-1])
        terminal.types("\t", rest)
        # Before the line an echo, so that the shell itself says what stands in it.
        terminal.types("\x01echo as: \n", f"as: toolkit {begun}{rest}")
    # The first may complete what all have in common, in the right case; bash lists at the second alike.
    shown = terminal.types("toolkit study run tiny-lm --run C4-P\t\t\t", "c4-paired-s1")
    assert "c4-paired-s0" in shown
    terminal.types("\x01echo as: \n", "as: toolkit study run")
    shown = terminal.types("toolkit decide H2\t\t\t", "H2b")
    assert "H2a" in shown
    assert name == "bash" or "Learning under tool faults" in shown


Offered = Callable[..., dict[str, str | None]]


@pytest.fixture
def offered() -> Offered:
    """Return what is offered for the last word of a line, and what is said of it."""

    def offer(*words: str) -> dict[str, str | None]:
        *line, begun = words
        shell = ZshComplete(cli, {}, "toolkit", "_TOOLKIT_COMPLETE")
        return {item.value: item.help for item in shell.get_completions(line, begun)}

    return offer


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("amen", {"amend"}),
        ("decide h2", {"H2a", "H2b"}),
        ("decide --study small-lm GATE", set()),
        ("decide --study published GATE", {"gate2"}),
        ("decide H2a H2", {"H2b"}),
        ("explain --study tiny", {"tiny-lm"}),
        ("power --study small-lm H", {"H1a", "H1b"}),
        ("study run em", {"embedded"}),
        ("study run embedded --run c1-p", {"c1-paired-s0", "c1-paired-s1"}),
        ("study run qwen3.5-2b --run c2-paired", {f"c2-paired-s{seed}" for seed in range(3)}),
        ("episode replay --study embedded --run c0", {"c0-clean-s0", "c0-clean-s1"}),
        ("verify-prereg paired", {"paired-rollouts"}),
        ("registers schema probe_g", {"probe_gram"}),
        ("episode play --regime flips", {"flips_q005", "flips_q010"}),
        ("train --recipe qwen", {"qwen3.5-2b"}),
        ("sql --study /tm", {"/tm"}),
    ],
)
def test_what_is_begun_is_offered(offered: Offered, line: str, names: set[str]) -> None:
    assert set(offered(*line.split(" "))) == names


def test_every_command_is_offered_with_what_it_does(offered: Offered) -> None:
    assert all(offered("").values())


def test_a_rule_that_an_amendment_adds_is_offered(offered: Offered) -> None:
    assert "B1" in offered("decide", "--study", "embedded", "")


def test_no_error_is_shown_where_nothing_can_be_read(alone: Home) -> None:
    asked = {"_TOOLKIT_COMPLETE": "bash_complete", "COMP_WORDS": "toolkit decide H", "COMP_CWORD": "2"}

    def shown(**others: str) -> tuple[int, bytes, bytes]:
        command = [sys.executable, "-m", "toolkit"]
        environment = {**os.environ, **asked, **others}
        done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert b"plain,H2a" in shown()[1]
    assert shown(**{HOME_VARIABLE: "/nowhere"}) == (0, b"", b"")
    (alone.registers / "published" / "MANIFEST.json").write_text("{")
    assert shown(COMP_WORDS="toolkit decide --study published H", COMP_CWORD="4") == (0, b"", b"")
