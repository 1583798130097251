"""Playing an episode by hand: calls are read from a stream, answers are printed on stderr.

stdout stays free for the episode, so that `--json` and a pipe work while a person plays.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import click

from toolkit.cli.output import remark, remarks
from toolkit.lab.backoffice.parameters import LONGEST_WORD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from toolkit.lab.tasks.task import Task

HELP = """\
Write a call as  TOOL NAME=VALUE …  or as  TOOL {"name": value, …}, as in:
  get_order order_id=O-10233
  cancel_order order_id=O-10233 reason="customer request"
tools  lists the tools    task  shows the task again    help  shows this
finish  ends the episode  quit, or the end of input, leaves it as it is"""
LEAVING = frozenset({"quit", "exit"})
MOST_BRACKETS = 500
SELF_EVIDENT = frozenset({"temporarily_unavailable", "outage", "timeout"})


def by_hand(task: Task, stream: TextIO | None) -> Callable[[str, Callable[[str, dict[str, Any]], Any]], None]:
    """Return an agent that makes the calls written on a stream."""

    def agent(prompt: str, call: Callable[[str, dict[str, Any]], Any]) -> None:
        remarks(f"{prompt}\n\nbudget {task.budget} calls\n{HELP}\n")
        for line in _lines(stream):
            if line in {"help", "?"}:
                remarks(HELP)
            elif line == "task":
                remarks(prompt)
            elif line == "tools":
                _print_tools()
            elif line in LEAVING or _is_last(_make(line, call)):
                return

    return agent


def _is_last(answer: dict[str, Any]) -> bool:
    return bool(answer.get("finished")) or answer.get("error", {}).get("code") == "budget_exceeded"


def _lines(stream: TextIO | None) -> Iterator[str]:
    """Yield the lines that say something; ask for each on a terminal. An interrupt ends them."""
    if stream is None:
        return
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    while True:
        if stream.isatty():
            click.echo("> ", nl=False, err=True)
        try:
            line = stream.readline()
        except KeyboardInterrupt:
            return
        if not line:
            return
        if line.strip():
            yield line.strip()


def _make(line: str, call: Callable[[str, dict[str, Any]], Any]) -> dict[str, Any]:
    try:
        tool, arguments = parse(line)
    except (ValueError, RecursionError) as error:
        remark(f"not a call: {error}")
        return {}
    answer: dict[str, Any] = call(tool, arguments)
    remark(describe(answer))
    click.echo(json.dumps(answer, indent=2), err=True)
    return answer


def parse(line: str) -> tuple[str, dict[str, Any]]:
    """Return the tool and the arguments that a line names."""
    tool, *more = line.split(maxsplit=1)
    rest = more[0] if more else ""
    if rest.startswith("{"):
        if rest.count("[") + rest.count("{") > MOST_BRACKETS:
            raise ValueError("too many brackets")
        return tool, json.loads(rest)
    arguments: dict[str, Any] = {}
    for word in shlex.split(rest):
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"{word[:LONGEST_WORD]!r} is not NAME=VALUE")
        if name in arguments:
            raise ValueError(f"{name[:LONGEST_WORD]} is given twice")
        arguments[name] = value
    return tool, arguments


def _print_tools() -> None:
    from toolkit.lab.backoffice.tools import TOOLS

    for tool in TOOLS.values():
        names = " ".join(p.name if p.required else f"[{p.name}]" for p in tool.parameters)
        remarks(f"  {tool.name} {names}\n      {tool.about}")
        for parameter in tool.parameters:
            if parameter.choices:
                remark(f"      {parameter.name}: {', '.join(parameter.choices)}")


def describe(answer: dict[str, Any]) -> str:
    """Return an answer in one line."""
    if "error" in answer:
        error = answer["error"]
        if "retry_after" in error:
            return f"{error['code']}, {error['retry_after']} s"
        code: str = error["code"]
        return code if code in SELF_EVIDENT else f"{code}: {error['message']}"
    fields = {name: value for name, value in answer.items() if name not in {"revision", "next_offset"}}
    if not fields:
        return f"done, revision {answer['revision']}"
    return ", ".join(_short(name, value) for name, value in fields.items() if value is not False)


def _short(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{name}: {len(value)}"
    if isinstance(value, dict):
        known = ("name", "status", "refundable_cents", "pick_list")
        return " ".join([f"{name}:", *(f"{key} {value[key]}" for key in known if value.get(key) is not None)])
    return name if value is True else f"{name} {value}"
