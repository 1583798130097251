"""The formula beside a number says what the rules declare."""

import pytest

from tests.conftest import CHECKOUT
from toolkit.decisions.rulebook import load_rulebook
from toolkit.site.glossary import formula

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
