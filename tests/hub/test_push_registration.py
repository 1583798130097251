"""A registration that a study carries is guarded as its rows are, and has to be one."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.hub.conftest import NAME, expect, name_anew, push, put
from tests.hub.server import FixtureHub
from toolkit.prereg.registration import load_registration
from toolkit.registers.manifest import read_manifest, write_manifest

REGISTRATION = "embedded"
CARRIED = f"prereg/{REGISTRATION}"
CHAIN = f"{CARRIED}/LATER.chain"


def reseal(folder: Path) -> None:
    """Have the manifest name what lies there of a registration."""
    manifest = read_manifest(folder)
    files = {name: entry for name, entry in manifest.files.items() if not name.startswith("prereg/")}
    write_manifest(folder, replace(manifest, files=files))
    carried = sorted(path for path in (folder / "prereg").rglob("*") if path.is_file())
    name_anew(folder, *(path.relative_to(folder).as_posix() for path in carried))


@pytest.fixture
def carrying(rows: Path) -> Path:
    """Return the folder of a study of rows that carries a registration which loads."""
    source = CHECKOUT / "prereg" / REGISTRATION
    shutil.copytree(source, rows / CARRIED)
    manifest = read_manifest(rows)
    reference = replace(manifest.registration, name=REGISTRATION, sha256=load_registration(source).sha256)
    write_manifest(rows, replace(manifest, registration=reference))
    reseal(rows)
    return rows


def earlier(study: Path, folder: Path) -> Path:
    """Make the study as it was before the last thing was registered later."""
    shutil.copytree(study, folder)
    lines = (folder / CHAIN).read_text().splitlines(keepends=True)
    (folder / CHAIN).write_text("".join(lines[:-1]))
    (folder / CARRIED / lines[-1].split()[-1]).unlink()
    reseal(folder)
    return folder


def test_a_carried_registration_is_pushed(hub: FixtureHub, carrying: Path) -> None:
    assert push(carrying).code == 0
    assert CHAIN in hub.store.repository(NAME).head.files


def test_what_is_registered_later_is_added_and_the_chain_grows(
    hub: FixtureHub, carrying: Path, tmp_path: Path
) -> None:
    put(hub, earlier(carrying, tmp_path / "earlier"))
    done = push(carrying, "--json")
    assert done.code == 0, done.err
    assert CHAIN in done.json()["changed"]
    assert [name for name in done.json()["added"] if name.startswith(CARRIED)]


def of_another_chain(folder: Path) -> None:
    path = folder / CHAIN
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0].replace(lines[0][:4], "0000", 1), *lines[1:-1]]))


def of_other_rules(folder: Path) -> None:
    path = folder / CARRIED / "rules.toml"
    path.write_text(path.read_text() + "\n# other\n")


def of_more_than_is_here(folder: Path) -> None:
    (folder / CARRIED / "amendments" / "A99.toml").write_text("an amendment")


@pytest.mark.parametrize(
    ("change", "name"),
    [(of_another_chain, "LATER.chain"), (of_other_rules, "rules.toml"), (of_more_than_is_here, "A99.toml")],
)
def test_a_registration_that_is_there_is_not_changed_unless_that_is_said(
    hub: FixtureHub, carrying: Path, tmp_path: Path, change: Callable[[Path], None], name: str
) -> None:
    there = tmp_path / "there"
    shutil.copytree(carrying, there)
    change(there)
    reseal(there)
    old = put(hub, there)
    expect(push(carrying), 2, "change or remove a registration", name)
    assert hub.store.repository(NAME).head.sha == old
    assert push(carrying, "--replace").code == 0


def of_another_digest(folder: Path) -> None:
    manifest = read_manifest(folder)
    write_manifest(folder, replace(manifest, registration=replace(manifest.registration, sha256="0" * 64)))


def of_a_draft(folder: Path) -> None:
    (folder / CARRIED / "FROZEN.sha256").unlink()
    (folder / CHAIN).unlink()


@pytest.mark.parametrize(
    ("change", "code", "problem"),
    [
        (of_other_rules, 1, ""),
        (of_another_chain, 1, ""),
        (of_another_digest, 4, "is not the one that its manifest names"),
        (of_a_draft, 3, ""),
    ],
)
def test_a_registration_that_is_not_the_manifests_frozen_one_is_not_pushed(
    hub: FixtureHub, carrying: Path, change: Callable[[Path], None], code: int, problem: str
) -> None:
    change(carrying)
    reseal(carrying)
    expect(push(carrying), code, problem)
    assert hub.requests == []
