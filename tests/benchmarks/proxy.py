"""What noise in front of a server of the Model Context Protocol adds to a call.

The same call is sent, a line, to a server and to a proxy in front of another one like it, in turns. The
server is the tests' own; the proxy draws the fate of every call and records it. Wall time, from the line that
is sent to the line that is read.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.harness import verdict
from tests.unit.noise.pairing.notes_server import DECLARATION
from tests.unit.noise.pairing.proxied import NOTES, proxy

CALLS, WARM_UP, GOAL_S = 400, 20, 0.001
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}


class Peer:
    """A server, or a proxy in front of one."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.taken: list[float] = []
        self.ask({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": HELLO})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: Any) -> None:
        """Send a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, message: Any) -> None:
        """Send a request, and note how long its answer took."""
        started = time.perf_counter()
        self.send(message)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.taken.append(time.perf_counter() - started)
        if "result" not in json.loads(line):
            sys.exit(f"no result: {line!r}")

    def close(self) -> None:
        """Let it end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


def compare() -> None:
    """Print the medians, and whether the goal is met."""
    with tempfile.TemporaryDirectory() as folder:
        tools, record = Path(folder, "tools.toml"), Path(folder, "calls.jsonl")
        tools.write_text(DECLARATION, encoding="utf-8")
        # Its faults let the server answer every call.
        noise = proxy("--tools", tools, "--record", record, regime="held_out_types")
        direct, through = Peer(NOTES), Peer((*noise, *NOTES))
        for number in range(CALLS + WARM_UP):
            sent = {"name": "show", "arguments": {"name": "abcdefgh"[number % 8]}}
            for peer in (direct, through):
                peer.ask({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": sent})
        direct.close()
        through.close()
    alone, behind = direct.taken[-CALLS:], through.taken[-CALLS:]
    added = statistics.median(b - a for a, b in zip(alone, behind, strict=True))
    print(f"a call of a server of the Model Context Protocol, medians of {CALLS} in turns")
    goal = verdict(added <= GOAL_S, f"at most {1e3 * GOAL_S:g} ms")
    medians = [1e3 * seconds for seconds in (statistics.median(alone), statistics.median(behind), added)]
    print("  direct {:.2f} ms, under noise {:.2f} ms, added {:.2f} ms  {}".format(*medians, goal))
