"""`toolkit registers` and `toolkit sql` on a study of rows."""

import hashlib
import json

import pytest

from tests import row_study
from tests.conftest import Toolkit
from toolkit.registers.study import Study, open_study


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
