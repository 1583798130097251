"""A rule that reads many endpoints: a line each, with counts of the registers and where the rows are."""

import re
from collections import Counter
from dataclasses import replace
from xml.etree.ElementTree import Element

import pytest

from tests.conftest import CHECKOUT
from tests.unit.decisions.study import amendment
from tests.unit.decisions.study import rule as small_rule
from tests.unit.site.reading import made_by, numbers, table, text, tree
from toolkit.decisions.case import Case
from toolkit.decisions.engine import Engine
from toolkit.places import Home
from toolkit.registers.study import open_study
from toolkit.rules.rulebook import load_rulebook
from toolkit.site.checking import LARGEST_PAGE
from toolkit.site.links import Markup
from toolkit.site.material import Material
from toolkit.site.pages import rule

H2A = "published/H2a.html"


@pytest.fixture
def lines(case: Case, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Element]]:
    """Return the lines of a rule's page as if one endpoint were too many."""
    monkeypatch.setattr(rule, "MOST_ENDPOINTS", 0)
    pages = made_by(Material((case,)), rule)
    return table(tree(pages[H2A], pages), "Endpoints")


def test_a_line_has_its_mean_and_the_counts_of_its_rows(case: Case, lines: list[dict[str, Element]]) -> None:
    endpoint = case.book.endpoints["c2_auc"]
    runs = {
        row["run_id"]
        for row in case.study.rows("runs")
        if (row["condition"], row["role"] != "replication") == ("C2", True)
        and row["arm"] in endpoint.arms
        and row["seed"] in endpoint.seeds
    }
    read = [
        row
        for row in case.study.rows("evaluations")
        if row["run_id"] in runs and (row["phase"], row["regime"]) == ("periodic", "faults_p025")
    ]
    (line,) = (line for line in lines if text(line["Condition"]).endswith(endpoint.title))
    assert len(lines) == len(case.decide("H2a").endpoints)
    counted = [sum(row["successes"] for row in read), sum(row["episodes"] for row in read)]
    assert numbers(text(line["Counts"])) == counted
    assert "successes of" in text(line["Counts"])
    assert numbers(text(line["Rows"])) == [len(read)] == [36]
    assert numbers(text(line["Seeds"])) == [3]
    assert numbers(text(line["Mean"])) == [pytest.approx(case.decide("H2a").as_dict()["estimate"]["mean"])]
    assert text(line["Arm"]) == "paired, independent"
    assert "toolkit sql" in text(line["Query"])


def test_a_rule_that_lists_the_rows_is_named(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "MOST_ENDPOINTS", 2)
    pages = made_by(Material((case,)), rule)
    many = {d.rule for d in case.decide_all() if len(d.endpoints) > 2}
    assert {"H1a", "H1b", "gate2"} <= many
    for line in table(tree(pages["published/gate2.html"], pages), "Endpoints"):
        links = {link.get("href", "") for link in line["Listed"].iter("a")}
        listing = {link.partition("#")[0].rpartition("/")[2][:-5] for link in links if link.endswith("#rows")}
        assert not listing & many
        if text(line["Condition"]).startswith("C2 C2 AUC on noisy validation"):
            assert {"H2a", "P4"} <= listing


FLIP = """
[tests.flip]
endpoint = "c2_auc"
method = "sign flip"
over = "seeds"
alternative = "two-sided"

[intervals.c2_90]
endpoint = "c2_auc"
level = "0.90"
method = "t over seeds"
"""


def test_a_page_shows_tests_of_significance_and_what_a_margin_tests(case: Case) -> None:
    added = amendment("A9", 'adds = ["S"]', FLIP, small_rule("S", "p(flip) <= 0.5", "equivalent(c2_90, 0.3)"))
    book = load_rulebook(case.registration.rules, [*(a.rules for a in case.registration.amendments), added])
    book = replace(book, changes=case.book.changes)  # no amendment of the registration adds it
    registered = (case.registration.name, case.registration.sha256)
    made = replace(case, book=book, engine=Engine(book, registered, case.engine.registers), _decided={})
    pages = made_by(Material((made,)), rule)
    shown = " ".join(text(tree(pages["published/S.html"], pages)).split())
    # Of three seeds' differences the smallest is below zero: four of the eight sums lie as far from zero.
    said = (
        "p = 0.5 (sign-flip test over seeds, exact over all signs, two-sided; 3 seeds, 3 with a difference)"
    )
    assert said in shown
    assert "two one-sided tests (TOST) at 5% each" in shown


@pytest.mark.parametrize("name", ["regression", "ranks"])
def test_the_maps_large_rules_show_every_arm_of_every_cell(home: Home, name: str) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for row in open_study(home.study_folder("map")).rows("evaluations"):
        counts[row["condition"], row["arm"]] += row["successes"]
    page = (CHECKOUT / "site" / "map" / f"{name}.html").read_text(encoding="utf-8")
    assert len(page.encode()) < LARGEST_PAGE
    rows = page.partition('aria-label="Endpoints"')[2].partition("</table>")[0]
    told = [line for line in rows.split("<tr>") if "successes of" in line]
    cells = {cell for cell, arm in counts} - {"faults-b3"}  # that one is for equal variance alone
    assert len(told) == 2 * len(cells) == 40
    for (cell, arm), successes in counts.items():
        if cell in cells:
            (line,) = (
                re.sub(r"</?span[^>]*>", "", line)
                for line in told
                if f'<th scope="row">{cell} ' in line and f"<td>{arm}<td" in line
            )
            assert f"{successes:,} successes of" in line
            assert "toolkit sql" in line
    targets = {reference.target for reference in Markup(page).references}
    assert {"../map/slower_faults_b1.html#rows", "#faults_b24_paired-seed-0"} & targets
