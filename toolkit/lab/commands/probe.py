"""`toolkit probe`: the gradient probe of a registration, measured and reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
from msgspec import defstruct

from toolkit import cases
from toolkit.cli import output
from toolkit.cli.options import (
    FOLDER,
    STUDY,
    argument,
    flag,
    group,
    json_option,
    offer_registrations,
    offer_runs,
    offer_studies,
    option,
)
from toolkit.errors import UsageError
from toolkit.lab.commands.options import executor_option
from toolkit.lab.commands.probe_drift import advise, drift
from toolkit.places import find_home
from toolkit.registers.arrow import Row
from toolkit.registers.columns import Type
from toolkit.registers.manifest import Sealed
from toolkit.registers.schema import TABLES
from toolkit.structs import UNSET, Document, Shown, UnsetType, Verified, about, replace
from toolkit.verification import registered

if TYPE_CHECKING:
    from toolkit.lab.executors.executor import Executor
    from toolkit.lab.probing.design import RegisteredProbe
    from toolkit.lab.probing.figures import Report
    from toolkit.prereg.registration import Registration
    from toolkit.registers.study import Study

PLACE = ("trajectory", "step", "scored")
CONDITION = ("outcome", "MC", "condition_ratio")
RATIOS = {
    "grader flips": {
        "L/R": CONDITION,
        "flips, MC": ("outcome", "MC", "trace_ratio"),
        "flips, SW": ("outcome", "SW", "trace_ratio"),
    },
    "tool faults": {
        "faults, MC": ("transition", "MC", "trace_ratio"),
        "faults, SW": ("transition", "SW", "trace_ratio"),
        "faults, MC/strat.": ("transition", "MC", "trace_ratio_stratified"),
    },
}
WITH_INTERVAL = ("L/R", "flips, MC", "faults, MC")


class MeasuredStudy(Document, frozen=True):
    """A probe that was measured; with --check compared, otherwise written."""

    study: Annotated[str, about("Name of the study.")]
    trajectories: Annotated[list[str], about("Trajectories that were probed.")]
    kept: Annotated[list[str], about("Trajectories that were finished before.")]
    largest_residual: Annotated[float, about("Of the exact identities, score².")]
    verdict: Annotated[Literal["verified"] | UnsetType, about("With --check.")] = UNSET
    tables: Annotated[tuple[str, ...] | UnsetType, about("With --check: tables that are as registered.")] = (
        UNSET
    )
    registers: Annotated[Sealed | UnsetType, about("Without --check.")] = UNSET


class RecomputedProbe(Document, frozen=True):
    """Figures that were computed anew from the evidence alone."""

    verdict: Verified
    rows: Annotated[int, about("Rows that are those stored.")]
    largest_residual: Annotated[float, about("Of the exact identities, score².")]


def _row_type(name: str, told: str, table: str, **below: Any) -> Any:
    """Return the type of a table's rows as reported: below their checkpoint, without its place."""
    types = {Type.STRING: str, Type.INT32: int, Type.FLOAT64: float}
    fields: list[Any] = [(of, list[rows]) for of, rows in below.items()]  # type: ignore[valid-type]
    for column in reversed(TABLES[table].columns):
        if below or column.name not in PLACE:
            kind: Any = Literal[column.choices] if column.choices else types[column.type]
            kind = kind | None if column.nullable else kind
            fields.insert(0, (column.name, Annotated[kind, about(column.meaning)]))
    return defstruct(name, fields, namespace={"__doc__": told})


CHECKPOINT = _row_type(
    "Checkpoint",
    "A checkpoint that was probed.",
    "probe_checkpoints",
    summaries=_row_type(
        "Traces",
        "Covariance traces of the group gradient by design: of MC in score², of SW in score²/token².",
        "probe",
    ),
    figures=_row_type(
        "Figure",
        "A figure over tasks, with its interval and what noise alone would give.",
        "probe_intervals",
    ),
    drifts=_row_type(
        "StepDrift",
        "The drift under steps as a trainer takes them; none where the study has no such table.",
        "probe_drift",
    ),
)


class ProbeReport(Document, frozen=True, kw_only=True):
    """What a study's probe says, checkpoint by checkpoint."""

    study: Annotated[str, about("Name of the study.")]
    evidence: Annotated[bool, about("Whether the study ships the inner products behind the figures.")]
    check: RecomputedProbe | UnsetType = UNSET
    checkpoints: Annotated[list[Row], Shown("checkpoints", list[CHECKPOINT], "")]


@group()
def probe() -> None:
    """Measure which design lowers the variance of the policy's gradient, and report it."""


probe.add_command(drift)
probe.add_command(advise)


@probe.command("run")
def run_probe(
    *,
    name: str = argument(metavar="STUDY", shell_complete=offer_registrations),
    workers: Executor = executor_option,
    folder: Path | None = option(
        type=FOLDER,
        help="Folder of finished trajectories; default: `runs/STUDY/probe` of the project.",
    ),
    into: Path | None = option(
        type=FOLDER,
        metavar="REGISTERS",
        help="Write the study with its probe to REGISTERS/STUDY; default: its own folder.",
    ),
    check: bool = flag(help="Measure again from scratch, and compare with the registers."),
    as_json: bool = json_option,
) -> None:
    """Probe every registered checkpoint of STUDY.

    The evidence and its figures go into the study's registers.

    The checkpoints come from the study's registers. A probe that was stopped continues with the same command.
    Rules are decided again, since some read the probe.

    A language model has the adapters of its registers, on the model that its runs start from; that has to be
    the registered one. It is sampled by the engine that its recipe names, and scored by transformers. Where
    vLLM samples, a rollout's importance weight is the ratio of what transformers makes of its tokens to what
    vLLM made of them, bounded as the recipe's loss says (the paper's: 0 above 3); otherwise it is 1.

    \b
    Examples:
      toolkit probe run embedded
      toolkit probe run embedded --processes 4 --into elsewhere
      toolkit probe run embedded --executor ray --into elsewhere
      toolkit probe run embedded --check --json
    """
    from toolkit.lab.probing.run import measure_study, sealed_with_probe
    from toolkit.verification.registered import open_case

    home = find_home()
    if check and (folder or into):
        raise UsageError(
            "--check measures in a folder of its own and writes nothing", remedy="leave the folders out"
        )
    if into is None and not check:
        home.check_own("--into")
    study, registration, probe = _opened(cases.open_study(name))
    kept_in = None if check else (folder or home.runs / study.name / "probe").absolute()
    with output.counted("probing") as told:
        probed = measure_study(study, probe, workers.telling(*told), folder=kept_in)
    document = MeasuredStudy(study.name, list(probed.evidence), list(probed.kept), probed.largest_residual)
    if check:
        document = replace(document, verdict="verified", tables=probed.compare(study))
    else:
        target = into / study.name if into else study.folder
        card = home.cards / f"{study.name}.md"
        with output.steps("registers") as progress:
            progress("deciding and writing")
            manifest = sealed_with_probe(
                target,
                study,
                probed,
                registration=registration,
                named=registered.reference(registration),
                card=card,
                open_case=open_case,
            )
        document = replace(document, registers=Sealed(str(target), manifest.logical_sha256))
    _print_run(document, as_json=as_json)


@probe.command("report")
def report_probe(
    *,
    name: str = option(
        "--study", metavar=STUDY, shell_complete=offer_studies, default="embedded", help="Study to report on."
    ),
    trajectory: str = option(
        default="*",
        shell_complete=offer_runs,
        show_default=False,
        metavar="GLOB",
        help="Only trajectories of this name.",
    ),
    scored: str | None = option(
        type=click.Choice(["all", "actions"]),
        help="Only what was scored on these coordinates: all, or only those of actions (V = 0).",
    ),
    check: bool = flag(help="Recompute the figures from the evidence, and compare."),
    as_json: bool = json_option,
) -> None:
    """Report a study's probe by checkpoint.

    Shown are both sides of the exact condition, and the ratios of covariance traces.

    A ratio below one means that pairing lowers the trace; L/R below one, that it does so under grader flips
    at any rate. Intervals resample tasks. Also shown is what noise alone would give.

    \b
    Examples:
      toolkit probe report --study embedded --trajectory 'c2-paired-*'
      toolkit probe report --study published
      toolkit probe report --study embedded --trajectory base --check --json
    """
    from toolkit.lab.probing.figures import report

    study = cases.open_study(name)
    reported = report(study, trajectory, scored)
    done = _recomputed(study, reported) if check else None
    if as_json:
        output.print_json(_report_document(study, reported, done))
        return
    _show(study, reported)
    if done:
        output.say_line(
            f"{study.name}: {done.rows} rows computed anew from the evidence are those that are stored; "
            f"identities hold to {done.largest_residual:.1e}"
        )


def _opened(study: Study) -> tuple[Study, Registration, RegisteredProbe]:
    from toolkit import cases
    from toolkit.lab.evidence import registered_runs
    from toolkit.lab.probing.design import registers_probe, required_probe

    registration = cases.registered_by(study)
    # A study without its tasks cannot specify runs, and need not where there is nothing to be probed.
    runs = registered_runs(study, registration).values() if registers_probe(registration) else ()
    return study, registration, required_probe(registration, runs)


def _report_document(study: Study, found: Report, done: RecomputedProbe | None) -> ProbeReport:
    checkpoints = [
        {
            **row,
            "summaries": [_without_place(figure) for figure in found.summaries[_place(row)]],
            "figures": [_without_place(figure) for figure in found.figures.get(_place(row), [])],
            "drifts": [_without_place(figure) for figure in found.drifts.get(_place(row), [])],
        }
        for row in found.checkpoints
    ]
    checked = UNSET if done is None else done
    return ProbeReport(study=study.name, evidence=found.has_evidence, check=checked, checkpoints=checkpoints)


def _recomputed(study: Study, found: Report) -> RecomputedProbe:
    from toolkit.lab.probing.figures import check_evidence, recompute

    check_evidence(study)
    _, _, probe = _opened(study)
    with output.stepped("probe", len(found.checkpoints)) as progress:
        rows, worst = recompute(study, found.checkpoints, probe, progress)
    return RecomputedProbe("verified", rows, worst)


def _print_run(document: MeasuredStudy, *, as_json: bool) -> None:
    if as_json:
        output.print_json(document)
        return
    number, kept = len(document.trajectories), len(document.kept)
    before = f", {kept} of them kept from before" if kept else ""
    summary = f"{number} trajectories probed{before}; identities hold to {document.largest_residual:.1e}"
    output.say_line(f"{document.study}: {summary}")
    if document.tables is not UNSET:
        output.say_line(f"all as registered ({', '.join(document.tables)})")
    if document.registers is not UNSET:
        registers = document.registers
        output.say_line(f"registers written to {registers.folder}, logical hash {registers.logical_sha256}")


def _show(study: Study, found: Report) -> None:
    for scored in dict.fromkeys(row["scored"] for row in found.checkpoints):
        rows = [row for row in found.checkpoints if row["scored"] == scored]
        number = rows[0]["coordinates"]
        what = "all coordinates" if scored == "all" else "the actions' coordinates alone (V = 0)"
        output.say_line(output.bold(study.name), f": paired over comparator, {what}: {number:,}")
        for noise, ratios in RATIOS.items():
            output.print_table(
                ("checkpoint", *ratios),
                [_ratio_cells(found, row, ratios) for row in rows],
                noise,
                numbers=True,
            )
        _show_noise(found, rows)
        _show_drift(found, rows)
    output.say_line("P paired, I independent, strat. stratified; norm²/floor: over its own sampling variance")
    level = next(figure["level"] for figures in found.figures.values() for figure in figures)
    output.say_line(
        f"L/R, flips MC and faults MC with {level:.0%} intervals, tasks resampled; "
        "without one where some resample does not define the figure"
        if found.has_evidence
        else f"L/R with {level:.0%} intervals, tasks resampled; what was published allows no others"
    )


def _ratio_cells(found: Report, row: Row, ratios: Mapping[str, tuple[str, str, str]]) -> list[str]:
    figures = _by_figure(found, row)
    return [
        f"{row['trajectory']}@{row['step']}",
        *(_cell(figures.get(at), with_interval=name in WITH_INTERVAL) for name, at in ratios.items()),
    ]


def _show_noise(found: Report, rows: Sequence[Row]) -> None:
    headings = ("checkpoint", "within tasks P", "I", "pure noise", "debiased P", "I", "norm²/floor P", "I")
    shown = []
    for row in rows:
        figures = _by_figure(found, row)
        share, floor = (
            [figures.get(("transition", "MC", f"{stem}_{d}")) for d in ("paired", "independent")]
            for stem in ("within_share", "norm_over_floor")
        )
        cells = [_number(figure, "value") for figure in share]
        cells += [_number(share[0], "pure_noise"), *(_number(figure, "debiased") for figure in share)]
        cells += [_number(figure, "value", 2) for figure in floor]
        shown.append((f"{row['trajectory']}@{row['step']}", *cells))
    output.print_table(headings, shown, "faults, MC: what is more than noise", numbers=True)


def _show_drift(found: Report, rows: Sequence[Row]) -> None:
    by_place = {_place(row): found.drifts.get(_place(row), []) for row in rows}
    columns = {
        (figure["noise"], figure["prompts_per_step"]): None
        for figures in by_place.values()
        for figure in figures
    }
    if not columns:
        return
    words = {"outcome": "flips", "transition": "faults"}
    headings = ("checkpoint", *(f"{words[noise]}, B = {batch}" for noise, batch in columns))
    shown = []
    for row in rows:
        at = {(f["noise"], f["prompts_per_step"]): f for f in by_place[_place(row)] if f["estimator"] == "SW"}
        cells = [_cell(at.get(column), with_interval=True, name="corrected") for column in columns]
        shown.append((f"{row['trajectory']}@{row['step']}", *cells))
    output.print_table(headings, shown, "drift under Adam, SW, paired over independent", numbers=True)


def _by_figure(found: Report, row: Mapping[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {
        (figure["noise"], figure["estimator"], figure["figure"]): figure
        for figure in found.figures.get(_place(row), [])
    }


def _cell(figure: dict[str, Any] | None, *, with_interval: bool, name: str = "value") -> str:
    value = _number(figure, name)
    if figure is None or not with_interval or figure["low"] is None:
        return value
    return f"{value} [{_number(figure, 'low')}, {_number(figure, 'high')}]"


def _number(figure: dict[str, Any] | None, name: str, digits: int = 3) -> str:
    return "–" if figure is None or figure[name] is None else f"{figure[name]:.{digits}f}"  # noqa: RUF001


def _place(row: Mapping[str, Any]) -> Any:
    from toolkit.lab.probe.evidence import Place

    return Place(row["trajectory"], row["step"], row["scored"])


def _without_place(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in PLACE}


probe.fold("advise", "drift", "--advise", "Advise on your own rollouts instead; see probe advise --help.")
