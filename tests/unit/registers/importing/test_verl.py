"""Rollouts of verl become episodes, whatever the reward function said beside its score."""

import hashlib
import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.unit.registers.importing.logs import LOGS, of_file, refused, study_of
from toolkit.errors import DamagedError
from toolkit.registers.importing import source
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import ROW, read_source

RUNS = ("grpo-s0", "grpo-s1", "gspo-s0", "gspo-s1")
WRITTEN = {"input": "prompt", **{name: name for name in ("output", "gts", "score", "step", "acc", "pred")}}
FIRST = "grpo-s0/rollouts/1.jsonl"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return a copy of the runs, to be changed."""
    return shutil.copytree(LOGS / "verl", tmp_path / "verl")


def test_every_cell_is_as_verl_wrote_it() -> None:
    log = read_log([LOGS / "verl"])
    for run in RUNS:
        files = [
            *sorted((LOGS / "verl" / run / "rollouts").iterdir()),
            LOGS / "verl" / run / "validation/3.jsonl",
        ]
        # As text, numbers with all their digits: 1.0 is not 1.
        written = [
            {name: str(value).lower() if isinstance(value, bool) else value for name, value in row.items()}
            for file in files
            for row in (
                json.loads(line, parse_float=str, parse_int=str) for line in file.read_text().splitlines()
            )
        ]
        assert len(written) == 3 * 16 + 4
        assert of_file(log, run, *WRITTEN.values()) == [
            tuple(row[name] for name in WRITTEN) for row in written
        ]
    assert log.left_out == ("letters",)


def test_arms_seeds_and_pools_are_the_names_of_folders() -> None:
    table = read_log([LOGS / "verl"]).table
    places = table.select("file", "run.stem", "seed", "pool").unique().sort("file", "pool").rows()
    assert places == [(run, run[:4], run[-1], pool) for run in RUNS for pool in ("rollouts", "validation")]
    (alone,) = {read_log([LOGS / "verl" / "gspo-s1" / "rollouts"]).table[name][0] for name in ("run.stem",)}
    assert alone == "gspo"


def test_rollouts_of_a_prompt_are_numbered_at_each_step() -> None:
    table = read_log([LOGS / "verl"]).table
    for (_, pool, _, _), part in table.group_by("file", "pool", "step", "task"):
        assert part.sort(ROW)["schedule"].to_list() == list(range(4 if pool == "rollouts" else 1))
    for task, prompt in table.select("task", "prompt").unique().rows():
        assert task == hashlib.sha256(prompt.encode()).hexdigest()[:16]


def test_it_gives_a_study_of_scores_or_successes() -> None:
    log = read_log([LOGS / "verl"])
    scored = study_of(log)
    assert {name: table.height for name, table in scored.items()} == {
        "runs": 4,
        "episodes": 4 * 52,
        "evaluations": 4 * 4,
        "task_pools": 8,
    }
    counted = study_of(log, true_success="acc")
    right = sum(
        json.loads(line)["acc"]
        for file in (LOGS / "verl").rglob("*.jsonl")
        for line in file.read_text().splitlines()
    )
    assert counted["evaluations"]["successes"].sum() == right > 0


def test_columns_of_the_log_that_a_reader_would_hide_have_another_name(runs: Path) -> None:
    file = runs / FIRST
    rows = [
        json.loads(line) | {"task": "t", "file": "f", "prompt": "p"} for line in file.read_text().splitlines()
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log([runs])
    hidden = log.table.filter(pl.col("own.task") == "t").select("own.task", "own.file", "own.prompt").unique()
    assert hidden.rows() == [("t", "f", "p")]


def test_steps_are_in_the_order_of_their_numbers(runs: Path) -> None:
    file = runs / "grpo-s0/rollouts/1.jsonl"
    file.with_name("10.jsonl").write_text(file.read_text().replace('"step": 1,', '"step": 10,'))
    table = read_log([runs / "grpo-s0" / "rollouts"]).table
    assert table["step"].unique(maintain_order=True).to_list() == ["1", "2", "3", "10"]


def test_lists_in_json_lines_are_left_out_for_a_reader_and_refused_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    path.write_text('{"a": 1, "b": [1]}\n{"a": 2, "b": 5, "c": {"d": 1}}\n')
    left_out: set[str] = set()
    assert read_source(path, left_out).drop(ROW).to_dict(as_series=False) == {"a": ["1", "2"]}
    assert left_out == {"b", "c"}
    with pytest.raises(DamagedError, match="not a readable table"):
        read_source(path)


@pytest.mark.parametrize(
    "line", ["{", "[1]", '{"input": "\\ud800"}', '{"input": "a", "input": "b"}', "[" * 100_000, "\x00"]
)
def test_a_damaged_line_is_refused(runs: Path, line: str) -> None:
    with (runs / FIRST).open("a") as opened:
        opened.write(line + "\n")
    refused(runs, match=r"1\.jsonl is not a readable table|two columns of the table have one name|more bytes")


def test_a_score_that_is_no_number_is_refused_with_its_row(runs: Path) -> None:
    file = runs / FIRST
    file.write_text(file.read_text().replace('"score": -0.25', '"score": NaN', 1))
    with pytest.raises(DamagedError, match="score") as caught:
        study_of(read_log([runs]))
    assert caught.value.found == "'nan' in row 1"


def test_a_link_out_of_the_folder_is_refused(runs: Path, tmp_path: Path) -> None:
    outside = (runs / FIRST).rename(tmp_path / "outside.jsonl")
    (runs / FIRST).symlink_to(outside)
    refused(runs, match="link that leads out")


@pytest.mark.parametrize("bound", ["LARGEST_TABLE", "LONGEST_LINE", "MOST_COLUMNS", "MOST_CELLS"])
def test_a_file_with_too_much_is_refused(runs: Path, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(source, bound, 5)
    refused(runs, match="more .* than one can have")
