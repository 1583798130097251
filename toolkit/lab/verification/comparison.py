"""Is a re-run the study that is registered? Table by table, run by run, however Parquet holds the rows."""

import tempfile
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from toolkit.errors import UsageError, VerificationError
from toolkit.lab.executors.executor import Executor
from toolkit.lab.play import runner, segments
from toolkit.lab.play.assemble import assemble, seal
from toolkit.lab.play.rows import given_by_copies
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.probing.design import RegisteredProbe
from toolkit.lab.probing.run import measure_runs
from toolkit.registers import manifest, row_tables, schema
from toolkit.registers.arrow import row_sha256
from toolkit.registers.study import Study, open_study
from toolkit.specification import LanguageModelSpecification, Specification

OF_RUNS = ("checkpoints", *segments.LEFT_BY["adapters"])
"""Tables in which a difference begins: what others say follows from them."""


def compare(registered: Study, played: Study, runs: Collection[str] | None = None) -> tuple[str, ...]:
    """Check that what was played again is what is registered."""
    import pyarrow.compute as pc

    others = [
        name for name in schema.TABLES if played.has(name) and name not in {*OF_RUNS, *row_tables.OF_LAUNCHES}
    ]
    compared = []
    for name in (*OF_RUNS, *others):
        whole = schema.TABLES[name].column("run_id") is None
        if not played.has(name) or (whole and runs is not None):
            continue
        if runs is None and registered.has(name) and registered.sha256(name) == played.sha256(name):
            compared.append(name)
            continue
        concerned = runs
        if runs is None:
            sides = [study.arrow(name) for study in (registered, played) if not whole and study.has(name)]
            concerned = {run for side in sides for run in pc.unique(side["run_id"]).to_pylist()}
        _compare_table(registered, played, name, [None] if whole else sorted(concerned or ()))
        compared.append(name)
    return tuple(compared)


def play_again(
    registered: Study,
    specifications: Sequence[Specification],
    reference: manifest.RegistrationRef,
    executor: Executor,
    *,
    is_everything: bool,
    probe: RegisteredProbe | None = None,
) -> tuple[str, ...]:
    """Play runs again in a folder of their own, and compare what they leave with what is registered."""
    with tempfile.TemporaryDirectory() as scratch:
        workplace = Workplace(Path(scratch) / "runs")
        with workplace.held(specifications):
            given = given_by_copies(specifications, registered)
            runner.play_runs(workplace, specifications, executor, given=given)
            measured = measure_runs(workplace, probe, executor) if probe else None
        assembly = assemble(workplace, specifications, lambda _: None)
        if measured is not None:
            assembly = measured.added_to(assembly)
        seal(Path(scratch) / registered.name, registered.name, reference, assembly)
        played = open_study(Path(scratch) / registered.name)
        names = None if is_everything else [run.run_id for run in specifications]
        return compare(registered, played, names)


def check_repeatable(specifications: Iterable[Specification]) -> None:
    """Check that runs come out the same to the last bit wherever they are played."""
    if any(isinstance(run, LanguageModelSpecification) for run in specifications):
        raise UsageError(
            "the runs of language models are not compared row by row",
            found="--check: their last digits are those of the machine and of its libraries",
            remedy="train them with --folder elsewhere, and compare with `toolkit diff`",
        )


def _compare_table(registered: Study, played: Study, name: str, runs: Sequence[str | None]) -> None:
    """Raise where a table differs: in one of the runs, or as a whole where it says nothing of runs."""
    sides = [study.arrow(name) if study.has(name) else None for study in (registered, played)]
    for run in runs:
        expected, digest = (_digest(side, run) for side in sides)
        if expected != digest:
            part = f"run {run}" if run else "all of it"
            raise VerificationError(
                f"what was played again differs from study {registered.name!r} in {name}, {part}",
                expected=f"rows with SHA-256 {expected}",
                found=f"rows with SHA-256 {digest}",
                where=registered.folder,
                remedy="compare the versions in `launches` and the specifications in `runs`",
            )


def _digest(table: Any, run: str | None) -> str:
    if table is None:
        return "of no row"
    if run is None:
        return row_sha256(table)
    import pyarrow.compute as pc

    of_run = table.filter(pc.equal(table["run_id"], run))
    return row_sha256(of_run) if of_run.num_rows else "of no row"
