"""Training runs of a few steps, with everything that a test may want to see of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.lab.training.language_model.scripts import MIXED, Part, ScriptedModel, by_place
from tests.unit.lab.training.language_model.small_model import specified
from toolkit.lab.episodes.desk import Agent
from toolkit.lab.policies.language_model.lockstep import speak
from toolkit.lab.training.language_model import session
from toolkit.lab.training.language_model.session import Moments, Session, open_session
from toolkit.registers.arrow import Row
from toolkit.specification import LanguageModelSpecification


class FakeVllm:
    """An engine in place of `trl`'s `VLLMGeneration`, which says what is scripted, with chosen weights.

    It tells the rollouts apart by their tokens: a prompt goes on from what one of them has said so far. A
    rollout that has nothing more to say fails the test that asks it.
    """

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
        assert all(self._said[at] < len(parts[at].turns) for at in places), "asked after the end"
        turns = [list(parts[at].turns[self._said[at]]) for at in places]
        logprobs = []
        for at, prompt, turn, scored in zip(
            places, prompts, turns, self._scored(prompts, turns), strict=True
        ):
            if self._said[at] == 0:
                # The trainer's probability over the engine's is then the weight.
                scored[0] -= math.log(self.weights[at])
            self._said[at] += 1
            self._so_far[at] = prompt + turn
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

    def _scored(self, prompts: list[list[int]], turns: list[list[int]]) -> list[list[float]]:
        """Return the log-probabilities of each turn's tokens; padding on the right is seen by none."""
        import torch

        whole = [torch.tensor(prompt + turn) for prompt, turn in zip(prompts, turns, strict=True)]
        with torch.no_grad():
            logits = self.model(input_ids=torch.nn.utils.rnn.pad_sequence(whole, batch_first=True)).logits
        return [
            row[len(prompt) - 1 :][range(len(turn)), turn].tolist()
            for row, prompt, turn in zip(logits.log_softmax(-1), prompts, turns, strict=True)
        ]


class EngineDeadError(Exception):
    """Named as vLLM's."""


@dataclass
class Step:
    """A step as the trainer had it, before it shuffled anything."""

    rows: list[dict[str, Any]]
    parts: list[Part]
    calls: list[int]
    output: dict[str, Any]
    gradient: Any = None
    scores: Any = None

    def completion(self, at: int) -> tuple[list[int], list[int]]:
        """Return a rollout's tokens after the prompt, and which of them count."""
        length = int(self.output["completion_mask"][at].sum())
        ids, mask = (self.output[name][at, :length].tolist() for name in ("completion_ids", "tool_mask"))
        return ids, mask

    def prompt(self, at: int) -> list[int]:
        """Return a rollout's prompt."""
        there = self.output["prompt_mask"][at].bool()
        return self.output["prompt_ids"][at][there].tolist()


@dataclass
class Trained:
    """A run that was trained to its end."""

    specification: LanguageModelSpecification
    session: Session
    groups: list[Row] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)
    stepped: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    start: dict[str, list[float]] = field(default_factory=dict)

    @property
    def rollouts(self) -> list[tuple[Row, int, Part]]:
        """Every rollout: the row of its group, its slot, and its script."""
        parts = [part for step in self.steps for part in step.parts]
        size = self.specification.group_size
        return [(self.groups[at // size], at % size, part) for at, part in enumerate(parts)]


def opened(model, folder, specification, groups, moments=None) -> Session:
    """Return a run's trainer."""
    nothing = Moments(lambda _: None, lambda _: None, lambda *_: None)
    return open_session(
        specification, model, folder, record=groups.extend, moments=moments or nothing, cpu=True
    )


def adapter_of(session: Session) -> dict[str, list[float]]:
    """Return the numbers of a trainer's adapter."""
    named = session.trainer.model.named_parameters()
    return {name: tensor.detach().flatten().tolist() for name, tensor in named if "lora_" in name}


def trained(
    model: str,
    folder: Path,
    settings: Sequence[str] = (),
    *,
    agents: Sequence[Agent] = MIXED,
    watch: Callable[[Trained], object] = lambda _: None,
    score: bool = False,
    engine: FakeVllm | None = None,
    **changed: Any,
) -> Trained:
    """Train a run whose rollouts say what is scripted."""
    from toolkit.lab.training.language_model import trainer as module

    specification = specified(model, settings, **changed)
    groups: list[Row] = []
    run = Trained(specification, None, groups)  # type: ignore[arg-type]
    moments = Moments(run.saved.append, run.stepped.append, lambda *_: None)
    with pytest.MonkeyPatch.context() as patch:
        if engine is not None:
            generate_with(patch, engine)
        run.session = opened(model, folder, specification, groups, moments)
    run.start = adapter_of(run.session)
    trainer = run.session.trainer
    tokenizer = trainer.chat.tokenizer
    find = by_place(tokenizer, specification, agents)
    record = trainer._record_groups

    def recorded(rows: list[dict[str, Any]], output: dict[str, Any]) -> None:
        charged = [environment._desk.calls for environment in trainer.environments]
        if engine is not None:
            engine.begin()
        kept = {name: tensor.clone() for name, tensor in output.items()}
        run.steps.append(Step(rows, [find(row) for row in rows], charged, kept))
        record(rows, output)

    def scripted(model: Any, *arguments: Any, **options: Any) -> Any:
        context = model.config.get_text_config().max_position_embeddings
        first, count = len(trainer._spoken), len(arguments[0])
        run.held.append(count)
        parts = [find(row) for row in trainer._rows][first : first + count]
        return speak(ScriptedModel(tokenizer, parts, context), *arguments, **options)

    trainer._record_groups = recorded
    if engine is not None:
        engine.model = trainer.model
        engine.parts = lambda: [find(row) for row in trainer._rows]
    if score:
        trainer.add_callback(_scoring(run))
    watch(run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "speak", scripted)
        run.session.train(None)
    return run


def generate_with(patch: pytest.MonkeyPatch, engine: FakeVllm) -> None:
    """Have trainers that are opened generate with an engine, as if it were vLLM."""
    from trl.trainer import grpo_trainer

    arguments = session.grpo_arguments
    patch.setattr(grpo_trainer, "VLLMGeneration", lambda **_: engine)
    patch.setattr(session, "grpo_arguments", lambda *a, **o: {**arguments(*a, **o), "use_vllm": True})


def _scoring(run: Trained) -> Any:
    """Return a callback that keeps the gradient and the scores of every step, before its update."""
    import numpy as np
    import torch
    from transformers import TrainerCallback

    from toolkit.lab.probe.lora import Scorer
    from toolkit.lab.probe.recorded import Transcript

    class Scoring(TrainerCallback):
        def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
            step, trainer = run.steps[-1], run.session.trainer
            transcripts = []
            for at in range(len(step.rows)):
                ids, mask = step.completion(at)
                before = step.prompt(at)
                chosen = (*([False] * len(before)), *map(bool, mask))
                transcripts.append(Transcript((*before, *ids), chosen))
            model = trainer.accelerator.unwrap_model(trainer.model).eval()
            scorer = Scorer(model, trainer.temperature)
            step.scores = np.stack(list(scorer.scores(transcripts))).astype(float)
            tensors = dict(model.named_parameters())
            parts = [tensors[name].grad.flatten() for name in scorer.coordinates.names]
            step.gradient = torch.cat(parts).double().numpy()
            model.train()

    return Scoring()
