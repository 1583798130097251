"""The registered evaluation sets.

Source:
    Paper sec:protocol and app:training, "Evaluation".
"""

from typing import NamedTuple

from toolkit.lab.tasks.pools import positions
from toolkit.noise.regimes import REGIMES


class EvaluationSet(NamedTuple):
    """A set: the first tasks of a pool, each under its first schedules."""

    phase: str  # `periodic` or `final`
    pool: str  # the pool
    regime: str  # the noise
    tasks: int  # how many tasks
    schedules: int  # how many schedules a task
    sub_requests: int = 0  # sub_requests, world: which tasks of the pool are meant, as `positions` says it
    world: str = ""

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of its tasks in the pool."""
        return positions(self.pool, self.sub_requests, self.world)[: self.tasks]

    @property
    def name(self) -> str:
        """Name of the set, unique among a run's."""
        return f"{self.phase}/{self.regime}"


class Sizes(NamedTuple):
    """Tasks, and schedules a task, of the sets at a checkpoint and at the end; challenges have one."""

    periodic_tasks: int
    periodic_schedules: int
    final_tasks: int
    final_schedules: int


REGISTERED = Sizes(64, 2, 200, 4)
_CURVES = {"learning": 300, "curve": 100}
"""Battery of the learning curve alone → tasks of its set."""

_SIZES = {"registered": REGISTERED, "small": Sizes(64, 1, 64, 1)}


def sets_at(
    battery: str, at_noise: str, *, is_last: bool, sub_requests: int = 0, world: str = ""
) -> tuple[EvaluationSet, ...]:
    """Return the sets that are played at a checkpoint."""
    sets = _sets_of(battery, at_noise, is_last=is_last)
    if not sub_requests and not world:
        return sets
    return tuple(
        each._replace(
            tasks=min(each.tasks, len(positions(each.pool, sub_requests, world))),
            sub_requests=sub_requests,
            world=world,
        )
        for each in sets
    )


def _sets_of(battery: str, at_noise: str, *, is_last: bool) -> tuple[EvaluationSet, ...]:
    if battery in _CURVES:
        return (learning_set(at_noise, _CURVES[battery]),)
    if battery not in _SIZES:
        raise ValueError(f"there is no battery {battery!r}")
    sizes = _SIZES[battery]
    return periodic_sets(at_noise, sizes) + (final_sets(at_noise, sizes) if is_last else ())


def learning_set(at_noise: str, tasks: int) -> EvaluationSet:
    """Return the set of a learning curve with many tasks: true success at training noise."""
    regime = at_noise if REGIMES[at_noise].ceiling else "clean"
    return EvaluationSet("periodic", "validation", regime, tasks, 2)


def periodic_sets(at_noise: str, sizes: Sizes = REGISTERED) -> tuple[EvaluationSet, ...]:
    """Return the sets that are played at every checkpoint: clean, at training noise, and the challenge."""
    regimes = dict.fromkeys(("clean", at_noise), sizes.periodic_schedules) | {"challenge": 1}
    return tuple(
        EvaluationSet("periodic", "validation", regime, sizes.periodic_tasks, schedules)
        for regime, schedules in regimes.items()
    )


def final_sets(at_noise: str, sizes: Sizes = REGISTERED) -> tuple[EvaluationSet, ...]:
    """Return the sets that are played at the end; training noise too, where it is none of the others."""
    names = ("clean", "faults_p010", "faults_p025", "held_out_types", at_noise)
    regimes = dict.fromkeys(names, sizes.final_schedules) | {"challenge": 1}
    return tuple(
        EvaluationSet("final", "test", regime, sizes.final_tasks, schedules)
        for regime, schedules in regimes.items()
    )
