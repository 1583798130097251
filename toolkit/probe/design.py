"""What a probe measures: which rollouts, under which noise, put together into which groups."""

import hashlib
from dataclasses import asdict, dataclass
from typing import NamedTuple

from toolkit.errors import UsageError
from toolkit.tasks.task import canonical

OUTCOME, TRANSITION = "outcome", "transition"
ALL, ACTIONS = "all", "actions"
PAIRED, INDEPENDENT, STRATIFIED = "paired", "independent", "stratified"
DESIGNS = {OUTCOME: (PAIRED, INDEPENDENT), TRANSITION: (PAIRED, INDEPENDENT, STRATIFIED)}
"""Noise → the designs that are compared under it."""


class RolloutSet(NamedTuple):
    """The rollouts that are scored under one noise.

    Args:
        noise: `outcome` or `transition`.
        pool: pool of the tasks, the first of which are played.
        regime: the noise of the episodes; outcome noise is put on afterwards, exactly.
        tasks: tasks T.
        schedules: schedules a task, K.
        per_schedule: rollouts under each schedule.
    """

    noise: str
    pool: str
    regime: str
    tasks: int
    schedules: int
    per_schedule: int

    @property
    def rollouts(self) -> int:
        """Rollouts a task, N, schedule by schedule."""
        return self.schedules * self.per_schedule

    @property
    def name(self) -> str:
        """What the rollouts' sampling seeds derive from."""
        return f"probe/{self.noise}"


@dataclass(frozen=True)
class Design:
    """A probe, frozen before it is measured.

    Args:
        root: what every seed of the probe derives from; it holds what nobody knew before the freeze.
        scored: coordinates whose scores are compared: `all`, or those of the `actions` alone.
        outcome: rollouts for outcome noise: one clean group a task.
        transition: rollouts for transition noise: a group under each of several schedules a task.
        flip_rate: q of the outcome noise.
        groups: groups a task that are put together for each comparator.
        rollouts_per_step: rollouts of a training step: T_ref is their tokens, at the mean of those scored.
        level: confidence level of the intervals.
        resamples: resamples of the bootstrap over tasks.
        rng_seed: its seed.

    Raises:
        UsageError: a set has fewer rollouts than a group, or fewer schedules than a stratified group needs.
    """

    root: str
    scored: tuple[str, ...]
    outcome: RolloutSet
    transition: RolloutSet
    flip_rate: float
    groups: int
    rollouts_per_step: int
    level: float
    resamples: int
    rng_seed: int

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
    def sets(self) -> tuple[RolloutSet, RolloutSet]:
        """Both sets of rollouts."""
        return self.outcome, self.transition

    def sha256(self) -> str:
        """Return the SHA-256 of the canonical document."""
        document = asdict(self) | {rollouts.noise: rollouts._asdict() for rollouts in self.sets}
        document["scored"] = list(self.scored)
        return hashlib.sha256(canonical(document).encode()).hexdigest()
