"""A rule's page: its words and formulas, and a line each where it reads many endpoints."""

import pytest

from tests.conftest import CHECKOUT
from tests.unit.decisions.study import amendment
from tests.unit.decisions.study import rule as small_rule
from tests.unit.site.reading import Read, near, numbers, one, page_of, table, text, tree
from toolkit.decisions.case import Case
from toolkit.decisions.engine import Engine
from toolkit.rules.rulebook import load_rulebook
from toolkit.rules.terms import Terms
from toolkit.site.environment import environment
from toolkit.site.material import Material
from toolkit.site.pages import rule
from toolkit.site.pages.rule import formula, glossary
from toolkit.structs import replace


def test_a_line_has_its_mean_and_the_counts_of_its_rows(case: Case, monkeypatch) -> None:
    monkeypatch.setattr(rule, "MOST_ENDPOINTS", 0)  # as if all were too many
    lines = table(tree(*one(Material((case,)), "published/H2a.html")), "Endpoints")
    endpoint = case.book.endpoints["c2_auc"]
    runs = {
        row["run_id"]
        for row in case.study.rows("runs")
        if row["condition"] == "C2" and row["role"] != "replication" and row["seed"] in endpoint.seeds
    }
    where = {"phase": "periodic", "regime": "faults_p025"}.items()
    read = [r for r in case.study.rows("evaluations") if r["run_id"] in runs and where <= r.items()]
    (line,) = (line for line in lines if text(line["Condition"]).endswith(endpoint.title))
    assert len(lines) == len(case.decide("H2a").endpoints_read)
    counted = [sum(row["successes"] for row in read), sum(row["episodes"] for row in read)]
    assert numbers(text(line["Counts"])) == counted
    assert "successes of" in text(line["Counts"])
    assert numbers(text(line["Rows"])) == [len(read)] == [36]
    assert numbers(text(line["Seeds"])) == [3]
    assert numbers(text(line["Mean"])) == [near(float(case.decide("H2a").estimate.mean), 5)]
    assert text(line["Arm"]) == "paired, independent"
    assert "toolkit sql" in text(line["Query"])


def test_a_rule_that_lists_the_rows_is_named(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "MOST_ENDPOINTS", 2)
    many = {d.rule for d in case.decide_all() if len(d.endpoints_read) > 2}
    assert {"H1a", "H1b", "gate2"} <= many
    for name in case.decide("gate2").endpoints_read:
        assert not set(rule.listing(case, case.book.endpoints[name])) & many
    assert {"H2a", "P4"} <= set(rule.listing(case, case.book.endpoints["c2_auc"]))


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
    shown = page_of(Material((made,)), "published/S.html").text
    # Of three seeds' differences the smallest is below zero: four of the eight sums lie as far from zero.
    said = "sign-flip test over seeds, exact over all signs, two-sided; 3 seeds, 3 with a difference"
    assert f"p = 0.5 ({said})" in shown
    assert "two one-sided tests (TOST) at 5% each" in shown


def told(case: Case, name: str) -> dict[str, str]:
    return glossary(case, case.decide(name))


@pytest.mark.parametrize(
    ("of", "word", "meaning"),
    [
        ("H2a", "AUC", "steps 0, 20, 40, 60, 80, 100"),
        ("H2a", "condition C2", "runs that train under: tool faults at p = 0.25, default mixture"),
        ("H2a", "regime faults_p025", "default mixture at p = 0.25"),
        ("H2a", "tier", "tier 1"),
        ("H2a", "95% interval", "10000 resamples"),
        ("H2a", "luck share", None),
        ("H1a", "luck share", "reward"),
        ("H1b", "estimator (MC)", "MC: mean-centred advantages."),
        ("H1b", "noise (outcome, transition)", "grader flips"),
    ],
)
def test_the_words_of_a_rule_are_explained(case: Case, of: str, word: str, meaning: str | None) -> None:
    assert (word in told(case, of)) == (meaning is not None)
    assert (meaning or "") in told(case, of).get(word, "")


def test_arms_and_regimes_of_a_studys_own_are_not_given_the_toolkits_meaning(case: Case) -> None:
    assert list(told(case, "H2a"))[:4] == ["AUC", "condition C2", "arm paired", "arm independent"]
    own = Terms({"arm": ("paired", "independent"), "regime": ("faults_p025",)})
    words = told(replace(case, book=replace(case.book, terms=own)), "H2a")
    assert words["arm paired"] == "one of the arms of this study: paired, independent"
    assert words["regime faults_p025"] == "noise of the evaluation, in this study's own words"


def test_hostile_words_are_text_and_cut(case: Case) -> None:
    hostile = '<script>alert("x")</script>' + "z" * 5000
    cells = tuple(replace(cell, noise=hostile) for cell in case.book.plan.cells)
    forged = replace(case, book=replace(case.book, plan=replace(case.book.plan, cells=cells)))
    terms = glossary(forged, case.decide("H2a"))
    text = environment().get_template("glossary.html").render(terms=terms)
    assert "<script" not in text
    assert len(text) < 4000
    assert '<script>alert("x")</script>' in Read(text).text


BOOK = load_rulebook((CHECKOUT / "prereg" / "embedded" / "rules.toml").read_text(encoding="utf-8"), [])


FORMULAS = """
c2_auc: successes / episodes; averaged over steps 0, 20, 40, 60, 80, 100 by the trapezoidal rule (AUC); \
C2 paired minus independent, seeds 0, 1, 2 one by one; \
phase periodic, pool validation, regime faults_p025, 64 tasks × 2 schedules.
c2_challenge: successes / episodes; averaged over steps 40, 60, 80; \
C2 paired minus independent, seeds 0, 1, 2 one by one; \
phase periodic, pool validation, regime challenge, 64 tasks × 1 schedule.
c4_spurious_paired: spurious / all_correct; counts of C4 paired added up over seeds 0, 1, 2, then divided.
c2_luck_share_start: luck_share; at step 0; each run of C2, paired and independent, seeds 0, 1, 2; \
pool diagnostic, regime faults_p025, target observed_reward.
"""


@pytest.mark.parametrize(("endpoint", "said"), [line.split(": ") for line in FORMULAS.strip().splitlines()])
def test_a_formula_says_what_is_read_and_how(endpoint: str, said: str) -> None:
    assert formula(BOOK.endpoints[endpoint]) == said


def test_a_formula_names_many_seeds_by_their_ends_and_a_threshold_by_its_number() -> None:
    assert "seeds 100 to 119 (20) one by one" in formula(BOOK.endpoints["c2_curve"])
    assert "reaches 0.617, interpolated" in formula(BOOK.endpoints["c2_steps_paired"])
    assert all(formula(endpoint).endswith(".") for endpoint in BOOK.endpoints.values())
