"""Names and plain values of a pickled object, read off its instructions: nothing of it is imported or run."""

from __future__ import annotations

import pickletools
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolkit.errors import DamagedError

LARGEST = 2**20
"""Bytes of a pickle: a trainer's arguments have a hundredth."""
_OTHER = object()
"""Stands for whatever a pickle would import or make."""


def attributes(path: Path) -> dict[str, Any]:
    """Return the attributes of an object that `torch.save` wrote, such as `training_args.bin`."""
    try:
        with zipfile.ZipFile(path) as archive:
            member = next(one for one in archive.infolist() if one.filename.split("/")[1:] == ["data.pkl"])
            if member.file_size > LARGEST:
                raise ValueError(f"{member.file_size} bytes of settings, {LARGEST} at most")
            with archive.open(member) as opened:
                found = _top(opened.read(LARGEST))
    except (
        *(OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, StopIteration),
        *(RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error),
    ) as error:
        raise DamagedError(
            f"{path.name} is not what torch.save writes",
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            where=path,
            remedy="remove the file: without it the log is read without the run's settings",
        ) from None
    return found


def _top(pickled: bytes) -> dict[str, Any]:
    """Return the attributes of the object that a pickle's instructions would leave."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    for code, argument, _ in pickletools.genops(pickled):
        if code.name == "MARK":
            marks.append(len(stack))
        elif code.name in _PUT:
            memo[len(memo) if argument is None else int(argument)] = stack[-1]
        elif code.name in _GET:
            stack.append(memo[int(argument or 0)])
        elif code.name not in {"PROTO", "FRAME", "STOP"}:
            taken = _taken([kind.name for kind in code.stack_before], stack, marks)
            if code.name in _MAKES:
                stack.append(_MAKES[code.name](taken))
            elif code.name in _LITERALS:
                stack.append(argument)
            else:
                stack.extend(_OTHER for _ in code.stack_after)
    if not isinstance(stack[-1], dict):
        raise ValueError("an object without attributes")  # noqa: TRY004 - of the file, not of a type
    return {key: value for key, value in stack[-1].items() if isinstance(key, str)}


def _taken(before: list[str], stack: list[Any], marks: list[int]) -> list[Any]:
    """Take from the stack what an instruction takes: so many objects, and those above the last mark."""
    above = 0
    if "mark" in before:
        above = len(stack) - marks.pop()
        before = [name for name in before if name not in {"mark", "stackslice"}]
    start = len(stack) - above - len(before)
    if start < 0 or above < 0:
        raise ValueError("an instruction without its objects")
    taken = stack[start:]
    del stack[start:]
    return taken


def _set(taken: list[Any]) -> Any:
    if isinstance(taken[0], dict):
        pairs = zip(taken[1::2], taken[2::2], strict=True)
        taken[0].update((key, value) for key, value in pairs if isinstance(key, str))
    return taken[0]


def _append(taken: list[Any]) -> Any:
    if isinstance(taken[0], list):
        taken[0].extend(taken[1:])
    return taken[0]


def _word(taken: list[Any]) -> Any:
    """Return the word of an enumeration's member, which is made of it alone."""
    told = taken[1]
    is_word = isinstance(told, list) and len(told) == 1 and isinstance(told[0], str)
    return told[0] if is_word else _OTHER


_PUT = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
_GET = {"GET", "BINGET", "LONG_BINGET"}
_LITERALS = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
}
_MAKES: dict[str, Callable[[list[Any]], Any]] = {
    **dict.fromkeys(("SETITEM", "SETITEMS"), _set),
    **dict.fromkeys(("APPEND", "APPENDS"), _append),
    **dict.fromkeys(("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "LIST", "EMPTY_TUPLE", "EMPTY_LIST"), list),
    "EMPTY_DICT": lambda _: {},
    "BUILD": lambda taken: taken[1],
    "REDUCE": _word,
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
}
