"""What a rule's drawings are made of: its values, and the intervals that the study holds for them."""

import csv
import html
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tests.unit.site.conftest import opened
from tests.unit.site.reading import made_by
from toolkit.decisions.case import Case
from toolkit.lab.probing.figures import report
from toolkit.registers.query import ask
from toolkit.rules.sections import Formula
from toolkit.rules.values import Series
from toolkit.site.charts.svg import Chart
from toolkit.site.drawings import comparisons, estimate_of, measure, rule_charts
from toolkit.site.material import Material
from toolkit.site.pages import luck, probe, run
from toolkit.structs import replace


def charts(case: Case, rule: str) -> list[Chart]:
    figures = [row for rows in report(case.study).figures.values() for row in rows]
    return rule_charts(case, case.decide(rule), figures)


def test_a_probe_ratio_has_the_interval_that_the_study_holds_or_says_why_it_has_none(embedded: Case) -> None:
    figures = [row for rows in report(embedded.study).figures.values() for row in rows]
    where = ("outcome", "MC", "trace_ratio", "c2-paired-s2", "all", 100)
    columns = ("noise", "estimator", "figure", "trajectory", "scored", "step")
    ((low, high),) = ((r["low"], r["high"]) for r in figures if tuple(r[name] for name in columns) == where)
    drawn = rule_charts(embedded, embedded.decide("H1b"), figures)
    assert any(f"c2-paired-s2@100: 0.603 [{low:.3f}, {high:.3f}]" in chart.svg for chart in drawn)
    caption = "95% intervals computed from the probe's evidence, tasks resampled"
    assert all(caption in chart.caption for chart in drawn)
    without = [row | dict.fromkeys(("low", "high")) for row in figures]
    drawn = rule_charts(embedded, embedded.decide("H1b"), without)
    assert any('c2-paired-s2@100: 0.603"' in chart.svg for chart in drawn)
    assert all("some resample of these tasks does not define the figure" in chart.caption for chart in drawn)


def test_luck_shares_have_the_intervals_that_were_published(case: Case) -> None:
    (shares,) = charts(case, "H1a")  # their lower ends are the same bars, and are not drawn a second time
    query = "SELECT interval_low, interval_high FROM luck_share_summary WHERE run_id = 't1-c2-paired-s1'"
    ((low, high),) = ask(case.study, query + " AND step = 0").rows
    assert f"t1-c2-paired-s1: 0.380 [{float(low):.3f}, {float(high):.3f}]" in shares.svg
    assert "as published, tasks resampled" in shares.caption


def test_a_row_of_the_forest_is_the_decision(case: Case) -> None:
    row = estimate_of(case, case.decide("H5"))
    # Paper, table of outcomes: a 90% interval from -0.4 to +5.2 points, against a margin of 3.
    assert row.bar is not None
    assert row.bar.words == "90% interval [\N{MINUS SIGN}0.0037, +0.0525]"
    assert (row.verdict, float(row.threshold or 0)) == ("pass", -0.03)
    assert (row.bounds, row.says) == ((Fraction(-3, 100),), "above -0.03")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("E4", "90% interval inside ±0.01"),
        ("E1", "95% interval not above zero"),
        ("H5", "90% interval above -0.03"),
        ("H2a", "95% interval includes zero"),
    ],
)
def test_an_interval_is_told_against_what_the_rule_compares_it_with(embedded, rule, said) -> None:
    assert charts(embedded, rule)[0].title.endswith(said)


def test_later_checkpoints_are_drawn_against_the_first_where_the_rule_asks_for_that(embedded: Case) -> None:
    # P13 asks for outcome ratios that fall from the base's, and for transition ratios below one.
    outcome, *_, transition = charts(embedded, "P13")
    assert "the last checkpoint is below the first (base@0, 0.737)" in outcome.title.lower()
    assert "Dotted line: base@0, the first, 0.737" in outcome.caption
    assert "first" not in transition.title
    assert "Dotted" not in transition.caption


def test_an_axis_speaks_the_words_of_the_register(case: Case) -> None:
    assert measure(case.book.endpoints["c2_auc"]) == "successes / episodes"
    assert measure(case.book.endpoints["c4_spurious_paired"]) == "spurious / all correct"


def test_members_are_compared_with_the_number_that_a_test_names_and_its_sign(embedded: Case) -> None:
    rule = embedded.book.rules["H1b"]
    criterion = replace(rule.criteria[0], test=Formula.decoded("each(x > -0.25)"))
    series = Series("checkpoint", (("a", Fraction(-1, 2)), ("b", Fraction(0))))
    (compared,) = comparisons(replace(rule, criteria=(criterion,)), "x", series)
    assert (compared.sign, compared.bound, compared.held, compared.of) == (">", -0.25, 1, 2)


DRAWN: dict[str, tuple[Any, Callable[..., Chart], str]] = {
    "published/runs/t1-c2-paired-s1.html": (
        run,
        lambda context: context["chart_drawn"],
        """
        SELECT replace(regime, '_', ' ') || CASE phase WHEN 'periodic' THEN '' ELSE ', ' || phase END,
          step, successes, episodes FROM evaluations WHERE run_id = 't1-c2-paired-s1'""",
    ),
    "published/luck.html": (
        luck,
        lambda context: context["charts"][0],
        """
        SELECT run_id, arm, step, luck_share, interval_low::DOUBLE, interval_high::DOUBLE
        FROM luck_share_summary WHERE condition = 'C2'""",
    ),
    "embedded/probe.html": (
        probe,
        lambda context: context["charts"]["actions"][0],
        """
        SELECT trajectory, step, value, low, high FROM probe_intervals WHERE noise = 'outcome'
        AND estimator = 'MC' AND figure = 'condition_ratio' AND scored = 'actions'
        AND regexp_matches(trajectory, '^(base|c2-paired-s[0-2])$')""",
    ),
}


@pytest.mark.parametrize("page", DRAWN)
def test_the_rows_of_a_drawing_are_the_registers(page: str) -> None:
    case, (maker, chart_of, query) = opened(page.partition("/")[0]), DRAWN[page]
    chart = chart_of(made_by(Material((case,)), maker)[page].context)
    carried = "\n".join(map(html.unescape, re.findall(r'data-row="([^"]*)"', chart.wide)))
    expected = (["" if cell is None else str(cell) for cell in row] for row in ask(case.study, query).rows)
    assert sorted(csv.reader(carried.split("\n"))) == sorted(expected)
