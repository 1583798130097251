"""What `toolkit evaluate` found of somebody's model is told as that model's, and dated by who tells it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.conftest import run
from tests.unit.exports.test_every_eval_ever import PATH, validator
from toolkit import api
from toolkit.errors import IncompleteError
from toolkit.exports.every_eval_ever import records
from toolkit.exports.formats import Wanted
from toolkit.exports.models import Model, models_of
from toolkit.registers.study import Study

DATE = datetime(2026, 11, 25, tzinfo=UTC)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Study:
    out = tmp_path_factory.mktemp("evaluated") / "out"
    command = ("evaluate", "--model", "reference", "--sets", "clean,faults_p025", "--tasks", 4, "--out", out)
    assert run(*command).code == 0
    return api.open_study(str(out / "registers"))


def test_it_is_one_record_of_the_model(evaluated: Study) -> None:
    files = dict(api.export(evaluated, Wanted("every-eval-ever", episodes=True, date=DATE)))
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
        dict(api.export(evaluated, Wanted("every-eval-ever")))


@pytest.mark.parametrize(
    ("model", "identity"),
    [("Qwen/Qwen3.5-2B", "Qwen/Qwen3.5-2B"), ("/home/me/my model", "reference/my-model")],
)
def test_a_model_of_the_hub_keeps_its_name(evaluated: Study, model: str, identity: str) -> None:
    rows: list[Any] = [
        {**row, "specification": json.dumps({"model": model})} for row in evaluated.rows("runs")
    ]
    assert models_of(evaluated, rows) == [Model(model, tuple(rows), is_own=False)]
    (made,) = (json.loads(raw) for _, raw in records(evaluated, rows, None, date=DATE))
    assert made["model_info"]["id"] == identity
    assert made["model_info"]["developer"] == identity.split("/", maxsplit=1)[0]
