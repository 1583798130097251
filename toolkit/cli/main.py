"""The `toolkit` command."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

import toolkit
from toolkit.cli.output import leave_quietly, print_error, print_json, remark, silence
from toolkit.deadline import is_left_behind
from toolkit.errors import IncompleteError, ToolkitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

EXIT_CODES = """\b
Exit codes:
  0  done, or verified (a missed hypothesis is still 0)
  1  a verification failed
  2  wrong usage
  3  incomplete: an input is missing
  4  damaged or inconsistent data"""


COMMANDS = {
    "decide": "decide",
    "explain": "explain",
    "verify-prereg": "verify_prereg",
    "verify-token": "verify_token",
    "adopt": "adopt",
    "new-study": "new_study",
    "rehearse": "rehearse",
    "freeze": "freeze",
    "amend": "freeze",
    "deviate": "freeze",
    "registers": "registers",
    "export": "export",
    "sql": "sql",
    "pools": "pools",
    "episode": "episode",
    "evaluate": "evaluate",
    "draw": "draw",
    "backoffice": "backoffice",
    "world": "world",
    "noise": "noise",
    "pairing": "pairing",
    "theory": "theory",
    "power": "power",
    "train": "train",
    "study": "study",
    "probe": "probe",
    "site": "site",
    "schema": "schema",
    "reproduce": "reproduce",
}
"""Every command, and the module of `toolkit.cli` that it lies in."""


class Commands(click.Group):
    """Commands whose modules are imported when they are asked for: starting one need not wait for all."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order in which help lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command by name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"toolkit.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog=EXIT_CODES,
)
@click.version_option(toolkit.__version__, prog_name="toolkit")
def cli() -> None:
    """Check and run pre-registered reinforcement-learning studies.

    \b
    Start here:
      toolkit reproduce          verify, decide and render everything that is shipped
      toolkit decide H2a         the verdict on one registered rule, with its numbers
      toolkit explain H2a        the rule in words, each criterion, and where its rows are
      toolkit sql "SELECT ..."   ask the registers something else
    """


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
        cli._main_shell_completion({}, "toolkit")  # noqa: SLF001 - what `cli.main` does before the same lines
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
