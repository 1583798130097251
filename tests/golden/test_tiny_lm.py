"""The study of the tiny language model: what its registers say, and that they fit together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import CHECKOUT, Result
from toolkit.decisions.case import Case, open_case
from toolkit.places import Home
from toolkit.policies.language_model.loading import model_path
from toolkit.policies.language_model.opening import folder_sha256
from toolkit.prereg.registration import load_registration
from toolkit.registers.study import Study, open_study
from toolkit.study.play.rows import rows_of_run

RUNS = {
    f"{condition}-{arm}-s{seed}"
    for condition in ("c2", "c4")
    for arm in ("paired", "independent")
    for seed in (0, 1)
}


@pytest.fixture(scope="module")
def tiny() -> Study:
    return open_study(CHECKOUT / "registers" / "tiny-lm")


@pytest.fixture(scope="module")
def tiny_case(home: Home, tiny: Study) -> Case:
    return open_case(tiny, load_registration(home.registration_folder("tiny-lm")))


def test_every_registered_rule_is_decided(tiny_case: Case) -> None:
    verdicts = {d.rule: d.verdict for d in tiny_case.engine.decide_all()}
    assert set(verdicts) == {"H1a", "H1b", "H2a", "H2b", "H3", "H5", "gate2"}
    assert not {"not_run", "not_evaluable"} & set(verdicts.values())


def test_the_matrix_was_played_whole(tiny: Study) -> None:
    runs = tiny.rows("runs")
    assert {run["run_id"] for run in runs} == RUNS
    assert {run["status"] for run in runs} == {"COMPLETE"}


def test_every_run_started_from_the_model_that_lies_with_the_package(tiny: Study) -> None:
    commits = {run["model_commit"] for run in tiny.rows("runs")}
    assert commits == {folder_sha256(Path(model_path("small")))}


def test_every_run_was_launched_after_the_freeze(toolkit: Callable[..., Result]) -> None:
    (document,) = toolkit("verify-prereg", "tiny-lm", "--json").json()
    assert (document["verdict"], document["standing"]) == ("verified", "demonstration")
    assert document["chronology"]["verdict"] == "runs_after_freeze"
    assert document["chronology"]["runs_after"] == len(RUNS)


@pytest.mark.parametrize("run", sorted(RUNS))
def test_an_evaluation_is_the_sum_of_its_episodes(tiny: Study, run: str) -> None:
    counted: dict[tuple[str, str, int], int] = {}
    for row in rows_of_run(tiny, "episodes", run):
        place = (row["phase"], row["regime"], row["step"])
        counted[place] = counted.get(place, 0) + row["true_success"]
    assert counted == {
        (row["phase"], row["regime"], row["step"]): row["successes"]
        for row in tiny.rows("evaluations")
        if row["run_id"] == run
    }


@pytest.mark.parametrize("condition", ["c2", "c4"])
@pytest.mark.parametrize("seed", [0, 1])
def test_arms_of_one_seed_met_the_same_tasks(tiny: Study, condition: str, seed: int) -> None:
    mine, theirs = (
        [
            (row["step"], row["position"], row["task"])
            for row in rows_of_run(tiny, "groups", f"{condition}-{arm}-s{seed}")
        ]
        for arm in ("paired", "independent")
    )
    assert mine == theirs


@pytest.mark.parametrize("run", sorted(RUNS))
def test_a_group_shares_its_schedule_in_the_paired_design_alone(tiny: Study, run: str) -> None:
    shares = {len(set(row["schedule_seeds"])) == 1 for row in rows_of_run(tiny, "groups", run)}
    assert shares == {"paired" in run}


@pytest.mark.parametrize("run", sorted(RUNS))
def test_advantages_are_rewards_standardized_within_the_group(tiny: Study, run: str) -> None:
    rows = rows_of_run(tiny, "groups", run)
    assert rows
    for row in rows:
        rewards = np.array(row["observed_rewards"], float)
        expected = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)
        assert row["advantages"] == pytest.approx(expected, abs=1e-5)


def test_the_probe_s_figures_follow_from_its_evidence(toolkit: Callable[..., Result]) -> None:
    found = toolkit("probe", "report", "--study", "tiny-lm", "--trajectory", "base", "--check")
    assert found.code == 0
