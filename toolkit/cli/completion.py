"""`toolkit completion`: teach a shell to complete commands, rules, studies and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from toolkit.cli.output import json_option, print_json

if TYPE_CHECKING:
    from toolkit.documents.command_line import CompletionDocument, Shell


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@json_option
def completion(*, shell: str, as_json: bool) -> None:
    """Print the script that has SHELL complete commands, rules, studies and runs.

    \b
    Where it goes, once:
      bash  eval "$(toolkit completion bash)" in ~/.bashrc
      zsh   eval "$(toolkit completion zsh)" in ~/.zshrc, below compinit
      fish  toolkit completion fish > ~/.config/fish/completions/toolkit.fish

    \b
    Examples:
      toolkit completion bash
      toolkit completion fish --json
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click knows all three
    script = kind(
        click.get_current_context().find_root().command, {}, "toolkit", "_TOOLKIT_COMPLETE"
    ).source()
    if as_json:
        document: CompletionDocument = {"shell": cast("Shell", shell), "script": script}
        print_json(document)
    else:
        click.echo(script, nl=False)
