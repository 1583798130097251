"""The head of every page."""

import pytest

from tests.unit.site.reading import SHARED, Read, made_by, rendered
from toolkit.decisions.case import Case
from toolkit.site.material import Material
from toolkit.site.pages import rule, run, study
from toolkit.site.render import Entry, navigation

STUDIES = ("published", "embedded", "coupled", "map", "bfcl", "tiny-lm", "small-lm")
# It stands on every run's page.
MOST_BYTES = 900


def test_the_menu_names_pages_that_the_site_has(case: Case) -> None:
    entries = navigation(Material((case,)), {"index.html", "data.html"})
    assert [entry.label for entry in entries] == ["Outcomes", "Studies", "Data"]
    assert entries[1].pages == (("published", "published/index.html"),)


def test_the_menu_of_a_runs_page_is_small(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    studies = Entry("study", "Studies", pages=tuple((name, f"{name}/index.html") for name in STUDIES))
    entries = navigation(Material((case,)), {f"{name}.html" for name in ("index", "theory", "world", "data")})
    monkeypatch.setitem(
        SHARED, "menu", (entries[0], studies, *entries[2:], Entry("paper", "Paper", "paper.html"))
    )
    page = next(iter(made_by(Material((case,)), run).values()))
    menu = rendered(page).partition('<nav aria-label="Sections">')[2].partition("</nav>")[0]
    assert "Data" in menu
    assert len(menu) < MOST_BYTES


@pytest.mark.parametrize(
    ("name", "current"), [("published/index.html", ["true", "page"]), ("published/H2a.html", ["true"])]
)
def test_the_menu_says_where_a_page_stands(
    case: Case, monkeypatch: pytest.MonkeyPatch, name: str, current: list[str]
) -> None:
    monkeypatch.setitem(SHARED, "menu", navigation(Material((case,)), {"index.html"}))
    text = rendered(made_by(Material((case,)), study, rule)[name])
    menu = text.partition('<nav aria-label="Sections">')[2].partition("</nav>")[0]
    assert [part.partition('"')[0] for part in menu.split('aria-current="')[1:]] == current
    assert "https://" not in " ".join(Read(text).links)
