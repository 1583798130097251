"""A study that carries its registration is decided, and verified, wherever it arrives."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, run
from tests.hub.conftest import NAME, PUBLISHED, expect, name_anew, put
from tests.hub.server import FixtureHub
from toolkit.places import HOME_VARIABLE
from toolkit.registers.manifest import read_manifest, write_manifest

REGISTRATION = "paired-rollouts"


@pytest.fixture
def carrying(tmp_path: Path) -> Path:
    """A copy of the published study, with its registration in it."""
    folder = tmp_path / "study"
    shutil.copytree(PUBLISHED, folder)
    shutil.copytree(CHECKOUT / "prereg" / REGISTRATION, folder / "prereg" / REGISTRATION)
    carried = (folder / "prereg").rglob("*")
    name_anew(folder, *(path.relative_to(folder).as_posix() for path in carried if path.is_file()))
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that has nothing."""
    for name in ("registers", "prereg"):
        (tmp_path / "home" / name).mkdir(parents=True)
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_study_of_the_hub_is_decided_by_what_it_carries(
    hub: FixtureHub, carrying: Path, elsewhere: Path
) -> None:
    commit = put(hub, carrying, tag="v1.0.0")
    (decision,) = run("decide", "H2a", "--study", f"{NAME}@v1.0.0", "--json").json()
    assert (decision["verdict"], decision["origin"]["commit"]) == ("miss", commit)
    (verified,) = run("verify-prereg", "--study", f"{NAME}@v1.0.0", "--json").json()
    assert verified["registration"] == REGISTRATION
    assert verified["verdict"] == "incomplete"  # the authors' tokens are not part of this project


def test_a_draft_or_another_registration_of_the_same_name_decides_nothing(
    hub: FixtureHub, carrying: Path, elsewhere: Path
) -> None:
    put(hub, carrying)
    draft = elsewhere / "prereg" / REGISTRATION
    draft.mkdir()
    (draft / "rules.toml").write_text("language = 1\n")
    assert run("decide", "H2a", "--study", NAME).code == 0
    shutil.rmtree(draft)
    shutil.copytree(CHECKOUT / "prereg" / "embedded", elsewhere / "prereg" / REGISTRATION)
    assert run("decide", "H2a", "--study", NAME).code == 0


def test_a_study_is_not_verified_by_the_registration_of_another(
    hub: FixtureHub, carrying: Path, elsewhere: Path
) -> None:
    manifest = read_manifest(carrying)
    shutil.rmtree(carrying / "prereg")
    files = {name: entry for name, entry in manifest.files.items() if not name.startswith("prereg/")}
    other = replace(manifest.registration, name="embedded")
    write_manifest(carrying, replace(manifest, files=files, registration=other))
    put(hub, carrying)
    shutil.copytree(CHECKOUT / "prereg" / "embedded", elsewhere / "prereg" / "embedded")
    expect(run("verify-prereg", "--study", NAME), 4, "belongs to other frozen files")
