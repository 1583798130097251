"""TRL's trainer, with groups that are what the register says of them.

What is added to `GRPOTrainer`, step by step; the code repeats the numbers:

1. Before a batch is played, every rollout is told its group, its slot and its schedule seed, and whatever is
   sampled is seeded by the run, the step and the process: a run that was cut off samples the same again.
2. Every call that the model attempts meets the rollout's desk, unknown tools and odd arguments too.
3. With vLLM, TRL's own loop takes the turns; a rollout whose episode is over gets an empty one, so that
   nobody waits for what it would say after it. Without vLLM that loop would read every conversation again at
   each turn: the rollouts are played token by token instead, whole.
4. Before the trainer shuffles the batch, its groups are recorded: outcomes, rewards and schedule seeds as the
   environments had them, advantages and importance weights as the trainer computed them.
5. Whoever wants to know is told how far a step has come: its rollouts, then its micro-batches.
6. How long a step's rollouts take to play joins the trainer's figures.
7. Log-probabilities are computed of so many sequences at once as the recipe says: their logits take memory.

Importing this module imports TRL; nothing else here does.
"""

import json
import time
from collections.abc import Callable, Sequence
from copy import copy
from itertools import count
from typing import Any

import torch
from accelerate.utils import gather_object
from trl import GRPOTrainer
from trl.models import unwrap_model_for_generation

from toolkit.lab.policies.language_model.chat import Chat
from toolkit.lab.policies.language_model.conversation import Conversation
from toolkit.lab.policies.language_model.lockstep import Continuation, DeskPartner, speak
from toolkit.lab.training.language_model.groups import (
    BARE,
    GENERATION_TIME,
    Dispatch,
    Record,
    Rollout,
    check_groups,
    environment,
    group_rows,
    placed,
)
from toolkit.lab.worlds.world import tools_for_model
from toolkit.seeds import derive, rollout_seed, units

_OVER = frozenset({"budget_exceeded", "episode_over", "BUDGET_EXCEEDED", "EPISODE_FINISHED"})
_FINISHED = ({"finished": True}, {"status": "finished"})


class GroupTrainer(GRPOTrainer):  # type: ignore[misc]
    """GRPO over the episodes of a world: the design is in the schedule seeds of the dataset's rows."""

    def __init__(
        self,
        *,
        sampling: int,
        record: Record,
        conversations: int = 0,
        scored: int = 0,
        world: str = "",
        **options: Any,
    ) -> None:
        super().__init__(environment_factory=environment(world), reward_funcs=None, **options)
        self._sampling = sampling
        self._record = record
        self._conversations = conversations
        self._scored = scored
        # The schemas that everybody else shows a model, with ranges and choices.
        tools = tools_for_model(world)
        self._env_tools = {None: tools}
        template = {} if self.chat_template is None else {"chat_template": self.chat_template}
        # A copy: only TRL's own loop needs another reader of answers.
        variables = tuple({**template, **self.chat_template_kwargs}.items())
        self.chat = Chat(copy(self._tokenizer), variables, tuple(tools))
        self._tokenizer.parse_response = reader(self._tokenizer.parse_response)
        self._endings: set[tuple[int, ...]] = set()
        self._partners: list[DeskPartner] = []
        self._spoken: list[Continuation] = []
        self._rows: list[dict[str, Any]] = []
        self.told: Callable[[str], None] = lambda _: None
        self._taken = 0

    def training_step(self, *arguments: Any, **options: Any) -> Any:
        """Train a micro-batch, as the trainer does, and tell of it (5)."""
        loss = super().training_step(*arguments, **options)
        total = self.args.gradient_accumulation_steps
        self._taken = self._taken % total + 1
        self.told(f"step {self.state.global_step + 1}: {self._taken} of {total} micro-batches trained")  # 5
        return loss

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        process, size = self.accelerator.process_index, self.num_generations
        step = self.state.global_step + 1
        rows = placed(inputs, size, process * len(inputs))  # 1
        check_groups(gather_object(rows), size, step)
        torch.manual_seed(derive("step/v1", self._sampling, step, process) >> 1)
        self._endings.clear()
        self._rows = rows
        output: dict[str, Any] = super()._generate_and_score_completions(rows)
        self._record_groups(rows, output)  # 4
        return output

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, mask: Any, kept: Any, batch_size: int | None = None, **more: Any
    ) -> Any:
        at_once = min(batch_size or len(input_ids), self._scored or len(input_ids))  # 7
        scored = super()._get_per_token_logps_and_entropies
        return scored(model, input_ids, mask, kept, at_once, **more)

    def _generate(self, *arguments: Any) -> Any:
        begun = time.monotonic()
        generated = super()._generate(*arguments)
        self._metrics["train"][GENERATION_TIME].append(time.monotonic() - begun)  # 6
        return generated

    def _tool_call_loop(self, prompts: Any, prompt_ids: Any, completion_ids: Any, *rest: Any) -> Any:
        if not self.use_vllm:
            return self._played()
        self._sync_tool_dicts = [Dispatch(environment) for environment in self.environments]  # 2
        self._async_tool_dicts: list[dict[str, Any]] = [{} for _ in self.environments]
        return super()._tool_call_loop(prompts, prompt_ids, completion_ids, *rest)

    def _get_tool_suffix_ids(self, tool_messages: list[dict[str, Any]]) -> list[int]:
        suffix: list[int] = super()._get_tool_suffix_ids(tool_messages)
        if _is_over(tool_messages[-1]["content"]):
            self._endings.add(tuple(suffix))
        return suffix

    def _generate_single_turn(self, prompt_ids: list[list[int]], *arguments: Any, **options: Any) -> Any:
        if not self.use_vllm:
            return self._play(prompt_ids), None
        # 3. The last tokens of a rollout that is over say so: no other answer of a tool reads the same.
        going = [at for at, ids in enumerate(prompt_ids) if not self._ends(ids)]
        self._tell_rollouts(len(prompt_ids) - len(going))  # 5
        if len(going) == len(prompt_ids):
            return super()._generate_single_turn(prompt_ids, *arguments, **options)
        turns: dict[int, list[int]] = {}
        scores: dict[int, list[float]] | None = {}
        if going:
            asked = [prompt_ids[at] for at in going]
            sampled, scored = super()._generate_single_turn(asked, *arguments, **options)
            turns = dict(zip(going, sampled, strict=True))
            scores = None if scored is None else dict(zip(going, scored, strict=True))
        every = range(len(prompt_ids))
        tokens = [turns.get(at, []) for at in every]
        return tokens, None if scores is None else [scores.get(at, []) for at in every]

    def _play(self, prompt_ids: list[list[int]]) -> list[list[int]]:
        """Play the rollouts to their ends; return all their tokens after the prompt (3)."""
        over = count(1)
        self._partners = [
            DeskPartner(
                self.chat,
                Conversation(list(row["prompt"]), 0),
                environment._opened(),  # noqa: SLF001
                self.max_tool_calling_iterations,
                lambda: self._tell_rollouts(next(over)),
            )
            for row, environment in zip(self._rows, self.environments, strict=True)
        ]
        seeds = [
            rollout_seed(self._sampling, row["step"], row["position"], row["rollout_slot"])
            for row in self._rows
        ]
        draws, self._spoken = [units(seed) for seed in seeds], []
        at_once = self._conversations or len(prompt_ids)
        with unwrap_model_for_generation(self.model_wrapped, self.accelerator) as model:
            model.eval()
            for first in range(0, len(prompt_ids), at_once):
                part = slice(first, first + at_once)
                self._spoken += speak(
                    model,
                    prompt_ids[part],
                    self._partners[part],
                    draws[part],
                    end=self._tokenizer.eos_token_id,
                    max_tokens=self.max_completion_length,
                    temperature=self.temperature,
                    context=self.args.vllm_max_model_length,
                )
            model.train()
        return [spoken.tokens for spoken in self._spoken]

    def _played(self) -> tuple[Any, ...]:
        """Return what the loop over tools returns, of rollouts that were played whole."""
        masks = [[int(chosen) for chosen in spoken.chosen] for spoken in self._spoken]
        conversations = [
            partner.talk.messages[len(row["prompt"]) :]
            for partner, row in zip(self._partners, self._rows, strict=True)
        ]
        calls = sum(message["role"] == "tool" for messages in conversations for message in messages)
        tokens = [spoken.tokens for spoken in self._spoken]
        return masks, conversations, tokens, None, calls, 0, [[] for _ in conversations]

    def _tell_rollouts(self, over: int) -> None:
        step, rollouts = self.state.global_step + 1, len(self._rows)
        self.told(f"step {step}: {over} of {rollouts} rollouts are over")

    def _ends(self, ids: Sequence[int]) -> bool:
        return any(tuple(ids[-len(ending) :]) == ending for ending in self._endings)

    def _record_groups(self, rows: Sequence[dict[str, Any]], output: dict[str, Any]) -> None:
        mask = output["completion_mask"] * output.get("tool_mask", 1)
        weights = output.get("importance_sampling_ratio")
        numbers = (
            [None] * len(rows)
            if weights is None
            else [float(w) for w in weights.reshape(len(rows), -1)[:, 0]]
        )
        mine = [
            Rollout.of(row, environment, float(advantage), int(tokens), weight)
            for row, environment, advantage, tokens, weight in zip(
                rows, self.environments, output["advantages"], mask.sum(-1), numbers, strict=True
            )
        ]
        everyone: list[Rollout] = gather_object(mine)
        if self.accelerator.is_main_process:
            self._record(group_rows(everyone, self.num_generations))


def _is_over(content: str) -> bool:
    try:
        answer = json.loads(content)
    except ValueError:
        return False  # TRL's own words about a call that it could not make
    return answer in _FINISHED or answer.get("error", {}).get("code") in _OVER


def reader(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Return a parser whose calls all have arguments by name; what is no object goes on under `BARE`."""

    def read(*arguments: Any, **options: Any) -> Any:
        message = parse(*arguments, **options)
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        for call in calls or ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and not isinstance(function.get("arguments"), dict | None):
                function["arguments"] = {BARE: function["arguments"]}
        return message

    return read
