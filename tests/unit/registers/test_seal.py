"""A study of many files, completed where they lie; read alike by everything that reads Parquet."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import row_study
from tests.conftest import CHECKOUT, snapshot
from tests.row_study import with_column
from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError
from toolkit.places import Home
from toolkit.registers import manifest
from toolkit.registers.arrow import Row, parquet_bytes, row_sha256
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.published import build_published, check_published, share_of
from toolkit.registers.query import asking
from toolkit.registers.study import Study, open_study, verify_study

IDS = row_study.run_ids(3)
Parts = dict[str, list[pa.Table]]
Files = dict[str, list[str]]


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("rows")
    row_study.seal(folder, row_study.lay(folder, row_study.tables(IDS)))
    return open_study(folder)


def test_a_sealed_study_verifies(sealed: Study) -> None:
    assert verify_study(sealed) == {"runs": 3, "episodes": 192, "groups": 18, "checkpoints": 6}


def test_a_table_has_a_file_a_run_in_the_order_of_its_rows(sealed: Study) -> None:
    files = tuple(f"episodes/{run_id}.parquet" for run_id in IDS)
    assert sealed.manifest.tables["episodes"].files == files


def test_rows_come_back_as_they_were_written(sealed: Study) -> None:
    for name, parts in row_study.tables(IDS).items():
        written = pa.concat_tables(parts)
        assert sealed.arrow(name).equals(written)
        assert sealed.sha256(name) == row_sha256(written)
    assert max(row["schedule_seed"] for row in sealed.rows("episodes")) > 2**63  # no signed number's


@pytest.mark.parametrize("name", ["sealed", "published"])
def test_rows_are_the_same_through_arrow_polars_and_duckdb(name: str, request: pytest.FixtureRequest) -> None:
    study: Study = request.getfixturevalue(name)
    with asking(study) as ask:
        for table in study.tables:
            rows = [tuple(row.values()) for row in study.rows(table.name)]
            assert study.polars(table.name).collect().rows() == rows
            # No column needs quotes.
            answer = ask(f"SELECT {', '.join(table.column_names)} FROM {table.name}")
            assert (answer.columns, answer.rows) == (table.column_names, tuple(rows))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Return the names of a study's files, laid into the test's folder and not yet sealed."""
    return row_study.lay(tmp_path, row_study.tables(IDS))


def test_sealing_again_gives_the_same_bytes(tmp_path: Path, files: Files) -> None:
    row_study.seal(tmp_path, files)
    before = (tmp_path / "MANIFEST.json").read_bytes()
    row_study.seal(tmp_path, files)
    assert (tmp_path / "MANIFEST.json").read_bytes() == before


def changed(name: str, part: int, change: Callable[[pa.Table], pa.Table]) -> Callable[[Parts], None]:
    def apply(parts: Parts) -> None:
        parts[name][part] = change(parts[name][part])

    return apply


def infinite(table: pa.Table) -> pa.Table:
    first, *others = table["advantages"].to_pylist()
    return with_column(table, "advantages", [[*first[:-1], float("inf")], *others])


DEFECTS: dict[str, Callable[[Parts], object]] = {
    "the rows of episodes are not sorted": lambda parts: parts["episodes"].reverse(),
    "the rows of groups are not unique": changed(
        "groups", 1, lambda table: pa.concat_tables([table.slice(0, 3), table.slice(2)])
    ),
    "the rows of groups are not sorted": lambda parts: parts["groups"].insert(1, parts["groups"][0]),
    "run_id of .* refers to nothing": changed("runs", 0, lambda table: table.slice(0, 2)),
    "episodes.observed_reward is larger than it can be": changed(
        "episodes", 0, lambda table: with_column(table, "true_success", [False] * table.num_rows)
    ),
    "column 'task' of groups has another type": changed(
        "groups", 2, lambda table: with_column(table, "task", table["task"].cast(pa.int32()))
    ),
    "groups.advantages is not finite": changed("groups", 2, infinite),
    "no data is not zero": lambda parts: parts["checkpoints"].clear(),
}


@pytest.mark.parametrize(("problem", "defect"), DEFECTS.items())
def test_a_defect_is_refused_and_no_manifest_is_written(tmp_path, problem, defect) -> None:
    parts = row_study.tables(IDS)
    defect(parts)
    with pytest.raises(DamagedError, match=problem):
        row_study.seal(tmp_path, row_study.lay(tmp_path, parts))
    assert not (tmp_path / "MANIFEST.json").exists()


def test_a_seal_that_is_cut_off_leaves_nothing_that_looks_complete(tmp_path, files, monkeypatch) -> None:
    row_study.seal(tmp_path, files)

    def power_cut(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(manifest, "write_manifest", power_cut)
    with pytest.raises(KeyboardInterrupt):
        row_study.seal(tmp_path, files)
    assert not (tmp_path / "MANIFEST.json").exists()


def a_missing_file(folder: Path, files: Files) -> None:
    (folder / files["groups"][1]).unlink()


def a_file_that_is_not_listed(_: Path, files: Files) -> None:
    files["groups"].pop()


def a_file_left_over_of_an_earlier_seal(folder: Path, files: Files) -> None:
    row_study.seal(folder, files)
    files["groups"].pop()


def a_file_that_a_manifest_cannot_name(folder: Path, files: Files) -> None:
    (folder / files["groups"][2]).rename(folder / "groups" / "the last.parquet")
    files["groups"][2] = "groups/the last.parquet"


def half_a_file(folder: Path, files: Files) -> None:
    path = folder / files["episodes"][0]
    path.write_bytes(path.read_bytes()[:500])


def rows_in_the_folder_of_another_table(_: Path, files: Files) -> None:
    files["groups"], files["episodes"] = files["episodes"], files["groups"]


FILE_DEFECTS: dict[Callable[[Path, Files], None], tuple[type[ToolkitError], str]] = {
    a_missing_file: (IncompleteError, "cannot be read"),
    a_file_that_is_not_listed: (IncompleteError, "the folder holds something else"),
    a_file_left_over_of_an_earlier_seal: (DamagedError, "is not in the manifest"),
    a_file_that_a_manifest_cannot_name: (DamagedError, "the manifest could not be read again"),
    half_a_file: (DamagedError, "not a readable Parquet file"),
    rows_in_the_folder_of_another_table: (UsageError, "is no place for rows of"),
}


@pytest.mark.parametrize("defect", FILE_DEFECTS, ids=lambda defect: defect.__name__)
def test_files_that_are_no_study_are_refused(tmp_path, files, defect) -> None:
    defect(tmp_path, files)
    kind, problem = FILE_DEFECTS[defect]
    with pytest.raises(kind, match=problem):
        row_study.seal(tmp_path, files)


def test_a_study_without_runs_is_refused(tmp_path: Path) -> None:
    met = row_study.schedules([row_study.episodes("r", 0, (0, 20), 2)])
    files = row_study.lay(tmp_path, {"schedules": [met]})
    with pytest.raises(DamagedError, match="the manifest could not be read again"):
        row_study.seal(tmp_path, files)


def test_the_logical_hash_does_not_depend_on_how_parquet_encodes(tmp_path, files, sealed) -> None:
    for name in (name for names in files.values() for name in names):
        pq.write_table(pq.ParquetFile(tmp_path / name).read(), tmp_path / name, compression="snappy")
    manifest = row_study.seal(tmp_path, files)
    assert manifest.files.keys() == sealed.manifest.files.keys()
    assert manifest.files != sealed.manifest.files
    assert manifest.logical_sha256 == sealed.manifest.logical_sha256


def test_the_logical_hash_depends_on_the_study_and_every_row(tmp_path: Path, sealed: Study) -> None:
    parts = row_study.tables(IDS)
    other = row_study.seal(tmp_path / "study", row_study.lay(tmp_path / "study", parts), "other")
    decisions = parts["groups"][2]["decisions"].to_pylist()
    decisions[-1] += 1
    parts["groups"][2] = with_column(parts["groups"][2], "decisions", decisions)
    changed = row_study.seal(tmp_path / "row", row_study.lay(tmp_path / "row", parts))
    assert len({m.logical_sha256 for m in (sealed.manifest, other, changed)}) == 3


def test_the_logical_hash_does_not_depend_on_launches(tmp_path: Path, sealed: Study) -> None:
    parts = row_study.tables(IDS)
    parts["launches"] = [row_study.launch(run_id, 1.0) for run_id in IDS]
    manifest = row_study.seal(tmp_path, row_study.lay(tmp_path, parts))
    assert "launches" in manifest.tables
    assert manifest.logical_sha256 == sealed.manifest.logical_sha256


def chunks(content: bytes) -> list[Any]:
    """Return the columns' metadata of a Parquet file with one row group."""
    group = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0)
    return [group.column(number) for number in range(group.num_columns)]


def test_an_episode_takes_less_than_four_bytes_beside_its_seed() -> None:
    table = row_study.episodes(IDS[0], 0)
    content = parquet_bytes("episodes", table)
    columns = chunks(content)
    seeds = sum(c.total_compressed_size for c in columns if c.path_in_schema == "schedule_seed")
    assert table.num_rows == 5632
    assert (len(content) - seeds) / table.num_rows < 4


def test_every_column_but_lists_has_bounds_for_readers_that_skip_pages() -> None:
    table = row_study.groups(IDS[0], 0)
    columns = chunks(parquet_bytes("groups", table))
    lists = {c.path_in_schema.split(".")[0] for c in columns if not c.is_stats_set}
    assert lists == {"schedule_seeds", "true_successes", "observed_rewards", "advantages"}
    assert all(c.has_offset_index for c in columns)


REF = RegistrationRef("paired-rollouts", "0" * 64, {})
CARD = (CHECKOUT / "cards" / "published.md").read_text(encoding="utf-8")
SOURCE = CHECKOUT / "registers" / "published" / "source"


def test_building_gives_the_shipped_bytes(home: Home, published: Study, tmp_path: Path) -> None:
    build_published(SOURCE, tmp_path, CARD, published.manifest.registration)
    assert snapshot(tmp_path) == snapshot(home.registers / "published")
    check_published(SOURCE, home.registers / "published", CARD, published.manifest.registration)


def test_a_build_that_is_cut_off_leaves_what_was_there(tmp_path, monkeypatch) -> None:
    build_published(SOURCE, tmp_path, CARD, REF)
    before, real, done = snapshot(tmp_path), Path.replace, []

    def power_cut(self: Path, target: Path) -> Path:
        done.append(target)
        if len(done) == 5:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", power_cut)
    with pytest.raises(KeyboardInterrupt):
        build_published(SOURCE, tmp_path, CARD, REF)
    assert snapshot(tmp_path) == before


def test_per_task_probe_rows_add_up_to_the_summaries(published: Study) -> None:
    summary = {(r["trajectory"], r["step"], r["noise"], r["estimator"]): r for r in published.rows("probe")}
    tasks = published.rows("probe_clean_tasks")
    for checkpoint in published.rows("probe_checkpoints"):
        at = (checkpoint["trajectory"], checkpoint["step"])
        mine = [t for t in tasks if (t["trajectory"], t["step"]) == at]
        row = summary[(*at, "outcome", "MC")]
        assert len(mine) == 64
        assert sum(t["condition_left"] for t in mine) / 64 == pytest.approx(row["condition_left"], rel=1e-9)
        assert sum(t["condition_right"] for t in mine) / 64 == pytest.approx(row["condition_right"], rel=1e-9)
        assert sum(t["successes"] for t in mine) == checkpoint["clean_successes"]


def test_training_steps_say_what_the_runs_say(published: Study) -> None:
    steps: dict[str, list[Row]] = {}
    for row in published.rows("training_steps"):
        steps.setdefault(row["run_id"], []).append(row)
    runs = {row["run_id"]: row for row in published.rows("runs")}
    assert {run: len(rows) for run, rows in steps.items()} == dict.fromkeys(runs, 100) | {"smoke-do-train": 5}
    for run, rows in steps.items():
        flips = [row["successes"] - row["observed_successes"] for row in rows]
        assert (sum(flips) > 0) == (rows[0]["condition"] not in ("C0", "C2")), run
    # Before any update, without faults, both arms of a seed play the same on one kind of machine.
    for seed, machine in ((0, ""), (1, "-h100"), (2, "")):
        paired, independent = (
            steps[f"t1-c4-paired-s{seed}{machine}"][0],
            steps[f"t1-c4-independent-s{seed}"][0],
        )
        for name in ("successes", "budget_exceeded", "calls"):
            assert paired[name] == independent[name], (seed, name)
    resumed = [r for r in published.rows("attempts") if r["from_step"] is not None]
    assert [(r["run_id"], r["attempt"], r["from_step"]) for r in resumed] == [("smoke-do-train", 2, 3)]


def test_a_fraction_that_is_no_count_is_refused() -> None:
    assert share_of("0.5703125", 128, "here") == 73
    with pytest.raises(DamagedError, match="not a count"):
        share_of("0.57", 128, "here")


def test_a_missing_source_is_incomplete_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match=r"calibration\.csv cannot be read"):
        build_published(tmp_path / "nowhere", tmp_path / "out", CARD, REF)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("evaluations.csv", "0.546875", "0.546874"),
        ("evaluations.csv", "0.546875", "half"),
        ("evaluations.csv", "0.546875", "nan"),
        ("evaluations.csv", ",challenge,", ",stormy,"),
        ("evaluations.csv", ",64,", ",64.5,"),
        ("training_groups.csv", "zero_variance_frac", "zero_variance"),
        ("decisions.csv", "auc_difference_ci95_low", "auc_low"),
        ("runs.csv", "2026-09-07T12:07:16Z", "last Monday"),
        ("freeze.csv", "freeze commit", "something else"),
        ("probe.csv", "base,0,outcome,MC,lhs_mean", "base,zero,outcome,MC,lhs_mean"),
        ("luck_share.csv", "gate1-c2-paired-s0,0,", "nobody,0,"),
        ("runs.csv", "C2,paired", '"C2,paired'),
        ("runs.csv", "arm,seed", "seed,seed"),
        ("runs.csv", "12:07:16Z", "12:07:16"),
        ("evaluations.csv", ",64,", ",1e999999999,"),
        ("probe_clean_tasks.csv", "base,0,", "base,1e17,"),
        ("decisions.csv", "-0.0039", "abc"),
        ("training_groups.csv", "-s0,groups,2400", "-s0,all_correct_groups,725"),
        ("training.csv", "-s0,0,192,0.65625", "-s0,0,192,0.65624"),
        ("training.csv", "-s0,1,192,0.546875,0.546875,8.942708333333334", "-s0,1,192,0.546875,0.546875,8.94"),
        ("training.csv", "0.739583333333333", "0.989583333333333"),  # more rewarded than succeeded
        ("training.csv", "s0,0,192,", "s0,0,384,"),
        ("training.csv", "s0,1,192,", "s0,0,192,"),
        ("training.csv", "s0,50,192,", "s0,51,192,"),
        ("training.csv", "s0,99,192,", "s0,100,192,"),
        ("training.csv", "\ngate1-c2-paired-s0,99,", "\nnobody,0,"),
        ("lineage.csv", ",27592,", ",27591,"),
        ("lineage.csv", ",2400,", ",2399,"),
        ("lineage.csv", "smoke-do-train,", "gate1-c2-paired-s0,"),
        ("reference_agents.csv", "heldout,clean,naive", "heldout,clean,careless"),
        ("reference_agents.csv", "heldout,clean,naive", "heldout,clean,recovering"),
        ("reference_agents.csv", "naive,1200,0.735,", "naive,1200,0.7354,"),
        ("reference_agents.csv", "naive,1200,0.735,", "naive,1200,1.735,"),
        ("reference_agents.csv", ",mean_calls", ",calls"),
        ("reference_steps.csv", "-s0,0,24,22,182,", "-s0,0,24,25,182,"),
        ("reference_steps.csv", "-s0,0,24,22,182,18,", "-s0,0,24,22,182,,"),
        ("reference_steps.csv", "-s0,0,24,22,182,", "-s0,0,24,22,182.5,"),
        ("reference_steps.csv", "-s0,1,24,", "-s0,0,24,"),
    ],
)
def test_a_damaged_source_is_refused_and_writes_nothing(tmp_path, name, old, new) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for path in SOURCE.glob("*.csv"):
        text = path.read_text(encoding="utf-8")
        if path.name == name:
            assert old in text
            text = text.replace(old, new, 1)
        (source / path.name).write_text(text, encoding="utf-8")
    with pytest.raises(DamagedError):
        build_published(source, tmp_path / "out", CARD, REF)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "old", "new", "column"),
    [
        ("reference_agents", "\nheldout,C1", "\nvalidation,C1", "pool"),
        ("reference_agents", "\nheldout,C1_p0.10", "\nheldout,C1_p0.11", "condition"),
        ("reference_steps", "\ngate1-c2-paired-s0,2,", "\nnobody,2,", "run_id"),
    ],
)
def test_an_unknown_word_of_a_reference_is_refused_with_its_line(tmp_path, name, old, new, column) -> None:
    source = shutil.copytree(SOURCE, tmp_path / "source")
    path = source / f"{name}.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DamagedError, match=f"an unknown {column}") as refused:
        build_published(source, tmp_path / "out", CARD, REF)
    assert (refused.value.found, refused.value.where) == (
        new.strip().split(",")[column == "condition"],
        f"{path} line 4",
    )
