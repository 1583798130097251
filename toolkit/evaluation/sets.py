"""The registered evaluation sets.

Source:
    Paper sec:protocol and app:training, "Evaluation".
"""

from __future__ import annotations

from typing import NamedTuple


class EvaluationSet(NamedTuple):
    """A set: the first tasks of a pool, each under its first schedules.

    Args:
        phase: `periodic` or `final`.
        pool: the pool.
        regime: the noise.
        tasks: how many tasks.
        schedules: how many schedules a task.
    """

    phase: str
    pool: str
    regime: str
    tasks: int
    schedules: int

    @property
    def name(self) -> str:
        """Name of the set, unique among a run's."""
        return f"{self.phase}/{self.regime}"


def periodic_sets(at_noise: str) -> tuple[EvaluationSet, ...]:
    """Return the sets that are played at every checkpoint: clean, at training noise, and the challenge."""
    noisy = ("clean",) if at_noise == "clean" else ("clean", at_noise)
    return (
        *(EvaluationSet("periodic", "validation", regime, 64, 2) for regime in noisy),
        EvaluationSet("periodic", "validation", "challenge", 64, 1),
    )


def final_sets(at_noise: str) -> tuple[EvaluationSet, ...]:
    """Return the sets that are played at the end; training noise too, where it is none of the others."""
    regimes = ("clean", "faults_p010", "faults_p025", "held_out_types")
    more = () if at_noise in regimes else (at_noise,)
    return (
        *(EvaluationSet("final", "test", regime, 200, 4) for regime in (*regimes, *more)),
        EvaluationSet("final", "test", "challenge", 200, 1),
    )
