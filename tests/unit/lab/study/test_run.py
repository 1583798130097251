"""A run as a chain of segments, played for real."""

from dataclasses import replace

import pytest

from tests.unit.lab.study.fake_play import specification, whole
from toolkit.errors import DamagedError, VerificationError
from toolkit.lab.play.segments import Segment, play_segment
from toolkit.lab.play.shortcomings import shortcomings
from toolkit.registers.arrow import to_arrow
from toolkit.registers.schema import TABLES
from toolkit.verification.summaries import count_episodes

SMALL = specification(surface_tokens=2, diagnosed=(0, 1, 4), pools={})


@pytest.fixture(scope="module")
def played() -> Segment:
    return whole(SMALL, play_segment)


def test_a_whole_run_is_what_is_registered(played: Segment) -> None:
    tables = {name: to_arrow(TABLES[name], rows) for name, rows in played.items()}
    counted = count_episodes(SMALL.run_id, tables.pop("episodes"))
    assert shortcomings(SMALL, counted, tables) == ()
    assert [row["step"] for row in played["checkpoints"]] == [0, 2, 4]


def test_the_luck_share_is_diagnosed_between_checkpoints_too(played: Segment) -> None:
    assert sorted({row["step"] for row in played["luck_share"]}) == [0, 1, 4]


def test_a_segment_depends_on_the_checkpoint_before_it_alone(played: Segment) -> None:
    again = play_segment(SMALL, 4, played["checkpoints"][1])
    assert again["checkpoints"] == played["checkpoints"][2:] != played["checkpoints"][1:2]
    assert again["groups"] == [row for row in played["groups"] if row["step"] > 2]


def test_a_learning_battery_is_the_learning_curve_alone() -> None:
    learning = play_segment(replace(SMALL, battery="learning", diagnosed=()), 0, None)
    assert {(row["pool"], row["regime"]) for row in learning["episodes"]} == {("validation", "faults_p025")}
    assert len(learning["episodes"]) == 600


def test_a_checkpoint_of_another_run_is_refused(played: Segment) -> None:
    foreign = {**played["checkpoints"][1], "run_id": "c2-independent-s0"}
    with pytest.raises(DamagedError, match="another run"):
        play_segment(SMALL, 4, foreign)


def test_a_pool_whose_hash_differs_is_refused() -> None:
    other = replace(SMALL, pools={"diagnostic": "0" * 64})
    with pytest.raises(VerificationError, match="pool diagnostic is not the one"):
        play_segment(other, 0, None)
