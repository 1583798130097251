"""A server of the Model Context Protocol that misbehaves when a tool is called: `hostile_server.py HOW`."""

import json
import os
import sys
import time

HOW = sys.argv[1]


def say(message: object) -> None:
    """Write a line."""
    sys.stdout.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    sys.stdout.flush()


def called(identifier: object) -> None:
    """Answer a call as only a bad server does."""
    text = "x" * (int(HOW.partition(":")[2]) << 20) if HOW.startswith("mebibytes") else "fine"
    good = {"jsonrpc": "2.0", "id": identifier, "result": {"content": [{"type": "text", "text": text}]}}
    spoken: dict[str, list[object]] = {
        "is silent": [],
        "garbage": ["\x1b[31mTraceback (most recent call last)"],
        "chatty": ["starting the tool", good],
        "another id": [good | {"id": str(identifier)}],
        "batch": [[good]],
        "deep": ['{"a":' * 100_000],
        "neither": [{"jsonrpc": "2.0", "id": identifier}],
        "no result": [good | {"result": 5}],
        "twice": [good, good],
    }
    if HOW == "dies":
        os._exit(9)
    while HOW == "endless":
        sys.stdout.write("x" * (1 << 20))
    for message in spoken.get(HOW, [good]):
        say(message)


def main() -> None:
    """Serve."""
    for line in sys.stdin:
        asked = json.loads(line)
        result: object = {}
        if asked.get("method") == "initialize":
            info = {"name": "hostile", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        elif asked.get("method") == "tools/list":
            # Pages without an end are for the proxy to end.
            result = {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]}
            if HOW == "pages":
                result = {"tools": [], "nextCursor": "on"}
        elif asked.get("method") == "tools/call":
            called(asked["id"])
            continue
        if "id" in asked:
            say({"jsonrpc": "2.0", "id": asked["id"], "result": result})
    if HOW == "stays":
        time.sleep(600)


main()
