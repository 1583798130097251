"""Checkpoints of another study, for runs that train nothing and evaluate these.

A run's specification names the study, the run there, and a digest: the SHA-256 of a line a checkpoint, by
step, each its step, a space and the SHA-256 that its row names. The digest is compared before anything is
played. The study that evaluates them keeps the checkpoints as its own, under the names of its own runs, so
that whoever plays its rows again needs no other study; its copies are held against the same digest.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from typing import TypeAlias

from toolkit.errors import DamagedError, IncompleteError
from toolkit.lab.play.rows import rows_of_run
from toolkit.registers.arrow import Row, to_rows
from toolkit.registers.study import Study
from toolkit.specification import Specification

TABLE = "checkpoints"

Given: TypeAlias = "Callable[[Specification, int], Row]"
"""Gives the checkpoint that a run evaluates at a step, as a row of the run's own."""

_KEPT = 8
"""Runs whose checkpoints are held at a time: no more are played side by side as a rule."""


def checkpoints_sha256(checkpoints: Iterable[tuple[int, str]]) -> str:
    """Return the digest of a run's checkpoints: of their steps and of the SHA-256 of each."""
    return sha256("".join(f"{step} {digest}\n" for step, digest in sorted(checkpoints)).encode()).hexdigest()


def check_registered(specification: Specification, checkpoints: Sequence[Row], where: object) -> None:
    """Check that checkpoints are those that a run was registered to evaluate."""
    steps = tuple(sorted(row["step"] for row in checkpoints))
    if steps != specification.ends:
        raise DamagedError(
            f"{specification.run_id} evaluates checkpoints at other steps",
            expected=", ".join(map(str, specification.ends)),
            found=", ".join(map(str, steps)) or "none",
            where=where,
        )
    found = checkpoints_sha256((row["step"], row["sha256"]) for row in checkpoints)
    if found != specification.checkpoints["sha256"]:
        raise DamagedError(
            f"the checkpoints are not those that {specification.run_id} was registered to evaluate",
            expected=f"SHA-256 {specification.checkpoints['sha256']}",
            found=f"SHA-256 {found}",
            where=where,
            remedy="restore the study's checkpoints",
        )


def check_copies(study: Study, specification: Specification) -> None:
    """Check that a study's own copies are the checkpoints that a run was registered to evaluate."""
    _check_held(specification, study, specification.run_id)


def given_by(specifications: Iterable[Specification], open_study: Callable[[str], Study]) -> Given:
    """Return what gives runs the checkpoints that they evaluate, compared with their digests."""
    opened = cache(open_study)
    return _given(specifications, lambda run: (opened(run.checkpoints["study"]), run.checkpoints["run"]))


def given_by_copies(specifications: Iterable[Specification], study: Study) -> Given:
    """Return what gives runs the checkpoints that they evaluated, from their own study; as `given_by`."""
    return _given(specifications, lambda run: (study, run.run_id))


def _given(
    specifications: Iterable[Specification], held: Callable[[Specification], tuple[Study, str]]
) -> Given:
    places = {}
    for specification in specifications:
        if not specification.trains:
            study, run = held(specification)
            _check_held(specification, study, run)
            places[specification.run_id] = (study, TABLE, run)

    @lru_cache(maxsize=_KEPT)
    def rows(run_id: str) -> dict[int, Row]:
        return {row["step"]: row for row in rows_of_run(*places[run_id])}

    def given(specification: Specification, step: int) -> Row:
        return {**rows(specification.run_id)[step], "run_id": specification.run_id}

    return given


def _check_held(specification: Specification, study: Study, run: str) -> None:
    if not study.has_rows(TABLE, run):
        raise IncompleteError(
            f"{specification.run_id} evaluates checkpoints that are not here",
            expected=f"{TABLE} of run {run}",
            found=f"study {study.name!r} without them",
            where=study.folder,
        )
    held = to_rows(study.run_columns(TABLE, run, ("step", "sha256")))
    check_registered(specification, held, f"{study.folder}, {TABLE} of {run}")
