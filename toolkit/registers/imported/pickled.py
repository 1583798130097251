"""Names and plain values of a pickled object, read off its instructions: nothing of it is imported or run."""

from __future__ import annotations

import pickletools
import zipfile
import zlib
from pathlib import Path
from typing import Any

from toolkit.errors import DamagedError

LARGEST = 2**20
"""Bytes of a pickle: a trainer's arguments have a hundredth."""
_PUT = {"PUT", "BINPUT", "LONG_BINPUT"}
_GET = {"GET", "BINGET", "LONG_BINGET"}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_OTHER = object()
"""Stands for whatever a pickle would import or make."""


def attributes(path: Path) -> dict[str, Any]:
    """Return the attributes of an object that `torch.save` wrote, such as `training_args.bin`.

    Args:
        path: the file.

    Returns:
        Name → number, text, truth value, None, or a list or document of them. An enumeration's member is its
        word. What else an attribute may be is left as an object of no meaning.

    Raises:
        DamagedError: it is no such file, or the object has no attributes.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            member = next(one for one in archive.infolist() if one.filename.split("/")[1:] == ["data.pkl"])
            if member.file_size > LARGEST:
                raise ValueError(f"{member.file_size} bytes of settings, {LARGEST} at most")  # noqa: TRY301
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
        name = code.name
        if name == "MARK":
            marks.append(len(stack))
        elif name in _PUT or name == "MEMOIZE":
            memo[len(memo) if name == "MEMOIZE" else int(argument)] = stack[-1]  # type: ignore[call-overload]
        elif name in _GET:
            stack.append(memo[int(argument)])  # type: ignore[call-overload]
        elif name not in {"PROTO", "FRAME", "STOP"}:
            _perform(code, argument, stack, marks)
    if not isinstance(stack[-1], dict):
        raise ValueError("an object without attributes")  # noqa: TRY004 - of the file, not of a type
    return {key: value for key, value in stack[-1].items() if isinstance(key, str)}


def _perform(code: Any, argument: object, stack: list[Any], marks: list[int]) -> None:
    """Do what an instruction does to the stack, as far as it makes plain values."""
    name, before = code.name, [kind.name for kind in code.stack_before]
    if "mark" in before:
        start = marks.pop()
        items = stack[start:]
        del stack[start:]
        below = len(before) - 1 - ("stackslice" in before)
    else:
        items, below = [], len(before)
    taken = [stack.pop() for _ in range(below)][::-1]
    if name in {"SETITEMS", "SETITEM"}:
        pairs = items or taken[1:]
        if isinstance(taken[0], dict):
            taken[0].update((key, value) for key, value in _pairs(pairs) if isinstance(key, str))
        stack.append(taken[0])
    elif name in {"APPENDS", "APPEND"}:
        if isinstance(taken[0], list):
            taken[0].extend(items or taken[1:])
        stack.append(taken[0])
    elif name == "BUILD":
        stack.append(taken[1])
    elif name == "REDUCE":
        made = taken[1]
        is_word = isinstance(made, list) and len(made) == 1 and isinstance(made[0], str)
        stack.append(made[0] if is_word else _OTHER)
    elif name in {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "LIST", "EMPTY_TUPLE", "EMPTY_LIST"}:
        stack.append(items or taken)
    elif name == "EMPTY_DICT":
        stack.append({})
    elif name in _CONSTANTS:
        stack.append(_CONSTANTS[name])
    elif not before and name not in {"GLOBAL", "EMPTY_SET", "EXT1", "EXT2", "EXT4", "PERSID"}:
        stack.append(argument)
    else:
        stack.extend(_OTHER for _ in code.stack_after)


def _pairs(items: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(items[::2], items[1::2], strict=True))
