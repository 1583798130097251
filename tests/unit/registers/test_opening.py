"""Opening a study by whatever names it, and its registration with it."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import toolkit
from tests.conftest import CHECKOUT
from toolkit import api
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.files import file_sha256
from toolkit.places import Home
from toolkit.registers.hub.pull import open_registers
from toolkit.registers.manifest import FileEntry, write_manifest


def test_a_name_and_a_path_are_the_same_study(home: Home) -> None:
    by_name, by_path = toolkit.open_study("published"), toolkit.open_study(str(home.registers / "published"))
    assert by_name == by_path
    assert by_name.origin is None


@pytest.mark.parametrize("name", ["nothing", "", "no/such/folder", "./nothing/here", "registers/nothing"])
def test_what_is_no_study_says_what_would_be_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    with pytest.raises(UsageError) as error:
        open_registers(name)
    assert "OWNER/NAME@REVISION" in str(error.value)


def test_a_study_under_another_name_than_its_own_is_refused(copy: Home) -> None:
    shutil.copytree(copy.registers / "published", copy.registers / "other")
    with pytest.raises(DamagedError, match="another name than its own"):
        open_registers("other", copy)


@pytest.fixture
def carrying(copy: Home) -> Path:
    """Return a study that carries its registration, in a home that has others only."""
    folder = copy.registers / "published"
    carried = folder / "prereg" / "paired-rollouts"
    shutil.move(copy.registrations / "paired-rollouts", carried)
    manifest = open_registers("published", copy).manifest
    paths = {p.relative_to(folder).as_posix(): p for p in sorted(carried.rglob("*")) if p.is_file()}
    files = {name: FileEntry(file_sha256(path), path.stat().st_size) for name, path in paths.items()}
    write_manifest(folder, replace(manifest, files=manifest.files | files))
    return folder


def test_a_study_is_decided_by_the_registration_that_it_carries(copy: Home, carrying: Path) -> None:
    case = api.open_case(open_registers(str(carrying), copy), copy)
    assert case.registration.folder == carrying / "prereg" / "paired-rollouts"
    assert case.decide("H2a").verdict == "miss"


def test_the_homes_own_registration_goes_first(copy: Home, carrying: Path) -> None:
    shutil.copytree(carrying / "prereg" / "paired-rollouts", copy.registrations / "paired-rollouts")
    case = api.open_case(open_registers(str(carrying), copy), copy)
    assert case.registration.folder == copy.registrations / "paired-rollouts"


def test_a_registration_that_is_nowhere_is_missed(copy: Home) -> None:
    shutil.rmtree(copy.registrations / "paired-rollouts")
    with pytest.raises(IncompleteError, match="the registration of study 'published' is not here"):
        api.open_case(open_registers("published", copy), copy)
