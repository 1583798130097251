"""A page a registration: what was frozen, when, by whom it is proven, and what came after."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.rulebook import rulebook_of
from toolkit.errors import RuleError
from toolkit.prereg.chain import CHAIN
from toolkit.prereg.checks import ADDITIONS
from toolkit.prereg.chronology import Chronology
from toolkit.prereg.record import EVIDENCE, FROZEN
from toolkit.prereg.registration import Registration
from toolkit.prereg.verification import PROMISE, Verification
from toolkit.website.charts.drawing import Chart
from toolkit.website.charts.timeline import timeline
from toolkit.website.chronicle import DAY, Dated, chronicle
from toolkit.website.frozen_files import download, every_registration, frozen_files
from toolkit.website.material import Material
from toolkit.website.page import Page, registration_page, rule_page, slug
from toolkit.website.prose import moment
from toolkit.website.siblings import of_registration
from toolkit.website.views import standing_view

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*", re.ASCII)


@dataclass(frozen=True)
class Touching:
    """A deviation or disclosure that names deciding runs of a study."""

    id: str
    title: str
    study: str
    runs: tuple[str, ...]


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
                "same_elsewhere": of_registration(tuple(known.values()), name, material),
            },
            ("tokens",),
        )


def _context(
    registration: Registration, verification: Verification | None, cases: Sequence[Case]
) -> dict[str, Any]:
    dated = chronicle(registration, verification, cases)
    orders = verification.chronology if verification else ()
    touching = [touch for case in cases for touch in touching_runs(registration, case)]
    return {
        "r": registration,
        "v": verification,
        "promise": PROMISE,
        "stands_on": [(case.study.name, standing_view(case)) for case in cases],
        "studies": [case.study.name for case in cases],
        "steps": steps_of(verification),
        "dated": dated,
        "undated": [d.id for d in registration.deviations if d.dated is None],
        "orders": [(order, [d for d in touching if d.study == order.study]) for order in orders],
        "elsewhere": [d.id for d in registration.deviations if d.id not in {t.id for t in touching}],
        "chart_drawn": _chart(registration, verification, dated, touching),
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
        steps.append({**vars(check), "step": f"{check.step}{part}"})
    return steps


def _tokens(registration: Registration, verification: Verification | None) -> list[dict[str, Any]]:
    """Return what is known of each authority's token, as pairs of a heading and a value."""
    judged = verification.authorities if verification else ()
    tokens = []
    for number, authority in enumerate(registration.record.authorities):
        authority_verdict = judged[number] if judged else None
        verdict = authority_verdict.verdict if authority_verdict else None
        message = verdict.message if verdict else ""
        facts: list[tuple[str, object]] = [
            ("asked at", authority.address),
            ("time, by the author's record", moment(authority.recorded_time)),
            ("token", authority.token_place if authority.token_place not in message else ""),
        ]
        if authority_verdict and verdict and verdict.gen_time is not None:
            stated = "not stated" if verdict.accuracy_seconds is None else f"{verdict.accuracy_seconds:g} s"
            facts += [
                ("operator", authority_verdict.authority.operator),
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
    """Return the rules in force, each with where every study's verdict stands."""
    if cases:
        book = cases[0].book
    else:
        try:
            book = rulebook_of(registration)
        except RuleError:
            return []
    verdicts = {
        (case.study.name, decision.rule): decision.verdict for case in cases for decision in case.decide_all()
    }
    return [
        {
            "id": rule.id,
            "title": rule.title,
            "kind": rule.kind,
            "change": book.changes.get(rule.id),
            "verdicts": [
                (case.study.name, rule_page(case.study.name, rule.id), verdicts[case.study.name, rule.id])
                for case in cases
                if (case.study.name, rule.id) in verdicts
            ],
        }
        for rule in book.rules.values()
    ]


def _chart(
    registration: Registration,
    verification: Verification | None,
    dated: Sequence[Dated],
    touching: Sequence[Touching],
) -> Chart | None:
    orders = verification.chronology if verification else ()
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


def _finding(registration: Registration, orders: Sequence[Chronology], touching: Sequence[Touching]) -> str:
    """Return what the chronology says, in words."""
    told = []
    for order in orders:
        before = len(order.disclosed_exceptions) + len(order.undisclosed)
        all_runs = len(order.runs_after) + before + len(order.unknown)
        which = "all" if len(order.runs_after) == all_runs else f"{len(order.runs_after)} of"
        told.append(f"{which} {all_runs} deciding runs of {order.study}")
    if not told:
        return f"{registration.name} was frozen; no run under it is here"
    proven = (
        "Frozen" if all(order.freeze.has_tokens for order in orders) else "By the author's record, frozen"
    )
    ids = list(dict.fromkeys(touch.id for touch in touching))
    see = f" (see {'deviation' if len(ids) == 1 else 'deviations'} {', '.join(ids)})" if ids else ""
    return f"{proven} before {' and '.join(told)}{see}"


def touching_runs(registration: Registration, case: Case) -> tuple[Touching, ...]:
    """Return the deviations and disclosures whose text names deciding runs of a study, in order."""
    deciding = [str(run["run_id"]) for run in case.study.rows("runs") if run["role"] in case.book.plan.roles]
    touching = []
    for entry in registration.deviations:
        names = set(_WORD.findall(f"{entry.title} {entry.text}"))
        if runs := tuple(run for run in deciding if run in names):
            touching.append(Touching(entry.id, entry.title, case.study.name, runs))
    return tuple(touching)
