"""Registrations that could never be decided are refused before they are frozen; those that can be are not."""

import pytest

from tests.conftest import CHECKOUT
from tests.unit.decisions.study import rule
from toolkit.errors import RuleError
from toolkit.rules.rulebook import load_rulebook
from toolkit.verification.decidable import check_decidable

HERE = (CHECKOUT / "tests/fixtures/rules/here.toml").read_text(encoding="utf-8")


def test_of_some_rules_what_they_read_is_checked_and_nothing_else() -> None:
    """A registration that was frozen with something undecidable can still be amended."""
    other = rule("J", "mean(gap) > 0.02")
    book = load_rulebook(HERE.replace("c2-paired-s0@20", "c2-paired-s0@40") + other)
    check_decidable(book, {"J"})
    with pytest.raises(RuleError, match="trace"):
        check_decidable(book, {"J", "H"})


LARGE = ("coupled", "embedded", "map")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LARGE else ())
        for name in sorted(path.parent.name for path in (CHECKOUT / "prereg").glob("*/rules.toml"))
    ],
)
def test_every_shipped_registration_can_be_decided(name: str) -> None:
    check_decidable(load_rulebook((CHECKOUT / "prereg" / name / "rules.toml").read_text(encoding="utf-8")))
