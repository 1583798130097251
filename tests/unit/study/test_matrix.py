"""The run matrix: from the registered lines to specifications."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from toolkit.decisions.plan import Plan, read_plan
from toolkit.errors import IncompleteError, RuleError, UsageError
from toolkit.evaluation.sets import final_sets, periodic_sets
from toolkit.study.play.matrix import Selection, specify
from toolkit.study.play.summaries import policy_of
from toolkit.tasks.task import canonical
from toolkit.training.recipe import load_recipe
from toolkit.training.specification import LanguageModelSpecification, read_specification

RULES = Path(__file__).parents[3] / "prereg/paired-rollouts/rules.toml"
POOLS = {"train": "a" * 64}
BY_NOISE = {
    ("0.25", "0"): "faults_p025",
    ("0.10", "0"): "faults_p010",
    ("0", "0.10"): "flips_q010",
    ("0", "0.05"): "flips_q005",
    ("0", "0"): "clean",
}


def plan(**changes: Any) -> Plan:
    """Return the registered matrix with a regime on every line but the last; changes go to the first."""
    document = tomllib.loads(RULES.read_text())
    for line in document["matrix"][:-1]:
        line["regime"] = BY_NOISE[line["fixed"]["fault_rate"], line["fixed"]["flip_rate"]]
        if line["regime"] == "clean":
            line["at_noise"] = "faults_p025"
    document["matrix"][0] |= changes
    return read_plan(tuple(document["deciding_roles"]), document["training"], document["matrix"])


def piloted() -> Plan:
    """Return a matrix of one line, and a pilot of it that enters no decision."""
    document = tomllib.loads(RULES.read_text())
    line = {**document["matrix"][0], "regime": "faults_p025"}
    pilot = {**line, "tier": 0, "seeds": [900], "role": "pilot", "battery": "learning"}
    return read_plan(("primary", "reference"), document["training"], [line, pilot])


def names(selection: Selection) -> list[str]:
    return [run.run_id for run in specify(plan(), ("small", "0" * 64), POOLS, selection)]


def test_the_registered_matrix_has_38_playable_runs() -> None:
    assert len({run.run_id for run in specify(plan(), ("small", "0" * 64), POOLS)}) == 38


def test_tier_1_has_14_runs() -> None:
    assert len(names(Selection(tiers=(1,)))) == 14


def test_runs_are_named_by_their_place() -> None:
    assert names(Selection(rules=("H4",))) == [
        "c4-paired-none-s0",
        "c4-paired-none-s1",
        "c4-independent-none-s0",
        "c4-independent-none-s1",
    ]


def test_the_parts_of_a_selection_narrow_each_other() -> None:
    assert names(Selection(tiers=(1,), rules=("H2a",), runs=("*-s2",))) == [
        "c2-paired-s2",
        "c2-independent-s2",
    ]


def test_a_specification_says_what_its_line_says() -> None:
    (run,) = specify(plan(), ("small", "0" * 64), POOLS, Selection(runs=("c0-clean-s0",)))
    assert policy_of(run) == "log-linear"
    assert (run.regime, run.at_noise, run.role, run.steps) == ("clean", "faults_p025", "reference", 100)
    assert run.pools == POOLS


def test_seeds_derive_from_the_digest_of_the_registration() -> None:
    (run,) = specify(plan(), ("small", "0" * 64), POOLS, Selection(runs=("c0-clean-s0",)))
    (other,) = specify(plan(), ("small", "1" * 64), POOLS, Selection(runs=("c0-clean-s0",)))
    assert (run.root, other.root) == ("small " + "0" * 64, "small " + "1" * 64)


def test_a_pilots_seeds_do_not() -> None:
    (run,) = specify(piloted(), ("small", "0" * 64), POOLS, Selection(tiers=(0,), runs=("c2-paired-s900",)))
    assert (run.root, run.role, run.diagnosed) == ("small", "pilot", ())


def test_a_pilot_is_played_only_where_its_tier_is_asked_for() -> None:
    everything = {run.run_id for run in specify(piloted(), ("small", "0" * 64), POOLS)}
    assert "c2-paired-s900" not in everything


def test_the_middle_of_training_is_diagnosed_for_seed_0_alone() -> None:
    runs = specify(plan(), ("small", "0" * 64), POOLS, Selection(runs=("c2-paired-s?",)))
    assert [run.diagnosed for run in runs] == [(0, 50, 100), (0, 100), (0, 100)]


def test_a_small_battery_diagnoses_the_start_of_a_line_s_first_run_alone() -> None:
    runs = specify(plan(battery="small"), ("small", "0" * 64), POOLS, Selection(runs=("c2-*-s[01]",)))
    assert {run.run_id: run.diagnosed for run in runs if run.arm in ("paired", "independent")} == {
        "c2-paired-s0": (0,),
        "c2-paired-s1": (),
        "c2-independent-s0": (),
        "c2-independent-s1": (),
    }


def test_evaluation_at_noise_is_that_of_training_where_none_is_named() -> None:
    (run,) = specify(plan(), ("small", "0" * 64), POOLS, Selection(runs=("c2-paired-s0",)))
    assert run.at_noise == "faults_p025"


def test_a_rate_that_is_not_the_regimes_is_refused() -> None:
    with pytest.raises(RuleError, match="fault_rate"):
        specify(plan(regime="faults_p010"), ("small", "0" * 64), POOLS)


def test_a_number_of_groups_that_training_does_not_give_is_refused() -> None:
    fixed = {"fault_rate": "0.25", "flip_rate": "0", "training_groups": 2401}
    with pytest.raises(RuleError, match="training_groups"):
        specify(plan(fixed=fixed), ("small", "0" * 64), POOLS)


def test_an_unknown_regime_is_refused() -> None:
    with pytest.raises(RuleError, match="regime"):
        plan(regime="storms")


def test_a_regime_of_evaluation_alone_is_refused() -> None:
    document = tomllib.loads(RULES.read_text())
    document["matrix"][0]["at_noise"] = "clean"
    with pytest.raises(RuleError, match="none of training"):
        read_plan(("primary",), document["training"], document["matrix"])


def test_a_matrix_without_regimes_cannot_be_played() -> None:
    document = tomllib.loads(RULES.read_text())
    frozen = read_plan(("primary",), document["training"], document["matrix"])
    with pytest.raises(IncompleteError, match="regime"):
        specify(frozen, ("small", "0" * 64), POOLS)


@pytest.mark.parametrize(
    "selection",
    [
        Selection(tiers=(4,)),
        Selection(rules=("H9",)),
        Selection(runs=("c9-*",)),
        Selection(tiers=(3,), rules=("H2a",)),
    ],
    ids=["tier", "rule", "run", "nothing in common"],
)
def test_a_selection_of_nothing_is_wrong_usage(selection: Selection) -> None:
    with pytest.raises(UsageError):
        names(selection)


def test_the_registered_sets_have_their_sizes() -> None:
    periodic = sum(len(found.identities) for found in periodic_sets("flips_q010"))
    final = sum(len(found.identities) for found in final_sets("flips_q010"))
    assert (periodic, final) == (64 * 5, 200 * 21)


def test_a_set_at_training_noise_that_is_there_already_is_not_played_twice() -> None:
    assert len(final_sets("faults_p025")) == 5
    assert len(periodic_sets("clean")) == 2


def with_recipe(**changes: Any) -> Plan:
    """Return the first registered line, with the paper's recipe; changes go to what is fixed."""
    document = tomllib.loads(RULES.read_text())
    line = {**document["matrix"][0], "regime": "faults_p025", "seeds": [0], "arms": ["paired"]}
    recipe = load_recipe("qwen3.5-2b").document()
    return read_plan(("primary",), {**document["training"], **changes}, [line], recipe=recipe)


def test_a_matrix_with_a_recipe_has_language_models_runs() -> None:
    recipe = load_recipe("qwen3.5-2b")
    (run,) = specify(with_recipe(), ("theirs", "0" * 64), POOLS)
    assert isinstance(run, LanguageModelSpecification)
    assert run.settings == recipe
    assert (run.model_commit, run.learning_rate) == (recipe.revision, recipe.optimizer.learning_rate)
    assert read_specification(json.loads(canonical(run.document()))) == run
    assert policy_of(run) == recipe.model


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"recipe_sha256": "0" * 64}, "recipe_sha256"),
        ({"model_commit": "0" * 40}, "model_commit"),
        ({"steps": 99, "training_groups": 99 * 24, "training_rollouts": 99 * 192}, "step.steps"),
    ],
)
def test_a_matrix_and_its_recipe_have_to_agree(changes: dict[str, Any], name: str) -> None:
    with pytest.raises(RuleError, match=name):
        specify(with_recipe(**changes), ("theirs", "0" * 64), POOLS)
