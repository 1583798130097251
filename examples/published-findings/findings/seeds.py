"""Finding: what as many seeds as the study has can say about H2a and H3."""

from __future__ import annotations

from fractions import Fraction
from statistics import stdev
from typing import TYPE_CHECKING

from findings.evidence import Analysis, Unavailable
from toolkit.estimators import auc
from toolkit.estimators.secondary import (
    LARGEST_SAMPLE,
    minimal_detectable_effect,
    sign_flip,
    t_interval,
)

if TYPE_CHECKING:
    from findings.evidence import Curve, Evidence

CONDITION, NOISY, CHALLENGE = "C2", "faults_p025", "challenge"
CHALLENGE_STEPS = (40, 60, 80)
LEVEL, POWER = 0.95, 0.8


def few_seeds(evidence: Evidence) -> Analysis:
    """Student's intervals over seeds for H2a and H3, what they could detect, and the smallest sign-flip p."""
    learning = [auc(list(c.values()), list(c)) for c in evidence.differences(CONDITION, NOISY).values()]
    recovery = [_recovery(c) for c in evidence.differences(CONDITION, CHALLENGE).values()]
    if max(len(learning), len(recovery)) > LARGEST_SAMPLE:
        raise Unavailable(f"more than {LARGEST_SAMPLE} seeds: every sign pattern is not listed")
    intervals = [list(t_interval([float(d) for d in values], LEVEL)) for values in (learning, recovery)]
    flips = [sign_flip(values) for values in (learning, recovery)]
    detectable = [_detectable(values) for values in (learning, recovery)]
    zero = [low <= 0 <= high for low, high in intervals]
    meaning = {2: "Both hold zero", 1: "One holds zero", 0: "Neither holds zero"}[sum(zero)]
    return Analysis(
        {
            "seeds": len(learning),
            "level": LEVEL,
            "H2a_differences": [float(d) for d in learning],
            "H2a_t_interval": intervals[0],
            "H2a_sign_flip_p": float(flips[0].p_value),
            "H2a_detectable_effect": detectable[0],
            "H3_differences": [float(d) for d in recovery],
            "H3_t_interval": intervals[1],
            "H3_sign_flip_p": float(flips[1].p_value),
            "H3_detectable_effect": detectable[1],
            "smallest_sign_flip_p": float(flips[0].smallest),
            "power": POWER,
        },
        f"With seeds as the only unit the {LEVEL:.0%} t intervals are {_shown(intervals[0])} for H2a and "
        f"{_shown(intervals[1])} for H3. {meaning}, and with {len(learning)} seeds an exact two-sided "
        f"sign-flip test cannot give a p below {float(flips[0].smallest):g}. A t test would find, with "
        f"probability about {POWER:g}, an effect of {detectable[0]:.2f} for H2a and {detectable[1]:.2f} for "
        "H3: this many seeds cannot tell a moderate effect from none.",
        "runs, evaluations; Student's t over seeds, all sign patterns",
    )


def _recovery(curve: Curve) -> Fraction:
    if not set(CHALLENGE_STEPS) <= set(curve):
        raise Unavailable(f"no challenge evaluation at every one of the steps {CHALLENGE_STEPS}")
    return sum((curve[step] for step in CHALLENGE_STEPS), Fraction(0)) / len(CHALLENGE_STEPS)


def _detectable(values: list[Fraction]) -> float:
    spread = stdev(map(float, values))
    if not spread:
        raise Unavailable("the seeds' differences are all alike: they have no spread")
    return minimal_detectable_effect(spread, len(values), LEVEL, POWER)


def _shown(interval: list[float]) -> str:
    return f"[{interval[0]:.3f}, {interval[1]:.3f}]"
