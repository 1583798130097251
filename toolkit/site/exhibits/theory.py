"""The theory page: why paired rollouts can help or hurt a gradient, with figures of the estimators."""

from collections.abc import Iterator, Mapping, Sequence
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
from toolkit.site.charts import svg
from toolkit.site.charts.plots import Axis, Frame, Line, Spot, lines
from toolkit.site.charts.svg import LEFT, RIGHT, Chart, drawn
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
BATCHES = (1, 2, 4, 8, 16, 24)
DRIFT_RATES = (Fraction(1, 10), Fraction(1, 5))
DESIGNS = ("independent", "paired")
LOOKS = ("k5", "k0", "k2", "k4")  # colours of up to four group sizes
Points = Sequence[tuple[float, float]]


def pages(material: Material) -> Iterator[Page]:
    """Yield the theory page, where a study compares the two designs that it is about."""
    compared = [
        c.study for c in material.cases if set(DESIGNS) <= set(c.study.manifest.words.get("arm", ARMS))
    ]
    if not compared:
        return
    success = success_probability(LOGIT)
    example = bandit(success, GROUP_SIZE, FLIP_RATE)
    rates = [Fraction(i, 25) * LARGEST_FLIP_RATE for i in range(26)]
    # Points of a drawing, as doubles: exact fractions take three times as long and look the same.
    swept = tuple(bandit(float(success), GROUP_SIZE, float(rate)) for rate in rates)
    chances = [Fraction(i, 50) for i in range(1, 50)]
    sides = [bandit(float(chance), GROUP_SIZE, float(FLIP_RATE)) for chance in chances]
    spurious = {size: [(float(rate), float(spurious_rate(rate, size))) for rate in rates] for size in SIZES}
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
                [(float(q), b.contrast_variance) for q, b in zip(rates, swept, strict=True)],
            ),
            "trace_chart": over_flips(
                "group gradient",
                "variance of the mean-centred gradient (score²)",
                [(float(q), b.mean_centred_trace) for q, b in zip(rates, swept, strict=True)],
            ),
            "condition_chart": condition_by_success(
                [
                    (float(chance), float(b.clean_norm_squared), float(b.score_spread))
                    for chance, b in zip(chances, sides, strict=True)
                ]
            ),
            "orthogonal_chart": orthogonal_sides(
                [(k, float(c.left), float(c.right)) for k, c in enumerate(orthogonal)]
            ),
            "spurious_chart": spurious_rates(spurious),
            "drifts": [(batch, bandit_drift(success, GROUP_SIZE, FLIP_RATE, batch)) for batch in BATCHES],
            "drift_chart": drift_ratios({float(rate): _drifts(success, rate) for rate in DRIFT_RATES}),
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


def trace_and_drift(
    silent: int = 20, raised: float = 1.5, lowered: float = 0.5, batch: int = 2
) -> dict[str, float]:
    """Return an example in which the trace falls and the drift falls with it, with its figures.

    One coordinate has a mean gradient of one; the others have none, only variance. Pairing multiplies the
    variance of the first by `raised` and that of the others by `lowered`; it is one otherwise.
    """
    mean = [1.0] + [0.0] * silent
    independent = [1.0] * len(mean)
    paired = [raised] + [lowered] * silent
    ratio = sum(paired) / sum(independent)
    drifts = [exact_drift(mean, variance, batch) for variance in (paired, independent)]
    return {
        "silent": silent,
        "raised": raised,
        "lowered": lowered,
        "batch": batch,
        "trace_ratio": ratio,
        "drift_ratio": drifts[0] / drifts[1],
        "equal_batch": equal_variance_batch(batch, ratio),
    }


def _drifts(success: Number, rate: Fraction) -> Points:
    """Return (groups in a step, drift paired over independent)."""
    drifts = [(batch, bandit_drift(success, GROUP_SIZE, rate, batch).mean_centred) for batch in BATCHES]
    return [(float(batch), float(d.paired / d.independent)) for batch, d in drifts]


def over_flips(what: str, unit: str, variances: Sequence[tuple[float, Any]]) -> Chart:
    """Draw a variance over flip rates, a line a design."""
    verbs = {_compare(variance.paired, variance.independent) for _, variance in variances[1:]}
    if len(verbs) == 1:
        title = f"Pairing {verbs.pop()} the variance of the {what} at every flip rate"
    else:
        title = f"Pairing lowers or raises the variance of the {what}, by flip rate"
    rate, last = variances[-1]
    caption = (
        f"Even odds of success, {GROUP_SIZE} rollouts: {unit} by flip rate, a line a design; at "
        f"{rate:g} it is {float(last.independent):.4g} independent and {float(last.paired):.4g} paired."
    )
    frame = Frame(Axis("flip rate q"), Axis(unit), y_values=(0.0,))
    curves = [
        (name, svg.ARMS[name], [(q, float(getattr(variance, name))) for q, variance in variances])
        for name in DESIGNS
    ]
    return _exact(title, caption, frame, curves)


def condition_by_success(points: Sequence[tuple[float, float, float]]) -> Chart:
    """Draw both sides of the exact condition of the bandit over its success probability."""
    below = [chance for chance, left, right in points if left < right]
    if not below:
        title = "In the bandit pairing never lowers the gradient's variance"
    elif len(below) == len(points):
        title = "In the bandit pairing always lowers the gradient's variance"
    else:
        title = f"In the bandit pairing lowers the gradient's variance only below {max(below):g} success"
    frame = Frame(Axis("success probability p"), Axis("score²"), y_values=(0.0,))
    caption = (
        f"Both sides of the exact condition for {GROUP_SIZE} rollouts of the bandit, by success probability: "
        "where L, the mean squared length of the clean gradient, is below R, the score spread of the "
        "successes, pairing lowers the variance."
    )
    return _exact(title, caption, frame, _sides(points))


def orthogonal_sides(points: Sequence[tuple[float, float, float]]) -> Chart:
    """Draw both sides of the exact condition where scores are orthogonal, by successes in the group."""
    first = next((k for k, left, right in points if left < right), None)
    title = (
        "With orthogonal scores pairing never helps"
        if first is None
        else f"With orthogonal scores pairing helps from {first} successes on"
    )
    frame = Frame(Axis("true successes k"), Axis("score²"), y_values=(0.0,))
    caption = (
        f"Both sides of the exact condition for a group of {GROUP_SIZE} whose scores are orthogonal and of "
        "length one, by true successes in the group."
    )
    return _exact(title, caption, frame, _sides(points), dotted=True)


def spurious_rates(curves: Mapping[int, Points]) -> Chart:
    """Draw how often flips alone make an all-correct group's rewards vary, a line a group size."""
    shown = float(FLIP_RATE)
    named = {size: dict(points)[shown] for size, points in curves.items()}
    words = ", ".join(f"{rate:.0%} of groups of {size}" for size, rate in named.items())
    size = sorted(named)[len(named) // 2 - 1]
    title = (
        f"At a flip rate of {shown:g}, {named[size]:.0%} of all-correct groups of {size} look as if they "
        "differed"
    )
    caption = (
        "Probability that independent flips make the rewards of a group vary although every rollout "
        f"succeeded, by flip rate, a line a group size: at {shown:g}, {words}. Under the paired design it is "
        "zero (dashed)."
    )
    frame = Frame(Axis("flip rate q"), Axis("probability", "percent"), rules=((0.0, "paired: never"),))
    looks = zip(curves.items(), LOOKS, strict=False)
    return _exact(title, caption, frame, [(f"G = {size}", look, points) for (size, points), look in looks])


def drift_ratios(curves: Mapping[float, Points]) -> Chart:
    """Draw the bandit's drift under Adam, paired over independent, by groups in a step."""
    shown = float(FLIP_RATE)
    (few, first), *_, (many, last) = curves[shown]
    title = (
        f"Pairing slows Adam in the bandit by {1 - first:.1%} with {few:g} group a step, by {1 - last:.1%} "
        f"with {many:g}"
    )
    caption = (
        "Drift of the bandit under Adam, paired over independent, by groups in a step, a line a flip rate: "
        f"at {shown:g}, {first:.4f} with {few:g} and {last:.4f} with {many:g}. A plain gradient step has "
        "ratio 1."
    )
    frame = Frame(Axis("groups in a step B"), Axis("drift, paired / independent"), rules=((1.0, ""),))
    looks = zip(curves.items(), LOOKS[1:], strict=False)
    named = [(f"q = {rate:g}", look, points) for (rate, points), look in looks]
    return _exact(title, caption, frame, named, dotted=True)


def _sides(points: Sequence[tuple[float, float, float]]) -> list[tuple[str, str, Points]]:
    named = (("L, clean gradient", LEFT), ("R, score spread", RIGHT))
    return [(name, look, [(float(p[0]), p[i]) for p in points]) for i, (name, look) in enumerate(named, 1)]


def _exact(
    title: str, caption: str, frame: Frame, curves: Sequence[tuple[str, str, Points]], *, dotted: bool = False
) -> Chart:
    """Draw lines of a name and a colour, which say their points, or, without dots, their ends."""
    held = []
    for name, look, points in curves:
        spots = tuple(
            Spot(x, y, f"{name}: {y:.4g} at {frame.across.title} {x:g}", ((name, x, y),)) for x, y in points
        )
        held.append(Line(name, spots, look, "" if dotted else f"{spots[0].says}; {spots[-1].says}"))
    exact = "Exact values: nothing is sampled, so no interval is drawn."
    return drawn(title, f"{caption} {exact}", ("line", "x", "y"), lines(held, frame))


def _compare(paired: float, independent: float) -> str:
    return "lowers" if paired < independent else "raises" if paired > independent else "leaves"
