"""The page of the theory: the paper's figures, for studies of two designs; and what its sliders show."""

from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.unit.site.node import in_node
from tests.unit.site.reading import numbers, section, table, text, tree
from toolkit.decisions.case import Case
from toolkit.site.exhibits import theory
from toolkit.site.material import Material
from toolkit.structs import replace


def test_a_home_without_runs_has_no_page() -> None:
    assert list(theory.pages(Material(()))) == []


def test_a_study_in_other_words_than_paired_and_independent_has_no_page(case: Case) -> None:
    assert [page.name for page in theory.pages(Material((case,)))] == ["theory.html"]
    words = replace(case.study.manifest, words={"arm": ("greedy", "careful")})
    foreign = replace(case, study=replace(case.study, manifest=words))
    assert list(theory.pages(Material((foreign,)))) == []


def test_the_theory_page_shows_what_the_definitions_give(case: Case) -> None:
    (page,) = theory.pages(Material((case,)))
    rows = {}
    for row in table(tree(page), "The bandit at the paper's settings"):
        rows[text(row["Quantity"])] = [numbers(text(row[name]))[0] for name in ("independent", "paired")]
    # A reward is 1 where a success of probability 1/2 was not flipped, with probability 9/10: its variance is
    # 0.45 x 0.55, twice of which is the contrast's; under one flip for both, only the policies differ.
    assert rows["Variance of a reward contrast"] == [0.495, 0.45]
    assert f"is {1 - 0.9**8 - 0.1**8:.3f} at q = 0.1 and G = 8" in text(section(tree(page), "spurious"))


SCRIPT = CHECKOUT / "toolkit" / "site" / "exhibits" / "assets" / "theory.js"
GRID = [
    (logit, size, rate)
    for logit in (-4.0, -1.5, 0.0, 0.1, 4.0)
    for size in (2, 3, 8, 32)
    for rate in (0.0, 0.01, 0.1, 0.5)
]


@pytest.fixture(scope="module")
def in_browser() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = in_node(
        "const { bandit, spurious } = toolkitTheory;"
        "return given.map((at) => ({...bandit(...at), spurious: spurious(at[2], at[1])}))",
        GRID,
        SCRIPT,
    )
    return found


def _flat(document: dict[str, Any], above: str = "") -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, value in document.items():
        flat |= _flat(value, f"{above}{name} ") if isinstance(value, dict) else {above + name: value}
    return flat


def test_the_bandit_is_the_one_of_the_command_over_a_grid(toolkit, in_browser) -> None:
    for (logit, size, rate), found in zip(GRID, in_browser, strict=True):
        settings = ("--logit", logit, "--group-size", size, "--flip-rate", rate)
        expected = _flat(toolkit("theory", "bandit", *settings, "--json").json())
        assert {name: _flat(found)[name] for name in expected} == pytest.approx(expected, rel=1e-9, abs=1e-13)


def test_the_spurious_rate_is_the_one_of_the_command(toolkit, in_browser) -> None:
    for (_, size, rate), found in zip(GRID, in_browser, strict=True):
        settings = ("--flip-rate", rate, "--group-size", size)
        expected = toolkit("theory", "spurious", *settings, "--json").json()["independent"]
        assert found["spurious"] == pytest.approx(expected, rel=1e-12, abs=1e-15)
