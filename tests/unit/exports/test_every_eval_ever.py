"""Records of Every Eval Ever pass its schemas, and say what the registers say."""

import json
import re
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import CHECKOUT, run
from tests.unit.drafting import test_importing as logs
from toolkit import cases
from toolkit.errors import IncompleteError
from toolkit.exports import every_eval_ever
from toolkit.exports.every_eval_ever import Model, models_of
from toolkit.exports.formats import Export
from toolkit.places import HOME_VARIABLE
from toolkit.registers.study import Study, open_study

SCHEMAS = Path(__file__).parent / "schemas"
# The datastore's own rule for names.
PATH = re.compile(
    r"data/[\w-]+/[\w-]+/[\w-]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)
RUN = "c2-paired-s0"
DATE = datetime(2026, 11, 25, tzinfo=UTC)


@cache
def validator(name: str) -> Any:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    made = jsonschema.validators.validator_for(schema)
    made.check_schema(schema)
    return made(schema)


def records(files: dict[str, bytes]) -> dict[str, Any]:
    return {
        name.removesuffix(".json"): json.loads(raw) for name, raw in files.items() if name.endswith(".json")
    }


@pytest.fixture(scope="module")
def tiny() -> Study:
    return open_study(CHECKOUT / "registers" / "tiny-lm")


@pytest.fixture(scope="module")
def told(tiny: Study) -> dict[str, bytes]:
    return dict(cases.export(tiny, Export("every-eval-ever", runs=RUN, episodes=True)))


def test_every_evaluation_is_a_result_of_a_valid_record(published: Study) -> None:
    check = validator("eval")
    found: dict[str, float] = {}
    made = records(dict(cases.export(published, Export("every-eval-ever"))))
    for path, record in made.items():
        check.validate(record)
        assert PATH.fullmatch(path)
        assert record["model_info"]["id"] in path
        results = record["evaluation_results"]
        found |= {result["evaluation_result_id"]: result["score_details"]["score"] for result in results}
    rows = published.rows("evaluations")
    expected = {
        f"{r['run_id']}:{r['phase']}:{r['pool']}:{r['regime']}:{r['step']}:success_rate": r["successes"]
        / r["episodes"]
        for r in rows
    }
    assert len(expected) == len(rows)
    assert found == expected
    assert len(made) == len({(row["run_id"], row["step"]) for row in rows})
    assert len({record["evaluation_id"] for record in made.values()}) == len(made)


def test_each_episode_is_a_valid_line_of_its_record(told: dict[str, bytes], tiny: Study) -> None:
    check = validator("instance_level_eval")
    score: dict[str, list[float]] = {}
    prompts = {(t["pool"], t["index"]): (t["prompt"], t["expected"]) for t in tiny.rows("task_pools")}
    for path, record in records(told).items():
        detail = record["detailed_evaluation_results"]
        assert detail["file_path"] == f"{path}_samples.jsonl"
        raw = told[detail["file_path"]]
        assert detail["checksum"] == sha256(raw).hexdigest()
        lines = [json.loads(line) for line in raw.decode().splitlines()]
        assert detail["total_rows"] == len(lines)
        ids = {result["evaluation_result_id"] for result in record["evaluation_results"]}
        for line in lines:
            check.validate(line)
            assert line["evaluation_id"] == record["evaluation_id"]
            assert line["model_id"] == record["model_info"]["id"]
            pool, index = line["sample_id"].split(",")[0].split(":")
            prompt, expected = prompts[pool, int(index)]
            assert (line["input"]["raw"], line["input"]["reference"]) == (prompt, [expected])
            assert line["sample_hash"] == sha256((prompt + expected).encode()).hexdigest()
            score.setdefault(line["evaluation_result_id"], []).append(line["evaluation"]["score"])
        assert ids == {line["evaluation_result_id"] for line in lines}
        for result in record["evaluation_results"]:
            scores = score[result["evaluation_result_id"]]
            assert sum(scores) / len(scores) == result["score_details"]["score"]
            assert result["score_details"]["details"]["episodes"] == str(len(scores))
    assert sum(map(len, score.values())) == tiny.manifest.files[f"episodes/{RUN}.parquet"].rows


def test_calls_and_the_rest_of_a_row_are_told(told: dict[str, bytes], tiny: Study) -> None:
    lines = [json.loads(line) for name, raw in told.items() if "samples" in name for line in raw.splitlines()]
    calls = tiny.run_columns("episodes", RUN, ("calls",))["calls"].to_pylist()
    assert sorted(line["evaluation"]["tool_calls_count"] for line in lines) == sorted(calls)
    assert {line["metadata"]["observed_reward"] for line in lines} == {"true", "false"}
    assert all("no transcript" in line["metadata"]["transcript"] for line in lines)


def test_who_evaluated_and_with_what_is_said_or_unknown(told: dict[str, bytes], published: Study) -> None:
    own, theirs = (
        next(iter(records(files).values()))
        for files in (told, dict(cases.export(published, Export("every-eval-ever", runs="gate1-*"))))
    )
    assert own["eval_library"] == {"name": "paired-rollouts-toolkit", "version": "0.1.0"}
    assert own["source_metadata"]["source_type"] == "evaluation_run"
    assert own["model_info"]["additional_details"]["model_availability"] == "open_weights"
    assert theirs["eval_library"]["name"] == "unknown"
    assert theirs["source_metadata"]["source_type"] == "documentation"
    assert theirs["model_info"]["additional_details"]["model_availability"] == "unknown"
    assert theirs["model_info"]["inference_engine"] == {"name": "vLLM", "version": "0.27.1"}
    for record, study in ((own, "tiny-lm"), (theirs, "paired-rollouts")):
        assert record["source_metadata"]["additional_details"]["registration"] == study


def test_a_record_is_dated_by_the_end_of_its_run(told: dict[str, bytes], tiny: Study) -> None:
    (end,) = (row["ended_at"] for row in tiny.rows("launches") if row["run_id"] == RUN)
    assert end is not None
    assert {record["retrieved_timestamp"] for record in records(told).values()} == {str(int(end.timestamp()))}


def test_published_figures_have_no_episodes(published: Study) -> None:
    with pytest.raises(IncompleteError, match="holds no episodes"):
        dict(cases.export(published, Export("every-eval-ever", episodes=True)))


# What `toolkit evaluate` found of somebody's model is told as that model's, and dated by who tells it.


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Study:
    out = tmp_path_factory.mktemp("evaluated") / "out"
    command = ("evaluate", "--model", "reference", "--sets", "clean,faults_p025", "--tasks", 4, "--out", out)
    assert run(*command).code == 0
    return cases.open_study(str(out / "registers"))


def test_it_is_one_record_of_the_model(evaluated: Study) -> None:
    files = dict(cases.export(evaluated, Export("every-eval-ever", episodes=True, date=DATE)))
    (path,) = (name for name in files if name.endswith(".json"))
    record = json.loads(files[path])
    validator("eval").validate(record)
    assert PATH.fullmatch(path.removesuffix(".json"))
    rows = evaluated.rows("evaluations")
    assert {row["regime"] for row in rows} == {"clean", "faults_p025"}
    assert len(record["evaluation_results"]) == len(rows)
    assert record["model_info"]["id"] == "reference/reference"
    assert record["model_info"]["additional_details"]["model_availability"] == "unknown"
    assert "condition" not in record["model_info"]["additional_details"]
    assert record["source_metadata"]["evaluator_relationship"] == "other"
    assert record["eval_library"]["name"] == "paired-rollouts-toolkit"
    assert record["retrieved_timestamp"] == str(int(DATE.timestamp()))
    samples = files[record["detailed_evaluation_results"]["file_path"]]
    lines = [json.loads(line) for line in samples.splitlines()]
    assert len(lines) == evaluated.manifest.tables["episodes"].rows
    for line in lines:
        validator("instance_level_eval").validate(line)
        assert line["input"]["raw"] == line["sample_id"].split(",")[0]


def test_without_a_date_there_is_no_record(evaluated: Study) -> None:
    with pytest.raises(IncompleteError, match="wants a date"):
        dict(cases.export(evaluated, Export("every-eval-ever")))


@pytest.mark.parametrize(
    ("model", "identity"),
    [("Qwen/Qwen3.5-2B", "Qwen/Qwen3.5-2B"), ("/home/me/my model", "reference/my-model")],
)
def test_a_model_of_the_hub_keeps_its_name(evaluated: Study, model: str, identity: str) -> None:
    rows: list[Any] = [
        {**row, "specification": json.dumps({"model": model})} for row in evaluated.rows("runs")
    ]
    assert models_of(evaluated, rows) == [Model(model, tuple(rows), is_own=False)]
    (made,) = (json.loads(raw) for _, raw in every_eval_ever.records(evaluated, rows, None, date=DATE))
    assert made["model_info"]["id"] == identity
    assert made["model_info"]["developer"] == identity.split("/", maxsplit=1)[0]


# Scores beside successes, or instead of them, are metrics of their own.


def study_of(project: Path, monkeypatch: pytest.MonkeyPatch, *left_out: str) -> Study:
    monkeypatch.setenv(HOME_VARIABLE, str(project))
    monkeypatch.chdir(project)
    logs.begun(project, *left_out)
    assert logs.imported(project, logs.episodes()).code == 0
    return cases.open_study("mine")


def means(column: str) -> dict[tuple[str, int], float]:
    """Return the mean of a column of the log by arm and seed."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in logs.episodes():
        found.setdefault((row["strategy"], row["seed"]), []).append(float(row[column]))
    return {key: sum(values) / len(values) for key, values in found.items()}


def test_scores_without_successes_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of(tmp_path, monkeypatch, "success")
    expected = means("score")
    made = records(dict(cases.export(study, Export("every-eval-ever"))))
    assert len(made) == len(expected)
    for record in made.values():
        validator("eval").validate(record)
        (result,) = record["evaluation_results"]
        details = result["score_details"]["details"]
        mean = expected[details["arm"], int(details["seed"])]
        assert result["score_details"]["score"] == pytest.approx(mean, abs=1e-12)
        assert result["metric_config"]["metric_name"] == "Mean score"
        assert "max_score" not in result["metric_config"]
    with pytest.raises(IncompleteError, match="have a score, and no success"):
        dict(cases.export(study, Export("every-eval-ever", episodes=True)))


def test_both_are_two_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of(tmp_path, monkeypatch)
    expected = {"success_rate": means("success"), "score": means("score")}
    files = dict(cases.export(study, Export("every-eval-ever", episodes=True)))
    for record in records(files).values():
        validator("eval").validate(record)
        samples = files[record["detailed_evaluation_results"]["file_path"]]
        lines = [json.loads(line) for line in samples.splitlines()]
        assert len(lines) == 2 * logs.TASKS
        for line in lines:
            validator("instance_level_eval").validate(line)
        for result in record["evaluation_results"]:
            details = result["score_details"]["details"]
            metric = result["metric_config"]["metric_id"].removeprefix("mine.")
            mean = expected[metric][details["arm"], int(details["seed"])]
            assert result["score_details"]["score"] == pytest.approx(mean, abs=1e-12)
            own = [t for t in lines if t["evaluation_result_id"] == result["evaluation_result_id"]]
            assert sum(t["evaluation"]["score"] for t in own) / logs.TASKS == pytest.approx(mean, abs=1e-12)
