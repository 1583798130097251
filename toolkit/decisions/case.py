"""One study and the registration that decides it."""

from dataclasses import dataclass

from toolkit.decisions.engine import Engine
from toolkit.decisions.rulebook import RuleBook, rulebook_of
from toolkit.errors import DamagedError
from toolkit.prereg.registration import Registration
from toolkit.registers.study import Study


@dataclass(frozen=True)
class Case:
    """A study, its registration, the rules with every amendment applied, and the engine over them."""

    study: Study
    registration: Registration
    book: RuleBook
    engine: Engine


def open_book(study: Study, registration: Registration) -> RuleBook:
    """Return the rules that decide a study.

    Raises:
        DamagedError: the study's manifest names other frozen files than the registration's, or amendments
            that it no longer has. Later ones are welcome: decisions name them.
        RuleError: the rules are not rules.
    """
    registered = study.manifest.registration
    amendments = {amendment.id: amendment.sha256 for amendment in registration.amendments}
    if (registered.name, registered.sha256) != (registration.name, registration.sha256):
        raise DamagedError(
            f"study {study.name!r} belongs to other frozen files than this registration's",
            expected=f"{registered.name} {registered.sha256}",
            found=f"{registration.name} {registration.sha256}",
            where=study.folder / "MANIFEST.json",
            remedy="use the registration the study names, or rebuild the registers for this one",
        )
    for name, sha256 in registered.amendments.items():
        if amendments.get(name) != sha256:
            raise DamagedError(
                f"study {study.name!r} was made under an amendment that the registration does not have",
                expected=f"{name} {sha256}",
                found=f"{name} {amendments[name]}" if name in amendments else "no such amendment",
                where=study.folder / "MANIFEST.json",
                remedy="restore the amendment; what was decided under it cannot be decided without it",
            )
    return rulebook_of(registration)


def open_case(study: Study, registration: Registration, *, recompute: bool = False) -> Case:
    """Put a study and its registration together.

    Args:
        study: the study.
        registration: the one that it names.
        recompute: whether intervals are computed even where the study has stored them.

    Raises:
        DamagedError, RuleError: as `open_book`.
    """
    book = open_book(study, registration)
    amendments = {amendment.id: amendment.sha256 for amendment in registration.amendments}
    engine = Engine(book, (registration.name, registration.sha256), study, amendments, recompute=recompute)
    return Case(study, registration, book, engine)
