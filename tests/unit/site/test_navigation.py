"""How pages lead to each other: menu, contents, search, and the same page of other studies."""

import json
from collections import Counter

import pytest

from tests.unit.site.reading import SHARED, Read, pages_of, rendered
from toolkit.decisions.case import Case
from toolkit.registers.schema import TABLES
from toolkit.site.build import navigation, search_script, with_contents
from toolkit.site.drawings import rule_head
from toolkit.site.environment import environment
from toolkit.site.material import Material
from toolkit.site.page import Page
from toolkit.site.pages import luck, probe, registration, study
from toolkit.structs import replace


def test_the_menu_names_pages_that_the_site_has(case: Case) -> None:
    entries = navigation(Material((case,)), {"index.html", "data.html"})
    assert [entry.label for entry in entries] == ["Outcomes", "Studies", "Data"]
    assert entries[1].pages == (("published", "published/index.html"),)


@pytest.mark.parametrize(
    ("name", "current"), [("published/index.html", ["true", "page"]), ("published/H2a.html", ["true"])]
)
def test_the_menu_says_where_a_page_stands(case, pages, monkeypatch, name, current) -> None:
    monkeypatch.setitem(SHARED, "menu", navigation(Material((case,)), {"index.html"}))
    menu = rendered(pages[name]).partition('<nav aria-label="Sections">')[2].partition("</nav>")[0]
    assert [part.partition('"')[0] for part in menu.split('aria-current="')[1:]] == current


SECTIONS = "".join(
    f'<h2 id="s{n}">Part <em>{n}</em> &amp; more <span class="what">beside</span></h2>' for n in range(4)
)
HEAD = "<body data-kind='x'><main><h1>Title</h1><p>x</p>"
PAGE = f"{HEAD}{SECTIONS}<h2>Without an id</h2></main></body>"


def test_a_long_page_lists_its_sections_below_its_title_and_each_leads_to_itself() -> None:
    text = with_contents(PAGE, "a.html")
    assert text.partition("</h1>")[2].lstrip().startswith('<nav class="contents"')
    assert text.startswith('<body class="long" ')  # the frame is as wide before the list arrives
    listed = text.partition("<ol>")[2].partition("</ol>")[0]
    assert listed.count("<li>") == 4
    assert '<li><a href="#s2">Part 2 &amp; more</a></li>' in listed
    assert Counter(Read(text).links) == {f"#s{n}": 2 for n in range(4)}
    for short, name in ((PAGE.replace('<h2 id="s0">', "<h2>"), "a.html"), (PAGE, "index.html")):
        assert "contents" not in with_contents(short, name)


def test_everything_that_is_found_stands_at_its_place_with_its_meaning(pages: dict[str, Page]) -> None:
    script = search_script(pages.values())
    found = json.loads(script.removeprefix("globalThis.toolkitSearch=").removesuffix(";\n"))
    kinds = {"Rule", "Study", "Registration", "Page", "Run", "Column", "Word"}
    assert {kind for kind, *_ in found} == kinds
    places = [place.partition("#") for *_, place in found]
    assert {name for name, *_ in places} <= set(pages)
    for page in ("data.html", "published/H2a.html"):  # of columns, and of words
        wanted = {fragment for name, _, fragment in places if fragment and name == page}
        assert wanted <= Read(rendered(pages[page], pages)).ids
    meaning = TABLES["evaluations"].column("successes").meaning
    assert ["Column", "evaluations.successes", meaning, "data.html#table-evaluations"] in found
    words = [tuple(entry[1:3]) for entry in found if entry[0] == "Word"]
    assert len(words) == len(set(words))
    hostile = search_script([Page("a.html", "study.html", "</script>\u2028<b>", "study")])
    assert not {"<", "\u2028"} & set(hostile)


@pytest.fixture(scope="module")
def both(case: Case, tiny: Case) -> Material:
    return Material((case, tiny))


def test_a_page_of_one_study_leads_to_that_of_the_other(both: Material) -> None:
    of = {name: Read(text) for name, text in pages_of(both, luck, probe, registration, study).items()}
    for kind in ("index", "probe", "luck"):
        assert f"../published/{kind}.html" in of[f"tiny-lm/{kind}.html"].links
        assert f"../tiny-lm/{kind}.html" in of[f"published/{kind}.html"].links
    said = "of study tiny-lm. The same page for: study published (published figures)."
    assert said in of["tiny-lm/probe.html"].text
    page = of["registrations/tiny-lm.html"]
    assert "../registrations/paired-rollouts.html" in page.links
    assert "tiny-lm (study tiny-lm). The same page for: paired-rollouts (study published)." in page.text


def test_a_rule_leads_to_that_of_the_same_name_and_title_if_the_site_has_it(both: Material) -> None:
    macro = environment().get_template("macros.html").module.siblings
    first, second = both.cases
    links = rule_head(both.cases, first, "H2a")["same_elsewhere"]
    assert [link.target for link in links["elsewhere"]] == ["tiny-lm/H2a.html"]
    assert str(macro(links, "../", set())) == ""
    assert 'href="../tiny-lm/H2a.html"' in str(macro(links, "../", {"tiny-lm/H2a.html"}))
    renamed = {**second.book.rules, "H2a": replace(second.book.rules["H2a"], title="Something else")}
    other = replace(second, book=replace(second.book, rules=renamed))
    assert rule_head((first, other), first, "H2a")["same_elsewhere"]["elsewhere"] == []
