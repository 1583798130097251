"""vLLM, as far as TRL's trainer needs it: it says what is scripted, with log-probabilities that are chosen.

It tells the rollouts apart by their tokens: a prompt goes on from what one of them has said so far. A rollout
that has nothing more to say fails the test that asks it.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from tests.unit.lab.training.language_model.scripts import Part


class FakeVllm:
    """An engine in place of `trl`'s `VLLMGeneration`."""

    def __init__(self, max_model_len: int) -> None:
        config = SimpleNamespace(max_model_len=max_model_len)
        self.llm = SimpleNamespace(llm_engine=SimpleNamespace(model_config=config))
        self.parts: Callable[[], Sequence[Part]] = list
        self.weights: Sequence[float] = ()
        self.model: Any = None
        self.asked: list[int] = []
        self.synced = 0
        self.dies_at = -1
        self._so_far: list[list[int]] = []
        self._said: list[int] = []

    def begin(self) -> None:
        """Take up a new batch."""
        self._so_far, self._said = [], []

    def sync_weights(self) -> None:
        self.synced += 1

    def generate(self, *, prompts: list[list[int]], **_: Any) -> tuple[Any, ...]:
        """Return the next turn of each conversation, and the log-probability of each of its tokens."""
        if len(self.asked) == self.dies_at:
            raise EngineDeadError("EngineCore encountered an issue. See stack trace (above)")
        parts = self.parts()
        if not self._so_far:
            self._so_far, self._said = [[] for _ in parts], [0] * len(parts)
        self.asked.append(len(prompts))
        places = self._places(prompts)
        turns, logprobs = [], []
        for at, prompt in zip(places, prompts, strict=True):
            assert self._said[at] < len(parts[at].turns), "asked after the end"
            turn = list(parts[at].turns[self._said[at]])
            scored = self._scored(prompt, turn)
            if self._said[at] == 0:
                import math

                # The trainer's probability over the engine's is then the weight.
                scored[0] -= math.log(self.weights[at])
            self._said[at] += 1
            self._so_far[at] = prompt + turn
            turns.append(turn)
            logprobs.append([[number] for number in scored])
        return None, turns, logprobs, None

    def _places(self, prompts: list[list[int]]) -> list[int]:
        """Return which rollout each prompt is: their order never changes."""
        places, at = [], 0
        for prompt in prompts:
            while prompt[: len(self._so_far[at])] != self._so_far[at]:
                at += 1
            places.append(at)
            at += 1
        return places

    def _scored(self, prompt: list[int], turn: list[int]) -> list[float]:
        """Return the log-probability of a turn's tokens, read alone and without padding."""
        import torch

        with torch.no_grad():
            logits = self.model(input_ids=torch.tensor([prompt + turn])).logits[0, len(prompt) - 1 : -1]
        return logits.log_softmax(-1)[range(len(turn)), turn].tolist()


class EngineDeadError(Exception):
    """Named as vLLM's."""
