"""Importing a study that somebody else ran: their table, their registration, and what it decides on them.

1. The mapping and the table are read; the registration is the frozen one that the mapping names.
2. Rows are converted, named, numbered and counted; those that were seen before the freeze are refused.
3. The registers are written beside their place and verified.
4. The registration decides on them; its decisions become a register, too, and the study is put in its place.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from toolkit import errors, files
from toolkit.decisions import engine
from toolkit.drafting import pilot
from toolkit.findings import card_text, read_findings
from toolkit.line_ends import ADDED, protect
from toolkit.places import Home, find_home
from toolkit.prereg.registration import Registration, load_registration
from toolkit.registers import row_tables, writer
from toolkit.registers.arrow import Row
from toolkit.registers.cards import repository_documents
from toolkit.registers.columns import MissingData
from toolkit.registers.importing.mapping import TableMapping, parse_mapping
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import ROW, Log
from toolkit.registers.importing.tables import counted, files_of, rows_of
from toolkit.registers.manifest import MANIFEST_NAME, Manifest
from toolkit.registers.study import SEEN, Study, open_study
from toolkit.rules import rulebook
from toolkit.rules.plan import Plan, place_of
from toolkit.structs import replace
from toolkit.verification.registered import open_case, reference

MAPPING = "source/mapping.toml"
ORIGIN = "source/table.json"
VERSIONS = "source/versions.json"
REGISTRATION = "prereg"


@dataclass(frozen=True)
class Imported:
    """What an import gave."""

    manifest: Manifest  # of the study
    decided: dict[str, str]  # rule → verdict
    present: tuple[str, ...]  # registered runs that are there
    absent: tuple[str, ...]  # registered runs that are not: condition, arm and seed, in words
    unregistered: tuple[str, ...]  # runs that are there, and that no line of the registered matrix has
    said: tuple[str, ...] = ()  # what a reader has to know of the log: what was left out, what is missing


def import_registers(
    study: str,
    sources: Sequence[str | Path],
    home: Home | None = None,
    *,
    mapping: Path | None = None,
    reason: str | None = None,
    check: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Imported:
    """Import a study as `toolkit.import_table` does; the same files give the same bytes.

    On a check nothing is written: the registers are compared with what the table gives, and VerificationError
    says which file differs.
    """
    home = home or find_home()
    named = [str(source) for source in sources]
    if not named:
        raise errors.UsageError("no source is named", expected="a file, a folder or a pattern")
    if home.is_shipped:
        raise errors.UsageError(
            "there is no project here to import into",
            where=Path.cwd(),
            remedy=f"start one in this folder: toolkit new-study {study} --table {named[0]}",
        )
    file = mapping or home.mappings / f"{study}.toml"
    if not file.is_file():
        raise errors.IncompleteError(
            f"there is no mapping for {study}",
            where=file,
            remedy=f"toolkit new-study {study} --table {named[0]} writes one to be looked over",
        )
    text = files.read_text(file)
    parsed = parse_mapping(text, file)
    if parsed.study != study:
        raise errors.UsageError(
            "the mapping is of another study", expected=study, found=parsed.study, where=file
        )
    registration = load_registration(home.registration_folder(parsed.registration))
    if registration.name != parsed.registration:
        raise errors.DamagedError(
            "the mapping belongs to another registration",
            expected=registration.name,
            found=parsed.registration,
            where=file,
        )
    card = home.cards / f"{study}.md"
    build = partial(_import, named, text, parsed, registration, card=card, progress=progress)
    folder = home.registers / study
    if check:
        with tempfile.TemporaryDirectory() as scratch:
            there = Path(scratch) / study
            shutil.copytree(folder, there)  # what was replaced before is recorded in it
            done = build(there, reason="")
            writer.compare_built(folder, there, done.manifest, "import the table again")
        return done
    home.registers.mkdir(parents=True, exist_ok=True)
    with files.hold(home.registers, f".{study}.lock", "study's registers"):
        done = build(folder, reason=reason)
    if protect(home.root):
        progress(ADDED)
    return done


def _import(
    sources: Sequence[str],
    mapped_by: str,
    mapping: TableMapping,
    registration: Registration,
    folder: Path,
    *,
    card: Path,
    reason: str | None,
    progress: Callable[[str], None],
) -> Imported:
    progress("reading the log")
    written = files.read_text(card)
    log = read_log(sources, progress)
    progress("converting rows")
    book = rulebook.rulebook_of(registration)
    origin, declared = _origin(log), (book.terms.scores, book.terms.missing)
    rows = rows_of(log.measured(mapping.columns), mapping, *declared, book.terms.attributes)  # 2
    check_numbered(rows, mapping, book)
    before = folder / SEEN
    seen = pilot.check_unseen(
        registration.folder, rows, reason, files.read_text(before) if before.is_file() else None
    )
    log = replace(log, table=log.table.clear())  # nothing is held twice
    tables = counted(rows, *declared)
    del rows
    made = files_of(tables, book.terms.words)
    tables = {name: table for name, table in tables.items() if name != row_tables.EPISODES.name}
    belongs_to = reference(registration)
    documents = {MAPPING: mapped_by.encode(), ORIGIN: origin, **_registered(registration), **seen}

    write = partial(
        writer.write_study,
        study=mapping.study,
        evidence="rows",
        registration=belongs_to,
        words=book.terms.words,
    )
    with tempfile.TemporaryDirectory() as scratch:
        progress("writing registers")
        proven = write(Path(scratch) / mapping.study, files=made, documents=documents)  # 3
        progress("deciding")
        study = open_study(Path(scratch) / mapping.study)
        case = open_case(study, registration)  # 4
        decisions = case.binding
        decided = engine.decision_rows(decisions, engine.inputs_sha256(study))
        compared = _compared(book.plan, study)
        found = card_text(read_findings(card.parent, [case], holding_alone=True), mapping.study)
    progress("writing registers")
    documents |= _versions(folder, made, decided, reason)
    outcomes = [row | {"title": made.title} for row, made in zip(decided, decisions, strict=True)]
    whole = made | writer.rows_files({row_tables.DECISIONS.name: decided})
    described = repository_documents(
        written,
        whole,
        registration=belongs_to,
        rows={"runs": tables["runs"].to_dicts(), "decisions": outcomes},
        words=book.terms.words,
        standing=str(case.standing),
        findings=found,
    )
    manifest = write(folder, files=whole, documents=documents | described, proven=proven)
    verdicts = {decision.rule: decision.verdict for decision in decisions}
    return Imported(manifest, verdicts, *compared, _remarks(log, mapping, tables, book.terms.missing))


def check_numbered(rows: pl.DataFrame, mapping: TableMapping, book: rulebook.RuleBook) -> None:
    """Check that no task is there more often than registered, where others of its evaluation are not."""
    if "schedule" in mapping.targets:
        return
    evaluation = ["run_id", "phase", "pool", "regime", "step"]
    for endpoint in (one for one in book.endpoints.values() if one.schedules):
        at = [pl.col(name).cast(pl.String) == str(of) for name, of in endpoint.where.items() if name in rows]
        counted = rows.filter(*at).group_by(*evaluation, "task").agg(pl.len().alias("times"), pl.col(ROW))
        more = pl.col("times") > endpoint.schedules
        twice = counted.filter(more & ~more.all().over(evaluation)).sort(pl.col(ROW).list.first())
        if twice.height:
            first = twice.row(0, named=True)
            raise errors.DamagedError(
                "a task is there more often than the others of its evaluation",
                expected=f"{endpoint.schedules} a task, as registered",
                found=f"{first['times']} of task {first['task']!r} in run {first['run_id']}: rows "
                f"{' and '.join(map(str, first[ROW][:5]))}",
                remedy='take out the row that is there twice; if they are attempts, say schedule = "0" under '
                "[constants], and [missing] attempts says which counts",
            )


def _versions(
    folder: Path, made: Mapping[str, Mapping[str, bytes]], decided: Sequence[Row], reason: str | None
) -> dict[str, bytes]:
    """Return what is recorded of the registers that an import replaces: nothing where it changes none."""
    if not (folder / MANIFEST_NAME).is_file():
        return {}
    study = open_study(folder)
    recorded = folder / VERSIONS
    earlier: list[Any] = json.loads(files.read_text(recorded)) if VERSIONS in study.manifest.files else []
    new = {
        name: hashlib.sha256(content).hexdigest()
        for parts in made.values()
        for name, content in parts.items()
    }
    tables = [entry for name, entry in study.manifest.tables.items() if name != row_tables.DECISIONS.name]
    old = {name: study.manifest.files[name].sha256 for entry in tables for name in entry.files}
    changed = sorted(name for name in {*new, *old} if new.get(name) != old.get(name))
    if changed and study.has(row_tables.DECISIONS.name):
        before = {row["rule"]: row["verdict"] for row in study.rows(row_tables.DECISIONS.name)}
        turned = {
            row["rule"]: [before.get(row["rule"]), row["verdict"]]
            for row in decided
            if before.get(row["rule"]) != row["verdict"]
        }
        if reason is None:
            said = "; ".join(f"{rule}: {was} becomes {now}" for rule, (was, now) in turned.items())
            raise errors.UsageError(
                f"study {study.name!r} was decided on other rows",
                expected="the same log",
                found=f"{len(changed)} files change; {said or 'no verdict changes'}",
                where=folder,
                remedy="say why, and it is recorded: --replace 'REASON'",
            )
        if reason:
            earlier.append(
                {
                    "logical_sha256": study.manifest.logical_sha256,
                    "files": {name: old[name] for name in changed if name in old},
                    "verdicts": before,
                    "turned": turned,
                    "reason": reason,
                }
            )
    text = json.dumps(earlier, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    return {VERSIONS: text.encode()} if earlier else {}


def _origin(log: Log) -> bytes:
    """Return which files the registers were made from: they need not lie beside them."""
    document = {
        "format": log.format,
        "files": [
            {"name": file.name, "bytes": file.stat().st_size, "sha256": files.file_sha256(file)}
            for file in log.files
        ],
        "rows": log.table.height,
    }
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def _remarks(
    log: Log, mapping: TableMapping, tables: Mapping[str, pl.DataFrame], missing: MissingData | None
) -> tuple[str, ...]:
    """Return what no row says: columns that were left out, episodes without an outcome, no launch times."""
    unused = [name for name in log.table.columns if name not in {ROW, *mapping.read.values()}]
    evaluations = tables["evaluations"]
    lacking = {
        name: int(evaluations[name].sum()) for name in ("missing", "excluded") if name in evaluations.columns
    }
    said = [f"columns that no register takes: {', '.join(unused)}"] if unused else []
    said += [f"left out: {what}" for what in log.left_out]
    if missing and any(lacking.values()):
        found = " and ".join(f"{count:,} {name}" for name, count in lacking.items() if count)
        said.append(f"episodes: {found}. {missing.in_words}")
    if "launched_at" not in mapping.targets:
        said.append("no launch times: nothing shows that the runs came after the registration")
    return tuple(said)


def _registered(registration: Registration) -> dict[str, bytes]:
    """Return the registration's files: registers that travel alone can be decided where they arrive."""
    folder = registration.folder
    return {
        f"{REGISTRATION}/{registration.name}/{path.relative_to(folder).as_posix()}": files.read_bytes(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


def _compared(plan: Plan, study: Study) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the registered runs that are there, the places that are empty, and the runs of no place."""
    places = [
        (cell.condition, cell.scale_rewards, arm, seed)
        for cell in plan.cells
        for arm in cell.arms
        for seed in cell.seeds
    ]
    runs = {place_of(run): run["run_id"] for run in study.rows("runs")}
    return (
        tuple(runs[at] for at in places if at in runs),
        tuple(f"{at[0]} {at[2]} seed {at[3]}" for at in places if at not in runs),
        tuple(name for at, name in runs.items() if at not in places),
    )
