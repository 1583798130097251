"""`toolkit train`: the plan, what it says of its grounds, and what is refused."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Toolkit
from toolkit.errors import UsageError
from toolkit.places import Home
from toolkit.study.play import training_jobs
from toolkit.training.recipe import Recipe, load_recipe

DRY = ("train", "--recipe", "qwen3.5-2b", "--dry-run")


@pytest.fixture
def plan(toolkit: Toolkit) -> Callable[..., Any]:
    def made(*arguments: object) -> Any:
        result = toolkit(*DRY, *arguments, "--json")
        assert result.code == 0, result.err
        return result.json()

    return made


def test_the_plan_says_where_every_setting_comes_from(plan: Callable[..., Any]) -> None:
    settings = plan("--set", "lora.rank=16")["recipe"]["settings"]
    assert all(entry["source"] for entry in settings)
    assert {e["setting"]: e["source"] for e in settings}["lora.rank"] == "--set"


def test_the_plan_of_one_run_counts_what_its_published_twin_played(
    plan: Callable[..., Any], published: Any
) -> None:
    (run,) = plan("--run", "c2-paired-s0")["runs"]
    (twin,) = (row for row in published.rows("runs") if row["run_id"] == "gate1-c2-paired-s0")
    assert run["episodes"] == twin["episodes"]
    assert run["rollouts"] == twin["training_rollouts"]


def test_the_measured_time_of_a_run_lies_in_the_range_planned_for_it(
    plan: Callable[..., Any], published: Any
) -> None:
    planned = {(r["condition"], r["arm"], r["seed"]): r["hours"] for r in plan()["runs"]}
    for row in published.rows("runs"):
        if row["accelerator"] == "H100":
            hours = planned[row["condition"], row["arm"], row["seed"]]
            assert hours["low"] <= row["wall_time_s"] / 3600 <= hours["high"] + 1e-3, row["run_id"]


def test_without_a_selection_the_first_tier_is_planned(plan: Callable[..., Any]) -> None:
    assert {run["tier"] for run in plan()["runs"]} == {1}
    assert {run["tier"] for run in plan("--tier", 3)["runs"]} == {3}


def test_what_the_reader_measured_goes_before_what_is_here(plan: Callable[..., Any]) -> None:
    time = plan("--seconds-per-step", 192, "--run", "c2-paired-s1")["time"]
    # One second a rollout: 26,568 episodes.
    assert time["hours"] == {"low": None, "mean": None, "high": pytest.approx(26_568 / 3600, rel=1e-5)}


def test_other_settings_than_were_measured_have_no_duration(plan: Callable[..., Any]) -> None:
    found = plan("--set", "sampling.max_completion_tokens=4096")
    assert found["time"] == {"verdict": "not_evaluable"}
    assert "--seconds-per-step" in found["lacks"][0]


def test_another_model_s_duration_is_a_range_without_a_mean(plan: Callable[..., Any]) -> None:
    time = plan("--model", "dense-70b", "--gpus", 64)["time"]
    assert (time["gpus_a_run"], time["runs_at_once"]) == (8, 8)
    assert time["hours"]["mean"] is None


def test_gpus_that_hold_no_run_have_no_duration(plan: Callable[..., Any]) -> None:
    assert plan("--model", "dense-70b", "--gpus", 4)["time"]["verdict"] == "not_evaluable"


def test_a_model_whose_sizes_cannot_be_had_has_neither_memory_nor_time(
    plan: Callable[..., Any], tmp_path: Path
) -> None:
    found = plan("--model", tmp_path)
    assert found["memory"] == found["time"] == {"verdict": "not_evaluable"}
    assert [lack.partition(":")[0] for lack in found["lacks"]] == ["memory", "time"]


def test_a_project_without_measurements_says_so(alone: Home, plan: Callable[..., Any]) -> None:
    (alone.cards / "costs.toml").unlink()
    found = plan("--study", "embedded")
    assert found["time"] == {"verdict": "not_evaluable"}
    assert "no measured run is here" in found["lacks"][0]


def test_without_measurements_the_study_has_to_be_named(alone: Home, toolkit: Toolkit) -> None:
    (alone.cards / "costs.toml").unlink()
    toolkit(*DRY).refused(2, "embedded")


def test_the_tables_fit_a_hundred_columns(toolkit: Toolkit) -> None:
    lines = toolkit(*DRY, "--tier", 1).out.splitlines()
    assert max(len(line) for line in lines if line.startswith(("│", "┏"))) <= 100


def test_a_dry_run_imports_nothing_heavy() -> None:
    import subprocess

    script = (
        f"import sys\nsys.argv = ['toolkit', *{DRY!r}, '--json']\nfrom toolkit.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "print(*sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"torch", "trl", "vllm", "transformers", "peft", "datasets"} & set(done.stderr.split())


def check(recipe: Recipe, *, cpu: bool) -> list[str]:
    """Return what is remarked where training is not refused."""
    said: list[str] = []
    training_jobs.check_stack(recipe, cpu=cpu, say=said.append)
    return said


def test_training_without_the_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_jobs, "_version", lambda name: None if name == "vllm" else "1")
    with pytest.raises(UsageError, match="not installed") as caught:
        check(load_recipe("qwen3.5-2b"), cpu=False)
    assert "[gpu]" in str(caught.value.remedy)
    assert caught.value.found == "without vllm"


def test_training_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_jobs, "_version", load_recipe("qwen3.5-2b").packages.get)
    monkeypatch.setattr(training_jobs, "has_gpu", lambda: False)
    with pytest.raises(UsageError, match="no GPU"):
        check(load_recipe("qwen3.5-2b"), cpu=False)
    without = load_recipe("qwen3.5-2b", changes=["engine.kind=transformers"])
    check(without, cpu=True)


def test_vllm_on_a_processor_is_refused() -> None:
    with pytest.raises(UsageError, match="generates on a GPU"):
        check(load_recipe("qwen3.5-2b"), cpu=True)


def test_other_versions_than_the_recipe_s_are_remarked(monkeypatch: pytest.MonkeyPatch) -> None:
    here = dict(load_recipe("qwen3.5-2b").packages) | {"trl": "1.16.0", "torch": "2.13.0+cu130"}
    monkeypatch.setattr(training_jobs, "_version", here.get)
    monkeypatch.setattr(training_jobs, "has_gpu", lambda: True)
    assert check(load_recipe("qwen3.5-2b"), cpu=False) == [
        "trl 1.16.0 is installed; the recipe was written for 1.12.0"
    ]
