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

WORDS = 'title = "A title"\nquestion = "A question?"\norder = ["published"]\nexhibits = ["theory"]\n'
LINKS = '[links]\nCode = "https://example.org/code"\n[datasets]\npublished = "https://example.org/data/v1"'
PLACES = {place: f"{place}.html" for place in ("theory", "paper")}
PLACES |= {"front": "index.html", "study": "published/index.html"}


def front_of(folder: Path, text: str) -> Front | None:
    (folder / "site.toml").write_text(text, encoding="utf-8")
    return read_front(folder)


def test_a_head_is_read_with_its_links_and_ordered_studies_come_first(tmp_path: Path) -> None:
    assert read_front(tmp_path) is None
    front = front_of(tmp_path, WORDS + LINKS)
    assert front is not None
    assert (front.title, front.question, front.exhibits) == ("A title", "A question?", ("theory",))
    assert sorted(["another", "published"], key=front.place) == ["published", "another"]
    assert front.addresses == ("https://example.org/code", "https://example.org/data/v1")
    assert front_of(tmp_path, 'title = "t"\nquestion = "q"') == Front("t", "q")


WRONG = ("http://example.org/x", "https://example.org/../x", "javascript:alert(1)", "https://u@x.org", "")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *((WORDS + f"[links]\nCode = '{address}'", f"'{address}'") for address in WRONG),
        *(("title =", "Invalid value"), ("title = 'a'", "question"), (WORDS + "links = 1", "links")),
        (WORDS + "[[answer]]\ntext = 'It missed.'\n", "answer"),
    ],
)
def test_a_head_that_cannot_be_read_and_an_address_that_is_not_plain_are_refused(
    tmp_path: Path, text: str, found: str
) -> None:
    with pytest.raises(DamagedError, match="front page cannot be read") as refused:
        front_of(tmp_path, text)
    assert found in str(refused.value)
    assert "findings.toml" in str(refused.value)


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
    (page,) = home.pages(material)
    hero = rendered(page, ["published/H2a.html"]).partition('<ol class="answer">')[2].partition("</ol>")[0]
    assert 'href="published/H2a.html"' in hero


OWN = """
title: "100% of {runs} & more"
type: software
authors: [{name: A Group}, {family-names: Doe, given-names: Jo}]
"""
SHIPPED = """
@misc{sakib-luck-is-not-skill,
  author = {Nazmus Sakib},
  title = {{%s}},
  note = {Preprint},
  url = {https://github.com/TheDeadcoder/paired-rollouts}
}

@software{paired-rollouts-toolkit-toolkit-check-and-run,
  author = {{The developers of paired-rollouts-toolkit}},
  title = {{toolkit: check and run pre-registered reinforcement-learning studies}},
  version = {0.1.0}
}
"""


def test_the_shipped_citation_names_the_paper_and_this_project_as_cards_and_links_do() -> None:
    citation, front = read_citation(CHECKOUT), read_front(CHECKOUT / "cards")
    assert citation is not None
    assert front is not None
    (paper,) = citation.papers
    assert paper.authors == ("Nazmus Sakib",)
    assert citation.bibtex == SHIPPED.strip() % paper.title
    card = (CHECKOUT / "cards" / "embedded.md").read_text(encoding="utf-8")
    assert paper.bibtex.partition(",")[0] in card
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
    page, (one, other, code) = pages["published/index.html"], (f"https://example.org/{n}" for n in range(3))
    assert not [link for link in Read(rendered(page)).links if link.startswith("http")]
    monkeypatch.setitem(SHARED, "links", {"Code": code})
    monkeypatch.setitem(SHARED, "datasets", {"published": one, "another": other})
    assert [link for link in Read(rendered(page)).links if link.startswith("http")] == [code, one]
