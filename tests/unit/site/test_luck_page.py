"""The pages of luck and of the probe: figures of the registers, and nothing missing shown as zero."""

import re

import pytest

from tests.unit.site.reading import rendered, words
from toolkit.decisions.case import Case
from toolkit.estimators import luck_share
from toolkit.lab.probing.figures import report
from toolkit.registers.query import ask
from toolkit.site.material import Material
from toolkit.site.page import Page
from toolkit.site.pages import luck, probe
from toolkit.structs import replace


def without(case: Case, *tables: str) -> Case:
    """Return a case whose study lacks tables, by what their names begin with."""
    held = {n: entry for n, entry in case.study.manifest.tables.items() if not n.startswith(tables)}
    return replace(case, study=replace(case.study, manifest=replace(case.study.manifest, tables=held)))


@pytest.fixture(scope="module")
def page(embedded: Case) -> Page:
    (made,) = luck.pages(Material((embedded,)))
    return made


def test_the_table_shown_is_that_of_the_luckiest_task(embedded: Case, page: Page) -> None:
    shown = page.context["example"]
    assert shown["run"] == "c2-paired-s0"  # the first that was registered
    query = f"SELECT task, observed_rewards FROM luck_share WHERE run_id = '{shown['run']}' AND step = 0 "
    tables: dict[int, list[list[bool]]] = {}
    for task, rewards in ask(embedded.study, query + "ORDER BY task, schedule").rows:
        tables.setdefault(task, []).append(list(rewards))
    shares = {task: luck_share(table).share or 0.0 for task, table in tables.items()}
    assert shown["task"] == max(shares, key=lambda task: shares[task])
    assert f"Luck share {max(shares.values()):.2f}" in shown["chart"].about
    sums = [int(told) for told in re.findall(r">(\d) of 8<", shown["chart"].wide)]
    assert sums == [sum(row) for row in tables[shown["task"]]]
    for chart in page.context["charts"]:
        assert "95% intervals computed from the tables, tasks resampled" in chart.caption


def test_counts_stand_beside_what_theory_gives(page: Page) -> None:
    # 1 - 0.9^8 - 0.1^8, and 0 where all rollouts of a group share one flip.
    arms = [a for a in page.context["arms"] if (a["condition"], a["scaling"]) == ("C4", "group")]
    expected = {arm["arm"]: arm["expected"] for arm in arms}
    wanted = {"independent": pytest.approx(0.56953, abs=1e-5), "paired": 0, "blocking": None}
    assert {name: expected[name] for name in wanted} == wanted


def test_counts_of_an_arm_are_those_of_its_runs_and_what_was_not_published_is_not_zero(case: Case) -> None:
    (page,) = luck.pages(Material((case,)))
    # Paper, section on the mechanism: 2,080 of 3,726 all-correct groups are spurious, and none of 3,989.
    arms = [a for a in page.context["arms"] if (a["condition"], a["role"]) == ("C4", "primary")]
    counts = {arm["arm"]: (arm["spurious"], arm["all_correct"]) for arm in arms}
    assert (counts["independent"], counts["paired"]) == ((2080, 3726), (0, 3989))
    row = next(arm for arm in page.context["arms"] if arm["condition"] == "C0")
    assert row["sharing_one_seed"] is None
    text = words(rendered(page))
    assert "not published" in text
    assert "only their summaries were published" in text
    assert list(luck.pages(Material((without(case, luck.SHARES, luck.GROUPS),)))) == []


def page_of(case: Case) -> Page:
    figures = [row for rows in report(case.study).figures.values() for row in rows]
    (page,) = probe.pages(Material((case,), probe_figures={case.study.name: figures}))
    return page


def test_what_was_published_is_told_from_what_is_computed_here_and_from_what_is_missing(case: Case) -> None:
    page = page_of(case)
    text = words(rendered(page))
    assert "gradients, was never published" in text
    assert "the study holds none, so that none is given" in text  # an effective size without weights
    assert page.context["drifts"] == []
    assert "slows the optimizer down" not in text
    assert all("No intervals: what they need" in chart.caption for chart in page.context["charts"]["all"][1:])
    by_place = {row[0]: row for row in page.context["ratios"]["all"]}
    # Table tab:probe of the paper: base, outcome MC 0.789; B at 40, transition SW 1.044.
    assert by_place["base@0"][2] == "0.789"
    assert by_place["B@40"][5] == "1.044"
    chart = page.context["charts"]["all"][0]
    assert chart.title.startswith("Below 1 at 8 of 8 checkpoints, 0.189 to 0.275")
    assert "computed here from figures of single tasks, which were published" in chart.caption
    # The frozen text names steps 20 to 60 of a trajectory that kept steps 80 and 100 only.
    assert page.context["unmeasured"] == ["A@20", "A@40", "A@60"]


def test_a_registered_probe_without_rows_is_said_to_be_missing_and_no_other_has_a_page(case: Case) -> None:
    (page,) = probe.pages(Material((without(case, "probe"),)))
    assert "the table probe is not among its registers" in words(rendered(page))
    rules = {name: rule for name, rule in case.book.rules.items() if "H2" in name}
    unprobed = replace(without(case, "probe"), book=replace(case.book, rules=rules))
    assert list(probe.pages(Material((unprobed,)))) == []
