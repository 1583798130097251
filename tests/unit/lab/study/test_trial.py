"""Some steps outside any registration: what they say, and that they leave nothing and meet nobody's seeds."""

import tempfile
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import Toolkit, snapshot
from tests.unit.lab.study.fake_play import specification
from tests.unit.stack import require_trainer
from toolkit.lab.play import trial
from toolkit.lab.training.recipe import load_recipe, recipe_of, specify_language_model
from toolkit.lab.training.rows import groups_at
from toolkit.specification import LanguageModelSpecification, Specification

SETTINGS = ("step.prompts=2", "step.micro_batch=8", "sampling.max_completion_tokens=60", "lora.rank=2")
RECIPE = load_recipe("small", changes=SETTINGS)
RUN = specification(diagnosed=(0, 4), prompts_per_step=24, steps=100, checkpoint_every=20)


def met(run: Specification) -> set[int]:
    return {seed for step in (1, 2, 3) for group in groups_at(run, step) for seed in group.schedule_seeds}


def test_a_trial_has_the_run_s_place_the_recipe_s_sizes_and_seeds_of_its_own() -> None:
    for run in (RUN, specify_language_model(RUN, RECIPE, "f" * 40)):
        tried = trial.shortened(run, RECIPE, 3)
        assert isinstance(tried, LanguageModelSpecification)
        assert (tried.arm, tried.seed, tried.regime) == (run.arm, run.seed, run.regime)
        assert (tried.steps, tried.prompts_per_step, tried.group_size) == (3, 2, 8)
        assert (tried.ends, tried.diagnosed) == ((0, 3), ())
        assert not met(tried) & met(replace(run, root="small " + "a" * 64))


def test_a_warm_up_is_no_longer_than_the_trial() -> None:
    recipe = load_recipe("small", changes=["optimizer.warmup_steps=8"])
    assert recipe_of(trial.shortened(RUN, recipe, 2)).optimizer.warmup_steps == 2


@pytest.fixture
def step() -> trial.TriedStep:
    return trial.TriedStep(1, 5.0, 0.5, 0.25, 100)


def test_the_first_of_several_steps_does_not_count_in_their_duration(step: trial.TriedStep) -> None:
    made: Any = {"run_id": "x", "recipe": RECIPE, "coordinates": 1, "stack": {}, "peak_gpu_bytes": None}
    assert trial.Trial(**made, steps=(step,)).seconds_per_step == 5.0
    later = (replace(step, seconds=1.0), replace(step, seconds=2.0))
    assert trial.Trial(**made, steps=(step, *later)).seconds_per_step == 1.5


@pytest.mark.slow
def test_two_steps_are_tried_and_nothing_is_kept(toolkit, tmp_path, monkeypatch) -> None:
    require_trainer()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = snapshot(tmp_path)
    asked = [part for setting in SETTINGS for part in ("--set", setting)]
    result = toolkit("train", "--recipe", "small", "--cpu", "--try", 2, *asked, "--json")
    assert result.code == 0, result.err
    document = result.json()
    assert document["run_id"] == "c2-paired-s0"
    assert [step["step"] for step in document["steps"]] == [1, 2]
    for step in document["steps"]:
        assert 0 < step["generation"] < step["seconds"]
        assert 0 < step["tokens"] <= 16 * 60
        assert {"loss", "grad_norm", "entropy"} <= set(step["figures"])
    assert document["seconds_per_step"] == document["steps"][1]["seconds"]
    assert "chunk_gated_delta_rule reference" in document["kernels"]
    assert document["coordinates"] == 30_784 // 2
    assert snapshot(tmp_path) == before


def test_a_trial_of_a_draft_needs_what_a_training_needs(toolkit: Toolkit) -> None:
    result = toolkit("train", "--study", "qwen3.5-2b", "--try", 1)
    assert result.code == 2
    assert "is a draft" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("more", [("--dry-run",), ("--folder", "runs")])
def test_a_trial_neither_plans_nor_keeps(toolkit: Toolkit, more: tuple[str, ...]) -> None:
    toolkit("train", "--recipe", "small", "--cpu", "--try", 1, *more).refused(2, "--try keeps nothing")
