"""Commands that became options of another: `site build --check` does what `site check` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click


def unfold(args: list[str], folded: Mapping[tuple[str, str], str]) -> list[str]:
    """Return the words of a hidden command where its option is given, and the same words elsewhere."""
    end = args.index("--") if "--" in args else len(args)
    for (command, option), hidden in folded.items():
        if args[0] == command and option in args[:end]:
            return [hidden, *(word for at, word in enumerate(args[1:], 1) if word != option or at > end)]
    return args


class Folding(click.Group):
    """A group some of whose commands are hidden, each an option of one that is listed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.folded: dict[tuple[str, str], str] = {}  # (command, option) → the hidden command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; with the option of a hidden one, that."""
        args = unfold(args, self.folded)
        return super().resolve_command(ctx, args)

    def fold(self, hidden: str, into: str, option: str, about: str) -> None:
        """Hide a command behind an option of another, whose help says what it does."""
        self.commands[hidden].hidden = True
        self.folded[into, option] = hidden
        flag = click.Option([option], is_flag=True, expose_value=False, help=about)
        self.commands[into].params.append(flag)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands that help lists."""
        return [name for name, command in self.commands.items() if not command.hidden]
