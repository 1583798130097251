"""Outputs of benchmarks: outcomes are the benchmark's own, errors are none, hostile outputs are refused."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from tests.unit.registers.importing import logs
from tests.unit.registers.importing.logs import lines, outcome, played, study_of
from toolkit.drafting.outline import outlined
from toolkit.registers.importing.readers import common
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import Log

FORMATS = {"bfcl": "BFCL", "tau2": "tau2", "tau_bench": "tau-bench", "helm": "HELM", "swe_bench": "SWE-bench"}
ERRORS = {
    "bfcl": "Error during inference: the server did not answer",
    "tau2": "the provider closed the connection",
    "tau_bench": "the provider closed the connection",
    "helm": "content filter",
    "swe_bench": "the harness could not test it (error_ids): run_instance.log says why",
}


@cache
def read(folder: str) -> Log:
    return read_log([logs.LOGS / folder])


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


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[str], Path]:
    return lambda folder: Path(shutil.copytree(logs.LOGS / folder, tmp_path / folder))


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


def test_reports_and_instances_say_the_same(copy: Callable[[str], Path]) -> None:
    whole, mine = read("swe_bench").table, copy("swe_bench")
    for file in mine.glob("*.json"):
        file.unlink()
    same = ["model", "evaluation", "task", "true_success", "status", "repo"]
    tested = pl.col("status") != "empty_patch"  # it has no folder
    own = read_log([mine]).table
    assert own.select(same).sort(same).equals(whole.filter(tested).select(same).sort(same))
    assert set(whole.filter(pl.col("status") == "empty_patch")["true_success"]) == {False}


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
