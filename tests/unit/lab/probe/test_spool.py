"""Evidence and drift of scores that pass through files: the same as in memory, within bounded memory."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from tests.unit.lab.probe import small
from tests.unit.lab.probe.designs import FLIP_RATE, design, draw, gradients, groups_of, recorded_numbers
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.estimators import drift_interval
from toolkit.estimators.coordinates import TaskSums
from toolkit.lab.probe import evidence as spooling
from toolkit.lab.probe.design import (
    ALL,
    COMPARED,
    INDEPENDENT,
    OUTCOME,
    PAIRED,
    TRANSITION,
    RolloutSet,
    Steps,
)
from toolkit.lab.probe.evidence import GramEvidence, Scored, gather, mean_gradients, spooled
from toolkit.lab.probe.moments import ESTIMATORS, MC, Progress, mean_squares, moments

ONE = design()
GROUPS = groups_of(ONE)
NEAR = 1e-12
STEPS, TWO_STEPS = Steps((2,), 0.95), Steps((1, 24), 0.95)


def groups(rollouts: RolloutSet) -> dict | None:
    return GROUPS if rollouts.noise == TRANSITION else None


def spool(folder: Path, rollouts: RolloutSet, coordinates: int, **changed: Any) -> Any:
    given = {"tasks": rollouts.tasks, "rollouts": rollouts.rollouts, "coordinates": coordinates}
    given["groups"] = groups(rollouts)
    return spooled(folder, rollouts.noise, **given | {"flip_rate": FLIP_RATE} | changed)


def through_files(folder: Path, rollouts: RolloutSet, scored: Scored, **given: Any) -> GramEvidence:
    with spool(folder, rollouts, scored.scores.shape[-1], **given) as opened:
        for task in range(rollouts.tasks):
            numbers = (scored.rewards[task], scored.weights[task], scored.tokens[ALL][task])
            opened.add(*numbers, iter(scored.scores[task]))
        return opened.evidence()


def simulated(rollouts: RolloutSet, coordinates: int) -> Scored:
    rewards, weights, tokens = recorded_numbers(rollouts.tasks, rollouts.rollouts)
    return Scored(rewards, {ALL: tokens}, weights, draw(rollouts.tasks, rollouts.rollouts, coordinates))


@pytest.mark.parametrize("rollouts", ONE.sets, ids=[OUTCOME, TRANSITION])
def test_evidence_through_files_is_that_of_memory(tmp_path, rollouts, monkeypatch) -> None:
    monkeypatch.setattr(spooling, "SMALLEST_WIDTH", 64)
    monkeypatch.setattr(spooling, "BLOCK_ENTRIES", 2048)
    scored = simulated(rollouts, 2001)
    given = {"flip_rate": FLIP_RATE, "groups": groups(rollouts), "steps": TWO_STEPS}
    expected = gather(rollouts.noise, scored, {ALL: slice(0, 2001)}, [ALL], **given)[ALL]
    found = through_files(tmp_path, rollouts, scored, steps=TWO_STEPS)
    assert not list(tmp_path.iterdir())
    for name in ("noise", "rewards", "tokens", "weights"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), strict=True)
    assert set(found.products) == set(ESTIMATORS)
    for one, other in (
        (found.gram, expected.gram),
        *((found.products[e], expected.products[e]) for e in ESTIMATORS),
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=NEAR * np.abs(other).max())
    assert len(found.drifts) == 4
    for one, other in zip(found.drifts, expected.drifts, strict=True):
        assert one == {n: pytest.approx(v, rel=1e-4) if isinstance(v, float) else v for n, v in other.items()}


def add(folder: Path, numbers: list, *tasks: Iterator) -> None:
    with spool(folder, ONE.outcome, 50) as opened:
        for scores in tasks:
            opened.add(*numbers, scores)


def bad_scores(at: int, value: Any) -> Iterator[np.ndarray]:
    for number, row in enumerate(draw(4, 50)):
        if number == at and np.isscalar(value):
            row[17] = value
        yield value if number == at and not np.isscalar(value) else row


@pytest.mark.parametrize(
    ("scores", "error", "text", "where"),
    [
        (bad_scores(2, np.nan), DamagedError, "not finite", "outcome noise, task 1, row 2, coordinate 17"),
        (bad_scores(3, draw(49)), DamagedError, "mismatched", "outcome noise, task 1, rollout 3"),
        (bad_scores(1, np.zeros(50)), UsageError, "single precision", "outcome noise, task 1, rollout 1"),
        (iter(draw(3, 50)), UsageError, "another number", "outcome noise, task 1"),
        (iter(draw(5, 50)), UsageError, "another number", "outcome noise, task 1"),
        (iter(()), UsageError, "another number", "outcome noise, task 1"),
    ],
    ids=["nan", "width", "type", "few", "many", "none"],
)
def test_bad_scores_are_refused_and_leave_no_file(tmp_path, scores, error, text, where) -> None:
    numbers = [part[0] for part in recorded_numbers(1, 4)]
    with pytest.raises(error, match=text) as caught:
        add(tmp_path, numbers, iter(draw(4, 50)), scores)
    assert caught.value.where == where
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("changed", [(0.5, 1.0, 7), (1.0, np.nan, 7), (1.0, -1.0, 7)])
def test_bad_records_are_refused(tmp_path: Path, changed: tuple) -> None:
    numbers = [part[0].copy() for part in recorded_numbers(1, 4)]
    with pytest.raises(UsageError, match="another number"):
        add(tmp_path, [part[:3] for part in numbers], iter(draw(4, 50)))
    for part, value in zip(numbers, changed, strict=True):
        part[2] = value
    with pytest.raises(DamagedError, match=r"not an outcome|not a ratio") as caught:
        add(tmp_path, numbers, iter(draw(4, 50)))
    assert caught.value.where == "rollout 2"


def test_a_missing_task_is_named_and_one_too_many_is_refused(tmp_path: Path) -> None:
    numbers = [part[0] for part in recorded_numbers(1, 4)]
    with spool(tmp_path, ONE.outcome, 50, tasks=2) as opened:
        opened.add(*numbers, iter(draw(4, 50)))
        with pytest.raises(IncompleteError, match="tasks are missing") as caught:
            opened.evidence()
        assert (caught.value.expected, caught.value.found) == ("2 tasks", "1")
        opened.add(*numbers, iter(draw(4, 50)))
        with pytest.raises(UsageError, match="more tasks"):
            opened.add(*numbers, iter(draw(4, 50)))


@pytest.mark.parametrize(
    ("rollouts", "coordinates"),
    [(ONE.outcome._replace(tasks=0), 5), (ONE.outcome._replace(per_schedule=0), 5), (ONE.outcome, 0)],
)
def test_nothing_to_spool_is_refused(tmp_path: Path, rollouts: RolloutSet, coordinates: int) -> None:
    with pytest.raises(UsageError, match="no scores"), spool(tmp_path, rollouts, coordinates):
        pass


def test_a_folder_that_does_not_take_the_scores_is_refused(tmp_path, monkeypatch) -> None:
    with pytest.raises(UsageError, match="does not exist"), spool(tmp_path / "none", ONE.outcome, 50):
        pass
    monkeypatch.setattr(spooling.shutil, "disk_usage", lambda _: SimpleNamespace(free=1e9))
    with pytest.raises(UsageError, match="does not take") as caught, spool(tmp_path, ONE.outcome, 10_000_000):
        pass
    assert caught.value.expected == "a folder to write to, with 2.1 GB of space"
    assert caught.value.found == "1.0 GB free"


def test_a_disk_that_fills_up_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(spooling.os, "posix_fallocate", full)
    with pytest.raises(UsageError, match="does not take") as caught, spool(tmp_path, ONE.outcome, 50):
        pass
    assert caught.value.found == "No space left on device"
    assert not list(tmp_path.iterdir())


def explicit(scored: Scored, rollouts: RolloutSet, estimator: str, kind: str) -> TaskSums:
    """Return what each task's group gradient is on average and in square, group by group."""
    made = [gradients(scored, groups(rollouts), estimator, kind, task) for task in range(rollouts.tasks)]
    totals, squares = (np.array([chances @ every**n for every, chances in made]) for n in (1, 2))
    return TaskSums(np.ones(rollouts.tasks), totals, squares)


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
        steps=TWO_STEPS,
    ).values()
    assert [(row["estimator"], row["prompts_per_step"]) for row in evidence.drifts] == [
        *product(ESTIMATORS, TWO_STEPS.batches)
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


def test_a_probe_tells_the_drift_of_its_own_steps_and_of_smaller_ones() -> None:
    assert small.DESIGN.steps.batches == (1, 2, 8, 24)
    for evidence in small.measured().values():
        assert [row["prompts_per_step"] for row in evidence.drifts] == 2 * [1, 2, 8, 24]
