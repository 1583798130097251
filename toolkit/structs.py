"""The base of every type that is a file or a document: parsing, writing and JSON Schema follow from it."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from toolkit.errors import EXCERPT, DamagedError, ToolkitError

_PATTERN = re.compile(
    r"Expected `str` matching regex (?P<regex>'.*'|\".*\")( - at `(?P<path>.*)`)?", re.DOTALL
)
_CHOICES = re.compile(r"\\A\(\?:([\w |-]+)\)\\Z")
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
T = TypeVar("T")
Decoder = Callable[[type, Any], Any]

__all__ = [
    "HIDDEN",
    "UNSET",
    "Document",
    "Shown",
    "UnsetType",
    "Verified",
    "Written",
    "about",
    "as_builtins",
    "inlined",
    "one_of",
    "parse",
    "plainly",
    "printed_fields",
    "replace",
]


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file or a JSON document, or a part of one. A field that is `UNSET` is absent from it.

    With `omit_defaults=True` so is one that has its default. `Shown` says where a field is printed otherwise.
    """


def about(text: str, **bounds: Any) -> Meta:
    """Return what a field says, with the bounds of its value, as `ge=0`; it annotates the field's type."""
    return Meta(description=text, **bounds)


Verified = Annotated[Literal["verified"], about("A command that finds otherwise prints an error.")]
Written = Literal["written", "identical"]
"""`identical`: with --check, nothing was written, and the bytes are these."""


def one_of(choices: Iterable[str], text: str | None = None) -> Meta:
    """Return what a field says, of which the value is one of some words; what each means, if that is told."""
    words = list(choices)
    meanings = list(choices.values()) if isinstance(choices, Mapping) else []
    told = {"enum": words, **({"enumDescriptions": meanings} if meanings else {})}
    return Meta(description=text, pattern=rf"\A(?:{'|'.join(words)})\Z", extra_json_schema=told)


class Shown(NamedTuple):
    """A key that a field is printed as, in the place of its own; it annotates the field's type."""

    key: str
    kind: Any  # the key's type
    text: str
    by: Callable[[Any], Any] = lambda value: value  # what the field's value is printed as


def inlined(kind: type[msgspec.Struct]) -> tuple[Shown, ...]:
    """Return the keys of a document, for the field in whose place they are printed."""

    def read(name: str, by: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda held: by(getattr(held, name))

    return tuple(
        shown._replace(by=read(name, shown.by)) for name, _, keys in printed_fields(kind) for shown in keys
    )


HIDDEN = Shown("", UnsetType, "", lambda _: UNSET)
"""Of a field that is not printed."""


def parse(
    kind: type[T],
    document: object,
    problem: str,
    where: object,
    *,
    remedy: str | None = None,
    error: type[ToolkitError] = DamagedError,
    decode: Decoder | None = None,
) -> T:
    """Return a document as its type has it; `problem`, `where` and `remedy` are those of its error."""
    try:
        return msgspec.convert(document, kind, dec_hook=decode)
    except (ValueError, RecursionError) as wrong:
        raise error(problem, found=plainly(document, str(wrong)), where=where, remedy=remedy) from None


def plainly(document: object, said: str) -> str:
    """Return what the parser says, with the text that has no allowed form or word instead of the pattern."""
    refused = _PATTERN.fullmatch(said)
    if not refused:
        return said
    path = refused["path"] or "$"
    pattern = re.compile(ast.literal_eval(refused["regex"]))
    for place, value in _members(document, "$", _STEP.findall(path)) if path[0] == "$" else ():
        if isinstance(value, str) and not pattern.search(value):
            choices = _CHOICES.fullmatch(pattern.pattern)
            words = choices and choices[1].replace("|", ", ")
            what = f"is not one of {words}" if words else "has a form that is not allowed"
            return f"{value[:EXCERPT]!r} {what} - at `{place}`"
    return f"text in a form that is not allowed - at `{path}`"


def _members(value: Any, place: str, steps: list[tuple[str, str]]) -> Iterator[tuple[str, object]]:
    """Yield the values at a parser's path, each with its place; `[...]` is any member."""
    if not steps:
        yield place, value
        return
    (name, at), *rest = steps
    held = value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
    for key in held if at == "..." else [name or int(at)]:
        if key in held:
            named = f"{place}.{key}" if isinstance(key, str) else f"{place}[{key}]"
            yield from _members(held[key], named, rest)


def as_builtins(value: Any) -> Any:
    """Return a document as dictionaries, lists and plain values, in the order in which they are declared."""
    if isinstance(value, msgspec.Struct):
        return {key: as_builtins(held) for key, held in _printed(value) if held is not UNSET}
    if isinstance(value, dict):
        return {key: as_builtins(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [as_builtins(held) for held in value]
    return float(value) if isinstance(value, Fraction) else value


def _printed(document: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    for name, omitted, keys in printed_fields(type(document)):
        held = getattr(document, name)
        if omitted is UNSET or held != omitted:
            yield from ((shown.key, shown.by(held)) for shown in keys)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return UNSET if field.default is msgspec.NODEFAULT else field.default


@cache
def printed_fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any, list[Shown]], ...]:
    """Return of each field its name, the value that is not printed, and the keys that it is printed as."""
    omits = kind.__struct_config__.omit_defaults
    return tuple(
        (
            field.name,
            _default(field) if omits else UNSET,
            [shown for shown in getattr(field.type, "__metadata__", ()) if isinstance(shown, Shown)]
            or [Shown(field.encode_name, field.type, "")],
        )
        for field in msgspec.structs.fields(kind)
    )


def replace(value: T, /, **changes: Any) -> T:
    """Return a copy of a struct or a dataclass with other values of some fields."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]
