"""Words and formulas on a rule's page say what the registration and the schema declare."""

from dataclasses import replace

import pytest

from tests.conftest import CHECKOUT
from tests.unit.site.reading import Read
from toolkit.decisions.case import Case
from toolkit.rules.rulebook import load_rulebook
from toolkit.rules.terms import Terms
from toolkit.site.environment import environment
from toolkit.site.glossary import formula, glossary


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


def test_many_seeds_are_named_by_their_ends() -> None:
    assert "seeds 100 to 119 (20) one by one" in formula(BOOK.endpoints["c2_curve"])


def test_a_threshold_is_said_with_its_number() -> None:
    assert "reaches 0.617, interpolated" in formula(BOOK.endpoints["c2_steps_paired"])


def test_every_declared_endpoint_has_a_formula() -> None:
    assert all(formula(endpoint).endswith(".") for endpoint in BOOK.endpoints.values())
