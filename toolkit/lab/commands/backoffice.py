"""`toolkit backoffice`: the tools as schemas, and an episode for an agent that lives elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import toolkit
from toolkit.cli.options import group, json_option, option
from toolkit.cli.output import print_json, print_table
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import LIMIT

if TYPE_CHECKING:
    from toolkit.lab.backoffice.parameters import Parameter

FORMATS = ("openai", "json-schema", "openapi")


@group()
def backoffice() -> None:
    """Describe the back office's tools, and serve an episode of it to an agent."""


@backoffice.command()
def schema(
    *,
    form: str | None = option(
        "--format",
        type=click.Choice(FORMATS),
        help="Print the tools as a document: OpenAI's function calling, JSON Schema (2020-12), OpenAPI 3.1.",
    ),
    as_json: bool = json_option,
) -> None:
    """Describe the thirteen tools and their arguments.

    With --json alone they are described as JSON Schema.

    \b
    Examples:
      toolkit backoffice schema
      toolkit backoffice schema --format openai
      toolkit backoffice schema --format openapi --json
    """
    if form is None and not as_json:
        _print_tools()
    else:
        print_json(_document(form or "json-schema"))


@backoffice.command()
def mcp(
    *,
    task_id: str = option("--task", required=True, metavar="POOL:INDEX", help="Task, such as validation:0."),
    regime: str = option(
        type=click.Choice(list(REGIMES)),
        metavar="REGIME",
        default="clean",
        help=f"The noise: {', '.join(REGIMES)}.",
    ),
    schedule: int = option(
        type=click.IntRange(0, LIMIT - 1), default=0, help="Index of the task's evaluation schedule."
    ),
    record: Path | None = option(
        type=click.Path(path_type=Path, dir_okay=False),
        help="File for the graded episode, written when the client has left.",
    ),
    as_json: bool = json_option,  # noqa: ARG001 - read where errors are printed
) -> None:
    """Serve one episode over the Model Context Protocol.

    The server uses stdin and stdout, and stops when stdin ends.

    The request is both the prompt "task" and the server's instructions. Every call counts against the
    episode's budget; a tool error is an answer with `isError`. An episode that the client leaves before
    `finish` is graded as it is. stdout belongs to the protocol: --json affects errors only.

    \b
    Examples:
      toolkit backoffice mcp --task validation:0
      toolkit backoffice mcp --task validation:0 --regime faults_p025 --schedule 3
    """
    from toolkit.files import check_target
    from toolkit.lab.episodes.desk import Desk
    from toolkit.lab.serving import serve
    from toolkit.lab.tasks.pools import load_task
    from toolkit.seeds import evaluation_seed

    if record is not None:
        check_target(record)
    task = load_task(task_id)
    seed = evaluation_seed(task.task_id, schedule)
    serve(Desk(task, REGIMES[regime], seed, traced=record is not None), record)


def _document(form: str) -> Any:
    from toolkit.lab.backoffice.schemas import json_schemas, openai_tools, openapi_document

    if form == "openapi":
        return openapi_document(toolkit.__version__)
    return {"openai": openai_tools, "json-schema": json_schemas}[form]()


def _print_tools() -> None:
    from toolkit.lab.backoffice.tools import TOOLS

    rows = [
        (tool.name, tool.kind, "\n".join(map(_argument, tool.parameters)), tool.about)
        for tool in TOOLS.values()
    ]
    print_table(("tool", "kind", "arguments", "about"), rows, "The tools", spaced=True)


def _argument(parameter: Parameter) -> str:
    if parameter.type == "integer":
        takes = f"whole number from {parameter.minimum} to {parameter.maximum}"
    elif parameter.choices:
        takes = f"one of {', '.join(parameter.choices)}"
    else:
        takes = f"text of at most {parameter.max_length} characters"
    left_out = "" if parameter.required else f", {parameter.default!r} if left out"
    return f"{parameter.name}: {takes}{left_out}"


backoffice.fold("schema", "mcp", "--schema", "Describe the tools, and serve nothing.")
