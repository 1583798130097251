"""Where registers and registrations are looked for."""

from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from toolkit.errors import IncompleteError, UsageError
from toolkit.places import HOME_VARIABLE, SEPARATE, Home, find_home


def test_the_variable_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("registers", "prereg"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    assert find_home().root == tmp_path


def test_a_variable_that_names_nothing_is_wrong_usage(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    with pytest.raises(UsageError, match=HOME_VARIABLE):
        find_home()


def test_the_nearest_folder_upwards_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("registers", "prereg", "deep/down"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.delenv(HOME_VARIABLE)
    monkeypatch.chdir(tmp_path / "deep" / "down")
    assert find_home().root == tmp_path


def test_elsewhere_what_came_with_the_package_is_used(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv(HOME_VARIABLE)
    monkeypatch.chdir(tmp_path)
    assert find_home().root == CHECKOUT
    assert find_home().studies() == (
        "bfcl",
        "coupled",
        "embedded",
        "map",
        "published",
        "small-lm",
        "task-pools",
        "tiny-lm",
        "worlds",
    )


def test_what_the_package_leaves_to_others_is_absent_from_it_alone(tmp_path: Path) -> None:
    (tmp_path / "registers" / "embedded").mkdir(parents=True)
    assert Home(tmp_path).absent_studies == ()
    assert Home(tmp_path, is_shipped=True).absent_studies == tuple(n for n in SEPARATE if n != "embedded")
    with pytest.raises(UsageError, match="there is no study 'map'"):
        Home(tmp_path).study_folder("map")
    with pytest.raises(IncompleteError, match="study 'map' does not come with the package"):
        Home(tmp_path, is_shipped=True).study_folder("map")
