"""The page of the paper: printed digits from registers, every study apart, and what cannot be had."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.golden.extract_tables import TABLES as LABELS
from tests.unit.site.reading import rendered, words
from toolkit.decisions.case import Case
from toolkit.errors import DamagedError
from toolkit.places import Home
from toolkit.site.exhibits import paper as papers
from toolkit.site.exhibits.paper import Paper, read_paper
from toolkit.site.material import Material
from toolkit.site.page import Page
from toolkit.structs import replace

PRINTED = json.loads((CHECKOUT / "tests" / "golden" / "paper_tables.json").read_text(encoding="utf-8"))
RUNS = {"P": "paired", "I": "independent", "paired": "paired", "independent": "independent", "clean": "clean"}


@pytest.fixture(scope="module")
def paper(home: Home) -> Paper:
    found = read_paper(home.cards)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def page(material: Material, paper: Paper) -> Page:
    return papers.page(material, paper)


def answers(page: Page, label: str, part: int = 0) -> dict[str, Any]:
    """Return a table's answer by study."""
    item = next(item for item in page.context["items"] if item["label"] == label)
    return {answer["study"]: answer for answer in item["parts"][part]["answers"]}


def cells(page: Page, label: str, part: int = 0) -> list[list[str]]:
    """Return a table of the paper's own study as texts."""
    return [list(map(str, row)) for row in answers(page, label, part)["published"]["rows"]]


@pytest.mark.parametrize(
    ("label", "part", "table"),
    [
        *((f"tab:{table}", 0, table) for table in ("c2", "c4", "c2_secondary", "probe")),
        ("tab:probe_extra", 0, "probe_outcome"),
        ("tab:probe_extra", 1, "probe_transition"),
        ("tab:probe_extra", 2, "probe_fractions"),
    ],
)
def test_tables_are_those_printed(page: Page, label: str, part: int, table: str) -> None:
    # Where scores are large, the unit of the traces stands in a column of its own.
    rows = [[cell for cell in row if cell != "100,000 score²"] for row in cells(page, label, part)]
    assert [[cell.replace("None", "--") for cell in row] for row in rows] == PRINTED[table]


@pytest.mark.parametrize(
    ("label", "table"), [("tab:finals", "finals"), ("tab:curves", "curves"), ("tab:groups", "groups")]
)
def test_tables_of_runs_are_those_printed(page: Page, label: str, table: str) -> None:
    printed = {}
    for name, *values in PRINTED[table]:
        condition, arm, seed = name.split()
        printed[condition, RUNS[arm], seed] = values
    found = {tuple(row[:3]): row[3:] for row in cells(page, label)}
    for place, values in printed.items():
        # The paper leaves out spurious rates where graders flip nothing.
        expected = ["0.000" if cell == "--" else cell for cell in values]
        assert found[place] == expected, place
    assert set(found) == set(printed)


@pytest.mark.parametrize("part", range(3))
def test_studies_curves_stand_over_the_same_range(page: Page, part: int) -> None:
    charts = [answer["chart"] for answer in answers(page, "fig:curves", part).values()]
    ranges = [re.findall(r'class="tick" text-anchor="end">([^<]+)<', chart.wide) for chart in charts]
    assert len(ranges) == 2
    assert ranges[0] == ranges[1]


def test_the_replication_is_that_printed(page: Page) -> None:
    assert [row[1:] for row in cells(page, "tab:crosshw")] == PRINTED["cross_stack"]


def test_every_numeric_table_of_the_paper_is_listed(paper: Paper) -> None:
    assert set(LABELS) <= {item.id for item in paper.items}


def test_no_table_of_one_study_holds_a_row_of_another(page: Page) -> None:
    found = answers(page, "tab:c2")
    assert found["published"]["rows"] != found["embedded"]["rows"]
    assert [study["name"] for study in page.context["studies"]] == ["published", "embedded"]


def test_a_study_that_never_ran_it_twice_says_so(page: Page) -> None:
    assert "no run of this study was made a second time" in answers(page, "tab:crosshw")["embedded"]["lacks"]
    assert "Not to be had for embedded : no run of this study was made a second time" in words(rendered(page))


def test_a_rule_that_a_study_does_not_register_is_named(page: Page) -> None:
    item = next(item for item in page.context["items"] if item["label"] == "tab:predictions")
    assert {o["study"]: o["lacks"] for o in item["outcomes"]} == {"published": [], "embedded": ["P12"]}


def test_a_missing_table_is_named(case: Case, paper: Paper) -> None:
    tables = {n: t for n, t in case.study.manifest.tables.items() if n != "groups_summary"}
    study = replace(case.study, manifest=replace(case.study.manifest, tables=tables))
    groups = replace(paper, items=tuple(item for item in paper.items if item.id == "tab:groups"))
    page = papers.page(Material((replace(case, study=study),)), groups)
    assert answers(page, "tab:groups")["published"]["lacks"] == "its registers have no table groups_summary"


def with_query(paper: Paper, query: str) -> Paper:
    item = next(item for item in paper.items if item.id == "tab:c2")
    return replace(paper, items=(replace(item, parts=(replace(item.parts[0], query=query, shared=()),)),))


@pytest.mark.parametrize(
    "query", ["SELECT nothing FROM evaluations", "COPY runs TO 'x'", "SELECT * FROM 'x.csv'"]
)
def test_a_query_that_is_refused_stops_the_build(case: Case, paper: Paper, query: str) -> None:
    with pytest.raises(DamagedError, match="query of the paper's list is refused"):
        papers.page(Material((case,)), with_query(paper, query))


def test_a_study_at_other_steps_is_not_asked(case: Case, paper: Paper) -> None:
    page = papers.page(Material((case,)), replace(paper, study="another"))
    assert page.context["studies"] == []


def test_a_study_that_lacks_columns_is_told_apart_from_the_papers_own(case: Case, paper: Paper) -> None:
    other = replace(
        with_query(paper, "SELECT nothing FROM evaluations"), study="another", beside=("published",)
    )
    page = papers.page(Material((case,)), other)
    assert "lack columns" in answers(page, "tab:c2")["published"]["lacks"]


def test_hostile_words_are_shown_as_text(case: Case, paper: Paper) -> None:
    hostile = "<script>alert(1)</script>"
    made = replace(with_query(paper, f"SELECT '{hostile}' AS \"{hostile}\""), title=hostile)
    page = papers.page(Material((case,)), made)
    text = rendered(page)
    assert hostile not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4


def test_a_project_without_a_paper_has_no_page(case: Case, tmp_path: Path) -> None:
    assert read_paper(tmp_path) is None
    assert list(papers.pages(Material((case,), cards=tmp_path))) == []


HEAD = 'title = "t"\nabout = "a"\nstudy = "s"\n'


ITEM = '[[item]]\nid = "x"\ntitle = "t"\nkind = "table"\ncaption = "c"\n'
PART = '[[item.part]]\nneeds = ["runs"]\nquery = "SELECT 1"\n'
WRONG = {
    "title = ": "Invalid value",
    'title = "t"': "missing required field",
    HEAD + ITEM.replace("table", "poem"): "Invalid enum value 'poem'",
    HEAD + ITEM + PART.replace('query = "SELECT 1"', ""): "missing required field `query`",
    HEAD + ITEM + PART.replace('"runs"', ""): "length >= 1",
    HEAD + ITEM + PART + 'with = ["gone"]': "no part of a query is called gone",
    HEAD + 'item = "x"\n': "Expected `array`",
    HEAD + 2 * ITEM: "named twice",
    HEAD + ITEM + 'asks = "x"': "unknown field `asks`",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_malformed_list_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "paper.toml").write_text(text, encoding="utf-8")
    with pytest.raises(DamagedError, match="cannot be read") as refused:
        read_paper(tmp_path)
    assert WRONG[text] in str(refused.value)
