"""What is large shows itself in a line; in a notebook, nothing foreign becomes markup."""

from html.parser import HTMLParser
from typing import Any

import toolkit
from toolkit import cases
from toolkit.cases import Study
from toolkit.decisions.case import Case
from toolkit.rules.values import Missing
from toolkit.structs import replace

HOSTILE = "<script>alert('x')</script> & \"quoted\"\x1b[31m\n"
TAGS = {"p", "b", "br", "ul", "li", "code", "table", "thead", "tbody", "tr", "th", "td"}


class Read(HTMLParser):
    """What a browser takes from a fragment: its tags, and its text."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(fragment)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - the parser calls it so
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_everything_that_is_large_says_in_a_line_what_it_is() -> None:
    study = toolkit.open_study("embedded")
    case = cases.open_case(study)
    shown = (
        (study, "Study 'embedded'"),
        (study.manifest, "Manifest of 'embedded'"),
        (case, "Case 'embedded'"),
        (case.book, "RuleBook 'embedded'"),
        (case.registration, "Registration 'embedded'"),
        (case.decide("P13"), "Decision 'P13' in 'embedded'"),
        (toolkit.explain("P13", study), "Explanation of 'P13' in 'embedded'"),
        (toolkit.verify("embedded"), "Verification of 'embedded'"),
    )
    for value, begins in shown:
        assert repr(value).startswith(f"<{begins}")
        assert len(repr(value)) < 200
        assert "\n" not in repr(value)


def test_a_study_shows_its_evidence_its_registration_and_the_rows_of_every_table() -> None:
    study = toolkit.open_study("published")
    shown = Read(study._repr_html_())
    assert "Study published, evidence: summary. Registration paired-rollouts" in shown.text
    for table, entry in study.manifest.tables.items():
        assert f"{table}{entry.rows:,}" in shown.text


def test_a_decision_shows_which_criteria_hold_its_estimate_and_its_interval_in_words(case: Case) -> None:
    shown = Read(case.decide("H2a")._repr_html_()).text
    assert "study published: miss" in shown
    assert "✓ The mean AUC difference is at least 0.03." in shown
    assert "✗ Every seed's AUC difference is positive." in shown
    assert "+0.0370 (seeds 0:+0.0539, 1:-0.0016, 2:+0.0586)." in shown
    assert "95% [-0.0039, +0.0779], published." in shown


def test_a_decision_shows_what_is_missing(case: Case) -> None:
    decision = case.decide("H6")
    shown = Read(decision._repr_html_()).text
    (unknown,) = decision.criteria
    assert unknown.known is None
    assert f"? {unknown.text}" in shown
    assert "Missing: " in shown


def test_no_foreign_text_becomes_markup(case: Case) -> None:
    decision = case.decide("H2a")
    assert decision.estimate is not None
    standing = replace(decision.standing, missing=(HOSTILE,))
    texts: dict[str, Any] = {
        **dict.fromkeys(("rule", "title", "study", "verdict"), HOSTILE),
        "criteria": tuple(
            replace(each, text=HOSTILE, test=HOSTILE, holds=Missing(not_run=False, reasons=(HOSTILE,)))
            for each in decision.criteria
        ),
        "estimate": replace(decision.estimate, title=HOSTILE, unit=HOSTILE),
        "interval": replace(decision.interval, source=HOSTILE),
        "registration": replace(decision.registration, name=HOSTILE, sha256=HOSTILE, standing=standing),
    }
    explained = toolkit.explain("H2a")
    endpoints = tuple(replace(each, title=HOSTILE, rows=HOSTILE) for each in explained.endpoints)
    study = toolkit.open_study("published")
    manifest = replace(
        study.manifest,
        study=HOSTILE,
        registration=replace(study.manifest.registration, name=HOSTILE, sha256=HOSTILE),
    )
    values = (
        replace(decision, **texts),
        replace(explained, **texts, endpoints=endpoints),
        Study(study.folder, manifest),
    )
    for value in values:
        shown = Read(value._repr_html_())
        assert shown.tags <= TAGS
        assert "<script>" in shown.text
        assert repr(value).isprintable()
