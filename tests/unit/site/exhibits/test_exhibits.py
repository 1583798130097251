"""What this project shows beside its studies: named in one place, and on no site of other studies."""

import re

import pytest

from tests.conftest import CHECKOUT
from tests.unit.cli.test_any_log import LOGS, journey, played_again
from tests.unit.site.reading import rendered
from toolkit.decisions.case import Case
from toolkit.errors import DamagedError
from toolkit.places import HOME_VARIABLE, Home
from toolkit.site.build import explanations, navigation
from toolkit.site.exhibits import load_exhibits
from toolkit.site.material import Exhibit, Material, read_front
from toolkit.site.page import Entry, Link
from toolkit.site.pages import luck
from toolkit.structs import replace

OURS = re.compile(
    r".{0,40}(?:pair(?:ed|ing)|rollout|luck|theor|bandit|(?<!linear-)gradient|spurious|bfcl).{0,40}",
    re.IGNORECASE,
)


@pytest.mark.slow
def test_a_site_of_somebodys_own_study_says_nothing_of_ours(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    pilot = LOGS / "lm_eval" / "models"
    played = played_again(pilot, tmp_path / "played", "samples_*.jsonl", "acc")
    site = journey(tmp_path, pilot, played, "--arm", "model").site
    pages = [path for path in site.rglob("*") if path.suffix in (".html", ".svg", ".css")]
    assert len(pages) > 8
    assert [found for path in pages for found in OURS.findall(path.read_text(encoding="utf-8"))] == []
    assert not {"theory.js", "world.js"} & {path.name for path in site.iterdir()}


def test_the_project_names_every_exhibit_once(home: Home) -> None:
    front = read_front(home.cards)
    folder = CHECKOUT / "toolkit" / "site" / "exhibits"
    modules = {
        path.stem for path in folder.glob("[!_]*.py") if "EXHIBIT = " in path.read_text(encoding="utf-8")
    }
    assert front is not None
    assert sorted(front.exhibits) == sorted(modules)
    assert len(load_exhibits(front.exhibits)) == len(modules)


@pytest.mark.parametrize("name", ["theorem", "../theory", "theory.EXHIBIT", ""])
def test_an_exhibit_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(DamagedError, match="names an exhibit that there is not") as refused:
        load_exhibits(("theory", name))
    assert repr(name) in str(refused.value)


def test_entries_and_explanations_lead_to_pages_that_the_site_has() -> None:
    entry, link = Entry("more", "More of it", "more.html"), Link("It is explained.", "more.html")
    material = Material(
        (), exhibits=(Exhibit("toolkit.site.exhibits", entry=entry, explains={"luck": link}),)
    )
    assert entry in navigation(material, ["more.html"])
    assert explanations(material, ["more.html"]) == {"luck": link}
    assert entry not in navigation(material, ["index.html"])
    assert explanations(material, ["index.html"]) == {}


def test_an_explanation_is_a_link_on_the_page_that_touches_on_it(tiny: Case) -> None:
    (page,) = luck.pages(Material((tiny,)))
    link = Link("It is explained.", "theory.html")
    shown = replace(page, context={**page.context, "explained": {"spurious": link}})
    assert '<a href="../theory.html">It is explained.</a>' in rendered(shown)
    assert "theory.html" not in rendered(page)
