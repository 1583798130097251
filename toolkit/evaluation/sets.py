"""The registered evaluation sets: which tasks, under which schedules, in which noise, at which steps.

Every set is the same for every arm, seed and step, so that two of them differ in nothing but the policy.

Source:
    Paper sec:protocol, "Evaluation": 64 validation tasks × 2 schedules, clean and at training noise, and the
    challenge once, every 20 steps; 200 test tasks × 4 schedules at the end. "Luck-share diagnostic": 8
    schedules × 8 rollouts for each of 16 tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

VALIDATION_TASKS = 64
VALIDATION_SCHEDULES = 2
TEST_TASKS = 200
TEST_SCHEDULES = 4
FINAL_REGIMES = ("clean", "faults_p010", "faults_p025", "held_out_types")

DIAGNOSTIC_TASKS = 16
DIAGNOSTIC_SCHEDULES = 8
DIAGNOSTIC_ROLLOUTS = 8


@dataclass(frozen=True)
class EvaluationSet:
    """An evaluation set: the first tasks of a pool, each under the same number of schedules.

    Args:
        phase: `periodic`, at every checkpoint, or `final`, at the last one.
        pool: the pool.
        regime: noise of the evaluation.
        tasks: tasks of the set: the first ones of its pool.
        schedules: schedules a task, from index 0.
    """

    phase: str
    pool: str
    regime: str
    tasks: int
    schedules: int

    @property
    def identities(self) -> frozenset[tuple[int, int]]:
        """Every (task, schedule) of the set."""
        return frozenset((task, schedule) for task in range(self.tasks) for schedule in range(self.schedules))


def periodic_sets(at_noise: str) -> tuple[EvaluationSet, ...]:
    """Return what is played at every checkpoint.

    Args:
        at_noise: regime of the evaluation at training noise.
    """
    regimes = dict.fromkeys(("clean", at_noise))
    return (
        *(
            EvaluationSet("periodic", "validation", regime, VALIDATION_TASKS, VALIDATION_SCHEDULES)
            for regime in regimes
        ),
        EvaluationSet("periodic", "validation", "challenge", VALIDATION_TASKS, 1),
    )


def final_sets(at_noise: str) -> tuple[EvaluationSet, ...]:
    """Return what is played at the end.

    Args:
        at_noise: regime of the evaluation at training noise; a set of its own where it is none of those that
            every run is tested under.
    """
    regimes = dict.fromkeys((*FINAL_REGIMES, at_noise))
    return (
        *(EvaluationSet("final", "test", regime, TEST_TASKS, TEST_SCHEDULES) for regime in regimes),
        EvaluationSet("final", "test", "challenge", TEST_TASKS, 1),
    )
