"""Recorded episodes to step through: chosen by the rule, and as recorded."""

from collections import Counter
from typing import Any

import pytest

from toolkit.errors import VerificationError
from toolkit.registers.row_tables import FAULTS
from toolkit.registers.study import Study
from toolkit.study.check.recorded import ReplayedEpisode, choose_pairs, playable
from toolkit.study.check.replay import Replayer
from toolkit.study.play.rows import rows_of_run

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


def test_no_other_schedule_of_that_sort_had_more_faults(embedded: Study, pairs: Pairs) -> None:
    tables: list[dict[tuple[int, int], dict[str, Any]]] = []
    for each in pairs[0]:
        rows = rows_of_run(embedded, "episodes", each.run["run_id"])
        same = ("phase", "regime", "step")
        tables.append({(r["task"], r["schedule"]): r for r in rows if all(r[n] == each.row[n] for n in same)})
    both = [place for place in tables[0] if all(table[place]["true_success"] for table in tables)]
    most = max(sum(table[place][fault] for table in tables for fault in FAULTS) for place in both)
    assert sum(len(each.episode.exposures) for each in pairs[0]) == most


def test_an_episode_that_comes_out_otherwise_stops(embedded: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Replayer.rows

    def forged(self: Replayer, table: str) -> list[dict[str, Any]]:
        return [
            {**row, "calls": row["calls"] + 1} if table == "episodes" else row for row in rows(self, table)
        ]

    monkeypatch.setattr(Replayer, "rows", forged)
    with pytest.raises(VerificationError, match="came out otherwise"):
        choose_pairs(embedded)


def test_runs_of_other_code_and_studies_without_rows_are_left_alone(
    embedded: Study, published: Study
) -> None:
    assert choose_pairs(published) == ()
    run = next(row for row in embedded.rows("runs") if row["arm"] == "paired")
    assert playable(run) is not None
    for other in (run["specification"].replace('"code":"1"', '"code":"0"'), "{", None):
        assert playable({**run, "specification": other}) is None
