"""Studies with scores beside successes, or instead of them, tell them as metrics of their own."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.drafting import test_importing as logs
from tests.unit.exports.test_every_eval_ever import validator
from toolkit import api
from toolkit.errors import IncompleteError
from toolkit.exports.formats import Wanted
from toolkit.places import HOME_VARIABLE
from toolkit.registers.study import Study


def study_of(project: Path, monkeypatch: pytest.MonkeyPatch, *left_out: str) -> Study:
    monkeypatch.setenv(HOME_VARIABLE, str(project))
    monkeypatch.chdir(project)
    logs.begun(project, *left_out)
    mapping = project / "mappings/mine.toml"
    text = mapping.read_text(encoding="utf-8")
    if "true_success =" in text:  # what was drafted takes one of the two
        text = text.replace('true_success = "success"', 'true_success = "success"\nscore = "score"')
        mapping.write_text(text, encoding="utf-8")
    assert logs.imported(project, logs.episodes()).code == 0
    return api.open_study("mine")


def means(column: str) -> dict[tuple[str, int], float]:
    """Return the mean of a column of the log by arm and seed."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in logs.episodes():
        found.setdefault((row["strategy"], row["seed"]), []).append(float(row[column]))
    return {key: sum(values) / len(values) for key, values in found.items()}


def told(files: dict[str, bytes]) -> list[Any]:
    return [json.loads(raw) for name, raw in files.items() if name.endswith(".json")]


def test_scores_without_successes_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of(tmp_path, monkeypatch, "success")
    expected = means("score")
    records = told(dict(api.export(study, Wanted("every-eval-ever"))))
    assert len(records) == len(expected)
    for record in records:
        validator("eval").validate(record)
        (result,) = record["evaluation_results"]
        details = result["score_details"]["details"]
        mean = expected[details["arm"], int(details["seed"])]
        assert result["score_details"]["score"] == pytest.approx(mean, abs=1e-12)
        assert result["metric_config"]["metric_name"] == "Mean score"
        assert "max_score" not in result["metric_config"]
    with pytest.raises(IncompleteError, match="have a score, and no success"):
        dict(api.export(study, Wanted("every-eval-ever", episodes=True)))


def test_both_are_two_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of(tmp_path, monkeypatch)
    expected = {"success_rate": means("success"), "score": means("score")}
    files = dict(api.export(study, Wanted("every-eval-ever", episodes=True)))
    for record in told(files):
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
