"""The end of a run: its rows as Parquet files, what follows from them, and what they lack."""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from toolkit.canonical import canonical
from toolkit.lab.play import workplace
from toolkit.lab.play.segments import Segment, names_of, rows_of
from toolkit.lab.play.shortcomings import shortcomings
from toolkit.lab.training.recipe import recipe_of
from toolkit.noise.regimes import REGIMES
from toolkit.registers import arrow, columns, schema
from toolkit.registers.episode_counts import CountedRun
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
    regime = REGIMES[specification.regime]
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
        **_of_language_model(specification),
    }


def policy_of(specification: Specification) -> str:
    """Return what a run trains, in a word: the name of a language model."""
    if isinstance(specification, LanguageModelSpecification):
        return recipe_of(specification).model
    return POLICY


def _of_language_model(specification: Specification) -> arrow.Row:
    """Return what a row of `runs` says of a language model's run alone."""
    if not isinstance(specification, LanguageModelSpecification):
        return {}
    return {
        "model_commit": specification.model_commit,
        "recipe_sha256": recipe_of(specification).sha256(),
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
