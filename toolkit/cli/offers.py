"""What a shell offers on Tab: the `shell_complete` of arguments and options.

A Tab is waited for: only names of folders, manifests and rules files are read, and nothing heavy is imported.
What cannot be read is not offered, and no error is shown.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import click
    from click.shell_completion import CompletionItem

    from toolkit.places import Home

    Offer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

# A TOML parser takes a quarter of a second for all rules files; this needs two lines of each rule.
_RULE = re.compile(r'^\[rules\."?([^\s"\].]+)"?\]\n(?:(?!\[).*\n)*?title = "(.*)"', re.MULTILINE)


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
    import json

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


studies = offer(_studies, paths=True)
registrations = offer(_registrations, paths=True)
rules = offer(_rules, paths=False)
runs = offer(_runs, paths=False)
tables = offer(_tables, paths=False)
