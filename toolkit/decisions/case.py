"""A case: a study under its registration, its rules decided and explained."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from toolkit.decisions.decision import Decision, Exploratory
from toolkit.decisions.engine import Engine, StoredDecisions
from toolkit.decisions.measure import EPISODES, MISSING, Registers, excludes, lack_outcomes
from toolkit.errors import DamagedError, RuleError
from toolkit.prereg.record import Amendment, Deviation
from toolkit.prereg.registration import Registration
from toolkit.prereg.spans import Span, span_text
from toolkit.prereg.verification import UNVERIFIED, Standing
from toolkit.registers.columns import EXCLUDED
from toolkit.registers.study import Study
from toolkit.rules.endpoints import COUNTED_BY_TASK, Endpoint
from toolkit.rules.plan import Plan
from toolkit.rules.rulebook import RuleBook, load_rulebook, rulebook_of
from toolkit.rules.rules import Rule, Statistic
from toolkit.rules.terms import PLACE
from toolkit.structs import replace

if TYPE_CHECKING:
    from toolkit.documents import decisions as documents


def rows_query(endpoint: Endpoint, plan: Plan, study: Study) -> str:
    """Return a SELECT over a study's registers that lists the rows an endpoint reads."""
    if endpoint.attributes or (excludes(endpoint) and lack_outcomes(study)):
        return _counted(endpoint, plan, study)
    conditions = [f"{name} = {quoted(value)}" for name, value in sorted(endpoint.where.items())]
    if endpoint.steps:
        conditions.append(f"step IN ({_list(map(str, endpoint.steps))})")
    if endpoint.by == "checkpoint":
        columns = ["trajectory", "step"]
        places = [f"(trajectory = {quoted(t)} AND step = {s})" for t, s in endpoint.checkpoints]
        conditions.append(f"({' OR '.join(places)})")
    elif endpoint.by == "row":
        columns = ["run_id", "step"]
    else:
        columns = ["arm", "seed", "run_id", *(["step"] if endpoint.steps else [])]
        conditions.append(f"run_id IN ({_runs(endpoint, plan)})")
    selected = _list([*columns, *endpoint.outcome.columns])
    return f"SELECT {selected} FROM {endpoint.register} WHERE {' AND '.join(conditions)} ORDER BY ALL"


def _counted(endpoint: Endpoint, plan: Plan, study: Study) -> str:
    """Return a SELECT that counts the episodes of an endpoint on some tasks: a row an evaluation."""
    place = [
        f"episodes.{name} = {quoted(value)}"
        for name, value in sorted(endpoint.where.items())
        if name in PLACE
    ]
    place += [f"episodes.step IN ({_list(map(str, endpoint.steps))})", f"run_id IN ({_runs(endpoint, plan)})"]
    conditions = [
        *place,
        *(
            f"attributes ->> {quoted(n)} = {quoted(value)}"
            for n, value in sorted(endpoint.attributes.items())
        ),
    ]
    columns = study.table(EPISODES).column_names if study.has(EPISODES) else ()
    conditions += ["NOT excluded"] if EXCLUDED in columns else []
    if excludes(endpoint) and MISSING in columns:
        lacking = f"FROM episodes JOIN runs USING (run_id) WHERE missing AND {' AND '.join(place)}"
        conditions.append(f"(seed, task) NOT IN (SELECT (seed, task) {lacking})")
    pools = (
        'JOIN task_pools ON task_pools.pool = episodes.pool AND task_pools."index" = episodes.task '
        if endpoint.attributes
        else ""
    )
    count, of = endpoint.outcome.columns
    sums = f"sum({COUNTED_BY_TASK[count]}) AS {count}, count(*) AS {of}"
    return (
        f"SELECT arm, seed, run_id, episodes.step, {sums} "
        f"FROM episodes JOIN runs USING (run_id) {pools}"
        f"WHERE {' AND '.join(conditions)} GROUP BY ALL ORDER BY ALL"
    )


def _runs(endpoint: Endpoint, plan: Plan) -> str:
    conditions = [
        f"condition = {quoted(endpoint.condition)}",
        f"arm IN ({_list(map(quoted, endpoint.arms))})",
        f"seed IN ({_list(map(str, endpoint.seeds))})",
        *([f"scale_rewards = {quoted(endpoint.scale_rewards)}"] if endpoint.scale_rewards else []),
        f"role IN ({_list(map(quoted, plan.roles))})",
        "status = 'COMPLETE'",
    ]
    return f"SELECT run_id FROM runs WHERE {' AND '.join(conditions)}"


def quoted(value: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def _list(values: Iterable[str]) -> str:
    return ", ".join(values)


@dataclass(frozen=True)
class Case:
    """A study, its registration, and what decides it."""

    study: Study  # the study
    registration: Registration  # its registration
    book: RuleBook  # its rules: as they bind, and beside them those that were added after the runs
    engine: Engine  # what measures, and decides the rules that bind
    standing: Standing = UNVERIFIED  # what the registration stands on
    # Amendments that bind nothing, because nothing shows that they came before the runs
    unbinding: frozenset[str] = frozenset()
    changed: Changed | None = None  # the rules as these amendments have them; None where there is none
    _decided: dict[str, Decision] = field(default_factory=dict, repr=False, compare=False)

    def decide(self, rule: str) -> Decision:
        """Decide one rule as it binds, with what an amendment after the runs would say beside it."""
        name = self.book.meant(rule).id
        if name not in self._decided:
            self._decided[name] = replace(self._decide(name), pilot_rows=self.study.pilot_rows)
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
    """The rules with every amendment applied, those after the runs included: nothing in them binds."""

    book: RuleBook  # the rules
    engine: Engine  # what decides them
    added: frozenset[str]  # those that only these amendments have


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


@dataclass(frozen=True)
class EndpointRows:
    """An endpoint and its rows."""

    id: str  # id, title, unit: as registered
    title: str
    unit: str
    rows: str  # the query that gives them, for `toolkit sql` or the study's `duckdb()`


@dataclass(frozen=True)
class RestatedSpan:
    """Lines of a frozen document that a rule restates: their name and place, and their words if at hand."""

    name: str
    span: Span
    text: str | None


@dataclass(frozen=True)
class Restated:
    """What a rule restates."""

    document: str  # what the frozen document is
    sha256: str  # of its bytes
    of_frozen_rule: bool  # whether it is the rule as frozen that restates it, and an amendment replaced that
    remedy: str | None  # how to get the document; None where it is at hand
    spans: tuple[RestatedSpan, ...]  # the lines

    def as_dict(self) -> documents.RestatedDocument:
        """Return it as it is printed with `--json`."""
        return {
            "document": self.document,
            "sha256": self.sha256,
            "of_frozen_rule": self.of_frozen_rule,
            "is_at_hand": self.remedy is None,
            "remedy": self.remedy,
            "spans": [
                {
                    "name": part.name,
                    "lines": [part.span.first, part.span.last],
                    "sha256": part.span.sha256,
                    "text": part.text,
                }
                for part in self.spans
            ],
        }


@dataclass(frozen=True)
class Explanation:
    """A decision, and what it rests on."""

    decision: Decision  # the decision
    registered: Rule  # the rule: its words, and what its readings mean
    endpoints: tuple[EndpointRows, ...]  # the endpoints that it reads, with their rows
    statistics: tuple[Statistic, ...]  # the statistics that it reads
    restates: Restated | None  # what the rule restates; None where it is frozen itself
    addition: Amendment | None  # the amendment that added the rule; None where it was frozen
    deviations: tuple[Deviation, ...]  # what was recorded that bears on it

    def as_dict(self) -> documents.ExplanationDocument:
        """Return the explanation as it is printed with `--json`."""
        rule, added = self.registered, self.addition
        remarks: documents.ExplanationRemarks = {}
        if self.statistics:
            remarks["statistics"] = [statistic.as_dict() for statistic in self.statistics]
        if self.restates:
            remarks["restates"] = self.restates.as_dict()
        if added:
            remarks["addition"] = {"id": added.id, "dated": str(added.dated), "seen": added.seen}
        return {
            **self.decision.as_dict(),
            "text": rule.text,
            "confidence": rule.confidence or None,
            "readings_text": dict(rule.readings) or None,
            "endpoints": [
                {"id": e.id, "title": e.title, "unit": e.unit, "rows": e.rows} for e in self.endpoints
            ],
            "deviations": [{"id": d.id, "title": d.title, "text": d.text} for d in self.deviations],
            **remarks,
        }

    def __repr__(self) -> str:
        made, read = self.decision, len(self.endpoints)
        return f"<Explanation of {made.rule!r} in {made.study!r}: {made.verdict!r}, {read} endpoints>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(e.title)}</td><td><code>{escape(e.rows)}</code></td></tr>"
            for e in self.endpoints
        )
        head = "<thead><tr><th>endpoint</th><th>rows</th></tr></thead>"
        return f"{self.decision._repr_html_()}<table>{head}<tbody>{rows}</tbody></table>"


def explain(case: Case, rule: str) -> Explanation:
    """Decide a rule, and say what it rests on; errors as `Case.decide`."""
    decision = case.decide(rule)
    endpoints = [case.book.endpoints[name] for name in decision.endpoints]
    by = decision.added_by
    return Explanation(
        decision,
        case.book.rule(rule),
        tuple(
            EndpointRows(e.id, e.title, e.unit, rows_query(e, case.book.plan, case.study)) for e in endpoints
        ),
        tuple(case.book.statistics[name] for name in decision.statistics),
        _restated(case, rule),
        next(a for a in case.registration.amendments if a.id == by.id) if by else None,
        tuple(d for d in case.registration.deviations if rule in d.concerns),
    )


def _restated(case: Case, rule: str) -> Restated | None:
    """Return the lines of a frozen document that a rule restates, and their words if it is at hand.

    An amendment restates other documents: of a rule that one replaced, the frozen rule's lines are given.
    None where the rule restates nothing.
    """
    registered, change = case.book.rule(rule), case.book.changes.get(rule)
    frozen = registered if registered.spans or change is None else change.frozen
    if frozen is None or not frozen.spans:
        return None
    document = case.registration.document()
    remedy = f"toolkit adopt {case.study.name} CHECKOUT takes it from a checkout of the authors' repository"
    spans = ((name, case.book.spans[name]) for name in frozen.spans)
    return Restated(
        case.registration.record.document,
        case.registration.record.document_sha256,
        frozen is not registered,
        remedy if document is None else None,
        tuple(
            RestatedSpan(name, span, None if document is None else span_text(document, span))
            for name, span in spans
        ),
    )
