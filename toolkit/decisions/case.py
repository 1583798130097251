"""One study and the registration that decides it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from toolkit.decisions.decision import Decision, Exploratory
from toolkit.decisions.engine import Engine
from toolkit.decisions.lookup import Registers
from toolkit.decisions.rulebook import RuleBook, load_rulebook, rulebook_of
from toolkit.decisions.stored import StoredDecisions
from toolkit.errors import DamagedError, RuleError
from toolkit.prereg.registration import Registration
from toolkit.prereg.verification import UNVERIFIED, Standing
from toolkit.registers.study import Study


@dataclass(frozen=True)
class Case:
    """A study, its registration, and what decides it.

    Args:
        study: the study.
        registration: its registration.
        book: its rules: as they bind, and beside them those that were added after the runs.
        engine: what measures, and decides the rules that bind.
        standing: what the registration stands on.
        unbinding: amendments that bind nothing, because nothing shows that they came before the runs.
        changed: the rules as these amendments have them; None where there is none.
    """

    study: Study
    registration: Registration
    book: RuleBook
    engine: Engine
    standing: Standing = UNVERIFIED
    unbinding: frozenset[str] = frozenset()
    changed: Changed | None = None
    _decided: dict[str, Decision] = field(default_factory=dict, repr=False, compare=False)

    def decide(self, rule: str) -> Decision:
        """Decide one rule as it binds, with what an amendment after the runs would say beside it."""
        name = self.book.meant(rule).id
        if name not in self._decided:
            self._decided[name] = self._decide(name)
        return self._decided[name]

    def __repr__(self) -> str:
        return f"<Case {self.study.name!r}: {len(self.book.rules)} rules, standing {self.standing.name}>"

    def decide_all(self, rules: Sequence[str] = ()) -> tuple[Decision, ...]:
        """Decide the named rules in their order, or every rule of the registration."""
        return tuple(self.decide(rule) for rule in rules or self.book.rules)

    @property
    def binding(self) -> tuple[Decision, ...]:
        """The decisions on every rule but those that were added after the runs."""
        return tuple(made for made in self.decide_all() if not made.is_exploratory)

    def _decide(self, name: str) -> Decision:
        rule, changed = self.book.rule(name), self.changed
        if changed is None:
            return replace(self.engine.decide(name), standing=self.standing)
        if name in changed.added:
            return replace(changed.engine.decide(name), standing=self.standing, is_exploratory=True)
        amendment = self._changing({name, *self.book.names_of(rule), *changed.book.names_of(rule)})
        exploratory: tuple[Exploratory, ...] = ()
        if amendment is not None:
            other = changed.engine.decide(name)
            exploratory = (Exploratory(*amendment, other.verdict, other.evidence),)
        return replace(self.engine.decide(name), standing=self.standing, exploratory=exploratory)

    def _changing(self, names: Collection[str]) -> tuple[str, str] | None:
        """Return the last amendment after the runs, and its SHA-256, that changes one of some rules."""
        changed = self.changed
        rules = changed.book.rules if changed else {}
        differing = {name for name in names if rules.get(name) != self.book.rules.get(name)}
        for amendment in reversed(self.registration.amendments):
            if amendment.id in self.unbinding and differing & {*amendment.replaces, *amendment.restates}:
                return amendment.id, amendment.sha256
        return None


@dataclass(frozen=True)
class Changed:
    """The rules with every amendment applied, those after the runs included: nothing in them binds.

    Args:
        book: the rules.
        engine: what decides them.
        added: those that only these amendments have.
    """

    book: RuleBook
    engine: Engine
    added: frozenset[str]


def open_book(study: Study, registration: Registration) -> RuleBook:
    """Return the rules that decide a study."""
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


def open_case(
    study: Study,
    registration: Registration,
    registers: Registers,
    *,
    standing: Standing = UNVERIFIED,
    unbinding: Collection[str] = (),
) -> Case:
    """Put a study and its registration together."""
    everything = open_book(study, registration)
    named = (registration.name, registration.sha256)
    digests = {amendment.id: amendment.sha256 for amendment in registration.amendments}
    told = {amendment.id for amendment in registration.amendments if amendment.after_runs}
    loose = frozenset({*unbinding, *told} & set(digests))
    kept = StoredDecisions(study)
    kept.check_complete(everything.rules)
    if not loose:
        engine = Engine(everything, named, registers, digests, kept)
        return Case(study, registration, everything, engine, standing)
    binding, loose = _binding(registration, loose)
    added = frozenset(everything.rules) - frozenset(binding.rules)
    book = replace(
        everything,
        rules=everything.rules | binding.rules,
        changes={name: change for name, change in everything.changes.items() if name in added}
        | binding.changes,
    )
    bound = {name: sha256 for name, sha256 in digests.items() if name not in loose}
    changed = Changed(everything, Engine(everything, named, registers, digests), added)
    engine = Engine(book, named, registers, bound, kept)
    return Case(study, registration, book, engine, standing, loose, changed)


def _binding(registration: Registration, loose: frozenset[str]) -> tuple[RuleBook, frozenset[str]]:
    """Return the rules without some amendments and those that need them, and the ids of all of these."""
    kept: list[str] = []
    book = load_rulebook(registration.rules)
    for amendment in registration.amendments:
        if amendment.id in loose:
            continue
        try:
            book = load_rulebook(registration.rules, [*kept, amendment.rules])
        except RuleError:
            loose |= {amendment.id}
        else:
            kept.append(amendment.rules)
    return book, loose
