"""Foreign worlds: another project's tools and tasks, played under this project's noise and policies.

What happens to a call, in this order, whose numbers the code repeats:

1. After the end nothing is done. `finish` ends a request, free of charge, and after the last the episode. A
   call beyond the budget is refused and ends the episode.
2. The call meets the noise, and then the world, as in `toolkit.noise.session`.
3. When a request ends it is graded, on the state of the world and on what the agent was shown.
"""

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from zipfile import BadZipFile, ZipFile

from toolkit.errors import DamagedError, IncompleteError
from toolkit.lab.tasks.task import Call
from toolkit.noise.declaration import WAIT, Declaration, declare
from toolkit.noise.draws import Schedule
from toolkit.noise.layer import Answer, Exposure, error
from toolkit.noise.regimes import Regime
from toolkit.noise.session import Call as MadeCall
from toolkit.noise.session import Session
from toolkit.noise.tools import Tool
from toolkit.seeds import Stream, derive
from toolkit.structs import replace

SHARES = (("train", 2), ("validation", 1), ("test", 1))
"""Pool → how many of four sources it has."""

BUDGET_BASE = 3
BUDGET_PER_CALL = 2


class State(Protocol):
    """The state of a world: what its tools read and write."""

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a call and return the world's own answer."""


class Request(NamedTuple):
    """One request of a task."""

    text: str  # what the user says
    template: str  # which sort of request it is, for the policy
    plan: tuple[Call, ...]  # the calls that fulfil it
    # How directly the text names what each call needs; empty where that is read off the text
    levels: tuple[int, ...] = ()


@dataclass(frozen=True)
class ForeignTask:
    """A task of a foreign world."""

    task_id: str  # its name; schedules and samples go by it
    pool: str  # pool, index: its place
    index: int
    name: str  # what the other project calls it
    requests: tuple[Request, ...]  # what is asked, in order
    writes: int  # planned writes
    scenario: int  # number of the scenario that it is taken from
    # Positions of its requests in the scenario; those before the first are already fulfilled
    turns: tuple[int, ...]

    @property
    def prompt(self) -> str:
        """All requests in words."""
        return "\n\n".join(request.text for request in self.requests)

    @property
    def calls(self) -> int:
        """Planned calls."""
        return sum(len(request.plan) for request in self.requests)

    @property
    def budget(self) -> int:
        """Calls that an episode may make."""
        return BUDGET_BASE + BUDGET_PER_CALL * self.calls

    @property
    def late(self) -> int:
        """Calls after which it is late: the smallest budget for so many requests."""
        return BUDGET_BASE + BUDGET_PER_CALL * len(self.requests)


class ForeignWorld(Protocol):
    """What a foreign world has to offer."""

    declaration: Declaration  # its tools; an answer's record or list is shown under `result` of the envelope

    def tasks(self, pool: str) -> Sequence[ForeignTask]:
        """Return a pool's tasks."""

    def begin(self, task: ForeignTask) -> State:
        """Return the state in which a task begins."""

    def fulfilled(
        self, task: ForeignTask, request: int, state: State, shown: Sequence[Any], made: int
    ) -> bool:
        """Grade a request that has ended."""

    def desk(self, task: ForeignTask, regime: Regime, schedule_seed: int) -> "AnyDesk":
        """Return where an episode is played: under this project's noise, unless the world has its own."""
        return ForeignDesk(self, task, regime, schedule_seed)


class ForeignEpisode(NamedTuple):
    """What became of an episode; the fields are those of `toolkit.lab.episodes.episode.Episode`."""

    task: ForeignTask
    regime: Regime
    schedule: Schedule
    true_success: bool
    flipped: bool
    calls: int
    ended: str
    world_changed: bool
    exposures: tuple[Exposure, ...]
    called_for: Mapping[str, int]
    recovered: Mapping[str, int]
    trace: tuple[MadeCall, ...]

    @property
    def observed_reward(self) -> int:
        """The reward as the grader reports it: 1 for a true success that was not flipped."""
        return int(self.true_success and not self.flipped)


class AnyDesk(Protocol):
    """Where an episode is played."""

    def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Make a call and return its answer."""

    def close(self) -> ForeignEpisode:
        """Grade what has not ended and return the episode."""


class ForeignDesk:
    """One episode in progress."""

    def __init__(self, world: ForeignWorld, task: ForeignTask, regime: Regime, schedule_seed: int) -> None:
        self.world = world
        self.task = task
        self.session = Session(world.declaration, regime, schedule_seed)
        self.calls = self.request = 0
        self.ended: str | None = None
        self._state = world.begin(task)
        self._writes: list[tuple[str, Mapping[str, Any]]] = []
        self._shown: list[Any] = []
        self._begun = 0
        self._fulfilled = True

    def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Make a call and return its answer."""
        # 1.
        if self.ended is not None:
            return error("episode_over", "the episode has ended; nothing was done")
        if tool == "finish":
            # 3.
            self._grade()
            if self.request == len(self.task.requests):
                self.ended = "finished"
            return {"finished": True}
        if self.calls >= self.task.budget:
            self.ended = "budget_exceeded"
            return error("budget_exceeded", f"the budget of {self.task.budget} calls is spent")
        self.calls += 1
        # 2.
        known = self.world.declaration.tools.get(tool)
        if known is None:
            return error("unknown_tool", f"there is no tool {tool!r}")
        now, before = lambda: self._carried_out(known, arguments), lambda: self._before(tool, arguments)
        answer: Answer = self.session.call(tool, arguments, now, before)
        if tool == WAIT:
            return answer | {"revision": len(self._writes)}
        if "result" in answer:
            self._shown.append(answer["result"])
        return answer

    def _carried_out(self, tool: Tool, arguments: Mapping[str, Any]) -> Answer:
        result = self._state.call(tool.name, arguments)
        if tool.kind == "write":
            self._writes.append((tool.name, arguments))
        return {"revision": len(self._writes), "result": result}

    def _before(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """Return what a call is answered before the last write: all earlier ones are made again for it."""
        state = self.world.begin(self.task)
        for write in self._writes[:-1]:
            state.call(*write)
        return {"revision": max(len(self._writes) - 1, 0), "result": state.call(tool, arguments)}

    def _grade(self) -> None:
        made, self._begun = self.calls - self._begun, self.calls
        self._fulfilled &= self.world.fulfilled(self.task, self.request, self._state, self._shown, made)
        self.request += 1

    def close(self) -> ForeignEpisode:
        """Grade what has not ended and return the episode."""
        while self.request < len(self.task.requests):
            self._grade()
        session, is_done = self.session, self._fulfilled
        return ForeignEpisode(
            self.task,
            session.regime,
            session.schedule,
            is_done,
            is_done and session.regime.flips(session.schedule),
            self.calls,
            self.ended or "stopped",
            bool(self._writes),
            tuple(session.exposures),
            dict(session.recovery.called_for),
            dict(session.recovery.made),
            tuple(session.calls),
        )


def deal(sources: Sequence[str], domain: str) -> dict[str, list[int]]:
    """Return pool → numbers of tasks: their sources are shuffled, and dealt out whole."""
    by_source: dict[str, list[int]] = {}
    for number, source in enumerate(sources):
        by_source.setdefault(source, []).append(number)
    order = Stream(derive(domain, 0)).shuffled(list(by_source.values()))
    whole, dealt, start = sum(share for _, share in SHARES), {}, 0
    for pool, share in SHARES:
        end = len(order) if pool == SHARES[-1][0] else start + len(order) * share // whole
        dealt[pool] = sorted(number for source in order[start:end] for number in source)
        start = end
    return dealt


def in_envelope(tools: Iterable[Tool], name: str) -> Declaration:
    """Return a declaration whose answers stand in the envelope."""
    placed = [
        replace(tool, shows="result" if tool.shows is None else f"result.{tool.shows}")
        for tool in tools
        if tool.name != WAIT
    ]
    return declare(name, placed)


@dataclass(frozen=True)
class Package:
    """A package of a fixed version."""

    name: str  # what it is imported as
    version: str  # the version
    names: tuple[str, ...]  # the files that are read or run
    sha256: str  # of these files: a line each with its SHA-256 and its name, sorted by name
    remedy: str  # how to get it
    wheel: str  # the environment variable that may name its wheel

    @lru_cache  # noqa: B019 - one package is one object
    def files(self) -> dict[str, bytes]:
        """Return its files by name, verified."""
        read = self._read(self._place(), sorted(self.names))
        found = digest(read.items())
        if found != self.sha256:
            raise self._other(f"SHA-256 {found}")
        return read

    def module(self, name: str) -> Any:
        """Return a module of the package, imported once its files are verified; raises as `files`."""
        self.files()
        if os.environ.get(self.wheel) and str(self._place()) not in sys.path:
            sys.path.insert(0, str(self._place()))
        try:
            return import_module(f"{self.name}.{name}")
        except ImportError as error:
            raise IncompleteError(
                f"{self.name}.{name} cannot be imported", found=error, remedy=self.remedy
            ) from None

    def _place(self) -> Path:
        named = os.environ.get(self.wheel)
        if named:
            return Path(named)
        found = importlib.util.find_spec(self.name)
        if found is None or found.origin is None:
            raise IncompleteError(f"the package {self.name} is not installed", remedy=self.remedy)
        return Path(found.origin).parent.parent

    def _read(self, place: Path, names: Iterable[str]) -> dict[str, bytes]:
        try:
            if place.is_dir():
                return {name: (place / name).read_bytes() for name in names}
            with ZipFile(place) as wheel:
                return {name: wheel.read(name) for name in names}
        except (OSError, BadZipFile, KeyError) as error:
            raise self._other(error) from None

    def _other(self, found: object) -> DamagedError:
        problem = f"the package {self.name} is not version {self.version}"
        expected = f"files with SHA-256 {self.sha256}"
        return DamagedError(problem, expected=expected, found=found, where=self._place(), remedy=self.remedy)


def digest(files: Iterable[tuple[str, bytes]]) -> str:
    """Return the SHA-256 of files: of a line each with its SHA-256 and its name."""
    lines = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files)
    return hashlib.sha256(lines.encode()).hexdigest()
