"""`toolkit probe`: what it says, to people and as JSON, and what it refuses."""

import pytest

from tests.conftest import Toolkit
from toolkit.places import Home


def test_a_report_is_one_document(toolkit: Toolkit) -> None:
    document = toolkit(
        "probe", "report", "--study", "embedded", "--trajectory", "c2-paired-s0", "--json"
    ).json()
    assert document["evidence"]
    places = [(one["step"], one["scored"]) for one in document["checkpoints"]]
    assert places == [(step, scored) for scored in ("all", "actions") for step in range(20, 101, 20)]
    figures = {
        (one["noise"], one["estimator"], one["figure"]): one for one in document["checkpoints"][0]["figures"]
    }
    ratio = figures["outcome", "MC", "condition_ratio"]
    assert ratio["low"] < ratio["value"] < ratio["high"] < 1
    share = figures["transition", "MC", "within_share_paired"]
    assert share["pure_noise"] == pytest.approx((1 - 1 / 8) / (1 - 1 / 128), abs=1e-6)
    assert len(document["checkpoints"][0]["summaries"]) == 4
    drifts = {
        (one["noise"], one["estimator"], one["prompts_per_step"]): one
        for one in document["checkpoints"][0]["drifts"]
    }
    assert len(drifts) == 2 * 2 * 4
    assert drifts["transition", "SW", 2]["high"] < 1


def test_a_report_of_summaries_says_what_cannot_be_resampled(toolkit: Toolkit) -> None:
    shown = toolkit("probe", "report", "--study", "published")
    assert shown.code == 0
    assert "0.275 [0.208, 0.346]" in shown.out
    assert "what was published allows no others" in shown.out
    assert "drift" not in shown.out
    document = toolkit("probe", "report", "--study", "published", "--json").json()
    assert not document["evidence"]
    assert document["checkpoints"][0]["trajectory"] == "base"
    assert len(document["checkpoints"]) == 8


def test_the_actions_alone_can_be_asked_for(toolkit: Toolkit) -> None:
    shown = toolkit("probe", "report", "--study", "embedded", "--trajectory", "base", "--scored", "actions")
    assert "V = 0" in shown.out
    assert "drift under Adam, SW, paired over independent" in shown.out
    assert "faults, B = 24" in shown.out
    assert "all coordinates" not in shown.out


def test_a_check_computes_anew(toolkit: Toolkit) -> None:
    done = toolkit("probe", "report", "--study", "embedded", "--trajectory", "base", "--check")
    assert "computed anew from the evidence" in done.out


def test_evidence_that_was_changed_is_damaged(copy: Home, toolkit: Toolkit) -> None:
    path = copy.registers / "tiny-lm" / "probe_gram" / "base.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    path.write_bytes(bytes(content))
    toolkit("probe", "report", "--study", "tiny-lm", "--trajectory", "base", "--check").refused(
        4, "probe_gram/base.parquet"
    )
