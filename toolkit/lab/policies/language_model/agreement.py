"""Whether vLLM has the policy that transformers has, before anything that it samples is recorded.

1. vLLM reads how a few conversations begin, samples what follows, and says how likely each token was.
2. The model of transformers reads the same tokens.
3. What was read (a prompt at once) and what was said (token by token) are compared by themselves: the
   log-probabilities of both may differ by what their number formats round, and no more.

A configuration that both read differently, other weights, or an adapter that was left out show here; nothing
else would show them but a run that learns less than it might.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from toolkit.errors import IncompleteError
from toolkit.lab.policies.language_model.chat import Chat
from toolkit.lab.policies.language_model.conversation import opening
from toolkit.lab.policies.language_model.vllm_engine import generate, lora_request
from toolkit.lab.tasks.pools import load_task

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
    """Return the log-probability of each token after the first."""
    import torch

    ids = torch.tensor([tokens], device=model.device)
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0, :-1]
    scores: list[float] = logits.float().log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0].tolist()
    return scores
