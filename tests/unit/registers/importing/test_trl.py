"""Rollouts of TRL become episodes: every figure is the trainer's own, arms and seeds are its arguments'."""

import hashlib
import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from tests.unit.registers.importing.logs import LOGS, of_file, refused, study_of
from toolkit.errors import DamagedError
from toolkit.registers.importing import source
from toolkit.registers.importing.readers.rollouts import attributes
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import ROW

RUNS = ("dr_grpo-s0", "dr_grpo-s1", "grpo-s0", "grpo-s1")
WRITTEN = ("step", "prompt", "completion", "brief", "digit", "advantage")
BATCH = "completions/completions_00001.parquet"
ROLLOUTS = 16


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return a copy of the runs, to be changed."""
    return shutil.copytree(LOGS / "trl", tmp_path / "trl")


def test_every_cell_is_as_trl_wrote_it() -> None:
    log = read_log([LOGS / "trl"])
    for run in RUNS:
        files = sorted((LOGS / "trl" / run / "completions").iterdir())
        written = [tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist()]
        assert len(written) == 3 * ROLLOUTS
        assert of_file(log, run, *WRITTEN) == written
    assert log.table[ROW].to_list() == list(range(1, 4 * 3 * ROLLOUTS + 1))


def test_the_score_is_the_reward_that_the_trainer_logged() -> None:
    log = read_log([LOGS / "trl"])
    for run in RUNS:
        state = json.loads((LOGS / "trl" / run / "checkpoint-3" / "trainer_state.json").read_text())
        logged = {entry["step"]: entry["reward"] for entry in state["log_history"] if "reward" in entry}
        scores = log.table.filter(pl.col("file") == run).group_by("step").agg(pl.col("score").mean())
        assert dict(scores.iter_rows()) == pytest.approx(logged, abs=1e-6)
        assert len(logged) == 3
    unjudged = log.table.filter(pl.col("digit").is_null())
    assert unjudged.height == 4 * 3 * 4
    assert unjudged["score"].to_list() == [value / 2 for value in unjudged["brief"]]


def test_a_task_is_its_prompt_and_a_schedule_the_number_of_a_rollout() -> None:
    table = read_log([LOGS / "trl"]).table
    assert {hashlib.sha256(prompt.encode()).hexdigest()[:16] for prompt in table["prompt"]} == set(
        table["task"]
    )
    for _, part in table.group_by("file", "step", "task"):
        assert part.sort(ROW)["schedule"].to_list() == [0, 1, 2, 3]


def test_it_gives_a_study() -> None:
    tables = study_of(read_log([LOGS / "trl"]))
    assert {name: table.height for name, table in tables.items()} == {
        "runs": 4,
        "episodes": 4 * 3 * ROLLOUTS,
        "evaluations": 12,
        "task_pools": 4,
    }
    assert sorted(tables["runs"]["run_id"]) == [f"main-{run}" for run in RUNS]


def test_arms_and_seeds_are_the_arguments_where_names_say_nothing(runs: Path) -> None:
    for number, run in enumerate(RUNS):
        (runs / run).rename(runs / f"run {number}")
    log = read_log([runs])
    places = log.table.select("file", "seed", "config.loss_type", "config.scale_rewards").unique(
        maintain_order=True
    )
    assert places.rows() == [
        ("run 0", "0", "dr_grpo", "none"),
        ("run 1", "1", "dr_grpo", "none"),
        ("run 2", "0", "grpo", "group"),
        ("run 3", "1", "grpo", "group"),
    ]
    assert sorted(study_of(log)["runs"]["arm"].unique()) == ["group", "none"]


def test_without_a_checkpoint_names_say_the_seed_and_scores_are_not_guessed(runs: Path) -> None:
    for run in RUNS:
        shutil.rmtree(runs / run / "checkpoint-3")
    log = read_log([runs])
    assert log.table.select("run.stem", "seed").unique().height == 4
    assert "score" not in log.table.columns
    for file in runs.rglob("*.parquet"):
        pl.read_parquet(file).drop("digit").write_parquet(file)
    log = read_log([runs])
    assert log.table["score"].equals(log.table["brief"].alias("score"))


def test_a_batch_that_was_trained_on_again_is_there_once_and_this_is_said(runs: Path) -> None:
    again = pl.read_parquet(runs / RUNS[0] / BATCH).with_columns(step=pl.lit(2, pl.Int64))
    again.write_parquet(runs / RUNS[0] / "completions" / "completions_00002.parquet")
    log = read_log([runs / RUNS[0]])
    assert log.table["step"].to_list() == [1] * ROLLOUTS + [3] * ROLLOUTS
    assert any("completions_00002.parquet" in what for what in log.left_out)


def test_nothing_is_dropped_without_a_word(runs: Path) -> None:
    for file in (runs / RUNS[0]).rglob("*.parquet"):
        added = pl.read_parquet(file).with_columns(
            task=pl.lit("sums"), score=pl.lit(7), words=pl.lit([["a"]], pl.List(pl.List(pl.String)))
        )
        added.write_parquet(file)
    log = read_log([runs])
    kept = log.table.filter(pl.col("file") == RUNS[0])
    assert kept["own.task"].unique().to_list() == ["sums"]
    assert kept["own.score"].unique().to_list() == [7]
    assert "completions: words" in log.left_out
    arguments = attributes(runs / RUNS[0] / "checkpoint-3" / "training_args.bin")
    lists = {name for name, value in arguments.items() if isinstance(value, list)}
    assert {f"training_args.bin: {name}" for name in lists} <= set(log.left_out)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_the_attributes_of_a_pickled_object_are_its_plain_values(tmp_path: Path, protocol: int) -> None:
    values = {
        "seed": 2**40,
        "rate": 1e-6,
        "name": "ä" * 300,
        "flag": True,
        "none": None,
        "list": [1, "b", 2.5],
    }
    again = {"name": values["name"], "deep": {"x": {"y": -1}}, "many": list(range(300))}
    path = packed(tmp_path / "training_args.bin", SimpleNamespace(**values, again=again), protocol)
    assert attributes(path) == {**values, "again": again}


def test_the_trainers_own_arguments_are_as_they_were_given() -> None:
    told = attributes(LOGS / "trl" / "dr_grpo-s1" / "checkpoint-3" / "training_args.bin")
    given = {"seed": 1, "loss_type": "dr_grpo", "reward_weights": [0.5, 1.0], "max_steps": 3, "use_cpu": True}
    assert given | {"lr_scheduler_type": "linear", "learning_rate": 1e-6} == {
        name: told[name] for name in (*given, "lr_scheduler_type", "learning_rate")
    }


class Bomb:
    """What makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


def packed(path: Path, content: object, protocol: int = 2) -> Path:
    """Write an object as `torch.save` does."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("training_args/data.pkl", pickle.dumps(content, protocol))
    return path


def test_nothing_in_the_arguments_is_run(runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "made"
    where = runs / RUNS[0] / "checkpoint-3" / "training_args.bin"
    packed(where, SimpleNamespace(seed=5, bomb=Bomb(target)))
    log = read_log([runs / RUNS[0]])
    assert log.table["seed"].unique().to_list() == ["5"]
    assert not target.exists()
    packed(where, Bomb(target))
    refused(runs, match="not what torch.save writes")
    assert not target.exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x02}q\x00.", b"\x00" * 300])
def test_arguments_that_are_none_are_refused(runs: Path, content: bytes) -> None:
    (runs / RUNS[0] / "checkpoint-3" / "training_args.bin").write_bytes(content)
    refused(runs, match="not what torch.save writes")


@pytest.mark.parametrize(
    "instructions", [b"0.", b"h\x07.", b"u.", b"(u.", b"N.", b"]K\x01K\x02s.", b"R.", b"\xff"]
)
def test_instructions_that_make_no_sense_are_refused(tmp_path: Path, instructions: bytes) -> None:
    path = tmp_path / "training_args.bin"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("training_args/data.pkl", b"\x80\x02" + instructions)
    with pytest.raises(DamagedError, match=r"not what torch\.save writes"):
        attributes(path)


def test_arguments_that_unpack_to_too_much_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "training_args.bin"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("training_args/data.pkl", b"\x00" * 2**24)
    assert path.stat().st_size < 2**16
    with pytest.raises(DamagedError, match=r"not what torch\.save writes") as caught:
        attributes(path)
    assert "16777216 bytes" in str(caught.value)


@pytest.mark.parametrize("state", ["[]", "{", '{"log_history": 3}', '{"log_history": [3]}'])
def test_a_state_that_is_none_is_refused(runs: Path, state: str) -> None:
    (runs / RUNS[0] / "checkpoint-3" / "trainer_state.json").write_text(state)
    refused(runs, match=r"trainer_state\.json is not what a trainer writes")


def test_a_pickle_named_parquet_is_refused(runs: Path, tmp_path: Path) -> None:
    (runs / RUNS[0] / BATCH).write_bytes(pickle.dumps(Bomb(tmp_path / "made")))
    refused(runs, match=r"completions_00001\.parquet is not a readable table")
    assert not (tmp_path / "made").exists()


def test_prompts_that_are_lists_are_refused(runs: Path) -> None:
    file = runs / RUNS[0] / BATCH
    pl.read_parquet(file).with_columns(prompt=pl.concat_list("prompt")).write_parquet(file)
    assert refused(runs, match="no completions of a TRL trainer").found == "no prompt"


@pytest.mark.parametrize("name", [BATCH, "checkpoint-3/training_args.bin"])
def test_a_link_out_of_the_folder_is_refused(runs: Path, tmp_path: Path, name: str) -> None:
    outside = (runs / RUNS[0] / name).rename(tmp_path / "outside")
    (runs / RUNS[0] / name).symlink_to(outside)
    refused(runs, match="link that leads out")


def test_a_file_with_too_much_is_refused(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MOST_CELLS", 80)
    refused(runs, match="more cells")


def test_a_score_that_is_no_number_is_refused_with_its_row(runs: Path) -> None:
    file = runs / RUNS[1] / BATCH
    pl.read_parquet(file).with_columns(brief=pl.lit(float("nan"))).write_parquet(file)
    with pytest.raises(DamagedError, match="score") as caught:
        study_of(read_log([runs]))
    assert caught.value.found is not None
    assert f"row {3 * ROLLOUTS + 1}" in caught.value.found
