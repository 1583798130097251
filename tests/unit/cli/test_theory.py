"""`toolkit theory`, as fixed for others to call."""

import json
from pathlib import Path

import pytest

from tests.conftest import Toolkit


def test_spurious_has_the_fixed_shape(toolkit: Toolkit) -> None:
    document = toolkit("theory", "spurious", "--flip-rate", "0.1", "--group-size", "8", "--json").json()
    assert document == {"independent": pytest.approx(0.56953278), "paired": 0.0}


def test_a_group_of_one_is_never_spurious(toolkit: Toolkit) -> None:
    document = toolkit("theory", "spurious", "--flip-rate", "0.1", "--group-size", "1", "--json").json()
    assert document == {"independent": 0.0, "paired": 0.0}


def test_bandit_has_the_fixed_shape(toolkit: Toolkit) -> None:
    arguments = ("--logit", "0.0", "--group-size", "8", "--flip-rate", "0.1", "--json")
    document = toolkit("theory", "bandit", *arguments).json()
    designs = {"independent", "paired"}
    assert set(document) == {
        "contrast_variance",
        "mean_centred",
        "standardized",
        "clean_norm_squared",
        "score_spread",
    }
    assert set(document["contrast_variance"]) == designs
    for estimator in ("mean_centred", "standardized"):
        assert set(document[estimator]) == {"trace", "mean_norm"}
        assert all(set(document[estimator][part]) == designs for part in ("trace", "mean_norm"))
    assert document["clean_norm_squared"] == 203 / 4096


def test_condition_reads_a_group_of_ones_own(toolkit: Toolkit, tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    path.write_text(json.dumps({"outcomes": [1, 0], "scores": [[0.5], [-0.5]]}))
    document = toolkit("theory", "condition", "--scores", path, "--json").json()
    # By hand: S̄ = 0, g_c = 0.5 · 0.5 = 0.25 → L = 1/16; R = 0.25/4 = 1/16: a single success is a tie.
    assert document == {"left": 0.0625, "right": 0.0625, "pairing_lowers_trace": False}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"outcomes": [1], "scores": "x"}', '{"outcomes": [1], "scores": [[1], [1, 2]]}']
)
def test_a_file_that_is_no_group_is_refused(toolkit: Toolkit, tmp_path: Path, text: str) -> None:
    path = tmp_path / "group.json"
    path.write_text(text)
    toolkit("theory", "condition", "--scores", path).refused(4, "does not hold a group")
