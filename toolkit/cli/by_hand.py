"""Playing an episode by hand: calls are read from a stream, answers are printed on stderr.

stdout stays free for the episode, so that `--json` and a pipe work while a person plays.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import click

from toolkit.cli.trace import describe

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from toolkit.tasks.task import Task

HELP = """\
Write a call as  TOOL NAME=VALUE …  or as  TOOL {"name": value, …}  — for example:
  get_order order_id=O-10233
  cancel_order order_id=O-10233 reason="customer request"
tools  lists the tools · task  shows the task again · finish  ends the episode · end of input leaves it"""


def by_hand(task: Task, stream: TextIO) -> Callable[[str, Callable[[str, dict[str, Any]], Any]], None]:
    """Return an agent that makes the calls written on a stream.

    Args:
        task: the task, for its budget.
        stream: one call a line.
    """

    def agent(prompt: str, call: Callable[[str, dict[str, Any]], Any]) -> None:
        click.echo(f"{prompt}\n\nbudget {task.budget} calls\n{HELP}\n", err=True)
        for line in _lines(stream):
            if line in {"help", "?"}:
                click.echo(HELP, err=True)
            elif line == "task":
                click.echo(prompt, err=True)
            elif line == "tools":
                _print_tools()
            else:
                answer = _make(line, call)
                if answer.get("finished") or answer.get("error", {}).get("code") == "budget_exceeded":
                    return

    return agent


def _lines(stream: TextIO) -> Any:
    """Yield the lines that say something; ask for each on a terminal."""
    while True:
        if stream.isatty():
            click.echo("> ", nl=False, err=True)
        line = stream.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


def _make(line: str, call: Callable[[str, dict[str, Any]], Any]) -> dict[str, Any]:
    try:
        tool, arguments = parse(line)
    except ValueError as error:
        click.echo(f"not a call: {error}", err=True)
        return {}
    answer: dict[str, Any] = call(tool, arguments)
    click.echo(describe(answer), err=True)
    click.echo(json.dumps(answer, indent=2, ensure_ascii=False), err=True)
    return answer


def parse(line: str) -> tuple[str, dict[str, Any]]:
    """Return the tool and the arguments that a line names.

    Raises:
        ValueError: it is no call.
    """
    tool, _, rest = line.partition(" ")
    if rest.lstrip().startswith("{"):
        return tool, json.loads(rest)
    arguments: dict[str, Any] = {}
    for word in shlex.split(rest):
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"{word!r} is not NAME=VALUE")
        arguments[name] = value
    return tool, arguments


def _print_tools() -> None:
    from toolkit.backoffice.tools import TOOLS

    for tool in TOOLS.values():
        names = " ".join(p.name if p.required else f"[{p.name}]" for p in tool.parameters)
        click.echo(f"  {tool.name} {names}\n      {tool.about}", err=True)
