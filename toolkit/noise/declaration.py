"""A declaration: what a person says of each tool, so that noise can stand in front of it.

    name = "files"

    [tools.read_file]
    kind = "read"               # read, list, write or control
    resource = "path"           # the argument that names what a call is about; left out for none
    stale = "recorded"          # snapshot, recorded or never

    [tools.list_files]
    kind = "list"
    shows = "files"             # where the answer holds its items, if not the whole answer is them
    offset = "offset"           # the argument that goes on with a cut list, if there is one

    [tools.move_file]
    kind = "write"
    resource = "source"
    repeatable = false          # whether doing it twice leaves what doing it once leaves

A tool that waits, for rate limits, is always there: `wait(seconds)`.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from toolkit.canonical import canonical
from toolkit.errors import DamagedError
from toolkit.files import read_text
from toolkit.noise.tools import ANY_RESOURCE, Kind, Stale, Tool

if TYPE_CHECKING:
    from toolkit.documents.world import DeclarationDocument, DeclaredToolDocument

WAIT = "wait"

_TEXT = (str, "a text that is not empty")
_IS: Mapping[str, tuple[type, str]] = {
    "resource": _TEXT,
    "shows": _TEXT,
    "fields": (list, "a list of names"),
    "offset": _TEXT,
    "repeatable": (bool, "true or false"),
}
_ONE_OF: Mapping[str, tuple[str, ...]] = {"kind": get_args(Kind), "stale": get_args(Stale)}


@dataclass(frozen=True)
class Declaration:
    """The declared tools of a world."""

    name: str  # name of the world
    tools: Mapping[str, Tool]  # its tools, by name; a `wait` is among them

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of what is declared, however it was written down."""
        return hashlib.sha256(canonical(self.document()).encode()).hexdigest()

    def document(self) -> DeclarationDocument:
        """Return the declaration as JSON values; what is as it is by default is left out."""
        return {
            "name": self.name,
            "tools": {name: _said(tool) for name, tool in sorted(self.tools.items()) if name != WAIT},
        }

    def resource(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """Return what a call is about: the text of the argument that names it, `*` where there is none."""
        value = None if tool.resource is None else arguments.get(tool.resource)
        if value is None:
            return ANY_RESOURCE
        return value if isinstance(value, str) else canonical(value)


def declare(name: str, tools: Iterable[Tool]) -> Declaration:
    """Return a declaration of these tools; a `wait` is added."""
    return Declaration(name, {**{tool.name: tool for tool in tools}, WAIT: Tool(WAIT, "control")})


def read_declaration(path: Path) -> Declaration:
    """Read a declaration."""
    return parse_declaration(read_text(path), path)


def parse_declaration(text: str, place: str | Path) -> Declaration:
    """Return the declaration in a text of TOML."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DamagedError("a declaration of tools is no TOML", found=error, where=place) from None
    return declaration_of_document(found, place)


def declaration_of_document(found: Mapping[str, Any], place: str | Path) -> Declaration:
    """Return the declaration that `Declaration.document` gave, or that TOML holds."""
    name, tools = found.get("name"), found.get("tools")
    if set(found) != {"name", "tools"} or not isinstance(name, str) or not isinstance(tools, dict):
        raise DamagedError(
            "a declaration has a name, and a table of tools",
            expected="name = …, [tools.NAME]",
            found=", ".join(found),
            where=place,
        )
    return declare(name, [_tool(each, said, place) for each, said in tools.items()])


def _tool(name: str, said: Any, place: str | Path) -> Tool:
    """Return a declared tool, of which every word is known."""
    where = f"{place}, tools.{name}"
    if not isinstance(said, dict) or "kind" not in said:
        raise DamagedError("a tool has a kind", expected=", ".join(_ONE_OF["kind"]), where=where)
    for key, value in said.items():
        choices, (kind, expected) = _ONE_OF.get(key), _IS.get(key, _TEXT)
        if choices is None and key not in _IS:
            raise DamagedError(f"a tool has no {key!r}", expected=", ".join((*_ONE_OF, *_IS)), where=where)
        names = value if kind is list and type(value) is list else ()
        if type(value) is not kind or value == "" or not all(type(one) is str for one in names):
            raise DamagedError(f"{key} is {expected}", found=repr(value)[:80], where=where)
        if choices is not None and value not in choices:
            raise DamagedError(f"there is no {key} {value!r}", expected=", ".join(choices), where=where)
    if name == WAIT:
        raise DamagedError("wait is always there, and is not declared", where=where)
    return Tool(name, **{"stale": "recorded", **said, "fields": tuple(said.get("fields", ()))})


def _said(tool: Tool) -> DeclaredToolDocument:
    said = {each.name: getattr(tool, each.name) for each in fields(tool) if each.init and each.name != "name"}
    said["fields"] = list(tool.fields)
    told = {name: value for name, value in said.items() if value not in (None, [], False)}
    return cast("DeclaredToolDocument", told)  # its own fields by name
