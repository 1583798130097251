"""Findings on the gradient probe under transition noise: task share, noise floor, comparator."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from findings.checkpoints import named, probe_size, traces
from findings.evidence import Analysis, Unavailable, span
from toolkit.estimators import debiased_between_share, noise_within_share, norm_over_floor

if TYPE_CHECKING:
    from findings.evidence import Evidence
    from toolkit.decisions.measure import Row
    from toolkit.lab.probing.figures import ProbeSize

DESIGNS = ("paired", "independent", "stratified")
HALF = 0.5
SMALL_SHARE = 0.02
"""Below it a share of the trace is called none."""


def task_share(evidence: Evidence) -> Analysis:
    """Compare the within-task share of the plug-in trace with what pure noise gives, and debias it.

    A plug-in variance of N groups a task is (1 - 1/N) of what it estimates, and the task means keep 1/N of
    it: T × N groups of pure noise have a within-task share of (1 - 1/N)/(1 - 1/(TN)). For groups resampled
    from the same rollouts N counts the disjoint groups that these rollouts would make.
    """
    rows, size = _stratified(evidence), probe_size(evidence)
    within = {d: [row[f"trace_within_{d}"] / row[f"trace_{d}"] for row in rows] for d in DESIGNS}
    debiased = {d: [debiased_share(row, d, size) for row in rows] for d in DESIGNS[:2]}
    noise = noise_within_share(size.tasks, size.groups)
    return Analysis(
        {
            "checkpoints": list(map(named, rows)),
            "tasks": size.tasks,
            "groups_a_task": size.groups,
            **{f"within_share_{d}": within[d] for d in DESIGNS},
            "within_share_of_pure_noise": noise,
            **{f"between_share_{d}": [1 - share for share in within[d]] for d in DESIGNS},
            **{f"debiased_between_share_{d}": shares for d, shares in debiased.items()},
        },
        f"The within-task share of the trace is {span(within['paired'])} paired and "
        f"{span(within['independent'])} independent; pure noise without any task effect gives {noise:.3f} "
        f"for {size.tasks} tasks of {size.groups} groups. Debiased, tasks account for "
        f"{_percent(debiased['paired'])} of the paired trace and {_percent(debiased['independent'])} of the "
        f"independent one: {_left(debiased)}",
        "probe (transition, MC), probe_checkpoints, probe_diagnostic_tasks; one-way random effects, not "
        "clipped; approximate for resampled groups",
    )


def noise_floor(evidence: Evidence) -> Analysis:
    """Compare the squared norm of the mean paired gradient with the noise in that mean."""
    rows, size = traces(evidence, "transition"), probe_size(evidence)
    ratios = [
        norm_over_floor(row["mean_norm_paired"] ** 2, row["trace_paired"], size.all_groups) for row in rows
    ]
    noise = size.all_groups / (size.all_groups - 1)
    beyond = [max(0.0, 1 - noise / ratio) if ratio else 0.0 for ratio in ratios]
    return Analysis(
        {
            "checkpoints": list(map(named, rows)),
            "groups": size.all_groups,
            "squared_norm_over_floor": ratios,
            "ratio_of_pure_noise": noise,
            "share_beyond_noise": beyond,
        },
        f"The squared norm of the mean paired gradient is {span(ratios, 2)} times its own sampling variance, "
        f"and a mean gradient of zero would give {noise:.3f} on average: by this estimate "
        + (
            f"at most {max(beyond):.0%} of it is more than noise, and norms and cosines of these means "
            "describe the noise first."
            if max(beyond) < HALF
            else f"{min(beyond):.0%} to {max(beyond):.0%} of it is more than noise."
        ),
        "probe (transition, MC); ‖mean gradient‖² over trace/groups, the trace being plug-in",
    )


def comparator(evidence: Evidence) -> Analysis:
    """Set the with-replacement comparator beside the stratified one, which has no label twice."""
    rows, size = _stratified(evidence), probe_size(evidence)
    against = {d: [row["trace_paired"] / row[f"trace_{d}"] for row in rows] for d in DESIGNS[1:]}
    milder = sum(a > b for a, b in zip(*against.values(), strict=True))
    seen = [row["reward_contrast_independent"] / row["reward_contrast_stratified"] for row in rows]
    collision = 1 / size.groups
    return Analysis(
        {
            "checkpoints": list(map(named, rows)),
            "collision_probability": collision,
            "paired_over_independent": against["independent"],
            "paired_over_stratified": against["stratified"],
            "checkpoints_where_independent_is_milder": milder,
            "contrast_independent_over_stratified": seen,
            "contrast_expected_from_collisions": [_diluted(row, collision) for row in rows],
        },
        f"Schedules drawn with replacement are the same for two rollouts with probability {collision:g}, so "
        f"this comparator holds some of pairing's own sharing: its reward contrasts vary {fmean(seen):.3f} "
        "times as much as those of stratified groups, on average. The ratio of traces is "
        f"{span(against['independent'])} against it and {span(against['stratified'])} against stratified "
        f"groups, nearer to one at {milder} of {len(rows)} checkpoints: "
        + ("it is the conservative ratio." if milder == len(rows) else "it is not always conservative."),
        "probe (transition, MC), probe_checkpoints, probe_diagnostic_tasks",
    )


def _left(debiased: dict[str, list[float]]) -> str:
    """Say what the between-task part is."""
    if max(map(max, debiased.values())) < SMALL_SHARE:
        return "what looks like a between-task part is what few groups a task leave behind."
    return "the rest of the between-task part is what few groups a task leave behind."


def debiased_share(row: Row, design: str, size: ProbeSize) -> float:
    """Return the between-task share of the variance of a group's gradient, without the plug-in's bias."""
    within, between = row[f"trace_within_{design}"], row[f"trace_between_{design}"]
    return debiased_between_share(within, between, size.tasks, size.groups)


def _diluted(row: Row, collision: float) -> float:
    """Return the contrast's variance over the stratified one if a collision were a paired draw."""
    return float(
        1 - collision + collision * row["reward_contrast_paired"] / row["reward_contrast_stratified"]
    )


def _stratified(evidence: Evidence) -> list[Row]:
    rows = traces(evidence, "transition")
    if not all(row["trace_stratified"] and row["reward_contrast_stratified"] for row in rows):
        raise Unavailable("a checkpoint has no stratified groups")
    return rows


def _percent(shares: list[float]) -> str:
    return f"{min(shares):.1%} to {max(shares):.1%}"
