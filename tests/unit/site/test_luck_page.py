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


@pytest.fixture(scope="module")
def page(embedded: Case) -> Page:
    (made,) = luck.pages(Material((embedded,)))
    return made


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
    shares = {task: luck_share(table).share or 0.0 for task, table in tables.items()}
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


def page_of(case: Case) -> Page:
    figures = [row for rows in report(case.study).figures.values() for row in rows]
    (page,) = probe.pages(Material((case,), probe_figures={case.study.name: figures}))
    return page


@pytest.fixture(scope="module")
def measured(embedded: Case) -> Page:
    return page_of(embedded)


def test_every_registered_checkpoint_shows_its_ratio_and_interval(embedded: Case, measured: Page) -> None:
    stored = ask(
        embedded.study,
        "SELECT trajectory || '@' || step, value, low, high FROM probe_intervals WHERE scored = 'all' "
        "AND noise = 'transition' AND estimator = 'MC' AND figure = 'trace_ratio' "
        "AND (trajectory = 'base' OR regexp_matches(trajectory, '^c[24]-paired-s'))",
    ).rows
    shown = {row[0]: row[4] for row in measured.context["ratios"]["all"]}
    named = {place: f"{value:.3f} [{low:.3f}, {high:.3f}]" for place, value, low, high in stored}
    assert shown == {place: named[place] for place in shown}
    assert len(shown) == 31  # six trajectories at five steps, and the untrained policy


def test_the_drift_ratios_of_registered_checkpoints_are_those_of_the_register(embedded, measured) -> None:
    stored = ask(
        embedded.study,
        "SELECT noise, trajectory || '@' || step, scored, prompts_per_step, corrected, low, high "
        "FROM probe_drift WHERE estimator = 'SW'",
    ).rows
    named = {
        (noise, place, scored, f"B = {batch}"): f"{value:.3f} [{low:.3f}, {high:.3f}]"
        for noise, place, scored, batch, value, low, high in stored
    }
    shown = {
        (table["noise"], place, scored, column): cell
        for table in measured.context["drifts"]
        for place, scored, *cells in table["rows"]
        for column, cell in zip(table["columns"][2:], cells, strict=True)
    }
    assert shown == {key: named[key] for key in shown}
    # Two noises, four sizes of a step; rules name 31 checkpoints on all coordinates, 16 on the actions alone.
    assert len(shown) == 2 * 4 * (31 + 16)
    assert "slows the optimizer down" in words(rendered(measured))


def test_a_study_without_it_shows_no_drift(case: Case) -> None:
    page = page_of(case)
    assert page.context["drifts"] == []
    assert "slows the optimizer down" not in words(rendered(page))


def test_every_scored_checkpoint_is_on_the_page_once(embedded: Case, measured: Page) -> None:
    ((scored,),) = ask(embedded.study, "SELECT count(*) FROM probe_checkpoints").rows
    tables = [measured.context[name][on] for name in ("ratios", "others") for on in ("all", "actions")]
    assert sum(map(len, tables)) == scored == 142


def test_the_rules_are_those_that_read_the_probe(embedded: Case, measured: Page) -> None:
    reading = {
        name
        for name, rule in embedded.book.rules.items()
        if any("probe_" in criterion.test for criterion in rule.criteria)
    }
    assert {rule.rule for rule in measured.context["rules"]} == reading == {"H1b", "P13", "B1", "B2"}


def test_a_rule_is_linked_where_it_has_a_page(measured: Page) -> None:
    assert 'href="H1b.html"' in rendered(measured, ["embedded/H1b.html"])
    assert 'href="H1b.html"' not in rendered(measured)


def test_what_was_published_is_told_from_what_is_computed_here_and_from_what_is_missing(case: Case) -> None:
    page = page_of(case)
    text = words(rendered(page))
    assert "gradients, was never published" in text
    assert "the study holds none, so that none is given" in text  # an effective size without weights
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


def test_rollouts_of_equal_weight_all_count(measured: Page) -> None:
    weights = measured.context["weights"]
    columns = list(weights["columns"])
    for row in weights["rows"]:
        shown = dict(zip(columns, row, strict=True))
        assert (shown["weight_min"], shown["weight_max"]) == ("1", "1")
        assert float(shown["effective_sample_size"]) == shown["clean_rollouts"] == 512


def without_a_probe(case: Case) -> Case:
    tables = {n: entry for n, entry in case.study.manifest.tables.items() if not n.startswith("probe")}
    return replace(case, study=replace(case.study, manifest=replace(case.study.manifest, tables=tables)))


def test_a_registered_probe_without_rows_is_said_to_be_missing(case: Case) -> None:
    (page,) = probe.pages(Material((without_a_probe(case),)))
    assert "the table probe is not among its registers" in words(rendered(page))


def test_a_study_without_a_probe_has_no_page(case: Case) -> None:
    rules = {name: rule for name, rule in case.book.rules.items() if "H2" in name}
    unprobed = replace(without_a_probe(case), book=replace(case.book, rules=rules))
    assert list(probe.pages(Material((unprobed,)))) == []
