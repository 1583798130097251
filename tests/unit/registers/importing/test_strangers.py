"""Tables as strangers have them: one contract for what is empty, nested or hidden, and for common words."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import run
from toolkit.drafting.outline import outlined
from toolkit.registers.importing.reading import read_log

ROWS = [
    {"model": model, "seed": seed, "task": f"q{task}", "success": (task + seed) % 2}
    for model in ("a", "b")
    for seed in (0, 1)
    for task in range(4)
]
Rows = list[dict[str, Any]]


def as_json_lines(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def as_parquet(path: Path, rows: Rows) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def as_csv(path: Path, rows: Rows) -> Path:
    pl.DataFrame(rows).write_csv(path)
    return path


WRITERS: Mapping[str, Callable[[Path, Rows], Path]] = {
    "log.csv": as_csv,
    "log.jsonl": as_json_lines,
    "log.parquet": as_parquet,
}


@pytest.mark.parametrize("file", WRITERS)
@pytest.mark.parametrize(
    ("words", "outcome", "missing"),
    [
        ({0: "FAIL", 1: "PASS"}, "true_success", 0),
        ({0: "incorrect", 1: "Correct"}, "true_success", 0),
        ({0: "0%", 1: "100%"}, "true_success", 0),
        ({0: "12.5%", 1: "50%"}, "score", 0),
        ({0: 0.0, 1: 1.0}, "true_success", 0),
        ({0: "0.00", 1: "1.00"}, "true_success", 0),
        ({0: float("nan"), 1: 1.0}, "true_success", 8),
        ({0: None, 1: True}, "true_success", 8),
    ],
    ids=str,
)
def test_an_outcome_is_what_its_words_say_through_every_door(
    file: str, words: dict[int, Any], outcome: str, missing: int, tmp_path: Path
) -> None:
    log = WRITERS[file](tmp_path / file, [row | {"success": words[row["success"]]} for row in ROWS])
    outline = outlined("mine", read_log([log]))
    assert outline.columns[outcome] == "success"
    done = run("new-study", "mine", "--table", log, "--into", tmp_path / "project", "--json")
    assert done.code == 0, done.err
    assert done.json()["problem"] is None
    assert outline.seen == ((0.125, 0.5) if outcome == "score" else None)
    assert sum(outline.episodes - there for there in outline.coverage.values()) == missing


@pytest.mark.parametrize(
    "hidden", [".ipynb_checkpoints/log-checkpoint.csv", "._log.csv", "__MACOSX/._log.csv"]
)
def test_hidden_files_are_left_out_and_named(hidden: str, tmp_path: Path) -> None:
    as_csv(tmp_path / "log.csv", ROWS)
    (tmp_path / hidden).parent.mkdir(exist_ok=True)
    (tmp_path / hidden).write_bytes((tmp_path / "log.csv").read_bytes())
    log = read_log([tmp_path])
    assert (log.table.height, log.left_out) == (len(ROWS), (f"hidden files: {hidden}",))


def test_a_table_whose_columns_say_no_arm_is_asked_for_it(tmp_path: Path) -> None:
    log = as_csv(tmp_path / "log.csv", [{"run_id": "x", "success": 1, "task": "q1"}])
    run("new-study", "mine", "--table", log, "--into", tmp_path / "project").refused(2, "--arm COLUMN")
