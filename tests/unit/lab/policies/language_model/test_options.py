"""Scripted agents as an engine, and the options of engines."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.stack import require_stack
from toolkit.errors import UsageError
from toolkit.lab.episodes.agents import AGENTS
from toolkit.lab.episodes.document import episode_document
from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.language_model import lockstep, opening
from toolkit.lab.policies.language_model.conversation import Play, converse
from toolkit.lab.policies.language_model.opening import (
    Opening,
    ScriptedEngine,
    identify,
    next_turn,
    open_engine,
)
from toolkit.lab.policies.language_model.options import EngineOptions, read_options
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_length", "is KEY=VALUE"),
        ("max_model_len=4096", "no engine option 'max_model_len'"),
        ("sleep=true", "no engine option 'sleep'"),
        *(
            (f"gpu_memory={value}", "gpu_memory is out of its range")
            for value in ("0", "1", "nan", "most", "-1")
        ),
        *((f"max_length={value}", "max_length is out of its range") for value in ("0", "4k", "1.5", "")),
        ("dtype=int8", "dtype is out of its range"),
        ("tensor_parallel=0", "tensor_parallel is out of its range"),
        ("conversations=-3", "conversations is out of its range"),
        ("prefix_caching=true", "prefix_caching is out of its range"),
        ("batched_tokens=0", "batched_tokens is out of its range"),
    ],
)
def test_what_is_no_option_or_out_of_its_range_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        read_options([text], "vllm")
    assert raised.value.expected


@pytest.mark.parametrize(
    ("engine", "text"),
    [
        ("transformers", "gpu_memory=0.5"),
        ("transformers", "tensor_parallel=2"),
        ("endpoint", "max_length=4096"),
        ("scripted", "conversations=4"),
    ],
)
def test_an_option_that_the_engine_does_not_heed_is_refused(engine: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"{engine} has no use for --engine-option"):
        read_options([text], engine)


def test_the_model_in_the_process_heeds_length_format_and_company(monkeypatch: pytest.MonkeyPatch) -> None:
    require_stack()
    import torch

    asked: list[tuple[int, Any]] = []

    def silent(model: Any, openings: Any, *_: Any, context: int | None, **__: Any) -> list[Any]:
        asked.append((len(openings), context))
        return []

    monkeypatch.setattr(lockstep, "speak", silent)
    options = read_options(["max_length=3000", "dtype=bfloat16", "conversations=2"], "transformers")
    engine = open_engine(Opening("transformers", "small", options=options))
    assert isinstance(engine, lockstep.LocalEngine)
    assert engine.model.dtype == torch.bfloat16
    desk = SimpleNamespace(close=lambda: None)
    task = SimpleNamespace(prompt="p", instructions="i", desk=lambda *_: desk)
    engine.play(
        [SimpleNamespace(task=task, regime=None, schedule_seed=0, seed=0, shared=False)] * 5, max_turns=1
    )  # type: ignore[list-item]
    assert asked == [(2, 3000), (2, 3000), (1, 3000)]
    open_engine.cache_clear()


def test_what_decides_turns_is_in_an_evaluation_s_identity_and_memory_is_not(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(opening, "model_commit", lambda *_: "0" * 64)
    plain = identify(Opening("vllm", str(tmp_path)))
    where = EngineOptions(gpu_memory=0.4, tensor_parallel=2)
    assert identify(Opening("vllm", str(tmp_path), options=where)) == plain
    decided = EngineOptions(max_length=4096, dtype="float16", conversations=8)
    identity = identify(Opening("vllm", str(tmp_path), options=decided))
    assert identity == {
        **plain,
        "engine_options": {"max_length": 4096, "dtype": "float16", "conversations": 8},
    }
