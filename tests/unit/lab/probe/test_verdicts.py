"""What is advised on intervals that are made here, and on groups of which little can be said."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.unit.lab.probe.test_advice import BATCH, made
from toolkit.estimators.drifts import DriftInterval
from toolkit.estimators.taskwise import TaskUncertainty
from toolkit.lab.probe import advice
from toolkit.lab.probe.advice import Advice, GroupEvidence, advise

TASKS, COORDINATES = 20, 4
TOLD, NOT_TOLD = TaskUncertainty(1.0, 0.5, 1.5, 0.2, 1.0), TaskUncertainty(1.0, -0.5, 1.5, 0.5, 1.0)
RNG = np.random.default_rng(9)
PAIRED, LABELS = np.repeat([True, False], 2 * TASKS), np.tile(np.arange(TASKS), 4)
VARIED = np.arange(4 * TASKS) % 5 > np.where(PAIRED, 1, 0)
GRADIENTS = RNG.normal(0.5, 1, (4 * TASKS, COORDINATES)) * VARIED[:, None]
GROUPS = GroupEvidence(PAIRED, LABELS, VARIED, 8, gradients=GRADIENTS)

Judge = Callable[..., Advice]


def ratio(best: float, low: float, high: float) -> TaskUncertainty:
    """Return a ratio whose plain value is another."""
    return TaskUncertainty(best + 0.04, low, high, (high - low) / 4, best)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Advise where the drifts' ratio is what is given, of the groups in a step or whatever they are."""

    def judged(of: Any, independent: TaskUncertainty = TOLD, batch: int = BATCH) -> Advice:
        def interval(_paired: object, _independent: object, groups: float, *_: object, **__: object) -> Any:
            return DriftInterval(TOLD, independent, of(groups) if callable(of) else of)

        monkeypatch.setattr(advice, "drift_interval", interval)
        return advise(GROUPS, "adam", batch)

    return judged


@pytest.mark.parametrize(
    ("interval", "verdict", "tasks"),
    [
        ((0.97, 0.96, 0.98), "either", None),
        ((0.97, 0.94, 0.99), "do_not_pair", None),
        ((0.80, 0.70, 0.90), "do_not_pair", None),
        ((1.03, 1.01, 1.06), "pair", None),
        # Half the interval reaches what it has to leave, at twice or three times the root of the tasks.
        ((0.90, 0.70, 1.10), "undecided", 4 * TASKS),
        ((1.00, 0.85, 1.15), "undecided", 9 * TASKS),
        ((1.20, 0.80, 1.60), "undecided", 4 * TASKS),
        # The interval need not be the estimate's own: what is asked for is never less than there is.
        ((0.90, 0.95, 1.10), "undecided", TASKS),
    ],
)
def test_the_verdict_is_the_intervals(
    judge: Judge, interval: tuple[float, float, float], verdict: str, tasks: int | None
) -> None:
    found = judge(ratio(*interval))
    assert (found.verdict, found.tasks_needed) == (verdict, pytest.approx(tasks, abs=1))
    assert f"{interval[0]:.3f} [{interval[1]:.3f}, {interval[2]:.3f}]" in found.sentences[0]


def test_a_drift_that_is_not_told_from_zero_decides_nothing(judge: Judge) -> None:
    found = judge(ratio(0.5, 0.4, 0.6), NOT_TOLD)
    assert (found.verdict, found.tasks_needed) == ("undecided", None)
    assert "not told from zero" in found.sentences[1]


def test_the_batch_is_the_first_whose_ratio_is_above_the_margin(judge: Judge) -> None:
    found = judge(lambda groups: ratio(1 - 0.5 / groups, 0.3, 0.99 - 0.5 / groups))
    assert found.batch_needed == 11  # 1 - 0.5/10 is the margin itself
    assert "pairing slows learning by about 25 %" in found.sentences[0]
    assert "about 11 groups a step" in found.sentences[1]
    assert judge(lambda groups: ratio(1 - 0.5 / groups, 0.3, 1.2), batch=11).batch_needed is None
    assert judge(ratio(0.5, 0.4, 0.6)).batch_needed is None


@pytest.mark.parametrize(
    ("interval", "are_said"),
    [((0.80, 0.70, 0.90), True), ((1.20, 1.10, 1.30), False), ((1, 0.99, 1.01), False)],
)
def test_what_to_change_is_said_where_pairing_may_slow_learning(
    judge: Judge, interval: tuple[float, float, float], are_said: bool
) -> None:
    found = judge(ratio(*interval))
    assert "drift_ratio_resampled" in found.figures
    assert any("drawn again" in sentence for sentence in found.sentences) == are_said


def test_shares_of_constant_groups_are_each_designs_own() -> None:
    figures = advise(GROUPS).figures
    for design, of in (("paired", PAIRED), ("independent", ~PAIRED)):
        share = 1 - VARIED[of].mean()
        assert figures[f"constant_{design}"].value == pytest.approx(share)
        assert figures[f"draws_{design}"].value == pytest.approx(1 / (1 - share))
    assert figures["constant_paired"].value > figures["constant_independent"].value > 0


def progress(gradients: np.ndarray, tasks: np.ndarray, along: np.ndarray, of: np.ndarray) -> float:
    """Return Adam's progress along other gradients, pair by pair of different tasks."""

    def product(one: np.ndarray, mine: np.ndarray, other: np.ndarray, others: np.ndarray) -> np.ndarray:
        pairs = [
            (i, j) for i, j in itertools.product(range(len(one)), range(len(other))) if mine[i] != others[j]
        ]
        return np.mean([one[i] * other[j] for i, j in pairs], axis=0)

    squared = product(gradients, tasks, gradients, tasks)
    noise = ((gradients**2).mean(axis=0) - squared) / BATCH
    root = np.sqrt(np.maximum(squared, 0) + noise)
    return float((product(along, of, gradients, tasks) / root).sum())


def test_progress_is_along_the_direction_that_is_given() -> None:
    direction = RNG.normal(0.7, 1, GRADIENTS.shape)
    found = advise(replace(GROUPS, direction=direction), "adam", BATCH).figures["drift_ratio"]
    gains = [progress(GRADIENTS[of], LABELS[of], direction, LABELS) for of in (PAIRED, ~PAIRED)]
    assert found.value == pytest.approx(gains[0] / gains[1], rel=1e-9)


def test_groups_that_vary_in_one_task_alone_are_not_drawn_again() -> None:
    varied = VARIED & (~PAIRED | (LABELS[VARIED & PAIRED][0] == LABELS))
    found = advise(replace(GROUPS, varied=varied, gradients=GRADIENTS * varied[:, None]))
    assert "fewer than two tasks" in found.not_evaluable["drift_ratio_resampled"]


@pytest.mark.parametrize(
    ("changes", "figure", "reason"),
    [
        ({"gradients": 0 * GRADIENTS}, "trace_ratio", "every gradient is zero"),
        ({"gradients": RNG.normal(size=GRADIENTS.shape)}, "along_ratio", "not told from zero"),
    ],
)
def test_gradients_without_a_signal_have_no_direction(
    changes: dict[str, Any], figure: str, reason: str
) -> None:
    found = advise(replace(GROUPS, **changes))
    assert figure not in found.figures
    assert reason in found.not_evaluable[figure]


def test_few_tasks_have_no_trace() -> None:
    few = LABELS < 3
    found = advise(GroupEvidence(PAIRED[few], LABELS[few], VARIED[few], 8, gradients=GRADIENTS[few]))
    assert "tasks at least" in found.not_evaluable["trace_ratio"]
    assert "drift_ratio" in found.figures


def test_inner_products_of_scaled_groups_say_nothing_of_plain_ascent() -> None:
    products = replace(GROUPS, gram=GRADIENTS @ GRADIENTS.T, gradients=None)
    assert advise(products, "gradient").verdict == "not_evaluable"


@pytest.mark.parametrize(("spread", "is_said"), [((3.0, 0.5), True), ((0.5, 3.0), False)])
def test_inner_products_say_where_pairing_raises_the_variance(
    spread: tuple[float, float], is_said: bool
) -> None:
    evidence, _ = made(*spread, 60)
    gram = evidence.gradients @ evidence.gradients.T
    found = advise(replace(evidence, gram=gram, gradients=None, common_mean=False))
    assert any("raises the variance along" in sentence for sentence in found.sentences) == is_said
