"""A small server of the Model Context Protocol: notes by name, with structure, JSON in text, and plain text.

    python notes_server.py [official] [wait]

With `wait` it has a tool of that name, which noise needs for itself; with `official` it is served by the
official package, which takes ten times as long to start.
"""

import json
import sys
from typing import Any

TEXT = "one\ntwo\nthree\nfour\n"
NAME = {"name": {"type": "string"}}
NAMED = {"type": "object", "properties": NAME, "required": ["name"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
RECORD = {"type": "object", "properties": {**NAME, "text": {"type": "string"}}, "required": ["name", "text"]}
SIZED = {"type": "object", "properties": {**NAME, "text": {"type": "string"}, "size": {"type": "integer"}}}
STRINGS = {"type": "array", "items": {"type": "string"}}
LIST = {"type": "object", "properties": {"names": STRINGS}, "required": ["names"]}
READS, WRITES = {"readOnlyHint": True}, {"readOnlyHint": False, "idempotentHint": True}
TOOLS: list[dict[str, Any]] = [
    {"name": "show", "inputSchema": NAMED, "outputSchema": RECORD, "annotations": READS},
    {"name": "names", "inputSchema": NOTHING, "outputSchema": LIST, "annotations": READS},
    {"name": "list_lines", "inputSchema": NAMED, "annotations": READS},
    {"name": "put", "inputSchema": {**SIZED, "required": ["name"]}, "annotations": WRITES},
    {"name": "lose", "inputSchema": NAMED},
    *([{"name": "wait", "inputSchema": NOTHING}] if "wait" in sys.argv else []),
]
DECLARATION = """
name = "notes"
[tools.show]
kind = "read"
resource = "name"
[tools.names]
kind = "list"
shows = "names"
[tools.list_lines]
kind = "list"
resource = "name"
[tools.put]
kind = "write"
resource = "name"
repeatable = true
[tools.lose]
kind = "write"
resource = "name"
"""
NOTES = {name: f"{name}\n{TEXT}" for name in "abcdefgh"}


def answer(name: str, sent: dict[str, Any]) -> Any:
    """Carry a call out."""
    if name == "names":
        return {"names": sorted(NOTES)}
    if name == "put":
        NOTES[sent["name"]] = sent.get("text", "") or "x" * sent.get("size", 0)
        return {"done": True}
    if name == "list_lines":
        return NOTES[sent["name"]]
    if name == "lose":
        return {"lost": NOTES.pop(sent["name"])}
    return {"name": sent["name"], "text": NOTES[sent["name"]]}


def called(name: str, sent: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a call."""
    try:
        told = answer(name, sent)
    except KeyError as error:
        return {"content": [{"type": "text", "text": f"no note {error}"}], "isError": True}
    if isinstance(told, str):
        return {"content": [{"type": "text", "text": told}]}
    return {"content": [{"type": "text", "text": json.dumps(told)}], "structuredContent": told}


def serve() -> None:
    """Serve on stdin and stdout, a message a line."""
    info = {"name": "notes", "version": "1.0"}
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        answered: dict[str, Any] = {"error": {"code": -32601, "message": "no such method"}}
        if asked["method"] == "initialize":
            answered = {"result": greeting}
        elif asked["method"] == "tools/list":
            answered = {"result": {"tools": TOOLS}}
        elif asked["method"] == "tools/call":
            params = asked["params"]
            answered = {"result": called(params["name"], params.get("arguments") or {})}
        sys.stdout.write(json.dumps({"id": asked["id"], "jsonrpc": "2.0", **answered}) + "\n")
        sys.stdout.flush()


def serve_by_the_official_package() -> None:
    """Serve with the official package."""
    import asyncio

    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate({"tools": TOOLS})

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult.model_validate(called(params.name, params.arguments or {}))

    async def main() -> None:
        server = Server("notes", version="1.0", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(main())


if __name__ == "__main__":
    serve_by_the_official_package() if "official" in sys.argv else serve()
