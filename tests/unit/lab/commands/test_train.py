"""`toolkit train`: the plan, what it says of its grounds, and what is refused."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.conftest import Toolkit
from toolkit.errors import UsageError
from toolkit.lab.play import training_jobs
from toolkit.lab.training.recipe import Recipe, load_recipe

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


def test_the_measured_time_of_a_run_lies_in_the_range_planned_for_it(plan, published) -> None:
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


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("--set", "sampling.max_completion_tokens=4096"), "sampling.max_completion_tokens"),
        (("--model", "other"), "model"),
    ],
)
def test_other_settings_than_were_measured_have_no_duration(plan, change, named) -> None:
    found = plan(*change)
    assert found["time"] == {"verdict": "not_evaluable"}
    (lack,) = found["lacks"]
    assert f"had another {named}; " in lack
    assert "--seconds-per-step" in lack


def test_a_project_without_measurements_says_so_and_has_the_study_named(toolkit, alone, plan) -> None:
    (alone.cards / "costs.toml").unlink()
    planned = plan("--study", "embedded")
    assert planned["time"] == {"verdict": "not_evaluable"}
    assert "no measured run is here" in planned["lacks"][0]
    toolkit(*DRY).refused(2, "embedded")


def test_80_columns_hold_every_setting_with_where_it_is_from(toolkit: Toolkit) -> None:
    lines = toolkit(*DRY, "--tier", 1, columns=80).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert ["setting", "value", "where", "from"] in [line.split() for line in lines]


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return what says what is remarked of this machine's packages and GPU, where training is not refused."""

    def checked(recipe: Recipe, packages: Mapping[str, str], *, gpu: bool, cpu: bool = False) -> list[str]:
        remarks: list[str] = []
        monkeypatch.setattr(training_jobs, "installed", packages.get)
        monkeypatch.setattr(training_jobs.loading, "check_importable", lambda _: None)
        training_jobs.check_stack(recipe, cpu=cpu, say=remarks.append, has_gpu=gpu)
        return remarks

    return checked


def test_training_without_what_it_needs_is_refused(check: Callable[..., list[str]]) -> None:
    recipe = load_recipe("qwen3.5-2b")
    there = dict(recipe.packages)
    with pytest.raises(UsageError, match="not installed") as caught:
        check(recipe, {name: version for name, version in there.items() if name != "vllm"}, gpu=True)
    assert ("[gpu]" in str(caught.value.remedy), caught.value.found) == (True, "without vllm")
    for engine in ("vllm", "transformers"):
        asked = load_recipe("qwen3.5-2b", changes=[f"engine.kind={engine}"])
        without = {name: version for name, version in there.items() if name != "flash-linear-attention"}
        with pytest.raises(UsageError, match="not installed") as caught:
            check(asked, without, gpu=True)
        assert ("[gpu]" in str(caught.value.remedy), caught.value.found) == (
            True,
            "without flash-linear-attention",
        )
    with pytest.raises(UsageError, match="no GPU"):
        check(recipe, there, gpu=False)
    with pytest.raises(UsageError, match="generates on a GPU"):
        check(recipe, there, gpu=True, cpu=True)
    check(load_recipe("qwen3.5-2b", changes=["engine.kind=transformers"]), there, gpu=False, cpu=True)
    check(recipe, {**there, "vllm": "0.27.1+cpu"}, gpu=False, cpu=True)


def test_other_versions_than_the_recipe_s_are_remarked(check: Callable[..., list[str]]) -> None:
    recipe = load_recipe("qwen3.5-2b")
    assert check(recipe, {**recipe.packages, "trl": "1.16.0", "torch": "2.13.0+cu130"}, gpu=True) == [
        "trl 1.16.0 is installed; the recipe was written for 1.12.0"
    ]
