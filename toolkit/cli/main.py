"""The `toolkit` command."""

from __future__ import annotations

import sys

import click

import toolkit
from toolkit.cli.decide import decide
from toolkit.cli.explain import explain
from toolkit.cli.output import leave_quietly, print_error, print_json
from toolkit.cli.registers import registers
from toolkit.cli.reproduce import reproduce
from toolkit.cli.site import site
from toolkit.cli.sql import sql
from toolkit.cli.verify_prereg import verify_prereg
from toolkit.errors import ToolkitError, UsageError

EXIT_CODES = """\b
Exit codes:
  0  done, or verified (a missed hypothesis is still 0)
  1  a verification failed
  2  wrong usage
  3  incomplete: an input is missing
  4  damaged or inconsistent data"""


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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


for command in (decide, explain, verify_prereg, registers, sql, site, reproduce):
    cli.add_command(command)


def main() -> None:
    """Run the command line; every failure ends in one message and its exit code."""
    try:
        result = cli.main(standalone_mode=False)
        sys.exit(result if isinstance(result, int) else 0)
    except ToolkitError as error:
        print_error(error, as_json="--json" in sys.argv)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        if "--json" in sys.argv:
            print_json({"error": UsageError(error.format_message()).as_dict()})
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        leave_quietly()
