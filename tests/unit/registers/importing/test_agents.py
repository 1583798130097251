"""Outputs of benchmarks: outcomes are the benchmark's own, errors are none, hostile outputs are refused."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.unit.registers.importing import logs
from tests.unit.registers.importing.logs import lines, study_of
from toolkit.drafting.outline import outlined
from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.importing.readers import common
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import Log
from toolkit.structs import replace

FORMATS = {
    "bfcl": "BFCL",
    "tau2": "tau2",
    "tau_bench": "tau-bench",
    "helm": "HELM",
    "swe_bench": "SWE-bench",
}
ERRORS = {
    "bfcl": "Error during inference: the server did not answer",
    "tau2": "the provider closed the connection",
    "tau_bench": "the provider closed the connection",
    "helm": "content filter",
    "swe_bench": "the harness could not test it (error_ids): run_instance.log says why",
}
Change = Callable[[Any], object]


@cache
def read(folder: str) -> Log:
    return read_log([logs.LOGS / folder])


def outcome(table: pl.DataFrame) -> str:
    return "exact_match" if "exact_match" in table.columns else "true_success"


@pytest.mark.parametrize("folder", FORMATS)
def test_what_the_program_could_not_play_has_no_outcome_and_says_why(folder: str) -> None:
    log = read(folder)
    assert log.format == FORMATS[folder]
    missing = log.table.filter(pl.col(outcome(log.table)).is_null())
    assert set(missing["error"]) == {ERRORS[folder]}
    assert missing.height == log.table["error"].count()
    assert set(missing["model"]) == set(log.table["model"])


@pytest.mark.parametrize("folder", FORMATS)
def test_models_are_the_arms_and_the_better_one_is(folder: str) -> None:
    log = read(folder)
    outline = outlined("mine", log, {"true_success": outcome(log.table)})
    assert outline.columns["arm"] == "model"
    means = log.table.group_by("model").agg(pl.col(outcome(log.table)).cast(float).mean()).sort("model")
    better, worse = means[outcome(log.table)]
    assert better > worse
    made = study_of(played(log), true_success=outcome(log.table))["evaluations"]
    assert made["successes"].sum() == log.table[outcome(log.table)].sum()


def played(log: Log) -> Log:
    """Return a log without what has no outcome: how much may be missing is for rules to say."""
    return replace(log, table=log.table.drop_nulls(outcome(log.table)))


def changed(file: Path, change: Change) -> None:
    """Change the JSON document of a file, or those of its lines; a list may be replaced."""
    is_lines = file.name.startswith("BFCL")
    content = lines(file) if is_lines else json.loads(file.read_text())
    made = change(content)
    content = made if isinstance(made, list) and isinstance(content, list) else content
    text = "".join(f"{json.dumps(one)}\n" for one in content) if is_lines else json.dumps(content)
    file.write_text(text)


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[str], Path]:
    return lambda folder: Path(shutil.copytree(logs.LOGS / folder, tmp_path / folder))


SCORE = "score/lab_tiny-b/non_live/BFCL_v4_simple_python_score.json"
RESULT = "result/lab_tiny-b/non_live/BFCL_v4_simple_python_result.json"
FILE, FOLDER = "tiny-a/results.json", "tiny-b/results.json"
TAU = "tool-calling-tiny-b-0.0_range_0--1_user-gpt-4o-llm_1101100000.json"
RUN = "runs/small/lab_tiny-b"
STATS, STATES, SPEC = (f"{RUN}/{name}.json" for name in ("per_instance_stats", "scenario_state", "run_spec"))
REPORT, TESTED = "lab__tiny-b.small.json", "logs/run_evaluation/small/lab__tiny-b/lab__calc-0/report.json"


def to(file: str, change: Change) -> Callable[[Path], object]:
    return lambda folder: changed(folder / file, change)


def without(name: str) -> Callable[[Path], object]:
    """Return what removes a file or a folder."""

    def remove(folder: Path) -> None:
        there = folder / name
        shutil.rmtree(there) if there.is_dir() else there.unlink()

    return remove


def twice(name: str, other: str) -> Callable[[Path], object]:
    """Return what copies a file or a folder."""

    def duplicate(folder: Path) -> None:
        there = folder / name
        shutil.copytree(there, folder / other) if there.is_dir() else shutil.copy(there, folder / other)

    return duplicate


def half(file: str) -> Callable[[Path], object]:
    """Return what leaves half of a file."""

    def cut(folder: Path) -> None:
        text = (folder / file).read_text()
        (folder / file).write_text(text[: len(text) * 2 // 3])

    return cut


def scenario(text: str) -> Change:
    return lambda content: content["tasks"][0]["user_scenario"].update(instructions=text)


def counted(**counts: int) -> Change:
    return lambda content: [content[0] | counts, *content[1:]]


def failed(simulation: dict[str, Any]) -> None:
    simulation["reward_info"] = None


def unscored(folder: Path) -> None:
    without("score")(folder)
    without("result/lab_tiny-a")(folder)
    for file in folder.rglob("*.json"):
        file.unlink()
    (folder / "result/lab_tiny-b/BFCL_v4_memory_kv_prereq_result.json").touch()


# Log, what is done to it → the problem, and what the refusal says of it
REFUSED: dict[str, tuple[str, Callable[[Path], object], str, str]] = {
    "scores only": ("bfcl", without("result"), "no results beside them", "both result/ and score/"),
    "results only": ("bfcl", without("score"), "no scores beside them", "bfcl evaluate --model lab_tiny-a"),
    "what is not scored only": ("bfcl", unscored, "no scores beside them", "memory_kv_prereq"),
    "a category without scores": ("bfcl", without(SCORE), "no scores beside them", "simple_python"),
    "other counts": ("bfcl", to(SCORE, counted(correct_count=4)), "not of these results", "correct_count 3"),
    "an answer less": ("bfcl", to(RESULT, lambda all_of: all_of[1:]), "not of these", "total_count 5"),
    "an answer twice": (
        "bfcl",
        to(RESULT, lambda all_of: [*all_of[1:], all_of[1]]),
        "not of these results",
        "twice: simple_python_1",
    ),
    "a failure twice": (
        "bfcl",
        to(SCORE, lambda all_of: [*all_of[:-1], all_of[1]]),
        "not of these",
        "(failed)",
    ),
    "a failure of another": ("bfcl", to(SCORE, lambda all_of: all_of[1].update(id="x")), "not of these", "x"),
    "other answers": (
        "bfcl",
        to(RESULT, lambda all_of: all_of[3].update(result="[]")),
        "not of these results",
        "other: simple_python_3",
    ),
    "no counts": (
        "bfcl",
        to(SCORE, lambda all_of: all_of[1:]),
        "is not what BFCL writes",
        "simple_python_score",
    ),
    "half of the results": ("bfcl", half(RESULT), "is not what BFCL writes", RESULT),
    "half of the scores": ("bfcl", half(SCORE), "is not what BFCL writes", SCORE),
    "two folders of results": (
        "bfcl",
        twice("result", "old"),
        "several files",
        "--table result --table score",
    ),
    "results of no number": ("bfcl", to(RESULT, lambda all_of: all_of[1].pop("id")), "not", "_result.json"),
    "a model twice": (
        "bfcl",
        lambda folder: [twice(f"{kind}/lab_tiny-a", f"{kind}/copy")(folder) for kind in ("result", "score")],
        "two files of the log are the same",
        "copy",
    ),
    "other tasks": ("tau2", to(FILE, scenario("Sing.")), "different tasks under one name", "task 0 of mock"),
    "half of the simulations": ("tau2", half(FILE), "is not a file of tau2's simulations", FILE),
    "a simulation less": ("tau2", without("tiny-b/simulations/3-1.json"), "other simulations", "not: 3-1"),
    "half of a simulation": (
        "tau2",
        half("tiny-b/simulations/3-1.json"),
        "is not a file of tau2",
        "3-1.json",
    ),
    "a run twice": ("tau2", twice(FILE, "copy.json"), "two files of the log are the same", "copy.json"),
    "no number of trials": (
        "tau2",
        to(FILE, lambda one: one["info"].update(num_trials="x")),
        "is not",
        "'x'",
    ),
    "other orders": (
        "tau_bench",
        to(
            TAU,
            lambda all_of: [one["info"].get("task", {}).update(instruction="?") for one in all_of] and None,
        ),
        "different tasks under one name",
        "task 0 of tau-bench",
    ),
    "half of the trajectories": ("tau_bench", half(TAU), "is not a file of tau-bench", TAU),
    "a run without its specification": ("helm", without(SPEC), "lacks a file", "no run_spec.json"),
    "a run without its statistics": ("helm", without(STATS), "lacks a file", "no per_instance_stats.json"),
    "half of the statistics": ("helm", half(STATS), "is not what HELM writes", "per_instance_stats.json"),
    "half of the requests": ("helm", half(STATES), "is not what HELM writes", "scenario_state.json"),
    "the run of a model twice": (
        "helm",
        twice(RUN, "runs/copy"),
        "two files of the log are the same",
        "copy",
    ),
    "other instances": (
        "helm",
        to(STATES, lambda one: one["request_states"][0]["instance"]["input"].update(text="1")),
        "different tasks under one name",
        "simple_classification:test",
    ),
    "an instance in two lists": (
        "swe_bench",
        to(REPORT, lambda one: one.update(error_ids=["lab__calc-0"])),
        "counts and lists",
        "lab__calc-0",
    ),
    "another count": ("swe_bench", to(REPORT, lambda one: one.update(resolved_instances=4)), "counts", "4"),
    "another total": ("swe_bench", to(REPORT, lambda one: one.update(total_instances=9)), "counts", "9"),
    "counts only": ("swe_bench", to(REPORT, lambda one: one.pop("resolved_ids")), "counts and lists", "0"),
    "half of a report": ("swe_bench", half(REPORT), "is not a report of SWE-bench", REPORT),
    "a report twice": ("swe_bench", twice(REPORT, "copy.json"), "the same", "copy.json"),
    "another resolution": (
        "swe_bench",
        to(TESTED, lambda one: one["lab__calc-0"].update(resolved=False)),
        "disagree",
        "lab__calc-0 unresolved",
    ),
    "no resolution": (
        "swe_bench",
        to(TESTED, lambda one: one["lab__calc-0"].update(resolved=None)),
        "is not a report of SWE-bench",
        "resolved is None",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_one_clear_error(copy: Callable[[str], Path], case: str) -> None:
    folder, change, problem, says = REFUSED[case]
    change(mine := copy(folder))
    with pytest.raises((DamagedError, IncompleteError), match=problem) as refused:
        read_log([mine])
    assert says in str(refused.value)
    assert refused.value.where or refused.value.remedy


def test_a_log_whose_items_all_failed_is_refused(copy: Callable[[str], Path]) -> None:
    mine = copy("tau2")
    shutil.rmtree(mine / "tiny-b")
    changed(mine / FILE, lambda one: [failed(each) for each in one["simulations"]] and None)
    with pytest.raises(IncompleteError, match="no item of the log has an outcome") as refused:
        read_log([mine])
    assert "it was not rewarded" in str(refused.value)


def test_a_log_of_another_format_beside_it_is_named(tmp_path: Path) -> None:
    for folder in ("swe_bench", "tau2"):
        shutil.copytree(logs.LOGS / folder, tmp_path / folder)
    assert (
        "a log of another format: SWE-bench, such as lab__tiny-a.small.json" in read_log([tmp_path]).left_out
    )
    assert not any("another format" in told for told in read("tau2").left_out)


@pytest.mark.parametrize("model", ["lab_tiny-a", "lab_tiny-b"])
def test_successes_are_those_that_bfcl_counts_but_for_errors(model: str) -> None:
    for file in (logs.LOGS / "bfcl/score" / model).rglob("*.json"):
        header, *failures = lines(file)
        category = file.name.removeprefix("BFCL_v4_").removesuffix("_score.json")
        own = read("bfcl").table.filter(pl.col("pool") == category, pl.col("model") == model)
        broken = set(own.filter(pl.col("error").is_not_null())["task"]) - {one["id"] for one in failures}
        # Where no call is expected, BFCL counts an error of the inference as right.
        assert broken == ({"irrelevance_5"} if category == "irrelevance" else set())
        assert own["true_success"].sum() == header["correct_count"] - len(broken)
        assert own.height == header["total_count"]


def test_results_of_version_3_lie_in_one_folder(copy: Callable[[str], Path]) -> None:
    mine = copy("bfcl")
    for file in sorted(mine.rglob("BFCL_v4*")):
        file.rename(file.parents[1] / file.name.replace("v4", "v3"))
    table = read_log([mine / "result", mine / "score"]).table
    same = ["model", "pool", "task", "true_success"]
    assert table.select(same).equals(read("bfcl").table.select(same))
    assert set(table["version"]) == {"BFCL_v3"}


def test_many_categories_are_pooled_and_what_is_not_scored_is_named(
    copy: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = copy("bfcl")
    memory = mine / "result/lab_tiny-a/agentic/memory/kv"
    memory.mkdir(parents=True)
    (memory / "BFCL_v4_memory_kv_prereq_result.json").write_text('{"id": "memory_kv_prereq_0", "result": []}')
    monkeypatch.setattr(common, "MOST_POOLS", 1)
    log = read_log([mine])
    assert set(log.table["pool"]) == {"non_live"}
    assert log.table["task"][0] == "irrelevance:irrelevance_0"
    assert "memory_kv_prereq, which is not scored" in log.left_out


# What ended a simulation, and its reward → whether it succeeded
ENDED: dict[tuple[str, object], bool | None] = {
    ("user_stop", 1.0): True,
    ("agent_stop", 1 - 1e-7): True,
    ("user_stop", 0.5): False,
    ("user_stop", 0): False,
    ("max_steps", 0.0): False,
    ("timeout", 0.0): False,
    ("agent_error", 0.0): False,
    ("too_many_errors", 0.0): False,
    ("context_window_exceeded", 0.0): False,
    ("user_error", 0.0): None,
    ("unexpected_error", 0.0): None,
    ("infrastructure_error", None): None,
    ("user_stop", None): None,
    ("user_stop", float("nan")): None,
    ("user_stop", "1.0"): None,
}


@pytest.mark.parametrize("ended", ENDED)
def test_a_simulation_is_a_success_as_tau2_says_or_has_no_outcome(
    copy: Callable[[str], Path], ended: tuple[str, object]
) -> None:
    reason, reward = ended
    mine = copy("tau2") / FILE
    rewarded = None if reward is None else {"reward": reward}
    told = {"termination_reason": reason, "reward_info": rewarded}
    changed(
        mine,
        lambda one: one["simulations"][0].update(
            told if reward is not None else told | {"reward_info": None}
        ),
    )
    row = read_log([mine]).table.row(0, named=True)
    assert row["true_success"] is ENDED[ended]
    assert (row["error"] is None) == (row["reward"] is not None) == (ENDED[ended] is not None)
    assert row["termination_reason"] == reason


def test_simulations_that_are_not_there_have_no_outcome(copy: Callable[[str], Path]) -> None:
    mine = copy("tau2") / FILE
    changed(mine, lambda one: one["simulations"].pop(1))
    row = read_log([mine]).table.row(5, named=True)
    assert (row["task"], row["schedule"], row["true_success"]) == ("1", 0, None)
    assert "not played to its end" in row["error"]
    assert row["prompt"] == "Change my seat."


# Log, and what leaves an item there twice
TWICE: dict[str, Callable[[Path], object]] = {
    "bfcl": lambda folder: [
        *(twice(kind, f"again/{kind}")(folder) for kind in ("result", "score")),
        *(changed(file, lambda all_of: all_of[::-1]) for file in (folder / "again/result").rglob("*.json")),
    ],
    "tau2": to(FILE, lambda one: one["simulations"].append(one["simulations"][0])),
    "tau_bench": to(TAU, lambda all_of: [*all_of, all_of[0]]),
    "helm": lambda folder: [
        twice(RUN, "runs/again")(folder),
        changed(folder / "runs/again/per_instance_stats.json", lambda all_of: all_of[::-1]),
    ],
}


@pytest.mark.parametrize("folder", TWICE)
def test_what_a_model_did_twice_is_not_imported(copy: Callable[[str], Path], folder: str) -> None:
    mine = copy(folder)
    TWICE[folder](mine)
    log = read_log([mine])
    with pytest.raises(DamagedError, match="twice"):
        study_of(played(log), arm="model", true_success=outcome(log.table))


def test_what_a_user_is_told_in_parts_is_one_prompt(copy: Callable[[str], Path]) -> None:
    mine = copy("tau2") / FILE
    parts = {"domain": "mock", "reason_for_call": "You are late.", "known_info": None}
    changed(mine, lambda one: one["tasks"][0]["user_scenario"].update(instructions=parts))
    assert read_log([mine]).table["prompt"][0] == "domain: mock\nreason_for_call: You are late."


def test_simulations_say_their_run_and_what_they_took() -> None:
    row = read("tau2").table.row(0, named=True)
    told = {
        "model": "lab/tiny-a",
        "pool": "mock",
        "seed": 300,
        "calls": 1,
        "agent_cost": 0.01,
        "reward.DB": 1.0,
    }
    assert told.items() <= row.items()
    assert row["agent.llm_args.temperature"] == 0.0
    assert "launched_at" not in row  # tau2 writes the time without its zone


def test_trajectories_say_what_their_name_says(copy: Callable[[str], Path]) -> None:
    row = read("tau_bench").table.row(0, named=True)
    told = {
        "model": "tiny-a",
        "strategy": "tool-calling",
        "user": "gpt-4o-llm",
        "prompt": "You want order 0.",
    }
    assert told.items() <= row.items()
    mine = copy("tau_bench")
    for name in ("a", "b"):
        (mine / TAU.replace("tiny-b", f"tiny-{name}")).rename(mine / f"{name}.json")
    assert outlined("mine", read_log([mine])).columns["arm"] == "file"


def perturbed(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return statistics with each instance perturbed, too, and in a second trial."""
    worse = {"name": "typos", "robustness": True, "fairness": False, "computed_on": "perturbed", "prob": 0.1}
    return [*content, *(one | {"perturbation": worse, "train_trial_index": 1} for one in content)]


def test_perturbations_are_regimes_and_trials_schedules(copy: Callable[[str], Path]) -> None:
    mine = copy("helm")
    changed(mine / STATS, perturbed)
    table = read_log([mine]).table.filter(pl.col("model") == "lab/tiny-b")
    assert table.height == 12
    assert table.select("regime", "schedule").unique().sort("regime").rows() == [
        ("original", 0),
        ("typos prob=0.1", 1),
    ]


def stat(name: str, value: object, count: int = 1) -> dict[str, object]:
    return {"name": {"name": name, "split": "test"}, "count": count, "sum": value}


def test_statistics_are_means_and_what_is_there_twice_is_named(copy: Callable[[str], Path]) -> None:
    mine = copy("helm")
    more = [stat("f1", 3.0, 2), stat("none", 0, 0), stat("other", 1), stat("other", 0), stat("error", 1)]
    changed(mine / STATS, lambda content: [one["stats"].extend(more) for one in content] and None)
    log = read_log([mine])
    row = log.table.filter(pl.col("model") == "lab/tiny-b").row(0, named=True)
    assert (row["f1"], row["own.error"], row["error"]) == (1.5, 1.0, None)
    assert not {"none", "other"} & set(log.table.columns)
    assert "other, which an instance has twice" in log.left_out


def test_requests_say_prompts_and_times_where_they_are_there(copy: Callable[[str], Path]) -> None:
    told = read("helm").table
    assert told["prompt"].to_list()[:2] == ["70", "48"]
    assert set(told["launched_at"]) == {"2026-11-01T10:00:00.000000+00:00"}
    mine = copy("helm")
    for file in mine.rglob("scenario_state.json"):
        file.unlink()
    log = read_log([mine])
    assert "prompt" not in log.table.columns
    assert "failed requests of lab_tiny-a" in str(log.left_out)


def test_an_instance_without_statistics_has_no_outcome(copy: Callable[[str], Path]) -> None:
    mine = copy("helm")
    changed(mine / STATS, lambda content: content[1:])
    table = read_log([mine]).table.filter(pl.col("model") == "lab/tiny-b")
    assert (table["exact_match"].null_count(), table.height) == (2, 6)
    assert table["error"][0] == "per_instance_stats.json has no statistics of it"


def test_settings_of_a_scenario_and_its_split_are_its_pool(copy: Callable[[str], Path]) -> None:
    mine = copy("helm")
    for file in mine.rglob("run_spec.json"):
        changed(file, lambda spec: spec["scenario_spec"].update(args={"subject": "law", "hard": True}))
    pools = set(read_log([mine]).table["pool"])
    assert pools == {"simple_classification:hard=True:subject=law:test"}


def test_reports_and_instances_say_the_same(copy: Callable[[str], Path]) -> None:
    whole, mine = read("swe_bench").table, copy("swe_bench")
    for file in mine.glob("*.json"):
        file.unlink()
    same = ["model", "evaluation", "task", "true_success", "status", "repo"]
    tested = pl.col("status") != "empty_patch"  # it has no folder
    own = read_log([mine]).table
    assert own.select(same).sort(same).equals(whole.filter(tested).select(same).sort(same))
    assert set(whole.filter(pl.col("status") == "empty_patch")["true_success"]) == {False}


def test_an_infrastructure_failure_is_no_outcome(copy: Callable[[str], Path]) -> None:
    mine = copy("swe_bench")
    broken = {"infra_failure_ids": ["lab__calc-3"], "failure_reasons": {"lab__calc-3": "out_of_memory"}}
    changed(mine / REPORT, lambda report: report.update(broken))
    told = read_log([mine / REPORT]).table.filter(pl.col("task") == "lab__calc-3").row(0, named=True)
    assert (told["true_success"], told["error"]) == (None, "infrastructure failure: out_of_memory")
    tested = (mine / TESTED).parent.with_name("lab__calc-3") / "report.json"
    flags = {"infra_failure": True, "infra_failure_reason": "out_of_memory"}
    changed(tested, lambda report: report["lab__calc-3"].update(flags))
    table = read_log([tested.parents[1]]).table
    assert table.filter(pl.col("task") == "lab__calc-3")["true_success"].to_list() == [None]


def test_an_instance_that_one_run_has_no_prediction_for_is_missing(copy: Callable[[str], Path]) -> None:
    mine = copy("swe_bench")
    shutil.rmtree(mine / "logs")

    def unasked(report: dict[str, Any]) -> None:
        report["incomplete_ids"] += ["lab__calc-6"]
        report |= {"empty_patch_ids": [], "empty_patch_instances": 0, "submitted_ids": ["elsewhere"]}
        report.pop("error_instances")

    changed(mine / REPORT, unasked)
    log = read_log([mine])
    missing = log.table.filter(pl.col("status") == "incomplete")
    assert missing.select("model", "task", "true_success").rows() == [("lab__tiny-b", "lab__calc-6", None)]
    assert "1 instances that no run has a prediction for" in log.left_out
    assert "1 predictions of lab__tiny-b.small for instances that the data set lacks" in log.left_out


def test_runs_of_one_model_are_arms_by_their_run(copy: Callable[[str], Path]) -> None:
    mine = copy("swe_bench")
    shutil.rmtree(mine / "logs")
    (mine / REPORT).rename(mine / "lab__tiny-a.other.json")
    assert outlined("mine", read_log([mine])).columns["arm"] == "evaluation"


@pytest.mark.parametrize("folder", FORMATS)
def test_outputs_have_bounds_and_links_lead_nowhere_else(
    copy: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    mine = copy(folder)
    file = next(file for file in sorted(mine.rglob("*.json")) if file.parent.name != "simulations")
    outside = mine.parent / "outside.json"
    file.rename(outside)
    file.symlink_to(outside)
    logs.refused(mine, match="leads out of its folder")
    monkeypatch.setattr(common, "LARGEST_TABLE", 100)
    logs.refused(logs.LOGS / folder, match="than one can have")
