"""The end of a run: whether its evidence is what is registered, its rows as Parquet files, what follows.

A run counts only if nothing of its evidence is found lacking.

Source:
    Registered rule on exclusion: every periodic and final set with exactly the expected task and schedule
    identities, every training step's groups in the trainer's order.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import Any

from toolkit.evaluation import diagnostic, sets
from toolkit.registers import arrow, columns, row_types, schema
from toolkit.study.play import summaries, workplace
from toolkit.study.play.segments import Segment, ends, names_of, rows_of
from toolkit.tasks.pools import POOLS
from toolkit.training.specification import Specification

Place = tuple[str, str, str, int]
"""Phase, pool, regime, step."""

MOST_NAMES = 10

DERIVED = ("runs", "evaluations", "groups_summary", "luck_share_summary")
"""Tables of which a run's summary holds the rows."""


def files_of(specification: Specification) -> tuple[str, ...]:
    """Return the names of the files that a run's conclusion consists of."""
    return (*(f"{name}.parquet" for name in names_of(specification)), workplace.SUMMARY)


def conclude(specification: Specification, segments: Iterable[bytes]) -> dict[str, bytes]:
    """Return the files that end a run.

    Args:
        specification: the run.
        segments: its segments' files, in order.

    Raises:
        DamagedError: rows contradict the schema, or a segment is not as it was written.
    """
    rows: Segment = {name: [] for name in names_of(specification)}
    for raw in segments:
        for name, part in rows_of(raw, specification.run_id).items():
            rows[name] += part
    lacking = shortcomings(specification, rows)
    status = "INCOMPLETE" if lacking else "COMPLETE"
    run = summaries.run_place(specification)
    summary = {
        "shortcomings": list(lacking),
        "runs": [summaries.run_row(specification, rows, status)],
        "evaluations": summaries.evaluations(run, rows["episodes"]),
        "groups_summary": summaries.groups_summary(specification, rows["groups"]),
        "luck_share_summary": summaries.luck_share_summary(
            run, rows["luck_share"], summaries.policy_of(specification)
        ),
    }
    files = {
        f"{name}.parquet": arrow.parquet_bytes(name, arrow.to_arrow(schema.TABLES[name], part))
        for name, part in rows.items()
    }
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


def shortcomings(specification: Specification, rows: Segment) -> tuple[str, ...]:
    """Return what a run's evidence lacks, or has too much; nothing where it is what is registered.

    Args:
        specification: the run.
        rows: all rows of the run, in the order in which they were played.
    """
    lacking = [
        *_of_runs(specification, rows),
        *_of_evaluations(specification, rows["episodes"]),
        *_of_groups(specification, rows["groups"]),
        *_of_diagnostics(specification, rows["luck_share"]),
        *_of_checkpoints(specification, rows[specification.checkpoint_table]),
    ]
    more = [f"and {len(lacking) - MOST_NAMES} more"] if len(lacking) > MOST_NAMES else []
    return (*lacking[:MOST_NAMES], *more)


def expected_sets(specification: Specification) -> dict[Place, sets.EvaluationSet]:
    """Return every evaluation that a run has, by its place."""
    battery, at_noise = specification.battery, specification.at_noise
    return {
        (evaluation.phase, evaluation.pool, evaluation.regime, step): evaluation
        for step in ends(specification)
        for evaluation in sets.sets_at(battery, at_noise, is_last=step == specification.steps)
    }


def _of_runs(specification: Specification, rows: Segment) -> Iterator[str]:
    for name, part in rows.items():
        others = {row["run_id"] for row in part} - {specification.run_id}
        if others:
            yield f"{name} has rows of {', '.join(map(str, sorted(others)))}"


def _of_evaluations(specification: Specification, episodes: Sequence[row_types.EpisodeRow]) -> Iterator[str]:
    played: dict[Place, Counter[tuple[int, int]]] = {}
    for row in episodes:
        at = (row["phase"], row["pool"], row["regime"], row["step"])
        played.setdefault(at, Counter())[row["task"], row["schedule"]] += 1
    expected = expected_sets(specification)
    for at, wanted in expected.items():
        identities = played.pop(at, Counter())
        wrong = [*(wanted.identities - set(identities)), *(set(identities) - wanted.identities)]
        twice = [identity for identity, times in identities.items() if times > 1]
        if wrong or twice:
            yield (
                f"the {_said(at)} evaluation has {identities.total()} episodes, "
                f"not its {len(wanted.identities)}: {len(wrong)} missing or unknown, "
                f"{len(twice)} played twice"
            )
    yield from (f"there is an evaluation that is not registered: {_said(at)}" for at in played)


def _of_groups(specification: Specification, groups: Sequence[row_types.GroupRow]) -> Iterator[str]:
    expected = product(range(1, specification.steps + 1), range(specification.prompts_per_step))
    positions = [(row["step"], row["position"]) for row in groups]
    if positions != list(expected):
        number = specification.steps * specification.prompts_per_step
        yield (
            f"the training groups are not the {number} of every step in the trainer's order: {len(positions)}"
        )
    wrong = [row for row in groups if set(map(len, _of_each_rollout(row))) != {specification.group_size}]
    if wrong:
        yield f"{len(wrong)} training groups do not have {specification.group_size} rollouts"


def _of_each_rollout(row: row_types.GroupRow) -> tuple[list[Any], ...]:
    return row["schedule_seeds"], row["true_successes"], row["observed_rewards"], row["advantages"]


def _of_diagnostics(specification: Specification, rows: Sequence[row_types.LuckShareRow]) -> Iterator[str]:
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


def _of_checkpoints(specification: Specification, rows: Sequence[row_types.CheckpointRow]) -> Iterator[str]:
    steps = tuple(row["step"] for row in rows)
    if steps != ends(specification):
        yield f"there are checkpoints at {', '.join(map(str, steps))} alone"


def _said(place: Place) -> str:
    phase, pool, regime, step = place
    return f"{phase} {pool} {regime} step {step}"
