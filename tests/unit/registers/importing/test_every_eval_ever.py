"""Records of Every Eval Ever: samples are read, aggregate results alone are no episodes."""

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.unit.registers.importing import logs
from tests.unit.registers.importing.logs import lines
from toolkit.errors import IncompleteError
from toolkit.files import file_sha256
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import Log

LOGS = logs.LOGS / "every_eval_ever"


def read(folder: str) -> Log:
    return read_log([LOGS / folder])


def records(folder: Path) -> dict[str, Any]:
    """Return the descriptions by the name that the table has for their file."""
    return {
        file.relative_to(folder).as_posix().removesuffix(".json"): json.loads(file.read_text())
        for file in folder.rglob("*.json")
    }


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Return a copy of one record with its samples, to be changed."""
    source = min((LOGS / "lm_eval").rglob("*_samples.jsonl"))
    for file in (source, source.with_name(source.name.replace("_samples.jsonl", ".json"))):
        shutil.copy(file, tmp_path)
    return tmp_path


def rewrite(folder: Path, *changed: dict[str, Any], **described: object) -> None:
    """Put samples with changes beside their record, and say so in it; other changes of it by name."""
    (samples,) = folder.glob("*.jsonl")
    (record,) = folder.glob("*.json")
    content = [line | change for line in lines(samples) for change in (changed or ({},))]
    samples.write_text("".join(f"{json.dumps(line)}\n" for line in content))
    whole = json.loads(record.read_text())
    whole["detailed_evaluation_results"] |= {"checksum": file_sha256(samples), "total_rows": len(content)}
    record.write_text(json.dumps(whole | described))


@pytest.mark.parametrize(("folder", "outcome"), [("lm_eval", "true_success"), ("inspect", "score")])
def test_means_are_those_of_the_records(folder: str, outcome: str) -> None:
    table = read(folder).table
    told = records(LOGS / folder)
    assert table["file"].n_unique() == len(told)
    for name, record in told.items():
        (result,) = record["evaluation_results"]
        part = table.filter(pl.col("file") == name)
        assert part.height == record["detailed_evaluation_results"]["total_rows"]
        assert part[outcome].mean() == pytest.approx(result["score_details"]["score"])


def test_every_line_is_a_row_with_what_it_says() -> None:
    log = read("inspect")
    for file in (file for file in log.files if file.suffix == ".jsonl"):
        name = file.relative_to(LOGS / "inspect").as_posix().removesuffix("_samples.jsonl")
        for row, line in zip(log.table.filter(pl.col("file") == name).to_dicts(), lines(file), strict=True):
            told = line["evaluation"]
            assert {
                "task": line["sample_id"],
                "pool": line["evaluation_name"],
                "model": line["model_id"],
                "schedule": int(line["metadata"]["epoch"]) - 1,
                "prompt": line["input"]["raw"],
                "score": told["score"],
                "evaluation.is_correct": told["is_correct"],
                "tokens": line["token_usage"]["total_tokens"],
                "calls": 0,
            }.items() <= row.items()
    assert {"input.reference", "output.raw"} <= set(log.left_out)


def test_runs_say_their_configuration() -> None:
    table = read("lm_eval").table
    for name, record in records(LOGS / "lm_eval").items():
        row = table.filter(pl.col("file") == name).row(0, named=True)
        assert row["launched_at"].startswith("2026-11-25T02:5")
        assert row["model_info.developer"] == record["model_info"]["developer"]
        assert row["metric_config.metric_name"] == "acc"
        assert row["eval_library.version"] == record["eval_library"]["version"] == "0.4.13"


def test_aggregate_results_alone_are_no_episodes() -> None:
    with pytest.raises(IncompleteError, match="no episodes"):
        read("aggregate")


def test_aggregate_results_among_others_are_named(mine: Path) -> None:
    (alone,) = (LOGS / "aggregate").rglob("*.json")
    shutil.copy(alone, mine)
    assert f"{alone.name}: aggregate results only" in read_log([mine]).left_out


def test_samples_can_be_named_themselves(mine: Path) -> None:
    (samples,) = mine.glob("*.jsonl")
    assert read_log([samples]).table.equals(read_log([mine]).table)
    (record,) = mine.glob("*.json")
    record.unlink()
    with pytest.raises(IncompleteError, match="no record beside them"):
        read_log([samples])


def test_a_sample_with_an_error_has_no_outcome(mine: Path) -> None:
    rewrite(mine, {}, {"error": "out of memory", "sample_id": "more"})
    log = read_log([mine])
    failed = log.table.filter(pl.col("error") == "out of memory")
    assert failed["true_success"].null_count() == failed.height == 6
    assert log.table["true_success"].null_count() == 6
    assert "scores of 6 samples with an error" in log.left_out


def test_several_results_of_a_sample_are_regimes(mine: Path) -> None:
    rewrite(mine, {}, {"evaluation_result_id": "other"})
    assert sorted(read_log([mine]).table["regime"].unique()) == ["acc", "other"]


def test_samples_are_looked_for_beside_their_record_alone(mine: Path) -> None:
    folder = mine / "here"
    folder.mkdir()
    for file in [*mine.glob("*.json"), *mine.glob("*.jsonl")]:
        file.rename(folder / file.name if file.suffix == ".json" else file)
    (samples,) = mine.glob("*.jsonl")
    (record,) = folder.glob("*.json")
    whole = json.loads(record.read_text())
    for path in (f"../{samples.name}", str(samples), f"..\\{samples.name}"):
        whole["detailed_evaluation_results"]["file_path"] = path
        record.write_text(json.dumps(whole))
        with pytest.raises(IncompleteError, match="not beside it"):
            read_log([folder])
