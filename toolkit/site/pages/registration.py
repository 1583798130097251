"""A page a registration: what was frozen, when, by whom it is proven, and what came after."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from hashlib import sha256
from itertools import zip_longest
from typing import Any

from toolkit.decisions.case import Case
from toolkit.errors import RuleError
from toolkit.prereg.chain import CHAIN
from toolkit.prereg.record import DEMONSTRATION, EVIDENCE, FROZEN, Deviation
from toolkit.prereg.registration import Registration
from toolkit.prereg.verification import ADDITIONS, PROMISE, Chronology, Verification
from toolkit.registers.study import Study, launched_runs
from toolkit.rules.rulebook import rulebook_of
from toolkit.site.charts.curves import timeline
from toolkit.site.charts.svg import Chart
from toolkit.site.drawings import standing_view
from toolkit.site.environment import moment
from toolkit.site.material import Material
from toolkit.site.page import Link, Page, registration_page, rule_page, slug
from toolkit.site.registers import download, every_registration, frozen_files
from toolkit.structs import as_builtins

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*", re.ASCII)
SECOND, DAY = "second", "day"
Touching = tuple[Deviation, tuple[str, ...]]
"""A deviation or disclosure, and the deciding runs of a study that it names."""


@dataclass(frozen=True)
class Dated:
    """Something dated."""

    at: datetime  # when, UTC; midnight where only the day is known, as `precision` says
    precision: str
    kind: str  # what sort of thing; a lane of the chart
    label: str  # its name, in a word
    what: str  # what it is
    source: str  # who says when
    accuracy: str = ""  # how far off the clock may be, as stated
    until: datetime | None = None  # where it lasted, its end


def pages(material: Material) -> Iterator[Page]:
    """Yield a page for every registration, of studies here or of none yet."""
    known = every_registration(material)
    for name, registration in known.items():
        cases = [case for case in material.cases if case.registration.sha256 == registration.sha256]
        verification = next((v for v in material.verifications if v.registration == name), None)
        yield Page(
            registration_page(name),
            "registration.html",
            f"Registration {name}: {registration.title}",
            "registration",
            {
                **_context(registration, verification, cases),
                "same_elsewhere": _elsewhere(material, known, name),
            },
            ("tokens",),
        )


def _elsewhere(material: Material, known: Iterable[str], name: str) -> dict[str, Any]:
    studies = {
        one: [f"study {case.study.name}" for case in material.cases if case.registration.name == one]
        for one in known
    }
    named = {one: f"{one} ({', '.join(of) or 'no study under it is here'})" for one, of in studies.items()}
    others = [Link(words, registration_page(one)) for one, words in named.items() if one != name]
    return {"what": "registration", "here": named[name], "elsewhere": others}


def _context(
    registration: Registration, verification: Verification | None, cases: Sequence[Case]
) -> dict[str, Any]:
    dated = sorted(
        [
            *_dated_tokens(registration, verification),
            *_additions(registration, verification),
            *(entry for case in cases for entry in (*_runs(case), *_records(case.study))),
        ],
        key=lambda entry: (entry.at, entry.kind, entry.label),
    )
    orders = verification.chronology if verification else ()
    touching = {case.study.name: touching_runs(registration, case) for case in cases}
    named = list(dict.fromkeys(entry.id for found in touching.values() for entry, _ in found))
    return {
        "r": registration,
        "v": verification,
        "promise": PROMISE,
        "stands_on": [(case.study.name, standing_view(case)) for case in cases],
        "studies": [case.study.name for case in cases],
        "steps": steps_of(verification),
        "dated": dated,
        "undated": [d.id for d in registration.deviations if d.dated is None],
        "orders": [(order, touching.get(order.study, ())) for order in orders],
        "elsewhere": [d.id for d in registration.deviations if d.id not in named],
        "chart_drawn": _chart(registration, orders, dated, named),
        "files": _files(registration),
        "slug": slug(registration.name),
        "tokens": _tokens(registration, verification),
        "later": _later(registration, verification),
        "rules": _rules(registration, cases),
        "restated": registration.record.is_restated,
    }


def _files(registration: Registration) -> list[dict[str, str]]:
    """Return the files to download: each with its hash, and how it is bound to the others."""
    links = {entry.name: entry.link for entry in registration.entries}
    listed = {FROZEN: "timestamped", CHAIN: "timestamped to each later entry"}
    return [
        {
            "name": name,
            "target": download(registration.name, name),
            "sha256": sha256(content).hexdigest(),
            "bound": "evidence" if name.startswith(f"{EVIDENCE}/") else listed.get(name, "frozen"),
            "link": links.get(name, ""),
        }
        for name, content in frozen_files(registration).items()
    ]


def steps_of(verification: Verification | None) -> list[dict[str, str]]:
    """Return the steps, those that are made several times with which time it is."""
    checks = verification.checks if verification else ()
    times, so_far = Counter(check.step for check in checks), Counter[int]()
    steps = []
    for check in checks:
        so_far[check.step] += 1
        part = f".{so_far[check.step]}" if times[check.step] > 1 else ""
        steps.append({**as_builtins(check), "step": f"{check.step}{part}"})
    return steps


def _tokens(registration: Registration, verification: Verification | None) -> list[dict[str, Any]]:
    """Return what is known of each authority's token, as pairs of a heading and a value."""
    tokens = []
    judged = verification.authorities if verification else ()
    for authority, found in zip_longest(registration.record.authorities, judged):
        verdict = found.verdict if found else None
        message = verdict.message if verdict else ""
        facts: list[tuple[str, object]] = [
            ("asked at", authority.address),
            ("time, by the author's record", moment(authority.recorded_time)),
            ("token", authority.token_place if authority.token_place not in message else ""),
        ]
        if found and verdict and verdict.gen_time is not None:
            stated = "not stated" if verdict.accuracy_seconds is None else f"{verdict.accuracy_seconds:g} s"
            facts += [
                ("operator", found.authority.operator),
                ("time in the token", moment(verdict.gen_time)),
                ("accuracy", stated),
                ("serial", verdict.serial),
                ("policy", verdict.policy),
                ("imprint", f"{verdict.imprint_algorithm} {verdict.imprint}"),
                ("signer", verdict.signer),
                ("signature", verdict.signature_algorithm),
                ("root", verdict.root),
                ("root, SHA-256", verdict.root_sha256),
                ("revocation", verdict.revocation),
            ]
        tokens.append(
            {
                "name": authority.name,
                "verdict": verdict.verdict if verdict else "unknown",
                "message": message if verdict and verdict.verdict != "verified" else "",
                "time": moment(verdict.gen_time) if verdict and verdict.gen_time else "",
                "facts": [(name, value) for name, value in facts if value],
            }
        )
    return tokens


def _later(registration: Registration, verification: Verification | None) -> list[tuple[str, str, str]]:
    """Return whose tokens there are for what was added later: outcome of the step, authority, entry."""
    if registration.record.is_restated or verification is None:
        return []
    outcome = next((check.outcome for check in verification.checks if check.step == ADDITIONS), "unknown")
    added = (entry for entry in registration.entries if entry.id)
    return [(outcome, authority.name, e.id) for e in added for authority in registration.trust_in(e)]


def _rules(registration: Registration, cases: Sequence[Case]) -> list[dict[str, Any]]:
    try:
        book = cases[0].book if cases else rulebook_of(registration)
    except RuleError:
        return []
    return [
        {
            **{name: getattr(rule, name) for name in ("id", "title", "kind")},
            "change": book.changes.get(rule.id),
            "verdicts": [
                (case.study.name, rule_page(case.study.name, rule.id), case.decide(rule.id).verdict)
                for case in cases
                if rule.id in case.book.rules
            ],
        }
        for rule in book.rules.values()
    ]


def _chart(
    registration: Registration, orders: Sequence[Chronology], dated: Sequence[Dated], touching: Sequence[str]
) -> Chart | None:
    recorded = max((a.recorded_time for a in registration.record.authorities), default=None)
    frozen = orders[0].freeze.by if orders else recorded
    if frozen is None:
        return None
    marks = tuple(
        (d.kind.replace("_", " "), d.label, d.at.isoformat(), d.until.isoformat() if d.until else "", d.what)
        for d in dated
    )
    caption = (
        f"A lane a kind; a bar spans first to last launch; the dashed line is {moment(frozen)}, by which "
        f"{registration.name} was frozen, accuracy included."
    )
    if any(d.precision == DAY for d in dated):
        caption += " Where only a day is known, its first moment is drawn."
    return timeline(marks, frozen.isoformat(), _finding(registration, orders, touching), caption)


def _finding(registration: Registration, orders: Sequence[Chronology], touching: Sequence[str]) -> str:
    told = []
    for order in orders:
        after, before = len(order.runs_after), len(order.disclosed_exceptions) + len(order.undisclosed)
        all_runs = after + before + len(order.unknown)
        which = "all" if after == all_runs else f"{after} of"
        told.append(f"{which} {all_runs} deciding runs of {order.study}")
    if not told:
        return f"{registration.name} was frozen; no run under it is here"
    is_proven = all(order.freeze.has_tokens for order in orders)
    frozen = "Frozen" if is_proven else "By the author's record, frozen"
    see = f" (see deviation{'s' * (len(touching) > 1)} {', '.join(touching)})" if touching else ""
    return f"{frozen} before {' and '.join(told)}{see}"


def touching_runs(registration: Registration, case: Case) -> tuple[Touching, ...]:
    """Return the deviations and disclosures whose text names deciding runs of a study, in order."""
    deciding = [str(run["run_id"]) for run in case.study.rows("runs") if run["role"] in case.book.plan.roles]
    words = [(entry, _WORD.findall(f"{entry.title} {entry.text}")) for entry in registration.deviations]
    named = ((entry, tuple(run for run in deciding if run in set(names))) for entry, names in words)
    return tuple((entry, runs) for entry, runs in named if runs)


def _dated_tokens(registration: Registration, verification: Verification | None) -> Iterator[Dated]:
    judged = verification.authorities if verification else ()
    for authority, token in zip_longest(registration.record.authorities, judged):
        name, what = authority.name, f"token of {authority.name}"
        verdict = token.verdict if token and token.is_verified else None
        if verdict is None or verdict.gen_time is None:
            source = "the author's record; no verified token shows it"
            yield Dated(authority.recorded_time, SECOND, "token", name, what, source)
        else:
            stated = "not stated" if verdict.accuracy_seconds is None else f"± {verdict.accuracy_seconds:g} s"
            source = "the token itself" + _a_demonstrations(registration)
            yield Dated(verdict.gen_time, SECOND, "token", name, what, source, stated)


def _additions(registration: Registration, verification: Verification | None) -> Iterator[Dated]:
    orders = verification.chronology if verification else ()
    proven = orders[0].freeze.entries if orders else {}
    source = f"its tokens{_a_demonstrations(registration)}, accuracy included"
    added: list[tuple[str, date | None, str, str]] = [
        *((a.id, a.dated, "amendment", a.title) for a in registration.amendments),
        *((d.id, d.dated, d.kind, d.title) for d in registration.deviations),
    ]
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
    name = case.study.name
    launched = [
        (run["role"] in case.book.plan.roles, at)
        for run in launched_runs(case.study)
        if isinstance(at := run["launched_at"], datetime)
    ]
    for deciding in (True, False):
        launches = sorted(at for decides, at in launched if decides == deciding)
        if launches:
            runs, span = ("runs", "first launch to last") if len(launches) > 1 else ("run", "its launch")
            which = f"deciding {runs}" if deciding else f"{runs} beside the deciding ones"
            told = f"{len(launches)} {which}"
            kind = f"runs of {name}" if deciding else f"other runs of {name}"
            source = f"study {name}, by the clocks of its machines"
            last = launches[-1] if len(launches) > 1 else None
            what = f"{told} of {name}, {span}"
            yield Dated(launches[0], SECOND, kind, told, what, source, until=last)


def _records(study: Study) -> Iterator[Dated]:
    for event in study.rows("events") if study.has("events") else ():
        what = f"{event['event']}: {event['detail']}" if event["detail"] else event["event"]
        source = f"study {study.name}: {event['source']}"
        yield Dated(event["occurred_at"], event["precision"], event["kind"], "", what, source)
