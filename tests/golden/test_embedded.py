"""The embedded study: what its registers say, and that they come out again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.conftest import CHECKOUT, Result
from tests.golden import measure_levels
from toolkit.decisions.case import Case, open_case
from toolkit.estimators import mean_luck_share
from toolkit.places import Home
from toolkit.prereg.registration import load_registration
from toolkit.registers.study import Study, open_study
from toolkit.study.play.rows import rows_of_run

CARD = CHECKOUT / "cards" / "embedded.md"
RUN = "c2-independent-s2"


@pytest.fixture(scope="module")
def embedded() -> Study:
    return open_study(CHECKOUT / "registers" / "embedded")


@pytest.fixture(scope="module")
def embedded_case(home: Home, embedded: Study) -> Case:
    return open_case(embedded, load_registration(home.registration_folder("embedded")))


def test_every_registered_rule_is_decided(embedded_case: Case) -> None:
    verdicts = {d.rule: d.verdict for d in embedded_case.engine.decide_all()}
    assert not {"not_run", "not_evaluable"} & set(verdicts.values())
    assert len(verdicts) == 23 + 4


def test_the_matrix_was_played_whole(embedded: Study) -> None:
    runs = embedded.rows("runs")
    assert len(runs) == 38 + 120
    assert {run["status"] for run in runs} == {"COMPLETE"}


def test_no_run_was_a_pilot(embedded: Study) -> None:
    assert Counter(run["role"] for run in embedded.rows("runs")) == {"primary": 156, "reference": 2}


def test_every_run_was_launched_after_the_freeze(toolkit: Callable[..., Result]) -> None:
    (document,) = toolkit("verify-prereg", "embedded", "--json").json()
    assert (document["verdict"], document["standing"]) == ("verified", "demonstration")
    assert document["chronology"]["verdict"] == "runs_after_freeze"
    assert document["chronology"]["runs_after"] == 158


def test_an_evaluation_is_the_sum_of_its_episodes(embedded: Study) -> None:
    counted = Counter(
        (r["phase"], r["regime"], r["step"])
        for r in rows_of_run(embedded, "episodes", RUN)
        if r["true_success"]
    )
    assert counted == {
        (r["phase"], r["regime"], r["step"]): r["successes"]
        for r in embedded.rows("evaluations")
        if r["run_id"] == RUN
    }


def test_a_luck_share_is_that_of_its_tables(embedded: Study) -> None:
    rows = [r for r in rows_of_run(embedded, "luck_share", RUN) if r["step"] == 100]
    tables = [[r["true_successes"] for r in rows if r["task"] == task] for task in range(16)]
    (summary,) = (
        r
        for r in embedded.rows("luck_share_summary")
        if (r["run_id"], r["step"], r["target"]) == (RUN, 100, "true_success")
    )
    assert summary["luck_share"] == mean_luck_share(tables).mean


def test_arms_of_one_seed_met_the_same_tasks(embedded: Study) -> None:
    mine, theirs = (
        [(r["step"], r["position"], r["task"]) for r in rows_of_run(embedded, "groups", f"c2-{arm}-s2")]
        for arm in ("paired", "independent")
    )
    assert mine == theirs


def test_registers_of_tier_1_take_under_12_megabytes(embedded: Study) -> None:
    tier_1 = {
        run["run_id"]
        for run in embedded.rows("runs")
        if run["condition"] in ("C0", "C2", "C4") and run["seed"] < 3 and "blocking" not in run["arm"]
    }
    files = {n: e for n, e in embedded.manifest.files.items() if not n.startswith("probe")}
    shared = sum(
        e.bytes
        for name, e in files.items()
        if name.rpartition("/")[2].startswith(("train", "val", "test", "diag"))
    )
    assert (
        shared + sum(e.bytes for n, e in files.items() if n.split("/")[-1].removesuffix(".parquet") in tier_1)
        < 12e6
    )


def test_an_episode_takes_under_4_bytes_beside_its_seed(embedded: Study) -> None:
    import pyarrow.parquet as pq

    total = rows = 0
    for name in embedded.manifest.tables["episodes"].files:
        described = pq.read_metadata(embedded.folder / name)
        columns = [
            described.row_group(g).column(c)
            for g in range(described.num_row_groups)
            for c in range(described.num_columns)
        ]
        seeds = sum(c.total_compressed_size for c in columns if c.path_in_schema == "schedule_seed")
        total += embedded.manifest.files[name].bytes - seeds
        rows += described.num_rows
    assert total / rows < 4


def test_the_card_shows_the_levels_as_measured(embedded: Study) -> None:
    assert measure_levels.table(embedded) in CARD.read_text(encoding="utf-8")


def test_a_run_comes_out_again(toolkit: Callable[..., Result]) -> None:
    document = toolkit(
        "study", "run", "embedded", "--run", "c0-clean-s1", "--check", "--processes", 1, "--json"
    ).json()
    assert (document["verdict"], document["runs"]) == ("verified", ["c0-clean-s1"])
