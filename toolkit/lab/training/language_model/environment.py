"""The back office as an environment of TRL: one rollout's desk, the tools as its methods, its reward.

TRL makes an environment for every rollout of a batch, resets it with the rollout's row of the dataset, and
calls its methods where the model calls tools. The class works with TRL's own trainer too; there an unknown
tool or arguments of other names never reach the desk and cost nothing, which `GroupTrainer` mends.

Source:
    Paper app:training, "Stack": `GRPOTrainer` with an environment factory for tool calling.
"""

from collections.abc import Callable
from inspect import Parameter as Argument
from inspect import Signature
from typing import Any

from toolkit.lab.backoffice.tools import TOOLS, Tool
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.episode import Episode, close
from toolkit.lab.policies.language_model.conversation import as_text
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.training.rows import POOL
from toolkit.noise.regimes import REGIMES

BARE = "<arguments>"
"""Stands for the names of arguments that came without any: TRL calls tools with arguments by name alone."""
_TYPES: dict[str, type] = {"string": str, "integer": int}


class BackOffice:
    """One rollout of a training group."""

    def __init__(self) -> None:
        self._desk: Desk | None = None
        self._episode: Episode | None = None
        self.place: tuple[int, int] | None = None

    def reset(self, *, task: int, regime: str, schedule_seed: int, **row: Any) -> None:
        """Start a rollout."""
        self._desk = Desk(load_task(f"{POOL}:{task}"), REGIMES[regime], schedule_seed)
        self._episode = None
        self.place = (row.get("group_index", -1), row.get("rollout_slot", -1))

    def get_reward(self) -> float:
        """Return the reward as the grader reports it; a true success may have been flipped."""
        return float(self._graded().observed_reward)

    def _graded(self) -> Episode:
        """Grade the rollout, once: it is over."""
        if self._episode is None:
            self._episode = close(self._opened())
        return self._episode

    def _call(self, tool: str, arguments: Any) -> str:
        """Make any attempted call, whether or not there is such a tool: the desk charges it."""
        return as_text(self._opened().call(tool, arguments))

    def _opened(self) -> Desk:
        if self._desk is None:
            raise RuntimeError("an environment is reset with a row before anything is called")
        return self._desk


class Dispatch(dict[str, "Callable[..., str]"]):
    """The tools of one rollout as its trainer looks them up: every name is one, and its call is charged."""

    def __init__(self, environment: BackOffice) -> None:
        super().__init__()
        self._environment = environment

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Callable[..., str]:
        return lambda **arguments: self._environment._call(name, arguments.get(BARE, arguments))  # noqa: SLF001


def _method(tool: Tool) -> Callable[..., str]:
    """Return a tool as a method that says its arguments, as TRL and Transformers read them."""

    def call(self: BackOffice, **arguments: Any) -> str:
        return self._call(tool.name, arguments)

    arguments = [
        Argument(
            parameter.name,
            Argument.POSITIONAL_OR_KEYWORD,
            default=Argument.empty if parameter.required else parameter.default,
            annotation=_TYPES[parameter.type],
        )
        for parameter in tool.parameters
    ]
    me = Argument("self", Argument.POSITIONAL_OR_KEYWORD)
    call.__name__ = tool.name
    call.__qualname__ = f"BackOffice.{tool.name}"
    call.__doc__ = "\n".join(
        [
            tool.about,
            "",
            "Args:",
            *(f"    {parameter.name}: {parameter.about}" for parameter in tool.parameters),
        ]
    )
    call.__signature__ = Signature([me, *arguments], return_annotation=str)  # type: ignore[attr-defined]
    call.__annotations__ = {argument.name: argument.annotation for argument in arguments} | {"return": str}
    return call


for _tool in TOOLS.values():
    setattr(BackOffice, _tool.name, _method(_tool))
