"""A run as a chain of segments, played for real."""

from dataclasses import replace

import pytest

from toolkit.errors import DamagedError, VerificationError
from toolkit.study.play.conclusion import shortcomings
from toolkit.study.play.segments import Segment, ends, play_segment
from toolkit.training.specification import Specification

SMALL = Specification(
    study="test",
    root="test",
    run_id="c2-paired-s0",
    condition="C2",
    arm="paired",
    seed=0,
    tier=1,
    role="primary",
    regime="faults_p025",
    at_noise="faults_p025",
    scale_rewards="group",
    steps=4,
    prompts_per_step=2,
    surface_tokens=2,
    checkpoint_every=2,
    diagnosed=(0, 1, 4),
)


def whole(specification: Specification) -> Segment:
    """Play a run, segment after segment."""
    rows: Segment = {"groups": [], "episodes": [], "luck_share": [], "checkpoints": []}
    before = None
    for end in ends(specification):
        segment = play_segment(specification, end, before)
        (before,) = segment["checkpoints"]
        for name, listed in segment.items():
            rows[name] += listed
    return rows


@pytest.fixture(scope="module")
def played() -> Segment:
    return whole(SMALL)


def test_segments_end_at_the_start_and_at_every_checkpoint() -> None:
    assert ends(SMALL) == (0, 2, 4)


def test_a_whole_run_is_what_is_registered(played: Segment) -> None:
    assert shortcomings(SMALL, played) == ()


def test_the_luck_share_is_diagnosed_between_checkpoints_too(played: Segment) -> None:
    assert sorted({row["step"] for row in played["luck_share"]}) == [0, 1, 4]


def test_a_segment_depends_on_the_checkpoint_before_it_alone(played: Segment) -> None:
    again = play_segment(SMALL, 4, played["checkpoints"][1])
    assert again["checkpoints"] == played["checkpoints"][2:]
    assert again["groups"] == [row for row in played["groups"] if row["step"] > 2]


def test_training_changes_the_policy(played: Segment) -> None:
    first, *_, last = played["checkpoints"]
    assert first["parameters"] != last["parameters"]


def test_without_surface_tokens_there_are_fewer_parameters() -> None:
    bare = play_segment(replace(SMALL, surface_tokens=0, diagnosed=(), battery="learning"), 0, None)
    assert len(bare["checkpoints"][0]["parameters"]) == 206


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
