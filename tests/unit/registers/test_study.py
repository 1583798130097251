"""Opening, reading and verifying a study; every damage is found."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import toolkit
from tests.conftest import CHECKOUT
from tests.row_study import with_column, with_value
from toolkit import cases
from toolkit.cases import open_registers
from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError
from toolkit.files import file_sha256
from toolkit.places import Home
from toolkit.registers.manifest import FileEntry, Manifest, read_manifest, write_manifest
from toolkit.registers.study import Study, launched_runs, open_study, verify_study
from toolkit.structs import replace

EVALUATIONS = "evaluations/train-00000-of-00001.parquet"


def test_the_shipped_study_verifies(published: Study) -> None:
    assert verify_study(published)["evaluations"] == 352


def test_columns_are_those_of_the_whole_table(published: Study) -> None:
    names = ("successes", "run_id", "exposed")
    some = open_study(published.folder).columns("evaluations", names)
    assert some.equals(published.arrow("evaluations").select(names))


def test_columns_of_a_table_that_was_read_are_taken_from_it(folder: Path) -> None:
    study = open_study(folder)
    whole = study.arrow("evaluations")
    (folder / EVALUATIONS).unlink()
    names = ["successes", "run_id"]
    assert study.columns("evaluations", names).equals(whole.select(names))


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the name of every file is added as it is hashed."""
    from toolkit.registers import manifest

    names: list[str] = []
    real = manifest.file_sha256

    def noting(path: Path) -> str:
        names.append(path.parent.name)
        return real(path)

    monkeypatch.setattr(manifest, "file_sha256", noting)
    return names


def test_a_file_is_hashed_once_and_anew_to_verify_it(published: Study, hashed: list[str]) -> None:
    study = open_study(published.folder)
    study.columns("evaluations", ["run_id"])
    study.rows("evaluations")
    study.polars("evaluations")
    assert hashed == ["evaluations"]
    hashed.clear()
    verify_study(study)
    assert len(hashed) == len(study.manifest.files)


def test_a_file_that_was_written_since_it_was_hashed_is_hashed_again(folder: Path) -> None:
    study = open_study(folder)
    study.columns("evaluations", ["run_id"])
    damage_bytes(folder)
    with pytest.raises(DamagedError, match="is not the file that the manifest names"):
        study.columns("evaluations", ["run_id"])


def test_a_file_that_was_given_its_old_time_is_hashed_again(folder: Path) -> None:
    study, path = open_study(folder), folder / EVALUATIONS
    study.columns("evaluations", ["run_id"])
    before = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DamagedError, match="is not the file that the manifest names"):
        study.columns("evaluations", ["run_id"])


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        (lambda study: study.columns("evaluations", ["run_id", "mood"]), "has no column 'mood'"),
        (lambda study: study.columns("diary", []), "no table 'diary'"),
        (lambda study: study.rows("diary"), "no table 'diary'"),
        (lambda study: study.relation("episodes"), "no table 'episodes'"),
    ],
)
def test_what_the_study_does_not_have_is_wrong_usage(published, read, problem) -> None:
    with pytest.raises(UsageError, match=problem):
        read(published)


def rewrite(folder: Path, table: pa.Table) -> None:
    """Put another table in place and make the manifest agree with its bytes."""
    path = folder / EVALUATIONS
    pq.write_table(table, path)
    reseal(folder, lambda document: document["files"][EVALUATIONS].update(**entry(path)))


def entry(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    return {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}


def reseal(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Edit the manifest and give it a valid seal, as somebody would who knows how."""
    path = folder / "MANIFEST.json"
    document = json.loads(path.read_text())
    change(document)
    document.pop("seal")
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    document["seal"] = hashlib.sha256(canonical.encode(errors="surrogatepass")).hexdigest()
    path.write_text(json.dumps(document))


def table_of(folder: Path) -> pa.Table:
    return pq.ParquetFile(folder / EVALUATIONS).read()


def damage_bytes(folder: Path) -> None:
    path = folder / EVALUATIONS
    raw = bytearray(path.read_bytes())
    raw[200] ^= 1
    path.write_bytes(bytes(raw))


def truncate_file(folder: Path) -> None:
    path = folder / EVALUATIONS
    path.write_bytes(path.read_bytes()[:-10])
    reseal(folder, lambda document: document["files"][EVALUATIONS].update(**entry(path)))


def rewritten(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    return lambda folder: rewrite(folder, change(table_of(folder)))


# What is found also where only columns are read that nobody touched.
READ: dict[str, Callable[[Path], object]] = {
    "a byte changed": damage_bytes,
    "a file cut off": truncate_file,
    "no column": rewritten(lambda table: table.drop_columns(["successes"])),
    "another column": rewritten(lambda table: table.append_column("extra", table["successes"])),
    "a row gone": rewritten(lambda table: table.slice(1)),
}
DAMAGES = READ | {
    "a stray file": lambda folder: (folder / "notes.txt").write_text("hello"),
    "another type": rewritten(lambda t: with_column(t, "successes", t["successes"].cast(pa.float64()))),
    "swapped rows": rewritten(lambda t: pa.concat_tables([t.slice(1, 1), t.slice(0, 1), t.slice(2)])),
    "another count": rewritten(lambda table: with_value(table, "successes", 0, 1)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found(folder: Path, damage: str) -> None:
    DAMAGES[damage](folder)
    with pytest.raises(DamagedError) as caught:
        verify_study(open_study(folder))
    assert caught.value.where
    if damage in READ:
        with pytest.raises(DamagedError):
            open_study(folder).columns("evaluations", ["run_id"])


def test_a_missing_file_is_incomplete(folder: Path) -> None:
    (folder / EVALUATIONS).unlink()
    with pytest.raises(IncompleteError, match="cannot be read"):
        verify_study(open_study(folder))


MANIFEST_DAMAGES: dict[str, Callable[[str], str]] = {
    "no JSON": lambda text: text[:-5],
    "a list": lambda _: "[]",
    "no seal": lambda text: text.replace('"seal"', '"sealed"'),
    "another row count": lambda text: text.replace('"rows": 352', '"rows": 351'),
    "another hash": lambda text: text.replace('"sha256": "', '"sha256": "0', 1),
    "a further key": lambda text: text.replace('"study"', '"more": 1,\n "study"'),
    "a file named out of the folder": lambda text: text.replace("source/runs.csv", "../../runs.csv"),
    "another registration": lambda text: text.replace("paired-rollouts", "other"),
}


@pytest.mark.parametrize("change", MANIFEST_DAMAGES.values(), ids=MANIFEST_DAMAGES)
def test_an_edited_manifest_is_refused(folder: Path, change: Callable[[str], str]) -> None:
    path = folder / "MANIFEST.json"
    path.write_text(change(path.read_text()))
    with pytest.raises(DamagedError, match="manifest"):
        open_study(folder)


RESEALED: dict[str, Callable[[dict[str, Any]], object]] = {
    "a path out of the folder": lambda d: d["files"].update({"../x": d["files"].pop("source/runs.csv")}),
    "an absolute path": lambda d: d["files"].update({"/etc/passwd": d["files"].pop("source/runs.csv")}),
    "a table with an unlisted file": lambda d: d["tables"]["runs"].update(files=["runs/other.parquet"]),
    "a newer major schema": lambda d: d.update(schema_version="2.0.0"),
    "an unknown table": lambda d: d["tables"].update({"diary": d["tables"]["runs"]}),
    "files that are no table": lambda d: d.update(files=[]),
    "a table without files": lambda d: d["tables"]["runs"].update(files=[]),
    "a version that is a number": lambda d: d.update(schema_version=1),
    "evidence of no kind": lambda d: d.update(evidence="banana"),
    "a study named out of its folder": lambda d: d.update(study="../../elsewhere"),
    "a negative count": lambda d: d["tables"]["runs"].update(rows=-1),
    "a negative size": lambda d: d["files"]["source/runs.csv"].update(bytes=-1),
    "a count that is true": lambda d: d["tables"]["runs"].update(rows=True),
    "no tables at all": lambda d: d.update(tables={}, files={}),
    "a table without rows": lambda d: d["tables"]["runs"].update(rows=0),
    "a file name with a null byte": lambda d: d["files"].update(
        {"source/\0.csv": d["files"].pop("source/runs.csv")}
    ),
    "a hidden file": lambda d: d["files"].update({"source/.runs.csv": d["files"].pop("source/runs.csv")}),
    "a file beside itself": lambda d: d["files"].update(
        {"source/./runs.csv": d["files"].pop("source/runs.csv")}
    ),
    "a registration by an absolute path": lambda d: d["registration"].update(name="/elsewhere/x"),
    "a registration by a path": lambda d: d["registration"].update(name="./embedded"),
    "a half character": lambda d: d.update(code_version="\ud800"),
    "a hash that is none": lambda d: d["tables"]["runs"].update(row_sha256="000"),
}


@pytest.mark.parametrize("change", RESEALED.values(), ids=RESEALED)
def test_a_resealed_manifest_that_makes_no_sense_is_refused(folder, change) -> None:
    reseal(folder, change)
    with pytest.raises(DamagedError):
        open_study(folder)


@pytest.mark.parametrize(
    ("lie", "truth"), [('"study": "other"', '"study": "published"'), ('"rows": 351', '"rows": 352')]
)
def test_a_key_that_is_there_twice_is_damage(folder: Path, lie: str, truth: str) -> None:
    """A reader that takes the first of both values would read another manifest than this one."""
    path = folder / "MANIFEST.json"
    path.write_text(path.read_text().replace(truth, f"{lie},\n{truth}", 1))
    with pytest.raises(DamagedError, match="there twice"):
        open_study(folder)


def test_a_resealed_row_count_is_found_by_counting(folder: Path) -> None:
    reseal(folder, lambda d: d["tables"]["evaluations"].update(rows=351))
    with pytest.raises(DamagedError, match="number of rows of evaluations is not what the manifest says"):
        verify_study(open_study(folder))


LIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "row hash": lambda d: d["tables"]["evaluations"].update(row_sha256="0" * 64),
    "rows of a file": lambda d: d["files"][EVALUATIONS].update(rows=351),
    "bytes of a file": lambda d: d["files"][EVALUATIONS].update(bytes=1),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_resealed_lie_is_found_when_it_is_read(folder: Path, lie: str) -> None:
    reseal(folder, LIES[lie])
    with pytest.raises(DamagedError):
        open_study(folder).rows("evaluations")
    if lie != "row hash":  # of some columns none is known
        with pytest.raises(DamagedError):
            open_study(folder).columns("evaluations", ["run_id"])


def test_text_that_is_no_text_is_damage(folder: Path) -> None:
    table = table_of(folder)
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    column = pa.concat_arrays([broken, table["run_id"].combine_chunks().slice(1)])
    rewrite(folder, with_column(table, "run_id", column))
    with pytest.raises(DamagedError, match="not a readable Parquet file"):
        open_study(folder).rows("evaluations")


def test_a_manifest_survives_writing_and_reading(tmp_path: Path, published: Study) -> None:
    write_manifest(tmp_path, published.manifest)
    manifest: Manifest = read_manifest(tmp_path)
    assert manifest == published.manifest


def test_no_manifest_or_a_folder_in_its_place_is_incomplete(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError):
        open_study(tmp_path)
    (tmp_path / "MANIFEST.json").mkdir()
    with pytest.raises(ToolkitError, match="cannot be read"):
        open_study(tmp_path)


def test_a_study_without_launches_says_in_its_runs_when_they_were_launched(published: Study) -> None:
    assert launched_runs(published) == published.rows("runs")


def test_a_run_was_launched_when_its_first_attempt_was() -> None:
    class Cut:
        """A study of one run, cut off once."""

        def has(self, _: str) -> bool:
            return True

        def rows(self, table: str) -> list[dict[str, object]]:
            if table == "runs":
                return [{"run_id": "r", "launched_at": None}]
            return [{"run_id": "r", "launched_at": at} for at in (2, 1, 3)]

    assert launched_runs(Cut()) == [{"run_id": "r", "launched_at": 1}]


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


def test_a_study_under_another_name_than_its_own_is_refused(alone: Home) -> None:
    shutil.copytree(alone.registers / "published", alone.registers / "other")
    with pytest.raises(DamagedError, match="another name than its own"):
        open_registers("other", alone)


def test_the_homes_own_registration_goes_before_that_which_a_study_carries(alone: Home) -> None:
    folder, name = alone.registers / "published", "paired-rollouts"
    carried = folder / "prereg" / name
    shutil.move(alone.registrations / name, carried)
    manifest = open_registers("published", alone).manifest
    paths = {p.relative_to(folder).as_posix(): p for p in sorted(carried.rglob("*")) if p.is_file()}
    files = {name: FileEntry(file_sha256(path), path.stat().st_size) for name, path in paths.items()}
    write_manifest(folder, replace(manifest, files=manifest.files | files))
    case = cases.open_case(open_registers(str(folder), alone), alone)
    assert (case.registration.folder, case.decide("H2a").verdict) == (carried, "miss")
    own = shutil.copytree(carried, alone.registrations / name)
    assert cases.open_case(open_registers(str(folder), alone), alone).registration.folder == own


def test_a_registration_that_is_nowhere_is_missed(alone: Home) -> None:
    shutil.rmtree(alone.registrations / "paired-rollouts")
    with pytest.raises(IncompleteError, match="the registration of study 'published' is not here"):
        cases.open_case(open_registers("published", alone), alone)
