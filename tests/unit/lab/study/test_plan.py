"""Counts of runs and measured rates, against the registers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolkit.decisions.rulebook import rulebook_of
from toolkit.errors import DamagedError, UsageError
from toolkit.lab.plan.measured import Measurements, read_measurements
from toolkit.lab.plan.training_plan import count_run, runs_of
from toolkit.lab.play.matrix import EVERYTHING, Selection, check_agreement
from toolkit.lab.training.recipe import load_recipe
from toolkit.places import Home
from toolkit.prereg.registration import Registration, load_registration
from toolkit.registers.study import Study

FIRST = Selection(tiers=(1,))


@pytest.fixture(scope="module")
def registration(home: Home) -> Registration:
    return load_registration(home.registration_folder("embedded"))


@pytest.fixture(scope="module")
def measurements(home: Home) -> Measurements:
    read = read_measurements(home.cards)
    assert read is not None
    return read


def test_counted_episodes_are_those_that_every_published_run_played(
    registration: Registration, published: Any
) -> None:
    """The published runs of one place in the matrix: 14, and the replication of one of them."""
    counted = {
        (c.condition, c.arm, c.seed): c for c in map(count_run, runs_of(rulebook_of(registration), FIRST))
    }
    played = published.rows("runs")
    assert len(counted) == 14
    assert len(played) == 15
    for row in played:
        run = counted[row["condition"], row["arm"], row["seed"]]
        assert (run.episodes, run.groups, run.rollouts) == (
            row["episodes"],
            row["training_groups"],
            row["training_rollouts"],
        )


def test_counted_episodes_are_those_of_every_embedded_run(
    registration: Registration, embedded: Study
) -> None:
    counted = {run.run_id: count_run(run).episodes for run in runs_of(rulebook_of(registration), EVERYTHING)}
    assert counted == {run["run_id"]: run["episodes"] for run in embedded.rows("runs")}


@pytest.mark.parametrize(
    "change", ["step.prompts=12", "step.rollouts=4", "step.steps=200", "step.checkpoint_every=50"]
)
def test_a_recipe_of_other_sizes_is_refused_for_a_registered_run(
    registration: Registration, change: str
) -> None:
    run = runs_of(rulebook_of(registration), FIRST)[0]
    check_agreement(load_recipe("qwen3.5-2b"), run, "here")
    with pytest.raises(UsageError, match=change.partition("=")[0]):
        check_agreement(load_recipe("qwen3.5-2b", changes=[change]), run, "here")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("memory_gb = 80", "memory_gb = 'x'"),
        ('recipe = "qwen3.5-2b"', ""),
        ("[measured]", "[guessed]"),
        ("[measured]", "[measured"),
    ],
)
def test_a_malformed_list_of_measured_runs_is_damaged(home: Home, tmp_path: Path, old: str, new: str) -> None:
    text = (home.cards / "costs.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "costs.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DamagedError, match="cannot be read"):
        read_measurements(tmp_path)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT run_id, wall_time_s FROM runs",
        "SELECT run_id, NULL, episodes FROM runs",
        "SELECT run_id, -1, episodes FROM runs",
        "SELECT run_id, 'x', episodes FROM runs",
    ],
)
def test_a_query_that_gives_no_measured_runs_is_damaged(
    measurements: Measurements, published: Any, query: str
) -> None:
    with pytest.raises(DamagedError, match="something else than measured runs"):
        replace(measurements, query=query).basis(published)


def test_the_measured_rate_is_the_register_s(measurements: Measurements, published: Any) -> None:
    rows = [row for row in published.rows("runs") if row["accelerator"] == "H100"]
    rate = measurements.basis(published).rate
    assert rate is not None
    assert measurements.basis(None).rate is None
    assert f"{len(rows)} measured runs" in rate.source
    seconds = sum(row["wall_time_s"] for row in rows)
    assert seconds / 3600 == pytest.approx(184.55, abs=0.005)
    assert rate.seconds.mean == pytest.approx(seconds / sum(row["episodes"] for row in rows))
