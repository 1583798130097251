"""The same page of other studies is one link away, and both studies are named."""

from dataclasses import replace

import pytest

from tests.unit.site.reading import Read, pages_of
from toolkit.decisions.case import Case
from toolkit.site.environment import environment
from toolkit.site.material import Material
from toolkit.site.pages import luck, probe, registration, study
from toolkit.site.views import rule_head


@pytest.fixture(scope="module")
def both(case: Case, embedded: Case) -> Material:
    return Material((case, embedded))


@pytest.fixture(scope="module")
def pages(both: Material) -> dict[str, Read]:
    return {name: Read(text) for name, text in pages_of(both, luck, probe, registration, study).items()}


@pytest.mark.parametrize("kind", ["index", "probe", "luck"])
def test_a_page_of_one_study_leads_to_that_of_the_other(pages: dict[str, Read], kind: str) -> None:
    assert f"../published/{kind}.html" in pages[f"embedded/{kind}.html"].links
    assert f"../embedded/{kind}.html" in pages[f"published/{kind}.html"].links


def test_a_page_says_which_study_it_is_of_and_which_the_link_leads_to(pages: dict[str, Read]) -> None:
    said = "of study embedded. The same page for: study published (published figures)."
    assert said in pages["embedded/probe.html"].text


def test_a_registration_leads_to_the_others_and_names_their_studies(pages: dict[str, Read]) -> None:
    page = pages["registrations/embedded.html"]
    assert "../registrations/paired-rollouts.html" in page.links
    assert "embedded (study embedded). The same page for: paired-rollouts (study published)." in page.text


def test_a_page_that_the_site_lacks_is_not_linked(both: Material) -> None:
    macro = environment().get_template("macros.html").module.siblings
    links = rule_head(both.cases, both.cases[0], "H2a")["same_elsewhere"]
    assert str(macro(links, "../", set())) == ""
    assert 'href="../embedded/H2a.html"' in str(macro(links, "../", {"embedded/H2a.html"}))


def test_a_rule_of_the_same_name_and_another_title_is_another_rule(both: Material) -> None:
    first, second = both.cases
    [same] = rule_head(both.cases, first, "H2a")["same_elsewhere"]["elsewhere"]
    assert same.target == "embedded/H2a.html"
    renamed = {**second.book.rules, "H2a": replace(second.book.rules["H2a"], title="Something else")}
    other = replace(second, book=replace(second.book, rules=renamed))
    assert rule_head((first, other), first, "H2a")["same_elsewhere"]["elsewhere"] == []
