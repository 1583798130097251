"""The identities that tie a probe's figures together, each with its residual.

Under outcome noise the mean-centred estimator is tied exactly, whatever was sampled: a figure that breaks one
of these was not computed from the evidence beside it.

Source:
    Paper prop:condition and app:probe; M = ‖mean clean gradient‖².
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from toolkit.errors import VerificationError
from toolkit.estimators import enumerated_outcome_moments
from toolkit.estimators.moments import LARGEST_ENUMERATION
from toolkit.lab.probe.design import DESIGNS, INDEPENDENT, OUTCOME, PAIRED, Design
from toolkit.lab.probe.evidence import GramEvidence
from toolkit.lab.probe.figures import Estimated
from toolkit.lab.probe.moments import MC, SW, ByEstimator
from toolkit.lab.probe.summary import Estimate, sides

TOLERANCE = 1e-9
SMALLEST = 1e-6
"""Part of the largest product of two scores: where all that is summed cancels, rounding is left."""


class Identity(NamedTuple):
    """An identity and how far it is from holding."""

    name: str  # the identity
    # |left - right| over the larger side, or over `SMALLEST` of the evidence if that is larger
    residual: float


def identities(
    evidence: GramEvidence, by_design: ByEstimator, found: Mapping[str, Estimate], flip_rate: float
) -> tuple[Identity, ...]:
    """Return the identities of one checkpoint's evidence under one noise."""
    least = SMALLEST * float(np.abs(evidence.gram).max())
    listed = list(_of_means(evidence, by_design, least))
    if evidence.noise == OUTCOME:
        listed += _of_outcome(evidence, found[MC], flip_rate, least)
        listed += _of_masks(evidence, by_design, flip_rate, least)
    return tuple(listed)


def tied(estimated: Sequence[Estimated], design: Design) -> tuple[Identity, ...]:
    """Return the identities of one checkpoint, noise by noise."""
    return tuple(
        identity
        for each in estimated
        for identity in identities(each.evidence, each.by_design, each.by_estimator, design.flip_rate)
    )


def check_identities(listed: tuple[Identity, ...], where: str) -> float:
    """Check that all identities hold to a relative 1e-9, and return the largest residual."""
    for identity in listed:
        if not identity.residual <= TOLERANCE:
            raise VerificationError(
                f"the probe's figures are not tied: {identity.name}",
                expected=f"a relative residual of at most {TOLERANCE:g}",
                found=f"{identity.residual:.3g}",
                where=where,
                remedy="the evidence was changed, or the code that computes from it",
            )
    return max(identity.residual for identity in listed)


def _of_outcome(evidence: GramEvidence, found: Estimate, q: float, least: float) -> Iterator[Identity]:
    both = sides(evidence)
    left, right = both.left.mean(), both.right.mean()
    paired, independent = found.trace(PAIRED), found.trace(INDEPENDENT)
    # Both designs' mean gradients are (1 - q) times the clean one.
    clean = found.products[PAIRED, PAIRED].sum() / len(both.left) ** 2 / (1 - q) ** 2
    yield _tied(least, "trace_P = (1-q) L - (1-q)² M", paired.total, (1 - q) * left - (1 - q) ** 2 * clean)
    removed = q * (1 - q) * (right - left)
    yield _tied(least, "trace_I = trace_P + q(1-q)(R - L)", independent.total, paired.total + removed)
    yield _tied(least, "within_P = q(1-q) L", paired.within, q * (1 - q) * left)
    yield _tied(least, "within_I = q(1-q) R", independent.within, q * (1 - q) * right)
    yield _tied(least, "between_P = between_I", paired.between, independent.between)
    for name in ((PAIRED, INDEPENDENT), (INDEPENDENT, INDEPENDENT)):
        yield _tied(
            least,
            "mean gradients agree across designs",
            found.products[name].sum(),
            found.products[PAIRED, PAIRED].sum(),
        )


def _of_masks(evidence: GramEvidence, by_design: ByEstimator, q: float, least: float) -> Iterator[Identity]:
    """Compare the closed form with every mask listed."""
    if evidence.rewards.shape[1] > LARGEST_ENUMERATION:
        return
    for estimator, closed in by_design.items():
        weights = evidence.weights if estimator == SW else None
        enumerated = enumerated_outcome_moments(
            evidence.rewards, evidence.gram, q, weights=weights, standardized=estimator == SW
        )
        for name, other in ((PAIRED, enumerated.paired), (INDEPENDENT, enumerated.independent)):
            second = closed[name].second
            yield _tied(
                least, f"closed form = all masks, {estimator} {name}", second.mean(), other.second.mean()
            )


def _of_means(evidence: GramEvidence, by_design: ByEstimator, least: float) -> Iterator[Identity]:
    """Compare each task's squared mean gradient with what its own Gram matrix gives."""
    for estimator, designs in by_design.items():
        for at, design in enumerate(DESIGNS[evidence.noise]):
            c = designs[design].coefficients
            own = (c[:, :, None] * evidence.gram * c[:, None, :]).sum(axis=(1, 2))
            stored = np.diagonal(evidence.products[estimator][at, :, at, :])
            yield _tied(least, f"‖E g_t‖² = c'Kc, {estimator} {design}", own.sum(), stored.sum())
            scale = max(float(np.abs(own).max()), float(np.abs(stored).max()), least)
            worst = float(np.abs(own - stored).max())
            yield Identity(f"‖E g_t‖² = c'Kc task by task, {estimator} {design}", worst and worst / scale)


def _tied(least: float, name: str, left: object, right: object) -> Identity:
    """Return an identity; `least` is the least size that a difference is held to."""
    value, other = float(left), float(right)  # type: ignore[arg-type]
    largest = max(abs(value), abs(other), least)
    return Identity(name, abs(value - other) / largest if largest else 0.0)
