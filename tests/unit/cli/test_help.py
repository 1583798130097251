"""`--help`: one page that fits on a screen, and no line that a terminal would cut."""

from collections.abc import Iterator

import click
import pytest

from tests import guide
from tests.conftest import Toolkit
from toolkit.cli import main
from toolkit.cli.main import GROUPS, cli

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
