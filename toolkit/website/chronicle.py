"""Everything dated about a registration, in one order: tokens, additions, runs, and a study's own records."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from toolkit.decisions.case import Case
from toolkit.prereg.record import DEMONSTRATION
from toolkit.prereg.registration import Registration
from toolkit.prereg.verification import Verification
from toolkit.registers.launches import launched_runs
from toolkit.registers.study import Study

SECOND, DAY = "second", "day"


@dataclass(frozen=True)
class Dated:
    """Something dated.

    Args:
        at: when, UTC; midnight where only the day is known.
        precision: `second` or `day`.
        kind: what sort of thing; a lane of the chart.
        label: its name, in a word.
        what: what it is.
        source: who says when.
        accuracy: how far off the clock may be, as stated.
        until: where it lasted, its end.
    """

    at: datetime
    precision: str
    kind: str
    label: str
    what: str
    source: str
    accuracy: str = ""
    until: datetime | None = None


def chronicle(
    registration: Registration, verification: Verification | None, cases: Iterable[Case]
) -> tuple[Dated, ...]:
    """Return everything dated, in order.

    Args:
        registration: its tokens, amendments and deviations.
        verification: what can be said of its tokens; None where nobody looked.
        cases: the studies that it decides, with their runs and records.
    """
    entries = [*_tokens(registration, verification), *_additions(registration, verification)]
    for case in cases:
        entries += _runs(case)
        entries += _records(case.study)
    return tuple(sorted(entries, key=lambda dated: (dated.at, dated.kind, dated.label)))


def _tokens(registration: Registration, verification: Verification | None) -> Iterator[Dated]:
    judged = verification.authorities if verification else ()
    if not judged:
        for authority in registration.record.authorities:
            yield _recorded(authority.name, authority.recorded_time)
        return
    for token, authority in zip(judged, registration.record.authorities, strict=True):
        verdict = token.verdict
        if not token.is_verified or verdict.gen_time is None:
            yield _recorded(authority.name, authority.recorded_time)
            continue
        stated = "not stated" if verdict.accuracy_seconds is None else f"± {verdict.accuracy_seconds:g} s"
        what = f"token of {authority.name}"
        source = "the token itself" + _a_demonstrations(registration)
        yield Dated(verdict.gen_time, SECOND, "token", authority.name, what, source, stated)


def _recorded(name: str, at: datetime) -> Dated:
    source = "the author's record; no verified token shows it"
    return Dated(at, SECOND, "token", name, f"token of {name}", source)


def _additions(registration: Registration, verification: Verification | None) -> Iterator[Dated]:
    orders = verification.chronology if verification else ()
    proven = orders[0].freeze.entries if orders else {}
    source = f"its tokens{_a_demonstrations(registration)}, accuracy included"
    added: list[tuple[str, date | None, str, str]] = [
        (a.id, a.dated, "amendment", a.title) for a in registration.amendments
    ]
    added += [(d.id, d.dated, d.kind, d.title) for d in registration.deviations]
    for name, dated, kind, title in added:
        what = f"{name}: {title}"
        if name in proven:
            yield Dated(proven[name], SECOND, kind, name, what, source)
        elif dated is not None:
            at = datetime.combine(dated, time(), UTC)
            yield Dated(at, DAY, kind, name, what, "the author's record: the day that it names")


def _a_demonstrations(registration: Registration) -> str:
    return ", a demonstration's" if registration.record.standing == DEMONSTRATION else ""


def _runs(case: Case) -> Iterator[Dated]:
    plan, study = case.book.plan, case.study
    for deciding in (True, False):
        launches = sorted(
            launched
            for run in launched_runs(study)
            if (run["role"] in plan.roles) == deciding
            and isinstance(launched := run["launched_at"], datetime)
        )
        if launches:
            runs, span = ("runs", "first launch to last") if len(launches) > 1 else ("run", "its launch")
            which = f"deciding {runs}" if deciding else f"{runs} beside the deciding ones"
            told = f"{len(launches)} {which}"
            source = f"study {study.name}, by the clocks of its machines"
            kind = f"runs of {study.name}" if deciding else f"other runs of {study.name}"
            last = launches[-1] if len(launches) > 1 else None
            yield Dated(
                launches[0], SECOND, kind, told, f"{told} of {study.name}, {span}", source, until=last
            )


def _records(study: Study) -> Iterator[Dated]:
    if not study.has("events"):
        return
    for event in study.rows("events"):
        what = f"{event['event']}: {event['detail']}" if event["detail"] else event["event"]
        source = f"study {study.name}: {event['source']}"
        yield Dated(event["occurred_at"], event["precision"], event["kind"], "", what, source)
