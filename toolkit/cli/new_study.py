"""`toolkit new-study`: the files that a study begins with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.output import FOLDER, json_option, print_json, remark, say_line, say_whole
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.places import find_home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.documents.registrations import NewStudyDocument
    from toolkit.drafting.outline import Outline
    from toolkit.registers.importing.source import Log

TARGETS = {"success": "true_success", "launched": "launched_at"}
NO_TIMES = (
    "no launch times: nothing will show that the runs came after the registration; where a column has them, "
    "say --launched COLUMN"
)
NAME = "letters, digits, hyphens and underscores, a letter or digit first, at most 64"


@click.command("new-study")
@click.argument("name")
@click.option(
    "--table",
    "tables",
    metavar="SOURCE",
    multiple=True,
    help="Log of episodes, of a pilot for instance: arms, seeds, steps and columns are read off it; a file, "
    "a folder, a pattern or hf://datasets/OWNER/NAME@REVISION/PATH, and may be repeated.",
)
@click.option("--arm", metavar="COLUMN", help="Column with the arms, where no name says it.")
@click.option("--task", metavar="COLUMN", help="Column with the tasks.")
@click.option("--seed", metavar="COLUMN", help="Column with the seeds of the runs.")
@click.option("--success", metavar="COLUMN", help="Column that says whether an episode succeeded.")
@click.option("--score", metavar="COLUMN", help="Column with a score that is more than yes or no.")
@click.option("--launched", metavar="COLUMN", help="Column that says when a run was launched.")
@click.option(
    "--attribute",
    "attributes",
    metavar="COLUMN",
    multiple=True,
    help="Column that says what a task is, as its difficulty: rules can then be about those tasks alone. May "
    "be repeated.",
)
@click.option(
    "--into", type=FOLDER, help="Folder of the project; the one you are in, or a new one here, if left out."
)
@click.option(
    "--repository",
    default="OWNER/NAME",
    help="Where the registers will be published on the Hub; stands in the card.",
)
@json_option
def new_study(
    *,
    name: str,
    tables: tuple[str, ...],
    attributes: tuple[str, ...],
    into: Path | None,
    repository: str,
    as_json: bool,
    **named: str | None,
) -> None:
    """Begin study NAME: its rules and protocol, the mapping of its table, its card. Nothing is overwritten.

    What is yours to say is marked FILL IN; `toolkit freeze` refuses rules in which it still stands.

    \b
    Examples:
      toolkit new-study my-study --into my-project
      toolkit new-study my-study --table pilot.csv --into my-project
      toolkit new-study my-study --table 'logs/*.eval' --arm model
      toolkit new-study my-study --table trl-runs --into my-project
      toolkit new-study my-study --table lm_eval_output --success exact_match
      toolkit new-study my-study --table histories --score eval/accuracy
      toolkit new-study my-study --table pilot.csv --attribute difficulty
      toolkit new-study my-study --table pilot.csv --repository me/my-study --json
    """
    from toolkit.drafting.outline import blank, outlined, scaffold
    from toolkit.files import write_all
    from toolkit.line_ends import ADDED, protect
    from toolkit.registers.importing.reading import read_log
    from toolkit.registers.manifest import STUDY_NAME

    if not STUDY_NAME.fullmatch(name):
        raise UsageError("a study has another sort of name", expected=NAME, found=name)
    root = into or _project()
    log = read_log(tables, remark) if tables else None
    given = {TARGETS.get(target, target): column for target, column in named.items() if column}
    if attributes and log is None:
        raise UsageError("attributes are columns of a log, and there is none", expected="--table SOURCE")
    outline = blank(name) if log is None else outlined(name, log, given, attributes)
    files = {path: text for path, text in scaffold(outline, repository).items() if _is_new(root / path)}
    write_all(root, {path: text.encode() for path, text in files.items()})
    if protect(root):
        remark(ADDED)
    problem = _problem(files, name, log)
    if as_json:
        document: NewStudyDocument = {
            "study": name,
            "folder": str(root),
            "files": sorted(files),
            "columns": outline.columns,
            "attributes": dict(outline.attributes),
            "unused": list(outline.unused),
            "left_out": [*(log.left_out if log else ())],
            "problem": problem,
        }
        print_json(document)
        return
    say_line(f"{name}: begun in {root}")
    for path in sorted(files):
        say_line(f"  {path}")
    if log:
        _show_guesses(outline, log)
    if problem:
        say_line(f"  NOT YET IMPORTABLE: {problem}")
    say_line("next: fill in what says FILL IN, then")
    named_sources = " ".join(map(shlex.quote, tables)) or "SOURCE"
    if root.resolve() != Path.cwd():
        say_whole(f"  cd {shlex.quote(str(root))}")
    for command in (
        *([f"rehearse {name} {named_sources}"] if log else []),
        f"freeze {name}",
        f"registers import {name} {named_sources}",
        "decide --all",
        "site build",
    ):
        say_whole(f"  toolkit {command}")


def _show_guesses(outline: Outline, log: Log) -> None:
    """Say what was read off a log, and what was not."""
    for target, column in outline.columns.items():
        say_line(f"  {target} is the log's {column!r}")
    for name, column in outline.attributes.items():
        words = ", ".join(f"{word} ({count})" for word, count in outline.words_of_attributes[name].items())
        say_line(f"  attribute {name} of a task is the log's {column!r}: {words} tasks")
    if outline.unused:
        say_line(f"  not used: {', '.join(outline.unused)}")
    if log.left_out:
        say_line(f"  left out: {'; '.join(log.left_out)}")
    if "launched_at" not in outline.columns:
        say_line(f"  {NO_TIMES}")
    say_line("  guessed by name: look the mapping over")
    first, second, *others = outline.arms
    say_line(
        f"  the rules compare {first} minus {second}, condition {outline.conditions[0]}, pool "
        f"{outline.pools[0]}, regime {outline.regimes[0]}: the first by name; change what is others"
    )
    if others or len(outline.conditions) * len(outline.pools) * len(outline.regimes) > 1:
        say_line("  the log has more of them: declare an endpoint and a rule for each that is to decide")


def _problem(files: Mapping[str, str], name: str, log: Log | None) -> str | None:
    """Return what would keep the log from being imported as it is mapped: better said before a freeze."""
    from toolkit.registers.importing.mapping import parse_mapping
    from toolkit.registers.importing.tables import tables_of
    from toolkit.rules.rulebook import load_rulebook

    mapping, rules = files.get(f"mappings/{name}.toml"), files.get(f"prereg/{name}/rules.toml")
    if mapping is None or rules is None or log is None:
        return None
    try:
        terms = load_rulebook(rules).terms
        declared = terms.scores, terms.missing, terms.attributes
        read = parse_mapping(mapping)
        tables_of(log.measured(read.columns), read, *declared)
    except DamagedError as error:
        return str(error)
    return None


def _project() -> Path:
    """Return the project that the reader stands in, or where a new one begins: here."""
    try:
        home = find_home()
    except IncompleteError:
        return Path.cwd()
    return Path.cwd() if home.is_shipped else home.root


def _is_new(path: Path) -> bool:
    """Whether a file can be written; the mark of an empty folder may be there already."""
    if not path.exists():
        return True
    if path.name == ".gitkeep":
        return False
    raise IncompleteError(
        "the study was begun already, and nothing is overwritten",
        found=path.name,
        where=path,
        remedy="go on with it, remove it, or give another name",
    )
