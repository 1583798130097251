"""Parity: whether this world grades as the official checker does, which runs beside it on the same calls."""

from collections.abc import Callable
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

from toolkit.errors import VerificationError
from toolkit.lab.tasks.task import Call
from toolkit.lab.worlds.bfcl.world import CATEGORIES, PACKAGE, Scenario, Truth, scenarios, text
from toolkit.seeds import Stream, derive

CHANGES = "bfcl/parity/v1"
CHECKER = "eval_checker.multi_turn_eval.multi_turn_checker"
UTILITIES = "eval_checker.multi_turn_eval.multi_turn_utils"
LONG = "long_context"
PARITY = 3000
"""Changed turns that are compared before anything is played."""
TOLD_EVERY = 500


class Parity(NamedTuple):
    """What was compared: answers by category, changed turns, and how many of these pass."""

    answers: dict[str, int]
    changed: int
    passing: int


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
    return Parity(answers, changes, passing)


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
