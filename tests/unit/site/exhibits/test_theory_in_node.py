"""The theory page's sliders show what `toolkit theory` computes, by formulas of their own."""

from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.unit.site.node import in_node

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


def test_the_papers_example_comes_out_as_printed(in_browser: list[dict[str, Any]]) -> None:
    """Paper app:bandit, to the digits that it prints."""
    found = in_browser[GRID.index((0.0, 8, 0.1))]
    printed = {
        "contrast_variance": (0.4950, 0.4500),
        "mean_centred trace": (0.002615, 0.005845),
        "mean_centred mean_norm": (0.1969, 0.1969),
        "standardized trace": (0.007053, 0.019724),
        "standardized mean_norm": (0.3918, 0.3905),
    }
    flat = _flat(found)
    for name, (independent, paired) in printed.items():
        digits = 6 if "trace" in name else 4
        assert round(flat[f"{name} independent"], digits) == independent
        assert round(flat[f"{name} paired"], digits) == paired
