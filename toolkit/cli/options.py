"""Options of commands, each declared once as the default of the parameter that takes it, and what Tab offers.

A Tab is waited for: only names of folders, manifests and rules files are read, and nothing heavy is imported.
What cannot be read is not offered, and no error is shown.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import click

from toolkit.cli.output import print_json
from toolkit.structs import Document, about

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from toolkit.places import Home

    Offer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

FILE = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)

STUDY = "NAME|PATH|OWNER/NAME@REVISION"
"""What `--study` takes."""

# A TOML parser takes a quarter of a second for all rules files; this needs two lines of each rule.
_RULE = re.compile(r'^\[rules\."?([^\s"\].]+)"?\]\n(?:(?!\[).*\n)*?title = "(.*)"', re.MULTILINE)


class Declared(NamedTuple):
    """What a parameter takes from the command line: an option or argument, or one value of several."""

    parameters: Callable[[str], list[click.Parameter]]
    """click's own, by the name of the function's parameter."""
    build: Callable[..., Any] | None = None


def option(*names: str, **settings: Any) -> Any:
    """Declare an option, called as its parameter unless it is named."""
    return Declared(
        lambda name: [click.Option([*(names or [f"--{name.replace('_', '-')}"]), name], **settings)]
    )


def flag(*names: str, **settings: Any) -> Any:
    """Declare an option that is given or not."""
    return option(*names, is_flag=True, **settings)


def argument(**settings: Any) -> Any:
    """Declare an argument."""
    return Declared(lambda name: [click.Argument([name], **settings)])


def together(build: Callable[..., Any], **declared: Any) -> Any:
    """Declare options of which one value is built."""
    return Declared(lambda _: [p for name, each in declared.items() for p in each.parameters(name)], build)


class Command(click.Command):
    """A command whose options are the defaults of its function's parameters."""

    def __init__(self, name: str | None, *, callback: Callable[..., Any], **settings: Any) -> None:
        declared = {p.name: p.default for p in inspect.signature(callback).parameters.values()}
        made = {name: d.parameters(name) for name, d in declared.items() if isinstance(d, Declared)}
        settings["params"] = [parameter for each in made.values() for parameter in each]
        self._built = {name: (declared[name].build, made[name]) for name in made if declared[name].build}
        super().__init__(name, callback=callback, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, with one value for options that make one together."""
        for name, (build, parameters) in self._built.items():
            ctx.params[name] = build(**{str(p.name): ctx.params.pop(str(p.name)) for p in parameters})
        return super().invoke(ctx)


class Group(click.Group):
    """A group some of whose commands may be hidden, each an option of one that is listed."""

    command_class = Command

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
        shown = click.Option([option], is_flag=True, expose_value=False, help=about)
        self.commands[into].params.append(shown)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands that help lists."""
        return [name for name, command in self.commands.items() if not command.hidden]


def command(name: str | None = None) -> Callable[[Callable[..., None]], Command]:
    """Return what makes a command of a function."""
    return click.command(name, cls=Command)


def group() -> Callable[[Callable[..., None]], Group]:
    """Return what makes a group of a function."""
    return click.group(cls=Group)


def unfold(args: list[str], folded: Mapping[tuple[str, str], str]) -> list[str]:
    """Return the words of a hidden command where its option is given, and the same words elsewhere."""
    end = args.index("--") if "--" in args else len(args)
    for (command, option), hidden in folded.items():
        if args[0] == command and option in args[:end]:
            return [hidden, *(word for at, word in enumerate(args[1:], 1) if word != option or at > end)]
    return args


def offer(found: Callable[[Home, click.Context], Iterable[tuple[str, str]]], *, paths: bool) -> Offer:
    """Return what click asks: names with what they are, in any case of letters; or else files."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from toolkit.places import find_home

        begun, given = incomplete.casefold(), ctx.params.get(param.name or "")
        taken = given if isinstance(given, tuple) else ()
        items = {
            name: CompletionItem(name, help=about or None)
            for name, about in found(find_home(), ctx)
            if name.casefold().startswith(begun) and name not in taken
        }
        return list(items.values()) or ([CompletionItem(incomplete, "file")] if paths else [])

    return complete


def _studies(home: Home, _ctx: object) -> Iterator[tuple[str, str]]:
    for name in home.studies() if home.has_studies else ():
        with suppress(Exception):  # what cannot be read is not offered, and the others are
            yield name, _title(home, _manifest(home, name)["registration"]["name"])


def _registrations(home: Home, _ctx: object) -> Iterator[tuple[str, str]]:
    for name in home.registration_names():
        yield name, _title(home, name)


def _rules(home: Home, ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the rules of the study, or registration, that stands on the line; else of every one here."""
    for name in _named(home, ctx) or home.registration_names():
        for text in _rules_texts(home, name):
            for rule in _RULE.finditer(text):
                yield rule[1], rule[2]


def _runs(home: Home, ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the runs of the studies that stand on the line: those with rows, or else the registered ones."""
    for name in _named(home, ctx):
        if home.find_study(name) is None:
            yield from _registered_runs(home.registration_folder(name) / "rules.toml")
            continue
        for file in _manifest(home, name)["files"]:
            if file.startswith("episodes/"):
                yield file.removeprefix("episodes/").removesuffix(".parquet"), ""


def _registered_runs(rules_file: Path) -> Iterator[tuple[str, str]]:
    import tomllib

    from toolkit.rules.plan import run_name

    for line in tomllib.loads(rules_file.read_text(encoding="utf-8"))["matrix"]:
        for arm, seed in product(line["arms"], line["seeds"]) if "regime" in line else ():
            yield run_name(line["condition"], arm, line["scale_rewards"], seed), line["noise"]


def _tables(_home: object, _ctx: object) -> Iterator[tuple[str, str]]:
    from toolkit.registers.schema import TABLES

    return ((table.name, table.meaning) for table in TABLES.values())


def _named(home: Home, ctx: click.Context) -> tuple[str, ...]:
    """Return the studies or registrations that stand on the line."""
    given = (ctx.params.get(name) for name in ("studies", "study", "name", "registration"))
    named = next((each if isinstance(each, tuple) else (each,) for each in given if each), ())
    # While the value of an option is typed, click has not told which argument a word is.
    known = (*home.registration_names(), *(home.studies() if home.has_studies else ())) if ctx.args else ()
    return named or tuple(word for word in ctx.args if word in known)


def _manifest(home: Home, study: str) -> Any:
    return json.loads((home.study_folder(study) / "MANIFEST.json").read_bytes())


def _rules_texts(home: Home, name: str) -> Iterator[str]:
    """Yield the rules of a study or a registration, and those that amendments add."""
    is_study = home.find_study(name) is not None
    folder = home.registration_folder(_manifest(home, name)["registration"]["name"] if is_study else name)
    for path in (folder / "rules.toml", *sorted(folder.glob("amendments/*.toml"))):
        yield path.read_text(encoding="utf-8")


def _title(home: Home, registration: str) -> str:
    path: Path = home.registrations / registration / "rules.toml"
    if not path.is_file():
        return ""
    title = re.search(r'^title = "(.*)"', path.read_text(encoding="utf-8"), re.MULTILINE)
    return title[1] if title else ""


offer_studies = offer(_studies, paths=True)
offer_registrations = offer(_registrations, paths=True)
offer_rules = offer(_rules, paths=False)
offer_runs = offer(_runs, paths=False)
offer_tables = offer(_tables, paths=False)


json_option: Any = flag("--json", help="Print one JSON document on stdout.")
study_option = option(
    "--study",
    multiple=True,
    metavar=STUDY,
    shell_complete=offer_studies,
    help="Study to read, here or on the Hub; default: every study here.",
)
check_option = flag("--check", help="Compare with the existing files byte by byte, and write nothing.")
trust_option = option(
    "--trust",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="Trust file with more authorities; the public ones that ship with the package are always trusted.",
)
require_option = option(
    "--require",
    type=click.Choice(("public", "demonstration")),
    help="Exit with 1 if a registration has a lower standing; meant for CI.",
)


class Completion(Document, frozen=True):
    """What has a shell complete commands, rules, studies and runs."""

    shell: Annotated[Literal["bash", "zsh", "fish"], about("Which shell.")]
    script: Annotated[str, about("In the shell's language.")]


@command()
def completion(
    *, shell: str = argument(type=click.Choice(("bash", "zsh", "fish"))), as_json: bool = json_option
) -> None:
    """Print the script with which SHELL completes commands, rules, studies and runs.

    \b
    Set it up once:
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
        print_json(Completion(shell, script))  # type: ignore[arg-type]
    else:
        click.echo(script, nl=False)
