"""How much sharing samples saves with two near models: what is written down, and equal models."""

import re

import pytest
from small_model.coupled import ARMS, adapted, differences, found
from small_model.quick import quick

from tests.conftest import SMALL_MODEL
from tests.unit.stack import require_trainer
from toolkit.lab.evaluation.sets import EvaluationSet


def test_the_readme_says_what_was_measured() -> None:
    lines = (SMALL_MODEL / "coupled.jsonl").read_text("utf-8").splitlines()
    ratio = found(lines)
    assert ratio.high is not None
    said = re.search(
        r"over (\d+) seeds it is\s+(\S+), with an interval of (\S+) to (\S+)\.\s",
        (SMALL_MODEL / "README.md").read_text("utf-8"),
    )
    assert said is not None
    numbers = (f"{value:.1f}" for value in (ratio.ratio, ratio.low, ratio.high))
    assert said.groups() == (str(len(lines)), *numbers)
    assert ratio.low > 4


@pytest.mark.slow
def test_equal_models_never_differ_under_shared_samples_and_do_under_own() -> None:
    require_trainer()
    played = EvaluationSet("final", "validation", "clean", 12, 1)
    with quick():
        engine = adapted(ARMS[0])
        seeds = [differences([engine, engine], played, seed) for seed in range(2)]
    assert {seed["shared"] for seed in seeds} == {0.0}
    assert any(seed["own"] for seed in seeds)
