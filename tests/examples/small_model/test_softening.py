"""What the softened model is shown: tasks of one request, most played with care and many without."""

from collections import Counter
from typing import Any

from small_model.lessons import conversation
from small_model.softening import CARELESS, SIZE, demonstrations

from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.episodes.agents import AGENTS, watched_careless
from toolkit.lab.episodes.brief import read_prompt
from toolkit.lab.episodes.episode import play
from toolkit.lab.tasks.pools import load_task, positions
from toolkit.noise.regimes import REGIMES

FAULTS = REGIMES["faults_p025"]
BATCHES = [demonstrations(0, number) for number in range(12)]
TALKS = [talk for batch in BATCHES for talk in batch]


def calls(talk: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    made = [message["tool_calls"][0]["function"] for message in talk if message["role"] == "assistant"]
    return [(call["name"], call["arguments"]) for call in made]


def gives_up(talk: list[dict[str, Any]]) -> bool:
    """Whether it goes on after an error that says to try again, neither waiting nor calling once more."""
    answers = [message["content"] for message in talk if message["role"] == "tool"]
    pairs = zip(calls(talk), answers, calls(talk)[1:], strict=False)
    return any(
        "temporarily_unavailable" in answer and after[0] not in {"wait", before[0]}
        for before, answer, after in pairs
    )


def test_a_batch_is_a_function_of_the_seed_and_its_number() -> None:
    assert demonstrations(0, 3) == BATCHES[3]
    assert demonstrations(1, 3) != BATCHES[3]
    assert {len(batch) for batch in BATCHES} == {SIZE}


def test_every_task_has_one_request_and_every_call_is_a_tool_s() -> None:
    assert {len(read_prompt(talk[0]["content"]).errands) for talk in TALKS} == {1}
    assert {name for talk in TALKS for name, _ in calls(talk)} <= set(TOOLS)
    assert {calls(talk)[-1][0] for talk in TALKS} >= {"finish"}


def test_some_give_up_at_an_error_and_more_do_not() -> None:
    """A transient error stands in a third of the conversations; the careless agent ends the errand there."""
    met = [talk for talk in TALKS if any("temporarily_unavailable" in str(m["content"]) for m in talk)]
    counted = Counter(map(gives_up, met))
    assert len(met) > len(TALKS) / 10
    share = counted[True] / len(met)
    # Three standard errors of a share of `CARELESS` percent.
    assert abs(share - CARELESS / 100) < 3 * (0.24 / len(met)) ** 0.5


def test_a_careless_conversation_is_that_agent_s_episode_whether_it_fails_or_not() -> None:
    outcomes = set()
    for number in positions("train", 1)[:20]:
        task = load_task(f"train:{number}")
        talk = conversation(task, FAULTS, 7, watched_careless, failed=True)
        played = play(task, FAULTS, 7, AGENTS["careless"], traced=True)
        assert talk is not None
        assert [name for name, _ in calls(talk)] == [call.tool for call in played.trace or ()]
        kept = conversation(task, FAULTS, 7, watched_careless)
        assert (kept == talk) is played.true_success
        outcomes.add(played.true_success)
    assert outcomes == {True, False}
