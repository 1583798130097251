"""A play that is quick: rows that depend on the run, the step and the checkpoint before, and on nothing else.

It plays every registered set, so that a run of it is complete as registered; `sparsely` leaves most out.
"""

import os
import time
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

from toolkit.lab.evaluation.diagnostic import POOL, SAMPLES, SCHEDULES
from toolkit.lab.evaluation.sets import EvaluationSet, final_sets, periodic_sets
from toolkit.lab.play.runner import Play
from toolkit.lab.play.segments import Segment
from toolkit.lab.tasks.pools import POOLS
from toolkit.lab.training.checkpoint import checkpoint_sha256
from toolkit.lab.training.grpo import advantages_of
from toolkit.lab.training.rows import groups_at
from toolkit.registers.arrow import Row
from toolkit.registers.row_tables import FAULTS, RECOVERIES
from toolkit.seeds import derive, evaluation_seed
from toolkit.specification import Specification

WIDTH = 5
QUIET = dict.fromkeys(FAULTS, 0) | {f"{code}_{end}": 0 for code in RECOVERIES for end in ("due", "made")}


def specification(run_id: str = "c2-paired-s0", **changes: Any) -> Specification:
    """Return a small run: three segments of two steps."""
    given: dict[str, Any] = {
        "study": "small",
        "root": "small",
        "run_id": run_id,
        "condition": "C2",
        "arm": "paired",
        "seed": 0,
        "tier": 1,
        "role": "primary",
        "regime": "faults_p025",
        "at_noise": "faults_p025",
        "scale_rewards": "group",
        "steps": 4,
        "checkpoint_every": 2,
        "prompts_per_step": 2,
        "diagnosed": (0, 4),
        "pools": {"train": "a" * 64},
    }
    return Specification(**(given | changes))


def whole(run: Specification, play: Play) -> Segment:
    """Play a run, segment after segment, and return all its rows."""
    rows: Segment = {"groups": [], "episodes": [], "luck_share": [], "checkpoints": []}
    before = None
    for end in run.ends:
        segment = play(run, end, before)
        (before,) = segment["checkpoints"]
        for name, part in segment.items():
            rows[name] += part
    return rows


def wholly(run: Specification, end: int, before: Row | None) -> Segment:
    """Play a segment with every evaluation that is registered."""
    sets = periodic_sets(run.at_noise) + (final_sets(run.at_noise) if end == run.steps else ())
    return _segment(run, end, before, sets)


def otherwise(run: Specification, end: int, before: Row | None) -> Segment:
    """Play as `wholly`, but for one number of one group of one run."""
    segment = wholly(run, end, before)
    if run.arm == "independent" and run.seed == 0 and end:
        segment["groups"][0]["decisions"] += 1
    return segment


def sparsely(run: Specification, end: int, before: Row | None) -> Segment:
    """Play a segment with one small evaluation alone."""
    return _segment(run, end, before, periodic_sets(run.at_noise)[-1:])


def asked(run: Specification, end: int, before: Row | None) -> Segment:
    """Play as the environment's PLAY names it, or `wholly`."""
    play = {"otherwise": otherwise, "sparsely": sparsely}.get(os.environ.get("PLAY", ""), wholly)
    return play(run, end, before)


def slowly(run: Specification, end: int, before: Row | None) -> Segment:
    """Play as `sparsely`, so long that there is time to be killed."""
    time.sleep(0.02)
    return sparsely(run, end, before)


def _segment(run: Specification, end: int, before: Row | None, sets: tuple[EvaluationSet, ...]) -> Segment:
    state = 0 if before is None else int(before["sha256"][:8], 16)
    mixed = derive("test/v1", run.seed, run.run_id, end, state)
    values = [(derive("test/v1", mixed, place) / 2**64 - 0.5) / 3 for place in range(WIDTH)]
    checkpoint = {"run_id": run.run_id, "step": end, "parameters": values}
    checkpoint |= {"first_moment": [v / 7 for v in values], "second_moment": [v * v for v in values]}
    start = end - run.checkpoint_every
    steps = range(start + 1, end + 1) if end else ()
    return {
        "groups": [
            _group(run, step, position) for step, position in product(steps, range(run.prompts_per_step))
        ],
        "episodes": [row for played in sets for row in _episodes(run, end, played, mixed)],
        "luck_share": [row for step in run.diagnosed if start < step <= end for row in _tables(run, step)],
        "checkpoints": [checkpoint | {"sha256": checkpoint_sha256(checkpoint)}],
    }


def _group(run: Specification, step: int, position: int) -> Row:
    mixed = derive("test/v1", run.seed, run.run_id, step, position)
    truths = [bool(mixed >> slot & 1) for slot in range(run.group_size)]
    plan = groups_at(run, step)[position]
    return {
        "run_id": run.run_id,
        "step": step,
        "position": position,
        "task": plan.task,
        "regime": plan.regime,
        "schedule_seeds": list(plan.schedule_seeds),
        "true_successes": truths,
        "observed_rewards": truths,
        "advantages": list(advantages_of(tuple(truths), scaled=run.scale_rewards == "group")),
        "decisions": 40,
        "exposed": 3,
        "zero_variance": len(set(truths)) == 1,
        "spurious": False,
    }


def _episodes(run: Specification, step: int, played: EvaluationSet, mixed: int) -> Iterator[Row]:
    for task, schedule in product(range(played.tasks), range(played.schedules)):
        success = bool(mixed >> (task + schedule) % 60 & 1)
        yield {
            "run_id": run.run_id,
            "phase": played.phase,
            "pool": played.pool,
            "regime": played.regime,
            "step": step,
            "task": task,
            "schedule": schedule,
            "schedule_seed": _seed(played.pool, task, schedule),
            "true_success": success,
            "observed_reward": success,
            "calls": 7 + task % 3,
            "ended": "finished" if success else "budget_exceeded",
            "world_changed": True,
            **QUIET,
            "transient": task % 2,
        }


def _tables(run: Specification, step: int) -> Iterator[Row]:
    for task, schedule in product(range(POOLS[POOL].size), range(SCHEDULES)):
        mixed = derive("test/v1", run.seed, run.run_id, step, task, schedule)
        truths = [bool(mixed >> slot & 1) for slot in range(SAMPLES)]
        yield {
            "run_id": run.run_id,
            "step": step,
            "pool": "diagnostic",
            "regime": "faults_p025",
            "task": task,
            "schedule": schedule,
            "schedule_seed": _seed("diagnostic", task, schedule),
            "true_successes": truths,
            "observed_rewards": truths,
        }


@cache
def _seed(pool: str, task: int, schedule: int) -> int:
    return evaluation_seed(f"{pool}:{task}", schedule)
