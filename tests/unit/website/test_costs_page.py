"""The page on costs: measured hours from registers, what follows, and nothing where nothing was measured."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.website.made import rendered, words
from toolkit.cli.costs import home_costs
from toolkit.prereg.registration import load_registration
from toolkit.study.plan.costing import count_costs, read_cost_list
from toolkit.training.plan import Range
from toolkit.website.charts.cost import Span, hours_by_gpus, measured_hours
from toolkit.website.material import Material
from toolkit.website.navigation import navigation
from toolkit.website.pages import costs as pages_of_costs
from toolkit.website.pages.costs import said

if TYPE_CHECKING:
    from toolkit.places import Home
    from toolkit.training.costs import Costs
    from toolkit.website.page import Page


@pytest.fixture(scope="module")
def found(home: Home) -> Costs:
    return home_costs(home)


@pytest.fixture(scope="module")
def page(found: Costs) -> Page:
    (made,) = pages_of_costs.pages(Material((), costs=found))
    return made


def test_the_lead_says_what_a_run_and_all_of_them_took(page: Page) -> None:
    text = words(rendered(page))
    assert "A run with Qwen/Qwen3.5-2B takes 15.5 (13.2 to 17.9) hours on one H100" in text
    assert "The 14 runs of tier 1 take 217 (190 to 241) GPU-hours together" in text


def test_every_measurement_stands_with_its_hardware_its_date_and_its_query(page: Page, found: Costs) -> None:
    text = words(rendered(page))
    for entry in found.measured:
        for part in (entry.title, entry.hardware, entry.date, " ".join(entry.query.split())):
            assert part in text, part


def test_a_dot_stands_for_every_measured_run_of_a_language_model(page: Page, published: Any) -> None:
    values = page.context["measured_chart"].document["data"]["values"]
    hours = sorted(round(row["wall_time_s"] / 3600, 3) for row in published.rows("runs"))
    assert sorted(value["hours"] for value in values) == hours


def test_one_gpu_does_not_hold_the_larger_policy(page: Page) -> None:
    text = words(rendered(page))
    assert "1 0 not evaluable a run needs 8 such GPUs" in text
    assert page.context["ratio"] == "36.9"


def test_assumed_speeds_are_called_assumptions(page: Page) -> None:
    text = words(rendered(page))
    before, _, after = text.partition("None of them was measured.")
    assert "assumptions to read the formula by" in before
    # 28,392 episodes of 6,144 tokens at 1,000 a second.
    assert f"1,000 {28_392 * 6_144 / 3_600_000:,.1f}" in after


def test_without_the_measured_study_the_page_says_not_evaluable(home: Home) -> None:
    listed = read_cost_list(home.cards)
    assert listed is not None
    registration = load_registration(home.registration_folder(listed.registration))
    (made,) = pages_of_costs.pages(Material((), costs=count_costs(listed, registration, {})))
    text = words(rendered(made))
    assert "How long the runs with Qwen/Qwen3.5-2B take: not evaluable" in text
    assert made.context["measured_chart"] is made.context["gpus_chart"] is None
    assert "at most 3.30 billion tokens" in text


def test_a_project_without_measurements_has_no_such_page(found: Costs) -> None:
    assert list(pages_of_costs.pages(Material(()))) == []
    assert "costs" in [e.section for e in navigation(Material((), costs=found), {"costs.html"})]
    assert "costs" not in [e.section for e in navigation(Material(()), {"data.html"})]


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (None, "not evaluable"),
        (Range(None, None, 3.0), "at most 3.0"),
        (Range(1.0, None, 1234.5), "1 to 1,234"),
        (Range(1.0, 2.0, 3.0), "2.0 (1.0 to 3.0)"),
    ],
)
def test_hours_are_said_as_far_as_they_are_known(hours: Range | None, text: str) -> None:
    assert said(hours) == text


def test_without_measured_runs_nothing_is_drawn() -> None:
    assert measured_hours((("H100", ()),)) is None
    assert hours_by_gpus((), 14) is None


def test_the_chart_names_the_least_hours_and_every_span() -> None:
    chart = hours_by_gpus((Span("m", 1, 190.0, 217.0, 241.0), Span("n", 8, 27.0, None, 160.0)), 14)
    assert chart is not None
    assert chart.title.endswith("27 to 160 hours at 8 GPUs")
    assert "m, 1 GPU: 190 to 241 hours; n, 8 GPUs: 27 to 160 hours" in chart.caption
    assert len(json.loads(chart.specification)["layer"]) == 2


def test_numbers_of_gpus_without_a_range_are_not_drawn(found: Costs) -> None:
    larger = found.policies[1]
    alone = replace(found, policies=(replace(found.policies[0], schedules=()), larger))
    (made,) = pages_of_costs.pages(Material((), costs=alone))
    rows = made.context["gpus_chart"].document["data"]["values"]
    assert [row["at"] for row in rows] == ["dense-70b, 8 GPUs", "dense-70b, 64 GPUs"]
