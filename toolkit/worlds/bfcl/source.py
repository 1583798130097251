"""The package `bfcl-eval` where the reader has it: found, verified by what its files hold, and read.

Nothing of it is copied into this project. It is looked for in the wheel that `BFCL_WHEEL` names, then among
the installed packages; its own dependencies are not needed, but for `mpmath`.
"""

import ast
import hashlib
import importlib
import importlib.util
import json
import os
import sys
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from toolkit.errors import DamagedError, IncompleteError
from toolkit.tasks.task import Call

VERSION = "2025.6.8"
WHEEL = "BFCL_WHEEL"
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

SHA256 = "a617e113d1573c5c8cb3d7a82ce82f51db2b7aff783d946dc6b6094fc724467d"
"""Of the files that are read or run: a line each with its SHA-256 and its name, sorted by name."""

_BACKENDS = "bfcl_eval/eval_checker/multi_turn_eval/func_source_code"
_DATA = "bfcl_eval/data"
_REMEDY = f"pip install --no-deps bfcl-eval=={VERSION} mpmath; or name its wheel in {WHEEL}"


class Scenario(NamedTuple):
    """One scenario.

    Args:
        name: what the package calls it.
        configuration: back-end → the state that it begins in.
        backends: those that are involved.
        requests: what the user says, turn by turn.
        plans: the calls that answer each turn.
    """

    name: str
    configuration: dict[str, Any]
    backends: tuple[str, ...]
    requests: tuple[str, ...]
    plans: tuple[tuple[Call, ...], ...]


@lru_cache
def files() -> dict[str, bytes]:
    """Return the package's files that are read or run, by name.

    Raises:
        IncompleteError: the package is not here.
        DamagedError: its files are not those of version 2025.6.8.
    """
    names = [f"{_BACKENDS}/{module}.py" for module in (*MODULES.values(), "long_context", "__init__")]
    for category in CATEGORIES:
        file = f"BFCL_v3_multi_turn_{category}.json"
        names += [f"{_DATA}/{file}", f"{_DATA}/possible_answer/{file}"]
    read = _read(sorted(names))
    lines = "".join(f"{hashlib.sha256(read[name]).hexdigest()}  {name}\n" for name in read)
    found = hashlib.sha256(lines.encode()).hexdigest()
    if found != SHA256:
        raise DamagedError(
            f"the package bfcl-eval is not version {VERSION}",
            expected=f"files with SHA-256 {SHA256}",
            found=f"SHA-256 {found}",
            where=_place(),
            remedy=_REMEDY,
        )
    return read


def _place() -> Path | None:
    wheel = os.environ.get(WHEEL)
    if wheel:
        return Path(wheel)
    found = importlib.util.find_spec("bfcl_eval")
    return Path(found.origin).parent.parent if found and found.origin else None


def _read(names: list[str]) -> dict[str, bytes]:
    place = _place()
    if place is None:
        raise IncompleteError(
            "BFCL is played from the package bfcl-eval, which is not installed", remedy=_REMEDY
        )
    try:
        if place.is_dir():
            return {name: (place / name).read_bytes() for name in names}
        with ZipFile(place) as wheel:
            return {name: wheel.read(name) for name in names}
    except (OSError, BadZipFile, KeyError) as error:
        raise DamagedError(
            f"the package bfcl-eval is not version {VERSION}", found=error, where=place, remedy=_REMEDY
        ) from None


@lru_cache
def backends() -> dict[str, type]:
    """Return the classes of the back-ends, by name; their files are verified before any is run.

    Raises:
        IncompleteError: the package, or mpmath, is not here.
        DamagedError: its files are not those of version 2025.6.8.
    """
    files()
    place = str(_place())
    if os.environ.get(WHEEL) and place not in sys.path:
        sys.path.insert(0, place)
    try:
        modules = {
            name: importlib.import_module(f"{_BACKENDS.replace('/', '.')}.{module}")
            for name, module in MODULES.items()
        }
    except ImportError as error:
        raise IncompleteError("a back-end of BFCL cannot be imported", found=error, remedy=_REMEDY) from None
    return {name: getattr(module, name) for name, module in modules.items()}


@lru_cache
def scenarios(category: str = "base") -> tuple[Scenario, ...]:
    """Return a category's scenarios in the package's order; errors as `files`."""
    file = f"BFCL_v3_multi_turn_{category}.json"
    asked = [json.loads(line) for line in files()[f"{_DATA}/{file}"].splitlines()]
    answers = [json.loads(line) for line in files()[f"{_DATA}/possible_answer/{file}"].splitlines()]
    truths = {answer["id"]: answer["ground_truth"] for answer in answers}
    return tuple(
        Scenario(
            entry["id"],
            entry["initial_config"],
            tuple(entry["involved_classes"]),
            tuple("\n".join(message["content"] for message in turn) for turn in entry["question"]),
            tuple(tuple(map(read_call, turn)) for turn in truths[entry["id"]]),
        )
        for entry in asked
    )


def read_call(text: str) -> Call:
    """Return the call that a text writes down, of a name and literals; nothing of it is evaluated.

    Arguments by place have whole numbers for names, as texts.

    Raises:
        DamagedError: it is no such call.
    """
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
