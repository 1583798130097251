"""The notebook goes from the register to a figure of the paper, with the numbers that the paper prints."""

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from fractions import Fraction
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.golden.test_paper_tables import NAMES, STEPS, TABLES, printed_as
from tests.notebook import cells, run_cells

NOTEBOOK = CHECKOUT / "examples/notebook/learning_curves.ipynb"


@pytest.fixture(scope="module")
def ran() -> tuple[dict[str, Any], dict[int, Any], str]:
    said = io.StringIO()
    with redirect_stdout(said):
        names, shown = run_cells(NOTEBOOK)
    return names, shown, said.getvalue()


def test_ten_cells_lead_to_the_figure(ran: tuple[dict[str, Any], dict[int, Any], str]) -> None:
    assert len(cells(NOTEBOOK)) == 10
    assert list(ran[1]) == [2, 3, 4, 5, 6, 8, 9, 10]  # the first is prose, the seventh prints
    assert ran[1][10] is ran[0]["figure"]


def curves(figure: Any) -> Iterator[tuple[str, str, str, int, list[float]]]:
    """Yield panel, condition, arm, seed and values of every line of the figure, as it draws them."""
    document = figure.to_dict()
    (data,) = document["datasets"].values()
    for key in sorted({(row["panel"], row["condition"], row["arm"], row["seed"]) for row in data}):
        rows = [row for row in data if (row["panel"], row["condition"], row["arm"], row["seed"]) == key]
        assert tuple(row["step"] for row in rows) == STEPS
        yield *key, [row["success"] for row in rows]


def test_the_figures_lines_are_those_of_the_papers_table(ran) -> None:
    drawn = {
        (condition, arm, seed): values
        for panel, condition, arm, seed, values in curves(ran[0]["figure"])
        if panel != "C2, challenge"
    }
    printed = {}
    for run, _, *values in TABLES["curves"]:
        condition, arm, seed = run.split()
        printed[condition, NAMES.get(arm, arm), int(seed)] = values[: len(STEPS)]
    assert drawn.keys() == printed.keys()
    for drawn_run, rates in drawn.items():
        cells_of_run = zip(rates, printed[drawn_run], strict=True)
        assert all(printed_as(100 * rate, cell) for rate, cell in cells_of_run), drawn_run


def test_the_challenge_panel_gives_the_papers_early_differences(ran) -> None:
    early = {
        (arm, seed): sum(values[2:5]) / 3
        for panel, _, arm, seed, values in curves(ran[0]["figure"])
        if panel == "C2, challenge"
    }
    for seed, difference, *_ in TABLES["c2_secondary"]:
        if seed != "mean":
            found = 100 * (early["paired", int(seed)] - early["independent", int(seed)])
            assert printed_as(found, difference)


def test_the_estimate_from_counts_is_the_decisions(ran: tuple[dict[str, Any], dict[int, Any], str]) -> None:
    names, _, said = ran
    assert names["mean"] == names["decision"].estimate.mean == Fraction(71, 1920)
    assert "mean 71/1920 = 0.03698" in said
    # Half the width of a t interval over three values: 4.30265 standard errors.
    by_seed = [float(each) for each in names["differences"]]
    centre = sum(by_seed) / 3
    error = (sum((each - centre) ** 2 for each in by_seed) / 2 / 3) ** 0.5
    assert names["high"] - names["low"] == pytest.approx(2 * 4.302653 * error, rel=1e-6)
