"""Hugging Face datasets are read as their splits have them, from Arrow and from shards of Parquet."""

import json
import pickle
import random
import shutil
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from tests.unit.registers.importing.logs import LOGS, refused, study_of
from toolkit.registers.importing.readers import tables as hub_dataset
from toolkit.registers.importing.reading import read_log

COLUMNS = ("split", "policy", "seed", "question_id", "trial", "correct", "started_at")
LAYOUTS = ("saved", "repository")
FILES = {"saved": "test/data-00000-of-00002.arrow", "repository": "data/test-00000-of-00002.parquet"}


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


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def dataset(layout: str, tmp_path: Path) -> Path:
    """Return a copy of the dataset, to be changed."""
    return shutil.copytree(LOGS / "hub_dataset" / layout, tmp_path / layout)


def test_every_row_is_as_it_was_saved(layout: str) -> None:
    log = read_log([LOGS / "hub_dataset" / layout])
    assert log.format == "Hugging Face dataset"
    assert log.table.select(COLUMNS).rows() == drawn()
    assert log.left_out == ("messages",)
    assert len(log.files) == {"saved": 3, "repository": 4}[layout]


def test_it_gives_a_study(layout: str) -> None:
    tables = study_of(read_log([LOGS / "hub_dataset" / layout]))
    assert {name: table.height for name, table in tables.items()} == {
        "runs": 4,
        "episodes": 72,
        "evaluations": 8,
        "task_pools": 9,
    }
    assert tables["evaluations"]["successes"].sum() == sum(bool(row[5]) for row in drawn())


def test_a_split_alone_is_a_dataset(layout: str) -> None:
    folder = {"saved": "saved/validation", "repository": "repository/data"}[layout]
    log = read_log([LOGS / "hub_dataset" / folder])
    assert log.table.filter(pl.col("policy") == "two").height == {"saved": 12, "repository": 36}[layout]


def test_subsets_and_datasets_beside_each_other_are_runs(layout: str, tmp_path: Path) -> None:
    for name in ("grpo-s0", "grpo-s1"):
        shutil.copytree(LOGS / "hub_dataset" / layout, tmp_path / "runs" / name)
    table = read_log([tmp_path / "runs"]).table
    assert table.select("file", "run.stem").unique().sort("file").rows() == [
        ("grpo-s0", "grpo"),
        ("grpo-s1", "grpo"),
    ]
    assert set(table["seed"]) == {0, 1}  # the log's own, not the name's


def test_a_pickle_in_place_of_a_file_is_refused(dataset: Path, layout: str) -> None:
    (dataset / FILES[layout]).write_bytes(pickle.dumps([1, 2]))
    refused(dataset, match="not a readable")


def test_a_file_that_ends_early_is_refused(dataset: Path, layout: str) -> None:
    content = (dataset / FILES[layout]).read_bytes()
    (dataset / FILES[layout]).write_bytes(content[: len(content) // 2])
    refused(dataset, match="not a readable")


def test_a_link_out_of_the_folder_is_refused(dataset: Path, layout: str, tmp_path: Path) -> None:
    outside = (dataset / FILES[layout]).rename(tmp_path / "outside")
    (dataset / FILES[layout]).symlink_to(outside)
    refused(dataset, match="link that leads out")


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
    for bound in ("LARGEST_TABLE", "MOST_COLUMNS"):
        with monkeypatch.context() as patched:
            patched.setattr(hub_dataset, bound, 3)
            refused(LOGS / "hub_dataset" / "saved", match="not a readable Arrow stream")


def test_columns_that_hold_more_than_a_value_are_left_out(tmp_path: Path) -> None:
    folder = shutil.copytree(LOGS / "hub_dataset" / "saved" / "validation", tmp_path / "saved")
    table = pa.table(
        {
            "task": ["a", "b"],
            "answers": [["x"], []],
            "image": [{"bytes": b"1", "path": None}, None],
            "correct": pa.array(["yes", "no"]).dictionary_encode(),
        }
    )
    with (
        pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as opened,
        pa.ipc.new_stream(opened, table.schema) as stream,
    ):
        stream.write_table(table)
    log = read_log([folder])
    assert log.left_out == ("answers", "image")
    assert log.table.select("task", pl.col("correct").cast(pl.String)).rows() == [("a", "yes"), ("b", "no")]
