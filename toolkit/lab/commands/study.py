"""`toolkit study`: the registered runs, played on this machine or on many."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from toolkit import cases
from toolkit.cli.options import FOLDER, argument, flag, group, json_option, offer_registrations, option
from toolkit.cli.output import counted, print_json, print_table, remark, say_line, stepped, steps, tell
from toolkit.errors import IncompleteError, UsageError
from toolkit.lab.commands.options import executor_option, folder_option, selection_option
from toolkit.places import find_home
from toolkit.registers.manifest import Sealed
from toolkit.structs import Document, Verified, about
from toolkit.verification.registered import reference

if TYPE_CHECKING:
    from toolkit.lab.executors.executor import Executor
    from toolkit.lab.play.matrix import Selection
    from toolkit.lab.play.workplace import PlayedRuns, RunStatus, Workplace
    from toolkit.lab.probing.run import MeasuredProbe
    from toolkit.places import Home
    from toolkit.prereg.registration import Registration
    from toolkit.registers.study import Study
    from toolkit.specification import Specification


class PlayedStudy(Document, frozen=True):
    """Runs that were played."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where the runs are kept.")]
    completed: Annotated[tuple[str, ...], about("Runs that were played to their end.")]
    kept: Annotated[tuple[str, ...], about("Runs that were complete before.")]
    incomplete: Annotated[dict[str, list[str]], about("What a run's evidence lacks.")]
    registers: Annotated[Sealed | None, about("Null where none were written.")]


class CheckedStudy(Document, frozen=True):
    """Runs that were played again, and are what is registered: with --check."""

    verdict: Verified
    study: Annotated[str, about("Name of the study.")]
    runs: Annotated[list[str], about("Runs that were played again.")]
    tables: Annotated[tuple[str, ...], about("Tables that are as registered.")]


@group()
def study() -> None:
    """Run the runs of a registration, and show their progress."""


@study.command("run")
def run_study(
    *,
    name: str = argument(metavar="STUDY", shell_complete=offer_registrations),
    selection: Selection = selection_option,
    workers: Executor = executor_option,
    folder: Path | None = folder_option,
    into: Path | None = option(
        type=FOLDER,
        metavar="REGISTERS",
        help="Write registers of the chosen runs to REGISTERS/STUDY; those of all go to the project's own.",
    ),
    keep_complete: bool = flag(help="Keep a named run that is complete instead of refusing it."),
    with_incomplete: bool = flag(help="Write registers even if a run's evidence is incomplete."),
    check: bool = flag(help="Run everything again from scratch, and compare with the registers."),
    as_json: bool = json_option,
) -> None:
    """Play the registered runs of STUDY and write its registers.

    Where a probe is registered, the runs are probed.

    A run that was stopped or killed continues with the same command and leaves the same bytes. STUDY is a
    frozen registration whose matrix names the regimes that its runs train under. Several commands may work in
    one folder, each on runs of its own.

    \b
    Examples:
      toolkit study run embedded
      toolkit study run embedded --tier 1 --processes 4
      toolkit study run embedded --rule H2a
      toolkit study run embedded --run 'c2-paired-*' --into elsewhere
      toolkit study run embedded --run c2-paired-s0 --keep-complete
      toolkit study run embedded --executor ray --address auto
      toolkit study run embedded --check --json
    """
    from toolkit.lab.play.matrix import specify_registered
    from toolkit.lab.probing.design import registered_probe
    from toolkit.lab.task_pools import STUDY_POOLS, pool_digests
    from toolkit.prereg.verification import seconds_to_settle

    home = find_home()
    registration = _registration(name, home)
    if check and (folder or into):
        raise UsageError(
            "--check plays in a folder of its own and writes nothing", remedy="leave the folder out"
        )
    if not check and selection.is_everything and into is None:
        home.check_own("--into")
    registered = cases.open_study(registration.name, home) if check else None
    with stepped("pools", len(STUDY_POOLS)) as progress:
        pools = pool_digests(home, STUDY_POOLS, progress)
    specifications = specify_registered(registration, pools, selection)
    if registered is not None:
        tables = _play_again(
            registered, registration, specifications, workers, is_all=selection.is_everything
        )
        _report_check(registered.name, specifications, tables, as_json=as_json)
        return
    if left := seconds_to_settle(registration, datetime.now(UTC)):
        remark(f"the freeze is only just over: waiting {left:.0f} s before the first launch")
        time.sleep(left)
    into = home.registers if into is None and selection.is_everything else into
    probe = registered_probe(registration, specifications) if selection.is_everything else None
    workplace = _workplace(home, registration.name, folder)
    if not keep_complete:  # a pattern, or a whole study, merely keeps what is complete
        workplace.check_unplayed([run for run in specifications if run.run_id in selection.runs])
    trained = _train(workplace, specifications, workers)
    with workplace.held(specifications):
        played = trained or _play(home, workplace, specifications, workers)
        lacking = workplace.lacking(specifications, with_incomplete=with_incomplete)
        measured = None
        if probe:
            from toolkit.lab.probing.run import measure_runs

            with counted("probing") as told:
                measured = measure_runs(workplace, probe, workers.telling(*told))
        registers = None
        if into is not None:
            target = into / registration.name
            registers = _seal(target, home, registration, workplace, specifications, measured=measured)
    place = str(workplace.folder)
    document = PlayedStudy(registration.name, place, played.completed, played.kept, lacking, registers)
    _report(document, as_json=as_json)


@study.command()
def status(
    *,
    name: str = argument(metavar="STUDY", shell_complete=offer_registrations),
    folder: Path | None = folder_option,
    as_json: bool = json_option,
) -> None:
    """Show how far each run of STUDY has come.

    Shown is what its registers have, where they are here, and what was played in a folder of runs. Nothing is
    changed or examined.

    \b
    Examples:
      toolkit study status embedded
      toolkit study status embedded --json
    """
    from toolkit.lab.play.workplace import HeldRuns, StudyStatus

    home = find_home()
    registered = _registers(name, home)
    registration = _registration(name, home) if registered is None else cases.registered_by(registered, home)
    study = registered.name if registered else registration.name
    workplace = _workplace(home, study, folder)
    statuses = _statuses(workplace, registration, needed=registered is None)
    complete = sum(run.state == "complete" for run in statuses)
    at_work = [run.run_id for run in statuses if run.at_work]
    states = registered.columns("runs", ("status",))["status"].to_pylist() if registered else []
    held = None
    if registered:
        held = HeldRuns(str(registered.folder), len(states), states.count("COMPLETE"))
    if as_json:
        print_json(StudyStatus(study, str(workplace.folder), bool(at_work), complete, statuses, held))
        return
    if held:
        say_line(f"{study}: {held.complete} of {held.runs} runs complete in its registers, {held.folder}")
    absent = registered is None and study in home.absent_studies
    if absent:
        remark(f"its registers are not here: {home.absent(study).remedy}")
    if (held or absent) and not any(run.attempts or run.segments for run in statuses):
        say_line(f"no run of it was played in {workplace.folder}")
        return
    rows = [
        (
            run.run_id,
            str(run.tier),
            run.state,
            f"{run.segments} of {run.of}",
            str(run.attempts),
            "; ".join(run.shortcomings),
        )
        for run in statuses
    ]
    headings = ("run", "tier", "state", "segments", "attempts", "what is lacking")
    print_table(headings, rows, whole=("segments",), dropped=("attempts", "tier"))
    say_line(
        f"{study}: {complete} of {len(statuses)} runs complete in {workplace.folder}"
        + (f", a command is at work on {len(at_work)}" if at_work else "")
    )


def _registers(name: str, home: Home) -> Study | None:
    """Return the registers of a study; None where they are not here, or it has no runs."""
    if home.find_study(name) is None:
        return None
    found = cases.open_study(name, home)
    return found if found.has("runs") else None


def _statuses(workplace: Workplace, registration: Registration, *, needed: bool) -> list[RunStatus]:
    """Return how far runs are; none, where those of the registration are not played by this toolkit."""
    from toolkit.lab.play.matrix import specify_registered

    try:
        return workplace.statuses(specify_registered(registration, {}))
    except IncompleteError:
        if needed:
            raise
        return []


def _train(
    workplace: Workplace, specifications: tuple[Specification, ...], executor: Executor
) -> PlayedRuns | None:
    """Train the runs where they are language models'; None where none is."""
    from toolkit.lab.play.training_jobs import language_models, train_models

    runs = language_models(specifications)
    if not runs:
        return None
    with counted("training") as told:
        return train_models(workplace, runs, executor.telling(*told))


def _registration(name: str, home: Home) -> Registration:
    from toolkit.prereg.registration import load_registration

    return load_registration(home.registration_folder(name))


def _workplace(home: Home, name: str, folder: Path | None) -> Workplace:
    from toolkit.lab.play.workplace import Workplace

    return Workplace((folder or home.runs / name).absolute())


def _play(
    home: Home, workplace: Workplace, specifications: tuple[Specification, ...], executor: Executor
) -> PlayedRuns:
    from toolkit.lab.play.rows import given_by
    from toolkit.lab.play.runner import play_runs

    given = given_by(specifications, lambda study: cases.open_study(study, home))

    try:
        with counted("playing") as told:
            return play_runs(workplace, specifications, executor.telling(*told), given=given)
    except KeyboardInterrupt:
        remark("every finished segment is kept; the same command goes on from there")
        raise


def _seal(
    folder: Path,
    home: Home,
    registration: Registration,
    workplace: Workplace,
    specifications: tuple[Specification, ...],
    *,
    measured: MeasuredProbe | None,
) -> Sealed:
    from toolkit.lab.play.assemble import assemble, seal_decided
    from toolkit.verification.registered import open_case

    with steps("registers") as progress:
        assembly = assemble(workplace, specifications, progress)
        if measured is not None:
            assembly = measured.added_to(assembly)
        progress("deciding and writing")
        card = home.cards / f"{registration.name}.md"
        manifest = seal_decided(
            folder, registration, reference(registration), assembly, card, open_case=open_case
        )
    return Sealed(str(folder), manifest.logical_sha256)


def _play_again(
    registered: Study,
    registration: Registration,
    specifications: tuple[Specification, ...],
    executor: Executor,
    *,
    is_all: bool,
) -> tuple[str, ...]:
    from toolkit.lab.probing.design import registered_probe
    from toolkit.lab.verification.comparison import check_repeatable, play_again

    check_repeatable(specifications)
    probe = registered_probe(registration, specifications) if is_all else None
    with counted("playing again") as told:
        return play_again(
            registered,
            specifications,
            reference(registration),
            executor.telling(*told),
            is_everything=is_all,
            probe=probe,
        )


def _report_check(
    name: str, specifications: tuple[Specification, ...], tables: tuple[str, ...], *, as_json: bool
) -> None:
    names = [run.run_id for run in specifications]
    runs = "1 run played again is" if len(names) == 1 else f"{len(names)} runs played again are"
    document = CheckedStudy("verified", name, names, tables)
    tell(document, f"{name}: {runs} what is registered ({', '.join(tables)})", as_json=as_json)


def _report(document: PlayedStudy, *, as_json: bool) -> None:
    completed, kept = len(document.completed), len(document.kept)
    before = f", {kept} complete before and kept" if kept else ""
    registers = document.registers
    tell(
        document,
        f"{document.study}: {completed} runs played{before}, in {document.folder}",
        f"registers written to {registers.folder}, logical hash {registers.logical_sha256}"
        if registers
        else "registers are written with all runs, or with --into FOLDER for the chosen ones",
        as_json=as_json,
    )


study.fold("status", "run", "--status", "Show the progress of each run, and run none.")
