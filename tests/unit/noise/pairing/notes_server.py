"""A small server of the Model Context Protocol: notes by name, with structure, JSON in text, and plain text.

    python -m tests.unit.noise.pairing.notes_server [wait]

With `wait` it has a tool of that name, which noise needs for itself.
"""

import asyncio
import json
import sys
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TEXT = "one\ntwo\nthree\nfour\n"
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
RECORD = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "text": {"type": "string"}},
    "required": ["name", "text"],
}
LIST = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}}},
    "required": ["names"],
}
PUT = {**NAMED, "properties": {**RECORD["properties"], "size": {"type": "integer"}}}  # type: ignore[dict-item]
READS, WRITES = (
    types.ToolAnnotations(read_only_hint=True),
    types.ToolAnnotations(read_only_hint=False, idempotent_hint=True),
)
TOOLS = [
    types.Tool(name="show", input_schema=NAMED, output_schema=RECORD, annotations=READS),
    types.Tool(name="names", input_schema=NOTHING, output_schema=LIST, annotations=READS),
    types.Tool(name="list_lines", input_schema=NAMED, annotations=READS),
    types.Tool(name="put", input_schema=PUT, annotations=WRITES),
    types.Tool(name="lose", input_schema=NAMED),
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


def answer(notes: dict[str, str], name: str, sent: dict[str, Any]) -> Any:
    """Carry a call out."""
    if name == "names":
        return {"names": sorted(notes)}
    if name == "put":
        notes[sent["name"]] = sent.get("text", "") or "x" * sent.get("size", 0)
        return {"done": True}
    if name == "list_lines":
        return notes[sent["name"]]
    if name == "lose":
        return {"lost": notes.pop(sent["name"])}
    return {"name": sent["name"], "text": notes[sent["name"]]}


async def main() -> None:
    """Serve on stdin and stdout."""
    notes = {name: f"{name}\n{TEXT}" for name in "abcdefgh"}

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        waits = [types.Tool(name="wait", input_schema=NOTHING)] if "wait" in sys.argv else []
        return types.ListToolsResult(tools=[*TOOLS, *waits])

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            said = answer(notes, params.name, params.arguments or {})
        except KeyError as error:
            refusal = types.TextContent(type="text", text=f"no note {error}")
            return types.CallToolResult(content=[refusal], is_error=True)
        is_text = isinstance(said, str)
        text = types.TextContent(type="text", text=said if is_text else json.dumps(said))
        return types.CallToolResult(content=[text], structured_content=None if is_text else said)

    server = Server("notes", version="1.0", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
