"""A rule's page: its words and formulas, and a line each where it reads many endpoints."""

import re
from collections import Counter
from xml.etree.ElementTree import Element

import pytest

from tests.conftest import CHECKOUT
from tests.unit.decisions.study import amendment
from tests.unit.decisions.study import rule as small_rule
from tests.unit.site.reading import Read, made_by, numbers, table, text, tree
from toolkit.decisions.case import Case
from toolkit.decisions.engine import Engine
from toolkit.places import Home
from toolkit.registers.study import open_study
from toolkit.rules.rulebook import load_rulebook
from toolkit.rules.terms import Terms
from toolkit.site.checking import LARGEST_PAGE, Markup
from toolkit.site.environment import environment
from toolkit.site.material import Material
from toolkit.site.pages import rule
from toolkit.site.pages.rule import formula, glossary
from toolkit.structs import replace

H2A = "published/H2a.html"


def lines_of(case: Case, name: str, monkeypatch: pytest.MonkeyPatch, most: int) -> list[dict[str, Element]]:
    """Return the lines of a rule's page as if more endpoints than these were too many."""
    monkeypatch.setattr(rule, "MOST_ENDPOINTS", most)
    monkeypatch.setattr(rule, "rule_charts", lambda *_: ())
    pages = made_by(Material((case,)), rule)
    return table(tree(pages[name], pages), "Endpoints")


def test_a_line_has_its_mean_and_the_counts_of_its_rows(case: Case, monkeypatch) -> None:
    lines = lines_of(case, H2A, monkeypatch, 0)
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
    many = {d.rule for d in case.decide_all() if len(d.endpoints) > 2}
    assert {"H1a", "H1b", "gate2"} <= many
    for line in lines_of(case, "published/gate2.html", monkeypatch, 2):
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


def test_a_page_shows_tests_of_significance_and_what_a_margin_tests(case: Case, monkeypatch) -> None:
    monkeypatch.setattr(rule, "rule_charts", lambda *_: ())
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


def told(case: Case, name: str) -> dict[str, str]:
    [decision] = [d for d in case.decide_all() if d.rule == name]
    return glossary(case, decision)


def test_the_words_of_a_learning_rule_are_those_of_its_endpoint(case: Case) -> None:
    words = told(case, "H2a")
    assert list(words)[:4] == ["AUC", "condition C2", "arm paired", "arm independent"]
    assert words["AUC"].endswith("steps 0, 20, 40, 60, 80, 100")
    assert words["condition C2"] == "runs that train under: tool faults at p = 0.25, default mixture"
    assert "default mixture at p = 0.25" in words["regime faults_p025"]
    assert words["tier"].endswith("tier 1")
    assert "10000 resamples" in words["95% interval"]


def test_a_rule_of_luck_explains_luck(case: Case) -> None:
    assert "luck share" in told(case, "H1a")
    assert "luck share" not in told(case, "H2a")


def test_a_rule_of_the_probe_explains_its_estimators_in_the_schemas_words(case: Case) -> None:
    words = told(case, "H1b")
    assert words["estimator (MC)"].startswith("MC: mean-centred advantages.")
    assert "grader flips" in words["noise (outcome, transition)"]


def test_arms_and_regimes_of_a_studys_own_are_not_given_the_toolkits_meaning(case: Case) -> None:
    own = Terms({"arm": ("paired", "independent"), "regime": ("faults_p025",)})
    words = told(replace(case, book=replace(case.book, terms=own)), "H2a")
    assert words["arm paired"] == "one of the arms of this study: paired, independent"
    assert words["regime faults_p025"] == "noise of the evaluation, in this study's own words"


def test_hostile_words_are_text_and_cut(case: Case) -> None:
    hostile = '<script>alert("x")</script>' + "z" * 5000
    cells = tuple(replace(cell, noise=hostile) for cell in case.book.plan.cells)
    [decision] = [d for d in case.decide_all() if d.rule == "H2a"]
    forged = replace(case, book=replace(case.book, plan=replace(case.book.plan, cells=cells)))
    text = environment().get_template("glossary.html").render(terms=glossary(forged, decision))
    assert "<script" not in text
    assert len(text) < 4000
    assert '<script>alert("x")</script>' in Read(text).text


RULES = (CHECKOUT / "prereg" / "embedded" / "rules.toml").read_text(encoding="utf-8")
BOOK = load_rulebook(RULES, [])


@pytest.mark.parametrize(
    ("endpoint", "parts"),
    [
        (
            "c2_auc",
            [
                "successes / episodes",
                "averaged over steps 0, 20, 40, 60, 80, 100 by the trapezoidal rule (AUC)",
                "C2 paired minus independent, seeds 0, 1, 2 one by one",
                "phase periodic, pool validation, regime faults_p025, 64 tasks × 2 schedules.",
            ],
        ),
        (
            "c2_challenge",
            [
                "successes / episodes",
                "averaged over steps 40, 60, 80",
                "C2 paired minus independent, seeds 0, 1, 2 one by one",
                "phase periodic, pool validation, regime challenge, 64 tasks × 1 schedule.",
            ],
        ),
        (
            "c4_spurious_paired",
            ["spurious / all_correct", "counts of C4 paired added up over seeds 0, 1, 2, then divided."],
        ),
        (
            "c2_luck_share_start",
            [
                "luck_share",
                "at step 0",
                "each run of C2, paired and independent, seeds 0, 1, 2",
                "pool diagnostic, regime faults_p025, target observed_reward.",
            ],
        ),
    ],
)
def test_a_formula_says_what_is_read_and_how(endpoint: str, parts: list[str]) -> None:
    assert formula(BOOK.endpoints[endpoint]) == "; ".join(parts)


def test_a_formula_names_many_seeds_by_their_ends_and_a_threshold_by_its_number() -> None:
    assert "seeds 100 to 119 (20) one by one" in formula(BOOK.endpoints["c2_curve"])
    assert "reaches 0.617, interpolated" in formula(BOOK.endpoints["c2_steps_paired"])


def test_every_declared_endpoint_has_a_formula() -> None:
    assert all(formula(endpoint).endswith(".") for endpoint in BOOK.endpoints.values())
