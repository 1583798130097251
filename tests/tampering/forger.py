"""What an adversary can do to a home: write rows with the project's own writer, and every hash anew."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, tzinfo
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any, Self
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from tests.unit.prereg.drafts import demonstrators, opened
from toolkit.canonical import canonical
from toolkit.decisions.engine import StoredDecisions, decision_rows, inputs_sha256
from toolkit.decisions.intervals import Resampler, evidence_of
from toolkit.files import write_bytes
from toolkit.lab.play import conclusion
from toolkit.lab.play.matrix import specify_registered
from toolkit.lab.play.rows import rows_of_run, specification_of
from toolkit.places import Home
from toolkit.prereg.chain import CHAIN
from toolkit.prereg.freeze import add, freeze, read_addition
from toolkit.prereg.record import FROZEN, RECORD, TRUST
from toolkit.prereg.registration import load_registration
from toolkit.registers.arrow import Row, parquet_bytes, row_sha256, shape, to_arrow, to_rows
from toolkit.registers.manifest import FileEntry, TableEntry, read_manifest, write_manifest
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study, open_study
from toolkit.structs import replace
from toolkit.verification import registered, summaries
from toolkit.verification.registered import DerivedRegisters, open_case

BORN_WITH_THE_FREEZE = (FROZEN, CHAIN, RECORD, TRUST)
CLOCKS = ("demonstration", "freeze")


class Forger:
    """An adversary at work on one study of a home.

    Args:
        home: theirs to change.
        study: the study's name.
    """

    def __init__(self, home: Home, study: str) -> None:
        self.home = home
        self.folder = home.registers / study
        self.registration = home.registrations / read_manifest(self.folder).registration.name
        self._touched: set[str] = set()

    @property
    def study(self) -> Study:
        """The study as it lies there."""
        return open_study(self.folder)

    def file(self, table: str, part: str = "") -> str:
        """Return the name of a table's file: a run's, a split's, or the only one."""
        files = self.study.manifest.tables[table].files
        return next(name for name in files if PurePosixPath(name).stem.startswith(part or "train-"))

    def rows(self, table: str, part: str = "") -> list[Row]:
        """Return the rows of one of a table's files."""
        return to_rows(pq.ParquetFile(self.folder / self.file(table, part)).read())

    def write(self, table: str, rows: list[Row], part: str = "") -> None:
        """Write one of a table's files anew; hashes follow with `seal`."""
        write_bytes(self.folder / self.file(table, part), parquet_bytes(table, to_arrow(TABLES[table], rows)))
        self._touched.add(table)

    def edit(self, table: str, change: Callable[[list[Row]], object], part: str = "") -> Self:
        """Change the rows of one of a table's files in place."""
        rows = self.rows(table, part)
        change(rows)
        self.write(table, rows, part)
        return self

    def drop(self, table: str, part: str, is_meant: Callable[[Row], bool]) -> Self:
        """Leave rows out of one of a table's files; a file without rows goes."""
        kept = [row for row in self.rows(table, part) if not is_meant(row)]
        if kept:
            self.write(table, kept, part)
            return self
        name, manifest = self.file(table, part), read_manifest(self.folder)
        (self.folder / name).unlink()
        entry = manifest.tables[table]
        files = tuple(file for file in entry.files if file != name)
        tables = {**manifest.tables, table: replace(entry, files=files)}
        left = {file: entry for file, entry in manifest.files.items() if file != name}
        write_manifest(self.folder, replace(manifest, tables=tables, files=left))
        self._touched.add(table)
        return self

    def set(self, table: str, at: int, part: str = "", **values: Any) -> Self:
        """Give columns of one row other values; a function is told the old one."""

        def change(rows: list[Row]) -> None:
            for name, value in values.items():
                rows[at][name] = value(rows[at][name]) if callable(value) else value

        return self.edit(table, change, part)

    def seal(self, **facts: Any) -> Self:
        """Recompute every hash of what was written, and the manifest's seal."""
        manifest = read_manifest(self.folder)
        files, tables = dict(manifest.files), dict(manifest.tables)
        for name in self._touched:
            parts = []
            for file in tables[name].files:
                content = (self.folder / file).read_bytes()
                parts.append(shape(TABLES[name], pq.ParquetFile(self.folder / file).read()))
                files[file] = FileEntry(hashlib.sha256(content).hexdigest(), len(content), parts[-1].num_rows)
            whole = pa.concat_tables(parts)
            tables[name] = TableEntry(
                whole.num_rows, row_sha256(whole), tuple(whole.column_names), tables[name].files
            )
        for name in facts.pop("documents", ()):
            content = (self.folder / name).read_bytes()
            files[name] = FileEntry(hashlib.sha256(content).hexdigest(), len(content))
        self._touched.clear()
        write_manifest(self.folder, replace(manifest, files=files, tables=tables, **facts))
        return self

    def repoint(self) -> Self:
        """Have the manifest name the registration as it is now."""
        return self.seal(registration=registered.reference(load_registration(self.registration)))

    def fit_summaries(self, *runs: str) -> Self:
        """Derive the summaries of runs anew from their rows as they are now."""
        self.seal()
        study = self.study
        for run_id in runs:
            specification = specification_of(study, run_id)
            place = conclusion.run_place(specification)
            groups = study.run_columns("groups", run_id, study.table("groups").column_names)
            diagnosed = (
                rows_of_run(study, "luck_share", run_id) if study.has_rows("luck_share", run_id) else ()
            )
            made = {
                "evaluations": summaries.evaluations(place, study.counted(run_id)),
                "groups_summary": summaries.groups_summary(place, groups),
                "luck_share_summary": summaries.luck_share_summary(
                    place, diagnosed, conclusion.policy_of(specification)
                ),
            }
            for name, rows in made.items():
                others = [row for row in self.rows(name) if row["run_id"] != run_id]
                self.write(name, [*others, *rows])
        return self.seal()

    def fit_decisions(self) -> Self:
        """Have the stored decisions say what follows from the forged rows.

        Where episodes and summaries differ, the ends of an interval are moved along with the mean.
        """
        if not self.study.has("decisions"):
            return self
        before = {row["rule"]: row for row in self.rows("decisions")}
        with without_checks():
            made = open_case(self.study, load_registration(self.registration)).binding
        rows = decision_rows(made, inputs_sha256(self.study))
        for row, decision in zip(rows, made, strict=True):
            old = before.get(row["rule"], row)
            if row["low"] is not None and row["low"] == old["low"] and row["estimate"] != old["estimate"]:
                by = row["estimate"] - old["estimate"]
                row.update(low=row["low"] + by, high=row["high"] + by)
                row["evidence"] = evidence_of(_at(decision.interval, row), decision.threshold)
        self.write("decisions", rows)
        return self.seal()

    def fit_specifications(self) -> Self:
        """Have every run's specification be the one that the registration gives it now."""
        registration = load_registration(self.registration)

        def change(rows: list[Row]) -> None:
            pools = json.loads(rows[0]["specification"])["pools"]
            given = {run.run_id: run for run in specify_registered(registration, pools)}
            for row in rows:
                row["specification"] = canonical(given[row["run_id"]].document())

        self.edit("runs", change)
        digests = {
            row["run_id"]: hashlib.sha256(row["specification"].encode()).hexdigest()
            for row in self.rows("runs")
        }

        def follow(rows: list[Row]) -> None:
            for row in rows:
                row["specification_sha256"] = digests[row["run_id"]]

        self.edit("launches", follow)
        return self.seal()

    def freeze_anew(self, at: datetime | None = None) -> Self:
        """Freeze the registration's files as they are, by authorities made for the occasion."""
        for name in BORN_WITH_THE_FREEZE:
            (self.registration / name).unlink(missing_ok=True)
        for name in ("evidence", "amendments", "deviations", "trust"):
            for path in (self.registration / name).glob("*"):
                path.unlink()
        with clocks_at(at):
            sources = demonstrators()
            known = tuple(source.trusted for source in sources)
            freeze(self.registration, opened(self.registration), sources, known, standing="demonstration")
        return self

    def amend(self, text: str, at: datetime | None = None) -> Self:
        """Add an amendment with tokens of authorities made for the occasion, whose clocks may lie."""
        file = self.home.root / "amendment.toml"
        write_bytes(file, text.encode())
        with clocks_at(at):
            loaded = load_registration(self.registration)
            entry, content = read_addition(loaded, file)
            add(loaded, entry, content, demonstrators(), (), check=lambda _: None)
        file.unlink()
        return self


def _at(interval: Any, row: Row) -> Any:
    """Return an interval at the ends that a row has."""
    return replace(interval, low=Fraction(row["low"]), high=Fraction(row["high"]))


@contextmanager
def without_checks() -> Iterator[None]:
    """Decide as somebody's own version of this package would, which holds nothing against its rows."""
    with ExitStack() as stack:
        for owner, name, kept in (
            (Resampler, "_gap", lambda *_: ""),
            (DerivedRegisters, "derive", lambda *_: None),
            (StoredDecisions, "check", lambda *_: None),
        ):
            stack.enter_context(patch.object(owner, name, kept))
        yield


@contextmanager
def clocks_at(moment: datetime | None) -> Iterator[None]:
    """Have everything that timestamps believe that it is another moment."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return (moment or datetime.now(UTC)).astimezone(tz)

    with ExitStack() as stack:
        for module in CLOCKS:
            stack.enter_context(patch(f"toolkit.prereg.{module}.datetime", Clock))
        yield


def edit_text(path: Path, old: str, new: str) -> None:
    """Replace text of a file that has it."""
    before = path.read_text(encoding="utf-8")
    assert old in before, f"{old!r} is not in {path}"
    path.write_text(before.replace(old, new, 1), encoding="utf-8")
