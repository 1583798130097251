"""Evaluation sets and the diagnostic, with own and with shared samples."""

from bisect import bisect_right
from collections.abc import Iterable
from hashlib import sha256
from itertools import accumulate, chain, islice, product
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.lab.evaluation.test_language_model import Mute
from tests.unit.lab.study.fake_play import specification
from toolkit.lab.episodes.episode import play
from toolkit.lab.evaluation.diagnostic import regime_diagnosed
from toolkit.lab.evaluation.play import SharedSamples, evaluate
from toolkit.lab.evaluation.sets import EvaluationSet, sets_at
from toolkit.lab.play import language_model_run
from toolkit.lab.play.segments import evaluated_with
from toolkit.lab.policies.agent import Rollout
from toolkit.lab.policies.loglinear import Choice, Policy, untrained
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import (
    decision_seed,
    evaluation_seed,
    sample_seed,
    sampling_seed,
    shared_seed,
    surface_seed,
    units,
)
from toolkit.structs import replace

POLICY = Policy(untrained(2), 2)


def sizes(at_noise: str) -> dict[str, tuple[int, int]]:
    """Return name → (tasks, schedules) of the sets at a run's last checkpoint."""
    return {s.name: (s.tasks, s.schedules) for s in sets_at("registered", at_noise, is_last=True)}


def test_the_registered_sets_of_a_run_under_faults() -> None:
    assert sizes("faults_p025") == {
        "periodic/clean": (64, 2),
        "periodic/faults_p025": (64, 2),
        "periodic/challenge": (64, 1),
        "final/clean": (200, 4),
        "final/faults_p010": (200, 4),
        "final/faults_p025": (200, 4),
        "final/held_out_types": (200, 4),
        "final/challenge": (200, 1),
    }
    assert {s.phase for s in sets_at("registered", "faults_p025", is_last=False)} == {"periodic"}
    # Training noise that is no final set is added.
    assert sizes("flips_q010")["final/flips_q010"] == (200, 4)
    with pytest.raises(ValueError, match="no battery"):
        sets_at("other", "clean", is_last=False)


@pytest.mark.parametrize(("at_noise", "regime"), [("flips_q010", "clean"), ("faults_p025", "faults_p025")])
def test_a_learning_curve_is_true_success_at_training_noise(at_noise: str, regime: str) -> None:
    for battery, tasks in (("learning", 300), ("curve", 100)):
        expected = EvaluationSet("periodic", "validation", regime, tasks, 2)
        assert sets_at(battery, at_noise, is_last=True) == (expected,)


def test_the_small_battery_has_the_registered_sets_with_fewer_episodes() -> None:
    registered = sets_at("registered", "flips_q010", is_last=True)
    small = sets_at("small", "flips_q010", is_last=True)
    assert [one.name for one in small] == [one.name for one in registered]
    pairs = list(zip(small, registered, strict=True))
    assert all(one.tasks <= other.tasks and one.schedules <= other.schedules for one, other in pairs)
    assert sum(one.tasks * one.schedules for one in small) == 64 * 3 + 64 * 5 + 64


@pytest.mark.parametrize(("battery", "tasks"), [("learning", [61]), ("small", [61] * 3 + [54] * 5)])
def test_sets_of_one_request_are_the_first_such_tasks_and_all_where_there_are_too_few(battery, tasks) -> None:
    alone = sets_at(battery, "faults_p025", is_last=True, sub_requests=1)
    every = sets_at(battery, "faults_p025", is_last=True)
    assert [one.tasks for one in alone] == tasks
    assert [one.name for one in alone] == [one.name for one in every]
    assert all(list(one.positions) == sorted(set(one.positions)) for one in alone)
    few = alone[0]._replace(tasks=3)
    assert few.positions == alone[0].positions[:3]


@pytest.mark.parametrize(
    ("training", "regime"),
    [("flips_q010", "faults_p025"), ("clean", "faults_p025"), ("faults_p010", "faults_p010")],
)
def test_runs_without_faults_are_diagnosed_under_the_default_mixture(training: str, regime: str) -> None:
    assert regime_diagnosed(training) == regime


SILENT, SPOKEN = (Policy(untrained(tokens), tokens) for tokens in (0, 16))
SOME = EvaluationSet("periodic", "validation", "faults_p025", 12, 2)
SHARED = SharedSamples("small f00d")


def rollout(policy: Policy, seed: int, task: int = 0, schedule: int = 0, *, shared: bool = True) -> Rollout:
    """Play one validation task under faults."""
    played, name = Rollout(policy, seed, shared=shared), load_task(f"validation:{task}")
    play(name, REGIMES[SOME.regime], evaluation_seed(name.task_id, schedule), played)
    return played


def stream(seed: int) -> Iterable[float]:
    """Yield the numbers of a stream, from its description alone."""
    for block in range(100):
        digest = sha256(b"stream/v1\0" + seed.to_bytes(8, "big") + block.to_bytes(8, "big")).digest()
        yield from ((int.from_bytes(digest[at : at + 8], "big") >> 11) / 2**53 for at in range(0, 32, 8))


def inverted(chosen: list[tuple[Choice, int]], numbers: Iterable[float]) -> list[int]:
    """Return what numbers choose: the first option at which the distribution function exceeds them."""
    pairs = zip(chosen, numbers, strict=False)
    return [bisect_right(list(accumulate(choice.probabilities)), unit) for (choice, _), unit in pairs]


@pytest.mark.parametrize("task", range(8))
def test_every_decision_and_every_token_is_made_by_the_number_of_its_place(task: int) -> None:
    seed = shared_seed(SHARED.root, SOME.name, (f"validation:{task}", 0, 0))
    played = rollout(SPOKEN, seed, task)
    for chosen, key in ((played.decisions, decision_seed(seed)), (played.tokens, surface_seed(seed))):
        assert [at for _, at in chosen] == inverted(chosen, stream(key))


def steps(policy: Policy, **how: Any) -> list[list[tuple[object, int]]]:
    """Return what a policy decided in some episodes: situations and choices."""
    seeds = [shared_seed(SHARED.root, SOME.name, (f"validation:{task}", 0, 0)) for task in range(20)]
    played = [rollout(policy, seed, task, **how) for task, seed in enumerate(seeds)]
    return [[(choice.on, at) for choice, at in each.decisions] for each in played]


def test_surface_tokens_move_no_decision_of_a_shared_sample_and_every_one_of_an_own() -> None:
    assert steps(SILENT) == steps(SPOKEN)
    assert steps(SILENT, shared=False) != steps(SPOKEN, shared=False)
    evaluated = [[evaluate(p, SOME, "r", 0, s) for p in (SILENT, SPOKEN)] for s in (SHARED, 1)]
    assert evaluated[0][0] == evaluated[0][1]
    assert evaluated[1][0] != evaluated[1][1]


def test_a_call_more_moves_no_number_of_a_later_decision() -> None:
    """A policy that always sends a call again has other calls, and the same number for each decision."""
    seed = shared_seed(SHARED.root, SOME.name, ("validation:3", 0, 0))
    other = Policy([0.0 if at % 3 else 2.0 for at in range(len(untrained(16)))], 16)
    lengths = set()
    for policy in (SPOKEN, other):
        played = rollout(policy, seed, 3)
        assert [at for _, at in played.decisions] == inverted(played.decisions, stream(decision_seed(seed)))
        lengths.add((len(played.decisions), len(played.tokens)))
    assert len(lengths) == 2


RUN = specification(sampling="shared", diagnosed=())
OTHERS = {
    "arm": replace(RUN, arm="independent"),
    "run": replace(RUN, run_id="another"),
    "seed": replace(RUN, seed=7),
    "condition": replace(RUN, condition="C9"),
    "tier": replace(RUN, tier=5),
}


def rows(run: Any, step: int = 0, policy: Policy = SPOKEN, played: EvaluationSet = SOME) -> list[Any]:
    """Evaluate a policy as a run's, and return the rows but for whose they are."""
    evaluated = evaluate(policy, played, run.run_id, step, evaluated_with(run))
    return [{name: row[name] for name in row if name not in {"run_id", "step"}} for row in evaluated]


@pytest.mark.parametrize("other", OTHERS)
def test_one_policy_has_the_same_episodes_whatever_run_it_is_evaluated_for(other: str) -> None:
    assert rows(RUN) == rows(OTHERS[other])
    own = [rows(replace(run, sampling="own")) for run in (RUN, OTHERS[other])]
    assert (own[0] == own[1]) == (other in {"arm", "condition", "tier"}), (
        "the run and its seed are in the key"
    )


def test_one_policy_has_the_same_episodes_at_every_step_whatever_was_played_before() -> None:
    assert rows(RUN, 0) == rows(RUN, 40)
    own = replace(RUN, sampling="own")
    assert rows(own, 0) != rows(own, 40)
    assert rows(RUN, played=SOME._replace(tasks=3)) == [row for row in rows(RUN) if row["task"] < 3]


def test_no_two_decisions_tokens_or_episodes_share_a_number() -> None:
    """Studies, sets, tasks, schedules, slots and places: all different, and of an own sample's too."""
    keys = product(("a", "a f00d"), ("periodic/x", "final/x"), (f"validation:{n}" for n in range(20)))
    shared = [
        shared_seed(root, name, (task, schedule, slot))
        for (root, name, task), schedule, slot in product(keys, range(3), range(3))
    ]
    own = [sample_seed(seed, 0, "periodic/x", ("validation:0", 0, 0)) for seed in range(50)]
    streams = [*own, *shared, *map(decision_seed, shared), *map(surface_seed, shared)]
    numbers = list(chain.from_iterable(islice(units(seed), 12) for seed in streams))
    assert len(set(numbers)) == len(numbers) == 12 * (3 * 720 + 50)


def test_every_set_has_samples_of_its_own() -> None:
    final = SOME._replace(phase="final")
    one, other = (
        [row["calls"] for row in evaluate(SPOKEN, played, "r", 0, SHARED)] for played in (SOME, final)
    )
    assert one != other


@pytest.mark.parametrize("run", [RUN, *OTHERS.values()], ids=["run", *OTHERS])
def test_a_language_model_s_run_shares_the_samples_of_its_sets_and_not_of_its_diagnostic(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the last step, by an engine that says nothing; the first block of the sets, and of the tables."""
    engine = Mute()
    recipe = SimpleNamespace(sampling=SimpleNamespace(max_turns=4))
    course = language_model_run._Course(None, run, print)  # type: ignore[arg-type]  # noqa: SLF001
    course.session = SimpleNamespace(engine=lambda: engine, recipe=recipe)  # type: ignore[assignment]
    monkeypatch.setattr(course, "_shared", lambda parts: [row for part in parts[:1] for row in part()])
    course._clear()  # noqa: SLF001
    course._evaluated(run.steps)  # noqa: SLF001
    course.diagnose(run.steps)
    (first, *_), (diagnosed, *_) = engine.seeds
    played = sets_at(run.battery, run.at_noise, is_last=True)[0]
    assert first == shared_seed(run.root, played.name, (f"{played.pool}:0", 0, 0))
    own = sampling_seed(run.root, run.run_id, run.seed)
    assert diagnosed == sample_seed(own, run.steps, "diagnostic", ("diagnostic:0", 0, 0))
