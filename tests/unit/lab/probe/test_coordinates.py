"""The drift of a probe: sums by coordinate against explicit gradients, in memory and through files."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.unit.lab.probe import small
from tests.unit.lab.probe.designs import FLIP_RATE, design, groups_of
from tests.unit.lab.probe.test_spool import simulated, through_files
from toolkit.estimators import drift_interval
from toolkit.estimators.coordinates import TaskSums
from toolkit.lab.probe.coordinates import Progress, Steps, mean_squares, steps_of
from toolkit.lab.probe.design import ALL, COMPARED, INDEPENDENT, OUTCOME, PAIRED, TRANSITION, RolloutSet
from toolkit.lab.probe.evidence import gather, mean_gradients
from toolkit.lab.probe.moments import ESTIMATORS, MC, SW, forms, moments
from toolkit.lab.probe.rollouts import Scored

ONE = design()
GROUPS = groups_of(ONE)
STEPS = Steps((1, 24), 0.95)
EPSILON = 1e-4


def groups(rollouts: RolloutSet) -> dict | None:
    return GROUPS if rollouts.noise == TRANSITION else None


def observed(
    scored: Scored, rollouts: RolloutSet, kind: str, task: int
) -> list[tuple[float, list[int], list]]:
    """Return how likely each observed group of a task is, which rollouts it has, and what was observed."""
    if rollouts.noise == TRANSITION:
        listed = GROUPS[kind][task]
        return [(1 / len(listed), list(g), [scored.rewards[task, at] for at in g]) for g in listed]
    outcomes, everybody = scored.rewards[task], list(range(rollouts.rollouts))
    if kind == PAIRED:
        return [(1 - FLIP_RATE, everybody, list(outcomes)), (FLIP_RATE, everybody, [0.0] * len(everybody))]
    return [
        (np.prod([1 - FLIP_RATE if kept else FLIP_RATE for kept in mask]), everybody, list(mask * outcomes))
        for mask in map(np.array, product((0, 1), repeat=len(everybody)))
    ]


def explicit(scored: Scored, rollouts: RolloutSet, estimator: str, kind: str) -> TaskSums:
    """Return what each task's group gradient is on average and in square, group by group."""
    tasks, _, size = scored.scores.shape
    totals, squares = np.zeros((2, tasks, size))
    for task in range(tasks):
        for chance, members, rewards in observed(scored, rollouts, kind, task):
            advantages = np.array(rewards) - np.mean(rewards)
            weights = np.full(len(members), 1 / len(members))
            if estimator == SW:
                advantages = advantages / (np.std(rewards, ddof=1) + EPSILON)
                weights = scored.weights[task, members]
            gradient = (advantages * weights) @ scored.scores[task, members].astype(float)
            totals[task] += chance * gradient
            squares[task] += chance * gradient**2
    return TaskSums(np.ones(tasks), totals, squares)


@pytest.mark.parametrize("rollouts", ONE.sets, ids=[OUTCOME, TRANSITION])
def test_sums_by_coordinate_are_those_of_explicit_gradients(rollouts: RolloutSet) -> None:
    scored = simulated(rollouts, 11)
    given = {"flip_rate": FLIP_RATE, "groups": groups(rollouts)}
    by_design = moments(
        rollouts.noise,
        scored.rewards,
        scored.weights,
        np.zeros((*scored.rewards.shape, rollouts.rollouts)),
        **given,
    )
    progress = Progress(rollouts.noise, scored.rewards, scored.weights, **given)
    for part in (slice(0, 4), slice(4, 11)):
        block = scored.scores[..., part]
        progress.add(block, {name: mean_gradients(block, designs) for name, designs in by_design.items()})
    for estimator, kind in product(ESTIMATORS, COMPARED):
        expected, found = explicit(scored, rollouts, estimator, kind), progress.sums()[estimator][kind]
        np.testing.assert_allclose(found.totals, expected.totals, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.squares, expected.squares, rtol=1e-9, atol=1e-12)
        assert found.groups.tolist() == expected.groups.tolist()


@pytest.mark.parametrize("rollouts", ONE.sets, ids=[OUTCOME, TRANSITION])
def test_rows_are_the_drift_of_explicit_gradients(rollouts: RolloutSet) -> None:
    scored = simulated(rollouts, 11)
    (evidence,) = gather(
        *(rollouts.noise, scored, {ALL: slice(0, 11)}, [ALL]),
        flip_rate=FLIP_RATE,
        groups=groups(rollouts),
        steps=STEPS,
    ).values()
    assert [(row["estimator"], row["prompts_per_step"]) for row in evidence.drifts] == [
        *product(ESTIMATORS, STEPS.batches)
    ]
    for row in evidence.drifts:
        of = {kind: explicit(scored, rollouts, row["estimator"], kind) for kind in COMPARED}
        found = drift_interval(
            *(of[PAIRED], of[INDEPENDENT], row["prompts_per_step"], "adam"),
            along=None if row["estimator"] == MC else explicit(scored, rollouts, MC, INDEPENDENT),
            common_mean=row["estimator"] == MC,
            level=0.95,
        )
        assert row["noise"] == rollouts.noise
        assert row["drift_paired"] == pytest.approx(found.paired.value, rel=1e-5)
        assert row["drift_independent"] == pytest.approx(found.independent.value, rel=1e-5)
        for name, part in (("ratio", "value"), ("corrected",) * 2, ("low",) * 2, ("high",) * 2):
            expected = getattr(found.ratio, part)
            assert (row[name] is None) is (expected is None)
            assert expected is None or row[name] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("rollouts", ONE.sets, ids=[OUTCOME, TRANSITION])
def test_through_files_it_is_that_of_memory(tmp_path: Path, rollouts: RolloutSet) -> None:
    scored = simulated(rollouts, 301)
    given = {"flip_rate": FLIP_RATE, "groups": groups(rollouts), "steps": STEPS}
    expected = gather(rollouts.noise, scored, {ALL: slice(0, 301)}, [ALL], **given)[ALL].drifts
    found = through_files(tmp_path, rollouts, scored, steps=STEPS).drifts
    assert len(found) == len(expected) == 4
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name, value in other.items():
            assert one[name] == (pytest.approx(value, rel=1e-4) if isinstance(value, float) else value)


def test_mean_squares_of_a_form_that_is_not_symmetric_are_its_own() -> None:
    rng = np.random.default_rng(4)
    scores, form = rng.normal(size=(2, 5, 7)).astype(np.float32), rng.normal(size=(2, 5, 5))
    expected = np.einsum("tij,tik,tjk->tk", form, scores.astype(float), scores.astype(float))
    np.testing.assert_allclose(mean_squares(scores, [form, 0 * form]), [expected, 0 * expected], rtol=1e-12)


def test_what_cancels_is_no_gradient() -> None:
    """Where everybody does the same, advantages sum to zero; rounding would leave a step of full size."""
    form = np.outer([0.1, 0.2, -0.3], [0.1, 0.2, -0.3])[None]
    alike = np.full((1, 3, 2), [0.3, 1e3], dtype=np.float32)
    assert (np.einsum("tij,tik,tjk->tk", form, alike.astype(float), alike.astype(float)) != 0).any()
    assert (mean_squares(alike, [form]) == 0).all()
    alike[0, 0] += np.float32(1e-3) * alike[0, 0]
    assert (mean_squares(alike, [form]) > 0).all()


def test_squares_over_all_coordinates_are_the_moments_of_the_evidence() -> None:
    for noise, evidence in small.measured().items():
        given = {
            "flip_rate": small.DESIGN.flip_rate,
            "groups": small.groups() if noise == TRANSITION else None,
        }
        by_design = moments(noise, evidence.rewards, evidence.weights, evidence.gram, **given)
        quadratic = forms(noise, evidence.rewards, evidence.weights, **given)
        scores = small.scored(noise).scores
        for estimator in ESTIMATORS:
            squares = mean_squares(scores, list(quadratic[estimator].values())).sum(axis=2)
            for kind, of_tasks in zip(COMPARED, squares, strict=True):
                np.testing.assert_allclose(of_tasks, by_design[estimator][kind].second, rtol=1e-9, atol=1e-12)


def test_a_probe_tells_the_drift_of_its_own_steps_and_of_smaller_ones() -> None:
    assert steps_of(small.DESIGN).batches == (1, 2, 8, 24)
    for evidence in small.measured().values():
        assert [row["prompts_per_step"] for row in evidence.drifts] == 2 * [1, 2, 8, 24]
