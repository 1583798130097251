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

import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from toolkit.errors import DamagedError
from toolkit.files import read_text
from toolkit.noise.tools import ANY_RESOURCE, Kind, Stale, Tool
from toolkit.tasks.task import canonical

WAIT = "wait"
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class _Tool(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Kind
    resource: Name | None = None
    shows: Name | None = None
    fields: list[Name] = []
    offset: Name | None = None
    repeatable: bool = False
    stale: Stale = "recorded"


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: Name
    tools: dict[Name, _Tool] = Field(min_length=1)


@dataclass(frozen=True)
class Declaration:
    """The declared tools of a world.

    Args:
        name: name of the world.
        tools: its tools, by name; a `wait` is among them.
    """

    name: str
    tools: Mapping[str, Tool]

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of what is declared, however it was written down."""
        return hashlib.sha256(canonical(self.document()).encode()).hexdigest()

    def document(self) -> dict[str, Any]:
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
    """Read a declaration.

    Raises:
        DamagedError: the file is no declaration; the message names the place.
        MissingFileError: there is no such file.
    """
    return parse_declaration(read_text(path), path)


def parse_declaration(text: str, place: str | Path) -> Declaration:
    """Return the declaration in a text of TOML.

    Raises:
        DamagedError: it is none.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DamagedError("a declaration of tools in TOML", found=error, where=place) from None
    return declaration_of_document(document, place)


def declaration_of_document(document: Mapping[str, Any], place: str | Path) -> Declaration:
    """Return the declaration that `Declaration.document` gave, or that TOML holds.

    Raises:
        DamagedError: it is none.
    """
    try:
        found = _Document.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DamagedError(f"a declaration of tools; {where}: {first['msg']}", where=place) from None
    return declare(
        found.name,
        [
            Tool(name, **{**tool.model_dump(), "fields": tuple(tool.fields)})
            for name, tool in found.tools.items()
        ],
    )


def _said(tool: Tool) -> dict[str, Any]:
    said = {each.name: getattr(tool, each.name) for each in fields(tool) if each.init and each.name != "name"}
    said["fields"] = list(tool.fields)
    return {name: value for name, value in said.items() if value not in (None, [], False)}
