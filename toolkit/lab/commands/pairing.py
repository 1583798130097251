"""`toolkit pairing`: noise in front of anybody's tools, and what training under it recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from toolkit import cases
from toolkit.cli.options import FILE, argument, command, flag, group, json_option, option
from toolkit.cli.output import bold, print_json, print_table, say_line, steps, tell
from toolkit.errors import IncompleteError, VerificationError

if TYPE_CHECKING:
    from toolkit.lab.inspection.inspection import RunInspection


@command()
def inspect(
    *,
    log: str = argument(),
    declared: Literal["paired", "independent"] | None = option(
        type=click.Choice(["paired", "independent"]),
        help="Intended design; default: what the log says. Exit with 1 if another one is found.",
    ),
    group_size: int | None = option(
        type=click.IntRange(2), help="Group size G: groups are this many consecutive rows."
    ),
    seed_column: str | None = option(metavar="COLUMN", help="Column with each rollout's seed."),
    verify: bool = flag(help="Verify a record of `toolkit.pairing` instead."),  # noqa: ARG001 - see `Noise`
    replay: bool = flag(  # noqa: ARG001 - likewise
        help="Replay a record of `noise mcp` instead; with -- COMMAND, on a fresh server."
    ),
    as_json: bool = json_option,
) -> None:
    """Tell which design the training in LOG really used.

    The answer is paired, independent, or paired by accident.

    LOG is the output folder of a TRL trainer with log_completions, what verl dumps to
    trainer.rollout_data_dir, a table with a row a rollout, or a study's registers. The rollouts' seeds decide
    (schedule_seed, env_seed, ...). Without seeds, answers to the same call within a group are compared: under
    one schedule they always agree, and p is how often shuffled answers agree as much.

    \b
    Examples:
      toolkit pairing inspect outputs/grpo-run
      toolkit pairing inspect outputs/grpo-run --declared independent --json
      toolkit pairing inspect rollouts.parquet --seed-column env_seed
      toolkit pairing inspect registers/embedded
    """
    from toolkit.lab.inspection.inspection import InspectionDocument, inspect_log, inspect_study, overall
    from toolkit.registers.importing.reading import read_log

    with steps("inspecting") as say:
        if (Path(log) / "MANIFEST.json").is_file():
            study = cases.open_study(log)
            kind, runs = f"registers of {study.name}", inspect_study(study, declared)
        else:
            read = read_log([log], say)
            kind, runs = (
                read.format,
                inspect_log(read, declared=declared, group_size=group_size, seed_column=seed_column),
            )
    common = overall(runs)
    if as_json:
        print_json(InspectionDocument(log, kind, common, runs))
    else:
        _show(kind, runs)
    # The code of the worst that was found: a broken declaration, or nothing to tell by.
    if any(run.contradicts for run in runs):
        raise click.exceptions.Exit(VerificationError.exit_code)
    if any(run.design == "cannot_tell" for run in runs):
        raise click.exceptions.Exit(IncompleteError.exit_code)


@command()
def verify(*, log: Path = argument(type=FILE), as_json: bool = json_option) -> None:
    """Verify LOG, a record that `toolkit.noise.trainers` wrote.

    Every schedule seed is derived again from design, seed, step, task and slot; observed rewards have to
    follow from true outcomes and schedules, and flags from both. True outcomes are taken at their word.

    \b
    Examples:
      toolkit pairing verify groups.jsonl
      toolkit pairing verify groups.jsonl --json
    """
    from toolkit.noise.trainers.groups import verify as verified

    found = verified(log)
    tell(
        found,
        f"verified   {found.groups} groups of {found.steps} steps, {found.rollouts} rollouts; "
        f"{found.zero_variance} without variance, {found.spurious} spurious",
        as_json=as_json,
    )


def _show(kind: str, runs: list[RunInspection]) -> None:
    say_line(bold(kind), f": {len(runs)} run{'s' if len(runs) > 1 else ''}")
    print_table(
        ("run", "design", "known by", "groups", "seeds in a group", "asked the same", "by chance", "p"),
        [(run.run, _design(run), run.basis, str(run.groups), _seeds(run), *_answers(run)) for run in runs],
        dropped=("by chance", "known by", "groups", "seeds in a group"),
    )
    for remark in dict.fromkeys(f"{run.run}: {remark}" for run in runs for remark in run.remarks):
        say_line(remark)


def _design(run: RunInspection) -> str:
    words = run.design.replace("_", " ")
    if run.contradicts:
        return f"{words}, declared {run.declared}"
    return f"{words} by accident: no design is declared" if run.accidental else words


def _seeds(run: RunInspection) -> str:
    return "; ".join(
        f"{column.column}: {column.equal} equal, {column.different} different, {column.mixed} mixed"
        + (f", {column.unknown} unknown" if column.unknown else "")
        for column in run.seeds
    )


def _answers(run: RunInspection) -> tuple[str, str, str]:
    found = run.answers
    if found is None:
        return "", "", ""
    alike = f"{found.agreeing} of {found.pairs} pairs agree"
    if found.p is None:
        return alike, "", ""
    return (
        f"{alike}; {found.informative_agreeing} of {found.informative} where answers vary",
        f"{found.by_chance:.1f}",
        f"{found.p:.4f}",
    )


@group()
def pairing() -> None:
    """Check records of training under noise: which design really ran."""


pairing.add_command(inspect)
pairing.add_command(verify)
