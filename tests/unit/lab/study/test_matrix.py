"""The run matrix: from the registered lines to specifications."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolkit.canonical import canonical
from toolkit.errors import IncompleteError, RuleError, UsageError
from toolkit.lab.play.conclusion import policy_of
from toolkit.lab.play.matrix import EVERYTHING, Selection, specify
from toolkit.lab.training.recipe import load_recipe, recipe_of
from toolkit.rules.plan import Cell, Columns, Plan, read_plan
from toolkit.rules.sections import read
from toolkit.specification import LanguageModelSpecification, Specification, read_specification

RULES = Path(__file__).parents[4] / "prereg/paired-rollouts/rules.toml"
POOLS = {"train": "a" * 64}
BY_NOISE = {
    ("0.25", "0"): "faults_p025",
    ("0.10", "0"): "faults_p010",
    ("0", "0.10"): "flips_q010",
    ("0", "0.05"): "flips_q005",
    ("0", "0"): "clean",
}


def matrix(
    roles: tuple[str, ...], training: dict[str, Any], lines: list[dict[str, Any]], **more: Any
) -> Plan:
    cells = [read(Cell, line, "matrix") for line in lines]
    return read_plan(roles, Columns.decoded(training), cells, **more)


def plan(**changes: Any) -> Plan:
    """Return the registered matrix with a regime on every line but the last; changes go to the first."""
    document = tomllib.loads(RULES.read_text())
    for line in document["matrix"][:-1]:
        line["regime"] = BY_NOISE[line["fixed"]["fault_rate"], line["fixed"]["flip_rate"]]
        if line["regime"] == "clean":
            line["at_noise"] = "faults_p025"
    document["matrix"][0] |= changes
    return matrix(tuple(document["deciding_roles"]), document["training"], document["matrix"])


def piloted() -> Plan:
    """Return a matrix of one line, and a pilot of it that enters no decision."""
    document = tomllib.loads(RULES.read_text())
    line = {**document["matrix"][0], "regime": "faults_p025"}
    pilot = {**line, "tier": 0, "seeds": [900], "role": "pilot", "battery": "learning"}
    return matrix(("primary", "reference"), document["training"], [line, pilot])


def chosen(selection: Selection = EVERYTHING, of: Plan | None = None) -> tuple[Specification, ...]:
    return specify(of or plan(), ("small", "0" * 64), POOLS, selection)


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(rules=("H4",), runs=("*-s0",)), ["c4-paired-none-s0", "c4-independent-none-s0"]),
        (Selection((1,), ("H2a",), ("*-s2",)), ["c2-paired-s2", "c2-independent-s2"]),
    ],
)
def test_the_parts_of_a_selection_narrow_each_other(selection: Selection, names: list[str]) -> None:
    assert [run.run_id for run in chosen(selection)] == names


def test_a_specification_says_what_its_line_says_and_seeds_derive_from_the_registration_s_digest() -> None:
    assert (len(chosen()), len(chosen(Selection(tiers=(1,))))) == (38, 14)
    (run,) = chosen(Selection(runs=("c0-clean-s0",)))
    assert policy_of(run) == "log-linear"
    assert (run.regime, run.at_noise, run.role, run.steps) == ("clean", "faults_p025", "reference", 100)
    assert (run.root, run.pools) == ("small " + "0" * 64, POOLS)


def test_a_pilot_is_played_where_its_tier_is_asked_for_and_its_seeds_derive_from_the_name_alone() -> None:
    assert "c2-paired-s900" not in {run.run_id for run in chosen(of=piloted())}
    (run,) = chosen(Selection(tiers=(0,), runs=("c2-paired-s900",)), piloted())
    assert (run.root, run.role, run.diagnosed) == ("small", "pilot", ())


def test_the_middle_of_training_is_diagnosed_for_seed_0_alone() -> None:
    runs = chosen(Selection(runs=("c2-paired-s?",)))
    assert [run.diagnosed for run in runs] == [(0, 50, 100), (0, 100), (0, 100)]
    assert {run.at_noise for run in runs} == {"faults_p025"}


def test_a_small_battery_diagnoses_the_start_of_a_line_s_first_run_alone() -> None:
    runs = chosen(Selection(runs=("c2-*-s[01]",)), plan(battery="small"))
    diagnosed = {run.run_id: run.diagnosed for run in runs if run.arm in ("paired", "independent")}
    assert len(diagnosed) == 4
    assert {name: steps for name, steps in diagnosed.items() if steps} == {"c2-paired-s0": (0,)}


SET = {
    "optimizer": "gradient",
    "learning_rate": "20",
    "square_decay": "0.9",
    "surface_tokens": 0,
    "checkpoint_every": 50,
    "registers": "no_checkpoints",
}


def test_a_line_sets_how_its_runs_are_played() -> None:
    run, *others = chosen(of=plan(settings=SET))
    assert {name: getattr(run, name) for name in SET} == SET
    assert run.ends == (0, 50, 100)
    assert others[-1].optimizer == "adam"


DIGESTS = {
    arm: [f"{at + first:064x}" for at in range(3)] for arm, first in (("paired", 0), ("independent", 7))
}
NOTHING = {"fault_rate": "0.25", "flip_rate": "0", "training_groups": 0, "training_rollouts": 0}


def test_a_world_with_every_pool_has_the_whole_battery_and_the_diagnostic() -> None:
    run, *_ = chosen(of=plan(settings={"world": "published", "pools": POOLS}))
    assert (run.world, run.battery, run.diagnosed) == ("published", "registered", (0, 50, 100))


def evaluating(**changes: Any) -> Plan:
    """Return a matrix whose first line evaluates the checkpoints of another study."""
    checkpoints = {"study": "trained", "condition": "C5", "sha256": DIGESTS} | changes
    return plan(fixed=NOTHING, settings={"checkpoints": checkpoints}, battery="learning")


def test_a_line_names_the_checkpoints_that_each_of_its_runs_evaluates() -> None:
    runs = specify(evaluating(), ("small", "0" * 64), POOLS | {"validation": "b" * 64})
    first, last, trained = runs[0], runs[5], runs[-1]
    assert first.checkpoints == {"study": "trained", "run": "c5-paired-s0", "sha256": f"{0:064x}"}
    assert last.checkpoints == {"study": "trained", "run": "c5-independent-s2", "sha256": f"{9:064x}"}
    assert (first.trains, first.groups, first.diagnosed) == (False, 0, ())
    assert first.pools == {"validation": "b" * 64}, "the pools that it meets"
    assert (trained.trains, trained.groups, len(trained.pools)) == (True, 2400, 2)


def resampling(**changes: Any) -> dict[str, Any]:
    fixed = {"fault_rate": "0", "flip_rate": "0", **changes.pop("fixed", {})}
    return {"settings": {"constant_groups": "resampled"}, "arms": ["paired"], "fixed": fixed} | changes


def test_groups_are_resampled_where_outcomes_may_decide_how_many_there_are() -> None:
    document = tomllib.loads(RULES.read_text())
    training = {n: v for n, v in document["training"].items() if not n.startswith("training_")}
    for changes, problem in (
        (resampling(), ""),
        (resampling(arms=["paired", "blocking"]), "in pairs"),
        (resampling(fixed={"training_rollouts": 19200}), "fixes training_rollouts"),
        (resampling(fixed={"training_groups": 2400}), "fixes training_groups"),
    ):
        line = {**document["matrix"][0], "regime": "clean", **changes}
        resampled = matrix(("primary", "reference"), training, [line])
        if problem:
            with pytest.raises(RuleError, match=problem):
                chosen(of=resampled)
        else:
            assert {run.constant_groups for run in chosen(of=resampled)} == {"resampled"}


def test_a_language_model_s_recipe_says_how_it_is_trained() -> None:
    (run,) = chosen(of=with_recipe(settings={"sampling": "shared", "sub_requests": 1}))
    assert (run.sampling, run.sub_requests) == ("shared", 1)


def test_a_matrix_without_regimes_cannot_be_played_nor_evaluated_at_one() -> None:
    document = tomllib.loads(RULES.read_text())
    with pytest.raises(IncompleteError, match="regime"):
        chosen(of=matrix(("primary",), document["training"], document["matrix"]))
    document["matrix"][0]["at_noise"] = "clean"
    with pytest.raises(RuleError, match="none of training"):
        matrix(("primary",), document["training"], document["matrix"])


def test_a_selection_of_nothing_is_wrong_usage() -> None:
    with pytest.raises(UsageError):
        chosen(Selection(tiers=(3,), rules=("H2a",)))


def with_recipe(settings: dict[str, Any] | None = None, **changes: Any) -> Plan:
    """Return the first registered line, with the paper's recipe; changes go to what is fixed."""
    document = tomllib.loads(RULES.read_text())
    line = {**document["matrix"][0], "regime": "faults_p025", "seeds": [0], "arms": ["paired"]}
    line["settings"] = settings or {}
    recipe = load_recipe("qwen3.5-2b").document()
    return matrix(("primary",), {**document["training"], **changes}, [line], recipe=recipe)


def test_a_matrix_with_a_recipe_has_language_models_runs() -> None:
    recipe = load_recipe("qwen3.5-2b")
    (run,) = chosen(of=with_recipe())
    assert isinstance(run, LanguageModelSpecification)
    assert recipe_of(run) == recipe
    assert (run.model_commit, run.learning_rate) == (recipe.revision, recipe.optimizer.learning_rate)
    assert read_specification(json.loads(canonical(run.document())), "here") == run
    assert policy_of(run) == recipe.model


NO_SUCH = {
    "optimizer": ["lion"],
    "constant_groups": ["mixed"],
    "rounds": [3],
    "steps": [3],
    "learning_rate": [0.1, "0", "1e-3"],
    "square_decay": ["1", "-0.1", "much"],
    "surface_tokens": [-1, True, "2"],
    "checkpoint_every": [0, 30, 101],
}
WITHOUT_ONE = {"steps": 99, "training_groups": 99 * 24, "training_rollouts": 99 * 192}
NOTHING_TRAINED = {"checkpoints": {"study": "trained", "condition": "C5", "sha256": DIGESTS}}
# How the first line is changed, and a part of the message.
REFUSED: list[tuple[Callable[..., Plan], dict[str, Any], str]] = [
    (plan, {"regime": "faults_p010"}, "fault_rate"),
    (plan, {"fixed": {**NOTHING, "training_groups": 2401, "training_rollouts": 19200}}, "training_groups"),
    (plan, {"regime": "storms"}, "regime"),
    *((plan, {"settings": {name: value}}, name) for name, values in NO_SUCH.items() for value in values),
    *(
        (evaluating, changes, "checkpoints")
        for changes in (
            *({"study": ""}, {"condition": 5}, {"run": "c5-paired-s0"}, {"sha256": "0" * 64}),
            {"sha256": {"paired": DIGESTS["paired"]}},
            {"sha256": DIGESTS | {"clean": DIGESTS["paired"]}},
            {"sha256": DIGESTS | {"paired": DIGESTS["paired"][:2]}},
            {"sha256": DIGESTS | {"paired": ["0" * 63] * 3}},
        )
    ),
    # A line that trains nothing sets nothing of training.
    (plan, {"fixed": NOTHING, "settings": {**NOTHING_TRAINED, "optimizer": "sign"}}, "that no run has"),
    (plan, {"settings": NOTHING_TRAINED}, "training_groups"),
    # Without a pool of the diagnostic a foreign world has the learning curve alone.
    (plan, {"settings": {"world": "bfcl_turns", "pools": POOLS}}, "learning, curve, and settings.pools"),
    (plan, {"settings": {"world": "published"}}, "settings.pools"),
    (with_recipe, {"settings": {"optimizer": "sign"}}, "that no run has"),
    *((with_recipe, {"settings": {"sub_requests": n}}, "sub_requests") for n in (0, 4, "1", True)),
    (with_recipe, {"recipe_sha256": "0" * 64}, "recipe_sha256"),
    (with_recipe, {"model_commit": "0" * 40}, "model_commit"),
    (with_recipe, WITHOUT_ONE, "step.steps"),
]


@pytest.mark.parametrize(("of", "changes", "said"), REFUSED)
def test_a_line_that_cannot_be_played_is_refused(of: Any, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RuleError) as error:
        chosen(of=of(**changes))
    assert said in str(error.value)
