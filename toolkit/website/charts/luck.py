"""Charts of luck shares, and one table of rewards as it came out."""

from dataclasses import dataclass

from toolkit.website.charts.drawing import WIDTH, Chart, draw
from toolkit.website.charts.marks import about_steps, beside, capital, with_interval
from toolkit.website.charts.theme import ACCENT, GRID, INK, PAPER, colours

HEIGHT = 260
CELL = 38  # pixels


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

    @property
    def words(self) -> str:
        """The share and its interval."""
        return f"{self.run} at step {self.step}: {with_interval(self.value, self.low, self.high)}"


def luck_shares(what: str, shares: tuple[Luck, ...], interval: str) -> Chart | None:
    """Draw luck shares by step, a bar a run in the colour of its arm.

    Args:
        what: whose luck shares.
        shares: the shares.
        interval: where the intervals come from, and what was resampled.
    """
    import altair as alt

    if not shares:
        return None
    steps = sorted({share.step for share in shares})
    colour_of = colours(share.arm for share in shares)
    order = list(colour_of)
    ordered = sorted(shares, key=lambda share: (share.step, order.index(share.arm), share.run))
    places = beside([steps.index(share.step) for share in ordered])
    values = [
        {"at": at, "arm": s.arm, "value": s.value, "low": s.low, "high": s.high, "label": s.words}
        for s, at in zip(ordered, places, strict=True)
    ]
    scale = alt.Scale(domain=[0, 1])
    y = alt.Y("value:Q", title="luck share", scale=scale, axis=alt.Axis(format=".1f", tickCount=5))
    layers, colour = about_steps(values, steps, y, "arm", colour_of)
    names = [
        {"arm": arm, "place": 0.97 - 0.065 * i, "label": arm.replace("_", " ")}
        for i, arm in enumerate(colour_of)
    ]
    text = alt.Chart(alt.Data(values=names)).mark_text(align="left", dx=8, fontWeight="bold", fontSize=12)
    layers.append(
        text.encode(x=alt.value(WIDTH), y=alt.Y("place:Q", scale=scale), text="label:N", color=colour)
    )
    caption = f"{what}: luck share by step, a dot a run. "
    for step in steps:
        of = [share.value for share in shares if share.step == step]
        many = f"{len(of)} runs, {min(of):.3f} to {max(of):.3f}" if len(of) > 1 else f"1 run, {of[0]:.3f}"
        caption += f"Step {step}: {many}. "
    caption += f"{capital(interval)}. Above 0 even without luck: what lies below zero is cut off."
    return draw(
        alt.layer(*layers), _finding(shares), caption, HEIGHT, subtitle=f"{what}: luck share λ by step"
    )


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
    import altair as alt

    if not rewards or not rewards[0]:
        return None
    values = [
        {
            "schedule": f"schedule {number}",
            "rollout": k + 1,
            "reward": "success" if reward else "failure",
            "mark": "1" if reward else "0",
        }
        for number, row in zip(schedules, rewards, strict=True)
        for k, reward in enumerate(row)
    ]
    sums = [
        {"schedule": f"schedule {number}", "label": f"{sum(row)} of {len(row)}"}
        for number, row in zip(schedules, rewards, strict=True)
    ]
    order = [str(entry["schedule"]) for entry in sums]
    y = alt.Y("schedule:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False))
    x = alt.X("rollout:O", title="rollout", axis=alt.Axis(labelAngle=0, ticks=False, domain=False))
    base = alt.Chart(alt.Data(values=values)).encode(
        x=x, y=y, tooltip=["schedule:N", "rollout:O", "reward:N"]
    )
    both = ["success", "failure"]
    square = base.mark_rect(stroke=PAPER, strokeWidth=2).encode(
        color=alt.Color("reward:N", legend=None, scale=alt.Scale(domain=both, range=[ACCENT, GRID]))
    )
    mark = base.mark_text(fontSize=12).encode(
        text="mark:N",
        color=alt.Color("reward:N", legend=None, scale=alt.Scale(domain=both, range=[PAPER, INK])),
    )
    label = alt.Chart(alt.Data(values=sums)).mark_text(align="left", dx=8)
    names = label.encode(x=alt.value(WIDTH), y=y, text="label:N")
    all_or_none = sum(len(set(row)) == 1 for row in rewards)
    title = f"{all_or_none} of {len(rewards)} schedules decide every rollout alike"
    each = "; ".join(f"{entry['schedule']} {entry['label']}" for entry in sums)
    caption = f"{where}. Squares marked 1 are rewards, those marked 0 none. By row: {each}. {share}."
    layers = alt.layer(square, mark).resolve_scale(color="independent") + names
    return draw(layers, title, caption, CELL * len(rewards), subtitle=f"{where}. {share}")


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
