"""The `toolkit` command."""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import toolkit
from toolkit.cli.options import Group, unfold
from toolkit.cli.output import leave_quietly, print_error, print_json, remark, silence
from toolkit.deadline import is_left_behind
from toolkit.errors import IncompleteError, ToolkitError, UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from click.shell_completion import CompletionItem

    Table = dict[str, tuple[str, str]]

HEAD = """\
Usage: toolkit COMMAND [OPTIONS] [ARGS]...

Check and run pre-registered reinforcement-learning studies. Start with

  toolkit reproduce    verify, decide and render everything that is shipped
  toolkit decide H2a   the verdict on one registered rule, with its numbers
  toolkit explain H2a  the rule in words, its criteria, and where its rows are

"""
FOOT = """
toolkit COMMAND --help (-h) shows options and examples; toolkit --version.
Exit codes: 0 done or verified (a missed hypothesis is still 0), 1 verification
failed, 2 wrong usage, 3 an input is missing, 4 damaged or inconsistent data.
"""

GROUPS: dict[str, Table] = {
    "Ask": {
        "decide": ("cli.decide", "Execute registered rules on registers"),
        "explain": ("cli.decide", "Show a rule's words, numbers and rows"),
        "sql": ("cli.extract", "Query registers in SQL"),
        "power": ("cli.power", "Simulate how often a rule would pass"),
        "schema": ("cli.schemas", "Print the schema of an output, of rules or of tables"),
    },
    "Verify": {
        "reproduce": ("cli.reproduce", "Verify, decide and render what is shipped"),
        "verify": ("cli.verify", "Verify a registration, study, token or export"),
        "verify-prereg": ("cli.verify", "Verify registrations, tokens and chronology"),
        "verify-token": ("cli.verify", "Verify a timestamp token, offline"),
        "adopt": ("cli.freeze", "Take the evidence of a freeze from its authors"),
    },
    "Register": {
        "new-study": ("cli.new_study", "Draft a study from a table of episodes"),
        "rehearse": ("cli.new_study", "Try a draft's rules on a pilot"),
        "freeze": ("cli.freeze", "Freeze a registration before its runs"),
        "amend": ("cli.freeze", "Amend a frozen registration"),
        "deviate": ("cli.freeze", "Record a deviation or disclosure"),
        "registers": ("cli.registers", "List, import, compare and share registers"),
        "export": ("cli.extract", "Write a study in another project's format"),
    },
    "Run": {
        "study": ("lab.commands.study", "Play the registered runs, and see how far they are"),
        "train": ("lab.commands.train", "Train a language model by a recipe"),
        "evaluate": ("lab.commands.evaluate", "Evaluate a model under every regime"),
    },
    "Noise": {"noise": ("cli.main", "Put faults in front of anybody's tools")},
    "Lab": {"lab": ("cli.main", "Episodes, draws, task pools, the probe, theory")},
    "Site": {"site": ("site.commands.site", "Build, check and serve the site")},
    "Shell": {"completion": ("cli.options", "Print the script that completes commands on Tab")},
}
"""Every command by what it is for: its module in `toolkit`, and what it does."""

LABORATORY = {
    "episode": ("lab.commands.episode", "Play an episode, or replay a recorded one"),
    "draw": ("lab.commands.draw", "Draw the fault of one call, or the grader's flip"),
    "pools": ("lab.commands.pools", "List, show, build and verify the task pools"),
    "probe": ("lab.commands.probe", "Compare the variance of the designs' gradients"),
    "theory": ("lab.commands.theory", "Compute the paper's propositions"),
    "world": ("lab.commands.world", "Check the grading of other projects' worlds"),
    "backoffice": ("lab.commands.backoffice", "Serve the back office's tools"),
}
"""Commands of `toolkit lab`, likewise."""

NOISE = {
    "mcp": ("noise.commands", "Stand between an agent and a server of tools"),
    "propose": ("noise.commands", "Propose a declaration of a server's tools"),
    "inspect": ("lab.commands.pairing", "Check which design a training really ran"),
}
"""Commands of `toolkit noise`, likewise."""

FORMER = {**LABORATORY, "pairing": ("lab.commands.pairing", "Check which design a training really ran")}
"""Names that commands had until they moved: they work until 1.0, and are listed nowhere."""

COMMANDS = {name: module for commands in GROUPS.values() for name, (module, _) in commands.items()}
"""Every command of the first page, and its module."""


class Commands(Group):
    """Commands whose modules are imported when they are asked for: starting one need not wait for all."""

    def __init__(self, *args: Any, table: Table, former: Table, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.table, self.former = table, former

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write what each command does, without importing it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.table.items()])

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order in which help lists them."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command by name."""
        entry = self.table.get(cmd_name) or self.former.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"toolkit.{entry[0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is asked for, or say which may be meant."""
        name, *_ = args = unfold(args, self.folded)
        is_known = name in self.table or name in self.former
        if not is_known and not name.startswith("-") and not ctx.resilient_parsing:
            meant = did_you_mean(name, self.table)
            ctx.fail(f"No such command {name!r}" + (f": {meant}" if meant else "."))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin so, without importing them, and the options."""
        from click.shell_completion import CompletionItem

        listed = [(name, about) for name, (_, about) in self.table.items() if name.startswith(incomplete)]
        items = [CompletionItem(name, help=about) for name, about in listed]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]


class FirstPage(Commands):
    """The commands of `toolkit`, whose help fits on a screen."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write a page that fits on a screen: what this is, how to start, every command, the exit codes."""
        widest = max(map(len, COMMANDS))
        formatter.write(HEAD)
        for group, commands in GROUPS.items():
            for at, (name, (_, about)) in enumerate(commands.items()):
                formatter.write(f"{'' if at else group:9} {name:{widest}}  {about}\n")
        formatter.write(FOOT)


@click.group(
    cls=FirstPage,
    table={name: each for commands in GROUPS.values() for name, each in commands.items()},
    former=FORMER,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80, "show_default": True},
)
@click.version_option(toolkit.__version__, prog_name="toolkit")
def cli() -> None:
    """Check and run pre-registered reinforcement-learning studies."""


@click.group(
    cls=Commands,
    table=NOISE,
    former={"replay": ("noise.commands", ""), "verify": ("lab.commands.pairing", "")},
)
def noise() -> None:
    """Inject noise into any tools, and check which design a training run really used."""


noise.folded = {("inspect", "--replay"): "replay", ("inspect", "--verify"): "verify"}


@click.group(cls=Commands, table=LABORATORY, former={})
def lab() -> None:
    """Work with the parts of the registered runs: episodes, draws, pools, probes, theory."""


def main() -> None:
    """Run the command line; every failure ends in one message and its exit code."""
    _prepare_streams()
    _print_remarks()
    try:
        code = _run(sys.argv[1:])
        sys.stdout.flush()  # here, where a reader who has left or a full disk can still be told apart
    except BrokenPipeError:
        leave_quietly()
    except OSError as error:
        # Full disks, vanished folders, names too long: the system's word is the message.
        code = _fail(IncompleteError("the system refused", found=error.strerror, where=error.filename))
    except MemoryError:
        code = _fail(IncompleteError("there is not enough memory for this", remedy="ask for less at once"))
    sys.exit(code)


def command() -> None:
    """Run the command line as a process of its own, which ends whatever is left behind in a thread."""
    gc.set_threshold(100_000)  # looking for cycles in what is imported takes a tenth of a short command
    try:
        main()
    finally:
        stop = sys.exception()
        if is_left_behind() and isinstance(stop, SystemExit) and isinstance(stop.code, int):
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError):
                    stream.flush()
            # Libraries do not end well, nor quietly, beside a thread that is at work in them.
            os._exit(stop.code)


def _prepare_streams() -> None:
    """Make sure that there is somewhere to print to, and that everything can be printed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Closed by whoever started us: printing goes nowhere, and exit codes still say what happened.
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - for good
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # vLLM logs on stdout, which is for results, unless it is told otherwise before it is imported.
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")


def _print_remarks() -> None:
    """Have printed on stderr what a reader of the result has to know, which the library logs."""

    class Remarks(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            remark(record.getMessage())

    logging.getLogger("toolkit").handlers = [Remarks()]


def _run(arguments: list[str]) -> int:
    try:
        _complete()
        with cli.make_context("toolkit", arguments) as context:
            cli.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except ToolkitError as error:
        return _fail(error)
    except click.ClickException as error:
        return _wrong_usage(error)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return 130
    return 0


def _complete() -> None:
    """Answer a shell that asks what a line could go on with, and end; say nothing where something ails."""
    instruction = os.environ.get("_TOOLKIT_COMPLETE")
    if not instruction:
        return
    with contextlib.suppress(Exception):
        from click.shell_completion import shell_complete

        shell_complete(cli, {}, "toolkit", "_TOOLKIT_COMPLETE", instruction)
    raise click.exceptions.Exit(0)


def _wrong_usage(error: click.ClickException) -> int:
    _say(error.show, sys.stderr)
    _say_json(UsageError(error.format_message()))
    return error.exit_code


def _fail(error: ToolkitError) -> int:
    _say(lambda: print_error(error), sys.stderr)
    _say_json(error)
    _say(lambda: None, sys.stdout)  # what was printed before the error may have been its cause
    return error.exit_code


def _say_json(error: ToolkitError) -> None:
    if "--json" in sys.argv:
        _say(lambda: print_json({"error": error.as_dict()}), sys.stdout)


def _say(show: Callable[[], None], stream: TextIO) -> None:
    """Print an error; a full disk keeps it from being read, not the exit code from being right."""
    try:
        show()
        stream.flush()
    except OSError:
        silence(stream)
