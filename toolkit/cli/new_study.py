"""`toolkit new-study`: the files that a study begins with."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from toolkit.cli.options import FOLDER, argument, command, json_option, offer_registrations, option, together
from toolkit.cli.output import print_json, print_table, print_unbroken, remark, say_line, steps
from toolkit.decisions.decision import Decision
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.places import find_home
from toolkit.structs import Document, about

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.drafting.outline import Outline
    from toolkit.drafting.power import Power
    from toolkit.drafting.rehearsal import Rehearsal
    from toolkit.places import Home
    from toolkit.registers.importing.source import Log

TARGETS = {"success": "true_success", "launched": "launched_at"}
NO_TIMES = (
    "no launch times: nothing will show that the runs came after the registration; where a column has them, "
    "say --launched COLUMN"
)
NAME = "letters, digits, hyphens and underscores, a letter or digit first, at most 64"


class NewStudy(Document, frozen=True):
    """A study that was begun."""

    study: Annotated[str, about("Its name.")]
    folder: Annotated[str, about("Of the project.")]
    files: Annotated[list[str], about("That were written, relative to it.")]
    columns: Annotated[
        dict[str, str], about("The log's column for each that an import wants, as guessed by name.")
    ]
    attributes: Annotated[dict[str, str], about("The log's column for each attribute of tasks.")]
    unused: Annotated[list[str], about("Columns of the log that were not used.")]
    left_out: Annotated[list[str], about("What of the log was left out, in words.")]
    problem: Annotated[str | None, about("What would keep the log from being imported as it is mapped.")]


class RehearsedPower(Document, frozen=True):
    """How often a rule would pass in studies of the registered size."""

    effect: Annotated[float, about("True mean difference, in the estimate's unit.")]
    seeds: Annotated[int, about("Seed pairs.")]
    pass_probability: Annotated[float, about("Share of the simulated studies that passed.")]
    monte_carlo_error: Annotated[float, about("Standard error of that.")]
    assumed: Annotated[str, about("What was assumed of an episode, in words.")]


class RehearsedStudy(Document, frozen=True):
    """A draft on a pilot; none of it decides anything."""

    standing: Annotated[str, about("That it decides nothing, in words.")]
    problems: Annotated[
        tuple[str, ...], about("What keeps the draft from being frozen, or a rule from being decided.")
    ]
    fitted: Annotated[tuple[str, ...], about("What of the draft was fitted to the pilot.")]
    decisions: Sequence[Decision]
    power: Annotated[
        dict[str, str | list[RehearsedPower]], about("By rule; in words why it cannot be simulated.")
    ]
    page: Annotated[str | None, about("The drawing; null where what draws is not installed.")]


@command("new-study")
def new_study(
    *,
    name: str = argument(),
    tables: tuple[str, ...] = option(
        "--table",
        metavar="SOURCE",
        multiple=True,
        help="Log of episodes, for instance of a pilot, that gives arms, seeds, steps and columns: a file, "
        "a folder, a pattern or hf://datasets/OWNER/NAME@REVISION/PATH; may be repeated.",
    ),
    named: dict[str, str | None] = together(
        dict,
        arm=option(metavar="COLUMN", help="Column with the arms, if its name does not tell."),
        task=option(metavar="COLUMN", help="Column with the tasks."),
        seed=option(metavar="COLUMN", help="Column with the seeds of the runs."),
        success=option(metavar="COLUMN", help="Column that tells whether an episode succeeded."),
        score=option(metavar="COLUMN", help="Column with a score that is not just yes or no."),
        launched=option(metavar="COLUMN", help="Column with the time at which a run was launched."),
    ),
    baseline: str | None = option(
        metavar="ARM", help="Arm to compare the others with; default: the first by name."
    ),
    attributes: tuple[str, ...] = option(
        "--attribute",
        metavar="COLUMN",
        multiple=True,
        help="Column with an attribute of tasks, such as difficulty, to select by; may be repeated.",
    ),
    into: Path | None = option(
        type=FOLDER, help="Folder of the project; default: the current one, or a new one in it."
    ),
    repository: str = option(
        default="OWNER/NAME", help="Hub repository for the registers, named in the card."
    ),
    as_json: bool = json_option,
) -> None:
    """Start study NAME: draft its rules, protocol, mapping and card. Nothing is overwritten.

    What you have to fill in is marked FILL IN; `toolkit freeze` refuses rules that still contain it.

    \b
    Examples:
      toolkit new-study my-study --into my-project
      toolkit new-study my-study --table pilot.csv --into my-project
      toolkit new-study my-study --table 'logs/*.eval' --arm model
      toolkit new-study my-study --table pilot.csv --baseline control
      toolkit new-study my-study --table trl-runs --into my-project
      toolkit new-study my-study --table lm_eval_output --success exact_match
      toolkit new-study my-study --table bfcl-project --into my-project
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
    if (attributes or baseline) and log is None:
        asked = "attributes are columns" if attributes else "a baseline is an arm"
        raise UsageError(f"{asked} of a log, and there is none", expected="--table SOURCE")
    outline = blank(name) if log is None else outlined(name, log, given, attributes, baseline)
    files = {path: text for path, text in scaffold(outline, repository).items() if _is_new(root / path)}
    write_all(root, {path: text.encode() for path, text in files.items()})
    if protect(root):
        remark(ADDED)
    problem = _problem(files, name, log, root)
    if as_json:
        left_out = [*(log.left_out if log else ())]
        guessed = outline.columns, dict(outline.attributes), list(outline.unused)
        print_json(NewStudy(name, str(root), sorted(files), *guessed, left_out, problem))
        return
    say_line(f"{name}: begun in {root}")
    for path in sorted(files):
        say_line(f"  {path}")
    if log:
        _show_guesses(outline, log)
    _show_next(name, root, tables, problem)


def _show_next(name: str, root: Path, tables: Sequence[str], problem: str | None) -> None:
    """Say what keeps a log from being imported, and the commands that come next, as they are pasted."""
    for line in f"NOT YET IMPORTABLE: {problem}".split("\n") if problem else ():
        say_line(f"  {line}")
    say_line("next: fill in what says FILL IN, then")
    there = root.resolve()
    pilot = " ".join(shlex.quote(_seen_from(there, table)) for table in tables) or "PILOT"
    if there != Path.cwd():
        print_unbroken(f"  cd {shlex.quote(str(root))}")
    for line in (
        *([f"toolkit rehearse {name} {pilot}"] if tables else []),
        f"toolkit freeze {name}",
        "# run your study, with other seeds or on other days than the pilot: what was seen is no evidence",
        f"toolkit registers import {name} LOG",
        "toolkit decide --all",
        "toolkit site build",
    ):
        print_unbroken(f"  {line}")


def _seen_from(folder: Path, source: str) -> str:
    """Return a file or pattern that was named here as it is named in a folder."""
    if "://" in source or Path(source).is_absolute():
        return source
    return os.path.relpath(Path.cwd() / source, folder)


def _show_guesses(outline: Outline, log: Log) -> None:
    """Say what was read off a log, and what was not."""
    from toolkit.drafting.outline import is_score

    for target, column in outline.columns.items():
        say_line(f"  {target} is the log's {column!r}")
    for name, column in outline.attributes.items():
        words = ", ".join(f"{word} ({count})" for word, count in outline.words_of_attributes[name].items())
        say_line(f"  attribute {name} of a task is the log's {column!r}: {words} tasks")
    if outline.unused:
        say_line(f"  not used: {', '.join(outline.unused)}")
    if more := [name for name in outline.unused if is_score(log.table[name])]:
        say_line(f"  of these hold numbers, and could be the score (--score COLUMN): {', '.join(more)}")
    if log.left_out:
        say_line(f"  left out: {'; '.join(log.left_out)}")
    if "launched_at" not in outline.columns:
        say_line(f"  {NO_TIMES}")
    say_line("  guessed by name: look the mapping over")
    baseline, *others = outline.arms
    say_line(
        f"  the rules compare {', '.join(others)} with {baseline}, condition {outline.conditions[0]}, pool "
        f"{outline.pools[0]}, regime {outline.regimes[0]}: the first by name, where none was given"
    )
    seeds = tuple(dict.fromkeys(seed for _, seed in outline.coverage))
    print_table(
        ["arm", *(f"seed {seed}" for seed in seeds)],
        [
            [arm, *(f"{outline.coverage[arm, seed]:,} of {outline.episodes:,}" for seed in seeds)]
            for arm in outline.arms
        ],
        "  episodes with an outcome",
        numbers=True,
    )


def _problem(files: Mapping[str, str], name: str, log: Log | None, root: Path) -> str | None:
    """Return what would keep the log from being imported as it is mapped; else record it as seen."""
    from toolkit.drafting.importing import check_numbered
    from toolkit.drafting.pilot import draft_record, record
    from toolkit.registers.importing.mapping import parse_mapping
    from toolkit.registers.importing.tables import counted, rows_of
    from toolkit.rules.rulebook import load_rulebook

    mapping, rules = files.get(f"mappings/{name}.toml"), files.get(f"prereg/{name}/rules.toml")
    if mapping is None or rules is None or log is None:
        return None
    try:
        book = load_rulebook(rules)
        terms = book.terms
        read = parse_mapping(mapping)
        rows = rows_of(log.measured(read.columns), read, terms.scores, terms.missing, terms.attributes)
        check_numbered(rows, read, book)
        counted(rows, terms.scores, terms.missing)
    except DamagedError as error:
        return str(error)
    record(draft_record(root, name), rows)
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


PAGES = "rehearsals"
DRAWN_WITH = "jinja2"


@command()
def rehearse(
    *,
    study: str = argument(shell_complete=offer_registrations),
    pilot: tuple[str, ...] = argument(metavar="PILOT...", nargs=-1, required=True),
    simulations: int = option(
        type=click.IntRange(0, 100_000),
        default=200,
        help="Simulated studies for each effect; 0 to skip power.",
    ),
    rng_seed: int = option(type=click.IntRange(0, 2**32), default=1, help="Seed of the simulations."),
    as_json: bool = json_option,
) -> None:
    """Rehearse the draft of STUDY on a PILOT: verdicts, power and a chart. Nothing is decided by it.

    The draft's endpoints are fitted to the seeds, steps and sizes of the pilot. It lists what `toolkit
    freeze` would refuse, and rules that rows of such runs could never decide. The chart is written to
    `rehearsals/STUDY.html`; no registers are written. The exit code is 3 if a rule had no verdict.

    \b
    Examples:
      toolkit rehearse my-study pilot.csv
      toolkit rehearse my-study 'pilot/*.eval' --simulations 1000
      toolkit rehearse my-study pilot.csv --simulations 0 --json
    """
    from toolkit.drafting.pilot import draft_record, record
    from toolkit.drafting.rehearsal import rehearse as play
    from toolkit.files import read_text
    from toolkit.registers.importing.mapping import read_mapping
    from toolkit.registers.importing.reading import read_log

    home = find_home()
    rules = home.registration_folder(study) / "rules.toml"
    mapping = home.mappings / f"{study}.toml"
    if not mapping.is_file():
        raise IncompleteError(
            f"there is no mapping for {study}",
            where=mapping,
            remedy=f"toolkit new-study {study} --table {pilot[0]} writes one",
        )
    with tempfile.TemporaryDirectory() as scratch, steps(f"rehearse {study}") as progress:
        done = play(
            read_text(rules),
            read_mapping(mapping),
            read_log(pilot),
            Path(scratch) / study,
            simulations=simulations,
            rng_seed=rng_seed,
            progress=progress,
        )
        page = _drawn(done, home, study)
        record(draft_record(home.root, study), done.rows, read_text(rules), done.undecided)
    if as_json:
        print_json(_document(done, page))
    else:
        _show(done, page)
    if done.undecided:
        click.get_current_context().exit(IncompleteError.exit_code)


def _drawn(done: Rehearsal, home: Home, study: str) -> Path | None:
    """Write the page of a rehearsal; nothing where what draws is not installed."""
    from toolkit.files import write_text

    if find_spec(DRAWN_WITH) is None:
        return None
    from toolkit.drafting.rehearsal import DECIDES_NOTHING
    from toolkit.rooms import site

    page = home.root / PAGES / f"{study}.html"
    page.parent.mkdir(exist_ok=True)
    said = {"decides_nothing": DECIDES_NOTHING, "problems": done.problems, "fitted": done.fitted}
    write_text(page, site().rehearsal_page(done, **said))
    return page


def _document(done: Rehearsal, page: Path | None) -> RehearsedStudy:
    from toolkit.drafting.rehearsal import DECIDES_NOTHING

    powers = {
        rule: found if isinstance(found, str) else [_power(one) for one in found]
        for rule, found in done.powers.items()
    }
    made = done.problems, done.fitted, done.decisions
    return RehearsedStudy(DECIDES_NOTHING, *made, powers, str(page) if page else None)


def _power(power: Power) -> RehearsedPower:
    simulated = power.pass_probability, power.monte_carlo_error
    return RehearsedPower(power.design.effect, power.design.seeds, *simulated, power.assumed)


def _show(done: Rehearsal, page: Path | None) -> None:
    from toolkit.cli.decide import print_decisions
    from toolkit.drafting.rehearsal import DECIDES_NOTHING

    say_line(DECIDES_NOTHING.upper())
    print_decisions(done.decisions)
    for change in done.fitted:
        say_line(f"  {change}")
    powers = [
        (rule, one) for rule, found in done.powers.items() if not isinstance(found, str) for one in found
    ]
    if powers:
        rows = [
            (
                rule,
                f"{one.design.effect:+.3f}",
                str(one.design.seeds),
                f"{one.pass_probability:.3f}",
                f"{one.monte_carlo_error:.3f}",
            )
            for rule, one in powers
        ]
        print_table(
            ("rule", "effect", "seeds", "passes", "±"), rows, "in studies as registered", numbers=True
        )
    for rule, found in done.powers.items():
        said = [found] if isinstance(found, str) else dict.fromkeys(f"assumed: {p.assumed}" for p in found)
        for line in said:
            say_line(f"  {rule}: {line}")
    say_line("to be mended before it is frozen:" if done.problems else "nothing keeps it from being frozen")
    for problem in done.problems:
        for line in problem.split("\n"):
            say_line(f"  {line}")
    if page:
        say_line(f"drawn: {page}")
