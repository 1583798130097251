"""The scripted agents, held as conversations: the oracle for everything that holds some."""

import pytest

from toolkit.lab.episodes.agents import AGENTS
from toolkit.lab.episodes.document import episode_document
from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.language_model.conversation import Play, converse
from toolkit.lab.policies.language_model.scripted import ScriptedEngine, next_turn
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed

TASKS = tuple(load_task(f"validation:{number}") for number in range(12))


@pytest.mark.parametrize("agent", ["reference", "careless"])
@pytest.mark.parametrize("regime", ["clean", "faults_p025", "held_out_types", "challenge", "flips_q010"])
def test_an_agent_held_as_a_conversation_plays_its_own_episodes(agent: str, regime: str) -> None:
    noise = REGIMES[regime]
    plays = [Play(task, noise, evaluation_seed(task.task_id, 1), 0) for task in TASKS]
    held = converse(ScriptedEngine(agent), plays, traced=True)
    own = [play(p.task, p.regime, p.schedule_seed, AGENTS[agent], traced=True) for p in plays]
    assert [episode_document(episode) for episode in held] == [episode_document(episode) for episode in own]


def test_an_agent_that_is_done_says_nothing() -> None:
    messages = [{"role": "user", "content": "go"}, {"role": "tool", "content": '{"finished": true}'}]
    assert next_turn(lambda _, call: call("finish", {}) and None, messages).calls == ()
