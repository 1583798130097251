"""Rollouts of TRL and verl, and recorded groups, become episodes: every figure is the trainer's own."""

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

from tests.conftest import run as command
from tests.unit.registers.importing.logs import LOGS, lines, of_file, refused, study_of
from toolkit.drafting.outline import outlined
from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.importing import source
from toolkit.registers.importing.readers.rollouts import attributes
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import ROW

RUNS = ("dr_grpo-s0", "dr_grpo-s1", "grpo-s0", "grpo-s1")
BATCH = "completions/completions_00001.parquet"
ARGUMENTS = "checkpoint-3/training_args.bin"
STATE = "checkpoint-3/trainer_state.json"
ROLLOUTS = 16
OF_VERL = ("grpo-s0", "grpo-s1", "gspo-s0", "gspo-s1")
FIRST = "grpo-s0/rollouts/1.jsonl"
RECORDS = LOGS / "pairing"


HEIGHTS = {
    "trl": (4, 4 * 3 * ROLLOUTS, 12, 4),
    "verl": (4, 4 * 52, 16, 8),
    "pairing": (4, 4 * 48, 16, 3),
    "hub_dataset/saved": (4, 72, 8, 9),
    "hub_dataset/repository": (4, 72, 8, 9),
}
FILES = (
    *(("trl", f"{RUNS[0]}/{BATCH}"), ("trl", f"{RUNS[0]}/{ARGUMENTS}"), ("verl", FIRST)),
    ("hub_dataset/saved", "test/data-00000-of-00002.arrow"),
    ("hub_dataset/repository", "data/test-00000-of-00002.parquet"),
)


@pytest.mark.parametrize("log", HEIGHTS)
def test_a_log_gives_a_study(log: str) -> None:
    tables = study_of(read_log([LOGS / log]))
    names = ("runs", "episodes", "evaluations", "task_pools")
    assert tuple(tables[name].height for name in names) == HEIGHTS[log]


@pytest.mark.parametrize(("log", "name"), FILES)
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, log: str, name: str) -> None:
    folder = shutil.copytree(LOGS / log, tmp_path / "log")
    outside = (folder / name).rename(tmp_path / "outside")
    (folder / name).symlink_to(outside)
    refused(folder, match="link that leads out")


@pytest.mark.parametrize(("log", "name"), [file for file in FILES if file[1] not in {FIRST, FILES[1][1]}])
def test_a_pickle_or_half_of_a_file_in_its_place_is_refused(tmp_path: Path, log: str, name: str) -> None:
    folder = shutil.copytree(LOGS / log, tmp_path / "log")
    whole = (folder / name).read_bytes()
    for content in (pickle.dumps(Bomb(tmp_path / "made")), whole[: len(whole) // 2]):
        (folder / name).write_bytes(content)
        refused(folder, match="not a readable")
    assert not (tmp_path / "made").exists()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return a copy of TRL's runs, to be changed."""
    return shutil.copytree(LOGS / "trl", tmp_path / "trl")


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Return a copy of verl's runs, to be changed."""
    return shutil.copytree(LOGS / "verl", tmp_path / "verl")


def test_every_cell_is_as_trl_wrote_it() -> None:
    log = read_log([LOGS / "trl"])
    for run in RUNS:
        files = sorted((LOGS / "trl" / run / "completions").iterdir())
        written = [tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist()]
        assert len(written) == 3 * ROLLOUTS
        assert of_file(log, run, "step", "prompt", "completion", "brief", "digit", "advantage") == written
    assert log.table[ROW].to_list() == list(range(1, 4 * 3 * ROLLOUTS + 1))


def test_the_score_is_the_reward_that_the_trainer_logged() -> None:
    log = read_log([LOGS / "trl"])
    for run in RUNS:
        state = json.loads((LOGS / "trl" / run / STATE).read_text())
        logged = {entry["step"]: entry["reward"] for entry in state["log_history"] if "reward" in entry}
        scores = log.table.filter(pl.col("file") == run).group_by("step").agg(pl.col("score").mean())
        assert dict(scores.iter_rows()) == pytest.approx(logged, abs=1e-6)
        assert len(logged) == 3
    unjudged = log.table.filter(pl.col("digit").is_null())
    assert unjudged.height == 4 * 3 * 4
    assert unjudged["score"].to_list() == [value / 2 for value in unjudged["brief"]]


@pytest.mark.parametrize("trainer", ["trl", "verl"])
def test_a_task_is_its_prompt_and_a_schedule_the_number_of_a_rollout(trainer: str) -> None:
    table = read_log([LOGS / trainer]).table
    for task, prompt in table.select("task", "prompt").unique().rows():
        assert task == hashlib.sha256(prompt.encode()).hexdigest()[:16]
    pool = ["pool"] if trainer == "verl" else []
    for place, part in table.group_by("file", "step", "task", *pool):
        assert part.sort(ROW)["schedule"].to_list() == list(range(1 if "validation" in place else 4))


def test_arms_and_seeds_are_the_arguments_where_names_say_nothing(runs: Path) -> None:
    for number, run in enumerate(RUNS):
        (runs / run).rename(runs / f"run {number}")
    log = read_log([runs])
    told = log.table.select("file", "seed", "config.loss_type", "config.scale_rewards")
    assert told.unique(maintain_order=True).rows() == [
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


def evaluated(run: Path, last: int = 3, **figures: float) -> None:
    """Let a run have evaluated at its second step, and its state be of its last one that is given."""
    state = json.loads((run / STATE).read_text())
    history = [entry for entry in state["log_history"] if entry["step"] <= last]
    state |= {"global_step": last, "log_history": [*history, {"step": 2, "eval_reward": 0.5, **figures}]}
    (run / STATE).write_text(json.dumps(state))


# The figures of an evaluation; how many of its file's sixteen rollouts, four a prompt, are its own.
EVALUATIONS = [
    ({}, 16),
    ({"eval_runtime": 0.0301, "eval_samples_per_second": 132.9}, 16),
    ({"eval_runtime": 0.0301, "eval_samples_per_second": 99.7}, 12),
    ({"eval_runtime": 0.0301, "eval_samples_per_second": 33.2}, 4),
]


@pytest.mark.parametrize(("figures", "own"), EVALUATIONS)
def test_an_evaluation_is_no_training(runs: Path, figures: dict[str, float], own: int) -> None:
    whole = read_log([runs])
    assert "pool" not in whole.table.columns
    for run in RUNS:
        evaluated(runs / run, **figures)
    log = read_log([runs])
    rows = log.table.group_by("pool", "step").len().sort("step").rows()
    assert rows == [("train", 1, 64), ("eval", 2, 4 * own), ("train", 3, 64)]
    last = whole.table.filter(pl.col("file") == RUNS[0], pl.col("step") == 2).tail(own)
    kept = log.table.filter(pl.col("file") == RUNS[0], pl.col("step") == 2)
    assert kept["completion"].equals(last["completion"])
    said = "; ".join(log.left_out)
    assert "completions_00002.parquet: no training but an evaluation, pool 'eval'" in said
    assert (f"{16 - own} rollouts of the training before it" in said) is (own < 16)
    outline = outlined("mine", log)
    assert (outline.pools, outline.steps) == (("eval", "train"), (2,))
    with pytest.raises(DamagedError, match="does not tell them apart"):
        log.measured({name: column for name, column in outline.columns.items() if name != "pool"})


UNTOLD = {
    "the state ends before": (lambda run: evaluated(run, last=2), "one of step 2"),
    "there is no state": (lambda run: (run / STATE).unlink(), "none"),
}


@pytest.mark.parametrize("case", UNTOLD)
def test_steps_that_may_be_evaluations_are_refused(runs: Path, case: str) -> None:
    change, found = UNTOLD[case]
    change(runs / RUNS[0])
    packed(runs / RUNS[0] / ARGUMENTS, SimpleNamespace(seed=0, eval_strategy="steps"))
    with pytest.raises(IncompleteError, match="which of the last steps are evaluations") as caught:
        read_log([runs])
    assert caught.value.found == found


def test_nothing_is_dropped_without_a_word(runs: Path) -> None:
    for file in (runs / RUNS[0]).rglob("*.parquet"):
        added = pl.read_parquet(file).with_columns(
            task=pl.lit("sums"), score=pl.lit(7), words=pl.lit([["a"]], pl.List(pl.List(pl.String)))
        )
        added.write_parquet(file)
    log = read_log([runs])
    kept = log.table.filter(pl.col("file") == RUNS[0])
    assert kept.select("own.task", "own.score").unique().rows() == [("sums", 7)]
    assert "completions: words" in log.left_out
    arguments = attributes(runs / RUNS[0] / ARGUMENTS)
    lists = {name for name, value in arguments.items() if isinstance(value, list)}
    assert {f"training_args.bin: {name}" for name in lists} <= set(log.left_out)


@pytest.mark.parametrize("protocol", [2, 5])
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
    told = attributes(LOGS / "trl" / "dr_grpo-s1" / ARGUMENTS)
    given = {"seed": 1, "loss_type": "dr_grpo", "reward_weights": [0.5, 1.0], "max_steps": 3, "use_cpu": True}
    given |= {"lr_scheduler_type": "linear", "learning_rate": 1e-6}
    assert {name: told[name] for name in given} == given


class Bomb:
    """What makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


def packed(path: Path, content: object, protocol: int = 2) -> Path:
    """Write an object, or the bytes of a pickle, as `torch.save` does."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        raw = content if isinstance(content, bytes) else pickle.dumps(content, protocol)
        archive.writestr("training_args/data.pkl", raw)
    return path


def test_nothing_in_the_arguments_is_run(runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "made"
    packed(runs / RUNS[0] / ARGUMENTS, SimpleNamespace(seed=5, bomb=Bomb(target)))
    assert read_log([runs / RUNS[0]]).table["seed"].unique().to_list() == ["5"]
    packed(runs / RUNS[0] / ARGUMENTS, Bomb(target))
    refused(runs, match="not what torch.save writes")
    assert not target.exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x02}q\x00.", b"\x00" * 300])
def test_arguments_that_are_none_are_refused(runs: Path, content: bytes) -> None:
    (runs / RUNS[0] / ARGUMENTS).write_bytes(content)
    refused(runs, match="not what torch.save writes")


@pytest.mark.parametrize(
    "instructions", [b"0.", b"h\x07.", b"u.", b"(u.", b"N.", b"]K\x01K\x02s.", b"R.", b"\xff"]
)
def test_instructions_that_make_no_sense_are_refused(tmp_path: Path, instructions: bytes) -> None:
    path = packed(tmp_path / "training_args.bin", b"\x80\x02" + instructions)
    with pytest.raises(DamagedError, match=r"not what torch\.save writes"):
        attributes(path)


def test_arguments_that_unpack_to_too_much_are_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "training_args.bin", b"\x00" * 2**24)
    with pytest.raises(DamagedError, match=r"not what torch\.save writes") as caught:
        attributes(path)
    assert "16777216 bytes" in str(caught.value)


@pytest.mark.parametrize("state", ["[]", "{", '{"log_history": 3}', '{"log_history": [3]}'])
def test_a_state_that_is_none_is_refused(runs: Path, state: str) -> None:
    (runs / RUNS[0] / STATE).write_text(state)
    refused(runs, match=r"trainer_state\.json is not what a trainer writes")


def test_prompts_that_are_lists_are_refused(runs: Path) -> None:
    file = runs / RUNS[0] / BATCH
    pl.read_parquet(file).with_columns(prompt=pl.concat_list("prompt")).write_parquet(file)
    assert refused(runs, match="no completions of a TRL trainer").found == "no prompt"


def test_a_file_with_too_much_is_refused(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MOST_CELLS", 80)
    refused(runs, match="more cells")


def test_a_score_that_is_no_number_is_refused_with_its_row(runs: Path) -> None:
    file = runs / RUNS[1] / BATCH
    pl.read_parquet(file).with_columns(brief=pl.lit(float("nan"))).write_parquet(file)
    with pytest.raises(DamagedError, match="score") as caught:
        study_of(read_log([runs]))
    assert f"row {3 * ROLLOUTS + 1}" in str(caught.value.found)


def test_every_cell_is_as_verl_wrote_it() -> None:
    log = read_log([LOGS / "verl"])
    for run in OF_VERL:
        folder = LOGS / "verl" / run
        files = [*sorted((folder / "rollouts").iterdir()), folder / "validation/3.jsonl"]
        # As text, numbers with all their digits: 1.0 is not 1.
        rows = [row for file in files for row in lines(file, parse_float=str, parse_int=str)]
        named = ("input", "output", "gts", "score", "step", "acc", "pred")
        assert len(rows) == 3 * 16 + 4
        assert of_file(log, run, "prompt", *named[1:]) == [
            tuple(str(row[n]).lower() if isinstance(row[n], bool) else row[n] for n in named) for row in rows
        ]
    assert log.left_out == ("letters",)


def test_arms_seeds_and_pools_are_the_names_of_folders() -> None:
    table = read_log([LOGS / "verl"]).table
    places = table.select("file", "run.stem", "seed", "pool").unique().sort("file", "pool").rows()
    assert places == [(run, run[:4], run[-1], pool) for run in OF_VERL for pool in ("rollouts", "validation")]
    alone = read_log([LOGS / "verl" / "gspo-s1" / "rollouts"]).table
    assert alone["run.stem"][0] == "gspo"


def test_outcomes_of_verl_are_those_that_its_reward_function_says() -> None:
    tables = study_of(read_log([LOGS / "verl"]), true_success="acc")
    right = sum(row["acc"] for file in (LOGS / "verl").rglob("*.jsonl") for row in lines(file))
    assert tables["evaluations"]["successes"].sum() == right > 0


# The uid of a rollout; how many tasks the four prompts then are, and whether they are those of the uid.
UIDS = {
    "two items of one prompt": ("{prompt}-{half}", 8, True),
    "an item a prompt": ("{prompt}", 4, True),
    "another at every step": ("{step}-{prompt}", 4, False),
    "absent at a step": ("{prompt}-{half}", 4, False),
}


@pytest.mark.parametrize("case", UIDS)
def test_items_are_told_apart_by_a_uid_that_names_them(dumps: Path, case: str) -> None:
    uid, tasks, is_named = UIDS[case]
    rollouts = dumps / "grpo-s0" / "rollouts"
    for step in (1, 2) if "absent" in case else (1, 2, 3):
        file = rollouts / f"{step}.jsonl"
        rows = [
            row | {"uid": uid.format(step=step, prompt=row["input"], half=number % 2)}
            for number, row in enumerate(lines(file))
        ]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log([rollouts])
    assert log.table["task"].n_unique() == tasks
    assert log.table.group_by("step", "task").len()["len"].unique().to_list() == [16 // tasks]
    assert (log.table["task"] == log.table["uid"]).fill_null(value=False).all() is is_named
    assert any("uid, which names no item" in what for what in log.left_out) is not is_named


def test_columns_of_the_log_that_a_reader_would_hide_have_another_name(dumps: Path) -> None:
    rows = [row | {"task": "t", "file": "f", "prompt": "p"} for row in lines(dumps / FIRST)]
    (dumps / FIRST).write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = read_log([dumps]).table
    hidden = table.filter(pl.col("own.task") == "t").select("own.task", "own.file", "own.prompt").unique()
    assert hidden.rows() == [("t", "f", "p")]


def test_steps_are_in_the_order_of_their_numbers(dumps: Path) -> None:
    file = dumps / FIRST
    file.with_name("10.jsonl").write_text(file.read_text().replace('"step": 1,', '"step": 10,'))
    table = read_log([dumps / "grpo-s0" / "rollouts"]).table
    assert table["step"].unique(maintain_order=True).to_list() == ["1", "2", "3", "10"]


def test_every_cell_is_as_a_group_recorded_it() -> None:
    log = read_log([RECORDS])
    of_groups = ("regime", "seed", "step", "task", "exposed", "zero_variance", "spurious")
    of_slots = ("schedule_seeds", "true_outcomes", "observed_rewards")
    for file in sorted(RECORDS.iterdir()):
        written = [
            (group["design"], *(group[name] for name in of_groups), slot, *values)
            for group in lines(file)
            for slot, values in enumerate(zip(*(group[name] for name in of_slots), strict=True))
        ]
        named = ("schedule", "schedule_seed", "true_success", "observed_reward")
        assert of_file(log, file.stem, "arm", *of_groups, *named) == written
        assert command("pairing", "verify", file, "--json").json()["groups"] == len(lines(file)) == 12


def test_outcomes_between_no_and_yes_are_scores(tmp_path: Path) -> None:
    group = {**lines(RECORDS / "paired-s0.jsonl")[0], "true_outcomes": [0.5, 1.0, 0, 1.0]}
    (tmp_path / "groups.jsonl").write_text(json.dumps(group))
    assert read_log([tmp_path]).table["score"].to_list() == [0.5, 1, 0, 1]


@pytest.mark.parametrize(
    "change",
    [{"schedule_seeds": ["1"]}, {"true_outcomes": "1111"}, {"step": None}, {"seed": "x"}, {"repeat": "0"}],
)
def test_a_line_that_is_no_group_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    good = lines(RECORDS / "paired-s0.jsonl")
    (tmp_path / "groups.jsonl").write_text("\n".join(map(json.dumps, [good[0], {**good[1], **change}])))
    refused(tmp_path / "groups.jsonl", match="groups.jsonl is not a record of groups")


def test_a_group_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copy(RECORDS / "paired-s0.jsonl", tmp_path / f"{name}.jsonl")
    refused(tmp_path, match="twice")
