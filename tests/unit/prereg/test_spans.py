"""Which lines of a frozen document a restatement stands for, and which sentences nothing restates."""

import hashlib
import tomllib
from datetime import UTC, datetime

import pytest

from tests.conftest import CHECKOUT
from tests.registrations import rehash
from tests.restated_document import DOCUMENT_MISSING, FROZEN_DOCUMENT, fit_restatement, made_document
from toolkit.prereg import spans
from toolkit.prereg.record import known_authorities, known_restatements
from toolkit.prereg.registration import load_registration
from toolkit.prereg.verification import Reader, verify_registration
from toolkit.rules.rulebook import rulebook_of

PAIRED = CHECKOUT / "prereg" / "paired-rollouts"
NOW = datetime(2026, 11, 20, tzinfo=UTC)
TEXT = b"""# Title

## 1. First

One sentence. Two (of v0.2 at 0.5. Still two) are here! `Three` is code.

## 2. Second

| id | says |
|---|---|
| P1 | all of it. Even this |
- Item one.
"""


def test_sentences_are_counted_by_line_and_a_row_of_a_table_is_one_where_no_sentence_ends() -> None:
    places = [(s.line, s.sentence) for s in spans.sentences(TEXT, (1, 2))]
    assert places == [(5, 1), (5, 2), (5, 3), (5, 4), (11, 1), (11, 2), (12, 1)]
    words = {(s.line, s.sentence): s.sha256 for s in spans.sentences(TEXT, (1,))}
    assert words[5, 1] == hashlib.sha256(b"One sentence.").hexdigest()
    assert spans.sentences(TEXT, (3,)) == []


def test_a_span_is_its_lines_with_their_ends() -> None:
    assert spans.span_sha256(TEXT, 3, 4) == hashlib.sha256(b"## 1. First\n\n").hexdigest()
    assert spans.span_bytes(TEXT, 400, 401) == b""


@pytest.mark.skipif(not FROZEN_DOCUMENT.is_file(), reason=DOCUMENT_MISSING)
def test_the_shipped_restatement_names_the_lines_of_the_frozen_document() -> None:
    document, registration = FROZEN_DOCUMENT.read_bytes(), load_registration(PAIRED)
    assert hashlib.sha256(document).hexdigest() == registration.record.document_sha256
    assert spans.differences(document, registration.rules, registration.unrestated) == []
    nothing_listed = spans.Unrestated(registration.unrestated.sections, ())
    forgotten = spans.differences(document, registration.rules, nothing_listed)
    assert [words.split(":")[0] for words in forgotten] == [
        f"line {line}, sentence {number}"
        for line, number in ((127, 1), (131, 1), (131, 2), (131, 3), (132, 1), (132, 2), (140, 1))
    ]


def test_everything_registered_names_a_span_and_what_is_amended_none() -> None:
    rules = tomllib.loads((PAIRED / "rules.toml").read_text(encoding="utf-8"))
    declared = [
        *(rules[kind][name] for kind in ("rules", "endpoints", "sets") for name in rules[kind]),
        *(*rules["matrix"], *rules["exceptions"], rules["interval_method"]),
    ]
    assert len(declared) == 75
    assert [entry for entry in declared if not entry.get("spans")] == []
    book = rulebook_of(load_registration(PAIRED))
    assert all(interval.spans for interval in book.intervals.values())
    assert book.rules["H1b"].spans == () != book.changes["H1b"].frozen.spans


@pytest.fixture
def fitted(restated):
    """The shipped restatement, made one of a document that lies at hand."""
    document = made_document()
    fit_restatement(restated, document)
    (restated / "evidence").mkdir()
    (restated / "evidence" / "document").write_bytes(document)
    return restated


def third_step(folder):
    reader = Reader(known_authorities(), NOW, restatements=known_restatements())
    return next(check for check in verify_registration(folder, reader).checks if check.step == 3)


def rewrite(name: str, old: str, new: str):
    def change(folder) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))
        rehash(folder)

    return change


def sentence(line: int, number: int) -> str:
    made = next(s for s in spans.sentences(made_document(), (7,)) if (s.line, s.sentence) == (line, number))
    return f'\n[[sentences]]\nline = {line}\nsentence = {number}\nsha256 = "{made.sha256}"\nwhy = "made"\n'


MISFITS = {
    "a span moved by a line": (
        rewrite("rules.toml", "H2a = { lines = [62, 62]", "H2a = { lines = [63, 63]"),
        "span H2a (line 63), restated by ",
    ),
    "a span beyond the end": (
        rewrite("rules.toml", "H2a = { lines = [62, 62]", "H2a = { lines = [62, 999]"),
        "span H2a (lines 62 to 999)",
    ),
    "a span nobody names": (rewrite("rules.toml", 'spans = ["exception"]\n', ""), "restated by nothing"),
    "a span not declared": (
        rewrite("rules.toml", 'spans = ["exception"]', 'spans = ["none"]'),
        "exceptions[1] names span none, which is not declared",
    ),
    "a malformed span": (rewrite("rules.toml", "lines = [62, 62]", "lines = [62]"), "a span is malformed"),
    "a forgotten sentence": (
        rewrite("unrestated.toml", sentence(132, 2), ""),
        "line 132, sentence 2: no span has it, and unrestated.toml does not name it",
    ),
    "a sentence that says something else": (
        rewrite("unrestated.toml", sentence(132, 1)[-90:], sentence(131, 1)[-90:]),
        "unrestated.toml names line 132, sentence 1, which says something else",
    ),
}


def test_with_the_document_at_hand_every_span_and_sentence_is_checked(fitted) -> None:
    check = third_step(fitted)
    assert check.outcome == "missing"  # nobody stands for a restatement of a made document
    assert "spans that they name have the recorded bytes" in check.detail
    (fitted / "evidence" / "document").unlink()
    assert "was not checked: it is not here" in third_step(fitted).detail


@pytest.mark.parametrize("misfit", MISFITS)
def test_what_does_not_fit_the_document_is_named(fitted, misfit) -> None:
    change, words = MISFITS[misfit]
    change(fitted)
    check = third_step(fitted)
    # A span that nothing names leaves its sentences to the list.
    expected = "no span has it" if misfit == "a span nobody names" else words
    assert (check.outcome, expected in check.detail) == ("failed", True), check.detail
