"""A card made anew: from its source, the findings and the registers, and nothing else changes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Result
from toolkit import cases
from toolkit.errors import UsageError, VerificationError
from toolkit.findings import FILE, card_documents, check_card
from toolkit.places import Home

SLOW = ("bfcl", "coupled", "embedded", "map", "small-lm", "worlds")
TOLD = (*(pytest.param(name, marks=pytest.mark.slow) for name in SLOW), "tiny-lm")


@pytest.mark.parametrize("study", TOLD)
def test_the_shipped_cards_are_what_their_sources_give(home: Home, study: str) -> None:
    (case,) = cases.load_cases((study,), home)
    documents = card_documents(case, home.cards)
    check_card(case, documents)
    assert documents["README.md"] == (home.study_folder(study) / "README.md").read_bytes()
    assert "{{findings}}" in (CHECKOUT / "cards" / f"{study}.md").read_text(encoding="utf-8")


def test_a_card_is_written_with_its_manifest_and_no_row_changes(copy, toolkit) -> None:
    folder = copy.study_folder("tiny-lm")
    before = json.loads((folder / "MANIFEST.json").read_text(encoding="utf-8"))
    source = copy.cards / "tiny-lm.md"
    source.write_text(source.read_text(encoding="utf-8").replace("Two seeds", "Both seeds"), encoding="utf-8")
    toolkit("registers", "card", "tiny-lm", "--check").refused(
        1, "README.md", "toolkit registers card tiny-lm"
    )
    made = toolkit("registers", "card", "tiny-lm", "--json")
    assert made.json()["outcome"] == "written"
    after = json.loads((folder / "MANIFEST.json").read_text(encoding="utf-8"))
    assert "Both seeds" in (folder / "README.md").read_text(encoding="utf-8")
    changed = {name for name in before["files"] if before["files"][name] != after["files"][name]}
    assert changed == {"README.md"}
    assert {name for name in before if before[name] != after[name]} == {"files", "seal"}
    assert toolkit("registers", "verify", "--study", "tiny-lm").code == 0


def test_a_card_is_refused_whose_findings_are_not_borne(copy: Home, toolkit: Callable[..., Result]) -> None:
    told, before = copy.cards / FILE, (copy.study_folder("tiny-lm") / "README.md").read_bytes()
    text = told.read_text(encoding="utf-8")
    told.write_text(
        text.replace('verdicts = { H1b = "miss" }', 'verdicts = { H1b = "pass" }'), encoding="utf-8"
    )
    toolkit("registers", "card", "tiny-lm").refused(4, "another verdict", "tiny-lm/H1b miss")
    assert (copy.study_folder("tiny-lm") / "README.md").read_bytes() == before


def test_a_study_whose_card_is_built_with_its_registers_is_told_apart(home: Home, tmp_path: Path) -> None:
    (case,) = cases.load_cases(("published",), home)
    with pytest.raises(UsageError, match="built with the registers"):
        card_documents(case, tmp_path)


def test_documents_that_differ_are_named(home: Home) -> None:
    (case,) = cases.load_cases(("coupled",), home)
    with pytest.raises(VerificationError) as refused:
        check_card(case, {"README.md": b"", "other.md": b""})
    assert refused.value.found == "README.md, other.md"
