"""Why vLLM's server mode is not offered: TRL gives rollouts the turns of others. The server is a stand-in."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.stack import require_trainer


class Server:
    """Says after every prompt the prompt's own first token."""

    def generate(self, prompts: list[list[int]], n: int, **_: Any) -> dict[str, Any]:
        said = [[prompt[0]] for prompt in prompts for _ in range(n)]
        return {"prompt_ids": prompts, "completion_ids": said, "logprobs": [[[0.0]] for _ in said]}


def turns(prompts: list[list[int]], group_size: int) -> list[list[int]]:
    """Return the turn that TRL gives each rollout of a group, or of what is left of it."""
    require_trainer()
    from accelerate import PartialState
    from trl.generation.vllm_generation import VLLMGeneration

    PartialState(cpu=True)
    generation = VLLMGeneration.__new__(VLLMGeneration)
    generation.__dict__.update(
        mode="server",
        accelerator=SimpleNamespace(is_main_process=True, process_index=0),
        vllm_client=Server(),
        **dict.fromkeys(("temperature", "top_p", "min_p", "repetition_penalty"), 1.0),
        **dict.fromkeys(("top_k", "logprobs", "max_completion_length"), 0),
        **dict.fromkeys(("structured_outputs_regex", "generation_kwargs")),
    )
    _, completions, *_ = generation.generate(prompts, None, group_size, profiler=nullcontext())
    return list(completions)


def test_a_first_turn_is_its_rollout_s_own() -> None:
    assert turns([[7], [7], [8], [8]], 2) == [[7], [7], [8], [8]]


@pytest.mark.parametrize("left", [[[1], [2], [3], [4]], [[1], [2], [3]]])
def test_from_the_second_turn_on_a_rollout_is_given_the_turn_of_another(left: list[list[int]]) -> None:
    """Where this fails TRL has mended it, and a model of several GPUs may have a way."""
    assert turns(left, 2) != left
    assert turns(left, 2)[1] == [1]
    assert turns(left, 1) == left
