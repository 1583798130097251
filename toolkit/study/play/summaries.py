"""What follows from a run's rows: evaluations, counts over groups, luck shares. Nothing here is drawn anew.

Counts are exact. The luck share's interval resamples the tasks with a fixed seed, as registered.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import fsum
from typing import Any

from toolkit.estimators import luck_share, luck_share_interval, mean_luck_share
from toolkit.noise.regimes import REGIMES
from toolkit.registers import arrow, row_tables
from toolkit.registers.row_types import EpisodeRow, GroupRow, LuckShareRow
from toolkit.study.play import matrix, segments
from toolkit.tasks.task import canonical
from toolkit.training.specification import LanguageModelSpecification, Specification

ENVIRONMENT = "toolkit-1"
POLICY = "log-linear"
TARGETS = {"true_success": "true_successes", "observed_reward": "observed_rewards"}
"""Reward that is diagnosed → the column of `luck_share` that holds it."""

RESAMPLES = 10_000
RNG_SEED = 0
LEVEL = 0.95
_MICRO = Decimal("0.000001")


def run_row(specification: Specification, rows: segments.Segment, status: str) -> arrow.Row:
    """Return the run's row of `runs`; what differs from launch to launch is null there.

    Args:
        specification: the run.
        rows: all its rows.
        status: COMPLETE or INCOMPLETE.
    """
    regime = REGIMES[specification.regime]
    rollouts = sum(len(row["observed_rewards"]) for row in rows["groups"])
    diagnosed = sum(len(row["observed_rewards"]) for row in rows["luck_share"])
    return {
        **run_place(specification),
        "role": specification.role,
        "fault_rate": Decimal(str(regime.fault_rate)),
        "flip_rate": Decimal(str(regime.flip_rate)),
        "scale_rewards": specification.scale_rewards,
        "loss_type": matrix.LOSS,
        "steps": specification.steps,
        "group_size": specification.group_size,
        "prompts_per_step": specification.prompts_per_step,
        "episodes": rollouts + len(rows["episodes"]) + diagnosed,
        "training_groups": len(rows["groups"]),
        "training_rollouts": rollouts,
        "status": status,
        "registered": specification.study,
        "provider": "local",
        "specification": canonical(specification.document()),
        **dict.fromkeys(_OF_ANOTHER_STACK),
        **_of_language_model(specification),
    }


def policy_of(specification: Specification) -> str:
    """Return what a run trains, in a word: the name of a language model."""
    if isinstance(specification, LanguageModelSpecification):
        return specification.settings.model
    return POLICY


def _of_language_model(specification: Specification) -> arrow.Row:
    """Return what a row of `runs` says of a language model's run alone."""
    if not isinstance(specification, LanguageModelSpecification):
        return {}
    return {
        "model_commit": specification.model_commit,
        "recipe_sha256": specification.settings.sha256(),
    }


_OF_ANOTHER_STACK = (
    "attempts",
    "launched_at",
    "accelerator",
    "torch_version",
    "vllm_version",
    "code_commit",
    "model_commit",
    "register_commit",
    "wall_time_s",
    "peak_memory_gb",
    "estimated_cost_usd",
)
"""Columns of `runs` that say nothing here: `launches` does, or there is no such thing."""


def run_place(specification: Specification) -> arrow.Row:
    """Return a run's place in its study, as rows begin with it."""
    return {name: getattr(specification, name) for name in ("run_id", "condition", "arm", "seed")}


def evaluations(run: arrow.Row, episodes: Iterable[EpisodeRow]) -> list[arrow.Row]:
    """Return a row an evaluation of a run: counts over its episodes."""
    places: dict[tuple[str, str, str, int], list[EpisodeRow]] = {}
    for row in episodes:
        places.setdefault((row["phase"], row["pool"], row["regime"], row["step"]), []).append(row)
    names = ("phase", "pool", "regime", "step")
    return [
        {**run, **dict(zip(names, at, strict=True)), **_counts(rows)} for at, rows in sorted(places.items())
    ]


def groups_summary(specification: Specification, groups: Sequence[GroupRow]) -> list[arrow.Row]:
    """Return counts over a run's training groups: one row, or none where it has no group."""
    if not groups:
        return []
    sharing = sum(len(set(row["schedule_seeds"])) == 1 for row in groups)
    largest = [max(map(abs, row["advantages"])) for row in groups]
    return [
        {
            **run_place(specification),
            "groups": len(groups),
            "all_correct": sum(all(row["true_successes"]) for row in groups),
            "spurious": sum(row["spurious"] for row in groups),
            "zero_variance": sum(row["zero_variance"] for row in groups),
            "mean_max_abs_advantage": fsum(largest) / len(groups),
            "sharing_one_seed": sharing,
            "several_seeds": len(groups) - sharing,
        }
    ]


def luck_share_summary(run: arrow.Row, rows: Iterable[LuckShareRow], policy: str) -> list[arrow.Row]:
    """Return a row a diagnostic and reward; none where the reward never varies: no data is not zero.

    Args:
        run: its place in the study, as `run_place` gives it.
        rows: its rows of `luck_share`.
        policy: what was diagnosed, in a word.
    """
    places: dict[tuple[int, str, str], list[LuckShareRow]] = {}
    for row in rows:
        places.setdefault((row["step"], row["pool"], row["regime"]), []).append(row)
    return [
        {
            **run,
            "environment": ENVIRONMENT,
            "policy": policy,
            "regime": regime,
            "step": step,
            "pool": pool,
            "target": target,
            **shares,
        }
        for (step, pool, regime), diagnosed in sorted(places.items())
        for target, column in TARGETS.items()
        for shares in _shares(list(_tables(diagnosed, column)))
    ]


def _tables(rows: Iterable[Mapping[str, Any]], column: str) -> Iterator[list[list[bool]]]:
    """Yield each task's table: a row a schedule, a column a rollout."""
    tasks: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        tasks.setdefault(row["task"], []).append(row)
    for _, of_task in sorted(tasks.items()):
        yield [row[column] for row in sorted(of_task, key=lambda row: row["schedule"])]


def _shares(tables: list[list[list[bool]]]) -> Iterator[dict[str, Any]]:
    over_tasks = mean_luck_share(tables)
    if over_tasks.mean is None:
        return
    interval = luck_share_interval(tables, RESAMPLES, RNG_SEED, LEVEL)
    split = [luck_share(table) for table in tables]
    yield {
        "luck_share": over_tasks.mean,
        "luck_share_pooled": over_tasks.pooled,
        "interval_low": None if interval is None else _rounded(interval.low),
        "interval_high": None if interval is None else _rounded(interval.high),
        "variance_between": fsum(part.between for part in split) / len(split),
        "variance_within": fsum(part.within for part in split) / len(split),
        "tasks": over_tasks.tasks,
        "tasks_defined": over_tasks.defined,
    }


def _rounded(value: float) -> Decimal:
    return Decimal(repr(value)).quantize(_MICRO)


def _counts(rows: list[EpisodeRow]) -> dict[str, int | None]:
    exposed = [row for row in rows if row_tables.faults_landed(row)]
    successes = sum(row["true_success"] for row in rows)
    observed = sum(row["observed_reward"] for row in rows)
    return {
        "episodes": len(rows),
        "successes": successes,
        "observed_successes": observed,
        "flipped": successes - observed,
        "exposed": len(exposed),
        "recovered": sum(row["true_success"] for row in exposed) if exposed else None,
        "finished": sum(row["ended"] == "finished" for row in rows),
        "budget_exceeded": sum(row["ended"] == "budget_exceeded" for row in rows),
        "calls": sum(row["calls"] for row in rows),
    }
