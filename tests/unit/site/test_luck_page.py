"""The page of luck: tables as they came out, counts beside theory, nothing missing shown as zero."""

import re
from dataclasses import replace

import pytest

from tests.unit.site.reading import rendered, words
from toolkit.decisions.case import Case
from toolkit.registers.query import ask
from toolkit.site.material import Material
from toolkit.site.page import Page
from toolkit.site.pages import luck


@pytest.fixture(scope="module")
def page(embedded: Case) -> Page:
    (made,) = luck.pages(Material((embedded,)))
    return made


def anova(table: list[list[bool]]) -> float:
    """One-way random effects by sums of squares."""
    k, m = len(table), len(table[0])
    means = [sum(row) / m for row in table]
    grand = sum(means) / k
    between = m * sum((mean - grand) ** 2 for mean in means) / (k - 1)
    within = sum((x - mean) ** 2 for row, mean in zip(table, means, strict=True) for x in row) / (k * (m - 1))
    luck_part = max(0.0, (between - within) / m)
    return luck_part / (luck_part + within)


def test_the_table_shown_is_that_of_the_luckiest_task(embedded: Case, page: Page) -> None:
    shown = page.context["example"]
    assert shown["run"] == "c2-paired-s0"  # the first that was registered
    rows = ask(
        embedded.study,
        f"SELECT task, observed_rewards FROM luck_share WHERE run_id = '{shown['run']}' AND step = 0 "
        "ORDER BY task, schedule",
    ).rows
    tables: dict[int, list[list[bool]]] = {}
    for task, rewards in rows:
        tables.setdefault(task, []).append(list(rewards))
    shares = {task: anova(table) for task, table in tables.items()}
    assert shown["task"] == max(shares, key=lambda task: shares[task])
    assert f"Luck share {max(shares.values()):.2f}" in shown["chart"].about
    sums = re.findall(r">(\d) of 8<", shown["chart"].wide)
    assert [int(shown_sum) for shown_sum in sums] == [sum(row) for row in tables[shown["task"]]]


def test_counts_stand_beside_what_theory_gives(page: Page) -> None:
    # 1 - 0.9^8 - 0.1^8, and 0 where all rollouts of a group share one flip.
    by_arm = {
        (arm["condition"], arm["arm"]): arm for arm in page.context["arms"] if arm["scaling"] == "group"
    }
    assert by_arm["C4", "independent"]["expected"] == pytest.approx(0.56953, abs=1e-5)
    assert by_arm["C4", "paired"]["expected"] == 0
    assert by_arm["C4", "blocking"]["expected"] is None


def test_counts_of_an_arm_are_those_of_its_runs_and_what_was_not_published_is_not_zero(case: Case) -> None:
    (page,) = luck.pages(Material((case,)))
    # Paper, section on the mechanism: 2,080 of 3,726 all-correct groups are spurious, and none of 3,989.
    counts = {
        (arm["condition"], arm["arm"], arm["role"]): (arm["spurious"], arm["all_correct"])
        for arm in page.context["arms"]
    }
    assert counts["C4", "independent", "primary"] == (2080, 3726)
    assert counts["C4", "paired", "primary"] == (0, 3989)
    row = next(arm for arm in page.context["arms"] if arm["condition"] == "C0")
    assert row["sharing_one_seed"] is None
    text = words(rendered(page))
    assert "not published" in text
    assert "only their summaries were published" in text


def test_a_study_without_luck_or_groups_has_no_page(case: Case) -> None:
    tables = {n: t for n, t in case.study.manifest.tables.items() if n not in (luck.SHARES, luck.GROUPS)}
    study = replace(case.study, manifest=replace(case.study.manifest, tables=tables))
    assert list(luck.pages(Material((replace(case, study=study),)))) == []


def test_an_interval_is_drawn_with_what_was_resampled(page: Page) -> None:
    for chart in page.context["charts"]:
        assert "95% intervals computed from the tables, tasks resampled" in chart.caption
