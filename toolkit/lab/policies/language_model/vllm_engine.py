"""A model in this process: vLLM, all conversations of a block at once, after a check of its policy."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from toolkit.errors import EXCERPT, IncompleteError
from toolkit.files import read_bytes
from toolkit.lab.policies.language_model.chat import Chat
from toolkit.lab.policies.language_model.conversation import (
    MAX_TOKENS,
    Conversation,
    Turn,
    context_too_small,
    opening,
)
from toolkit.lab.policies.language_model.loading import loading
from toolkit.lab.policies.language_model.options import UNTOLD, EngineOptions
from toolkit.lab.tasks.pools import load_task
from toolkit.seeds import turn_seed

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks of adapters that vLLM makes room for."""
_SIGN = 1
"""Seeds are handed on as signed numbers of 64 bits."""


class VllmEngine:
    """Takes turns with vLLM."""

    def __init__(
        self,
        llm: Any,
        chat: Chat,
        *,
        adapter: str | None = None,
        temperature: float = 1.0,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self._llm = llm
        self._chat = chat
        self._adapter = lora_request(adapter)
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._context = int(llm.llm_engine.model_config.max_model_len)

    def turns(self, conversations: Sequence[Conversation]) -> list[Turn]:
        """Return one turn of each conversation."""
        for talk in conversations:
            extend(talk, self._chat, self._context)
        # How many tokens the next turn may have; none are left where it is zero or less.
        rooms = [
            min(self._max_tokens + talk.opened, self._context) - len(talk.tokens) for talk in conversations
        ]
        asked = [(talk, left) for talk, left in zip(conversations, rooms, strict=True) if left > 0]
        answers = iter(self._generate(asked) if asked else [])
        return [
            self._turn(talk, next(answers)) if left > 0 else self._chat.turn((), talk.tokens, cut=True)
            for talk, left in zip(conversations, rooms, strict=True)
        ]

    def _generate(self, asked: Sequence[tuple[Conversation, int]]) -> list[Any]:
        from vllm import SamplingParams

        params = [
            SamplingParams(
                temperature=self._temperature,
                max_tokens=left,
                seed=turn_seed(talk.seed, talk.turns) >> _SIGN,
                logprobs=0,  # of the sampled token alone
                detokenize=False,
            )
            for talk, left in asked
        ]
        return generate(self._llm, [talk.tokens for talk, _ in asked], params, self._adapter)

    def _turn(self, talk: Conversation, answer: Any) -> Turn:
        (output,) = answer.outputs
        tokens = [int(token) for token in output.token_ids]
        turn = self._chat.turn(tokens, talk.tokens, cut=output.finish_reason == "length")
        for token, chances in zip(tokens, output.logprobs, strict=True):
            talk.said[len(talk.tokens)] = float(chances[token].logprob)
            talk.tokens.append(token)
        return turn


def generate(llm: Any, prompts: Sequence[list[int]], params: Sequence[Any], adapter: Any) -> list[Any]:
    """Return what vLLM says after each prompt."""
    from vllm.v1.engine.exceptions import EngineDeadError

    try:
        answers: list[Any] = llm.generate(
            [{"prompt_token_ids": tokens} for tokens in prompts],
            list(params),
            use_tqdm=False,
            lora_request=adapter,
        )
    except EngineDeadError as error:
        raise IncompleteError(
            "vLLM's engine died",
            found=str(error)[:EXCERPT],
            remedy="its own messages above say of what: mostly of too little GPU memory, or of another "
            "program on the same GPU; the same command goes on from what was recorded",
        ) from None
    return answers


def open_llm(
    model: str, revision: str | None = None, adapter: str | None = None, options: EngineOptions = UNTOLD
) -> Any:
    """Return a `vllm.LLM` with a model's weights."""
    check_installed()
    from vllm import LLM

    room_for = (
        {} if adapter is None else {"enable_lora": True, "max_loras": 1, "max_lora_rank": _rank(adapter)}
    )
    told = {**_of_model(model, revision), **options.for_vllm()}
    with taking_up(model):
        return LLM(
            model=model,
            # After the temperature, as sampled and as trained on.
            logprobs_mode="processed_logprobs",
            **told,
            **room_for,
        )


def check_installed(*others: str) -> None:
    """Refuse to go on without vLLM."""
    try:
        for name in ("vllm", *others):
            import_module(name)
    except ImportError as error:
        remedy = "pip install 'paired-rollouts-toolkit[gpu]'; to evaluate, a server does: --endpoint URL"
        raise IncompleteError("this engine needs vLLM, and vLLM a GPU", found=error, remedy=remedy) from None


@contextmanager
def taking_up(model: str) -> Iterator[None]:
    """Say in a line that vLLM cannot hold a model."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        raise IncompleteError(
            "vLLM cannot take up the model",
            found=f"{type(error).__name__}: {str(error)[:EXCERPT]}",
            where=model,
            remedy="its own messages above say why; another gpu_memory or a smaller max_length may help; to "
            "evaluate, --engine-option gives them, and a server may be asked: --endpoint URL",
        ) from None


@contextmanager
def opened_by_trainer(model: str, revision: str | None, options: EngineOptions = UNTOLD) -> Iterator[None]:
    """Have TRL open the same model as `open_llm`: of itself it hands vLLM the name alone."""
    from trl.generation import vllm_generation

    opened = vllm_generation.LLM
    told = {**_of_model(model, revision), **options.for_vllm()}
    vllm_generation.LLM = lambda **by_trl: opened(**{**by_trl, **told})
    try:
        yield
    finally:
        vllm_generation.LLM = opened


def _of_model(model: str, revision: str | None) -> dict[str, Any]:
    """Return what vLLM is told of a model: its revision, and how transformers reads its configuration.

    The share of a head that is rotated stands in a configuration once by itself and once among the parameters
    of the rotation. Of Qwen3.5, transformers heeds the latter; vLLM the former, or 0.25 where there is none.
    """
    with loading(model):
        from transformers import AutoConfig

        config: Any = AutoConfig.from_pretrained(model, revision=revision)
    text = config.get_text_config()
    rotation = getattr(text, "rope_parameters", None) or {}
    said = {}
    if "partial_rotary_factor" in rotation:
        said = {"partial_rotary_factor": rotation["partial_rotary_factor"], "rope_parameters": dict(rotation)}
    return {
        "revision": revision,
        "tokenizer_revision": revision,
        "hf_overrides": said if text is config else {"text_config": said},
    }


def lora_request(folder: str | None) -> Any:
    """Return the request for an adapter that goes with every prompt; None for none."""
    if folder is None:
        return None
    from vllm.lora.request import LoRARequest

    return LoRARequest("adapter", 1, folder)


def _rank(folder: str) -> int:
    path = Path(folder) / "adapter_config.json"
    try:
        rank = int(json.loads(read_bytes(path))["r"])
        return next(size for size in RANKS if size >= rank)
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        problem = "the adapter does not say its rank, or is too large for vLLM"
        expected = f"r of at most {RANKS[-1]}"
        found = f"{type(error).__name__}: {error}"
        raise IncompleteError(problem, expected=expected, found=found, where=path) from None


def extend(talk: Conversation, chat: Chat, context: int) -> None:
    """Bring a conversation's tokens up to its messages."""
    if not talk.tokens:
        talk.tokens = chat.opening(talk.messages)
        talk.opened = len(talk.tokens)
        if talk.opened >= context:
            raise context_too_small(talk.opened, context)
        return
    answers: list[dict[str, Any]] = []
    for message in reversed(talk.messages):
        if message["role"] != "tool":
            break
        answers.insert(0, message)
    talk.tokens += chat.after_call(answers)


SAID_BOUND = 0.02
"""Largest mean absolute difference of what was said, in nats a token."""
READ_BOUND = 0.1
"""Likewise of what was read: a token that nobody expected has the rounding of its logit in full. Logits of 16
to 32 are 0.125 apart in bfloat16, so that two that were rounded by themselves differ by 0.042 on average."""
CONVERSATIONS = 8
READ = 512
"""Most tokens that are read: each of them takes memory for a probability of every word."""
SAID = 64


class Apart(NamedTuple):
    """How far two engines' log-probabilities are apart: mean absolute differences, in nats a token."""

    read: float
    said: float


def check_agreement(llm: Any, chat: Chat, model: Any, adapter: str | None = None) -> Apart:
    """Compare the log-probabilities of vLLM and of transformers on the same tokens."""
    from vllm import SamplingParams

    tasks = [load_task(f"train:{number}") for number in range(CONVERSATIONS)]
    read = [chat.opening(opening(task.prompt))[:READ] for task in tasks]
    params = [
        SamplingParams(max_tokens=SAID, seed=number, logprobs=0, prompt_logprobs=0, detokenize=False)
        for number in range(CONVERSATIONS)
    ]
    answers = generate(llm, read, params, lora_request(adapter))  # 1
    of_read: list[float] = []
    of_said: list[float] = []
    for tokens, answer in zip(read, answers, strict=True):
        (said,) = answer.outputs
        whole = [*tokens, *said.token_ids]
        mine = [*answer.prompt_logprobs[1:], *said.logprobs]
        theirs = _logprobs(model, whole)  # 2
        differences = [
            abs(at[token].logprob - other) for at, token, other in zip(mine, whole[1:], theirs, strict=True)
        ]
        of_read += differences[: len(tokens) - 1]
        of_said += differences[len(tokens) - 1 :]
    apart = Apart(sum(of_read) / len(of_read), sum(of_said) / len(of_said))
    if not (apart.read <= READ_BOUND and apart.said <= SAID_BOUND):  # 3
        raise IncompleteError(
            "vLLM and transformers have two policies where they should have one",
            expected=f"log-probabilities that differ, on average, by {SAID_BOUND} or less where vLLM sampled "
            f"and by {READ_BOUND} or less where it read",
            found=f"{apart.said:.3f} over {len(of_said)} sampled tokens, {apart.read:.3f} over "
            f"{len(of_read)} that were read",
            where=llm.llm_engine.model_config.model,
            remedy="look for what they read differently: configuration, weights, adapter, versions; until "
            "then generate and evaluate with transformers (engine.kind=transformers, --engine transformers)",
        )
    return apart


def _logprobs(model: Any, tokens: Sequence[int]) -> list[float]:
    import torch

    ids = torch.tensor([tokens], device=model.device)
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0, :-1]
    scores: list[float] = logits.float().log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0].tolist()
    return scores
