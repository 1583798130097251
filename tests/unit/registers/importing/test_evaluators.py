"""Results of promptfoo, OpenAI evals and MLflow, as they wrote them, and what can be wrong with them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import run
from tests.unit.registers.importing.logs import LOGS, lines, study_of
from toolkit.errors import IncompleteError, ToolkitError
from toolkit.registers.importing import source
from toolkit.registers.importing.mapping import OF_EPISODES
from toolkit.registers.importing.readers.tables import HISTORIES, TABLES
from toolkit.registers.importing.reading import READERS, read_log
from toolkit.registers.importing.source import Log

Objects = list[dict[str, Any]]
REPEATS = LOGS / "promptfoo/repeats/repeats.jsonl"
ERRORS = LOGS / "promptfoo/errors/errors.json"
TRACES = LOGS / "mlflow/traces/traces.csv"

# What real programs wrote → the one reader that takes it
WRITTEN = {
    "inspect/letters": "Inspect",
    "inspect/strategies": "Inspect",
    "lm_eval/models": "lm-evaluation-harness",
    "every_eval_ever/lm_eval": "Every Eval Ever",
    "promptfoo/repeats": "promptfoo",
    "promptfoo/errors": "promptfoo",
    "promptfoo/older": "promptfoo",
    "openai_evals/sums": "OpenAI evals",
    "openai_evals/fuzzy": "OpenAI evals",
    "mlflow/traces": "MLflow",
    "mlflow/runs.csv": "MLflow",
    "trl": "TRL rollouts",
    "verl": "verl rollouts",
    "pairing": "groups of paired rollouts",
    "hub_dataset/saved": "Hugging Face dataset",
    "hub_dataset/repository": "Hugging Face dataset",
}


@pytest.mark.parametrize("source", WRITTEN)
def test_what_a_program_wrote_is_taken_by_its_own_reader(source: str) -> None:
    particular = [reader.name for reader in READERS if reader not in (HISTORIES, TABLES)]
    taking = [reader.name for reader in READERS if reader.files(LOGS / source)]
    assert [name for name in taking if name in particular] == [WRITTEN[source]]
    assert taking[0] == WRITTEN[source]


def test_another_program_s_document_is_not_promptfoo_s(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"version": 1, "timestamp": "2026-11-28", "seed": 1}')
    (tmp_path / "rows.csv").write_text("task,success\nq1,1\n")
    assert read_log([tmp_path]).format == "tables"


def written(folder: Path, rows: Objects, name: str = "log.jsonl") -> Path:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder / name


def outcomes(log: Log, arm: str) -> set[tuple[object, ...]]:
    prompts = log.table["prompt" if "prompt" in log.table.columns else "prompt.raw"]
    return set(zip(log.table[arm], prompts, log.table["schedule"], log.table["true_success"], strict=True))


def test_repetitions_of_a_test_are_schedules_and_providers_arms() -> None:
    log = read_log([REPEATS])
    assert outcomes(log, "provider") == {
        (provider, prompt, schedule, (provider == "small") == (prompt == "3 + 4?"))
        for provider in ("small", "large")
        for prompt in ("1 + 2?", "3 + 4?")
        for schedule in (0, 1)
    }
    assert log.of_run == ("provider",)
    assert not {"tokens", "cost"} & {*log.table.columns}  # the provider does not say them
    episodes = study_of(log)["episodes"]
    assert episodes.group_by("run_id").agg(pl.col("true_success").sum())["true_success"].to_list() == [2, 2]


def test_a_result_with_an_error_or_without_assertions_has_no_outcome() -> None:
    log = read_log([ERRORS])
    told = ("description", "true_success", "score.exact", "score.digit", "error")
    assert set(log.table.select(told).rows()) == {
        ("one and two", False, 0, 1, None),
        (None, None, None, None, "no answer in time"),
        (None, None, None, None, "it was not scored"),
    }
    assert log.of_run == ("prompt_label",)
    assert set(log.table["pool"]) == {"sums"}
    assert set(log.table["provider.wrong"]) == {3}


def test_an_older_version_calls_a_failure_an_error_and_numbers_nothing() -> None:
    log = read_log([LOGS / "promptfoo/older"])
    providers = ("exec: node small.js", "exec: node large.js")
    assert set(log.table.select("provider", "prompt", "schedule", "true_success").rows()) == {
        (provider, prompt, 0, outcome)
        for provider in providers
        for prompt, outcome in (("1 + 2?", "large" in provider), ("9 + 2?", None), ("3 + 2?", None))
    }
    assert set(log.table["prompt_label"]) == {"{{a}} + {{b}}?"}
    assert log.of_run == ("provider",)
    assert log.table["error"].drop_nulls().str.contains("Command failed|it was not scored").all()


def test_a_failure_that_says_nothing_else_is_one(tmp_path: Path) -> None:
    untold = {"failureReason", "gradingResult", "error"}
    rows = [{name: of for name, of in row.items() if name not in untold} for row in lines(REPEATS)]
    table = read_log([written(tmp_path, rows)]).table
    assert table["true_success"].to_list() == [row["success"] for row in rows]
    assert not table["true_success"].all()


def _of_one_prompt(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"provider": {"id": "solver"}}


def test_two_providers_of_one_name_are_two_arms(tmp_path: Path) -> None:
    log = read_log([written(tmp_path, list(map(_of_one_prompt, lines(REPEATS))))])
    assert outcomes(log, "provider") == {
        ({"small": "solver #0", "large": "solver #1"}[provider], *rest)
        for provider, *rest in outcomes(read_log([REPEATS]), "provider")
    }


def test_suites_that_share_a_test_are_one_pool_and_others_are_two(tmp_path: Path) -> None:
    whole = json.loads(ERRORS.read_text())
    for number, (suite, a) in enumerate((("first", 1), ("second", 1), ("third", 7))):
        content = json.loads(json.dumps(whole))
        content["config"]["description"] = suite
        for result in content["results"]["results"]:
            result["id"] += str(number)
            result["testCase"]["vars"]["a"] *= a
        (tmp_path / f"{suite}.json").write_text(json.dumps(content))
    alone = read_log([tmp_path / "first.json", tmp_path / "third.json"])
    assert set(alone.table["pool"]) == {"first", "third"}
    both = read_log([tmp_path / "first.json", tmp_path / "second.json"])
    assert set(both.table["pool"]) == {"tests"}
    assert both.of_run == ("prompt_label", "suite")


def test_one_evaluation_in_two_layouts_is_refused(tmp_path: Path) -> None:
    shutil.copy(REPEATS, tmp_path)
    results = lines(REPEATS)
    content = {"evalId": "e", "results": {"version": 3, "timestamp": "", "results": results}, "config": {}}
    (tmp_path / "repeats.json").write_text(json.dumps(content))
    with pytest.raises(ToolkitError, match="a result is in two files"):
        read_log([tmp_path])


def test_matches_are_outcomes_but_not_of_samples_with_an_error() -> None:
    log = read_log([LOGS / "openai_evals/sums"])
    asked = {"sums.dev.0": 3, "sums.dev.1": 7, "sums.dev.2": 11, "sums.dev.3": 15}
    assert set(log.table.select("model", "task", "true_success").rows()) == {
        (model, task, bool(total % wrong))
        for model, wrong in (("small", 3), ("large", 7))
        for task, total in asked.items()
    }
    assert (log.of_run, set(log.table["seed"]), set(log.table["pool"])) == (
        ("model",),
        {20220722},
        {"sums.dev.v0"},
    )
    assert log.table["launched_at"].str.ends_with("+00:00").all()
    fuzzy = read_log([LOGS / "openai_evals/fuzzy"])
    failed = fuzzy.table.filter(pl.col("task") == "fuzzy.dev.3")
    assert set(failed.select("true_success", "metrics.accuracy", "error").rows()) == {
        (None, None, "TimeoutError: no answer in time")
    }
    assert any("no report of run" in said and "large.jsonl" in said for said in fuzzy.left_out)
    assert "outcomes of 2 samples with an error" in fuzzy.left_out


FUZZY = LOGS / "openai_evals/fuzzy/small.jsonl"


def _without(*kinds: str) -> Callable[[Objects], Objects]:
    return lambda events: [event for event in events if event.get("type") not in kinds]


def test_where_there_is_no_match_a_metric_is_the_outcome_and_a_sample_without_any_has_none(
    tmp_path: Path,
) -> None:
    events = _without("match")(lines(FUZZY))
    last = max(at for at, event in enumerate(events) if event.get("type") == "metrics")
    log = read_log([written(tmp_path, events[:last] + events[last + 1 :])])
    told = log.table.select("task", "true_success", "error").rows()
    lost = events[last]["sample_id"]
    assert (lost, None, "it was not scored") in told
    assert [row for row in told if row[1] is not None]


def changed(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Return the traces, each changed."""
    table = pl.read_csv(TRACES, infer_schema=False)
    traces = [json.loads(text) for text in table["trace"]]
    for trace in traces:
        change(trace["info"])
    table.with_columns(pl.Series("trace", list(map(json.dumps, traces)))).write_csv(tmp_path / "traces.csv")
    return tmp_path / "traces.csv"


def test_traces_are_episodes_and_their_one_score_the_outcome() -> None:
    log = read_log([TRACES])
    assert log.of_run == ("run",)
    assert sorted(log.table.group_by("run").agg(pl.col("true_success").sum())["true_success"]) == [1, 1]
    assert log.table.group_by("run").agg(pl.col("launched_at").n_unique())["launched_at"].to_list() == [1, 1]
    assert set(log.table["prompt"]) == {'{"a": 1, "b": 2}', '{"a": 3, "b": 4}'}


def test_a_trace_that_failed_has_no_outcome_whatever_its_scorer_said(tmp_path: Path) -> None:
    def fail(info: dict[str, Any]) -> None:
        if "3" in info["request_preview"]:
            info["state"] = "ERROR"

    log = read_log([changed(tmp_path, fail)])
    failed = log.table.filter(pl.col("error").is_not_null())
    assert failed.select("true_success", "error").unique().rows() == [(None, "the trace's state is ERROR")]
    assert failed.height == 2
    assert "assessments of 2 traces that did not end well" in log.left_out


@pytest.mark.parametrize("words", [("no", "yes"), ("FAIL", "PASS"), (0.0, 1.0)])
def test_judges_say_it_in_words_and_what_was_corrected_does_not_count(words: Any, tmp_path: Path) -> None:
    def judge(info: dict[str, Any]) -> None:
        told = next(one for one in info["assessments"] if "feedback" in one)
        told["feedback"]["value"] = words[told["feedback"]["value"]]
        wrong = told | {"feedback": {"value": words[0]}, "valid": False}
        info["assessments"] = [told, wrong]

    table = read_log([changed(tmp_path, judge)]).table
    told = source.converted(table, OF_EPISODES["true_success"], "true_success", {})
    assert told.to_list() == read_log([TRACES]).table["true_success"].to_list()


def test_traces_without_feedback_and_a_table_of_runs_say_what_to_export(tmp_path: Path) -> None:
    def clear(info: dict[str, Any]) -> None:
        info["assessments"] = []

    with pytest.raises(IncompleteError, match="no trace of the log was assessed"):
        read_log([changed(tmp_path, clear)])
    with pytest.raises(IncompleteError, match="a table of MLflow's runs has no items") as caught:
        read_log([LOGS / "mlflow/runs.csv"])
    assert "search_traces" in str(caught.value.remedy)


def test_several_scores_are_no_outcome_until_one_is_named(tmp_path: Path) -> None:
    def judge(info: dict[str, Any]) -> None:
        info["assessments"].append(info["assessments"][0] | {"assessment_name": "tone"})

    log = changed(tmp_path, judge)
    run("new-study", "mine", "--table", log, "--into", tmp_path / "a").refused(2, "--success COLUMN")
    done = run("new-study", "mine", "--table", log, "--success", "score.exact", "--into", tmp_path / "a")
    assert done.code == 0, done.err


def test_items_of_a_former_evaluation_are_a_table_whose_folders_are_arms(tmp_path: Path) -> None:
    given = ("--table", LOGS / "mlflow/items", "--task", "inputs", "--success", "hit/score")
    done = run("new-study", "mine", *given, "--into", tmp_path)
    assert done.code == 0, done.err
    mapping = (tmp_path / "mappings/mine.toml").read_text()
    assert '"large/eval_results_table" = ' in mapping
