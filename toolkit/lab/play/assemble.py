"""From complete runs to a study's registers."""

import io
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from toolkit.decisions import engine
from toolkit.decisions.case import Case
from toolkit.files import LARGEST_ROWS, hold, make_folder, read_bytes, read_text
from toolkit.findings import card_text, read_findings
from toolkit.lab.play import conclusion, segments
from toolkit.lab.play.workplace import SUMMARY, RunFolder, Workplace
from toolkit.lab.task_pools import TABLE, specified
from toolkit.prereg.registration import Registration
from toolkit.registers import arrow, manifest, row_tables, schema, writer
from toolkit.registers.cards import CARD, repository_documents
from toolkit.registers.study import open_study
from toolkit.specification import Specification
from toolkit.structs import as_builtins, replace
from toolkit.verification.steps import SCHEDULE, schedules_met
from toolkit.verification.summaries import SUMMARIES

_MOMENTS = ("launched_at", "ended_at")
_OF_LANGUAGE_MODELS = ("stack", "accelerator", "processes", "kernels", "step_seconds", "generation_seconds")


@dataclass(frozen=True)
class Assembly:
    """The registers of a study, not yet written."""

    files: Mapping[str, Mapping[str, bytes]]  # table → its Parquet files by name, in the order of their rows
    shortcomings: Mapping[str, tuple[str, ...]]  # run → what its evidence lacks; only runs that do not count


def assemble(
    workplace: Workplace, specifications: Sequence[Specification], progress: Callable[[str], None]
) -> Assembly:
    """Gather the registers of runs."""
    import pyarrow.parquet as pq

    runs = sorted(map(workplace.run, specifications), key=lambda run: run.specification.run_id)
    progress("checking the runs' files")
    for run in runs:
        run.check_launched()
        run.check_complete()
    files: dict[str, dict[str, bytes]] = {}
    for run in runs:
        for name in segments.names_of(run.specification):
            content = read_bytes(run.folder / f"{name}.parquet", LARGEST_ROWS)
            files.setdefault(name, {})[f"{name}/{run.specification.run_id}.parquet"] = content
    lacking = {run.specification.run_id: _shortcomings(run) for run in runs}
    shared = _derived(runs, lacking) | {
        "launches": [row for run in runs for row in _launches(run)],
        "schedules": schedules([*files["episodes"].values(), *files["luck_share"].values()]),
    }
    progress("generating the tasks")
    pools = {item: run.world for run in specifications for item in run.pools.items()}
    shared[TABLE] = [
        row for (name, sha), world in sorted(pools.items()) for row in specified(name, sha, world)
    ]
    # A table without a row, and a file without one, say nothing: they are left out.
    for name, parts in files.items():
        files[name] = {file: raw for file, raw in parts.items() if pq.read_metadata(io.BytesIO(raw)).num_rows}
    files |= writer.rows_files({name: rows for name, rows in shared.items() if rows})
    return Assembly(
        {name: parts for name, parts in files.items() if parts},
        {name: reasons for name, reasons in lacking.items() if reasons},
    )


def seal(
    folder: Path,
    study: str,
    registration: manifest.RegistrationRef,
    assembly: Assembly,
    card: str | None = None,
    *,
    decisions: Sequence[arrow.Row] = (),
    standing: str = "",
    findings: str = "",
) -> manifest.Manifest:
    """Write a study's registers; the same runs give the same rows."""
    import pyarrow.parquet as pq

    documents = {}
    if card is not None:
        files = {name: assembly.files[name] for name in schema.TABLES if name in assembly.files}
        parts = [pq.ParquetFile(io.BytesIO(content)).read() for content in files["runs"].values()]
        rows = {"runs": [row for part in parts for row in arrow.to_rows(part)], "decisions": decisions}
        documents = repository_documents(
            card, files, registration=registration, rows=rows, standing=standing, findings=findings
        )
    return writer.write_study(
        folder,
        study=study,
        evidence="rows",
        registration=registration,
        files=assembly.files,
        documents=documents,
    )


def seal_decided(
    folder: Path,
    registration: Registration,
    named: manifest.RegistrationRef,
    assembly: Assembly,
    card: Path,
    *,
    open_case: Callable[..., Case],
) -> manifest.Manifest:
    """Write a study's registers with what is decided on them."""
    study = registration.name
    writer.check_place(folder, study, [*chain.from_iterable(assembly.files.values()), CARD])
    source = read_text(card) if card.is_file() else None
    make_folder(folder.parent)
    with hold(folder.parent, f".{folder.name}.lock", "study's registers"):
        with tempfile.TemporaryDirectory() as scratch:
            seal(Path(scratch) / study, study, named, assembly)
            case = open_case(open_study(Path(scratch) / study), registration)
            decisions = case.binding
            found = card_text(read_findings(card.parent, [case], holding_alone=True), study)
        rows = engine.decision_rows(decisions, engine.inputs_sha256(case.study))
        decided = {**assembly.files, **writer.rows_files({row_tables.DECISIONS.name: rows})}
        return seal(
            folder,
            study,
            named,
            replace(assembly, files=decided),
            source,
            decisions=[row | {"title": made.title} for row, made in zip(rows, decisions, strict=True)],
            standing=str(case.standing),
            findings=found,
        )


def schedules(files: Iterable[bytes]) -> list[arrow.Row]:
    """Return the schedules that episodes and diagnostics met, each once."""
    import pyarrow.parquet as pq

    return schedules_met([pq.ParquetFile(io.BytesIO(content)).read(list(SCHEDULE)) for content in files])


def _shortcomings(run: RunFolder) -> tuple[str, ...]:
    versions = {launch.code_version for launch in run.launches()}
    mixed = (f"its attempts have versions {', '.join(sorted(versions))}",) if len(versions) > 1 else ()
    return (*run.shortcomings(), *mixed)


def _derived(runs: Sequence[RunFolder], lacking: Mapping[str, tuple[str, ...]]) -> dict[str, list[arrow.Row]]:
    tables: dict[str, list[arrow.Row]] = {name: [] for name in SUMMARIES}
    for run in runs:
        # Its bytes are those that the run was complete with.
        summary: dict[str, Any] = json.loads(read_bytes(run.folder / SUMMARY))
        for name in SUMMARIES:
            tables[name] += conclusion.derived_rows(summary, name)
    for row in tables["runs"]:
        row["status"] = "INCOMPLETE" if lacking[row["run_id"]] else "COMPLETE"
    return tables


def _launches(run: RunFolder) -> Iterable[arrow.Row]:
    for launch in run.launches():
        row = {"run_id": run.specification.run_id, **as_builtins(launch)}
        if launch.stack is None:
            row = {name: value for name, value in row.items() if name not in _OF_LANGUAGE_MODELS}
        yield row | {name: row[name] and datetime.fromisoformat(row[name]) for name in _MOMENTS}
