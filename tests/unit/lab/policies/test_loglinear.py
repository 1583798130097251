"""The log-linear policy and its scores."""

import math
from itertools import islice

import pytest

from toolkit.lab.episodes.agents import reference
from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.agent import Rollout
from toolkit.lab.policies.loglinear import Policy, layout, untrained
from toolkit.lab.policies.score import score, weighted_scores
from toolkit.lab.policies.situations import ACTIONS, Situation
from toolkit.lab.policies.start import SHIFTS, START
from toolkit.lab.tasks.pools import load_task, tasks
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed

TOKENS = 4


def rollout(policy: Policy, number: int, regime: str = "faults_p025") -> Rollout:
    """Play one validation task and return what the policy chose."""
    task = load_task(f"validation:{number}")
    played = Rollout(policy, number)
    play(task, REGIMES[regime], evaluation_seed(task.task_id, 0), played)
    return played


def log_probability(policy: Policy, played: Rollout) -> float:
    """Return the log-probability of a rollout's choices, from the definition."""
    chosen = [policy.action(choice.on).probabilities[at] for choice, at in played.decisions]
    chosen += [policy.token(choice.on).probabilities[at] for choice, at in played.tokens]
    return math.fsum(map(math.log, chosen))


def careful() -> Policy:
    """Return a policy that makes every call and recovers from every fault that can be recovered from."""
    wanted = dict.fromkeys(("read", "write", "refused"), "go")
    wanted |= dict.fromkeys(("timeout", "stale", "dropout"), "reread")
    wanted |= {"transient": "retry", "rate_limit": "wait_as_told", "outage": "skip", "truncated": "paginate"}
    parameters = [40.0 if wanted[feature[0]] == action else 0.0 for feature, action in layout(0).actions]
    return Policy(parameters, 0)


@pytest.mark.parametrize("surface_tokens", [0, TOKENS])
def test_a_score_is_the_gradient_of_the_log_probability(surface_tokens: int) -> None:
    start = list(untrained(surface_tokens))
    policy = Policy(start, surface_tokens)
    played = rollout(policy, 3)
    found = score(policy, played)
    step = 1e-6
    for place in range(0, len(start), 7):
        above, below = list(start), list(start)
        above[place] += step
        below[place] -= step
        slope = log_probability(Policy(above, surface_tokens), played) - log_probability(
            Policy(below, surface_tokens), played
        )
        assert found[place] == pytest.approx(slope / (2 * step), abs=1e-7)


def test_a_weighted_sum_of_scores_is_the_sum_of_weighted_scores() -> None:
    policy = Policy(untrained(TOKENS), TOKENS)
    rollouts = [rollout(policy, number) for number in range(4)]
    weights = [1.5, -0.5, 0.25, -1.25]
    expected = [
        math.fsum(w * part for w, part in zip(weights, parts, strict=True))
        for parts in zip(*(score(policy, r) for r in rollouts), strict=True)
    ]
    found = weighted_scores(policy, zip(rollouts, weights, strict=True))
    assert found == pytest.approx(expected, abs=1e-12)


def test_every_call_has_a_surface_token() -> None:
    policy = Policy(untrained(TOKENS), TOKENS)
    task = load_task("validation:5")
    played = Rollout(policy, 5)
    episode = play(task, REGIMES["clean"], 0, played, traced=True)
    assert [choice.on for choice, _ in played.tokens] == [call.tool for call in episode.trace or ()]


def test_the_start_is_a_distribution_over_the_actions_that_are_allowed() -> None:
    assert {kind: set(START[kind]) for kind in ACTIONS} == {kind: set(a) for kind, a in ACTIONS.items()}
    assert [math.fsum(START[kind].values()) for kind in ACTIONS] == pytest.approx([1.0] * len(ACTIONS))
    assert set(SHIFTS) <= set(layout(0).actions)


def test_a_plain_situation_has_the_start_probabilities() -> None:
    policy = Policy(untrained(0), 0)
    found = policy.action(Situation("dropout", "cancel_pending", 0, 0, is_write=False, late=False))
    assert dict(zip(ACTIONS["dropout"], found.probabilities, strict=True)) == pytest.approx(
        dict(START["dropout"]), abs=1e-6
    )


def test_a_policy_with_another_number_of_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="the policy has"):
        Policy([0.0], TOKENS)


@pytest.mark.parametrize("number", range(0, 60, 6))
def test_a_careful_policy_makes_the_reference_agents_calls_on_clean_tasks(number: int) -> None:
    task = load_task(f"train:{number}")
    mine = play(task, REGIMES["clean"], 0, Rollout(careful(), 0), traced=True)
    theirs = play(task, REGIMES["clean"], 0, reference, traced=True)
    calls = [(c.tool, c.arguments) for c in mine.trace or () if c.tool != "finish"]
    assert calls == [(c.tool, c.arguments) for c in theirs.trace or () if c.tool != "finish"]


def test_a_careful_policy_recovers_from_everything_but_outages() -> None:
    regime = REGIMES["faults_p025_outage_free"]
    played = [
        play(task, regime, evaluation_seed(task.task_id, 0), Rollout(careful(), 0))
        for task in islice(tasks("validation"), 100)
    ]
    assert {e.ended for e in played if not e.true_success} <= {"budget_exceeded"}


def test_the_prompt_and_the_answers_are_all_that_the_agent_gets() -> None:
    policy = Policy(untrained(TOKENS), TOKENS)
    task = load_task("train:3")
    seen = []
    Rollout(policy, 1)(task.prompt, lambda tool, _: seen.append(tool) or {"error": {"code": "episode_over"}})
    assert len(seen) == 1
