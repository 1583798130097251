"""Charts of luck shares, and one table of rewards as it came out."""

from dataclasses import dataclass

from toolkit.website.charts import svg
from toolkit.website.charts.drawing import Chart, drawn
from toolkit.website.charts.marks import with_interval
from toolkit.website.charts.points import Dot, Lane, measured, points
from toolkit.website.charts.scale import Axis
from toolkit.website.charts.theme import colours

CELL = 32  # pixels
NAMES, SUMS = 96, 60
COLUMNS = ("run", "arm", "step", "luck share", "low", "high")


@dataclass(frozen=True)
class Luck:
    """A luck share.

    Args:
        run, arm: the run.
        step: training step.
        value: the share.
        low, high: ends of its interval; None where it has none.
    """

    run: str
    arm: str
    step: int
    value: float
    low: float | None
    high: float | None


def luck_shares(what: str, shares: tuple[Luck, ...], interval: str) -> Chart | None:
    """Draw luck shares by step and arm, a dot a run.

    Args:
        what: whose luck shares.
        shares: the shares.
        interval: where the intervals come from, and what was resampled.
    """
    if not shares:
        return None
    steps = sorted({share.step for share in shares})
    colour_of = colours(share.arm for share in shares)
    lanes = []
    for step in steps:
        for arm, look in colour_of.items():
            lane = sorted((s for s in shares if (s.step, s.arm) == (step, arm)), key=lambda s: s.run)
            if lane:
                name = f"step {step}, {arm.replace('_', ' ')}"
                note = (
                    with_interval(lane[0].value, lane[0].low, lane[0].high)
                    if len(lane) == 1
                    else f"{len(lane)} runs"
                )
                lanes.append(Lane(name, tuple(_dot(share, look) for share in lane), note))
    caption = f"A dot a run; {interval}. Above 0 even without luck: what lies below zero is cut off."
    draw = points(lanes, (), Axis("luck share λ"))
    return drawn(_finding(shares), caption, COLUMNS, draw, about=f"{what}: luck share λ by step")


def _dot(of: Luck, look: str) -> Dot:
    what = f"luck share of {of.run} at step {of.step}:"
    return measured(what, (of.run, of.arm, of.step), of.value, (of.low, of.high), look)


def reward_table(
    where: str, share: str, rewards: tuple[tuple[bool, ...], ...], schedules: tuple[int, ...]
) -> Chart | None:
    """Draw a table of rewards: a row a schedule, a square a rollout.

    Args:
        where: the run, step, task and reward.
        share: the table's luck share, in words.
        rewards: rewards of each schedule's rollouts.
        schedules: the number of each row's schedule.
    """
    if not rewards or not rewards[0]:
        return None
    sums = [f"{sum(row)} of {len(row)}" for row in rewards]
    all_or_none = sum(len(set(row)) == 1 for row in rewards)
    title = f"{all_or_none} of {len(rewards)} schedules decide every rollout alike"
    caption = "Squares marked 1 are rewards, those marked 0 none."

    def draw(width: float) -> tuple[float, list[str]]:
        cell = min(CELL, (width - NAMES - SUMS) / len(rewards[0]))
        parts = [svg.text("rollout", NAMES, 12, "soft")]
        for at, (number, row, told) in enumerate(zip(schedules, rewards, sums, strict=True)):
            y = 20 + at * cell
            parts.append(svg.text(f"schedule {number}", NAMES - 10, y + cell / 2 + 4, None, "end"))
            parts += [_square(number, k, reward, (NAMES + k * cell, y), cell) for k, reward in enumerate(row)]
            parts.append(svg.text(told, NAMES + len(row) * cell + 10, y + cell / 2 + 4, "soft"))
        return 24 + len(rewards) * cell, parts

    return drawn(title, caption, ("schedule", "rollout", "reward"), draw, about=f"{where}. {share}")


def _square(schedule: int, rollout: int, reward: bool, corner: tuple[float, float], cell: float) -> str:  # noqa: FBT001
    x, y = corner
    says = f"schedule {schedule}, rollout {rollout + 1}: {'success' if reward else 'failure'}"
    square = svg.tag("rect", x=x + 1, y=y + 1, width=cell - 2, height=cell - 2, class_="cell")
    digit = svg.text(str(int(reward)), x + cell / 2, y + cell / 2 + 4, "digit")
    row = (schedule, rollout + 1, int(reward))
    return svg.mark(says, [row], square, digit, look="won" if reward else "lost")


def _finding(shares: tuple[Luck, ...]) -> str:
    steps = sorted({share.step for share in shares})
    first, last = ([s.value for s in shares if s.step == step] for step in (steps[0], steps[-1]))
    if len(steps) == 1:
        return f"Luck share {_range(first)} in {len(first)} run{'s' * (len(first) > 1)} at step {steps[0]}"
    earlier, later = f"{_range(first)} at step {steps[0]}", f"{_range(last)} at step {steps[-1]}"
    if min(last) > max(first):
        return f"Luck share higher in the end: {earlier}, {later}"
    if max(last) < min(first):
        return f"Luck share lower in the end: {earlier}, {later}"
    return f"Luck shares overlap: {earlier}, {later}"


def _range(values: list[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"
