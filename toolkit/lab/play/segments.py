"""A run as a chain of segments: what is played between two checkpoints, and the file that it leaves.

A segment ends at a checkpoint. The first one ends at step 0: nothing is trained, the untrained policy is
evaluated. Each further segment starts from the checkpoint before it and from nothing else, so that a run that
was cut off goes on from its newest checkpoint and leaves the same bytes. Its file:

    SHA-256 of everything below, in hexadecimal
    JSON: the run, its specification's SHA-256, the segment's number, its last step, the SHA-256 of the file
        of the segment before
    JSON: the row of `checkpoints`
    zlib: JSON: table → its columns, and its rows as lists
"""

import gc
import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from toolkit import errors, files, seeds
from toolkit.canonical import canonical
from toolkit.lab.evaluation import diagnostic, play, sets
from toolkit.lab.policies.loglinear import Policy, layout, untrained
from toolkit.lab.task_pools import specified
from toolkit.lab.training import checkpoint, grpo
from toolkit.lab.training.checkpoint import Weights, start
from toolkit.lab.worlds.world import check_world
from toolkit.registers import arrow, schema
from toolkit.specification import Specification

CYCLES = 50_000
PLAYED = ("groups", "episodes", "luck_share")
LEFT_BY = {"checkpoints": PLAYED, "adapters": (*PLAYED, "steps")}
"""Table of checkpoints, of a policy whose parameters a row holds or of a language model's adapter → the other
tables that such a run leaves."""

Segment: TypeAlias = "dict[str, list[Any]]"
"""Table → rows: those that `LEFT_BY` names, and one row of checkpoints."""


def play_segment(specification: Specification, end: int, before: Any) -> Segment:
    """Play one segment.

    Where nothing is trained, the checkpoint that is handed over is the one that is evaluated.
    """
    make_tasks(tuple(sorted(specification.pools.items())), specification.world)
    if not specification.trains and (before is None or before["step"] != end):
        problem = f"{specification.run_id} trains nothing, and was not handed what it evaluates"
        expected = f"the checkpoint at step {end}"
        raise errors.DamagedError(problem, expected=expected, found=before and before["step"])
    if before is None:
        weights = start(untrained(specification.surface_tokens))
    else:
        size = layout(specification.surface_tokens).size
        weights = checkpoint.read_checkpoint(before, specification.run_id, size)
    segment: Segment = {
        "groups": [],
        "luck_share": _diagnosed(specification, weights) if before is None else [],
    }
    while weights.step < end:
        weights, groups = grpo.train_step(specification, weights)
        segment["groups"] += groups
        segment["luck_share"] += _diagnosed(specification, weights)
    policy, sampling = Policy(weights.parameters, specification.surface_tokens), evaluated_with(specification)
    segment["episodes"] = [
        row
        for evaluation in sets_of(specification, end)
        for row in play.evaluate(policy, evaluation, specification.run_id, end, sampling)
    ]
    segment["checkpoints"] = [checkpoint.checkpoint_row(specification.run_id, weights)]
    return segment


@lru_cache
def make_tasks(pools: tuple[tuple[str, str], ...], world: str = "") -> None:
    """Make the tasks of a run's pools, once a process, and check that they are the specified ones."""
    if world:
        check_world(world)
    for name, sha256 in pools:
        specified(name, sha256, world)
    # The tasks stay for good, and episodes leave few cycles: a collector at its usual pace takes a third of
    # the time, and frees next to nothing.
    gc.collect()
    gc.freeze()
    gc.set_threshold(CYCLES)


def sets_of(specification: Specification, step: int) -> tuple[sets.EvaluationSet, ...]:
    """Return the sets that a run is evaluated on at a checkpoint."""
    return sets.sets_at(
        specification.battery,
        specification.at_noise,
        is_last=step == specification.steps,
        sub_requests=specification.sub_requests,
        world=specification.world,
    )


def sampling_of(specification: Specification) -> int:
    """Return the seed of everything that a run samples of its own."""
    return seeds.sampling_seed(specification.root, specification.run_id, specification.seed)


def evaluated_with(specification: Specification) -> play.Sampling:
    """Return what the policy samples with where a run is evaluated."""
    return (
        play.SharedSamples(specification.root)
        if specification.sampling == "shared"
        else sampling_of(specification)
    )


def _diagnosed(specification: Specification, weights: Weights) -> list[arrow.Row]:
    if weights.step not in specification.diagnosed:
        return []
    policy = Policy(weights.parameters, specification.surface_tokens)
    regime = diagnostic.regime_diagnosed(specification.regime)
    place = (regime, specification.run_id, weights.step, sampling_of(specification))
    return diagnostic.diagnose(policy, *place, world=specification.world)


@dataclass(frozen=True)
class Link:
    """A segment's place in its run's chain."""

    run_id: str  # the run
    specification_sha256: str  # of what was launched
    number: int  # position of the segment in the run, from 0
    end: int  # step at which it ends
    before: str  # SHA-256 of the file of the segment before; empty for the first


class BrokenSegmentError(errors.DamagedError):
    """A segment's file is not as it was written: cut short, or changed."""


def names_of(specification: Specification) -> tuple[str, ...]:
    """Return the tables that a run leaves rows of in the registers; its segments always have a checkpoint."""
    left_out = {
        "groups": not specification.keeps_groups,
        specification.checkpoint_table: not specification.keeps_checkpoints,
    }
    table = specification.checkpoint_table
    return tuple(name for name in (*LEFT_BY[table], table) if not left_out.get(name))


def segment_name(number: int) -> str:
    """Return the name of a segment's file."""
    return f"segment-{number:03}"


def link(specification: Specification, number: int, end: int, before: str) -> Link:
    """Return the place of a run's segment."""
    return Link(specification.run_id, specification.sha256(), number, end, before)


def encode(place: Link, segment: Segment) -> bytes:
    """Return a segment's file."""
    states = [name for name in LEFT_BY if name in segment]
    names = [*LEFT_BY[states[0]], states[0]] if states else []
    if {*segment} != {*names} or len(segment[states[0]]) != 1:
        problem = "a segment is not rows of the tables that a run leaves, with one checkpoint"
        expected = " or ".join(", ".join((*others, state)) for state, others in LEFT_BY.items())
        found = ", ".join(f"{name}: {len(rows)}" for name, rows in segment.items())
        raise errors.DamagedError(problem, expected=expected, found=found, where=place.run_id)
    (state,) = segment[states[0]]
    _check_checkpoint(place, state, place.run_id)
    try:
        rows = canonical({name: _columnar(name, segment[name]) for name in names})
        parts = (canonical(asdict(place)), canonical(state))
    except (TypeError, ValueError) as error:
        raise errors.DamagedError(
            "a value of a segment has no JSON form", found=error, where=place.run_id
        ) from None
    return files.sealed("\n".join(parts).encode() + b"\n" + zlib.compress(rows.encode(), level=1))


def check_segment(raw: bytes, place: Link, where: object) -> arrow.Row:
    """Check that a file is the segment that belongs in a place."""
    header, state, _ = _parts(raw, where)
    own = Link(**header)
    if own != place:
        name = next(name for name, value in asdict(place).items() if value != header[name])
        raise errors.DamagedError(
            f"a segment belongs to another {_IN_WORDS[name]}",
            expected=f"{name} {asdict(place)[name]}",
            found=f"{name} {header[name]}",
            where=where,
            remedy="put back the file that belongs here, or move this one away: it will be played again",
        )
    _check_checkpoint(place, state, where)
    return state


def checkpoint_of(raw: bytes) -> arrow.Row:
    """Return the checkpoint that a segment's file ends with."""
    return _parts(raw, "segment")[1]


def rows_of(raw: bytes, where: object) -> Segment:
    """Return a segment's rows."""
    *_, compressed = _parts(raw, where)
    tables = json.loads(zlib.decompress(compressed))
    return {
        name: [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
        for name, table in tables.items()
    }


_IN_WORDS = {
    "run_id": "run",
    "specification_sha256": "specification",
    "number": "place in its run",
    "end": "checkpoint",
    "before": "chain of segments",
}


def _columnar(name: str, rows: Sequence[arrow.Row]) -> dict[str, object]:
    table = schema.TABLES[name]
    mentioned = {column for row in rows for column in row}
    columns = [c.name for c in table.columns if not c.optional or c.name in mentioned]
    for row in rows:
        if set(row) != set(columns):
            problem = f"a row of {name} does not have the schema's columns"
            expected = sorted(set(columns) - set(row)) or "nothing more"
            found = sorted(set(row) - set(columns)) or "columns missing"
            raise errors.DamagedError(problem, expected=expected, found=found, where=name)
    return {"columns": columns, "rows": [[row[column] for column in columns] for row in rows]}


def _parts(raw: bytes, where: object) -> tuple[dict[str, Any], arrow.Row, bytes]:
    payload = files.unsealed(raw)
    if payload is None:
        digest, _, rest = raw.partition(b"\n")
        problem = "a segment is not as it was written: cut short, or changed"
        expected = f"SHA-256 {digest[:64].decode(errors='replace')}"
        found = f"SHA-256 {hashlib.sha256(rest).hexdigest()}"
        raise BrokenSegmentError(problem, expected=expected, found=found, where=where)
    header, state, compressed = payload.split(b"\n", 2)
    return json.loads(header), json.loads(state), compressed


def _check_checkpoint(place: Link, row: arrow.Row, where: object) -> None:
    own = (row.get("run_id"), row.get("step"))
    if own != (place.run_id, place.end):
        problem = "a checkpoint belongs to another run or step"
        expected = f"{place.run_id} at step {place.end}"
        raise errors.DamagedError(problem, expected=expected, found=f"{own[0]} at step {own[1]}", where=where)
    sha256 = checkpoint.checkpoint_sha256 if "parameters" in row else checkpoint.adapter_sha256
    digest = sha256(row)
    if digest != row["sha256"]:
        problem = "a checkpoint's state is not the one that it names"
        expected = f"SHA-256 {row['sha256']}"
        raise errors.DamagedError(problem, expected=expected, found=f"SHA-256 {digest}", where=where)
