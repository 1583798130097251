"""Histories become a row a step and run: W&B's own files, its exports, and any table of steps."""

import json
import random
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.unit.registers.imported.logs import LOGS, of_file, refused, study_of
from toolkit.errors import UsageError
from toolkit.registers.imported import wandb_file
from toolkit.registers.imported.log import read_log
from toolkit.registers.imported.source import ROW
from toolkit.registers.imported.wandb_file import HEADER, read_wandb
from toolkit.study.new.outline import outlined

RUNS = ("grpo-s0", "grpo-s1", "gspo-s0", "gspo-s1")


def drawn(run: str) -> tuple[list[tuple[float, float | None]], float]:
    """Return the losses and accuracies that `make/wandb_runs.py` draws, and its best."""
    draw = np.random.default_rng([int(run[-1]), *run[:4].encode()])
    rows = []
    for step in range(6):
        loss, accuracy = draw.random(), draw.random() if step % 2 else None
        rows.append((loss, accuracy))
        draw.random(8)
    return rows, draw.random()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return a copy of the runs of W&B, to be changed."""
    return shutil.copytree(LOGS / "wandb", tmp_path / "wandb")


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.wandb"))


def test_every_figure_is_as_it_was_logged() -> None:
    log = read_log([LOGS / "wandb"])
    for run in RUNS:
        rows, best = drawn(run)
        found = [
            (int(step), float(loss), None if accuracy is None else float(accuracy), phase)
            for step, loss, accuracy, phase in of_file(
                log, run, "step", "train/loss", "eval.accuracy", "phase"
            )
        ]
        assert found == [(step, *row, "warm" if step < 2 else "main") for step, row in enumerate(rows)]
        assert {float(str(value)) for (value,) in of_file(log, run, "summary.best")} == {best}
    assert log.table["eval.answers"].drop_nulls().unique().to_list() == ["9007199254740993"]
    assert log.table["task"].unique().to_list() == ["history"]
    assert set(log.table["launched_at"].str.slice(0, 10)) == {"2026-11-25"}


def test_arms_and_seeds_are_the_configuration() -> None:
    log = read_log([LOGS / "wandb"])
    places = log.table.select("file", "config.algorithm", "run.group", "seed").unique().sort("file").rows()
    assert places == [(run, run[:4], run[:4], run[-1]) for run in RUNS]
    assert outlined("mine", log, {"score": "eval.accuracy"}).arms == ("grpo", "gspo")


def test_media_and_lists_are_left_out_by_name() -> None:
    left_out = read_log([LOGS / "wandb"]).left_out
    assert {"lengths", "config.optim.betas"} <= set(left_out)


def test_steps_at_which_the_outcome_was_not_measured_are_no_episodes() -> None:
    log = read_log([LOGS / "wandb"])
    assert outlined("mine", log, {"score": "eval.accuracy"}).steps == (1, 3, 5)
    tables = study_of(log, score="eval.accuracy")
    assert {name: table.height for name, table in tables.items()} == {
        "runs": 4,
        "episodes": 12,
        "evaluations": 12,
        "task_pools": 1,
    }
    expected = sorted(accuracy for run in RUNS for _, accuracy in drawn(run)[0] if accuracy is not None)
    assert sorted(tables["episodes"]["score"]) == expected
    with pytest.raises(UsageError) as caught:
        outlined("mine", log)
    assert "--score COLUMN" in str(caught.value)


def test_a_run_that_was_killed_is_read_to_its_last_whole_record(runs: Path) -> None:
    whole = read_wandb(files(runs)[0])
    files(runs)[0].write_bytes(files(runs)[0].read_bytes()[:-100])
    cut = read_wandb(files(runs)[0])
    assert cut.is_cut_off
    assert not whole.is_cut_off
    log = read_log([runs])
    assert f"{files(runs)[0].name}: the end, which was cut off" in log.left_out


def test_a_run_that_logged_nothing_is_named(runs: Path) -> None:
    files(runs)[0].write_bytes(HEADER)
    log = read_log([runs])
    assert f"{files(runs)[0].name}: nothing was logged" in log.left_out
    assert log.table["file"].n_unique() == 3


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_byte_is_noticed(runs: Path, seed: int) -> None:
    content = bytearray(files(runs)[0].read_bytes())
    at = random.Random(seed).randrange(len(HEADER), len(content))  # noqa: S311
    content[at] ^= 1 << random.Random(seed).randrange(8)  # noqa: S311
    files(runs)[0].write_bytes(bytes(content))
    try:
        cut = read_wandb(files(runs)[0])
    except Exception:  # noqa: BLE001 - which one, is asked below
        refused(runs, match="not a readable W&B file")
    else:
        assert cut.is_cut_off  # a length that leads beyond the end


def framed(record: bytes) -> bytes:
    """Return a file with one record, as LevelDB's description of its log has it."""
    content = bytearray(HEADER)
    first = True
    while True:
        room = 2**15 - len(content) % 2**15
        if room < 7:
            content += bytes(room)
            continue
        piece, record = record[: room - 7], record[room - 7 :]
        kind = (1 if first else 4) if not record else (2 if first else 3)
        content += struct.pack("<IHB", zlib.crc32(bytes([kind]) + piece), len(piece), kind) + piece
        first = False
        if not record:
            return bytes(content)


def field(number: int, content: bytes) -> bytes:
    """Return a field of a message that has a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def history(name: str, value: str) -> bytes:
    """Return a record with a history of one value."""
    return field(2, field(1, field(2, name.encode()) + field(16, value.encode())))


@pytest.mark.parametrize("letters", [0, 2**15 - 40, 2**15 - 30, 2**15 - 29, 2**15 - 28, 2**15, 2**17])
def test_a_record_of_many_blocks_is_put_together(tmp_path: Path, letters: int) -> None:
    path = tmp_path / "run-1.wandb"
    path.write_bytes(framed(history("said", json.dumps("x" * letters))))
    assert read_wandb(path).history == [{"said": "x" * letters}]


@pytest.mark.parametrize(
    "record",
    [
        history("a", "{"),
        history("a", "[" * 100_000),
        field(2, field(1, b"\x0a\xff")),
        field(2, b"\xff" * 20),
        b"\x0b",
        field(17, field(17, b"\x08" + b"\xff" * 8 + b"\x7f") + field(1, b"a")),
    ],
)
def test_a_record_that_makes_no_sense_is_refused(tmp_path: Path, record: bytes) -> None:
    path = tmp_path / "run-1.wandb"
    path.write_bytes(framed(record))
    refused(path, match="not a readable W&B file")


def test_too_large_a_file_is_refused(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wandb_file, "LARGEST_TABLE", 1000)
    refused(runs, match="too long to be read")


def test_a_link_out_of_the_folder_is_refused(runs: Path, tmp_path: Path) -> None:
    file = files(runs)[0]
    outside = file.rename(tmp_path / "run-outside.wandb")
    file.symlink_to(outside)
    refused(runs, match="link that leads out")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


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
