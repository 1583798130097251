"""Recorded episodes to step through: chosen by the rule, and as recorded."""

from collections import Counter

import pytest

from toolkit.lab.play.rows import rows_of_run
from toolkit.lab.verification.replay import ReplayedEpisode, choose_of_runs, choose_pairs, playable
from toolkit.registers.row_tables import FAULTS
from toolkit.registers.study import Study, open_study

Pairs = list[tuple[ReplayedEpisode, ReplayedEpisode]]


@pytest.fixture(scope="module")
def pairs(embedded: Study) -> Pairs:
    played = choose_pairs(embedded)
    return list(zip(played[::2], played[1::2], strict=True))


def test_both_designs_meet_one_task_under_one_schedule_and_every_call_is_kept(pairs: Pairs) -> None:
    for pair in pairs:
        assert [each.run["arm"] for each in pair] == ["paired", "independent"]
        assert len({(each.run["condition"], each.run["seed"]) for each in pair}) == 1
        assert len({(each.episode.schedule.seed, each.episode.task.task_id) for each in pair}) == 1
        for each in pair:
            assert each.episode.trace is not None
            assert sum(call.charged for call in each.episode.trace) == each.row["calls"]


def test_every_sort_of_outcome_is_there_twice(pairs: Pairs) -> None:
    sorts = Counter((paired.episode.true_success, other.episode.true_success) for paired, other in pairs)
    assert sorts == {(True, True): 2, (True, False): 2, (False, True): 2, (False, False): 2}


def test_runs_of_other_code_and_studies_without_rows_are_left_alone(embedded, published) -> None:
    assert choose_pairs(published) == ()
    run = next(row for row in embedded.rows("runs") if row["arm"] == "paired")
    assert playable(run) is not None
    for other in (run["specification"].replace('"code":"1"', '"code":"0"'), "{", None):
        assert playable({**run, "specification": other}) is None


@pytest.fixture(scope="module")
def of_runs(embedded: Study) -> dict[str, tuple[ReplayedEpisode, ...] | str]:
    return choose_of_runs(embedded)


def test_of_a_run_a_success_a_failure_and_a_fault_of_its_last_evaluation_are_played_again(
    embedded: Study, of_runs: dict[str, tuple[ReplayedEpisode, ...] | str]
) -> None:
    played = of_runs["c2-paired-s1"]
    assert not isinstance(played, str)
    rows = [
        row
        for row in rows_of_run(embedded, "episodes", "c2-paired-s1")
        if (row["phase"], row["regime"]) == ("final", "faults_p025")
    ]
    first = {
        "succeeded": next(row for row in rows if row["true_success"]),
        "failed": next(row for row in rows if not row["true_success"]),
        "met a fault": next(row for row in rows if any(row[fault] for fault in FAULTS)),
    }
    assert all(row in [each.row for each in played] for row in first.values())
    for each in played:
        assert each.episode.true_success == each.row["true_success"]
        assert sum(call.charged for call in each.episode.trace or ()) == each.row["calls"]


@pytest.mark.slow
def test_a_run_without_played_episodes_says_why(embedded, home, of_runs) -> None:
    whole = {
        name: choose_of_runs(open_study(home.study_folder(name))) for name in ("map", "bfcl", "small-lm")
    }
    said = {name: {str(why) for why in runs.values()} for name, runs in whole.items()}
    assert said["bfcl"] == {"it takes the world that they were played with"}
    assert said["small-lm"] == {"it takes the model that they were played with"}
    assert [why.partition(",")[0] for why in said["map"]] == ["the registers keep no checkpoint of this run"]
    late = {run["run_id"] for run in embedded.rows("runs") if isinstance(of_runs[run["run_id"]], str)}
    assert {why for run, why in of_runs.items() if run in late} == {
        "those of the first 5 seeds of each condition and arm are"
    }
    arms = {(run["condition"], run["arm"]) for run in embedded.rows("runs") if run["run_id"] not in late}
    assert arms == {(run["condition"], run["arm"]) for run in embedded.rows("runs")}
