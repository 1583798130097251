"""A decision with its rule's words, and where the rows of its endpoints are."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision
from toolkit.decisions.rows_query import rows_query
from toolkit.decisions.rules import Rule
from toolkit.decisions.statistic import Statistic
from toolkit.prereg.record import Amendment, Deviation
from toolkit.prereg.spans import Span, span_text

if TYPE_CHECKING:
    from toolkit.documents import decisions as documents


@dataclass(frozen=True)
class EndpointRows:
    """An endpoint and its rows.

    Args:
        id, title, unit: as registered.
        rows: the query that gives them, for `toolkit sql` or the study's `duckdb()`.
    """

    id: str
    title: str
    unit: str
    rows: str


@dataclass(frozen=True)
class RestatedSpan:
    """Lines of a frozen document that a rule restates: their name and place, and their words if at hand."""

    name: str
    span: Span
    text: str | None


@dataclass(frozen=True)
class Restated:
    """What a rule restates.

    Args:
        document: what the frozen document is.
        sha256: of its bytes.
        of_frozen_rule: whether it is the rule as frozen that restates it, and an amendment replaced that.
        remedy: how to get the document; None where it is at hand.
        spans: the lines.
    """

    document: str
    sha256: str
    of_frozen_rule: bool
    remedy: str | None
    spans: tuple[RestatedSpan, ...]

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
    """A decision, and what it rests on.

    Args:
        decision: the decision.
        registered: the rule: its words, and what its readings mean.
        endpoints: the endpoints that it reads, with their rows.
        statistics: the statistics that it reads.
        restates: what the rule restates; None where it is frozen itself.
        addition: the amendment that added the rule; None where it was frozen.
        deviations: what was recorded that bears on it.
    """

    decision: Decision
    registered: Rule
    endpoints: tuple[EndpointRows, ...]
    statistics: tuple[Statistic, ...]
    restates: Restated | None
    addition: Amendment | None
    deviations: tuple[Deviation, ...]

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
