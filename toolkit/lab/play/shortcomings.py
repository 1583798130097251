"""Whether a run's evidence is what is registered: what it lacks, or has too much.

A run counts only if nothing of its evidence is found lacking.

Source:
    Registered rule on exclusion: every periodic and final set with exactly the expected task and schedule
    identities, every training step's groups in the trainer's order.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.lab.evaluation import diagnostic, sets
from toolkit.lab.play import segments
from toolkit.lab.tasks.pools import POOLS
from toolkit.lab.training.rows import MOST_DRAWS, RESAMPLED
from toolkit.registers import arrow
from toolkit.registers.episode_counts import CountedRun, Place, identity
from toolkit.specification import Specification

MOST_NAMES = 10


def shortcomings(
    specification: Specification, episodes: CountedRun | None, tables: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return what a run's evidence lacks, or has too much; nothing where it is what is registered."""
    there = {name: table for name, table in tables.items() if table.num_rows}
    lacking = list(_of_runs(specification, there)) or [
        *_of_evaluations(specification, episodes),
        *_of_groups(specification, there.get("groups")),
        *_of_diagnostics(specification, there.get("luck_share")),
        *_of_checkpoints(specification, there.get(specification.checkpoint_table)),
    ]
    more = [f"and {len(lacking) - MOST_NAMES} more"] if len(lacking) > MOST_NAMES else []
    return (*lacking[:MOST_NAMES], *more)


def expected_sets(specification: Specification) -> dict[Place, sets.EvaluationSet]:
    """Return every evaluation that a run has, by its place."""
    return {
        (evaluation.phase, evaluation.pool, evaluation.regime, step): evaluation
        for step in specification.ends
        for evaluation in segments.sets_of(specification, step)
    }


def _of_runs(specification: Specification, tables: Mapping[str, Any]) -> Iterator[str]:
    for name, table in tables.items():
        others = set(table["run_id"].unique().to_pylist()) - {specification.run_id}
        if others:
            yield f"{name} has rows of {', '.join(map(str, sorted(others)))}"


def _of_evaluations(specification: Specification, counted: CountedRun | None) -> Iterator[str]:
    expected = expected_sets(specification)
    for at, wanted in expected.items():
        played = identity([], []) if counted is None else counted.identities(at)
        registered = _identities(wanted)
        if not np.array_equal(played, registered):
            wrong = len(np.setxor1d(played, registered))
            yield (
                f"the {_said(at)} evaluation has {len(played)} episodes, "
                f"not its {len(registered)}: {wrong} missing or unknown"
            )
    more = () if counted is None else [at for at in counted.stretches if at not in expected]
    yield from (f"there is an evaluation that is not registered: {_said(at)}" for at in more)


@cache
def _identities(played: sets.EvaluationSet) -> NDArray[np.int64]:
    """Return every task and schedule of a set."""
    task, schedule = np.indices((played.tasks, played.schedules)).reshape(2, -1)
    return identity(np.array(played.positions)[task], schedule)


def _of_groups(specification: Specification, groups: Any) -> Iterator[str]:
    has_groups = specification.trains and specification.keeps_groups
    steps, prompts = specification.steps if has_groups else 0, specification.prompts_per_step
    at = [[], []] if groups is None else [arrow.numbers(groups[name]) for name in ("step", "position")]
    lists = None if groups is None else groups["observed_rewards"].combine_chunks()
    sizes = np.diff([] if lists is None else arrow.numbers(lists.offsets))
    if specification.constant_groups == RESAMPLED and lists is not None and sizes.all():
        yield from _of_draws(specification, at, _varied(lists, sizes))
    elif not np.array_equal(at, np.indices((steps, prompts)).reshape(2, -1) + np.array([[1], [0]])):
        yield (
            f"the training groups are not the {steps * prompts} of every step in the trainer's order: "
            f"{len(at[0])}"
        )
    wrong = int(np.sum(np.not_equal(sizes, specification.group_size)))
    if wrong:
        yield f"{wrong} training groups do not have {specification.group_size} rollouts"


def _varied(rewards: Any, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which groups have rewards of both kinds."""
    starts, flat = np.cumsum(sizes) - sizes, arrow.numbers(rewards.flatten())
    varied: NDArray[np.bool_] = np.logical_or.reduceat(flat, starts) != np.logical_and.reduceat(flat, starts)
    return varied


def _of_draws(
    specification: Specification, at: Sequence[NDArray[np.int64]], varied: NDArray[np.bool_]
) -> Iterator[str]:
    """Say at which steps groups were not drawn up to the last varied one that was wanted, or to the most."""
    (steps, positions), wanted = at, specification.prompts_per_step
    wrong = [str(step) for step in sorted(set(steps.tolist()) - {*range(1, specification.steps + 1)})]
    for step in range(1, specification.steps + 1):
        mine = steps == step
        drawn, number = varied[mine], int(mine.sum())
        is_whole = np.array_equal(positions[mine], np.arange(number)) and 0 < number <= wanted * MOST_DRAWS
        taken = int(drawn.sum())
        is_last = (taken == wanted and bool(drawn[-1])) or (taken < wanted and number == wanted * MOST_DRAWS)
        if not is_whole or not is_last:
            wrong.append(str(step))
    if wrong:
        yield f"groups were not drawn as their outcomes ask for at {len(wrong)} steps: {', '.join(wrong[:5])}"


def _of_diagnostics(specification: Specification, table: Any) -> Iterator[str]:
    rows: list[Any] = [] if table is None else arrow.to_rows(table)
    expected = sorted(product(range(POOLS[diagnostic.POOL].size), range(diagnostic.SCHEDULES)))
    steps = sorted({row["step"] for row in rows})
    if steps != sorted(specification.diagnosed):
        registered = ", ".join(map(str, specification.diagnosed))
        diagnosed = ", ".join(map(str, steps)) or "no step"
        yield f"the luck share was diagnosed at {diagnosed}, not at {registered}"
    for step in steps:
        identities = sorted((row["task"], row["schedule"]) for row in rows if row["step"] == step)
        if identities != expected:
            rest = f"have {len(identities)} rows, not their {len(expected)}"
            yield f"the luck-share tables at step {step} {rest}"
    regime = diagnostic.regime_diagnosed(specification.regime)
    if any((row["pool"], row["regime"]) != (diagnostic.POOL, regime) for row in rows):
        yield f"a luck-share table is not one of pool {diagnostic.POOL} under {regime}"
    if any(len(row["true_successes"]) != diagnostic.SAMPLES for row in rows):
        yield f"a luck-share table does not have {diagnostic.SAMPLES} rollouts a row"


def _of_checkpoints(specification: Specification, rows: Any) -> Iterator[str]:
    steps = () if rows is None else tuple(rows["step"].to_pylist())
    if not specification.keeps_checkpoints:
        if steps:
            yield f"there are checkpoints at {', '.join(map(str, steps))}, and the run keeps none"
    elif steps != specification.ends:
        yield f"there are checkpoints at {', '.join(map(str, steps)) or 'no step'} alone"


def _said(place: Place) -> str:
    phase, pool, regime, step = place
    return f"{phase} {pool} {regime} step {step}"
