"""Finding: a pair of runs that is unmatched before training, and what it contributes."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from findings.evidence import INDEPENDENT, PAIRED, Analysis, Unavailable
from toolkit.estimators import auc, auc_weights
from toolkit.estimators.secondary import leave_one_out_means

if TYPE_CHECKING:
    from findings.evidence import Curve, Evidence

CONDITION, REGIME = "C2", "faults_p025"
# H2a as registered: the smallest mean AUC difference that passes.
THRESHOLD = Fraction(3, 100)


def start(evidence: Evidence) -> Analysis:
    """Take the untrained policy's evaluation out of H2a's AUC differences, in three ways.

    Matched: both arms have the same success at step 0. Renormalized: its weight is left out and the others
    are scaled to one. Later: the trapezoidal mean over the remaining steps.
    """
    curves = evidence.differences(CONDITION, REGIME)
    if any(min(curve) != 0 or len(curve) < 3 for curve in curves.values()):
        raise Unavailable("a learning curve does not begin at step 0, or has no two steps after it")
    registered = [_area(curve) for curve in curves.values()]
    weights = [auc_weights(list(curve))[0] for curve in curves.values()]
    matched = [_area({**curve, 0: Fraction(0)}) for curve in curves.values()]
    renormalized = [area / (1 - weight) for area, weight in zip(matched, weights, strict=True)]
    later = [_area({step: d for step, d in curve.items() if step}) for curve in curves.values()]
    left_out = leave_one_out_means(registered)
    shares = [weight * curve[0] for weight, curve in zip(weights, curves.values(), strict=True)]
    readings = {"matched": matched, "renormalized": renormalized, "later": later}
    return Analysis(
        {
            "seeds": list(curves),
            **_levels_at_start(evidence, list(curves)),
            "auc_differences": _floats(registered),
            "contributions_of_step_0": _floats(shares),
            "mean": float(_mean(registered)),
            **{f"{name}_differences": _floats(values) for name, values in readings.items()},
            **{f"{name}_mean": float(_mean(values)) for name, values in readings.items()},
            "later_weights": _floats(list(auc_weights([s for s in next(iter(curves.values())) if s]))),
            "meets_mean_and_every_seed": [
                name for name, values in {"registered": registered, **readings}.items() if _meets(values)
            ],
            "leave_one_seed_out_means": _floats(left_out),
        },
        f"{_unmatched(list(curves), registered, shares)} With both arms alike at step 0 the mean is "
        f"{_shown(_mean(matched))}, with the other weights scaled to one {_shown(_mean(renormalized))}, and "
        f"over the later steps alone, trapezoidal, {_shown(_mean(later))}. {_verdicts(registered, readings)} "
        f"Leaving out one seed moves the mean between {_shown(min(left_out))} and {_shown(max(left_out))}.",
        "runs, evaluations (noisy validation); exact fractions",
    )


def _area(curve: Curve) -> Fraction:
    return auc(list(curve.values()), list(curve))


def _mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _floats(values: list[Fraction] | tuple[Fraction, ...]) -> list[float]:
    return [float(value) for value in values]


def _shown(value: Fraction) -> str:
    return f"{float(value):.4f}"


def _meets(values: list[Fraction]) -> bool:
    """Whether the two criteria of H2a on the learning curve hold."""
    return _mean(values) >= THRESHOLD and min(values) > 0


def _levels_at_start(evidence: Evidence, seeds: list[int]) -> dict[str, list[float]]:
    levels = {}
    for arm in (PAIRED, INDEPENDENT):
        runs = evidence.runs(CONDITION, arm)
        levels[f"{arm}_at_step_0"] = [
            float(evidence.curve(runs[seed]["run_id"], REGIME)[0]) for seed in seeds
        ]
    return levels


def _unmatched(seeds: list[int], areas: list[Fraction], shares: list[Fraction]) -> str:
    found = [
        f"Seed {seed}'s arms differ before any training, which gives {_shown(share)} of its {_shown(area)}."
        for seed, area, share in zip(seeds, areas, shares, strict=True)
        if share
    ]
    return " ".join(found) or "At step 0 every seed's arms are alike."


def _verdicts(registered: list[Fraction], readings: dict[str, list[Fraction]]) -> str:
    told = "holds" if _meets(registered) else "does not hold"
    other = [name for name, values in readings.items() if _meets(values) != _meets(registered)]
    rule = f"H2a's demand on the curves (mean at least {float(THRESHOLD)}, every seed positive) {told}"
    if not other:
        return f"{rule}, with and without step 0."
    return f"{rule}; only the reading {' and '.join(map(repr, other))} would turn that."
