"""What a probe measures: which rollouts, under which noise, put together into which groups.

A pool holds its rollouts schedule by schedule. A paired group is all rollouts of one schedule. A group of the
independent comparator draws a schedule for each of its places, with replacement, and distinct rollouts within
each; a stratified group takes one rollout of each of distinct schedules. Index lists say which rollouts of a
task's pool make a group: drawn once, and stored (paper app:probe, "Transition noise").
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple

from toolkit.canonical import canonical
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.registers.arrow import Row
from toolkit.seeds import Stream, regroup_seed

OUTCOME, TRANSITION = "outcome", "transition"
ALL, ACTIONS = "all", "actions"
PAIRED, INDEPENDENT, STRATIFIED = "paired", "independent", "stratified"
DESIGNS = {OUTCOME: (PAIRED, INDEPENDENT), TRANSITION: (PAIRED, INDEPENDENT, STRATIFIED)}
"""Noise → the designs that are compared under it."""
COMPARED = (PAIRED, INDEPENDENT)
"""The designs that a policy is trained in."""
EVIDENCE = "probe_gram"
PROBE, INTERVALS = "probe", "probe_intervals"
CLEAN_TASKS, DIAGNOSTIC_TASKS = "probe_clean_tasks", "probe_diagnostic_tasks"
DERIVED = (PROBE, INTERVALS, CLEAN_TASKS, DIAGNOSTIC_TASKS)
"""Tables of which every row follows from the evidence."""
DRIFT = "probe_drift"
"""The table that follows from the scores alone."""
BATCHES = (1, 2, 8)
"""Groups in a step whose drift is told, besides those of the study's own steps."""


class RolloutSet(NamedTuple):
    """The rollouts that are scored under one noise."""

    noise: str  # `outcome` or `transition`
    pool: str  # pool of the tasks, the first of which are played
    regime: str  # the noise of the episodes; outcome noise is put on afterwards, exactly
    tasks: int  # tasks T
    schedules: int  # schedules a task, K
    per_schedule: int  # rollouts under each schedule
    world: str = ""  # the foreign world that they are played in; empty for the back office

    @property
    def rollouts(self) -> int:
        """Rollouts a task, N, schedule by schedule."""
        return self.schedules * self.per_schedule

    @property
    def name(self) -> str:
        """What the rollouts' sampling seeds derive from."""
        return f"probe/{self.noise}"


class Steps(NamedTuple):
    """The steps whose drift is told."""

    batches: tuple[int, ...]  # groups in a step, B, each
    level: float  # confidence level of the intervals


@dataclass(frozen=True)
class Design:
    """A probe, frozen before it is measured."""

    root: str  # what every seed of the probe derives from; it holds what nobody knew before the freeze
    scored: tuple[str, ...]  # coordinates whose scores are compared: `all`, or those of the `actions` alone
    outcome: RolloutSet  # rollouts for outcome noise: one clean group a task
    transition: RolloutSet  # rollouts for transition noise: a group under each of several schedules a task
    flip_rate: float  # q of the outcome noise
    groups: int  # groups a task that are put together for each comparator
    rollouts_per_step: int  # rollouts of a training step: T_ref is their tokens, at the mean of those scored
    level: float  # confidence level of the intervals
    resamples: int  # resamples of the bootstrap over tasks
    rng_seed: int  # its seed

    def __post_init__(self) -> None:
        if self.outcome.rollouts < 2:  # noqa: PLR2004 - a group has siblings
            raise UsageError("a clean group has fewer than two rollouts", found=self.outcome.rollouts)
        if self.transition.schedules < self.group_size:
            raise UsageError(
                "a stratified group has one rollout a schedule, and there are fewer schedules than rollouts",
                expected=f"at least {self.group_size} schedules",
                found=self.transition.schedules,
            )

    @property
    def group_size(self) -> int:
        """Rollouts in a group, G: those under one schedule."""
        return self.transition.per_schedule

    @property
    def steps(self) -> Steps:
        """The steps whose drift is told: its own, and smaller ones."""
        return Steps(tuple(sorted({*BATCHES, self.rollouts_per_step // self.group_size})), self.level)

    @property
    def sets(self) -> tuple[RolloutSet, RolloutSet]:
        """Both sets of rollouts."""
        return self.outcome, self.transition

    def sha256(self) -> str:
        """Return the SHA-256 of the canonical document."""
        document = asdict(self)
        for rollouts in self.sets:  # a world came later, and is left out where there is none
            document[rollouts.noise] = {k: v for k, v in rollouts._asdict().items() if k != "world" or v}
        document["scored"] = list(self.scored)
        return hashlib.sha256(canonical(document).encode()).hexdigest()


Groups = tuple[tuple[int, ...], ...]
"""Groups as positions in a task's pool."""
Listed = Mapping[str, Mapping[int, Groups]]
"""Design → task → groups."""

DRAWN = (INDEPENDENT, STRATIFIED)


def paired_groups(rollouts: RolloutSet) -> Groups:
    """Return the paired groups of a pool: one a schedule."""
    size = rollouts.per_schedule
    return tuple(tuple(range(k * size, (k + 1) * size)) for k in range(rollouts.schedules))


def draw_groups(design: Design, comparator: str, task: int) -> Groups:
    """Draw the groups of a comparator for one task."""
    stream = Stream(regroup_seed(design.root, comparator, task))
    return tuple(_drawn(stream, design, comparator) for _ in range(design.groups))


def index_rows(design: Design) -> list[Row]:
    """Return the rows of `probe_indices`: the same groups for every checkpoint."""
    return [
        {"design": comparator, "task": task, "group": group, "rollouts": list(positions)}
        for comparator in DRAWN
        for task in range(design.transition.tasks)
        for group, positions in enumerate(draw_groups(design, comparator, task))
    ]


def read_groups(rows: list[Row], rollouts: RolloutSet) -> Listed:
    """Return every design's groups, by task."""
    by_design: dict[str, dict[int, list[tuple[int, ...]]]] = {name: {} for name in DRAWN}
    for row in rows:
        positions = tuple(row["rollouts"])
        _check(positions, row, rollouts)
        by_design[row["design"]].setdefault(row["task"], []).append(positions)
    for comparator, tasks in by_design.items():
        missing = [task for task in range(rollouts.tasks) if task not in tasks]
        fewest = min(tasks, key=lambda task: len(tasks[task]), default=0)
        most = max(map(len, tasks.values()), default=1)
        if missing:
            problem, found = f"name no {comparator} group of a task", f"task {missing[0]}"
        elif len(tasks[fewest]) < most:
            problem = f"name fewer {comparator} groups of one task than of another"
            found = f"{len(tasks[fewest])} of task {fewest}"
        else:
            continue
        expected, remedy = f"{most} groups", "measure again: toolkit probe run"
        raise IncompleteError(
            f"the index lists {problem}", expected=expected, found=found, where="probe_indices", remedy=remedy
        )
    paired = {task: paired_groups(rollouts) for task in range(rollouts.tasks)}
    drawn = {
        name: {task: tuple(groups) for task, groups in tasks.items()} for name, tasks in by_design.items()
    }
    return {PAIRED: paired, **drawn}


def _drawn(stream: Stream, design: Design, comparator: str) -> tuple[int, ...]:
    size, schedules = design.transition.per_schedule, range(design.transition.schedules)
    if comparator == STRATIFIED:
        labels = stream.sample(schedules, design.group_size)
    else:
        labels = [stream.choice(schedules) for _ in range(design.group_size)]
    within: Mapping[int, list[int]] = {
        label: stream.sample(range(size), labels.count(label)) for label in dict.fromkeys(labels)
    }
    return tuple(label * size + within[label].pop() for label in labels)


def _check(listed: tuple[int, ...], row: Row, rollouts: RolloutSet) -> None:
    where = f"probe_indices, {row['design']}, task {row['task']}, group {row['group']}"
    labels = {at // rollouts.per_schedule for at in listed}
    if len(listed) != rollouts.per_schedule:
        problem = f"has another number of rollouts than the probe's groups, {rollouts.per_schedule}"
    elif any(not 0 <= at < rollouts.rollouts for at in listed):
        problem = f"names a rollout that its task's pool of {rollouts.rollouts} does not have"
    elif len(set(listed)) < len(listed):
        problem = "names a rollout twice"
    elif row["design"] == STRATIFIED and len(labels) < len(listed):
        problem = "has two rollouts of one schedule"
    else:
        return
    raise DamagedError(f"a group {problem}", found=", ".join(map(str, listed)), where=where)
