"""The theory page: why paired rollouts can help or hurt a gradient, with figures of the estimators."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from toolkit.estimators import (
    bandit,
    bandit_drift,
    equal_variance_batch,
    exact_drift,
    orthogonal_condition,
    spurious_rate,
    success_probability,
)
from toolkit.estimators.theory import Number
from toolkit.findings import at
from toolkit.registers.columns import ARMS
from toolkit.site.exhibits.theory_charts import (
    condition_by_success,
    drift_ratios,
    orthogonal_sides,
    over_flips,
    spurious_rates,
)
from toolkit.site.material import Exhibit, Material
from toolkit.site.page import Entry, Link, Page

NAME = "theory.html"
# The paper's example, sec:condition "Aligned scalar scores": θ = 0, G = 8, q = 0.1.
LOGIT = 0.0
GROUP_SIZE = 8
FLIP_RATE = Fraction(1, 10)
# What the sliders reach: beyond it the lines only go on as they do.
LARGEST_LOGIT = 4.0
LARGEST_GROUP = 32
LARGEST_FLIP_RATE = Fraction(1, 2)
SIZES = (4, 8, 16, 32)
DESIGNS = {"independent", "paired"}
BATCHES = (1, 2, 4, 8, 16, 24)
DRIFT_RATES = (Fraction(1, 10), Fraction(1, 5))


def pages(material: Material) -> Iterator[Page]:
    """Yield the theory page, where a study compares the two designs that it is about."""
    compared = [c.study for c in material.cases if set(c.study.manifest.words.get("arm", ARMS)) >= DESIGNS]
    if not compared:
        return
    success = success_probability(LOGIT)
    example = bandit(success, GROUP_SIZE, FLIP_RATE)
    rates = [Fraction(i, 25) * LARGEST_FLIP_RATE for i in range(26)]
    # Points of a drawing, as doubles: exact fractions take three times as long and look the same.
    swept = tuple(bandit(float(success), GROUP_SIZE, float(rate)) for rate in rates)
    chances = [Fraction(i, 50) for i in range(1, 50)]
    sides = [bandit(float(chance), GROUP_SIZE, float(FLIP_RATE)) for chance in chances]
    spurious = tuple(
        (size, tuple((float(rate), float(spurious_rate(rate, size))) for rate in rates)) for size in SIZES
    )
    orthogonal = [orthogonal_condition(k, GROUP_SIZE) for k in range(GROUP_SIZE + 1)]
    yield Page(
        NAME,
        "theory.html",
        "Theory: when does pairing help a gradient?",
        "theory",
        {
            "b": example,
            "settings": {
                "logit": LOGIT,
                "group_size": GROUP_SIZE,
                "flip_rate": float(FLIP_RATE),
                "largest_logit": LARGEST_LOGIT,
                "largest_group": LARGEST_GROUP,
                "largest_flip_rate": float(LARGEST_FLIP_RATE),
            },
            "spurious": spurious_rate(FLIP_RATE, GROUP_SIZE),
            "contrast_chart": over_flips(
                "reward contrast",
                "variance of a reward contrast (reward²)",
                GROUP_SIZE,
                _by_design(rates, [b.contrast_variance for b in swept]),
            ),
            "trace_chart": over_flips(
                "group gradient",
                "variance of the mean-centred gradient (score²)",
                GROUP_SIZE,
                _by_design(rates, [b.mean_centred_trace for b in swept]),
            ),
            "condition_chart": condition_by_success(
                GROUP_SIZE,
                tuple(
                    (float(chance), float(b.clean_norm_squared), float(b.score_spread))
                    for chance, b in zip(chances, sides, strict=True)
                ),
            ),
            "orthogonal_chart": orthogonal_sides(
                GROUP_SIZE, tuple((k, float(c.left), float(c.right)) for k, c in enumerate(orthogonal))
            ),
            "spurious_chart": spurious_rates(float(FLIP_RATE), spurious),
            "drifts": [(batch, bandit_drift(success, GROUP_SIZE, FLIP_RATE, batch)) for batch in BATCHES],
            "drift_chart": drift_ratios(float(FLIP_RATE), _drift_curves(success)),
            "apart": trace_and_drift(),
            "findings": at(material.findings, "theory"),
            "probes": [study.name for study in compared if study.has("probe")],
        },
        ("theory",),
    )


EXHIBIT = Exhibit(
    "toolkit.site.exhibits",
    pages,
    Entry("theory", "Theory", NAME),
    explains={
        "condition": Link("The theory derives it.", NAME),
        "drift": Link("The theory derives it.", NAME),
        "spurious": Link("Try other rates.", NAME),
    },
)


@dataclass(frozen=True)
class Apart:
    """An example in which the trace falls and the drift falls with it.

    One coordinate has a mean gradient of one; the others have none, only variance. Pairing multiplies the
    variance of the first by `raised` and that of the others by `lowered`; it is one otherwise.
    """

    silent: int = 20
    raised: float = 1.5
    lowered: float = 0.5
    batch: int = 2
    trace_ratio: float = 0.0
    drift_ratio: float = 0.0
    equal_batch: float = 0.0


def trace_and_drift() -> Apart:
    """Return the example with its figures."""
    mean = [1.0] + [0.0] * Apart.silent
    independent = [1.0] * len(mean)
    paired = [Apart.raised] + [Apart.lowered] * Apart.silent
    ratio = sum(paired) / sum(independent)
    drifts = [exact_drift(mean, variance, Apart.batch) for variance in (paired, independent)]
    return Apart(
        trace_ratio=ratio,
        drift_ratio=drifts[0] / drifts[1],
        equal_batch=equal_variance_batch(Apart.batch, ratio),
    )


def _drift_curves(success: Number) -> tuple[tuple[float, tuple[tuple[float, float], ...]], ...]:
    """Return flip rate → (groups in a step, drift paired over independent)."""
    curves = []
    for rate in DRIFT_RATES:
        drifts = [(batch, bandit_drift(success, GROUP_SIZE, rate, batch).mean_centred) for batch in BATCHES]
        curves.append((float(rate), tuple((float(b), float(d.paired / d.independent)) for b, d in drifts)))
    return tuple(curves)


def _by_design(rates: Sequence[Fraction], variances: Sequence[Any]) -> tuple[tuple[float, float, float], ...]:
    return tuple(
        (float(q), float(v.independent), float(v.paired)) for q, v in zip(rates, variances, strict=True)
    )
