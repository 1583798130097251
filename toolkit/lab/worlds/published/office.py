"""The published study's world as a language model meets it: its tasks, messages, tools and desks.

A call is charged, and ends an episode, as in the authors' environment: `finish` is free, a tool that there is
not reaches nobody, and a call beyond the budget is answered with an error. What errors say is in this
project's words; which there are, and everything else that a model reads, is as the authors have it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import signature
from typing import Any

from toolkit.lab.episodes.desk import Answer
from toolkit.lab.tasks.task import Call
from toolkit.lab.worlds.foreign import ForeignEpisode, ForeignTask, Request
from toolkit.lab.worlds.published.episodes import Stage, budget, normal, stage
from toolkit.lab.worlds.published.faults import (
    FaultyShop,
    Schedule,
    evaluation_seed,
    event_key,
    independent_seed,
    training_seed,
)
from toolkit.lab.worlds.published.foreign import LANDED, condition, pool_of
from toolkit.lab.worlds.published.tasks import Task, pools, training_order
from toolkit.lab.worlds.published.tools import TOOLS, error
from toolkit.lab.worlds.published.words import Schema, adopted_words
from toolkit.noise.draws import Design
from toolkit.noise.draws import Schedule as AnySchedule
from toolkit.noise.layer import Exposure
from toolkit.noise.regimes import Regime
from toolkit.places import find_home
from toolkit.specification import Specification

Place = tuple[int, tuple[int, ...]]
STAGES = 64
"""Tasks whose worlds are kept: more than a step has."""


@dataclass(frozen=True)
class PublishedTask(ForeignTask):
    """A task, with what only its own world knows."""

    world: "Published" = field(repr=False, compare=False)
    instruction: str  # what the user says

    @property
    def prompt(self) -> str:
        """All requests in words."""
        return self.instruction

    @property
    def instructions(self) -> str:
        """What a model is told before its task."""
        return self.world.words.system_prompt

    @property
    def budget(self) -> int:
        """Calls that an episode may make."""
        return budget(self.writes)

    def desk(self, regime: Regime, schedule_seed: int) -> "PublishedDesk":
        """Begin an episode."""
        return PublishedDesk(self, regime, schedule_seed)

    def schedule_seed(self, schedule: int) -> int:
        """Return the seed of one of the schedules that it is evaluated under, from 0: theirs count from 1."""
        return evaluation_seed(self.name, schedule + 1)


class Published:
    """The world, in the words that `toolkit adopt` put in place."""

    def __init__(self) -> None:
        self.words = adopted_words(find_home())
        self.tools: tuple[Schema, ...] = self.words.tools
        self.stage = lru_cache(STAGES)(self._stage)
        self.tasks = lru_cache(self._tasks)
        self._own = lru_cache(self._generated)

    def _tasks(self, pool: str) -> Sequence[PublishedTask]:
        """Return a pool's tasks."""
        return [self._task(pool, index, own) for index, own in enumerate(self._own(pool))]

    def _generated(self, pool: str) -> list[Task]:
        theirs = pool_of(pool)
        return pools(self.words, splits=("train" if pool == "train" else "heldout",))[theirs]

    def _stage(self, pool: str, index: int) -> Stage:
        return stage(self._own(pool)[index], self.words)

    def _task(self, pool: str, index: int, own: Task) -> PublishedTask:
        plan = tuple(Call(call["tool"], call["args"]) for call in own["oracle_plan"])
        first, *others = own["templates"]
        return PublishedTask(
            task_id=f"{pool}:{index}",
            pool=pool,
            index=index,
            name=own["task_id"],
            requests=(Request("", first, plan), *(Request("", other, ()) for other in others)),
            writes=own["n_subgoals"],
            scenario=0,
            turns=(),
            world=self,
            instruction=own["instruction"],
        )


@lru_cache
def office() -> Published:
    """Return the world; raises where its words are not here."""
    return Published()


class PublishedDesk:
    """One episode in progress."""

    def __init__(self, task: PublishedTask, regime: Regime, schedule_seed: int) -> None:
        self.task, self.regime, self.calls = task, regime, 0
        self.schedule = AnySchedule(schedule_seed)
        self.ended: str | None = None  # `finished` or `budget_exceeded`; None while it goes on
        self.exposures: list[Exposure] = []
        self.stage = task.world.stage(task.pool, task.index)
        self._own = Schedule(schedule_seed, condition(regime))
        self.shop = FaultyShop(self.stage.make, self._own)

    def call(self, tool: str, arguments: Any) -> Answer:
        """Make a call and return its answer, in the order in which their answers are written."""
        answer: Answer = json.loads(json.dumps(self._answer(tool, arguments), sort_keys=True))
        return answer

    def close(self) -> ForeignEpisode:
        """Grade the episode as it stands."""
        is_done = normal(self.shop.world) == self.stage.expected
        return ForeignEpisode(
            self.task,
            self.regime,
            self.schedule,
            is_done,
            is_done and self._own.flips(),
            self.calls,
            self.ended or "stopped",
            bool(self.shop.world.writes),
            tuple(self.exposures),
            {},
            {},
            (),
        )

    def _answer(self, tool: str, arguments: Any) -> Answer:
        if self.ended is not None:
            return error("EPISODE_FINISHED", "the episode has ended; nothing was done")
        if tool not in TOOLS:
            return error("UNKNOWN_TOOL", f"there is no tool {tool!r}")
        if tool != "finish":
            if self.calls >= self.task.budget:
                self.ended = "budget_exceeded"
                return error("BUDGET_EXCEEDED", f"the budget of {self.task.budget} calls is spent")
            self.calls += 1
        try:
            signature(TOOLS[tool]).bind(None, **arguments)
        except TypeError as problem:
            return error("INVALID_ARGUMENT", str(problem))
        met = len(self.shop.exposures)
        answer = self.shop.call(tool, arguments)
        for kind in self.shop.exposures[met:]:
            if kind in LANDED:
                at = (tool, event_key(tool, arguments))
                repeat = self.shop.attempts[at] - 1
                self.exposures.append(Exposure(self.calls - 1, *at, repeat, LANDED[kind], changed=True))
        if self.shop.is_finished:
            self.ended = "finished"
        return answer


ordered = lru_cache(training_order)


def group_at(specification: Specification, step: int, position: int, row: int, design: Design) -> Place:
    """Return a group's task, and the schedule of each of its rollouts, as the authors draw them.

    A row is a prompt of a step, from 0; a rollout of the independent design draws by its environment's place
    in the batch and by how many episodes that has played, in a run that was never cut off.
    """
    size = specification.group_size
    order = ordered(specification.seed)
    shared = training_seed(specification.seed, specification.condition, row)
    if design == "paired":
        return order[row % len(order)], (shared,) * size
    instances = range(position * size, (position + 1) * size)
    return order[row % len(order)], tuple(independent_seed(shared, at, step - 1) for at in instances)
