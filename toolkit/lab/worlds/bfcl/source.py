"""BFCL's package, `bfcl-eval`, which needs `mpmath` alone: its scenarios, answers and back-ends."""

import ast
import inspect
import json
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from toolkit.errors import DamagedError
from toolkit.lab.tasks.task import Call
from toolkit.lab.worlds.package import Package

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
        call.tool,
        {names[int(key)] if key.isdigit() else key: value for key, value in call.arguments.items()},
    )
