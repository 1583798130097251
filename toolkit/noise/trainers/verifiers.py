"""Noise in front of the tools of a verifiers environment: its toolset and task data say a little more.

class Tools(NoisyToolset[vf.ToolsetConfig, NoisyState]): …  # methods with @vf.tool and @tool("read", "path")
class Task(vf.Task[NoisyData, NoisyState]): …

for slot in slots(groups, task, step=1):
    await environment.run_slot(slot, model)
    reward = observed(slot)

A rollout's task carries its schedule to the process that serves its tools; faults that landed come back in
the rollout's state.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import verifiers.v1 as vf
from verifiers.v1.env import RunSlot

from toolkit.errors import DamagedError
from toolkit.noise.regimes import REGIMES
from toolkit.noise.session import Session, StartedCall
from toolkit.noise.trainers.groups import Groups, Rollout
from toolkit.noise.trainers.tools import declaration_of


class NoisyData(vf.TaskData):  # type: ignore[misc]
    """A task, and what its rollout meets."""

    regime: str = "clean"
    schedule_seed: str = "0"


class NoisyState(vf.State):  # type: ignore[misc]
    """A rollout's state: faults that landed."""

    exposures: int = 0


Config = TypeVar("Config", bound=vf.ToolsetConfig)
State = TypeVar("State", bound=NoisyState)


class NoisyToolset(vf.Toolset[Config, State], Generic[Config, State]):  # type: ignore[misc]
    """Tools that meet noise; those of its methods are declared that have `@tool`."""

    async def setup_task(self, task: NoisyData) -> None:
        """Begin a rollout."""
        declared = declaration_of(type(self))
        self._session = Session(declared, REGIMES[task.regime], int(task.schedule_seed))

    @vf.tool  # type: ignore[untyped-decorator]
    def wait(self, seconds: int) -> None:
        """Wait, after a rate limit."""

    def _with_state(self, fn: Callable[..., Any]) -> Any:
        signature = inspect.signature(fn)

        async def met(*values: Any, **named: Any) -> Any:
            begun = self._session.begin(fn.__name__, signature.bind(*values, **named).arguments)
            if isinstance(begun, StartedCall):
                try:
                    whole = fn(*values, **named)
                    whole = await whole if inspect.isawaitable(whole) else whole
                except Exception:
                    self._session.failed(begun)
                    raise
                begun = self._session.end(begun, whole)
            self.state.exposures = len(self._session.exposures)
            return begun

        met.__name__, met.__doc__ = fn.__name__, fn.__doc__
        # A faulty answer need not have the declared type.
        met.__signature__ = signature.replace(return_annotation=inspect.Signature.empty)  # type: ignore[attr-defined]
        return super()._with_state(met)


@dataclass
class Slot(RunSlot):  # type: ignore[misc]
    """A planned rollout of a group."""

    rollout: Rollout = field(kw_only=True)


def slots(groups: Groups, task: Any, step: int, repeat: int = 0) -> list[Slot]:
    """Return a group of a task, planned: each rollout's task says its schedule."""
    planned = [groups.rollout(step, task.data.id or task.key, slot, repeat) for slot in range(groups.size)]
    regime = groups.regime.name
    return [
        Slot(task.with_data(regime=regime, schedule_seed=str(one.schedule_seed)), rollout=one)
        for one in planned
    ]


def observed(slot: Slot) -> float:
    """Return a played rollout's reward as the grader reports it, and put it into its trace.

    Raises:
        DamagedError: it was not played to its end.
    """
    if slot.episode is None or not slot.episode.ok:
        failed = [] if slot.episode is None else [slot.episode, *slot.traces]
        errors = [error.message for one in failed for error in one.errors]
        raise DamagedError("a rollout was not played to its end", found="; ".join(errors) or None)
    [trace] = slot.traces
    reward = slot.rollout.observed(trace.reward, exposed=trace.state.exposures > 0)
    trace.record_reward("flip", reward - trace.reward)
    return reward
