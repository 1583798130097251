"""Shared fixtures: the checkout, its published study, and the command line."""

import contextlib
import gc
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.printed import check_document
from toolkit.cli.main import main
from toolkit.decisions.case import Case
from toolkit.places import HOME_VARIABLE, Home
from toolkit.prereg.registration import load_registration
from toolkit.registers.study import Study, open_study
from toolkit.verification.registered import open_case

# Tests run side by side, a process a core: with more threads each, they would wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Folders are made and removed by the ten thousand: in memory, where there is room and programs may run.
MEMORY = Path("/dev/shm")  # noqa: S108 - in it, each test has a folder of its own
if "TMPDIR" not in os.environ and MEMORY.is_dir():
    found = os.statvfs(MEMORY)
    if found.f_bavail * found.f_frsize > 8 << 30 and not found.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# A time limit an example would make tests depend on how busy the machine is. The same few examples each time,
# and in the slow lane (`--hypothesis-profile thorough`) many, others each time.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("quick")

CHECKOUT = Path(__file__).parents[1]
SMALL_MODEL = CHECKOUT / "examples" / "small-model"
WIDE = 10_000


def pytest_collection_finish() -> None:
    """Spare the tests, of which there are thousands, whenever a library looks for garbage."""
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def refused(self, code: int, *says: str) -> "Result":
        """Check that the command ended in one message with these words, and printed nothing else."""
        assert self.code == code, self.err or self.out
        assert sum(line.lower().startswith("error: ") for line in self.err.splitlines()) == 1, self.err
        assert all(text in self.err for text in says), self.err
        assert "Traceback" not in self.err
        assert not self.out or list(self.json()) == ["error"]
        return self


def run(*arguments: object, columns: int | None = WIDE) -> Result:
    """Run the `toolkit` command in this process; an exception it lets through fails the test.

    What is said is tested on lines that nothing breaks; `tests/unit/cli/test_layout.py` has narrow ones. None
    for `columns`: nobody says how many there are.
    """
    out, err, argv = io.StringIO(), io.StringIO(), sys.argv
    code = 0
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as environment,
    ):
        if columns is None:
            environment.delenv("COLUMNS", raising=False)
        else:
            environment.setenv("COLUMNS", str(columns))
        sys.argv = ["toolkit", *map(str, arguments)]
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            sys.argv = argv
    check_document(tuple(map(str, arguments)), out.getvalue())
    return Result(code, out.getvalue(), err.getvalue())


Toolkit = Callable[..., Result]
"""The command line, as tests call it."""


@pytest.fixture(autouse=True)
def at_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(CHECKOUT))
    # No test asks the public Hub, nor reads what this machine has of it.
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for name in ("HF_HUB_CACHE", "HF_ASSETS_CACHE"):
        monkeypatch.setenv(name, str(CHECKOUT / "nowhere"))


@pytest.fixture
def toolkit() -> Toolkit:
    return run


@pytest.fixture(scope="session")
def home() -> Home:
    return Home(CHECKOUT)


@pytest.fixture(scope="session")
def published(home: Home) -> Study:
    return open_study(home.study_folder("published"))


@pytest.fixture(scope="session")
def case(home: Home, published: Study) -> Case:
    return open_case(published, load_registration(home.registration_folder("paired-rollouts")))


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return every file under a folder with its bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
