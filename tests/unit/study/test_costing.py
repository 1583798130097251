"""Counts of runs and the costs of the registered study, against the registers and sums by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import CHECKOUT
from toolkit.cli.costs import home_costs
from toolkit.errors import DamagedError, UsageError
from toolkit.prereg.registration import Registration, load_registration
from toolkit.registers.query import ask
from toolkit.registers.study import open_study
from toolkit.study.plan.costing import CostList, count_costs, read_cost_list
from toolkit.study.play.counting import check_agreement, count_run, runs_of
from toolkit.study.play.matrix import EVERYTHING, Selection
from toolkit.training.recipe import load_recipe

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.places import Home
    from toolkit.training.costs import Costs

FIRST = Selection(tiers=(1,))


@pytest.fixture(scope="module")
def registration(home: Home) -> Registration:
    return load_registration(home.registration_folder("embedded"))


@pytest.fixture(scope="module")
def listed(home: Home) -> CostList:
    found = read_cost_list(home.cards)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def found(home: Home) -> Costs:
    return home_costs(home)


def test_counted_episodes_are_those_that_every_published_run_played(
    registration: Registration, published: Any
) -> None:
    """The published runs of one place in the matrix: 14, and the replication of one of them."""
    counted = {(c.condition, c.arm, c.seed): c for c in map(count_run, runs_of(registration, FIRST))}
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


def test_counted_episodes_are_those_of_every_embedded_run(registration: Registration) -> None:
    rows = ask(open_study(CHECKOUT / "registers" / "embedded"), "SELECT run_id, episodes FROM runs").rows
    counted = {run.run_id: count_run(run).episodes for run in runs_of(registration, EVERYTHING)}
    assert counted == dict(rows)


def test_a_run_leaves_a_checkpoint_every_twenty_steps(registration: Registration) -> None:
    (run,) = runs_of(registration, Selection(runs=("c2-paired-s0",)))
    assert count_run(run).checkpoints == (20, 40, 60, 80, 100)


@pytest.mark.parametrize(
    "change", ["step.prompts=12", "step.rollouts=4", "step.steps=200", "step.checkpoint_every=50"]
)
def test_a_recipe_of_other_sizes_is_refused_for_a_registered_run(
    registration: Registration, change: str
) -> None:
    run = runs_of(registration, FIRST)[0]
    check_agreement(load_recipe("qwen3.5-2b"), run, "here")
    with pytest.raises(UsageError, match=change.partition("=")[0]):
        check_agreement(load_recipe("qwen3.5-2b", changes=[change]), run, "here")


def test_the_measured_hours_are_the_register_s(found: Costs, published: Any) -> None:
    for name, accelerator, runs in (("h100", "H100", 12), ("mi300x", "MI300X", 3)):
        rows = [row for row in published.rows("runs") if row["accelerator"] == accelerator]
        measured = found.with_id(name)
        assert len(measured.runs) == len(rows) == runs
        assert measured.seconds == pytest.approx(sum(row["wall_time_s"] for row in rows))


def test_the_measurements_dates_are_the_register_s(found: Costs, published: Any) -> None:
    for name, accelerator in (("h100", "H100"), ("mi300x", "MI300X")):
        days = sorted(
            str(row["launched_at"])[:10]
            for row in published.rows("runs")
            if row["accelerator"] == accelerator
        )
        assert found.with_id(name).date == f"launched {days[0]} to {days[-1]}"


def test_measured_runs_on_one_gpu_lie_within_the_estimate_for_one(found: Costs, published: Any) -> None:
    """Twelve of the fourteen runs took 184.5 hours on H100s; the other two are estimated at the same rate."""
    (one, *_), (policy, _) = found.policies[0].schedules, found.policies
    assert one.hours is not None
    assert policy.gpus == 1
    episodes = sum(row["episodes"] for row in published.rows("runs") if row["accelerator"] == "H100")
    seconds = sum(row["wall_time_s"] for row in published.rows("runs") if row["accelerator"] == "H100")
    assert one.hours.mean == pytest.approx(381_872 * seconds / episodes / 3600)


def test_eight_gpus_take_two_runs_each_and_sixty_four_one(found: Costs) -> None:
    # 14 runs of nearly one length: two after each other on six of eight GPUs.
    one, eight, many = (schedule.hours.mean for schedule in found.policies[0].schedules if schedule.hours)
    assert None not in {one, eight, many}
    assert 1.9 < eight / many < 2
    assert one / many == pytest.approx(14, rel=0.05)


def test_a_70b_policy_fits_on_no_single_gpu(found: Costs) -> None:
    one, eight, many = found.policies[1].schedules
    assert (one.slots, eight.slots, many.slots) == (0, 1, 8)
    assert one.hours is None


def test_the_processors_hours_are_those_of_the_launches(found: Costs) -> None:
    study = open_study(CHECKOUT / "registers" / "embedded")
    names = ", ".join(f"'{run.run_id}'" for run in found.runs)
    ((seconds, longest),) = ask(
        study, f"SELECT sum(wall_time_s), max(wall_time_s) FROM launches WHERE run_id IN ({names})"
    ).rows
    (one, by_one), *_, (most, by_most) = found.processors
    assert (one, most) == (1, 64)
    assert by_one * 3600 == pytest.approx(seconds)
    assert by_most * 3600 == pytest.approx(longest)


def test_without_the_measured_study_no_duration_is_said(listed: CostList, registration: Registration) -> None:
    costs = count_costs(listed, registration, {})
    assert [policy.rate for policy in costs.policies] == [None, None]
    assert (costs.processors, costs.share_of_peak) == ((), None)
    assert costs.operations > 0


def test_the_most_operations_are_those_of_the_protocol_s_maxima(found: Costs) -> None:
    # 268,800 rollouts five times and 113,072 episodes once, 12,288 tokens each, 2 × 1,881,276,416 operations.
    assert found.tokens == (268_800 * 12_288, 113_072 * 12_288)
    assert found.operations == (268_800 * 5 + 113_072) * 12_288 * 2 * 1_881_276_416


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tier = 1", "tier = 'x'", "cannot be read"),
        ('recipe = "qwen3.5-2b"', "", "cannot be read"),
        ('rate = "h100"', 'rate = "h200"', "no single measurement"),
        ('id = "mi300x"', 'id = "h100"', "no single measurement"),
    ],
)
def test_a_malformed_list_of_costs_is_damaged(
    home: Home, tmp_path: Path, old: str, new: str, said: str
) -> None:
    text = (home.cards / "costs.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "costs.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DamagedError, match=said):
        read_cost_list(tmp_path)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT run_id, wall_time_s FROM runs",
        "SELECT run_id, NULL, episodes FROM runs",
        "SELECT run_id, wall_time_s, 0 FROM runs",
        "SELECT run_id, -1, episodes FROM runs",
        "SELECT run_id, 'x', episodes FROM runs",
    ],
)
def test_a_query_that_gives_no_measured_runs_is_damaged(
    listed: CostList, registration: Registration, published: Any, query: str
) -> None:
    changed = tuple({**entry, "query": query} for entry in listed.measured if entry["study"] == "published")
    others = tuple(entry for entry in listed.measured if entry["study"] != "published")
    with pytest.raises(DamagedError, match="something else than measured runs"):
        count_costs(replace(listed, measured=changed + others), registration, {"published": published})


def test_a_project_without_a_list_of_costs_has_none(tmp_path: Path) -> None:
    assert read_cost_list(tmp_path) is None


def test_other_numbers_of_gpus_can_be_asked_for(
    listed: CostList, registration: Registration, published: Any
) -> None:
    costs = count_costs(replace(listed, numbers=(14,)), registration, {"published": published})
    (fourteen,) = costs.policies[0].schedules
    assert fourteen.slots == 14
