"""Figures of the published probe: the paper's tables, pure noise beside the shares, intervals of L/R."""

from typing import Any

import pytest

from tests.golden.test_paper_tables import TABLES
from tests.unit.lab.study.changed import Changed
from toolkit.lab.probing.figures import published_figures
from toolkit.registers.study import Study

Figures = dict[tuple[str, int, str, str, str], dict[str, Any]]

# L/R, outcome MC and SW, transition MC and SW, MC over stratified; then f_out and f_trans.
COLUMNS = (
    ("outcome", "MC", "condition_ratio"),
    ("outcome", "MC", "trace_ratio"),
    ("outcome", "SW", "trace_ratio"),
    ("transition", "MC", "trace_ratio"),
    ("transition", "SW", "trace_ratio"),
    ("transition", "MC", "trace_ratio_stratified"),
)
SHARES = (("outcome", "MC", "within_share_independent"), ("transition", "MC", "within_share_independent"))
NAMES = ("value", "low", "high", "standard_error", "corrected")


@pytest.fixture(scope="session")
def figures(published: Study) -> Figures:
    rows = published_figures(published)
    keyed = {(r["trajectory"], r["step"], r["noise"], r["estimator"], r["figure"]): r for r in rows}
    assert len(keyed) == len(rows)
    return keyed


@pytest.mark.parametrize(("table", "columns"), [("probe", COLUMNS), ("probe_fractions", SHARES)])
def test_figures_are_the_papers_to_every_printed_digit(figures, table, columns) -> None:
    for trajectory, step, *numbers in TABLES[table]:
        found = [f"{figures[trajectory, int(step), *column]['value']:.3f}" for column in columns]
        assert found == numbers[: len(columns)], (trajectory, step)
    assert len({key[:2] for key in figures}) == len(TABLES[table]) == 8


def test_shares_under_transition_noise_stand_beside_pure_noise(figures: Figures) -> None:
    """The published f_trans, 0.874 to 0.882, is what eight groups a task give where tasks do not differ."""
    beside = [
        row for key, row in figures.items() if key[2] == "transition" and key[4].startswith("within_share")
    ]
    assert len(beside) == 8 * 2 * 3
    assert {f"{row['pure_noise']:.3f}" for row in beside} == {"0.882"}
    assert all(row["debiased"] is not None for row in beside)


def test_debiased_shares_and_floors_follow_from_the_traces(published: Study, figures: Figures) -> None:
    """By hand: σ² = within/(1 - 1/8), τ² = between/(1 - 1/16) - σ²/8; 16 tasks' spread, over their number."""
    for row in published.rows("probe"):
        if row["noise"] != "transition":
            continue
        for design in ("paired", "independent", "stratified"):
            key = (row["trajectory"], row["step"], "transition", row["estimator"])
            between = row[f"trace_between_{design}"]
            noise = row[f"trace_within_{design}"] / (7 / 8)
            task = between / (15 / 16) - noise / 8
            share = figures[*key, f"within_share_{design}"]["debiased"]
            assert share == pytest.approx(noise / (noise + task), abs=1e-12)
            floor = figures[*key, f"norm_over_floor_{design}"]
            assert floor["value"] == pytest.approx(row[f"mean_norm_{design}"] ** 2 / (between / 16), rel=1e-5)
            assert floor["pure_noise"] == pytest.approx(16 / 15, rel=1e-5)


def test_only_l_over_r_can_be_resampled_and_its_interval_holds_it(figures: Figures) -> None:
    for key, row in figures.items():
        if key[4] == "condition_ratio":
            assert row["tasks"] == 64
            assert row["low"] < row["value"] < row["high"] < 1
            assert 0 < row["standard_error"] < row["high"] - row["low"]
        else:
            assert [row[name] for name in NAMES[1:]] == [None] * 4


def test_without_rows_by_task_there_is_no_condition(published: Study) -> None:
    rows = published_figures(Changed(published, {"probe_clean_tasks": None}))
    assert not [row for row in rows if row["figure"] == "condition_ratio"]
    assert {row["tasks"] for row in rows if row["noise"] == "outcome"} == {None}


def test_without_sizes_there_is_nothing_beside_the_shares(published: Study) -> None:
    rows = published_figures(Changed(published, {"probe_diagnostic_tasks": []}))
    shares = [row for row in rows if row["figure"].startswith("within_share")]
    assert len(shares) == 8 * 2 * 5
    assert all(row["pure_noise"] is None and row["debiased"] is None for row in shares)
    assert not [r for r in rows if r["figure"].startswith("norm_over_floor") and r["noise"] == "transition"]


def test_a_trace_of_zero_gives_no_ratio(published: Study) -> None:
    changed = [row | {"trace_independent": 0.0} for row in published.rows("probe")]
    rows = published_figures(Changed(published, {"probe": changed}))
    assert not [r for r in rows if r["figure"] in {"trace_ratio", "within_share_independent"}]
    assert [r for r in rows if r["figure"] == "trace_ratio_stratified"]
