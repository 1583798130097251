"""An episode: one task under one schedule, played to its end and graded."""

from collections.abc import Mapping
from typing import NamedTuple

from toolkit.lab.backoffice.world import World
from toolkit.lab.episodes.desk import Agent, CallRecord, Desk
from toolkit.lab.episodes.grading import changed, succeeded
from toolkit.lab.tasks.task import Task
from toolkit.noise.draws import Schedule
from toolkit.noise.layer import Exposure
from toolkit.noise.regimes import Regime


class Episode(NamedTuple):
    """What became of an episode: a named tuple, for the reason that records are."""

    task: Task  # the task
    regime: Regime  # the noise
    schedule: Schedule  # the schedule ω
    # Whether the final world is the expected one, field by field, whatever ended the episode
    true_success: bool
    flipped: bool  # whether the grader reported a true success as a failure
    calls: int  # calls charged to the budget
    ended: str  # `finished` by the agent, `budget_exceeded`, or `stopped` without either
    world: World  # the world as the episode left it
    exposures: tuple[Exposure, ...]  # faults that landed, in order
    called_for: Mapping[str, int]  # trace code → faults that called for a recovery
    recovered: Mapping[str, int]  # trace code → how many of them got it
    trace: tuple[CallRecord, ...] | None  # every call, where kept

    @property
    def observed_reward(self) -> int:
        """The reward as the grader reports it: 1 for a true success that was not flipped."""
        return int(self.true_success and not self.flipped)

    @property
    def world_changed(self) -> bool:
        """Whether the world changed at all."""
        return changed(self.world)

    @property
    def budget_exceeded(self) -> bool:
        """Whether the budget ended the episode."""
        return self.ended == "budget_exceeded"


def play(task: Task, regime: Regime, schedule_seed: int, agent: Agent, *, traced: bool = False) -> Episode:
    """Play a task under a schedule."""
    desk = Desk(task, regime, schedule_seed, traced=traced)
    agent(task.prompt, desk.call)
    return close(desk)


def close(desk: Desk) -> Episode:
    """Grade a desk as it stands and return its episode."""
    true_success = succeeded(desk.task, desk.world)
    return Episode(
        desk.task,
        desk.regime,
        desk.schedule,
        true_success,
        true_success and desk.regime.flips(desk.schedule),
        desk.calls,
        desk.ended or "stopped",
        desk.world,
        tuple(desk.exposures),
        dict(desk.recovery.called_for),
        dict(desk.recovery.made),
        None if desk.trace is None else tuple(desk.trace),
    )
