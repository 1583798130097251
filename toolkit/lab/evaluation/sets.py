"""The registered evaluation sets (paper sec:protocol and app:training, "Evaluation")."""

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
SIZES = {"registered": REGISTERED, "small": Sizes(64, 1, 64, 1)}
CURVES = {"learning": 300, "curve": 100}
"""Battery of the learning curve alone → tasks of its set."""


def sets_at(
    battery: str, at_noise: str, *, is_last: bool, sub_requests: int = 0, world: str = ""
) -> tuple[EvaluationSet, ...]:
    """Return the sets that are played at a checkpoint; of a curve, true success at training noise."""
    if battery in CURVES:
        regime = at_noise if REGIMES[at_noise].ceiling else "clean"
        sets: tuple[EvaluationSet, ...] = (
            EvaluationSet("periodic", "validation", regime, CURVES[battery], 2),
        )
    elif battery in SIZES:
        sizes = SIZES[battery]
        sets = periodic_sets(at_noise, sizes) + (final_sets(at_noise, sizes) if is_last else ())
    else:
        raise ValueError(f"there is no battery {battery!r}")
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
