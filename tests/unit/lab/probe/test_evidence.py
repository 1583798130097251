"""Evidence against explicit vectors, and as rows: what was measured comes back, damage is named."""

import math

import numpy as np
import pytest

from tests.unit.lab.probe import small
from tests.unit.lab.probe.designs import gradients
from tests.unit.lab.probe.small import CLEAN, DESIGN, FAULTY
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.lab.policies.loglinear import layout
from toolkit.lab.probe.checkpoint import coordinate_blocks, weight_figures
from toolkit.lab.probe.design import ACTIONS, ALL, DESIGNS, OUTCOME, TRANSITION, index_rows, read_groups
from toolkit.lab.probe.evidence import GramEvidence, gather, read_evidence
from toolkit.registers.arrow import Row, to_arrow, to_rows
from toolkit.registers.schema import TABLES
from toolkit.structs import replace

NAMES = pytest.mark.parametrize("name", [ALL, ACTIONS])
NOISES = pytest.mark.parametrize("noise", [OUTCOME, TRANSITION])
ACTION_COUNT = len(layout(0).actions)
PARTS = coordinate_blocks(layout(small.SURFACE_TOKENS), (ALL, ACTIONS))


def vectors(noise: str, name: str) -> np.ndarray:
    """Return the scores in double precision, shape (T, N, P)."""
    whole = small.scored(noise).scores.astype(float)
    return whole if name == ALL else whole[..., :ACTION_COUNT]


def explicit(noise: str, name: str, estimator: str, design: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return each task's gradients under a design, and how likely they are."""
    whole = small.scored(noise)
    scored = replace(whole, scores=vectors(noise, name))
    listed = small.groups() if noise == TRANSITION else None
    return [gradients(scored, listed, estimator, design, task) for task in range(len(whole.rewards))]


@NAMES
@NOISES
@pytest.mark.parametrize("estimator", ["MC", "SW"])
def test_products_are_those_of_the_mean_gradients(noise: str, name: str, estimator: str) -> None:
    tasks, designs = len(small.scored(noise).rewards), DESIGNS[noise]
    made = [each for design in designs for each in explicit(noise, name, estimator, design)]
    means = np.array([chances @ every for every, chances in made])
    expected = (means @ means.T).reshape(len(designs), tasks, len(designs), tasks)
    stored = small.measured(name)[noise].products[estimator]
    np.testing.assert_allclose(stored, expected, rtol=1e-10, atol=1e-12)


@NOISES
@pytest.mark.parametrize("estimator", ["MC", "SW"])
def test_derived_traces_are_those_of_the_explicit_gradients(noise: str, estimator: str) -> None:
    """The whole way: from vectors alone to the figures of `probe`, SW over T_ref."""
    rows, _ = small.derived(small.measured())
    (row,) = (one for one in rows["probe"] if (one["noise"], one["estimator"]) == (noise, estimator))
    every = [small.scored(one).tokens[ALL] for one in (OUTCOME, TRANSITION)]
    mean_tokens = sum(part.sum() for part in every) / sum(part.size for part in every)
    scale = 1.0 if estimator == "MC" else DESIGN.rollouts_per_step * mean_tokens
    pooled = {}
    for design in DESIGNS[noise]:
        made = explicit(noise, ALL, estimator, design)
        means = [chances @ every for every, chances in made]
        second = np.mean([chances @ (every**2).sum(axis=1) for every, chances in made])
        own = np.mean([m @ m for m in means])
        pooled[design] = mean = np.mean(means, axis=0)
        squared = mean @ mean
        parts = {"trace": second - squared, "trace_within": second - own, "trace_between": own - squared}
        for name, value in (parts | {"mean_norm": math.sqrt(squared) * scale}).items():
            assert row[f"{name}_{design}"] == pytest.approx(value / scale**2, rel=1e-9)
    one, other = pooled["paired"], pooled["independent"]
    cosine = one @ other / math.sqrt((one @ one) * (other @ other))
    assert row["cosine"] == pytest.approx(cosine, abs=1e-9)
    if noise == OUTCOME:
        assert row["trace_stratified"] is None


# ---------------------------------------------------------------------------------------- what is refused


LACKING = [(3, 12, "a schedule is missing"), (3, 3, "were not played"), (2, 16, "not of the tasks that were")]


@pytest.mark.parametrize(("tasks", "rollouts", "problem"), LACKING)
def test_scores_that_lack_a_task_or_a_rollout_are_refused(tasks: int, rollouts: int, problem: str) -> None:
    whole = small.scored(TRANSITION)
    rows = {name: getattr(whole, name)[:tasks, :rollouts] for name in ("rewards", "weights", "scores")}
    lacking = replace(whole, **rows)
    with pytest.raises(IncompleteError, match=problem):
        gather(TRANSITION, lacking, PARTS, (ALL,), flip_rate=0.1, groups=small.groups())


def test_other_coordinates_than_the_scores_have_are_refused() -> None:
    scored = small.scored(OUTCOME)
    with pytest.raises(UsageError, match="coordinate sets are not those of the scores") as caught:
        gather(OUTCOME, scored, {ALL: slice(0, 7)}, (ALL,), flip_rate=0.1, groups=None)
    assert f"{scored.scores.shape[-1]} coordinates" in str(caught.value)


@pytest.mark.parametrize("part", ["weights", "rewards", "gram", "MC", "SW"])
def test_evidence_that_is_not_finite_is_refused(part: str) -> None:
    evidence = small.measured()[OUTCOME]
    values = evidence.products[part] if part in evidence.products else getattr(evidence, part)
    values.flat[1] = math.nan
    with pytest.raises(DamagedError, match="is not finite") as caught:
        replace(evidence)
    assert part in str(caught.value)


@pytest.mark.parametrize("part", ["weights", "tokens", "gram", "products"])
def test_evidence_of_another_shape_is_refused(part: str) -> None:
    evidence = small.measured()[OUTCOME]
    value = getattr(evidence, part)
    changed = {e: p[:, 1:] for e, p in value.items()} if part == "products" else value[1:]
    with pytest.raises(DamagedError, match="another shape"):
        replace(evidence, **{part: changed})


def test_a_probe_without_tokens_has_no_normalizer() -> None:
    evidence = small.measured()
    none = {noise: replace(one, tokens=one.tokens * 0) for noise, one in evidence.items()}
    with pytest.raises(DamagedError, match="no rollout of the probe has a token"):
        small.derived(none)


def test_weights_are_summed_up_over_those_that_are_not_masked() -> None:
    found = weight_figures(np.array([[0.0, 0.5], [1.5, 0.0]]))
    assert found == {"masked_rollouts": 2, "weight_mean": 1.0, "weight_min": 0.5, "weight_max": 1.5}
    with pytest.raises(DamagedError, match="importance weight 0"):
        weight_figures(np.zeros((CLEAN.tasks, 4)))


SETS = {OUTCOME: CLEAN, TRANSITION: FAULTY}
LISTS = ("rewards", "tokens", "weights", "gram", "products_mc", "products_sw")


def rows_of(noise: str, name: str = ALL) -> list[Row]:
    return [row for row in small.gram_rows(name) if row["noise"] == noise]


def stored(table: str, rows: list[Row]) -> list[Row]:
    """Return rows as a register holds them."""
    return to_rows(to_arrow(TABLES[table], rows))


def from_register(name: str = ALL) -> dict[str, GramEvidence]:
    rows = stored("probe_gram", small.gram_rows(name))
    return {
        noise: read_evidence([row for row in rows if row["noise"] == noise], rollouts)
        for noise, rollouts in SETS.items()
    }


@NAMES
@NOISES
def test_evidence_comes_back_from_its_register_bit_by_bit(noise: str, name: str) -> None:
    found, expected = from_register(name)[noise], small.measured(name)[noise]
    assert found.noise == expected.noise
    for part in ("rewards", "tokens", "weights", "gram"):
        one, other = getattr(found, part), getattr(expected, part)
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes(), part
    assert set(found.products) == set(expected.products)
    for estimator, products in expected.products.items():
        assert found.products[estimator].tobytes() == products.tobytes()


@NAMES
def test_the_register_alone_gives_every_figure_exactly(name: str) -> None:
    groups = read_groups(stored("probe_indices", index_rows(DESIGN)), FAULTY)
    assert groups == small.groups()
    measured, read = (small.derived(one) for one in (small.measured(name), from_register(name)))
    assert read == measured
    assert {table: len(rows) for table, rows in read[0].items()} == {
        "probe": 4,
        "probe_intervals": 2 * (2 + 2 + 2) + 1 + 2 * (3 + 3 + 3),
        "probe_clean_tasks": CLEAN.tasks,
        "probe_diagnostic_tasks": FAULTY.tasks,
    }


def test_rows_by_task_sum_to_the_summary() -> None:
    rows = small.derived(small.measured())[0]
    (summary,) = (r for r in rows["probe"] if (r["noise"], r["estimator"]) == (OUTCOME, "MC"))
    scores, rewards = small.scored(OUTCOME).scores.astype(float), small.scored(OUTCOME).rewards
    for task, row in enumerate(rows["probe_clean_tasks"]):
        centred = scores[task] - scores[task].mean(axis=0)
        clean = rewards[task] @ centred / CLEAN.per_schedule
        spread = rewards[task] @ (centred**2).sum(axis=1) / CLEAN.per_schedule**2
        assert row["task_id"] == f"validation:{task}"
        assert row["successes"] == rewards[task].sum()
        assert row["condition_left"] == pytest.approx(clean @ clean, rel=1e-9, abs=1e-12)
        assert row["condition_right"] == pytest.approx(spread, rel=1e-9, abs=1e-12)
    for side in ("condition_left", "condition_right"):
        mean = math.fsum(row[side] for row in rows["probe_clean_tasks"]) / CLEAN.tasks
        assert summary[side] == pytest.approx(mean, rel=1e-12)
    assert abs(summary["identity_residual"]) < 1e-12
    (summary,) = (r for r in rows["probe"] if (r["noise"], r["estimator"]) == (TRANSITION, "MC"))
    for design, number in (("paired", 4), ("independent", 6), ("stratified", 6)):
        total = math.fsum(row[f"squared_norms_{design}"] for row in rows["probe_diagnostic_tasks"])
        second = summary[f"trace_{design}"] + summary[f"mean_norm_{design}"] ** 2
        assert total / (number * FAULTY.tasks) == pytest.approx(second, rel=1e-10)


# ----------------------------------------------------------------------------------- what is damaged


@pytest.mark.parametrize("column", LISTS)
@pytest.mark.parametrize("change", [lambda v: v[:-1], lambda v: [*v, v[0]], lambda _: []])
@NOISES
def test_a_row_of_another_length_is_named(noise: str, column: str, change: object) -> None:
    rows = rows_of(noise)
    rows[1][column] = change(rows[1][column])
    with pytest.raises(DamagedError, match=f"probe_gram.{column} has another length") as caught:
        read_evidence(rows, SETS[noise])
    assert f"base@{small.STEP}, all, {noise}, task 1" in str(caught.value)


@pytest.mark.parametrize("kept", [[0, 1], [0, 2], [0, 1, 2, 2], [2, 1, 0]])
@NOISES
def test_a_missing_task_is_no_evidence(noise: str, kept: list[int]) -> None:
    rows, more = rows_of(noise)[:3], rows_of(noise)[3:]
    with pytest.raises(IncompleteError, match=f"under {noise} noise lacks a task") as caught:
        read_evidence([rows[at] for at in kept] + more, SETS[noise])
    assert f"tasks 0 to {SETS[noise].tasks - 1}" in str(caught.value)
