"""A proposed declaration: what a server, or a document of OpenAPI, says of its tools; a person confirms it.

    of a server                                     of a document of OpenAPI 3
    readOnlyHint → read, else write                 GET → read, every other method → write
    idempotentHint → repeatable                     PUT, DELETE → repeatable
    the first required text that names something    the last parameter of the path → resource
    answers with one list → list                    likewise

What is unsure stands beside the proposal as a comment.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from toolkit.errors import DamagedError, UsageError
from toolkit.files import read_text
from toolkit.noise.declaration import WAIT, Declaration, DeclarationDocument, declare
from toolkit.noise.mcp.server import Server
from toolkit.noise.tools import Tool
from toolkit.structs import Document, about, as_builtins

Json = dict[str, Any]
METHODS = {"get": True, "put": True, "post": False, "patch": False, "delete": True}
"""Method of HTTP → whether doing it twice leaves what doing it once leaves."""
DEEPEST_REFERENCE = 20
_NAMES = re.compile(r"(^|_)(path|uri|url|id|ids|name|key|slug|file|filename|ref|number|code|symbol|handle)$")
_LISTS = re.compile(r"^(list|search|find|query|get_all)(_|$)")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Proposed(NamedTuple):
    """A tool as it is proposed."""

    tool: Tool  # the tool
    doubts: tuple[str, ...]  # what a person has to look at


class ProposalDocument(Document, frozen=True):
    """A declaration for a person to confirm."""

    declaration: DeclarationDocument
    unsure: Annotated[dict[str, list[str]], about("What is guessed, in words, by tool.")]


def from_server(tools: Iterable[Json]) -> list[Proposed]:
    """Return proposals for the tools that a server lists."""
    return [_of_server(tool) for tool in tools if tool["name"] != WAIT]


def from_openapi(document: Any, place: str | Path) -> tuple[str, list[Proposed]]:
    """Return the name of an interface and proposals for its operations."""
    if type(document) is not dict or not str(document.get("openapi", "")).startswith("3"):
        found = document.get("swagger") if type(document) is dict else type(document).__name__
        raise DamagedError("no document of OpenAPI 3", expected='"openapi": "3…"', found=found, where=place)
    proposed = [
        _of_operation(document, path, method, operation)
        for path, operations in _mapping(document.get("paths")).items()
        for method, operation in _mapping(_resolved(document, operations)).items()
        if method in METHODS and type(operation) is dict
    ]
    names = [each.tool.name for each in proposed]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DamagedError("two operations have one name", found=", ".join(twice), where=place)
    return str(_mapping(document.get("info")).get("title") or "openapi"), proposed


def read_openapi(path: Path) -> Any:
    """Read a document in JSON, or in YAML where its package is installed."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith(("{", "[")):
            raise DamagedError("a document in JSON", found=error, where=path) from None
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise DamagedError("a document in YAML", found=error, where=path) from None


async def ask(command: Sequence[str], patience: float) -> tuple[str, list[Proposed]]:
    """Start a server, and return its name and proposals for its tools."""
    server = Server(command, patience)
    try:
        info = await server.greet()
        tools = await server.tools()
    finally:
        server.stop()
    check_wait(tools)
    return str(info.get("name") or server.name), from_server(tools)


def check_wait(tools: Iterable[Json]) -> None:
    """Refuse a server that has a tool of the name that noise needs."""
    if any(tool["name"] == WAIT for tool in tools):
        raise UsageError(
            f"the server has a tool named {WAIT} of its own",
            expected=f"no such tool: {WAIT} is how an agent waits out a rate limit",
            remedy="rename the server's tool, or put noise in front of another server",
        )


def confirmed(name: str, proposed: Sequence[Proposed]) -> Declaration:
    """Return proposals as a declaration."""
    if not proposed:
        raise UsageError("there is no tool to declare", where=name)
    return declare(name, [each.tool for each in proposed])


def text_of(name: str, proposed: Sequence[Proposed]) -> str:
    """Return proposals as the TOML of a declaration, with a comment where a person has to look."""
    document = as_builtins(confirmed(name, proposed).document())
    doubts = {each.tool.name: each.doubts for each in proposed}
    lines = ["# Proposed: look at every tool, above all where it says unsure, and delete the comments."]
    lines += [f"name = {_toml(document['name'])}"]
    for tool, said in document["tools"].items():
        lines += ["", f"[tools.{tool if _BARE.fullmatch(tool) else _toml(tool)}]"]
        lines += [f"# unsure: {doubt}" for doubt in doubts[tool]]
        lines += [f"{key} = {_toml(value)}" for key, value in said.items() if key != "stale"]
    return "\n".join(lines) + "\n"


def _of_server(tool: Json) -> Proposed:
    hints = _mapping(tool.get("annotations"))
    doubts = []
    reads = hints.get("readOnlyHint") is True
    if "readOnlyHint" not in hints:
        doubts.append("the server does not say whether it only reads")
    shape, shows = _shape(_mapping(tool.get("outputSchema")))
    if reads and shape != "array" and _LISTS.match(_snake(tool["name"])):
        doubts.append('perhaps kind = "list": its name says so, the form of its answers does not')
    schema = _mapping(tool.get("inputSchema"))
    resource, doubt = _resource(schema)
    if doubt:
        doubts.append(doubt)
    if reads:
        return Proposed(_reading(tool["name"], resource, shape, shows), tuple(doubts))
    repeatable = hints.get("idempotentHint") is True
    return Proposed(
        Tool(tool["name"], "write", resource, repeatable=repeatable, stale="recorded"), tuple(doubts)
    )


def _reading(name: str, resource: str | None, shape: str | None, shows: str | None) -> Tool:
    return Tool(name, "list" if shape == "array" else "read", resource, shows, stale="recorded")


def _resource(schema: Json) -> tuple[str | None, str]:
    """Return the argument that names what a call is about, and what is unsure of it."""
    required = schema.get("required")
    properties = _mapping(schema.get("properties"))
    needed = [name for name in properties if type(required) is list and name in required]
    texts = [name for name in needed if _mapping(properties[name]).get("type") == "string"]
    for name in texts:
        if _NAMES.search(_snake(name)):
            return name, ""
    if texts:
        return None, f"no required argument looks like a name; perhaps resource = {_toml(texts[0])}"
    return None, "no required argument names what a call is about" if properties else ""


def _of_operation(document: Json, path: str, method: str, operation: Json) -> Proposed:
    name = operation.get("operationId")
    said = name if type(name) is str and name else "_".join([method, *re.findall(r"[A-Za-z0-9]+", path)])
    parameters = re.findall(r"\{([^{}]+)\}", path)
    resource = parameters[-1] if parameters else None
    doubts = [] if resource else ["the path has no parameter, so all calls are about one thing"]
    if name is None:
        doubts.append(f"{method.upper()} {_toml(path)} has no operationId")
    tool = Tool(said, "write", resource, repeatable=METHODS[method], stale="recorded")
    if method == "get":
        tool = _reading(said, resource, *_shape(_answer(document, operation), document))
    return Proposed(tool, tuple(doubts))


def _answer(document: Json, operation: Json) -> Json:
    """Return the schema of an operation's answer in JSON; nothing where it has none."""
    responses = _mapping(operation.get("responses"))
    for status in sorted(map(str, responses)):
        if status.startswith("2"):
            content = _mapping(_resolved(document, responses.get(status, {})).get("content"))
            for kind, said in content.items():
                if "json" in kind:
                    return _resolved(document, _mapping(said).get("schema"))
    return {}


def _shape(schema: Json, document: Json | None = None) -> tuple[str | None, str | None]:
    """Return of which type an answer is, and the name of the one list, or the one thing, in it."""
    if schema.get("type") == "array":
        return "array", None
    properties = {
        name: _resolved(document or schema, said) for name, said in _mapping(schema.get("properties")).items()
    }
    lists = [name for name, said in properties.items() if said.get("type") == "array"]
    if len(lists) == 1:
        return "array", lists[0]
    if len(properties) == 1:
        ((name, said),) = properties.items()
        return said.get("type"), name
    return schema.get("type"), None


def _resolved(document: Json, schema: Any) -> Json:
    """Return a schema, or what its reference within the document names."""
    for _ in range(DEEPEST_REFERENCE):
        reference = _mapping(schema).get("$ref")
        if type(reference) is not str or not reference.startswith("#/"):
            break
        schema = document
        for part in reference[2:].split("/"):
            schema = _mapping(schema).get(part.replace("~1", "/").replace("~0", "~"))
    return _mapping(schema)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).replace("-", "_").lower()


def _mapping(value: Any) -> Json:
    return dict(value) if isinstance(value, Mapping) else {}


def _toml(value: Any) -> str:
    # A JSON value of text, truth or a list of texts is one of TOML; what is not printable, its code is.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
