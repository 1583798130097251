"""`--help` fits on a screen, and no line of it would be cut; Tab offers what there is."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

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


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_shell_is_told_to_ask_the_program(toolkit: Toolkit, name: str) -> None:
    assert f"_TOOLKIT_COMPLETE={name}_complete" in toolkit("completion", name).out


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
