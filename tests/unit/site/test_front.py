"""The front page, and links that lead off the site."""

from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.unit.site.reading import CSP, SHARED, Read, pages_of, rendered, words
from toolkit.decisions.case import Case
from toolkit.errors import DamagedError
from toolkit.findings import Finding
from toolkit.site.checking import check_links
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


META = f'<meta http-equiv="Content-Security-Policy" content="{CSP}">'
OTHERS = {"a/b.html": f'{META}<p id="here">x</p>', "a/c d.html": META, "style.css": "", "site.js": ""}


ADDRESS = "https://github.com/someone/paper"


def findings(
    body: str, *, head: str = META, name: str = "a/page.html", addresses: tuple[str, ...] = ()
) -> list[str]:
    files = {**OTHERS, name: f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"}
    encoded = {name: text.encode() for name, text in files.items()}
    return [str(f) for f in check_links(encoded, addresses=addresses)]


@pytest.mark.parametrize(
    "body",
    [
        '<a href="b.html">x</a>',
        '<a href="b.html#here">x</a>',
        '<a href="c%20d.html?x=1">x</a>',
        '<p id="top"></p><a href="#top">x</a>',
        '<a href="b.html#phase=x&amp;task=1">x</a>',
        '<script src="../site.js"></script>',
        '<script type="application/json" id="d">{"a": "<p>"}</script>',
        '<a href="data:text/csv,a" download>x</a>',
        '<img src="data:image/png;base64,AA" alt="">',
        '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0"/></svg>',
    ],
)
def test_what_a_page_may_hold_is_found_fault_with_by_nobody(body: str) -> None:
    assert findings(body) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="gone.html">x</a>', "broken link: gone.html"),
        ('<a href="../a">x</a>', "broken link: ../a"),
        ('<a href="../../outside.html">x</a>', "broken link: ../../outside.html"),
        ('<a href="%2e%2e/%2e%2e/outside.html">x</a>', "broken link: %2e%2e/%2e%2e/outside.html"),
        ('<a href="">x</a>', "broken link: href=''"),
        ('<img srcset="b.html 2x" alt="">', "broken link: srcset='b.html 2x'"),
        ('<a href="b.html#absent">x</a>', "no such id: b.html#absent"),
        ('<a href="#absent">x</a>', "no such id: #absent"),
        ('<a href="https://example.org/">x</a>', "off the site: https://example.org/"),
        ('<a href="//example.org/">x</a>', "off the site: //example.org/"),
        ('<a href="/b.html">x</a>', "off the site: /b.html"),
        ('<a href="\\\\example.org">x</a>', "off the site: \\\\example.org"),
        ('<a href="java&#9;script:alert(1)">x</a>', "off the site: java\tscript:alert(1)"),
        ('<a href="javascript:alert(1)">x</a>', "off the site: javascript:alert(1)"),
        ('<a href="data:text/html,x">x</a>', "off the site: data:text/html,x"),
        ('<script src="https://cdn.example/x.js"></script>', "off the site: https://cdn.example/x.js"),
        ("<script>alert(1)</script>", "markup: a script stands in the text"),
        ("<style>p {}</style>", "markup: a style stands in the text"),
        ('<p style="color: red">x</p>', "markup: style on <p>"),
        ('<p onclick="x()">x</p>', "markup: onclick on <p>"),
        ('<p id="a"></p><p id="a"></p>', "markup: the id 'a' stands twice"),
        ("<section><p>x</p>", "markup: <section> is not closed before </body>"),
        ("</section>", "markup: </section> closes nothing"),
        ('<iframe src="b.html"></iframe>', "markup: a page has no <iframe>"),
        ("<object></object>", "markup: a page has no <object>"),
        ('<embed src="b.html"></embed>', "markup: a page has no <embed>"),
        (
            '<meta http-equiv="Refresh" content="0;url=https://example.org/">',
            "markup: a page has no <meta http-equiv='Refresh'>",
        ),
        ('<a href="https://example.org/" href="b.html">x</a>', "markup: an attribute stands twice on <a>"),
    ],
)
def test_what_is_wrong_with_a_page_is_said_in_one_line(body: str, problem: str) -> None:
    assert findings(body) == [f"a/page.html: {problem}"]


def leaving(address: str) -> str:
    return f'<a href="{address}" rel="external noopener">x</a>'


@pytest.mark.parametrize("below", ["", "/", "/tree/0f3b", "/blob/v1.0/a-b_c~d@e.py"])
def test_a_link_to_a_declared_address_or_below_it_is_no_fault(below: str) -> None:
    assert findings(leaving(ADDRESS + below), addresses=(ADDRESS,)) == []
    assert findings(leaving(ADDRESS + below), addresses=("https://example.org/", ADDRESS + "/")) == []


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)//https://github.com/someone/paper",
        "//github.com/someone/paper",
        "http://github.com/someone/paper",
        "HTTPS://github.com/someone/paper",
        "data:text/html,https://github.com/someone/paper",
        "https://github.com/someone/paper-evil",
        "https://github.com/someone/paper.evil.example",
        "https://github.com/someone",
        "https://github.com.evil.example/someone/paper",
        "https://github.com@evil.example/someone/paper",
        "https://github.com:443/someone/paper",
        "https://github.com\\@evil.example/someone/paper",
        "https://evil.example/https://github.com/someone/paper",
        "https://github.com/someone/paper/../../evil",
        "https://github.com/someone/paper/..",
        "https://github.com/someone/paper/%2e%2e/evil",
        "https://github.com/someone/paper\\..\\evil",
        "https://github.com/someone/paper//evil",
        "https://github.com/someone/paper?to=https://evil.example",
        "https://github.com/someone/paper#x",
        "https://github.com/someone/paper/\nevil",
        " https://github.com/someone/paper",
        "https://github.com/someone/p\u0430per",
    ],
)
def test_no_other_address_passes_for_a_declared_one(address: str) -> None:
    assert len(findings(leaving(address), addresses=(ADDRESS,))) == 1


@pytest.mark.parametrize(
    "body",
    [
        f'<a href="{ADDRESS}">x</a>',
        f'<a href="{ADDRESS}" rel="external">x</a>',
        f'<a href="{ADDRESS}" rel="noopener">x</a>',
        f'<a cite="{ADDRESS}" rel="external noopener">x</a>',
        f'<img src="{ADDRESS}" rel="external noopener" alt="">',
        f'<script src="{ADDRESS}" rel="external noopener"></script>',
        f'<link href="{ADDRESS}" rel="external noopener stylesheet">',
        f'<form action="{ADDRESS}" rel="external noopener"></form>',
    ],
)
def test_a_declared_address_is_linked_to_with_a_mark_and_never_loaded(body: str) -> None:
    assert findings(body, addresses=(ADDRESS,)) == [f"a/page.html: off the site: {ADDRESS}"]


@pytest.mark.parametrize(
    "head",
    ["<title>x</title>", META.replace("default-src 'none'; ", ""), META + META],
    ids=["none", "weaker", "twice"],
)
def test_a_page_carries_the_whole_policy_once(head: str) -> None:
    (finding,) = findings("", head=head)
    assert finding.startswith("a/page.html: policy: ")


def test_a_policy_that_comes_after_a_script_is_found() -> None:
    assert findings("", head=f'<script src="../site.js"></script>{META}') == [
        "a/page.html: markup: <script> stands before the policy"
    ]


def test_a_style_sheet_refers_to_nothing_off_the_site() -> None:
    style = b"@import 'more.css'; p { background: url(https://example.org/x.png) } q { src: url(style.css) }"
    assert [str(f) for f in check_links({"style.css": style})] == [
        "style.css: broken link: more.css",
        "style.css: broken link: https://example.org/x.png",
    ]
