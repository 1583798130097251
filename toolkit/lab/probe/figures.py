"""From the evidence of a checkpoint to its figures: all of them, or the tables that somebody reads.

Nothing is played or scored here, and nothing is computed that was not asked for: a row of `probe` needs no
resample, and no figure needs the identities that tie them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from toolkit.errors import DamagedError
from toolkit.lab.probe.design import (
    CLEAN_TASKS,
    DERIVED,
    DIAGNOSTIC_TASKS,
    INTERVALS,
    OUTCOME,
    PROBE,
    TRANSITION,
    Design,
    Listed,
    RolloutSet,
)
from toolkit.lab.probe.evidence import GramEvidence, Place
from toolkit.lab.probe.moments import ESTIMATORS, MC, ByEstimator, moments
from toolkit.lab.probe.summary import Estimate, estimates, probe_row, sides
from toolkit.registers.arrow import Row


@dataclass(frozen=True)
class Estimated:
    """What the evidence of one checkpoint gives under one noise."""

    rollouts: RolloutSet  # the set that was scored
    evidence: GramEvidence  # its evidence
    by_design: ByEstimator  # estimator → design → moments
    by_estimator: Mapping[str, Estimate]  # estimator → estimate
    counts: Mapping[str, int]  # design → groups a task, under transition noise


def reference_tokens(evidence: Mapping[str, GramEvidence], design: Design) -> float:
    """Return T_ref: the tokens of a training step's rollouts, at the mean of all that were scored.

    Source:
        Paper app:probe, "Estimators".
    """
    tokens = [evidence[rollouts.noise].tokens for rollouts in design.sets]
    total, number = sum(int(part.sum()) for part in tokens), sum(part.size for part in tokens)
    if not total:
        raise DamagedError("no rollout of the probe has a token", expected="tokens that the loss counts")
    return design.rollouts_per_step * total / number


def estimate(evidence: Mapping[str, GramEvidence], design: Design, groups: Listed) -> tuple[Estimated, ...]:
    """Estimate what figures are made of, noise by noise."""
    normalizer = reference_tokens(evidence, design)
    estimated = []
    for rollouts in design.sets:
        of_noise, regrouped = evidence[rollouts.noise], groups if rollouts.noise == TRANSITION else None
        by_design = moments(
            of_noise.noise,
            of_noise.rewards,
            of_noise.weights,
            of_noise.gram,
            flip_rate=design.flip_rate,
            groups=regrouped,
        )
        by_estimator = estimates(of_noise, by_design, normalizer)
        counts = {name: len(next(iter(tasks.values()))) for name, tasks in (regrouped or {}).items()}
        estimated.append(Estimated(rollouts, of_noise, by_design, by_estimator, counts))
    return tuple(estimated)


def figure_rows(
    place: Place, estimated: Sequence[Estimated], design: Design, tables: Collection[str] = DERIVED
) -> dict[str, list[Row]]:
    """Return the rows of one checkpoint and what was scored, of every table that is asked for."""
    of_table = {
        PROBE: _summaries,
        INTERVALS: _intervals,
        CLEAN_TASKS: _clean_tasks,
        DIAGNOSTIC_TASKS: _diagnostic_tasks,
    }
    at = place._asdict()
    return {
        name: [at | row for of_noise in estimated for row in of_table[name](of_noise, design)]
        for name in tables
    }


def _summaries(estimated: Estimated, design: Design) -> list[Row]:
    return [
        probe_row(estimated.evidence, name, estimated.by_estimator[name], design.flip_rate)
        for name in ESTIMATORS
    ]


def _intervals(estimated: Estimated, design: Design) -> list[Row]:
    from toolkit.lab.probe.uncertainty import Resampling, interval_rows

    rollouts = estimated.rollouts
    both = sides(estimated.evidence) if rollouts.noise == OUTCOME else None
    how = Resampling(design.level, design.resamples, design.rng_seed, rollouts.schedules)
    return [
        row
        for name in ESTIMATORS
        for row in interval_rows(
            rollouts.noise, name, estimated.by_estimator[name], both if name == MC else None, how
        )
    ]


def _clean_tasks(estimated: Estimated, _: Design) -> list[Row]:
    rollouts = estimated.rollouts
    if rollouts.noise != OUTCOME:
        return []
    both = sides(estimated.evidence)
    return [
        {
            "task_id": f"{rollouts.pool}:{task}",
            "successes": int(both.successes[task]),
            "condition_left": float(both.left[task]),
            "condition_right": float(both.right[task]),
        }
        for task in range(rollouts.tasks)
    ]


def _diagnostic_tasks(estimated: Estimated, _: Design) -> list[Row]:
    rollouts = estimated.rollouts
    if rollouts.noise != TRANSITION:
        return []
    # Sums over groups, as the published register has them.
    return [
        {
            "task_id": f"{rollouts.pool}:{task}",
            **{
                f"squared_norms_{name}": max(0.0, float(second[task])) * estimated.counts[name]
                for name, second in estimated.by_estimator[MC].second.items()
            },
        }
        for task in range(rollouts.tasks)
    ]
