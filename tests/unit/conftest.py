"""Studies that tests read or damage: the one that this project played itself, and a home with a small one."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from toolkit import cases, places
from toolkit.lab.evidence import registered_runs
from toolkit.places import HOME_VARIABLE, Home
from toolkit.registers.study import Study, open_study
from toolkit.specification import Specification


@pytest.fixture(scope="session")
def embedded(home: places.Home) -> Study:
    return open_study(home.study_folder("embedded"))


@pytest.fixture(scope="session")
def registered(embedded: Study, home: places.Home) -> dict[str, Specification]:
    return registered_runs(embedded, cases.registered_by(embedded, home))


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a home of its own with the published study alone, and every registration and card."""
    for name in ("prereg", "cards", "registers/published"):
        shutil.copytree(CHECKOUT / name, tmp_path / name)
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    return Home(tmp_path)


@pytest.fixture
def copy(alone: Home) -> Home:
    """Return the same with a study that was played here, of a language model and few episodes."""
    shutil.copytree(CHECKOUT / "registers/tiny-lm", alone.registers / "tiny-lm")
    return alone
