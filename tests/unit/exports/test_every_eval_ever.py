"""Records of Every Eval Ever pass its schemas, and say what the registers say."""

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import CHECKOUT
from toolkit import api
from toolkit.errors import IncompleteError
from toolkit.exports.formats import Wanted
from toolkit.registers.study import Study, open_study

SCHEMAS = Path(__file__).parent / "schemas"
# The datastore's own rule for names.
PATH = re.compile(
    r"data/[\w-]+/[\w-]+/[\w-]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)
RUN = "c2-paired-s0"


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
    return dict(api.export(tiny, Wanted("every-eval-ever", runs=RUN, episodes=True)))


@pytest.mark.parametrize("name", ["published", "embedded"])
def test_every_evaluation_is_a_result_of_a_valid_record(name: str) -> None:
    study = open_study(CHECKOUT / "registers" / name)
    check = validator("eval")
    found: dict[str, float] = {}
    made = records(dict(api.export(study, Wanted("every-eval-ever"))))
    for path, record in made.items():
        check.validate(record)
        assert PATH.fullmatch(path)
        assert record["model_info"]["id"] in path
        results = record["evaluation_results"]
        found |= {result["evaluation_result_id"]: result["score_details"]["score"] for result in results}
    rows = study.rows("evaluations")
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
        for files in (told, dict(api.export(published, Wanted("every-eval-ever", runs="gate1-*"))))
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
        dict(api.export(published, Wanted("every-eval-ever", episodes=True)))
