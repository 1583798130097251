"""Identities that tie the figures, and their intervals."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.unit.lab.probe import small
from tests.unit.lab.probe.small import CLEAN, DESIGN, FAULTY
from toolkit.errors import VerificationError
from toolkit.lab.probe.design import DESIGNS, INDEPENDENT, OUTCOME, PAIRED, TRANSITION
from toolkit.lab.probe.evidence import GramEvidence
from toolkit.lab.probe.figures import (
    TOLERANCE,
    Identity,
    Resampling,
    check_identities,
    estimates,
    identities,
    interval_rows,
    probe_row,
    reference_tokens,
    sides,
)
from toolkit.lab.probe.moments import moments
from toolkit.registers.arrow import Row
from toolkit.registers.row_tables import FIGURES
from toolkit.structs import replace

MORE = 1 + 1e-6


class Parts:
    """What the identities tie, to be changed part by part."""

    def __init__(self, noise: str, evidence: GramEvidence | None = None) -> None:
        both = small.measured()
        self.evidence: GramEvidence = evidence or both[noise]
        given = self.evidence
        groups = None if noise == OUTCOME else small.groups()
        self.moments: Any = moments(
            *(noise, given.rewards, given.weights, given.gram), flip_rate=DESIGN.flip_rate, groups=groups
        )
        self.found = estimates(given, self.moments, reference_tokens(both, DESIGN))

    def residuals(self) -> dict[str, float]:
        """Return name → largest residual."""
        largest: dict[str, float] = {}
        for one in identities(self.evidence, self.moments, self.found, DESIGN.flip_rate):
            largest[one.name] = max(largest.get(one.name, 0.0), one.residual)
        return largest

    def array(self, kind: str, *of: Any) -> np.ndarray:
        """Return a view of what is moved: figures of MC, closed forms, or stored squared lengths of means."""
        if kind == "second":
            return self.found["MC"].second[of[0]]
        if kind == "products":
            return self.found["MC"].products[of]
        estimator, design, *tasks = of
        if kind == "closed":
            return self.moments[estimator][design].second
        at = DESIGNS[self.evidence.noise].index(design)
        return np.einsum("tt->t", self.evidence.products[estimator][at, :, at, :])[tasks[0]]


MEANS = "mean gradients agree across designs"
CHANGES: list[tuple[str, str, tuple[Any, ...]]] = [
    (OUTCOME, "trace_P = (1-q) L - (1-q)² M", ("second", "paired")),
    (OUTCOME, "trace_I = trace_P + q(1-q)(R - L)", ("second", "independent")),
    (OUTCOME, "within_P = q(1-q) L", ("second", "paired")),
    (OUTCOME, "within_P = q(1-q) L", ("products", "paired", "paired")),
    (OUTCOME, "within_I = q(1-q) R", ("second", "independent")),
    (OUTCOME, "within_I = q(1-q) R", ("products", "independent", "independent")),
    (OUTCOME, "between_P = between_I", ("products", "paired", "paired")),
    (OUTCOME, "between_P = between_I", ("products", "independent", "independent")),
    (OUTCOME, MEANS, ("products", "paired", "paired")),
    (OUTCOME, MEANS, ("products", "paired", "independent")),
    (OUTCOME, MEANS, ("products", "independent", "independent")),
]
CHANGES += [
    (OUTCOME, f"closed form = all masks, {estimator} {design}", ("closed", estimator, design))
    for estimator in ("MC", "SW")
    for design in DESIGNS[OUTCOME]
]
CHANGES += [
    (noise, f"‖E g_t‖² = c'Kc{part}, {estimator} {design}", ("stored", estimator, design, tasks))
    for estimator in ("MC", "SW")
    for noise in (OUTCOME, TRANSITION)
    for design in DESIGNS[noise]
    for part, tasks in (("", slice(None)), (" task by task", slice(0, 1)))
]


@pytest.mark.parametrize("noise", [OUTCOME, TRANSITION])
def test_every_identity_holds_and_has_a_change_that_breaks_it(noise: str) -> None:
    found = Parts(noise).residuals()
    assert set(found) == {name for where, name, _ in CHANGES if where == noise}
    assert max(found.values()) <= TOLERANCE / 100


def test_rounding_where_everything_cancels_is_no_difference() -> None:
    """Every group succeeds or fails as a whole."""
    measured = small.measured()[OUTCOME]
    rewards = np.ones_like(measured.rewards)
    rewards[0] = 0
    products = {name: np.zeros_like(one) for name, one in measured.products.items()}
    found = Parts(OUTCOME, replace(measured, rewards=rewards, products=products)).residuals()
    assert max(found.values()) <= TOLERANCE / 100


@pytest.mark.parametrize(
    ("noise", "name", "moved"), CHANGES, ids=[f"{noise}: {name}" for noise, name, _ in CHANGES]
)
def test_an_identity_fails_when_what_it_ties_is_moved(noise: str, name: str, moved: tuple) -> None:
    parts = Parts(noise)
    array = parts.array(*moved)
    array *= MORE
    found = parts.residuals()[name]
    assert found > TOLERANCE * 10
    with pytest.raises(VerificationError) as caught:
        check_identities((Identity(name, found),), "base@0, all")
    assert name in str(caught.value)
    assert "base@0, all" in str(caught.value)


def reward(evidence: GramEvidence) -> None:
    evidence.rewards[0, 0] = 1 - evidence.rewards[0, 0]


def across_tasks(evidence: GramEvidence) -> None:
    """A task's own Gram matrix does not hold these; both designs' mean gradients are the same."""
    evidence.products["MC"][0, 0, 0, 1:] *= 1 + 1e-4


@pytest.mark.parametrize(
    ("noise", "change"),
    [
        (TRANSITION, reward),
        (OUTCOME, across_tasks),
        *((noise, lambda one: one.gram[0].__imul__(MORE)) for noise in DESIGNS),
        *((noise, lambda one: one.products["SW"].__imul__(MORE)) for noise in DESIGNS),
    ],
)
def test_changed_evidence_is_found_by_what_is_computed_from_it(noise, change) -> None:
    """The whole way, from what is moved in the register."""
    evidence = small.measured()
    change(evidence[noise])
    with pytest.raises(VerificationError, match="not tied"):
        check_identities(small.derived(evidence)[1], "here")


def test_the_largest_residual_is_returned_and_none_that_is_no_number_passes() -> None:
    assert check_identities((Identity("a", 1e-12), Identity("b", 3e-11), Identity("c", 0.0)), "here") == 3e-11
    with pytest.raises(VerificationError, match="not tied"):
        check_identities((Identity("one", float("nan")),), "here")


def test_where_nothing_was_sampled_but_failures_all_identities_hold() -> None:
    """Zero on both sides is a tie, not a division by zero."""
    evidence = small.measured()
    clean = evidence[OUTCOME]
    products = {name: found * 0 for name, found in clean.products.items()}
    evidence[OUTCOME] = replace(clean, rewards=clean.rewards * 0, products=products)
    rows, tied = small.derived(evidence)
    assert check_identities(tied, "here") < TOLERANCE
    (row,) = (r for r in rows["probe"] if (r["noise"], r["estimator"]) == (OUTCOME, "MC"))
    assert (row["trace_paired"], row["condition_right"], row["cosine"]) == (0, 0, None)
    undefined = [r for r in rows["probe_intervals"] if r["noise"] == OUTCOME]
    assert all(r["value"] is None and r["low"] is None for r in undefined)


TASKS = {OUTCOME: CLEAN.tasks, TRANSITION: FAULTY.tasks}
KINDS = [(noise, estimator) for noise in (OUTCOME, TRANSITION) for estimator in ("MC", "SW")]
BOTH = pytest.mark.parametrize(("noise", "estimator"), KINDS)
SIX_DIGITS = 1e-5


def intervals(noise: str, estimator: str) -> dict[str, Row]:
    rows = small.derived(small.measured())[0]["probe_intervals"]
    return {r["figure"]: r for r in rows if (r["noise"], r["estimator"]) == (noise, estimator)}


def chosen(evidence: GramEvidence, tasks: Sequence[int]) -> GramEvidence:
    """Return the evidence of some tasks alone; a task may be there more than once."""
    at = list(tasks)
    return replace(
        evidence,
        rewards=evidence.rewards[at],
        tokens=evidence.tokens[at],
        weights=evidence.weights[at],
        gram=evidence.gram[at],
        products={name: found[:, at][:, :, :, at] for name, found in evidence.products.items()},
    )


def recomputed(noise: str, estimator: str, tasks: Sequence[int]) -> dict[str, float]:
    """Return every ratio and share of the summary row of some tasks alone."""
    both = small.measured()
    evidence = chosen(both[noise], tasks)
    listed = None
    if noise == TRANSITION:
        every = small.groups().items()
        listed = {design: {at: groups[task] for at, task in enumerate(tasks)} for design, groups in every}
    by_design = moments(
        noise, evidence.rewards, evidence.weights, evidence.gram, flip_rate=DESIGN.flip_rate, groups=listed
    )
    found = estimates(evidence, by_design, reference_tokens(both, DESIGN))[estimator]
    row = probe_row(evidence, estimator, found, DESIGN.flip_rate)
    figures = {
        "trace_ratio": row["trace_paired"] / row["trace_independent"],
        "within_ratio": row["trace_within_paired"] / row["trace_within_independent"],
    }
    if (noise, estimator) == (OUTCOME, "MC"):
        figures["condition_ratio"] = row["condition_left"] / row["condition_right"]
    if noise == TRANSITION:
        figures["trace_ratio_stratified"] = row["trace_paired"] / row["trace_stratified"]
    for design in DESIGNS[noise]:
        figures[f"within_share_{design}"] = row[f"trace_within_{design}"] / row[f"trace_{design}"]
    return figures


@BOTH
def test_every_figure_has_a_row_with_the_ratio_of_the_summary_row(noise: str, estimator: str) -> None:
    rows, ratios = intervals(noise, estimator), recomputed(noise, estimator, range(TASKS[noise]))
    assert set(rows) == {*ratios, *(f"norm_over_floor_{design}" for design in DESIGNS[noise])}
    assert set(rows) <= set(FIGURES)
    assert {row["tasks"] for row in rows.values()} == {TASKS[noise]}
    for name, value in ratios.items():
        assert rows[name]["value"] == pytest.approx(value, rel=SIX_DIGITS), name
        assert rows[name]["value"] == float(f"{rows[name]['value']:.6g}")


@BOTH
def test_the_jackknife_recomputes_everything_without_each_task(noise: str, estimator: str) -> None:
    tasks, found = TASKS[noise], intervals(noise, estimator)
    whole = recomputed(noise, estimator, range(tasks))
    left_out = [recomputed(noise, estimator, [t for t in range(tasks) if t != out]) for out in range(tasks)]
    for name, value in whole.items():
        values = [one[name] for one in left_out]
        mean = sum(values) / tasks
        spread = math.sqrt((tasks - 1) / tasks * sum((v - mean) ** 2 for v in values))
        row = found[name]
        assert row["standard_error"] == pytest.approx(spread, rel=SIX_DIGITS, abs=1e-12), name
        corrected = tasks * value - (tasks - 1) * mean
        assert row["corrected"] == pytest.approx(corrected, rel=SIX_DIGITS, abs=1e-12), name


@BOTH
def test_norms_stand_beside_their_own_sampling_variance(noise: str, estimator: str) -> None:
    rows = small.derived(small.measured())[0]["probe"]
    (summary,) = (r for r in rows if (r["noise"], r["estimator"]) == (noise, estimator))
    number = CLEAN.tasks if noise == OUTCOME else FAULTY.tasks
    for design in DESIGNS[noise]:
        row = intervals(noise, estimator)[f"norm_over_floor_{design}"]
        ratio = summary[f"mean_norm_{design}"] ** 2 * number / summary[f"trace_between_{design}"]
        assert row["value"] == pytest.approx(ratio, rel=SIX_DIGITS)
        assert row["pure_noise"] == pytest.approx(number / (number - 1), rel=SIX_DIGITS)
        assert row["debiased"] == pytest.approx(1 - number / (number - 1) / ratio, rel=1e-4, abs=1e-6)
        assert [row[name] for name in ("low", "high", "standard_error", "corrected")] == [None] * 4


def test_a_figure_that_a_resample_does_not_define_has_its_value_alone() -> None:
    """One mixed group among groups without a success: some resample meets none but these."""
    both = small.measured()
    clean = both[OUTCOME]
    rewards = clean.rewards * 0
    rewards[2, 0] = 1
    only = np.arange(CLEAN.tasks) == 2
    products = {e: found * only[:, None, None] * only for e, found in clean.products.items()}
    clean = replace(clean, rewards=rewards, products=products)
    by_design = moments(OUTCOME, rewards, clean.weights, clean.gram, flip_rate=0.1, groups=None)
    found = estimates(clean, by_design, 1.0)["MC"]
    how = Resampling(0.95, 200, 13, 1)
    rows = interval_rows(OUTCOME, "MC", found, sides(clean), how)
    resampled = {row["figure"]: row for row in rows if not row["figure"].startswith("norm_over_floor")}
    assert len(resampled) == 5
    paired, independent = (found.trace(design) for design in (PAIRED, INDEPENDENT))
    ratio = float(paired.total / independent.total)
    assert resampled["trace_ratio"]["value"] == pytest.approx(ratio, rel=1e-5)
    for row in resampled.values():
        assert [row[name] for name in ("low", "high", "standard_error", "corrected")] == [None] * 4
