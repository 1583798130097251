"""How the project and its paper are cited."""

from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.unit.site.reading import SHARED, Read, made_by, rendered
from toolkit.decisions.case import Case
from toolkit.errors import DamagedError
from toolkit.site.citation import read_citation
from toolkit.site.front import read_front
from toolkit.site.material import Material
from toolkit.site.pages import study

OWN = """
title: "100% of {runs} & more"
type: software
authors:
  - name: A Group
  - family-names: Doe
    given-names: Jo
"""


def test_the_shipped_citation_names_the_paper_and_this_project() -> None:
    citation = read_citation(CHECKOUT)
    assert citation is not None
    (paper,) = citation.papers
    assert paper.authors == ("Nazmus Sakib",)
    assert citation.bibtex.splitlines() == [
        "@misc{sakib-luck-is-not-skill,",
        "  author = {Nazmus Sakib},",
        f"  title = {{{{{paper.title}}}}},",
        "  note = {Preprint},",
        "  url = {https://github.com/TheDeadcoder/paired-rollouts}",
        "}",
        "",
        "@software{paired-rollouts-toolkit-toolkit-check-and-run,",
        "  author = {{The developers of paired-rollouts-toolkit}},",
        "  title = {{toolkit: check and run pre-registered reinforcement-learning studies}},",
        "  version = {0.1.0}",
        "}",
    ]


def test_the_paper_of_the_cards_has_the_key_and_address_of_the_citation() -> None:
    citation, front = read_citation(CHECKOUT), read_front(CHECKOUT / "cards")
    assert citation is not None
    assert front is not None
    card = (CHECKOUT / "cards" / "embedded.md").read_text(encoding="utf-8")
    assert citation.papers[0].bibtex.partition(",")[0] in card
    assert all(address in citation.text for address in front.addresses)


def test_what_bibtex_would_take_for_its_own_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "CITATION.cff").write_text(OWN, encoding="utf-8")
    citation = read_citation(tmp_path)
    assert citation is not None
    assert r"title = {{100\% of \{runs\} \& more}}" in citation.bibtex
    assert "author = {{A Group} and Jo Doe}" in citation.bibtex
    assert read_citation(tmp_path / "elsewhere") is None


@pytest.mark.parametrize(
    "text", ["- a", "title: x", "title: x\nauthors: []", "title: [", "title: x\nauthors: [{given-names: Jo}]"]
)
def test_a_citation_without_title_or_authors_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "CITATION.cff").write_text(text, encoding="utf-8")
    with pytest.raises(DamagedError, match="citation cannot be read"):
        read_citation(tmp_path)


def test_a_page_leads_to_what_is_declared_and_to_nothing_else(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = made_by(Material((case,)), study)["published/index.html"]
    assert not [link for link in Read(rendered(page)).links if link.startswith("http")]
    monkeypatch.setitem(SHARED, "links", {"Code": "https://example.org/code"})
    monkeypatch.setitem(
        SHARED, "datasets", {"published": "https://example.org/v1", "another": "https://example.org/v2"}
    )
    links = Read(rendered(page)).links
    assert [link for link in links if link.startswith("http")] == [
        "https://example.org/code",
        "https://example.org/v1",
    ]
