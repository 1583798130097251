"""What the commands say of a tampering: run in this process, on a copy of one shipped study."""

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from tests.conftest import CHECKOUT, Result, run
from tests.tampering.forger import Forger
from tests.tampering.tampering import Drawn, Tampering
from toolkit.lab.verification.replay import PLAYABLE
from toolkit.places import HOME_VARIABLE, Home
from toolkit.registers.manifest import read_manifest

COMMANDS = (
    "registers verify",
    "decide RULE",
    "decide --all --json",
    "registers audit",
    "verify-prereg",
    "reproduce",
    "site build",
)
QUICK = COMMANDS[:2]
UNNOTICED, NOT_ASKED = "-", "n/a"
SEED = 0


def cells_of(tampering: Tampering, commands: tuple[str, ...] = COMMANDS) -> dict[str, str]:
    """Tamper with a copy of a study; return the exit code of each command that notices.

    A command that ends the same way on the study as it is shipped, because something is not there, was not
    asked.
    """
    with TemporaryDirectory() as folder:
        home = copy_of(tampering.study, Path(folder))
        with at_home(home):
            tampering.do(Forger(home, tampering.study))
        asked = (home, tampering.study, tampering.rule, tampering.drawn)
        results = {name: ask(name, *asked) for name in commands}
    cells = {}
    for name, result in results.items():
        usual = usual_code(tampering.study, name, tampering.rule) if result.code else 0
        cells[name] = str(result.code)
        if result.code == usual:
            cells[name] = NOT_ASKED if usual else UNNOTICED
            continue
        said = result.out + result.err
        assert result.code, f"{name} ends 0, and {usual} on what is shipped"
        assert "Traceback" not in said, said
        assert any(each in said for each in tampering.names), f"{name}: none of {tampering.names} in {said}"
    return cells


def copy_of(study: str, folder: Path) -> Home:
    """Return a home with one shipped study and its registration."""
    registers = folder / "registers" / study
    shutil.copytree(CHECKOUT / "registers" / study, registers)
    name = read_manifest(registers).registration.name
    shutil.copytree(CHECKOUT / "prereg" / name, folder / "prereg" / name)
    if study == "published":
        shutil.copytree(CHECKOUT / "cards", folder / "cards")
    return Home(folder)


def ask(command: str, home: Home, study: str, rule: str, drawn: Drawn | None = None) -> Result:
    """Run a command on a home. An audit draws the row that was changed, as a large sample does."""
    site = home.root / "site"
    arguments: dict[str, tuple[object, ...]] = {
        "registers verify": ("registers", "verify", "--study", study),
        "decide RULE": ("decide", rule, "--study", study),
        "decide --all --json": ("decide", "--all", "--study", study, "--json"),
        "registers audit": ("registers", "audit", "--study", study, "--sample", 5, "--seed", SEED),
        "verify-prereg": ("verify-prereg",),
        "reproduce": ("reproduce", "--site", site),
        "site build": ("site", "build", "--out", site),
    }
    audited = drawing(drawn) if command == "registers audit" else nullcontext()
    with at_home(home), patch("toolkit.cli.reproduce.fresh_seed", lambda: SEED), audited:
        return run(*arguments[command])


@cache
def usual_code(study: str, command: str, rule: str) -> int:
    """Return how a command ends on a study as it is shipped, where that is not 0 for want of something."""
    if command not in ("registers audit", "verify-prereg"):
        return 0
    with TemporaryDirectory() as folder:
        return ask(command, copy_of(study, Path(folder)), study, rule).code


def drawing(row: Drawn | None) -> AbstractContextManager[object]:
    """Have an audit draw one row, where there is one that it can play or derive again."""
    if row is None:
        return nullcontext()
    run_id, table, at = row
    if table in PLAYABLE:
        return patch("toolkit.lab.verification.replay._draw", lambda *_: ({run_id: [(table, at)]}, 1))
    return patch("toolkit.lab.verification.replay._drawn", lambda _, name, *__: [at] if name == table else [])


@contextmanager
def at_home(home: Home) -> Iterator[None]:
    """Have commands find a home."""
    with patch.dict(os.environ, {HOME_VARIABLE: str(home.root)}):
        yield
