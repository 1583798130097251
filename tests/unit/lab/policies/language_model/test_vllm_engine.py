"""The vLLM engine against a stub, in seconds; `tests/vllm` has the real one.

The stub in `sys.modules` has exactly what the engine uses of vLLM 0.27.1, by the names and arguments of its
source: `LLM(…)`, `LLM.generate`, `SamplingParams`, `LoRARequest` and `EngineDeadError`; anything else fails.
What it says is the reference agent's calls, as tokens of a tokenizer that has one token a character.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.unit.stack import require_stack, require_trainer
from toolkit.errors import IncompleteError, UsageError
from toolkit.lab.episodes.agents import reference
from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.language_model.conversation import Conversation, Play, Turn, converse, opening
from toolkit.lab.policies.language_model.loading import model_path
from toolkit.lab.policies.language_model.opening import next_turn
from toolkit.lab.policies.language_model.options import EngineOptions
from toolkit.lab.policies.language_model.vllm_engine import (
    CONVERSATIONS,
    READ,
    VllmEngine,
    check_agreement,
    open_llm,
    opened_by_trainer,
)
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed, turn_seed

CONTEXT = 100_000
REFUSED = {"role": "tool", "tool_call_id": "0", "name": "x", "content": '{"error": {"code": "outage"}}'}


class Spelling:
    """A chat of one token a character: messages and calls as JSON, a line each."""

    def opening(self, messages: Sequence[dict[str, Any]]) -> list[int]:
        return _spelled("".join(json.dumps(message) + "\n" for message in messages))

    def after_call(self, answers: Sequence[dict[str, Any]]) -> list[int]:
        return _spelled("".join(json.dumps(answer) + "\n" for answer in answers))

    def turn(self, tokens: Sequence[int], before: Sequence[int], *, cut: bool) -> Turn:
        assert before
        said = json.loads(_read(tokens)) if tokens else []
        return Turn(tuple((name, arguments) for name, arguments in said), "", tuple(tokens), cut)


def _spelled(text: str) -> list[int]:
    return [ord(character) for character in text]


def _read(tokens: Sequence[int]) -> str:
    return "".join(map(chr, tokens))


@dataclass
class SamplingParams:
    max_tokens: int
    seed: int
    logprobs: int
    detokenize: bool
    temperature: float = 1.0
    prompt_logprobs: int | None = None


@dataclass
class LoRARequest:
    lora_name: str
    lora_int_id: int
    lora_path: str


class EngineDeadError(Exception):
    pass


@dataclass
class LLM:
    """What the engine uses of vLLM's, and nothing else."""

    model: str = "m"
    revision: str | None = None
    tokenizer_revision: str | None = None
    hf_overrides: dict[str, Any] = field(default_factory=dict)
    logprobs_mode: str = ""
    enable_lora: bool = False
    max_loras: int = 1
    max_lora_rank: int = 16
    gpu_memory_utilization: float = 0.9
    max_model_len: int | None = None
    dtype: str = "auto"
    tensor_parallel_size: int = 1
    max_num_seqs: int | None = None
    finish_reason: str = "stop"
    generated: list[tuple[Any, Any, Any]] = field(default_factory=list)
    llm_engine: Any = field(
        default_factory=lambda: SimpleNamespace(model_config=SimpleNamespace(max_model_len=CONTEXT))
    )

    def generate(self, prompts, sampling_params, *, use_tqdm, lora_request=None) -> list[Any]:
        assert not use_tqdm
        prompts = [{"prompt_token_ids": list(prompt["prompt_token_ids"])} for prompt in prompts]
        self.generated.append((prompts, sampling_params, lora_request))
        return [self._answer(prompt["prompt_token_ids"]) for prompt in prompts]

    def said(self, tokens: Sequence[int]) -> list[int]:
        messages = [json.loads(line) for line in _read(tokens).replace("][", "]\n[").splitlines()]
        turn = next_turn(reference, [m for m in messages if isinstance(m, dict)])
        return _spelled(json.dumps(turn.calls) + "\n")

    def _answer(self, tokens: Sequence[int]) -> Any:
        said = self.said(tokens)
        logprobs = [{token: SimpleNamespace(logprob=-0.5)} for token in said]
        completion = SimpleNamespace(token_ids=said, logprobs=logprobs, finish_reason=self.finish_reason)
        return SimpleNamespace(outputs=[completion])


@pytest.fixture(autouse=True)
def vllm(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    names = {
        "vllm": {"LLM": LLM, "SamplingParams": SamplingParams},
        "vllm.v1": {},
        "vllm.v1.engine": {},
        "vllm.v1.engine.exceptions": {"EngineDeadError": EngineDeadError},
        "vllm.lora": {},
        "vllm.lora.request": {"LoRARequest": LoRARequest},
    }
    for name, parts in names.items():
        module = ModuleType(name)
        vars(module).update(parts)
        monkeypatch.setitem(sys.modules, name, module)
    return sys.modules["vllm"]


def engine(llm: LLM, **changes: Any) -> VllmEngine:
    return VllmEngine(llm, Spelling(), **changes)  # type: ignore[arg-type]


def conversation(seed: int = 3) -> Conversation:
    return Conversation(opening(load_task("validation:0").prompt), seed)


def test_episodes_played_by_tokens_are_the_reference_agents_own() -> None:
    tasks = [load_task(f"validation:{number}") for number in range(4)]
    plays = [Play(t, REGIMES["faults_p025"], evaluation_seed(t.task_id, 0), 0) for t in tasks]
    held = converse(engine(LLM()), plays, traced=True)
    assert [episode.trace for episode in held] == [
        play(p.task, p.regime, p.schedule_seed, reference, traced=True).trace for p in plays
    ]


def test_every_request_has_the_adapter_and_the_seed_of_its_conversation_and_turn() -> None:
    llm, talk = LLM(), conversation(7)
    talk.turns = 2
    engine(llm, temperature=0.7, adapter="folder").turns([talk])
    ((_, (params,), adapter),) = llm.generated
    assert adapter == LoRARequest("adapter", 1, "folder")
    assert params.seed == turn_seed(7, 2) >> 1 < 2**63
    assert params.temperature == 0.7


@pytest.mark.parametrize(("reason", "cut"), [("stop", False), ("length", True)])
def test_a_turn_holds_its_tokens_and_whether_they_ran_out(reason: str, *, cut: bool) -> None:
    talk = conversation()
    (turn,) = engine(LLM(finish_reason=reason)).turns([talk])
    assert json.loads(_read(turn.tokens))[0][0] == turn.calls[0][0]
    assert talk.said == dict.fromkeys(range(talk.opened, talk.opened + len(turn.tokens)), -0.5)
    assert turn.cut is cut


def test_a_turn_may_have_what_is_left_of_the_conversation() -> None:
    llm, talk = LLM(), conversation()
    held = engine(llm, max_tokens=500)
    held.turns([talk])
    talk.messages.append(REFUSED)
    used = len(talk.tokens) - talk.opened
    answer = len(Spelling().after_call(talk.messages[-1:]))
    held.turns([talk])
    assert [params.max_tokens for _, (params,), _ in llm.generated] == [500, 500 - used - answer]


def test_a_context_too_small_for_the_task_is_told() -> None:
    llm = LLM(llm_engine=SimpleNamespace(model_config=SimpleNamespace(max_model_len=50)))
    with pytest.raises(UsageError, match="context is too small"):
        engine(llm).turns([conversation()])


def test_a_dead_engine_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LLM, "generate", Mock(side_effect=EngineDeadError("EngineCore encountered it.")))
    with pytest.raises(IncompleteError, match="vLLM's engine died") as raised:
        engine(LLM()).turns([conversation()])
    assert "goes on from what was recorded" in (raised.value.remedy or "")


@pytest.mark.parametrize(("rank", "room"), [(1, 1), (4, 8), (257, 320)])
def test_room_is_made_for_the_adapters_rank(tmp_path: Path, rank: int, room: int) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({"r": rank}))
    require_stack()
    llm = open_llm(model_path("small"), None, str(tmp_path))
    assert (llm.enable_lora, llm.max_lora_rank) == (True, room)
    assert llm.logprobs_mode == "processed_logprobs", "those after the temperature"


def test_vllm_is_told_how_transformers_reads_the_configuration(tmp_path: Path) -> None:
    """Also where the language model's part of it stands within another's, as in the published models."""
    require_stack()
    from transformers import AutoConfig, Qwen3_5Config

    text = AutoConfig.from_pretrained(model_path("small"))
    llm = open_llm(model_path("small"), "c0ffee")
    assert llm.hf_overrides["partial_rotary_factor"] == 1.0
    assert (llm.revision, llm.tokenizer_revision) == ("c0ffee", "c0ffee")
    Qwen3_5Config(text_config=text.to_dict()).save_pretrained(tmp_path)
    told = open_llm(str(tmp_path)).hf_overrides["text_config"]
    assert told == {"partial_rotary_factor": 1.0, "rope_parameters": text.rope_parameters}


def test_the_trainer_opens_the_revision_of_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    require_trainer()
    monkeypatch.delitem(sys.modules, "vllm")  # TRL looks for the real one, and works without
    from trl.generation import vllm_generation

    monkeypatch.setattr(vllm_generation, "LLM", LLM, raising=False)
    told = EngineOptions(dtype="float16", conversations=5)
    with opened_by_trainer(model_path("small"), "c0ffee", told):
        llm = vllm_generation.LLM(model="m", max_num_seqs=192, max_model_len=99)  # as TRL calls it
    assert (llm.dtype, llm.max_num_seqs, llm.max_model_len) == ("float16", 5, 99)
    assert (llm.revision, llm.tokenizer_revision) == ("c0ffee", "c0ffee")
    assert llm.hf_overrides["partial_rotary_factor"] == 1.0
    assert vllm_generation.LLM is LLM


@pytest.mark.parametrize("text", ["", "{}", '{"r": 4096}', '{"r": "x"}'])
def test_an_adapter_without_a_rank_that_fits_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "adapter_config.json").write_text(text)
    with pytest.raises(IncompleteError, match="does not say its rank"):
        open_llm("m", None, str(tmp_path))


def test_a_model_that_vllm_cannot_hold_is_told(vllm: ModuleType) -> None:
    full = Mock(side_effect=RuntimeError("Engine core initialization failed"))
    vllm.LLM = full  # type: ignore[attr-defined]
    require_stack()
    with pytest.raises(IncompleteError, match="cannot take up the model") as raised:
        open_llm(model_path("small"))
    assert "Engine core" in (raised.value.found or "")


def test_without_vllm_it_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(IncompleteError, match="needs vLLM") as raised:
        open_llm("m")
    assert "[gpu]" in (raised.value.remedy or "")


# What is compared of two engines, and what is refused.

WORDS, SAYS = 7, [3, 1, 4]


class Model:
    """Finds each word likelier the larger the one before it."""

    device = "cpu"

    def __call__(self, input_ids: Any) -> Any:
        import torch

        return SimpleNamespace(logits=torch.outer(input_ids[0].float(), torch.arange(WORDS) / 10)[None])


class Agreeing:
    """Says the same always, its log-probabilities the model's, but off where it read and where it said."""

    llm_engine = SimpleNamespace(model_config=SimpleNamespace(model="m"))

    def __init__(self, read: float, said: float) -> None:
        self.off = (read, said)
        self.asked: list[list[int]] = []

    def generate(self, prompts: Any, params: Any, **_: Any) -> list[Any]:
        assert [one.seed for one in params] == list(range(CONVERSATIONS))
        self.asked += [prompt["prompt_token_ids"] for prompt in prompts]
        return [self._answer(tokens) for tokens in self.asked]

    def _answer(self, tokens: list[int]) -> Any:
        import torch

        whole = [*tokens, *SAYS]
        logits = Model()(torch.tensor([whole])).logits[0].log_softmax(-1)
        scored = [
            {token: SimpleNamespace(logprob=float(logits[at, token]) + self.off[at + 1 >= len(tokens)])}
            for at, token in enumerate(whole[1:])
        ]
        said = SimpleNamespace(token_ids=SAYS, logprobs=scored[len(tokens) - 1 :])
        return SimpleNamespace(prompt_logprobs=[None, *scored[: len(tokens) - 1]], outputs=[said])


CHAT: Any = SimpleNamespace(opening=lambda messages: [len(str(messages)) % WORDS, 2, 5] * READ)


@pytest.mark.parametrize(("read", "said"), [(0, 0), (0.09, 0.019), (-0.09, -0.019)])
def test_engines_that_round_otherwise_agree(read: float, said: float) -> None:
    require_stack()
    llm = Agreeing(read, said)
    apart = check_agreement(llm, CHAT, Model())
    assert apart == pytest.approx((abs(read), abs(said)), abs=1e-6)
    assert {len(tokens) for tokens in llm.asked} == {READ}


@pytest.mark.parametrize(("read", "said"), [(0.11, 0), (0, 0.021), (0, -0.021), (0, float("nan"))])
def test_two_policies_are_refused(read: float, said: float) -> None:
    require_stack()
    with pytest.raises(IncompleteError, match="have two policies") as raised:
        check_agreement(Agreeing(read, said), CHAT, Model())
    assert raised.value.where == "m"
    assert f"over {CONVERSATIONS * len(SAYS)} sampled tokens" in (raised.value.found or "")
