"""A case: a study under its registration, its rules decided and explained."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Annotated

from toolkit.decisions.decision import Decision, Exploratory
from toolkit.decisions.engine import Engine, StoredDecisions
from toolkit.decisions.measure import EPISODES, MISSING, Registers, excludes, lack_outcomes
from toolkit.errors import DamagedError, RuleError
from toolkit.prereg.registration import Registration
from toolkit.prereg.spans import span_text
from toolkit.prereg.verification import UNVERIFIED, Standing
from toolkit.registers.columns import EXCLUDED
from toolkit.registers.study import Study
from toolkit.rules.endpoints import COUNTED_BY_TASK, Endpoint
from toolkit.rules.plan import Plan
from toolkit.rules.rulebook import RuleBook, load_rulebook, rulebook_of
from toolkit.rules.terms import PLACE
from toolkit.structs import Document, Shown, about, replace


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
            after = self.changed if self.changed and name in self.changed.added else None
            made = (after or self).engine.decide(name)
            self._decided[name] = replace(
                made,
                registration=replace(made.registration, standing=self.standing),
                pilot_rows=self.study.pilot_rows,
                is_exploratory=after is not None,
                exploratory=() if after else self._exploratory(name),
            )
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

    def _exploratory(self, name: str) -> tuple[Exploratory, ...]:
        """Return what the last amendment after the runs that changes a rule would make of it."""
        changed, rule = self.changed, self.book.rule(name)
        if changed is None:
            return ()
        names = {name, *self.book.names_of(rule), *changed.book.names_of(rule)}
        differing = {name for name in names if changed.book.rules.get(name) != self.book.rules.get(name)}
        for amendment in reversed(self.registration.amendments):
            if amendment.id in self.unbinding and differing & {*amendment.replaces, *amendment.restates}:
                other = changed.engine.decide(name)
                return (Exploratory(amendment.id, amendment.sha256, other.verdict, other.evidence),)
        return ()


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


class EndpointRows(Document, frozen=True):
    """An endpoint that a rule reads."""

    id: Annotated[str, about("Of the endpoint.")]
    title: Annotated[str, about("What it is, in a few words.")]
    unit: Annotated[str, about("Of its values.")]
    rows: Annotated[str, about("A query for `toolkit sql`, or the study's `duckdb()`, that lists its rows.")]


class StatisticRead(Document, frozen=True):
    """A statistic that a rule names."""

    id: Annotated[str, about("Of the statistic.")]
    title: Annotated[str, about("What it is, in a few words.")]
    unit: Annotated[str, about("Of its values.")]
    formula: Annotated[str, about("In the language of tests.")]


class RestatedSpan(Document, frozen=True):
    """Lines of a frozen document."""

    name: Annotated[str, about("Of the span in the rules.")]
    lines: Annotated[tuple[int, int], about("The first and the last, from 1.")]
    sha256: Annotated[str, about("Of these lines.")]
    text: Annotated[str | None, about("Null where the document is not at hand.")]


class Restated(Document, frozen=True):
    """What a rule restates of a document that was frozen elsewhere."""

    document: Annotated[str, about("Its name.")]
    sha256: Annotated[str, about("Of the document, as recorded.")]
    of_frozen_rule: Annotated[bool, about("Whether the lines are those of the rule as it was frozen.")]
    is_at_hand: Annotated[bool, about("Whether the document is here.")]
    remedy: Annotated[str | None, about("How to get the document.")]
    spans: tuple[RestatedSpan, ...]


class Addition(Document, frozen=True):
    """The amendment that added a rule."""

    id: Annotated[str, about("Of the amendment.")]
    dated: Annotated[str, about("Its day, YYYY-MM-DD.")]
    seen: Annotated[str, about("What had been seen by then, in its author's words.")]


class RuleDeviation(Document, frozen=True):
    """A deviation that concerns a rule."""

    id: Annotated[str, about("Of the deviation.")]
    title: Annotated[str, about("What it is, in a few words.")]
    text: Annotated[str, about("What happened, in its author's words.")]


class Explanation(Decision, frozen=True, kw_only=True, omit_defaults=True):
    """A decision with its rule's words, and where the rows of its endpoints are."""

    text: Annotated[str, about("The rule as registered.")]
    confidence: Annotated[str | None, about("That of a prediction's author.")]
    readings_text: Annotated[dict[str, str] | None, about("What each reading means.")]
    endpoints: tuple[EndpointRows, ...]
    deviations: tuple[RuleDeviation, ...]
    statistics: tuple[StatisticRead, ...] = ()
    restates: Annotated[Restated | None, Shown("restates", Restated, "Lines that were frozen elsewhere.")] = (
        None
    )
    addition: Annotated[Addition | None, Shown("addition", Addition, "Absent where the rule was frozen.")] = (
        None
    )

    @property
    def decision(self) -> Decision:
        """The decision by itself."""
        return self

    def __repr__(self) -> str:
        shown = f"<Explanation of {self.rule!r} in {self.study!r}: {self.verdict!r}"
        return f"{shown}, {len(self.endpoints)} endpoints>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(e.title)}</td><td><code>{escape(e.rows)}</code></td></tr>"
            for e in self.endpoints
        )
        head = "<thead><tr><th>endpoint</th><th>rows</th></tr></thead>"
        return f"{super()._repr_html_()}<table>{head}<tbody>{rows}</tbody></table>"


class Operator(Document, frozen=True):
    """An operator of the rule language."""

    takes: Annotated[tuple[str, ...], about("The kind of each argument.")]
    gives: Annotated[str, about("The kind of its value.")]
    meaning: Annotated[str, about("In words.")]


class Language(Document, frozen=True):
    """The rule language: what `explain --language` prints."""

    operators: dict[str, Operator]
    comparisons: Annotated[tuple[str, ...], about("Its comparisons.")]
    arithmetic: Annotated[tuple[str, ...], about("Its arithmetic.")]
    over_steps: Annotated[dict[str, str], about("How several steps become one number.")]
    declared: Annotated[dict[str, str], about("Tables of rules.toml, and what each declares.")]
    interval_methods: Annotated[dict[str, str], about("What each does, and when its level holds.")]


def explain(case: Case, rule: str) -> Explanation:
    """Decide a rule, and say what it rests on; errors as `Case.decide`."""
    made, registered = case.decide(rule), case.book.rule(rule)
    by = made.added_by
    endpoints = [case.book.endpoints[name] for name in made.endpoints_read]
    statistics = [case.book.statistics[name] for name in made.statistics_read]
    added = next((a for a in case.registration.amendments if by and a.id == by.id), None)
    return Explanation(
        **{name: getattr(made, name) for name in made.__struct_fields__},
        text=registered.text,
        confidence=registered.confidence or None,
        readings_text=dict(registered.readings) or None,
        endpoints=tuple(
            EndpointRows(e.id, e.title, e.unit, rows_query(e, case.book.plan, case.study)) for e in endpoints
        ),
        deviations=tuple(
            RuleDeviation(d.id, d.title, d.text) for d in case.registration.deviations if rule in d.concerns
        ),
        statistics=tuple(StatisticRead(s.id, s.title, s.unit, s.formula) for s in statistics),
        restates=_restated(case, rule),
        addition=Addition(added.id, str(added.dated), added.seen) if added else None,
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
        document is not None,
        remedy if document is None else None,
        tuple(
            RestatedSpan(
                name,
                (span.first, span.last),
                span.sha256,
                None if document is None else span_text(document, span),
            )
            for name, span in spans
        ),
    )
