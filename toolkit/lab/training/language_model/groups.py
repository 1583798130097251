"""The groups of a step: what a trainer is fed, and the rows that its own batch leaves."""

import math
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter as Argument
from inspect import Signature
from typing import Any, NamedTuple, Self

from toolkit.errors import DamagedError
from toolkit.lab.backoffice.schemas import Schema
from toolkit.lab.episodes.episode import Episode
from toolkit.lab.policies.language_model.conversation import AnyDesk, as_text, closed, desk_of, opening_of
from toolkit.lab.training.rows import POOL, groups_at
from toolkit.lab.worlds.world import for_model, tools_for_model
from toolkit.noise.regimes import REGIMES
from toolkit.registers.arrow import Row
from toolkit.specification import Specification

BARE = "<arguments>"
"""Stands for the names of arguments that came without any: TRL calls tools with arguments by name alone."""
_TYPES: dict[str, type] = {"string": str, "integer": int}


class Environment:
    """One rollout's desk as an environment of TRL: its reward, and with `environment` its world's tools."""

    _world = ""

    def __init__(self) -> None:
        self._desk: AnyDesk | None = None
        self._episode: Episode | None = None
        self.place: tuple[int, int] | None = None

    def reset(self, *, task: int, regime: str, schedule_seed: int, **row: Any) -> None:
        """Start a rollout."""
        self._desk = desk_of(for_model(self._world, POOL, task), REGIMES[regime], schedule_seed)
        self._episode = None
        self.place = (row.get("group_index", -1), row.get("rollout_slot", -1))

    def get_reward(self) -> float:
        """Return the reward as the grader reports it; a true success may have been flipped."""
        return float(self._graded().observed_reward)

    def _graded(self) -> Episode:
        """Grade the rollout, once: it is over."""
        if self._episode is None:
            self._episode = closed(self._opened())
        return self._episode

    def _call(self, tool: str, arguments: Any) -> str:
        """Make any attempted call, whether or not there is such a tool: the desk charges it."""
        return as_text(self._opened().call(tool, arguments))

    def _opened(self) -> AnyDesk:
        if self._desk is None:
            raise RuntimeError("an environment is reset with a row before anything is called")
        return self._desk


class Dispatch(dict[str, "Callable[..., str]"]):
    """The tools of one rollout as its trainer looks them up: every name is one, and its call is charged."""

    def __init__(self, environment: Environment) -> None:
        super().__init__()
        self._environment = environment

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Callable[..., str]:
        return lambda **arguments: self._environment._call(name, arguments.get(BARE, arguments))  # noqa: SLF001


def _method(function: Schema) -> Callable[..., str]:
    """Return a tool as a method that says its arguments, as TRL and Transformers read them."""
    name, parameters = function["name"], function["parameters"]

    def call(self: Environment, **arguments: Any) -> str:
        return self._call(name, arguments)

    arguments = [
        Argument(
            each,
            Argument.POSITIONAL_OR_KEYWORD,
            default=Argument.empty if each in parameters["required"] else schema.get("default"),
            annotation=_TYPES[schema["type"]],
        )
        for each, schema in parameters["properties"].items()
    ]
    described = (f"    {each}: {schema['description']}" for each, schema in parameters["properties"].items())
    me = Argument("self", Argument.POSITIONAL_OR_KEYWORD)
    call.__name__ = name
    call.__qualname__ = f"{Environment.__name__}.{name}"
    call.__doc__ = "\n".join([function["description"], "", "Args:", *described])
    call.__signature__ = Signature([me, *arguments], return_annotation=str)  # type: ignore[attr-defined]
    call.__annotations__ = {argument.name: argument.annotation for argument in arguments} | {"return": str}
    return call


def environment(world: str) -> type[Environment]:
    """Return the environment of a world, its tools as methods."""
    functions = [tool["function"] for tool in tools_for_model(world)]
    methods = {function["name"]: _method(function) for function in functions}
    return type("BackOffice", (Environment,), {"_world": world, **methods})


BackOffice = environment("")


Example = dict[str, Any]
GROUP = ("step", "position", "task", "regime")
Record = Callable[[list[Row]], None]
"""Is given the rows of a step's groups."""


def examples(specification: Specification) -> list[Example]:
    """Return one example a group: the arms of a seed meet the same tasks in order; seeds are text."""
    return [
        {
            "prompt": opening_of(for_model(specification.world, POOL, group.task)),
            "step": step,
            "position": group.position,
            "task": group.task,
            "regime": group.regime,
            "schedule_seeds": [str(seed) for seed in group.schedule_seeds],
        }
        for step in range(1, specification.steps + 1)
        for group in groups_at(specification, step)
    ]


def placed(batch: Sequence[Example], group_size: int, first: int = 0) -> list[Example]:
    """Return a batch in which every rollout knows its group, its slot and its schedule seed."""
    rows = []
    for at, example in enumerate(batch, start=first):
        group, slot = divmod(at, group_size)
        seed = int(example["schedule_seeds"][slot])
        rows.append({**example, "group_index": group, "rollout_slot": slot, "schedule_seed": seed})
    return rows


def check_groups(batch: Sequence[Example], group_size: int, step: int) -> None:
    """Refuse a batch that is not the whole groups of a step, in their order."""
    groups = [(row["step"], row["position"]) for row in batch]
    expected = [(step, at // group_size) for at in range(len(batch))]
    if groups != expected:
        wrong = next(at for at, (f, e) in enumerate(zip(groups, expected, strict=True)) if f != e)
        raise DamagedError(
            "the trainer's batch is not the groups of its step",
            expected="step {}, position {}".format(*expected[wrong]),
            found="step {}, position {}".format(*groups[wrong]),
            where=f"rollout {wrong} of step {step}",
        )


class Rollout(NamedTuple):
    """What became of one rollout of a batch."""

    step: int  # step, position, task, regime: its group
    position: int
    task: int
    regime: str
    slot: int  # its slot in the group
    schedule_seed: int  # seed of the schedule that its environment had
    true_success: bool  # true_success, observed_reward: its outcome, and the reward that the grader reported
    observed_reward: bool
    exposed: bool  # whether it met a fault
    advantage: float  # as the trainer computed it
    tokens: int  # tokens that the loss counts
    weight: float | None  # importance weight; None where the trainer computes none

    @classmethod
    def of(
        cls, row: Example, environment: Environment, advantage: float, tokens: int, weight: float | None
    ) -> Self:
        """Return a rollout as its environment saw it."""
        episode = environment._graded()  # noqa: SLF001 - public methods are tools
        expected = (row["group_index"], row["rollout_slot"], row["schedule_seed"])
        met = (*(environment.place or (-1, -1)), episode.schedule.seed)
        if met != expected:
            places = ("group {}, slot {}, schedule seed {}".format(*each) for each in (expected, met))
            problem, where = "a rollout was not played in its own environment", f"step {row['step']}"
            raise DamagedError(problem, expected=next(places), found=next(places), where=where)
        own = [row[name] for name in (*GROUP, "rollout_slot")]
        outcome = (episode.true_success, bool(episode.observed_reward), bool(episode.exposures))
        return cls._make((*own, episode.schedule.seed, *outcome, advantage, tokens, weight))


def group_rows(rollouts: Sequence[Rollout], size: int) -> list[Row]:
    """Return a batch's rows of `groups`, without the run's name."""
    rows = []
    for first in range(0, len(rollouts), size):
        group = rollouts[first : first + size]
        of = {name: [getattr(rollout, name) for rollout in group] for name in Rollout._fields}
        varied = len(set(of["observed_reward"])) > 1
        row = {name: of[name][0] for name in GROUP} | {
            "schedule_seeds": of["schedule_seed"],
            "true_successes": of["true_success"],
            "observed_rewards": of["observed_reward"],
            "advantages": of["advantage"],
            "exposed": sum(of["exposed"]),
            "zero_variance": not varied,
            "spurious": varied and all(of["true_success"]),
            "tokens": of["tokens"],
        }
        rows.append(row if of["weight"][0] is None else row | {"importance_weights": of["weight"]})
    return rows


STEP_TIME = "step_time"
GENERATION_TIME = "generation_time"
"""Added by `GroupTrainer`: TRL has no such figure."""

_ALWAYS = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "clipped": "clip_ratio/region_mean",
    "entropy": "entropy",
}
_OF_TWO_ENGINES = {
    f"importance_weight_{which}": f"sampling/importance_sampling_ratio/{which}"
    for which in ("mean", "min", "max")
}


def step_figures(logs: Mapping[str, float]) -> dict[str, float | None]:
    """Return a step's columns of `steps`; importance weights only where there are any."""
    names = _ALWAYS | {column: name for column, name in _OF_TWO_ENGINES.items() if name in logs}
    found = {column: logs.get(name) for column, name in names.items()}
    return {
        name: None if value is None or not math.isfinite(value) else value for name, value in found.items()
    }


def step_seconds(logs: Mapping[str, float]) -> tuple[float, float]:
    """Return how long a step took, and how much of that went to playing its rollouts."""
    return round(logs[STEP_TIME], 3), round(logs[GENERATION_TIME], 3)
