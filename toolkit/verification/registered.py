"""A study's registration, verified against its runs, and the study decided by what binds them."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from toolkit.decisions import case
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.places import Home
from toolkit.prereg.record import Amendment, known_authorities, known_restatements
from toolkit.prereg.registration import Registration, load_registration
from toolkit.prereg.verification import Reader, StudyRuns, standing_of, verify_loaded
from toolkit.registers.row_tables import TABLES_OF_PROBE
from toolkit.registers.study import Study, launched_runs
from toolkit.rooms import laboratory
from toolkit.rules.plan import run_name
from toolkit.rules.rulebook import rulebook_of
from toolkit.verification.derived import DerivedRegisters

PROBE = "probe"


def open_case(
    study: Study, registration: Registration, trust_files: Sequence[Path] = (), *, is_checked: bool = False
) -> case.Case:
    """Put a study and its registration together, verified: only what came before the runs binds them.

    What is decided on are the study's rows, and its summaries as far as these rows give them.
    """
    reader = Reader(known_authorities(*trust_files), datetime.now(UTC), restatements=known_restatements())
    verification = verify_loaded(registration, reader, lambda loaded: [runs_of(study, loaded)])
    return case.open_case(
        study,
        registration,
        DerivedRegisters(study, registration, rulebook_of(registration), is_checked=is_checked),
        standing=standing_of(verification),
        unbinding=verification.unbinding,
    )


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


def runs_of(study: Study, registration: Registration) -> StudyRuns:
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
