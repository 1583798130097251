"""Charts of the theory: exact values, so that nothing is sampled and no interval is drawn."""

from collections.abc import Sequence

from toolkit.site.charts.plots import Frame, Line, Spot, lines
from toolkit.site.charts.scale import Axis
from toolkit.site.charts.svg import ARMS, LEFT, RIGHT, Chart, drawn

EXACT = "Exact values: nothing is sampled, so no interval is drawn."
DESIGNS = ("independent", "paired")
COLUMNS = ("line", "x", "y")
SIZES = ("k5", "k0", "k2", "k4")  # colours of up to four group sizes


def over_flips(
    what: str, unit: str, size: int, points: tuple[tuple[float, float, float], ...]
) -> Chart | None:
    """Draw a variance over flip rates, a line a design."""
    verbs = {_compare(paired, independent) for _, independent, paired in points[1:]}
    if len(verbs) == 1:
        title = f"Pairing {verbs.pop()} the variance of the {what} at every flip rate"
    else:
        title = f"Pairing lowers or raises the variance of the {what}, by flip rate"
    last = points[-1]
    frame = Frame(Axis("flip rate q"), Axis(unit), y_values=(0.0,))
    held = [
        _line(name, ARMS[name], [(p[0], p[i]) for p in points], frame) for i, name in enumerate(DESIGNS, 1)
    ]
    caption = (
        f"Even odds of success, {size} rollouts: {unit} by flip rate, a line a design; at "
        f"{last[0]:g} it is {last[1]:.4g} independent and {last[2]:.4g} paired. {EXACT}"
    )
    return drawn(title, caption, COLUMNS, lines(held, frame))


def condition_by_success(size: int, points: tuple[tuple[float, float, float], ...]) -> Chart | None:
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
        f"Both sides of the exact condition for {size} rollouts of the bandit, by success probability: where "
        "L, the mean squared length of the clean gradient, is below R, the score spread of the successes, "
        f"pairing lowers the variance. {EXACT}"
    )
    return drawn(title, caption, COLUMNS, lines(_sides(points, frame), frame))


def orthogonal_sides(size: int, points: tuple[tuple[int, float, float], ...]) -> Chart | None:
    """Draw both sides of the exact condition where scores are orthogonal, by successes in the group."""
    first = next((k for k, left, right in points if left < right), None)
    title = (
        "With orthogonal scores pairing never helps"
        if first is None
        else f"With orthogonal scores pairing helps from {first} successes on"
    )
    frame = Frame(Axis("true successes k"), Axis("score²"), y_values=(0.0,))
    caption = (
        f"Both sides of the exact condition for a group of {size} whose scores are orthogonal and of length "
        f"one, by true successes in the group. {EXACT}"
    )
    return drawn(title, caption, COLUMNS, lines(_sides(points, frame, dots="all"), frame))


def spurious_rates(
    shown: float, curves: tuple[tuple[int, tuple[tuple[float, float], ...]], ...]
) -> Chart | None:
    """Draw how often flips alone make an all-correct group's rewards vary, a line a group size."""
    named = {size: dict(points)[shown] for size, points in curves}
    words = ", ".join(f"{rate:.0%} of groups of {size}" for size, rate in named.items())
    frame = Frame(Axis("flip rate q"), Axis("probability", "percent"), rules=((0.0, "paired: never"),))
    held = [
        _line(f"G = {size}", look, points, frame) for (size, points), look in zip(curves, SIZES, strict=False)
    ]
    middle = named[sorted(named)[len(named) // 2 - 1]]
    size = next(size for size, rate in named.items() if rate == middle)
    title = (
        f"At a flip rate of {shown:g}, {middle:.0%} of all-correct groups of {size} look as if they differed"
    )
    caption = (
        "Probability that independent flips make the rewards of a group vary although every rollout "
        f"succeeded, by flip rate, a line a group size: at {shown:g}, {words}. Under the paired design it is "
        f"zero (dashed). {EXACT}"
    )
    return drawn(title, caption, COLUMNS, lines(held, frame))


def drift_ratios(
    shown: float, curves: tuple[tuple[float, tuple[tuple[float, float], ...]], ...]
) -> Chart | None:
    """Draw the bandit's drift under Adam, paired over independent, by groups in a step."""
    points = dict(curves)[shown]
    (few, first), (many, last) = points[0], points[-1]
    title = (
        f"Pairing slows Adam in the bandit by {1 - first:.1%} with {few:g} group a step, by {1 - last:.1%} "
        f"with {many:g}"
    )
    frame = Frame(Axis("groups in a step B"), Axis("drift, paired / independent"), rules=((1.0, ""),))
    held = [
        _line(f"q = {rate:g}", look, line, frame, dots="all")
        for (rate, line), look in zip(curves, SIZES[1:], strict=False)
    ]
    caption = (
        "Drift of the bandit under Adam, paired over independent, by groups in a step, a line a flip rate: "
        f"at {shown:g}, {first:.4f} with {few:g} and {last:.4f} with {many:g}. A plain gradient step has "
        f"ratio 1. {EXACT}"
    )
    return drawn(title, caption, COLUMNS, lines(held, frame))


def _sides(points: Sequence[tuple[float, float, float]], frame: Frame, dots: str = "none") -> list[Line]:
    """Return the lines of both sides of the condition."""
    named = (("L, clean gradient", LEFT), ("R, score spread", RIGHT))
    return [
        _line(name, look, [(float(p[0]), p[i]) for p in points], frame, dots=dots)
        for i, (name, look) in enumerate(named, 1)
    ]


def _line(
    name: str, look: str, points: Sequence[tuple[float, float]], frame: Frame, dots: str = "none"
) -> Line:
    """Return a line that says its points, or, without dots, its ends."""
    spots = tuple(
        Spot(x, y, f"{name}: {y:.4g} at {frame.across.title} {x:g}", ((name, x, y),)) for x, y in points
    )
    ends = f"{spots[0].says}; {spots[-1].says}" if dots == "none" else ""
    return Line(name, spots, look, ends, dots)


def _compare(paired: float, independent: float) -> str:
    return "lowers" if paired < independent else "raises" if paired > independent else "leaves"
