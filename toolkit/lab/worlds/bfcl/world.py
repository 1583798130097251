"""BFCL v3 multi-turn as a world: states, tasks and the grading of the official checker, turn by turn.

Source:
    Patil et al., the Berkeley function-calling leaderboard: `multi_turn_checker` of `bfcl-eval`.
"""

import ast
import copy
import inspect
import json
import pickle
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

from toolkit.canonical import canonical
from toolkit.errors import DamagedError, VerificationError
from toolkit.lab.tasks.task import Call
from toolkit.lab.tasks.templates import WEIGHTS
from toolkit.lab.worlds.foreign import ForeignTask, ForeignWorld, Package, Request, deal, in_envelope
from toolkit.noise.declaration import read_declaration
from toolkit.seeds import Stream, derive
from toolkit.structs import Document, Verified, about

VERSION = "2025.6.8"
CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
MODULES = MappingProxyType(
    {
        "GorillaFileSystem": "gorilla_file_system",
        "MathAPI": "math_api",
        "MessageAPI": "message_api",
        "TicketAPI": "ticket_api",
        "TradingBot": "trading_bot",
        "TravelAPI": "travel_booking",
        "TwitterAPI": "posting_api",
        "VehicleControlAPI": "vehicle_control",
    }
)
"""Back-end → its module."""

_BACKENDS = "bfcl_eval/eval_checker/multi_turn_eval/func_source_code"
_ASKED = "bfcl_eval/data/BFCL_v3_multi_turn_{}.json"
_ANSWERED = "bfcl_eval/data/possible_answer/BFCL_v3_multi_turn_{}.json"

PACKAGE = Package(
    "bfcl_eval",
    VERSION,
    (
        *(f"{_BACKENDS}/{module}.py" for module in (*MODULES.values(), "long_context", "__init__")),
        *(place.format(category) for place in (_ASKED, _ANSWERED) for category in CATEGORIES),
    ),
    "a617e113d1573c5c8cb3d7a82ce82f51db2b7aff783d946dc6b6094fc724467d",
    f"pip install --no-deps bfcl-eval=={VERSION} mpmath; or name its wheel in BFCL_WHEEL",
    "BFCL_WHEEL",
)


class Scenario(NamedTuple):
    """One scenario."""

    name: str  # what the package calls it
    configuration: dict[str, Any]  # back-end → the state that it begins in
    backends: tuple[str, ...]  # those that are involved
    requests: tuple[str, ...]  # what the user says, turn by turn
    plans: tuple[tuple[Call, ...], ...]  # the calls that answer each turn


@lru_cache
def backends() -> dict[str, type]:
    """Return the classes of the back-ends, by name; raises as `Package.files`."""
    place = _BACKENDS.partition("/")[2].replace("/", ".")
    return {name: getattr(PACKAGE.module(f"{place}.{module}"), name) for name, module in MODULES.items()}


@lru_cache
def scenarios(category: str = "base") -> tuple[Scenario, ...]:
    """Return a category's scenarios in the package's order; raises as `Package.files`."""
    files = PACKAGE.files()
    asked, answers = (
        [json.loads(line) for line in files[place.format(category)].splitlines()]
        for place in (_ASKED, _ANSWERED)
    )
    truths = {answer["id"]: answer["ground_truth"] for answer in answers}
    return tuple(
        Scenario(
            entry["id"],
            entry["initial_config"],
            tuple(entry["involved_classes"]),
            tuple("\n".join(message["content"] for message in turn) for turn in entry["question"]),
            tuple(tuple(_named(read_call(text)) for text in turn) for turn in truths[entry["id"]]),
        )
        for entry in asked
    )


def read_call(text: str) -> Call:
    """Return the call that a text writes down, of a name and literals; nothing of it is evaluated."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise TypeError("no call of a name")  # noqa: TRY301 - one answer to all that is wrong
        by_place = {str(at): ast.literal_eval(value) for at, value in enumerate(call.args)}
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords if each.arg}
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        found = f"{text[:80]!r}: {error}"
        raise DamagedError("an answer of BFCL is no call of literals", found=found) from None
    return Call(call.func.id, by_place | named)


def _named(call: Call) -> Call:
    """Return a call with all its arguments by name."""
    method = next(getattr(each, call.tool) for each in backends().values() if hasattr(each, call.tool))
    names = list(inspect.signature(method).parameters)[1:]
    return Call(
        call.tool, {names[int(key)] if key.isdigit() else key: value for key, value in call.arguments.items()}
    )


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


class Bfcl(ForeignWorld):
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
        return tuple(turn for turn, plan in enumerate(self._scenarios[number].plans) if plan)

    def _task(self, place: tuple[str, int], number: int, turns: tuple[int, ...], suffix: str) -> ForeignTask:
        (pool, index), scenario = place, self._scenarios[number]
        requests = tuple(
            Request(
                scenario.requests[turn],
                TEMPLATES[
                    next(each for each in scenario.backends if hasattr(backends()[each], plan[0].tool))
                ],
                plan,
            )
            for turn, plan in enumerate(scenario.plans)
            if turn in turns
        )
        writes = sum(
            DECLARED.tools[call.tool].kind == "write" for request in requests for call in request.plan
        )
        return ForeignTask(
            f"{pool}:{index}", pool, index, scenario.name + suffix, requests, writes, number, turns
        )


CHANGES = "bfcl/parity/v1"
CHECKER = "eval_checker.multi_turn_eval.multi_turn_checker"
UTILITIES = "eval_checker.multi_turn_eval.multi_turn_utils"
LONG = "long_context"
PARITY = 3000
"""Changed turns that are compared before anything is played."""
TOLD_EVERY = 500


class Parity(Document, frozen=True):
    """The grading of a foreign world, here and by its own project: the same verdicts."""

    world: Annotated[str, about("Name of the world.")]
    verdict: Verified
    answers: Annotated[dict[str, int], about("Answers that pass here and there, by category.")]
    changed: Annotated[int, about("Changed turns that were compared.")]
    passing: Annotated[int, about("Those of them that pass.")]


def check() -> None:
    """Compare as many changed turns as are compared before anything is played; raises as `check_parity`."""
    check_parity(PARITY)


def steps_of(changes: int) -> int:
    """Return how often `check_parity` says what is being compared."""
    return len(CATEGORIES) + ceil(changes / TOLD_EVERY)


def check_parity(changes: int, say: Callable[[str], None] = lambda _: None) -> Parity:
    """Compare this world's grading with the official checker's."""
    answers = {}
    for category in CATEGORIES:
        say(f"answers of {category}")
        for scenario in scenarios(category):
            truth = _truth(category, scenario.name)
            here = all(_passes(truth, turn, plan) for turn, plan in enumerate(scenario.plans))
            _same(scenario, "its answer", here, expected=official(scenario, scenario.plans))
            _same(scenario, "its answer", here, expected=True)
        answers[category] = len(scenarios(category))
    passing = 0
    for number in range(changes):
        if number % TOLD_EVERY == 0:
            say(f"changed turns, {number} of {changes}")
        stream = Stream(derive(CHANGES, number))
        category = stream.choice(CATEGORIES)
        scenario = stream.choice(scenarios(category))
        turn = stream.choice([at for at, plan in enumerate(scenario.plans) if plan])
        passing += _compare(scenario, _truth(category, scenario.name), turn, _changed(stream, scenario, turn))
    return Parity("bfcl", "verified", answers, changes, passing)


def official(scenario: Scenario, plans: Any) -> bool:
    """Return the official checker's verdict on the calls of a scenario's first turns."""
    module, instances = PACKAGE.module(CHECKER), vars(PACKAGE.module(UTILITIES))
    known = set(instances)
    entry = {
        "id": scenario.name,
        "initial_config": scenario.configuration,
        "involved_classes": list(scenario.backends),
    }
    written = [[_written(call) for call in plan] for plan in plans]
    truths = [[_written(call) for call in plan] for plan in scenario.plans[: len(plans)]]
    # A step of one turn holds all its calls; a turn without any has no step.
    steps = [[turn] if turn else [] for turn in written]
    try:
        found = module.multi_turn_checker(steps, truths, entry, "", "parity")
    finally:
        # It keeps the instances of every scenario that it has seen among its globals.
        for name in set(instances) - known:
            del instances[name]
    return bool(found["valid"])


def _compare(scenario: Scenario, truth: Truth, turn: int, plan: tuple[Call, ...]) -> bool:
    """Compare both verdicts on a turn that follows the answers of those before, and return it."""
    here = _passes(truth, turn, plan)
    there = official(scenario, (*scenario.plans[:turn], plan))
    _same(scenario, f"turn {turn}, {[_written(call) for call in plan]}", here, expected=there)
    return here


def _passes(truth: Truth, turn: int, plan: tuple[Call, ...]) -> bool:
    state = truth.state(turn)
    earlier = [one for told in truth.told[:turn] for one in told]
    shown = [text(state.call(*call)) for call in plan]
    return truth.fulfilled(turn, state, [*earlier, *shown], len(plan))


def _same(scenario: Scenario, what: str, found: bool, *, expected: bool) -> None:  # noqa: FBT001
    if found != expected:
        problem, where = "this world does not grade as the official checker does", f"{scenario.name}, {what}"
        raise VerificationError(
            problem, expected="pass" if expected else "fail", found="pass" if found else "fail", where=where
        )


@lru_cache(maxsize=1024)
def _truth(category: str, name: str) -> Truth:
    scenario = next(each for each in scenarios(category) if each.name == name)
    return Truth(scenario, is_long=category == LONG, keyed=False)


def _changed(stream: Stream, scenario: Scenario, turn: int) -> tuple[Call, ...]:
    plan = list(scenario.plans[turn])
    at = stream.below(len(plan))
    call = plan[at]
    match stream.below(5):
        case 0:
            del plan[at]
        case 1:
            plan.insert(at, call)
        case 2:
            plan.insert(max(at - 1, 0), plan.pop(at))
        case 3 if call.arguments:
            name = stream.choice(sorted(call.arguments))
            plan[at] = Call(call.tool, {**call.arguments, name: _other(call.arguments[name])})
        case _:
            others = [each for others in scenario.plans for each in others if each != call]
            plan[at] = stream.choice(others) if others else call
    return tuple(plan)


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return value[:-1] if isinstance(value, str | list) and value else "other"


def _written(call: Call) -> str:
    return f"{call.tool}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"
