"""The identities of a probe: each holds, and each fails when what it ties is moved by one millionth."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.unit.lab.probe import small
from tests.unit.lab.probe.small import DESIGN
from toolkit.errors import VerificationError
from toolkit.lab.probe.design import DESIGNS, OUTCOME, TRANSITION
from toolkit.lab.probe.evidence import GramEvidence
from toolkit.lab.probe.figures import reference_tokens
from toolkit.lab.probe.identities import TOLERANCE, Identity, check_identities, identities
from toolkit.lab.probe.moments import moments
from toolkit.lab.probe.summary import Estimate, estimates

Change = Callable[["Parts"], None]

MORE = 1 + 1e-6


class Parts:
    """What the identities tie, to be changed part by part.

    Args:
        noise: `outcome` or `transition`.
        evidence: other evidence of that noise than the measured.
    """

    def __init__(self, noise: str, evidence: GramEvidence | None = None) -> None:
        both = small.measured()
        self.evidence: GramEvidence = evidence or both[noise]
        self.moments: Any = moments(
            noise,
            self.evidence.rewards,
            self.evidence.weights,
            self.evidence.gram,
            flip_rate=DESIGN.flip_rate,
            groups=None if noise == OUTCOME else small.groups(),
        )
        self.found: dict[str, Estimate] = estimates(
            self.evidence, self.moments, reference_tokens(both, DESIGN)
        )

    def residuals(self) -> dict[str, float]:
        """Return name → largest residual."""
        largest: dict[str, float] = {}
        for one in identities(self.evidence, self.moments, self.found, DESIGN.flip_rate):
            largest[one.name] = max(largest.get(one.name, 0.0), one.residual)
        return largest


def without_contrast() -> Parts:
    """Return parts in which every group succeeds or fails as a whole: all sums cancel but for rounding."""
    measured = small.measured()[OUTCOME]
    rewards = np.ones_like(measured.rewards)
    rewards[0] = 0
    products = {name: np.zeros_like(one) for name, one in measured.products.items()}
    return Parts(OUTCOME, replace(measured, rewards=rewards, products=products))


def second(design: str) -> Change:
    """Move the figure E‖g‖² of MC under a design."""

    def change(parts: Parts) -> None:
        parts.found["MC"].second[design] *= MORE

    return change


def products(one: str, other: str) -> Change:
    """Move the figures' products of the mean gradients of two designs, MC."""

    def change(parts: Parts) -> None:
        parts.found["MC"].products[one, other] *= MORE

    return change


def closed(estimator: str, design: str) -> Change:
    """Move the closed form of E‖g_t‖²."""

    def change(parts: Parts) -> None:
        by_design = parts.moments[estimator]
        by_design[design] = replace(by_design[design], second=by_design[design].second * MORE)

    return change


def stored(noise: str, estimator: str, design: str, tasks: slice) -> Change:
    """Move the stored squared lengths of tasks' mean gradients."""

    def change(parts: Parts) -> None:
        at = DESIGNS[noise].index(design)
        diagonal = np.einsum("tt->t", parts.evidence.products[estimator][at, :, at, :])
        diagonal[tasks] *= MORE

    return change


MEANS = "mean gradients agree across designs"
CHANGES: list[tuple[str, str, Change]] = [
    (OUTCOME, "trace_P = (1-q) L - (1-q)² M", second("paired")),
    (OUTCOME, "trace_I = trace_P + q(1-q)(R - L)", second("independent")),
    (OUTCOME, "within_P = q(1-q) L", second("paired")),
    (OUTCOME, "within_P = q(1-q) L", products("paired", "paired")),
    (OUTCOME, "within_I = q(1-q) R", second("independent")),
    (OUTCOME, "within_I = q(1-q) R", products("independent", "independent")),
    (OUTCOME, "between_P = between_I", products("paired", "paired")),
    (OUTCOME, "between_P = between_I", products("independent", "independent")),
    (OUTCOME, MEANS, products("paired", "paired")),
    (OUTCOME, MEANS, products("paired", "independent")),
    (OUTCOME, MEANS, products("independent", "independent")),
]
CHANGES += [
    (OUTCOME, f"closed form = all masks, {estimator} {design}", closed(estimator, design))
    for estimator in ("MC", "SW")
    for design in DESIGNS[OUTCOME]
]
CHANGES += [
    (noise, f"‖E g_t‖² = c'Kc{part}, {estimator} {design}", stored(noise, estimator, design, tasks))
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
    assert max(without_contrast().residuals().values()) <= TOLERANCE / 100


@pytest.mark.parametrize(
    ("noise", "name", "change"), CHANGES, ids=[f"{noise}: {name}" for noise, name, _ in CHANGES]
)
def test_an_identity_fails_when_what_it_ties_is_moved(noise: str, name: str, change: Change) -> None:
    parts = Parts(noise)
    change(parts)
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
def test_changed_evidence_is_found_by_what_is_computed_from_it(
    noise: str, change: Callable[[GramEvidence], object]
) -> None:
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
