"""Recorded episodes to step through: chosen by the rule, and as recorded."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from toolkit.errors import VerificationError
from toolkit.registers.row_tables import FAULTS
from toolkit.registers.study import Study, open_study
from toolkit.study.check import recorded
from toolkit.study.check.recorded import ReplayedEpisode, choose_pairs
from toolkit.study.check.replay import Replayer
from toolkit.study.play.rows import rows_of_run


@pytest.fixture(scope="module")
def embedded() -> Study:
    return open_study(CHECKOUT / "registers" / "embedded")


@pytest.fixture(scope="module")
def played(embedded: Study) -> Sequence[ReplayedEpisode]:
    return choose_pairs(embedded)


def pairs(played: Sequence[ReplayedEpisode]) -> list[tuple[ReplayedEpisode, ReplayedEpisode]]:
    return list(zip(played[::2], played[1::2], strict=True))


def test_both_designs_meet_one_task_under_one_schedule(played: Sequence[ReplayedEpisode]) -> None:
    for paired, independent in pairs(played):
        assert (paired.run["arm"], independent.run["arm"]) == ("paired", "independent")
        assert (paired.run["condition"], paired.run["seed"]) == (
            independent.run["condition"],
            independent.run["seed"],
        )
        assert paired.episode.schedule.seed == independent.episode.schedule.seed
        assert paired.episode.task == independent.episode.task


def test_every_sort_of_outcome_is_there_twice(played: Sequence[ReplayedEpisode]) -> None:
    sorts = Counter((p.episode.true_success, i.episode.true_success) for p, i in pairs(played))
    assert sorts == {(True, True): 2, (True, False): 2, (False, True): 2, (False, False): 2}


def test_no_other_schedule_of_that_sort_had_more_faults(
    embedded: Study, played: Sequence[ReplayedEpisode]
) -> None:
    (first, second), *_ = pairs(played)
    rows: list[dict[tuple[int, int], dict[str, Any]]] = []
    for one in (first, second):
        listed = rows_of_run(embedded, "episodes", one.run["run_id"])
        same = ("phase", "regime", "step")
        rows.append({(r["task"], r["schedule"]): r for r in listed if all(r[n] == one.row[n] for n in same)})
    both = [place for place in rows[0] if rows[0][place]["true_success"] and rows[1][place]["true_success"]]
    most = max(sum(table[place][fault] for table in rows for fault in FAULTS) for place in both)
    assert sum(len(one.episode.exposures) for one in (first, second)) == most


def test_every_call_is_kept(played: Sequence[ReplayedEpisode]) -> None:
    for one in played:
        assert one.episode.trace is not None
        assert sum(call.charged for call in one.episode.trace) == one.row["calls"]


def test_an_episode_that_comes_out_otherwise_stops(embedded: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Replayer.rows

    def forged(self: Replayer, table: str) -> list[dict[str, Any]]:
        return [
            {**row, "calls": row["calls"] + 1} if table == "episodes" else row for row in rows(self, table)
        ]

    monkeypatch.setattr(Replayer, "rows", forged)
    with pytest.raises(VerificationError, match="came out otherwise"):
        choose_pairs(embedded)


def test_a_study_without_rows_has_none() -> None:
    assert choose_pairs(open_study(CHECKOUT / "registers" / "published")) == ()


def test_runs_of_other_code_are_left_alone(embedded: Study) -> None:
    run = next(row for row in embedded.rows("runs") if row["arm"] == "paired")
    assert recorded.playable(run) is not None
    assert (
        recorded.playable({**run, "specification": run["specification"].replace('"code":"1"', '"code":"0"')})
        is None
    )
    assert recorded.playable({**run, "specification": "{"}) is None
    assert recorded.playable({**run, "specification": None}) is None
