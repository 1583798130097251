"""How pages lead to each other: menu, contents, search, and the same page of other studies."""

import json

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
    text = rendered(pages[name])
    menu = text.partition('<nav aria-label="Sections">')[2].partition("</nav>")[0]
    assert [part.partition('"')[0] for part in menu.split('aria-current="')[1:]] == current
    assert "https://" not in " ".join(Read(text).links)


SECTIONS = "".join(
    f'<h2 id="s{n}">Part <em>{n}</em> &amp; more <span class="what">beside</span></h2>' for n in range(4)
)
PAGE = f"<body data-kind='x'><main><h1>Title</h1><p>x</p>{SECTIONS}<h2>Without an id</h2></main></body>"


def test_a_heading_leads_to_itself_without_a_further_word() -> None:
    page = Read(with_contents(PAGE, "a.html"))
    assert {f"#s{n}" for n in range(4)} == set(page.links)
    assert page.text.count("#") == 0


def test_a_long_page_lists_its_sections_below_its_title() -> None:
    text = with_contents(PAGE, "a.html")
    assert text.partition("</h1>")[2].lstrip().startswith('<nav class="contents"')
    assert text.startswith('<body class="long" ')  # the frame is as wide before the list arrives
    listed = text.partition("<ol>")[2].partition("</ol>")[0]
    assert listed.count("<li>") == 4
    assert '<li><a href="#s2">Part 2 &amp; more</a></li>' in listed
    assert Read(text).ids == {f"s{n}" for n in range(4)}


def test_a_short_page_and_the_front_page_have_no_list() -> None:
    short = PAGE.replace('<h2 id="s0">', "<h2>")
    assert "contents" not in with_contents(short, "a.html")
    assert "contents" not in with_contents(PAGE, "index.html")


def test_everything_that_is_found_stands_at_its_place(pages: dict[str, Page]) -> None:
    script = search_script(pages.values())
    found = json.loads(script.removeprefix("globalThis.toolkitSearch=").removesuffix(";\n"))
    kinds = {kind for kind, *_ in found}
    assert kinds == {"Rule", "Study", "Registration", "Page", "Run", "Column", "Word"}
    ids: dict[str, set[str]] = {}
    for *_, place in found:
        name, _, fragment = place.partition("#")
        if fragment:
            ids.setdefault(name, set()).add(fragment)
        else:
            assert name in pages
    for name in ("data.html", "published/H2a.html"):  # of columns, and of words
        assert ids[name] <= Read(rendered(pages[name], pages)).ids


def test_columns_come_with_their_meaning_and_words_once(pages: dict[str, Page]) -> None:
    found = json.loads(search_script(pages.values()).partition("=")[2].removesuffix(";\n"))
    (column,) = [entry for entry in found if entry[:2] == ["Column", "evaluations.successes"]]
    known = TABLES["evaluations"].column("successes")
    assert known is not None
    assert column[2:] == [known.meaning, "data.html#table-evaluations"]
    words = [tuple(entry[1:3]) for entry in found if entry[0] == "Word"]
    assert len(words) == len(set(words))


def test_no_name_ends_the_script() -> None:
    hostile = Page("a.html", "study.html", "</script>\u2028<b>", "study")
    assert "<" not in search_script([hostile])
    assert "\u2028" not in search_script([hostile])


@pytest.fixture(scope="module")
def both(case: Case, tiny: Case) -> Material:
    return Material((case, tiny))


@pytest.fixture(scope="module")
def of_both(both: Material) -> dict[str, Read]:
    return {name: Read(text) for name, text in pages_of(both, luck, probe, registration, study).items()}


@pytest.mark.parametrize("kind", ["index", "probe", "luck"])
def test_a_page_of_one_study_leads_to_that_of_the_other(of_both: dict[str, Read], kind: str) -> None:
    assert f"../published/{kind}.html" in of_both[f"tiny-lm/{kind}.html"].links
    assert f"../tiny-lm/{kind}.html" in of_both[f"published/{kind}.html"].links


def test_a_page_says_which_study_it_is_of_and_which_the_link_leads_to(of_both: dict[str, Read]) -> None:
    said = "of study tiny-lm. The same page for: study published (published figures)."
    assert said in of_both["tiny-lm/probe.html"].text


def test_a_registration_leads_to_the_others_and_names_their_studies(of_both: dict[str, Read]) -> None:
    page = of_both["registrations/tiny-lm.html"]
    assert "../registrations/paired-rollouts.html" in page.links
    assert "tiny-lm (study tiny-lm). The same page for: paired-rollouts (study published)." in page.text


def test_a_page_that_the_site_lacks_is_not_linked(both: Material) -> None:
    macro = environment().get_template("macros.html").module.siblings
    links = rule_head(both.cases, both.cases[0], "H2a")["same_elsewhere"]
    assert str(macro(links, "../", set())) == ""
    assert 'href="../tiny-lm/H2a.html"' in str(macro(links, "../", {"tiny-lm/H2a.html"}))


def test_a_rule_of_the_same_name_and_another_title_is_another_rule(both: Material) -> None:
    first, second = both.cases
    [same] = rule_head(both.cases, first, "H2a")["same_elsewhere"]["elsewhere"]
    assert same.target == "tiny-lm/H2a.html"
    renamed = {**second.book.rules, "H2a": replace(second.book.rules["H2a"], title="Something else")}
    other = replace(second, book=replace(second.book, rules=renamed))
    assert rule_head((first, other), first, "H2a")["same_elsewhere"]["elsewhere"] == []
