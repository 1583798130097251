"""The end of a run: its rows as Parquet files, what follows from them, and what they lack."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.canonical import canonical
from toolkit.lab.evaluation import diagnostic, sets
from toolkit.lab.play import workplace
from toolkit.lab.play.segments import Segment, names_of, rows_of, sets_of
from toolkit.lab.tasks.pools import POOLS
from toolkit.lab.training.recipe import recipe_of
from toolkit.lab.training.rows import MOST_DRAWS, RESAMPLED
from toolkit.noise.regimes import REGIMES
from toolkit.registers import arrow, columns, schema
from toolkit.registers.episode_counts import CountedRun, Place, identity
from toolkit.specification import LanguageModelSpecification, Specification
from toolkit.verification import summaries

POLICY = "log-linear"


def files_of(specification: Specification) -> tuple[str, ...]:
    """Return the names of the files that a run's conclusion consists of."""
    return (*(f"{name}.parquet" for name in names_of(specification)), workplace.SUMMARY)


def conclude(specification: Specification, segments: Iterable[bytes]) -> dict[str, bytes]:
    """Return the files that end a run."""
    rows: Segment = {name: [] for name in names_of(specification)}
    for raw in segments:
        played = rows_of(raw, specification.run_id)
        for name in rows:
            rows[name] += played.get(name, ())  # one of an earlier version has no figures of steps
    tables = {name: arrow.to_arrow(schema.TABLES[name], part) for name, part in rows.items()}
    counted = summaries.count_episodes(specification.run_id, tables["episodes"])
    lacking = shortcomings(specification, counted, tables)
    run, there = run_place(specification), {n: t for n, t in tables.items() if t.num_rows}
    summary = {
        "shortcomings": list(lacking),
        "runs": [run_row(specification, counted, there, lacks=bool(lacking))],
        "evaluations": summaries.evaluations(run, counted),
        "groups_summary": summaries.groups_summary(run, there.get("groups")),
        "luck_share_summary": summaries.luck_share_summary(
            run, rows.get("luck_share", ()), policy_of(specification)
        ),
    }
    files = {f"{name}.parquet": arrow.parquet_bytes(name, table) for name, table in tables.items()}
    text = json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False, default=_plain)
    return files | {workplace.SUMMARY: f"{text}\n".encode()}


def derived_rows(summary: Mapping[str, Any], table: str) -> list[arrow.Row]:
    """Return the rows of a table that a run's summary holds, with their exact numbers."""
    exact = [column.name for column in schema.TABLES[table].columns if column.type is columns.Type.DECIMAL]
    return [
        row | {name: Decimal(row[name]) for name in exact if row[name] is not None} for row in summary[table]
    ]


def _plain(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def run_row(
    specification: Specification, counted: CountedRun | None, tables: Mapping[str, Any], *, lacks: bool
) -> arrow.Row:
    """Return the run's row of `runs`; what differs from launch to launch is null there."""
    regime, of_model = REGIMES[specification.regime], {}
    if isinstance(specification, LanguageModelSpecification):
        recipe = recipe_of(specification).sha256()
        of_model = {"model_commit": specification.model_commit, "recipe_sha256": recipe}
    return {
        **run_place(specification),
        "role": specification.role,
        "fault_rate": Decimal(str(regime.fault_rate)),
        "flip_rate": Decimal(str(regime.flip_rate)),
        "scale_rewards": specification.scale_rewards,
        "loss_type": specification.loss_type,
        "steps": specification.steps,
        "group_size": specification.group_size,
        "prompts_per_step": specification.prompts_per_step,
        "episodes": summaries.episodes(counted, tables),
        "training_groups": tables["groups"].num_rows if "groups" in tables else 0,
        "training_rollouts": summaries.rollouts(tables.get("groups")),
        "status": "INCOMPLETE" if lacks else "COMPLETE",
        "registered": specification.study,
        "provider": "local",
        "specification": canonical(specification.document()),
        **dict.fromkeys(_OF_ANOTHER_STACK),
        **of_model,
    }


def policy_of(specification: Specification) -> str:
    """Return what a run trains, in a word: the name of a language model."""
    if isinstance(specification, LanguageModelSpecification):
        return recipe_of(specification).model
    return POLICY


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


MOST_NAMES = 10


def shortcomings(
    specification: Specification, episodes: CountedRun | None, tables: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return what a run's evidence lacks, or has too much; nothing where it is what is registered."""
    there = {name: table for name, table in tables.items() if table.num_rows}
    runs = {name: set(table["run_id"].unique().to_pylist()) for name, table in there.items()}
    foreign = {name: of - {specification.run_id} for name, of in runs.items()}
    lacking = [
        f"{name} has rows of {', '.join(sorted(others))}" for name, others in foreign.items() if others
    ]
    lacking = lacking or [
        *_of_evaluations(specification, episodes),
        *_of_groups(specification, there.get("groups")),
        *_of_diagnostics(specification, there.get("luck_share")),
        *_of_checkpoints(specification, there.get(specification.checkpoint_table)),
    ]
    more = [f"and {len(lacking) - MOST_NAMES} more"] if len(lacking) > MOST_NAMES else []
    return (*lacking[:MOST_NAMES], *more)


def _of_evaluations(specification: Specification, counted: CountedRun | None) -> Iterator[str]:
    expected: dict[Place, sets.EvaluationSet] = {
        (evaluation.phase, evaluation.pool, evaluation.regime, step): evaluation
        for step in specification.ends
        for evaluation in sets_of(specification, step)
    }
    for at, wanted in expected.items():
        played = identity([], []) if counted is None else counted.identities(at)
        registered = _identities(wanted)
        if not np.array_equal(played, registered):
            wrong = len(np.setxor1d(played, registered))
            yield (
                f"the {_place_text(at)} evaluation has {len(played)} episodes, "
                f"not its {len(registered)}: {wrong} missing or unknown"
            )
    more = () if counted is None else [at for at in counted.stretches if at not in expected]
    yield from (f"there is an evaluation that is not registered: {_place_text(at)}" for at in more)


@cache
def _identities(played: sets.EvaluationSet) -> NDArray[np.int64]:
    task, schedule = np.indices((played.tasks, played.schedules)).reshape(2, -1)
    return identity(np.array(played.positions)[task], schedule)


def _of_groups(specification: Specification, groups: Any) -> Iterator[str]:
    has_groups = specification.trains and specification.keeps_groups
    steps, prompts = specification.steps if has_groups else 0, specification.prompts_per_step
    at = [[], []] if groups is None else [arrow.numbers(groups[name]) for name in ("step", "position")]
    lists = None if groups is None else groups["observed_rewards"].combine_chunks()
    sizes = np.diff([] if lists is None else arrow.numbers(lists.offsets))
    if specification.constant_groups == RESAMPLED and lists is not None and sizes.all():
        starts, flat = np.cumsum(sizes) - sizes, arrow.numbers(lists.flatten())
        varied = np.logical_or.reduceat(flat, starts) != np.logical_and.reduceat(flat, starts)
        yield from _of_draws(specification, at, varied)
    elif not np.array_equal(at, np.indices((steps, prompts)).reshape(2, -1) + np.array([[1], [0]])):
        yield (
            f"the training groups are not the {steps * prompts} of every step in the trainer's order: "
            f"{len(at[0])}"
        )
    wrong = int(np.sum(np.not_equal(sizes, specification.group_size)))
    if wrong:
        yield f"{wrong} training groups do not have {specification.group_size} rollouts"


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


def _place_text(place: Place) -> str:
    phase, pool, regime, step = place
    return f"{phase} {pool} {regime} step {step}"
