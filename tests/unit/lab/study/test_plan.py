"""Counts of runs, rates and durations: against the registers, and against sums by hand."""

from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import DamagedError, UsageError
from toolkit.lab.plan import (
    Measurements,
    Range,
    count_run,
    in_world,
    measured_rate,
    rate_of_step,
    rate_of_tokens,
    read_measurements,
    runs_of,
)
from toolkit.lab.play.matrix import EVERYTHING, Selection, check_agreement
from toolkit.lab.training.recipe import load_recipe
from toolkit.places import Home
from toolkit.prereg.registration import Registration, load_registration
from toolkit.rules.rulebook import load_rulebook, rulebook_of
from toolkit.structs import replace

PAPER = load_recipe("qwen3.5-2b")
FIRST = Selection(tiers=(1,))


@pytest.fixture(scope="module")
def registration(home: Home) -> Registration:
    return load_registration(home.registration_folder("embedded"))


@pytest.fixture(scope="module")
def measurements(home: Home) -> Measurements:
    read = read_measurements(home.cards)
    assert read is not None
    return read


def test_counted_episodes_are_those_that_every_published_run_played(registration, published) -> None:
    """The published runs of one place in the matrix: 14, and the replication of one of them."""
    runs = map(count_run, runs_of(rulebook_of(registration), FIRST))
    counted = {(c.condition, c.arm, c.seed): (c.episodes, c.groups, c.rollouts) for c in runs}
    played = published.rows("runs")
    assert (len(counted), len(played)) == (14, 15)
    for row in played:
        expected = (row["episodes"], row["training_groups"], row["training_rollouts"])
        assert counted[row["condition"], row["arm"], row["seed"]] == expected


def test_counted_episodes_are_those_of_every_embedded_run(registration, embedded) -> None:
    counted = {run.run_id: count_run(run).episodes for run in runs_of(rulebook_of(registration), EVERYTHING)}
    assert counted == {run["run_id"]: run["episodes"] for run in embedded.rows("runs")}


def test_drafted_runs_are_in_the_published_world_and_others_can_be_planned_there(home, registration) -> None:
    draft = load_rulebook((home.registration_folder("qwen3.5-2b") / "rules.toml").read_text("utf-8"))
    drafted = runs_of(draft, EVERYTHING)
    assert {run.world for run in drafted} == {"published"}
    assert {tuple(run.pools) for run in drafted} == {("diagnostic", "test", "train", "validation")}
    assert runs_of(in_world(draft, "published"), EVERYTHING) == drafted
    moved = runs_of(in_world(rulebook_of(registration), "published"), FIRST)
    assert {run.world for run in moved} == {"published"}
    here = runs_of(rulebook_of(registration), FIRST)
    assert [count_run(run) for run in moved] == [count_run(run) for run in here]


@pytest.mark.parametrize(
    "change", ["step.prompts=12", "step.rollouts=4", "step.steps=200", "step.checkpoint_every=50"]
)
def test_a_recipe_of_other_sizes_is_refused_for_a_registered_run(registration, change) -> None:
    run = runs_of(rulebook_of(registration), FIRST)[0]
    check_agreement(load_recipe("qwen3.5-2b"), run, "here")
    with pytest.raises(UsageError, match=change.partition("=")[0]):
        check_agreement(load_recipe("qwen3.5-2b", changes=[change]), run, "here")


@pytest.mark.parametrize(
    ("old", "new"), [('recipe = "qwen3.5-2b"', ""), ("[measured]", "[guessed]"), ("[measured]", "[measured")]
)
def test_a_malformed_list_of_measured_runs_is_damaged(home: Home, tmp_path: Path, old: str, new: str) -> None:
    text = (home.cards / "costs.toml").read_text(encoding="utf-8")
    (tmp_path / "costs.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DamagedError, match="cannot be read"):
        read_measurements(tmp_path)


@pytest.mark.parametrize("columns", ["wall_time_s", "NULL, episodes", "-1, episodes", "'x', episodes"])
def test_a_query_that_gives_no_measured_runs_is_damaged(measurements, published, columns) -> None:
    asked = replace(measurements.measured, query=f"SELECT run_id, {columns} FROM runs")
    with pytest.raises(DamagedError, match="something else than measured runs"):
        replace(measurements, measured=asked).basis(published)


def test_the_measured_rate_is_the_register_s(measurements: Measurements, published: Any) -> None:
    rows = [row for row in published.rows("runs") if row["accelerator"] == "H100"]
    rate = measurements.basis(published).rate
    assert rate is not None
    assert measurements.basis(None).rate is None
    assert f"{len(rows)} measured runs" in rate.source
    seconds = sum(row["wall_time_s"] for row in rows)
    assert seconds / 3600 == pytest.approx(184.55, abs=0.005)
    assert rate.seconds.mean == pytest.approx(seconds / sum(row["episodes"] for row in rows))


def test_a_rate_is_what_was_measured_or_an_upper_end_alone() -> None:
    assert measured_rate([(100.0, 50), (300.0, 100)], "x").seconds == Range(2.0, 400 / 150, 3.0)
    assert rate_of_step(PAPER, 384.0).seconds == Range(None, None, 2.0)
    assert rate_of_tokens(PAPER, 1536.0).seconds == Range(None, None, 4.0)
