"""`toolkit registers`: what differs between studies, and what is told of a study of rows."""

import hashlib
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests import row_study
from tests.conftest import Toolkit
from toolkit.registers.manifest import write_manifest
from toolkit.registers.study import Study, open_study
from toolkit.structs import replace


def sealed(folder: Path, parts: dict[str, list[pa.Table]]) -> Study:
    row_study.seal(folder, row_study.lay(folder, parts))
    return open_study(folder)


@pytest.fixture(scope="module")
def parts() -> dict[str, list[pa.Table]]:
    return row_study.tables(row_study.run_ids(2))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, parts: dict[str, list[pa.Table]]) -> Study:
    return sealed(tmp_path_factory.mktemp("first"), parts)


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory, parts: dict[str, list[pa.Table]]) -> Study:
    """Return the study with a call more in an episode, an episode less, and no checkpoints."""
    rows = parts["episodes"][1]
    calls = pc.add(rows["calls"], pa.array([1] + [0] * (rows.num_rows - 1), pa.int16()))
    changed = rows.set_column(rows.schema.get_field_index("calls"), rows.schema.field("calls"), calls)
    edited = {**parts, "episodes": [parts["episodes"][0], changed.slice(0, rows.num_rows - 1)]}
    del edited["checkpoints"]
    return sealed(tmp_path_factory.mktemp("second"), edited)


def test_a_study_does_not_differ_from_itself(toolkit: Toolkit, first: Study) -> None:
    result = toolkit("registers", "diff", first.folder, first.folder, "--fail-on-difference")
    assert result.code == 0
    assert result.out.startswith("nothing differs\n")


def test_rows_columns_and_tables_that_differ_are_named(toolkit: Toolkit, first: Study, second: Study) -> None:
    document = toolkit("registers", "diff", first.folder, second.folder, "--json").json()
    assert document["differs"] is True
    assert document["facts"] == []
    assert [said["what"] for said in document["documents"]] == ["README.md"]
    assert document["same_tables"] == ["runs", "groups"]
    episodes, checkpoints = document["tables"]
    assert episodes["rows"] == [128, 127]
    assert (episodes["added"], episodes["removed"], episodes["changed"]) == (0, 1, 1)
    assert episodes["columns"] == {"calls": 1}
    (changed,) = episodes["changed_examples"]
    mine, theirs = changed["values"]["calls"]
    assert theirs == mine + 1
    assert list(changed["key"]) == ["run_id", "phase", "pool", "regime", "step", "task", "schedule"]
    assert changed["key"]["run_id"] == "c2-paired-s001"
    assert (checkpoints["table"], checkpoints["rows"]) == ("checkpoints", [4, None])
    command = ("registers", "diff", second.folder, first.folder, "--examples", 0, "--fail-on-difference")
    other_way = toolkit(*command, "--json")
    episodes = other_way.json()["tables"][0]
    assert (other_way.code, episodes["added"], episodes["removed"]) == (1, 1, 0)
    assert episodes["changed_examples"] == []


def test_people_read_the_same(toolkit: Toolkit, first: Study, second: Study) -> None:
    result = toolkit("registers", "diff", first.folder, second.folder)
    shown = result.out
    assert result.code == 0
    assert "episodes: 128 -> 127 rows: 0 added, 1 removed, 1 changed" in shown
    assert "changed: calls in 1" in shown
    assert "checkpoints: only in A, 4 rows" in shown
    assert "the same rows: runs, groups" in shown


def test_registration_and_versions_of_two_studies_are_compared(toolkit: Toolkit) -> None:
    document = toolkit("registers", "diff", "published", "embedded", "--examples", 1, "--json").json()
    said = {fact["what"]: (fact["first"], fact["second"]) for fact in document["facts"]}
    assert said["registration's name"] == ("paired-rollouts", "embedded")
    assert said["evidence"] == ("summary", "rows")


def test_a_row_hash_that_other_rows_claim_is_not_believed(toolkit, first, second, tmp_path) -> None:
    forged = tmp_path / "forged"
    shutil.copytree(second.folder, forged)
    tables = {
        name: replace(entry, row_sha256=first.sha256(name)) if first.has(name) else entry
        for name, entry in second.manifest.tables.items()
    }
    write_manifest(forged, replace(second.manifest, tables=tables))
    toolkit("registers", "diff", first.folder, forged).refused(4, "the row hash of")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("rows")
    row_study.seal(folder, row_study.lay(folder, row_study.tables(row_study.run_ids(2))))
    return open_study(folder)


def test_the_digest_can_be_computed_from_the_manifest_alone(published: Study) -> None:
    document = json.loads((published.folder / "MANIFEST.json").read_bytes())
    said = {name: document[name] for name in ("study", "evidence", "schema_version", "registration", "words")}
    said["tables"] = {name: entry["row_sha256"] for name, entry in document["tables"].items()}
    canonical = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(canonical.encode()).hexdigest() == published.manifest.logical_sha256


def test_a_study_of_rows_verifies(toolkit: Toolkit, rows: Study) -> None:
    (verified,) = toolkit("registers", "verify", "--study", rows.folder, "--json").json()
    assert verified["rows"] == {"runs": 2, "episodes": 128, "groups": 12, "checkpoints": 4}


def test_lists_are_lists_in_json(toolkit: Toolkit, rows: Study) -> None:
    query = "SELECT schedule_seeds, true_successes, advantages FROM groups"
    answer = toolkit("sql", query, "--study", rows.folder, "--json").json()
    names = ["schedule_seeds", "true_successes", "advantages"]
    assert answer == rows.columns("groups", names).to_pylist()


def test_the_schema_names_the_type_of_a_list(toolkit: Toolkit) -> None:
    (table,) = toolkit("registers", "schema", "groups", "--json").json()["tables"]
    types = {column["name"]: column["type"] for column in table["columns"]}
    assert types["schedule_seeds"] == "list<uint64>"
