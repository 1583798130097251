"""A study's registration, verified against its runs, and the study decided by what binds them."""

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolkit.decisions import case
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.places import Home
from toolkit.prereg.record import Amendment, known_authorities, known_restatements
from toolkit.prereg.registration import Registration, load_registration
from toolkit.prereg.verification import Reader, StudyRuns, standing_of, verify_loaded
from toolkit.registers import arrow
from toolkit.registers.arrow import Row
from toolkit.registers.episode_counts import COUNTED_OF_GROUPS, FOLLOWING, CountedRun
from toolkit.registers.manifest import PUBLISHED_REGISTRATION, RegistrationRef
from toolkit.registers.row_tables import LUCK_SHARE, TABLES_OF_PROBE
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study, launched_runs
from toolkit.registers.validation import compare
from toolkit.rooms import RegisteredRuns, is_played_here, laboratory
from toolkit.rules.plan import run_name
from toolkit.rules.rulebook import RuleBook, rulebook_of
from toolkit.specification import Specification
from toolkit.structs import replace
from toolkit.verification import summaries

PROBE = "probe"


def open_case(
    study: Study, registration: Registration, trust_files: Sequence[Path] = (), *, is_checked: bool = False
) -> case.Case:
    """Put a study and its registration together, verified: only what came before the runs binds them.

    What is decided on are the study's rows, and its summaries as far as these rows give them.
    """
    reader = Reader(known_authorities(*trust_files), datetime.now(UTC), restatements=known_restatements())
    verification = verify_loaded(registration, reader, lambda loaded: [study_runs(study, loaded)])
    return case.open_case(
        study,
        registration,
        DerivedRegisters(study, registration, rulebook_of(registration), is_checked=is_checked),
        standing=standing_of(verification),
        unbinding=verification.unbinding,
    )


def reference(registration: Registration) -> RegistrationRef:
    """Return a registration as the manifests of its registers name it."""
    amendments = {amendment.id: amendment.sha256 for amendment in registration.amendments}
    return RegistrationRef(registration.name, registration.sha256, amendments)


def published_reference(home: Home) -> RegistrationRef:
    """Return the registration of the published study as the manifests of its registers name it."""
    return reference(load_registration(home.registration_folder(PUBLISHED_REGISTRATION)))


def refuse_absent(rule: str, home: Home) -> None:
    """Refuse a rule that is registered here for a study that does not come with the package."""
    for study in home.absent_studies:
        folder = home.registrations / study
        if folder.is_dir() and rulebook_of(load_registration(folder)).find(rule):
            raise home.absent(
                study, f"rule {rule!r} is of study {study!r}, which does not come with the package"
            )


def refuse_own(folder: Path, trust_files: Sequence[Path]) -> None:
    """Refuse trust files that lie in the registration itself."""
    for path in trust_files:
        if path.resolve().is_relative_to(folder.resolve()):
            raise UsageError(
                "a registration cannot vouch for its own authorities",
                found=path,
                remedy="write a trust file of your own, with authorities that you have checked",
            )


def study_runs(study: Study, registration: Registration) -> StudyRuns:
    """Return a study's runs as verifying its registration takes them; errors as `case.open_book`."""
    roles = case.open_book(study, registration).plan.roles
    return StudyRuns(study.name, launched_runs(study), roles, *_anchored(registration, study))


def launched_under(registration: Registration, studies: Iterable[Study], played: Path) -> dict[str, int]:
    """Return how many runs that enter decisions were launched under a registration, by where they are."""
    plan = rulebook_of(registration).plan
    found = {
        f"study {study.name}": sum(row["role"] in plan.roles for row in study.rows("runs"))
        for study in studies
        if study.manifest.registration.name == registration.name
    }
    deciding = [cell for cell in plan.cells if not cell.role or cell.role in plan.roles]
    names = {
        run_name(cell.condition, arm, cell.scale_rewards, seed)
        for cell in deciding
        for arm in cell.arms
        for seed in cell.seeds
    }
    found[str(played)] = sum(any((played / name).glob("attempt-*.json")) for name in names)
    return {where: count for where, count in found.items() if count}


def is_on_new_data(registration: Registration, amendment: Amendment, studies: Iterable[Study]) -> bool:
    """Whether an amendment, not recorded yet, will concern only data that its tokens are to come before."""
    whole = replace(registration, amendments=(*registration.amendments, amendment))
    mine = [study for study in studies if study.manifest.registration.name == registration.name]
    return (
        not registration.record.is_restated
        and amendment.id in own_data_amendments(whole)
        and not any(study.has(table) for study in mine for table in TABLES_OF_PROBE)
    )


def _anchored(registration: Registration, study: Study) -> tuple[frozenset[str], bool]:
    """Return the amendments that concern only their own data, and whether these hold their tokens."""
    if all(amendment.replaces or amendment.restates for amendment in registration.amendments):
        return frozenset(), False
    own = own_data_amendments(registration)
    if not own:
        return own, False
    try:
        measured = laboratory().has_registered_probe(study, registration, rulebook_of(registration))
    except (IncompleteError, DamagedError):
        return own, False  # a token is missing, or none: the steps before say so
    return (own, True) if measured else (frozenset(), False)


def own_data_amendments(registration: Registration) -> frozenset[str]:
    """Return the amendments that concern nothing but the probe that they register themselves.

    Such an amendment adds rules and changes none, and its rules read nothing but its own endpoints on the
    probe.
    """
    book = rulebook_of(registration)
    own_data = set()
    for amendment in registration.amendments:
        document = tomllib.loads(amendment.rules)
        if amendment.replaces or amendment.restates or PROBE not in document:
            continue
        rules = [book.rules[name] for name in amendment.adds]
        names = {name for rule in rules for name in (*book.names_of(rule), *rule.secondary, rule.estimate)}
        read = book.read_by({name for name in names if name and name not in amendment.adds}) - set(
            book.statistics
        )
        own = {
            name for name in document.get("endpoints", {}) if book.endpoints[name].register in TABLES_OF_PROBE
        }
        if read <= own:
            own_data.add(amendment.id)
    return frozenset(own_data)


_OF_LUCK = tuple(name for name in LUCK_SHARE.column_names if name != "schedule_seed")
_SHORTLY = {
    "groups": ("step", "position", "task", "regime", "schedule_seeds", "true_successes", "observed_rewards"),
    "luck_share": _OF_LUCK,
    "checkpoints": ("step",),
    "adapters": ("step",),
}
"""Columns from which a run's row follows, and what its evidence lacks."""

_PLACE = ("run_id", "condition", "arm", "seed")
_SOURCES = frozenset(source for table in TABLES.values() for source in table.follows)


class DerivedRegisters:
    """A study as it is decided: its summaries are held against the rows that they follow from.

    Where `is_checked`, `check_study` holds them beside, and is waited for: nothing is derived here.
    """

    def __init__(
        self,
        study: Study,
        registration: Registration | None,
        book: RuleBook | None,
        *,
        is_checked: bool = False,
    ) -> None:
        self._study, self._registration, self._book = study, registration, book
        self._is_checked = is_checked
        self._registered = runs_of(registration, book)
        self._rows: dict[str, list[Any]] = {}
        self._stored: dict[str, dict[str, list[Row]]] = {}
        self._derived: set[tuple[str, str]] = set()
        self.name, self.is_summary, self.origin = study.name, study.is_summary, study.origin
        self.has = study.has
        self.hashed, self.hashed_rows = study.hashed, study.hashed_rows
        self.success_counts = study.success_counts

    def rows(self, table: str) -> list[Any]:
        """Return the rows of a table as they are stored; `derive` says whether they hold."""
        if table not in self._rows:
            self._rows[table] = self._study.rows(table)
        return self._rows[table]

    def derive(self, table: str, names: Collection[str]) -> None:
        """Check that rows of a table are what the rows give that they follow from."""
        sources = TABLES[table].follows
        if self._is_checked:
            return
        if self.is_summary:
            self._check_figures_only()
            self._check_transcribed(table)
            return
        if not sources:
            return
        absent = [source for source in sources if not self.has(source)]
        if absent:
            raise DamagedError(
                f"{table} of study {self.name!r} has no rows that it could follow from",
                expected=", ".join(absent),
                where=self._study.folder,
                remedy="restore the files; only a study of published figures is decided without rows",
            )
        if table == "runs":
            self._check_places()
        new = [name for name in names if (table, name) not in self._derived]
        if table in summaries.SUMMARIES:
            for run in new:
                compare(table, self._of_run(table, run), self._stored_rows(table, run))
        elif new and self._registration and self._book:
            laboratory().check_probe(self._study, self._registration, self._book, table, new)
        self._derived |= {(table, name) for name in new}

    def _check_places(self) -> None:
        """Check that every run stands in its registered place, or one that decides could be moved away."""
        if ("runs", "") not in self._derived:
            for row in self.rows("runs"):
                if self._registered and (place := self._registered.place(row["run_id"])):
                    compare("runs", [place], [row])
            self._derived.add(("runs", ""))

    def _check_transcribed(self, table: str) -> None:
        """Check that published figures, and the intervals beside them, are those that were transcribed."""
        from toolkit.registers import published

        unread = {table, "intervals"} - {name for name, _ in self._derived}
        if unread and self.name == published.STUDY:
            published.check_figures(self._study, unread)
        self._derived |= {(name, "") for name in unread}

    def _check_figures_only(self) -> None:
        """Check that a study can be one of published figures: the word alone would end every check."""
        held = [name for name in sorted(_SOURCES) if self.has(name)]
        if held or self._registered:
            raise DamagedError(
                f"study {self.name!r} is said to hold published figures only",
                expected="a study without rows, whose registration is not played here",
                found=f"rows of {', '.join(held)}" if held else "a registration whose runs are played here",
                where=self._study.folder / "MANIFEST.json",
                remedy="restore the manifest and the rows",
            )

    def _specification(self, run: str) -> Specification | None:
        """Return the specification that the registration gives a run; None where it gives none."""
        stored = self._run(run).get("specification")
        return self._registered.specification(run, stored) if self._registered else None

    def _of_run(self, table: str, run: str) -> list[Row]:
        """Return the rows of a table that follow from a run's own."""
        if table == "runs":
            return [self._run_row(run)]
        place = {name: self._run(run)[name] for name in _PLACE}
        if table == "evaluations":
            # What should follow and does not, because the episodes do not say it, is no more than absent.
            following = FOLLOWING.intersection(self._study.table(table).column_names)
            rows = summaries.evaluations(place, self._counted(run))
            return [dict.fromkeys(following) | row for row in rows]
        if table == "groups_summary":
            return summaries.groups_summary(
                place, self._tables(run, {"groups": COUNTED_OF_GROUPS}).get("groups")
            )
        tables = self._tables(run, {"luck_share": _OF_LUCK}).values()
        diagnosed: list[Any] = [row for table in tables for row in arrow.to_rows(table)]
        specification = self._specification(run)
        policy = self._registered.policy(specification) if self._registered and specification else None
        rows = summaries.luck_share_summary(place, diagnosed, policy or "")
        return [row if policy else {n: v for n, v in row.items() if n != "policy"} for row in rows]

    def _run_row(self, run: str) -> Row:
        """Return a run's row of `runs`, as far as the registration and its rows give it."""
        specification = self._specification(run)
        counted, tables = self._counted(run), self._tables(run, _SHORTLY)
        if specification is None or self._registered is None:
            return {"run_id": run, "episodes": summaries.episodes(counted, tables)}
        # Launches with different versions of the code: it does not count.
        launches = self.rows("launches") if self.has("launches") else ()
        mixed = len({row["code_version"] for row in launches if row["run_id"] == run}) > 1
        return self._registered.row(self._study, specification, counted, tables, is_mixed=mixed)

    def _counted(self, run: str) -> CountedRun | None:
        return self._study.counted(run) if self._study.has_rows("episodes", run) else None

    def _tables(self, run: str, columns: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Return columns of a run's rows of some tables, as far as it has any."""
        return {
            name: self._study.run_columns(name, run, ("run_id", *wanted))
            for name, wanted in columns.items()
            if self._study.has_rows(name, run)
        }

    def _run(self, run: str) -> Row:
        (row,) = self._stored_rows("runs", run) or [dict.fromkeys(_PLACE)]
        return row

    def _stored_rows(self, table: str, run: str) -> list[Row]:
        if table not in self._stored:
            by_run = self._stored[table] = {}
            for row in self.rows(table):
                by_run.setdefault(row["run_id"], []).append(row)
        return self._stored[table].get(run, [])


def runs_of(registration: Registration | None, book: RuleBook | None) -> RegisteredRuns | None:
    """Return the runs as their registration specifies them; None where it does not say how to play them."""
    if registration is None or book is None or not is_played_here(book):
        return None
    return laboratory().runs(registration, book)
