"""The front page's head, the findings that are its answer, and how the project is cited."""

from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.unit.site.reading import SHARED, Read, pages_of, rendered, words
from toolkit.decisions.case import Case
from toolkit.errors import DamagedError
from toolkit.findings import Finding
from toolkit.site.exhibits import paper, theory
from toolkit.site.material import Front, Material, read_citation, read_front
from toolkit.site.pages import home, study

WORDS = """
title = "A title"
question = "A question?"
order = ["published"]
exhibits = ["theory"]
"""


def write(folder: Path, text: str) -> Path:
    (folder / "site.toml").write_text(text, encoding="utf-8")
    return folder


def test_ordered_studies_come_first(tmp_path: Path) -> None:
    assert read_front(tmp_path) is None
    front = read_front(write(tmp_path, WORDS))
    assert front == Front("A title", "A question?", ("published",), exhibits=("theory",))
    assert sorted(["another", "published"], key=front.place) == ["published", "another"]
    assert read_front(write(tmp_path, 'title = "t"\nquestion = "q"')) == Front("t", "q")


@pytest.mark.parametrize(
    "text", ["title =", "title = 'a'", WORDS + "[[answer]]\ntext = 'It missed.'\n", WORDS + "links = 1"]
)
def test_a_head_that_cannot_be_read_is_damaged(tmp_path: Path, text: str) -> None:
    with pytest.raises(DamagedError, match="front page cannot be read") as refused:
        read_front(write(tmp_path, text))
    assert "findings.toml" in str(refused.value)


LINKS = """
[links]
Code = "https://example.org/code"
[datasets]
published = "https://example.org/data/v1"
"""


def test_links_out_and_datasets_are_read_as_declared(tmp_path: Path) -> None:
    front = read_front(write(tmp_path, WORDS + LINKS))
    assert front is not None
    assert front.addresses == ("https://example.org/code", "https://example.org/data/v1")


@pytest.mark.parametrize(
    "address",
    ["http://example.org/x", "https://example.org/../x", "javascript:alert(1)", "https://u@x.org", ""],
)
def test_an_address_that_is_not_plain_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(DamagedError, match="not plain") as refused:
        read_front(write(tmp_path, WORDS + f"[links]\nCode = '{address}'"))
    assert repr(address) in str(refused.value)


PLACES = {
    "front": "index.html",
    "study": "published/index.html",
    "theory": "theory.html",
    "paper": "paper.html",
}


def test_a_finding_stands_at_its_places_with_what_bears_it(case: Case) -> None:
    findings = [
        Finding("published", f"At {place} it <missed>.", ("H2a",), "", (place,), is_exploratory=False)
        for place in PLACES
    ]
    findings += [
        Finding("published", "It was asked.", (), f"SELECT '{place}' AS n", (place,), is_exploratory=True)
        for place in PLACES
    ]
    material = Material((case,), front=Front("t", "q"), findings=tuple(findings), cards=CHECKOUT / "cards")
    pages = pages_of(material, home, study, theory, paper)
    for place, page in PLACES.items():
        assert {name for name, text in pages.items() if f"At {place} it &lt;missed&gt;." in text} == {page}
        text = words(pages[page])
        assert "It was asked. exploratory" in text
        assert "it <missed>. exploratory" not in text
        assert ("toolkit sql" in pages[page] and f"SELECT '{place}' AS n" in text) == (place != "front")


def test_a_finding_links_to_the_rules_that_bear_it(case: Case) -> None:
    findings = (Finding("published", "It missed.", ("H2a",), "", ("front",), is_exploratory=False),)
    material = Material((case,), front=Front("t", "q"), findings=findings)
    (page,) = home.pages(material)
    hero = rendered(page, ["published/H2a.html"]).partition('<ol class="answer">')[2].partition("</ol>")[0]
    assert 'href="published/H2a.html"' in hero


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


def test_a_page_leads_to_what_is_declared_and_to_nothing_else(pages, monkeypatch) -> None:
    page = pages["published/index.html"]
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
