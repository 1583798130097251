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
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, structs

from toolkit.canonical import canonical
from toolkit.errors import DamagedError
from toolkit.files import read_text
from toolkit.noise.tools import ANY_RESOURCE, Kind, Stale, Tool
from toolkit.structs import UNSET, Document, UnsetType, about, as_builtins, parse

WAIT = "wait"

Text = Annotated[str, Meta(min_length=1)]


class DeclaredToolDocument(Document, frozen=True):
    """A declared tool; what is as it is by default is left out."""

    kind: Annotated[Kind, about("A `list` is a read that answers with items; `control` tools meet no fault.")]
    resource: Annotated[Text | UnsetType, about("The argument that names the record a call is about.")] = (
        UNSET
    )
    shows: Annotated[Text | UnsetType, about("Path of the answer's record or items.")] = UNSET
    fields: Annotated[
        tuple[str, ...] | UnsetType, about("Fields of that record, one of which may be lost.")
    ] = UNSET
    offset: Annotated[Text | UnsetType, about("The argument with which a cut list is continued.")] = UNSET
    repeatable: Annotated[bool | UnsetType, about("A write that leaves twice what it leaves once.")] = UNSET
    stale: Annotated[Stale, about("How the state before the last write is seen.")] = "recorded"


class DeclarationDocument(Document, frozen=True):
    """The declared tools of a world."""

    name: Annotated[str, about("Of the world.")]
    tools: dict[str, DeclaredToolDocument]

    def __post_init__(self) -> None:
        if WAIT in self.tools:
            raise ValueError("wait is always there, and is not declared")


@dataclass(frozen=True)
class Declaration:
    """The declared tools of a world."""

    name: str  # name of the world
    tools: Mapping[str, Tool]  # its tools, by name; a `wait` is among them

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of what is declared, however it was written down."""
        return hashlib.sha256(canonical(as_builtins(self.document())).encode()).hexdigest()

    def document(self) -> DeclarationDocument:
        """Return the declaration as a document."""
        tools = {name: _declared(tool) for name, tool in sorted(self.tools.items()) if name != WAIT}
        return DeclarationDocument(self.name, tools)

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
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DamagedError("a declaration of tools is not TOML", found=error, where=place) from None
    return declaration_of(parse(DeclarationDocument, document, "the declaration of tools is invalid", place))


def declaration_of(document: DeclarationDocument) -> Declaration:
    """Return the declaration that a document is."""
    return declare(document.name, [_tool(name, each) for name, each in document.tools.items()])


def _tool(name: str, declared: DeclaredToolDocument) -> Tool:
    return Tool(name, **{key: value for key, value in structs.asdict(declared).items() if value is not UNSET})


def _declared(tool: Tool) -> DeclaredToolDocument:
    return DeclaredToolDocument(
        tool.kind,
        tool.resource or UNSET,
        tool.shows or UNSET,
        tool.fields or UNSET,
        tool.offset or UNSET,
        tool.repeatable or UNSET,
        tool.stale,
    )
