"""BFCL v3 multi-turn as a world: states, tasks and the grading of the official checker, turn by turn.

An adaptation, and to be called one: the site's page of it says what is not BFCL's. A turn is fulfilled if
every involved back-end is in the state that the answer leads to, all that the answer was told has been shown
since the scenario began, and a call was made.

Source:
    Patil et al., the Berkeley function-calling leaderboard: `multi_turn_checker` of `bfcl-eval`.
"""

import copy
import json
import pickle
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from toolkit.canonical import canonical
from toolkit.lab.tasks.task import Call
from toolkit.lab.tasks.templates import WEIGHTS
from toolkit.lab.worlds.bfcl.source import MODULES, Scenario, backends, scenarios
from toolkit.lab.worlds.foreign import ForeignTask, Request, deal, in_envelope
from toolkit.noise.declaration import read_declaration
from toolkit.seeds import derive

NUMBERS = "bfcl/numbers/v1"
SPLIT = "bfcl/split/v1"
STATELESS = "MathAPI"
DECLARED = read_declaration(Path(__file__).parent / "tools.toml")
TEMPLATES = dict(zip(MODULES, (name for name, _ in WEIGHTS), strict=True))
"""Back-end → the template that its requests stand for."""


class BfclState:
    """The back-ends of a scenario."""

    def __init__(self, scenario: Scenario, *, is_long: bool = False, keyed: bool = True) -> None:
        self.instances = {name: backends()[name]() for name in scenario.backends}
        for name, instance in self.instances.items():
            if name != STATELESS:
                configuration = copy.deepcopy(scenario.configuration.get(name, {}))
                instance._load_scenario(configuration, long_context=is_long)  # noqa: SLF001
        self._keyed = keyed
        self._made: dict[tuple[str, str], int] = {}

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a call and return its answer, as a JSON value; a failure as upstream's text."""
        instance = next((each for each in self.instances.values() if hasattr(each, tool)), None)
        if instance is None or tool.startswith("_"):
            return f"Error during execution: name '{tool}' is not defined"
        if self._keyed and hasattr(instance, "_random"):
            known = DECLARED.tools.get(tool)
            key = (tool, "*" if known is None else DECLARED.resource(known, arguments))
            self._made[key] = self._made.get(key, 0) + 1
            instance._random = random.Random(derive(NUMBERS, 0, *key, self._made[key]))  # noqa: S311, SLF001
        try:
            # A back-end may keep what it is given, and change it later.
            answer = getattr(instance, tool)(**copy.deepcopy(dict(arguments)))
        except Exception as error:  # noqa: BLE001 - whatever a back-end raises is its answer
            return f"Error during execution: {error}"
        if type(answer) is not dict:
            return str(answer)
        try:
            return json.loads(json.dumps(answer))
        except (TypeError, ValueError):
            return str(answer)

    def graded(self) -> dict[str, dict[str, Any]]:
        """Return what is graded: the public attributes of every back-end."""
        return {
            name: {key: value for key, value in vars(each).items() if not key.startswith("_")}
            for name, each in self.instances.items()
        }


def text(answer: Any) -> str:
    """Return an answer as upstream's checker compares it."""
    return answer if isinstance(answer, str) else json.dumps(answer)


class Truth:
    """A scenario's answers, carried out: the state before each turn and after the last, and what was told."""

    def __init__(self, scenario: Scenario, *, is_long: bool = False, keyed: bool = True) -> None:
        state = BfclState(scenario, is_long=is_long, keyed=keyed)
        self._states = [pickle.dumps(state)]
        self.told: list[list[str]] = []
        for plan in scenario.plans:
            self.told.append([text(state.call(*call)) for call in plan])
            self._states.append(pickle.dumps(state))

    def state(self, turn: int) -> BfclState:
        """Return the state before a turn, to be changed at will."""
        state: BfclState = pickle.loads(self._states[turn])  # noqa: S301 - pickled above
        return state

    @lru_cache  # noqa: B019 - as many as there are turns
    def graded(self, turn: int) -> dict[str, dict[str, Any]]:
        """Return what is graded before a turn."""
        return self.state(turn).graded()

    def fulfilled(self, turn: int, state: BfclState, shown: Sequence[str], made: int) -> bool:
        """Grade a turn: on the state after it, what was shown so far, and how many calls it had."""
        told = self.told[turn]
        if not told:
            return True
        is_shown = not Counter(told) - Counter(shown)
        return made > 0 and is_shown and state.graded() == self.graded(turn + 1)


class Bfcl:
    """The world of turns and of whole scenarios: a pool has both, turns first."""

    def __init__(self) -> None:
        self.declaration = in_envelope(DECLARED.tools.values(), "bfcl")
        self._scenarios = scenarios()
        sources = [canonical(scenario.configuration) for scenario in self._scenarios]
        self._pools = {pool: self._tasks(pool, numbers) for pool, numbers in deal(sources, SPLIT).items()}

    def tasks(self, pool: str) -> Sequence[ForeignTask]:
        """Return a pool's tasks."""
        return self._pools[pool]

    def begin(self, task: ForeignTask) -> BfclState:
        """Return the state in which a task begins."""
        return self._truth(task.scenario).state(task.turns[0])

    def fulfilled(self, task: ForeignTask, request: int, state: Any, shown: Sequence[Any], made: int) -> bool:
        """Grade a request that has ended, as the official checker grades a turn."""
        truth = self._truth(task.scenario)
        earlier = [one for told in truth.told[: task.turns[0]] for one in told]
        return truth.fulfilled(task.turns[request], state, [*earlier, *map(text, shown)], made)

    @lru_cache  # noqa: B019 - as many as there are scenarios
    def _truth(self, scenario: int) -> Truth:
        return Truth(self._scenarios[scenario])

    def _tasks(self, pool: str, numbers: Sequence[int]) -> tuple[ForeignTask, ...]:
        turns = [(number, (turn,), f".{turn}") for number in numbers for turn in self._turns(number)]
        whole = [(number, self._turns(number), "") for number in numbers]
        return tuple(self._task((pool, index), *place) for index, place in enumerate([*turns, *whole]))

    def _turns(self, number: int) -> tuple[int, ...]:
        """Return the turns of a scenario whose answers have calls."""
        return tuple(turn for turn, plan in enumerate(self._scenarios[number].plans) if plan)

    def _task(self, place: tuple[str, int], number: int, turns: tuple[int, ...], suffix: str) -> ForeignTask:
        (pool, index), scenario = place, self._scenarios[number]
        requests = tuple(
            Request(scenario.requests[turn], TEMPLATES[_owner(scenario, plan[0])], plan)
            for turn, plan in enumerate(scenario.plans)
            if turn in turns
        )
        writes = sum(
            DECLARED.tools[call.tool].kind == "write" for request in requests for call in request.plan
        )
        return ForeignTask(
            f"{pool}:{index}", pool, index, scenario.name + suffix, requests, writes, number, turns
        )


def _owner(scenario: Scenario, call: Call) -> str:
    """Return the back-end that a call is of."""
    return next(name for name in scenario.backends if hasattr(backends()[name], call.tool))
