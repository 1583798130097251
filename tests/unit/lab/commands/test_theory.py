"""`toolkit theory`, as fixed for others to call."""

import json
from pathlib import Path

import pytest

from tests.conftest import Toolkit


@pytest.mark.parametrize(
    ("line", "document"),
    [
        ("spurious --flip-rate 0.1", {"independent": pytest.approx(0.56953278), "paired": 0.0}),
        ("spurious --flip-rate 0.1 --group-size 1", {"independent": 0.0, "paired": 0.0}),
        ("luck --share 0.4", {"effective_group_size": 8 / 3.8, "contrast_replicates": 1 / 0.6}),
        ("luck --share 1", {"effective_group_size": 1.0, "contrast_replicates": None}),
        ("equal-variance --ratio 0.63 --batch 24", {"independent_groups": 24 / 0.63}),
    ],
)
def test_a_proposition_is_its_numbers(toolkit: Toolkit, line: str, document: object) -> None:
    assert toolkit("theory", *line.split(), "--json").json() == document


@pytest.mark.parametrize(
    ("given", "ratio", "lower"), [("5 --silent", 5.0, False), ("5", 3 / 7, True), ("0", None, False)]
)
def test_a_geometry_has_a_ratio_unless_there_is_nothing_to_divide_by(toolkit, given, ratio, lower) -> None:
    found = toolkit("theory", "condition", "--successes", *given.split(), "--json").json()
    assert (found["ratio"], found["pairing_lowers_trace"]) == (ratio, lower)
    shown = toolkit("theory", "condition", "--successes", *given.split()).out
    assert ("nothing to divide by" in shown) == (ratio is None)


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
    assert document == {"left": 0.0625, "right": 0.0625, "ratio": 1.0, "pairing_lowers_trace": False}


def test_drift_is_by_estimator_and_design(toolkit: Toolkit) -> None:
    settings = ("--logit", "0.0", "--group-size", "8", "--flip-rate", "0.1", "--batch", "2", "--json")
    document = toolkit("theory", "drift", *settings).json()
    # From the paper's printed mean and traces.
    independent, paired = (0.1969**2 / (0.1969**2 + trace / 2) ** 0.5 for trace in (0.002615, 0.005845))
    assert document["mean_centred"] == {
        "drift": {
            "independent": pytest.approx(independent, rel=1e-3),
            "paired": pytest.approx(paired, rel=1e-3),
        },
        "ratio": pytest.approx(paired / independent, rel=1e-4),
    }
    assert toolkit("theory", "drift", "--flip-rate", "1", "--json").json()["mean_centred"]["ratio"] is None
    plain = toolkit("theory", "drift", *settings, "--optimizer", "gradient").json()
    assert plain["mean_centred"]["ratio"] == pytest.approx(1, rel=1e-14)
    assert plain["standardized"]["ratio"] == pytest.approx(0.3905 / 0.3918, rel=1e-3)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"outcomes": [1], "scores": "x"}', '{"outcomes": [1], "scores": [[1], [1, 2]]}']
)
def test_a_file_that_is_no_group_is_refused(toolkit: Toolkit, tmp_path: Path, text: str) -> None:
    path = tmp_path / "group.json"
    path.write_text(text)
    toolkit("theory", "condition", "--scores", path).refused(4, "does not hold a group")
