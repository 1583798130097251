"""The RO-Crate is read by the format's own library, and its files are the study's and the registration's."""

import json
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.unit.stack import require_readers
from toolkit import api
from toolkit.errors import DamagedError, IncompleteError
from toolkit.places import Home
from toolkit.registers.study import Study
from toolkit.study.exports.formats import Wanted, write_new

STUDIES = {"published": "paired-rollouts", "tiny-lm": "tiny-lm"}


@pytest.fixture(scope="module", params=STUDIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp(name) / "crate"
    write_new(made, api.export(api.open_study(name, Home(CHECKOUT)), Wanted("ro-crate"), Home(CHECKOUT)))
    return made


@pytest.fixture(scope="module")
def graph(folder: Path) -> dict[str, Any]:
    document = json.loads((folder / "ro-crate-metadata.json").read_text(encoding="utf-8"))
    entities = {entity["@id"]: entity for entity in document["@graph"]}
    assert len(entities) == len(document["@graph"])
    return entities


def test_its_library_reads_it_and_finds_every_file(
    folder: Path, graph: dict[str, Any], tmp_path: Path
) -> None:
    require_readers()
    from rocrate.rocrate import ROCrate

    crate = ROCrate(folder)
    assert crate.metadata.version == "1.2"
    assert crate.name == graph["./"]["name"]
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {e.id for e in crate.data_entities if e.type == "File"} == files - {"ro-crate-metadata.json"}
    crate.write(tmp_path / "again")  # it warns, which fails a test, of a file that is not there
    assert {
        p.relative_to(tmp_path / "again").as_posix() for p in (tmp_path / "again").rglob("*") if p.is_file()
    } == files


def test_every_term_is_one_of_the_context(graph: dict[str, Any]) -> None:
    require_readers()
    spec = find_spec("rocrate")
    assert spec is not None
    assert spec.origin is not None
    context = json.loads((Path(spec.origin).parent / "data/ro-crate.jsonld").read_text(encoding="utf-8"))
    known = set(json.dumps(context).replace('"', " ").split())
    assert {key for entity in graph.values() for key in entity if not key.startswith("@")} <= known


def test_every_file_is_described_by_its_own_bytes(folder: Path, graph: dict[str, Any]) -> None:
    described = {i: entity for i, entity in graph.items() if entity["@type"] == "File"}
    assert described
    for path, entity in described.items():
        content = (folder / path).read_bytes()
        assert entity["sha256"] == sha256(content).hexdigest()
        assert entity["contentSize"] == str(len(content))


def test_it_holds_the_registers_and_the_registration(folder: Path, graph: dict[str, Any], name: str) -> None:
    registers, prereg = CHECKOUT / "registers" / name, CHECKOUT / "prereg" / STUDIES[name]
    expected = {p.relative_to(registers).as_posix(): p for p in registers.rglob("*") if p.is_file()}
    for path in prereg.rglob("*"):
        theirs = name == "published" and "evidence" in path.parts
        if path.is_file() and not theirs:
            expected[f"prereg/{STUDIES[name]}/{path.relative_to(prereg).as_posix()}"] = path
    assert {i for i, entity in graph.items() if entity["@type"] == "File"} == set(expected)
    for copied, path in expected.items():
        assert (folder / copied).read_bytes() == path.read_bytes()
    linked = [part["@id"] for entity in graph.values() for part in entity.get("hasPart", ())]
    assert len(linked) == len(set(linked))
    assert set(linked) == {i for i, e in graph.items() if e["@type"] in {"File", "Dataset"}} - {"./"}


def test_it_is_dated_by_the_study_and_has_its_licence(graph: dict[str, Any], name: str) -> None:
    study = api.open_study(name, Home(CHECKOUT))
    if study.has("launches"):
        last = max(row["ended_at"] for row in study.rows("launches") if row["ended_at"])
    else:
        last = max(row["launched_at"] for row in study.rows("runs") if row["launched_at"])
    assert graph["./"]["datePublished"] == last.date().isoformat()
    assert graph["./"]["license"]["@id"] == "https://creativecommons.org/licenses/by/4.0/"
    assert graph["./"]["license"]["@id"] in graph
    assert study.manifest.registration.sha256 in graph[f"prereg/{STUDIES[name]}/"]["description"]


def test_what_was_changed_or_is_undescribed_makes_no_crate(copy: Home, published: Study) -> None:
    (copy.registers / "published/README.md").write_text("another", encoding="utf-8")
    with pytest.raises(DamagedError, match=r"README\.md is not the file"):
        dict(api.export(api.open_study("published", copy), Wanted("ro-crate"), copy))
    bare = Study(published.folder, published.manifest)
    object.__setattr__(
        bare.manifest, "files", {n: e for n, e in published.manifest.files.items() if n != "croissant.json"}
    )
    with pytest.raises(IncompleteError, match="licence"):
        dict(api.export(bare, Wanted("ro-crate"), copy))
