"""Histories become a row a step and run; datasets of Hugging Face are read as their splits have them."""

import json
import random
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.unit.registers.importing.logs import LOGS, of_file, refused, study_of
from toolkit.drafting.outline import outlined
from toolkit.errors import UsageError
from toolkit.registers.importing import source
from toolkit.registers.importing.readers import tables as module
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import ROW

RUNS = ("grpo-s0", "grpo-s1", "gspo-s0", "gspo-s1")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_steps_at_which_the_outcome_was_not_measured_are_no_episodes(tmp_path: Path) -> None:
    for run in RUNS:
        rows = [f"{step},0.{step},{f'0.{run[-1]}{step}' if step % 2 else ''}" for step in range(6)]
        write(tmp_path / f"{run}.csv", "\n".join(["_step,train/loss,eval.accuracy", *rows]) + "\n")
    log = read_log([tmp_path])
    assert log.table["task"].unique().to_list() == ["history"]
    assert outlined("mine", log, {"score": "eval.accuracy"}).arms == ("grpo", "gspo")
    assert outlined("mine", log, {"score": "eval.accuracy"}).steps == (1, 3, 5)
    tables = study_of(log, score="eval.accuracy")
    heights = {"runs": 4, "episodes": 12, "evaluations": 12, "task_pools": 1}
    assert {name: table.height for name, table in tables.items()} == heights
    expected = sorted(float(f"0.{run[-1]}{step}") for run in RUNS for step in (1, 3, 5))
    assert sorted(tables["episodes"]["score"]) == expected
    with pytest.raises(UsageError) as caught:
        outlined("mine", log)
    assert "--score COLUMN" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("wandb/offline-run-1/run-1.wandb", "scan_history"),
        ("runs.pkl", "CSV or Parquet"),
        ("runs/all.pickle", "CSV or Parquet"),
    ],
)
def test_what_is_not_read_says_how_to_export_it(tmp_path: Path, name: str, remedy: str) -> None:
    write(tmp_path / name, ":W&B")
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(UsageError, match="a format that is not read") as caught:
            read_log([path])
        assert remedy in str(caught.value.remedy)


def test_tables_of_steps_are_histories_of_the_runs_that_they_are_called_after(tmp_path: Path) -> None:
    for run in RUNS:
        write(tmp_path / f"{run}.csv", f"Wall time,Step,Value\n1.5,10,0.{run[-1]}1\n2.5,20,\n3.5,30,0.5\n")
    log = read_log([tmp_path])
    assert log.format == "history"
    assert of_file(log, "gspo-s1", "run.stem", "seed", "step", "Value") == [
        ("gspo", "1", "10", "0.11"),
        ("gspo", "1", "20", None),
        ("gspo", "1", "30", "0.5"),
    ]
    tables = study_of(log)
    assert tables["episodes"].height == 8
    assert tables["evaluations"]["step"].unique().sort().to_list() == [10, 30]


def test_a_chart_of_wandb_has_a_run_a_column(tmp_path: Path) -> None:
    heading = ",".join(f'"{run} - eval/accuracy{end}"' for run in RUNS for end in ("", "__MIN", "__MAX"))
    rows = [
        "0," + ",".join(f'"0.{number}","0","1"' for number in range(4)),
        "10," + ",".join('"","",""' if number == 2 else '"0.5","0","1"' for number in range(4)),
    ]
    path = write(tmp_path / "chart.csv", "\n".join([f'"Step",{heading}', *rows]) + "\n")
    log = read_log([path])
    assert log.table.height == 7
    assert of_file(log, "gspo-s0", "step", "eval/accuracy", "eval/accuracy__MAX") == [("0", "0.2", "1")]
    assert study_of(log, score="eval/accuracy")["runs"]["arm"].to_list() == ["grpo", "grpo", "gspo", "gspo"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_an_exported_history_has_the_configuration_beside_it(tmp_path: Path, kind: str) -> None:
    for number, (run, rate) in enumerate((("a1b2", 0.1), ("c3d4", 0.2))):
        folder = tmp_path / run
        write(
            folder / "config.yaml",
            f"wandb_version: 1\n_wandb:\n  value: {{}}\nlr:\n  desc: null\n  value: {rate}\n"
            f"seed:\n  value: {number}\noptim:\n  value: {{name: adam, betas: [0.9, 0.95]}}\n",
        )
        write(folder / "files" / "wandb-summary.json", '{"best": 0.75, "acc": 0.5, "_step": 3, "list": [1]}')
        write(folder / "files" / "wandb-metadata.json", '{"startedAt": "2026-01-31T12:00:00Z", "host": "h"}')
        table = pl.DataFrame({"_step": [1, 2, 3], "_runtime": [0.5, 1.5, 2.5], "acc": [0.25, None, 0.5]})
        writer = {"csv": table.write_csv, "jsonl": table.write_ndjson, "parquet": table.write_parquet}[kind]
        writer(folder / f"history.{kind}")
    log = read_log([tmp_path])
    rows = of_file(log, "c3d4", "config.lr", "seed", "step", "acc", "summary.best", "launched_at")
    expected = [
        ("0.2", "1", str(step), acc, "0.75", "2026-01-31T12:00:00Z")
        for step, acc in ((1, "0.25"), (3, "0.5"))
    ]
    assert [tuple(map(str, row)) for row in rows if row[3] is not None] == expected
    assert {"config.optim.betas", "summary.list", "wandb-metadata.json: all but the start"} <= set(
        log.left_out
    )
    assert "settings that are the same in every run, such as config.optim.name" in log.left_out[-1]
    tables = study_of(log, arm="config.lr", score="acc")
    assert tables["runs"]["arm"].to_list() == ["arm_0_1", "arm_0_2"]
    assert tables["episodes"].height == 4


@pytest.mark.parametrize(
    "text",
    [
        "- 1",
        "{",
        "a: !!python/object/apply:os.system [true]",
        "[" * 10_000,
        "a: {value: &a {b: *a}}",
        "a0: &a0 {x: 1, y: 2}\n"
        + "".join(f"a{n}: &a{n} {{x: *a{n - 1}, y: *a{n - 1}}}\n" for n in range(1, 15))
        + "big: {value: *a14}",
        "#" * 2**20 + "\n{}",
    ],
)
def test_a_configuration_that_is_none_or_a_bomb_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path / "run" / "history.csv", "_step,acc\n1,0.5\n")
    write(tmp_path / "run" / "config.yaml", text)
    refused(tmp_path, match="not what W&B writes|more than they can be|too long")


def test_a_table_with_a_step_twice_or_with_tasks_is_no_history(tmp_path: Path) -> None:
    path = write(tmp_path / "twice.csv", "arm,seed,step,id,acc\na,0,1,x,1\na,0,1,y,0\nb,0,1,x,1\n")
    log = read_log([path])
    assert (log.format, log.is_history) == ("tables", False)
    assert "task" not in log.table.columns
    path = write(tmp_path / "tasks.csv", "arm,step,task,acc\na,1,x,1\nb,1,x,\n")
    log = read_log([path])
    assert (log.format, log.measured({"score": "acc"}).height) == ("tables", 2)


def test_rows_keep_their_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "history.csv", "arm,step,acc\na,1,\na,2,0.5\nb,1,\nb,2,0.75\n")
    log = read_log([path])
    assert log.measured({"score": "acc"})[ROW].to_list() == [2, 4]


# Datasets of Hugging Face.

COLUMNS = ("split", "policy", "seed", "question_id", "trial", "correct", "started_at")


def drawn() -> list[tuple[object, ...]]:
    """Return the rows that `make/hub_dataset.py` draws."""
    draw = random.Random("answers")  # noqa: S311
    return [
        (
            split,
            policy,
            seed,
            f"{split}-{question}",
            trial,
            draw.random() < 0.5,
            f"2026-01-31T12:0{seed}:00+00:00",
        )
        for split, questions in (("test", 6), ("validation", 3))
        for policy in ("one", "two")
        for seed in (0, 1)
        for question in range(questions)
        for trial in range(2)
    ]


@pytest.mark.parametrize("layout", ["saved", "repository"])
def test_every_row_is_as_it_was_saved(layout: str) -> None:
    log = read_log([LOGS / "hub_dataset" / layout])
    assert log.format == "Hugging Face dataset"
    assert log.table.select(COLUMNS).rows() == drawn()
    assert log.left_out == ("messages",)
    assert len(log.files) == {"saved": 3, "repository": 4}[layout]


@pytest.mark.parametrize("layout", ["saved", "repository"])
def test_a_split_alone_is_a_dataset(layout: str) -> None:
    folder = {"saved": "saved/validation", "repository": "repository/data"}[layout]
    log = read_log([LOGS / "hub_dataset" / folder])
    assert log.table.filter(pl.col("policy") == "two").height == {"saved": 12, "repository": 36}[layout]


@pytest.mark.parametrize("layout", ["saved", "repository"])
def test_subsets_and_datasets_beside_each_other_are_runs(layout: str, tmp_path: Path) -> None:
    for name in ("grpo-s0", "grpo-s1"):
        shutil.copytree(LOGS / "hub_dataset" / layout, tmp_path / "runs" / name)
    table = read_log([tmp_path / "runs"]).table
    assert table.select("file", "run.stem").unique().sort("file").rows() == [
        ("grpo-s0", "grpo"),
        ("grpo-s1", "grpo"),
    ]
    assert set(table["seed"]) == {0, 1}  # the log's own, not the name's


@pytest.mark.parametrize(
    "files", [[], ["../../outside.arrow"], ["/etc/passwd"], [".."], ["absent.arrow"], [3], "x"]
)
def test_a_state_that_names_no_files_beside_it_is_refused(tmp_path: Path, files: object) -> None:
    folder = shutil.copytree(LOGS / "hub_dataset" / "saved" / "test", tmp_path / "saved")
    named = [{"filename": file} for file in files] if isinstance(files, list) else files
    (folder / "state.json").write_text(json.dumps({"_data_files": named}))
    refused(
        folder, match=r"state\.json is not what save_to_disk writes|not a readable Arrow stream|leads out"
    )


def test_an_arrow_file_with_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, bound, what in ((source, "LARGEST_TABLE", "bytes"), (module, "MOST_COLUMNS", "columns")):
        with monkeypatch.context() as patched:
            patched.setattr(place, bound, 3)
            refused(LOGS / "hub_dataset" / "saved", match=f"more {what} than one can have")


def test_a_stream_that_was_cut_between_two_parts_is_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(LOGS / "hub_dataset" / "saved" / "validation", tmp_path / "saved")
    file = folder / "data-00000-of-00001.arrow"
    file.write_bytes(file.read_bytes()[:-8])
    refused(folder, match="not a readable Arrow stream")
