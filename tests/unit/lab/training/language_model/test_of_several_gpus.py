"""Why training offers no vLLM behind a server, nor one of several GPUs: rollouts are given others' turns.

The server, and the other process of a vLLM of two GPUs, are stand-ins.
"""

from collections.abc import Sequence
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


class Divided:
    """A vLLM of several GPUs that says the same."""

    def generate(self, prompts: list[dict[str, list[int]]], **_: Any) -> list[Any]:
        ids = [prompt["prompt_token_ids"] for prompt in prompts]
        said = [SimpleNamespace(token_ids=[i[0]], logprobs=None) for i in ids]
        return [
            SimpleNamespace(prompt_token_ids=i, outputs=[output]) for i, output in zip(ids, said, strict=True)
        ]


def generated(prompts: list[list[int]], group_size: int, **of_mode: Any) -> list[list[int]]:
    """Return the turn that TRL gives each rollout of a group, or of what is left of it."""
    require_trainer()
    from accelerate import PartialState
    from trl.generation.vllm_generation import VLLMGeneration

    PartialState(cpu=True)
    generation = VLLMGeneration.__new__(VLLMGeneration)
    generation.__dict__.update(
        accelerator=SimpleNamespace(is_main_process=True, process_index=0),
        **dict.fromkeys(("temperature", "top_p", "min_p", "repetition_penalty"), 1.0),
        **dict.fromkeys(("top_k", "logprobs", "max_completion_length"), 0),
        structured_outputs_regex=None,
        generation_kwargs={},
        **of_mode,
    )
    _, completions, *_ = generation.generate(prompts, None, group_size, profiler=nullcontext())
    return list(completions)


def turns(prompts: list[list[int]], group_size: int) -> list[list[int]]:
    return generated(prompts, group_size, mode="server", vllm_client=Server())


def test_a_first_turn_is_its_rollout_s_own() -> None:
    assert turns([[7], [7], [8], [8]], 2) == [[7], [7], [8], [8]]


@pytest.mark.parametrize("left", [[[1], [2], [3], [4]], [[1], [2], [3]]])
def test_from_the_second_turn_on_a_rollout_is_given_the_turn_of_another(left: list[list[int]]) -> None:
    """Where this fails TRL has mended it, and a model of several GPUs may have a way."""
    assert turns(left, 2) != left
    assert turns(left, 2)[1] == [1]
    assert turns(left, 1) == left


@pytest.mark.parametrize(("others", "are_own"), [([[1], [2]], True), ([[1], [2], [3]], False)])
def test_processes_with_unequal_numbers_of_rollouts_left_are_given_each_other_s_turns(
    monkeypatch: pytest.MonkeyPatch, others: list[list[int]], *, are_own: bool
) -> None:
    """The second process of two that share a vLLM; likewise: where this fails, TRL has mended it."""
    require_trainer()
    import torch
    from trl.generation import vllm_generation

    def gather(into: list[Any], mine: Sequence[Any], group: object) -> None:
        assert group == "both"
        into[:] = [others if mine == [[8], [9]] else [None] * len(others), mine]

    monkeypatch.setattr(torch.distributed, "all_gather_object", gather)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda group: int(group == "both"))
    monkeypatch.setattr(vllm_generation, "SamplingParams", lambda **_: None, raising=False)
    mine = generated(
        [[8], [9]],
        1,
        mode="colocate",
        tensor_parallel_size=2,
        tp_group="both",
        enable_sleep_mode=False,
        llm=Divided(),
        model=torch.nn.Identity(),
    )
    assert (mine == [[8], [9]]) is are_own
