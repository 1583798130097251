"""Build `registers/published/` from transcribed figures, and compare these with the authors' registers."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

from toolkit.errors import DamagedError
from toolkit.files import read_bytes
from toolkit.registers.arrow import Row
from toolkit.registers.cards import repository_documents
from toolkit.registers.columns import Table, Type
from toolkit.registers.manifest import Manifest, RegistrationRef
from toolkit.registers.row_tables import PROBE_CHECKPOINTS, PROBE_CLEAN_TASKS, PROBE_DIAGNOSTIC_TASKS
from toolkit.registers.schema import ATTEMPTS, GROUPS_SUMMARY, LUCK_SHARE_SUMMARY, REFERENCE_STEPS, RUNS
from toolkit.registers.study import Study
from toolkit.registers.validation import compare
from toolkit.registers.writer import compare_built, rows_files, write_study
from toolkit.structs import Document, about

SOURCES = (
    *("calibration", "decisions", "evaluations", "freeze", "lineage", "luck_share"),
    *("probe", "probe_clean_tasks", "probe_diagnostic_tasks", "reference_agents", "reference_steps"),
    *("runs", "training", "training_groups"),
)

Record = dict[str, str]
T = TypeVar("T")

# No figure of the study is anywhere near 10^18.
LARGEST_POWER = 18


@dataclass(frozen=True)
class Source:
    """The CSV files by name, as bytes and as records."""

    folder: Path  # where they were read
    content: dict[str, bytes]  # file name → bytes
    records: dict[str, list[Record]]  # name without suffix → its rows, every value as its text


def read_source(folder: Path) -> Source:
    """Read every CSV file of the transcription."""
    content = {f"{name}.csv": read_bytes(folder / f"{name}.csv") for name in SOURCES}
    records = {}
    for name in SOURCES:
        try:
            reader = csv.DictReader(io.StringIO(content[f"{name}.csv"].decode(), newline=""), strict=True)
            header = reader.fieldnames or []
            if len(set(header)) != len(header):
                raise csv.Error("a column stands twice")  # noqa: TRY301 - one message for what is no table
            records[name] = list(reader)
        except (UnicodeDecodeError, csv.Error) as error:
            raise DamagedError(f"{name}.csv is not a CSV file", found=error, where=folder) from None
        if not records[name]:
            raise DamagedError(f"{name}.csv has no rows", where=folder)
        for line, record in enumerate(records[name], start=2):
            if None in record or None in record.values():
                raise DamagedError(f"{name}.csv has an uneven row", where=f"{folder / name}.csv line {line}")
    return Source(folder, content, records)


def whole(record: Mapping[str, str], column: str) -> int:
    """Return a count."""
    value = _decimal(_text(record, column), column)
    if value != value.to_integral_value():
        raise DamagedError(f"{column} is no count", found=record[column])
    return int(value)


def number(record: Mapping[str, str], column: str) -> float:
    """Return a measured figure."""
    return float(_decimal(_text(record, column), column))


def decimal(record: Mapping[str, str], column: str) -> Decimal:
    """Return a printed figure exactly."""
    return _decimal(_text(record, column), column)


def row_of(
    table: Table, record: Mapping[str, str], names: Mapping[str, str], own: Row, lacking: tuple[str, ...] = ()
) -> Row:
    """Return a row of a table from a record."""
    row = dict(own)
    for column in table.columns:
        if column.name not in own and column.name not in lacking:
            name = names.get(column.name, column.name)
            row[column.name] = (
                None if column.nullable and not record[name] else _READERS[column.type](record, name)
            )
    return row


def moment(record: Mapping[str, str], column: str) -> datetime:
    """Return a time from its ISO 8601 text."""
    time = datetime.fromisoformat(record[column])
    if time.tzinfo is None:
        raise ValueError(f"{record[column]} has no time zone")
    return time


def share_of(fraction: str, total: int, where: object) -> int:
    """Return the whole number of which a printed fraction of a total speaks."""
    exact = _decimal(fraction, where) * total
    nearest = round(exact)
    if abs(exact - nearest) > Decimal("1e-6"):
        raise DamagedError(
            "a fraction is not a count of its total", expected="a whole number", found=exact, where=where
        )
    return int(nearest)


def put(figures: Record, name: str, value: str) -> None:
    """Put a figure among others; a second, different one under the same name is refused."""
    if figures.setdefault(name, value) != value:
        raise DamagedError(
            "a figure stands twice, with two values", expected=figures[name], found=value, where=name
        )


def _decimal(text: str, where: object) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise DamagedError("a figure is no number", found=text, where=where) from None
    if not value.is_finite() or value.adjusted() > LARGEST_POWER:
        raise DamagedError("a figure is not finite, or far too large", found=text[:40], where=where)
    return value


def _text(record: Mapping[str, str], column: str) -> str:
    if not record.get(column):
        raise DamagedError(f"{column} is empty", where=dict(list(record.items())[:4]))
    return record[column]


_READERS: dict[Type, Callable[[Mapping[str, str], str], Any]] = {
    Type.STRING: lambda record, column: record[column],
    Type.INT32: whole,
    Type.FLOAT64: number,
    Type.DECIMAL: decimal,
    Type.TIMESTAMP: moment,
}


# The transcription's regime names → this project's. `noisy` and `at_training` mean the run's own
# training noise; a clean run's is, by convention, the default mixture at p = 0.25.
_REGIMES = {
    "clean": "clean",
    "challenge": "challenge",
    "heldout_types": "held_out_types",
    "noisy_p010": "faults_p010",
    "noisy_p025": "faults_p025",
}
_AT_TRAINING = {"C0": "faults_p025", "C2": "faults_p025", "C4": "flips_q010"}
_OWN_NOISE = ("noisy", "at_training")
# Calibrations: the transcription's words for the noise of the luck-share tables.
_CALIBRATED = {"noisy p0.25": "faults_p025", "outage-free p0.25": "faults_p025_outage_free"}
_POOL = {"periodic": "validation", "final": "test"}
# Column of training_steps → the printed fraction of its rollouts; of evaluations, of its episodes.
_COUNTED_OF_STEP = {
    "successes": "true_success",
    "observed_successes": "observed_reward",
    "budget_exceeded": "budget_exceeded_frac",
    "calls": "mean_calls",
}
_COUNTED = {"flipped": "flipped_frac", "finished": "finished_frac", **_COUNTED_OF_STEP}
_COUNTED_OF_AGENT = {
    "successes": "success",
    "exposed": "exposed_frac",
    "outages": "outage_hit_frac",
    "budget_exceeded": "budget_exceeded_frac",
    "calls": "mean_calls",
}
_AGENTS_POOL = {"heldout": "validation", "test": "test"}
_AGENTS_REGIME = {
    "clean": "clean",
    "C1_p0.10": "faults_p010",
    "C2_p0.25": "faults_p025",
    "C2r_p0.25_no_outage": "faults_p025_outage_free",
    "heldout_types_p0.25": "held_out_types",
}
_OUTSIDE: Row = {"condition": None, "arm": None, "seed": None}
_LUCK = {"variance_between": "sigma2_env_mean", "variance_within": "sigma2_pol_mean"}

SCORED = {"scored": "all"}
"""The authors scored every coordinate of the adapter."""

_Figures = dict[tuple[str, int], dict[tuple[str, str], Record]]

# Schema stem → the transcription's figure.
_STEMS = {
    "trace": "trace_var",
    "trace_within": "trace_var_within",
    "trace_between": "trace_var_between",
    "mean_norm": "expected_update_norm",
    "reward_contrast": "reward_variance",
}

_CONDITION = {
    "condition_left": "lhs_mean",
    "condition_right": "rhs_mean",
    "identity_residual": "identity_residual",
}

# Endpoint of the registration → (condition, hypothesis, figure, percent) of the original decision registers.
_INTERVALS = {
    "c2_auc": ("C2", "H2a", "auc_difference", 95),
    "c2_challenge": ("C2", "H3", "difference", 95),
    "c2_held_out": ("C2", "H5", "difference", 90),
    "c4_auc": ("C4", "H2b", "auc_difference", 95),
}

# What an event's first words say of its kind; the first match counts.
_KINDS = (
    ("timestamp token", "token"),
    ("frozen document", "freeze"),
    ("freeze commit", "freeze"),
    ("amendment", "amendment"),
    ("test pool exposure", "disclosure"),
    ("infrastructure", "disclosure"),
    ("late C2 stage", "deviation"),
    ("model fallback", "change_before_freeze"),
    ("environment", "change_before_freeze"),
    ("run matrix", "change_before_freeze"),
    ("calibration", "calibration"),
    ("probe", "probe"),
    ("registered probes", "probe"),
)


def runs(source: Source) -> list[Row]:
    """Return the rows of `runs`."""
    names = {
        "fault_rate": "p",
        "flip_rate": "q",
        "group_size": "num_generations",
        "training_groups": "training_groups_found",
        "training_rollouts": "training_rollouts_found",
        "launched_at": "launched_at_utc",
        "accelerator": "gpu",
        "torch_version": "torch",
        "vllm_version": "vllm",
        "code_commit": "git_commit",
        "model_commit": "model_commit_hash",
        "peak_memory_gb": "peak_mem_gb",
    }
    rows = []
    for r in source.records["runs"]:
        registered = None if r["preregistered"] in ("", "no") else r["preregistered"]
        own = {"registered": registered, "specification": None}
        rows.append(row_of(RUNS, r, names, own, lacking=("recipe_sha256",)))
    return rows


def evaluations(source: Source) -> list[Row]:
    """Return the rows of `evaluations`: every printed fraction turned back into its count."""
    return [_evaluation(r) for r in source.records["evaluations"]]


def _evaluation(r: Record) -> Row:
    episodes = whole(r, "episodes")
    where = {name: r[name] for name in ("run_id", "phase", "regime", "step")}
    exposed = share_of(r["exposed_frac"], episodes, where)
    recovered = share_of(r["recovery_success"], exposed, where) if r["recovery_success"] else None
    return {
        "run_id": r["run_id"],
        **_cell(r),
        "phase": r["phase"],
        "pool": _POOL[r["phase"]],
        "regime": _AT_TRAINING[r["condition"]] if r["regime"] in _OWN_NOISE else _REGIMES[r["regime"]],
        "step": whole(r, "step"),
        "episodes": episodes,
        "exposed": exposed,
        "recovered": recovered,
        **{name: share_of(r[column], episodes, where) for name, column in _COUNTED.items()},
    }


def training_steps(source: Source) -> list[Row]:
    """Return the rows of `training_steps`: every step of a run once, from 0, with counts for fractions."""
    cells = _cells(source)
    rows: list[Row] = []
    steps: dict[str, int] = {}
    for r in source.records["training"]:
        run_id, step, rollouts = r["run_id"], whole(r, "step"), whole(r, "rollouts")
        where = {"run_id": run_id, "step": step}
        if step != (expected := steps.get(run_id, 0)):
            raise DamagedError(
                "training steps do not follow one another", expected=expected, found=step, where=where
            )
        steps[run_id] = step + 1
        counts = {name: share_of(r[column], rollouts, where) for name, column in _COUNTED_OF_STEP.items()}
        rows.append({**where, **cells.get(run_id, _OUTSIDE), "rollouts": rollouts, **counts})
    _check_sums(source, "training", rows, {"rollouts": "training_rollouts_found"})
    return rows


def attempts(source: Source) -> list[Row]:
    """Return the rows of `attempts`."""
    names = {
        "from_step": "resumed_from_step",
        "until_step": "cutoff_step",
        "code_commit": "git_commit",
        "model_commit": "model_commit_hash",
    }
    cells = _cells(source)
    records = source.records["lineage"]
    rows = [row_of(ATTEMPTS, r, names, cells.get(r["run_id"], _OUTSIDE)) for r in records]
    _check_sums(source, "lineage", rows, {"episodes": "episodes", "groups": "training_groups_found"})
    return rows


def _check_sums(source: Source, name: str, rows: list[Row], sums: Mapping[str, str]) -> None:
    """Check that columns add up, run by run, to what `runs` says: nothing is lacking, and nothing double."""
    for r in source.records["runs"]:
        for column, whole_run in sums.items():
            found = sum(row[column] for row in rows if row["run_id"] == r["run_id"])
            if found != whole(r, whole_run):
                raise DamagedError(
                    f"{column} of a run do not add up",
                    expected=r[whole_run],
                    found=found,
                    where=f"{name}.csv, {r['run_id']}",
                )


def reference_agents(source: Source) -> list[Row]:
    """Return the rows of `reference_agents`, with counts for fractions."""
    rows: list[Row] = []
    for where, r in _lines(source, "reference_agents"):
        place = {
            "pool": _known(_AGENTS_POOL, r, "pool", where),
            "regime": _known(_AGENTS_REGIME, r, "condition", where),
            "agent": r["agent"],
        }
        episodes = whole(r, "episodes")
        counts = {name: share_of(r[column], episodes, where) for name, column in _COUNTED_OF_AGENT.items()}
        rows.append({**place, "episodes": episodes, **counts})
    return rows


def reference_steps(source: Source) -> list[Row]:
    """Return the rows of `reference_steps`, which are played here."""
    cells = _cells(source)
    return [
        row_of(REFERENCE_STEPS, r, {}, _known(cells, r, "run_id", where))
        for where, r in _lines(source, "reference_steps")
    ]


def _lines(source: Source, name: str) -> Iterator[tuple[str, Record]]:
    """Yield each record of a file, with its place."""
    for line, record in enumerate(source.records[name], start=2):
        yield f"{source.folder / name}.csv line {line}", record


def _known(known: Mapping[str, T], record: Record, column: str, where: str) -> T:
    if record[column] not in known:
        expected = ", ".join(known)
        raise DamagedError(f"an unknown {column}", expected=expected, found=record[column], where=where)
    return known[record[column]]


def groups_summary(source: Source) -> list[Row]:
    """Return the rows of `groups_summary`."""
    figures: dict[str, Record] = {}
    for r in source.records["training_groups"]:
        put(figures.setdefault(r["run_id"], {}), r["figure"], r["value"])
    cells = _cells(source)
    seeds = {"sharing_one_seed": "groups_sharing_one_seed", "several_seeds": "groups_with_several_seeds"}
    rows: list[Row] = []
    for run_id, f in figures.items():
        shares = {
            "spurious": share_of(f["spurious_among_all_correct"], whole(f, "all_correct_groups"), run_id),
            "zero_variance": share_of(f["zero_variance_frac"], whole(f, "groups"), run_id),
        }
        record = dict.fromkeys(seeds.values(), "") | f
        own = {"run_id": run_id, **cells[run_id], **shares}
        rows.append(row_of(GROUPS_SUMMARY, record, {"all_correct": "all_correct_groups", **seeds}, own))
    return rows


def luck_share_summary(source: Source) -> list[Row]:
    """Return the rows of `luck_share_summary`: the runs' diagnostics and the calibrations before them."""
    cells = _cells(source)
    names = {
        "luck_share": "lam",
        "luck_share_pooled": "lam_pooled",
        "interval_low": "ci95_low",
        "interval_high": "ci95_high",
        **_LUCK,
    }
    diagnosed: Row = {"environment": "v3", "policy": "Qwen3.5-2B", "regime": "faults_p025", "pool": None}
    rows = [
        row_of(LUCK_SHARE_SUMMARY, r, names, {**diagnosed, **cells[r["run_id"]]})
        for r in source.records["luck_share"]
    ]
    calibrations: dict[tuple[str, str, str, str], Record] = {}
    for r in source.records["calibration"]:
        if r["regime"] in _CALIBRATED:
            key = (r["run_id"], r["register_version"], r["model"], _CALIBRATED[r["regime"]])
            put(calibrations.setdefault(key, {}), r["figure"], r["value"])
    unsaid = ("condition", "arm", "seed", "pool", "target", "interval_low", "interval_high")
    for key, f in calibrations.items():
        own = dict(zip(("run_id", "environment", "policy", "regime"), key, strict=True))
        record = {"luck_share_pooled": "", **f}
        rows.append(row_of(LUCK_SHARE_SUMMARY, record, _LUCK, {**dict.fromkeys(unsaid), **own, "step": 0}))
    return rows


def probe(source: Source) -> list[Row]:
    """Return the rows of `probe`. Ratios are not stored: they follow from the traces."""
    return [
        _summary(trajectory, step, noise, estimator, cells[noise, estimator])
        for (trajectory, step), cells in _by_checkpoint(source).items()
        for noise in ("outcome", "transition")
        for estimator in ("MC", "SW")
    ]


def probe_checkpoints(source: Source) -> list[Row]:
    """Return the rows of `probe_checkpoints`."""
    names = {
        "adapter_fingerprint": "lora_fingerprint",
        "code_commit": "git_commit",
        "weight_mean": "rho_nonzero_mean",
        "weight_min": "rho_nonzero_min",
        "weight_max": "rho_nonzero_max",
        "reference_tokens": "t_ref",
    }
    rows: list[Row] = []
    for checkpoint, cells in _by_checkpoint(source).items():
        both = {"adapter_sha256": "", **cells["both", ""]}
        own = {
            **dict(zip(("trajectory", "step"), checkpoint, strict=True)),
            **SCORED,
            "clean_successes": whole(cells["outcome", ""], "clean_successes"),
            "masked_rollouts": share_of(both["rho_zero_fraction"], whole(both, "clean_rollouts"), checkpoint),
        }
        rows.append(row_of(PROBE_CHECKPOINTS, both, names, own))
    return rows


def probe_clean_tasks(source: Source) -> list[Row]:
    """Return the rows of `probe_clean_tasks`."""
    names = {"successes": "k_success", "condition_left": "lhs", "condition_right": "rhs"}
    return [row_of(PROBE_CLEAN_TASKS, r, names, SCORED) for r in source.records["probe_clean_tasks"]]


def probe_diagnostic_tasks(source: Source) -> list[Row]:
    """Return the rows of `probe_diagnostic_tasks`."""
    theirs = {"paired": "paired", "independent": "independent_resampled", "stratified": "stratified"}
    names = {f"squared_norms_{ours}": f"{name}_sum_sq_norm" for ours, name in theirs.items()}
    records = source.records["probe_diagnostic_tasks"]
    return [row_of(PROBE_DIAGNOSTIC_TASKS, r, names, SCORED) for r in records]


def intervals(source: Source) -> list[Row]:
    """Return the rows of `intervals`."""
    decisions: dict[tuple[str, str], Record] = {}
    for r in source.records["decisions"]:
        name = r["figure"] if r["seed"] in ("", "mean") else f"{r['figure']}/{r['seed']}"
        put(decisions.setdefault((r["condition"], r["hypothesis"]), {}), name, r["value"])
    rows: list[Row] = []
    for endpoint, (condition, hypothesis, figure, percent) in _INTERVALS.items():
        f = decisions[condition, hypothesis]
        rows.append(
            {
                "endpoint": endpoint,
                "level": Decimal(percent) / 100,
                "low": decimal(f, f"{figure}_ci{percent}_low"),
                "high": decimal(f, f"{figure}_ci{percent}_high"),
                "estimate": decimal(f, figure),
                "decimals": 4,
                "method": "percentile bootstrap",
                "resampled": "seed pairs; tasks with all their schedules",
                "resamples": whole(f, "bootstrap_resamples"),
                "rng_seed": whole(f, "bootstrap_rng_seed"),
                "tasks": whole(f, "tasks"),
            }
        )
    return rows


def events(source: Source) -> list[Row]:
    """Return the rows of `events`."""
    rows: list[Row] = []
    for r in source.records["freeze"]:
        at = datetime.fromisoformat(r["date_utc"])
        when, precision = (at, "second") if at.tzinfo else (at.replace(tzinfo=UTC), "day")
        own = {"occurred_at": when, "precision": precision, "kind": _kind(r["event"])}
        rows.append({**own, "event": r["event"], "detail": r["detail"] or None, "source": r["source"]})
    return rows


def _cells(source: Source) -> dict[str, Row]:
    """Return the columns that place each run in the matrix."""
    return {r["run_id"]: _cell(r) for r in source.records["runs"]}


def _cell(record: Record) -> Row:
    return {"condition": record["condition"], "arm": record["arm"], "seed": whole(record, "seed")}


def _by_checkpoint(source: Source) -> _Figures:
    """Group the figures by checkpoint, then by (noise, estimator); verdicts of a trajectory have no step."""
    figures: _Figures = {}
    for r in source.records["probe"]:
        if r["step"]:
            cells = figures.setdefault((r["trajectory"], whole(r, "step")), {})
            put(cells.setdefault((r["noise"], r["estimator"]), {}), r["figure"], r["value"])
    return figures


def _summary(trajectory: str, step: int, noise: str, estimator: str, f: Record) -> Row:
    independent = "independent" if noise == "outcome" else "independent_resampled"
    designs = {"paired": "paired", "independent": independent, "stratified": "stratified"}
    row: Row = {"trajectory": trajectory, "step": step, **SCORED, "noise": noise, "estimator": estimator}
    for column, name in _CONDITION.items():
        row[column] = number(f, name) if f.get(name) else None
    for stem, figure in _STEMS.items():
        for design, name in designs.items():
            absent = design == "stratified" and noise == "outcome"
            row[f"{stem}_{design}"] = None if absent else number(f, f"{figure}_{name}")
    row["cosine"] = number(f, "cosine_paired_independent")
    return row


def _kind(event: str) -> str:
    for start, kind in _KINDS:
        if event.startswith(start):
            return kind
    if "cancelled" in event:
        return "cancellation"
    if "launch" in event:
        return "launch"
    raise DamagedError("an event is of no known kind", found=event, where="freeze.csv")


STUDY = "published"
SOURCE = "source"

# Each has the name of the function that makes it.
_TABLES = (
    *(runs, evaluations, training_steps, attempts, reference_agents, reference_steps),
    *(groups_summary, luck_share_summary),
    *(probe, probe_checkpoints, probe_clean_tasks, probe_diagnostic_tasks),
    *(intervals, events),
)


def build_published(source_folder: Path, folder: Path, card: str, registration: RegistrationRef) -> Manifest:
    """Write the published study's repository; the same figures give the same bytes."""
    source, rows = read_source(source_folder), _rows(source_folder, [made.__name__ for made in _TABLES])
    files = rows_files(rows)
    documents = repository_documents(card, files, registration=registration, rows=rows)
    return write_study(
        folder,
        study=STUDY,
        evidence="summary",
        registration=registration,
        files=files,
        documents={f"{SOURCE}/{name}": content for name, content in source.content.items()} | documents,
    )


def check_figures(study: Study, tables: Collection[str]) -> None:
    """Check that rows of the published study are what its transcribed figures give."""
    if (study.folder / SOURCE).is_dir():
        for name, rows in _rows(study.folder / SOURCE, tables).items():
            if study.has(name):
                compare(name, rows, study.rows(name))


def _rows(source_folder: Path, tables: Collection[str]) -> dict[str, list[Row]]:
    """Return the rows of some tables."""
    source = read_source(source_folder)
    try:
        return {made.__name__: made(source) for made in _TABLES if made.__name__ in tables}
    except (KeyError, ValueError, ArithmeticError) as error:
        raise DamagedError(
            "the transcribed figures are not complete",
            found=f"{type(error).__name__}: {error}",
            where=source_folder,
        ) from None


def check_published(source_folder: Path, folder: Path, card: str, registration: RegistrationRef) -> Manifest:
    """Check that a repository is, byte for byte, what its sources give; arguments as `build_published`."""
    with tempfile.TemporaryDirectory() as scratch:
        manifest = build_published(source_folder, Path(scratch), card, registration)
        compare_built(folder, Path(scratch), manifest, f"toolkit registers build {STUDY}")
    return manifest


# Column of runs.csv → where a run's register has it.
_OF_RUN = {
    **{name: (name,) for name in ("condition", "arm", "seed", "p", "q", "provider", "git_commit", "status")},
    **{name: (name,) for name in ("episodes", "wall_time_s", "steps_to_threshold", "threshold", "steps")},
    **{name: (name,) for name in ("scale_rewards", "loss_type", "num_generations", "prompts_per_step")},
    **{name: (name,) for name in ("estimated_cost_usd", "peak_mem_gb")},
    **{f"auc_{name}": ("auc", name) for name in ("clean", "noisy", "challenge")},
    **{name: ("completeness", name) for name in ("training_groups_found", "training_rollouts_found")},
    **{name: ("versions", name) for name in ("torch", "vllm")},
    "attempts": ("attempt",),
    "model_commit_hash": ("attempts", Decimal(1), "model_commit_hash"),
}
_OF_EVALUATION = (
    *("true_success", "observed_reward", "exposed_frac", "finished_frac", "budget_exceeded_frac"),
    *("flipped_frac", "mean_calls", "recovery_success"),
)
_OF_LUCK = ("lam", "lam_pooled", "sigma2_env_mean", "sigma2_pol_mean", "tasks", "tasks_defined", "tables")
_OF_STEP = {"rollouts": "n", **{name: name for name in _COUNTED_OF_STEP.values()}}
# Column of lineage.csv → the list of a register that has it, and its name there.
_OF_ATTEMPT = {
    **{name: ("attempts", name) for name in ("status", "error", "resumed_from_step", "wall_time_s")},
    **{name: ("attempts", name) for name in ("estimated_cost_usd", "git_commit", "deployed_commit")},
    "model_commit_hash": ("attempts", "model_commit_hash"),
    "cutoff_step": ("lineage", "episodes", "cutoff_step"),
    **{name: ("lineage", name, "records") for name in ("episodes", "groups")},
    **{f"{name}_superseded": ("lineage", name, "superseded") for name in ("episodes", "groups")},
}
# Counted by the authors' decision script, and not in a run's register.
_ELSEWHERE = ("groups_sharing_one_seed", "groups_with_several_seeds")
NOT_IN_RUNS = (
    "runs: accelerator, launch time, role and registration",
    "luck shares: intervals",
    "training groups: who shares a seed",
    "calibrations, decisions, intervals, probe and events: not in the registers of runs",
)


class Files(Protocol):
    """What a checkout of the authors' repository gives."""

    def has(self, name: str) -> bool:
        """Whether there is something under a name."""

    def json(self, name: str) -> Any:
        """Return a JSON document, its numbers as `Decimal`."""


class Difference(Document, frozen=True):
    """A figure that differs."""

    figure: Annotated[str, about("Where it stands.")]
    published: Annotated[str, about("As it is here.")]
    found: Annotated[str, about("As the checkout has it.")]


class Comparison(Document, frozen=True):
    """What came of the figures of the authors' runs."""

    runs: Annotated[int, about("Runs that have a register in the checkout.")]
    compared: Annotated[int, about("Figures.")]
    differences: tuple[Difference, ...]
    not_compared: Annotated[tuple[str, ...], about("In words.")]


def compare_runs(source: Source, checkout: Files, folder: str) -> Comparison:
    """Compare every transcribed figure that a run's register holds with that register."""
    compared, runs = 0, 0
    differences: list[Difference] = []
    absent: list[str] = []
    listed = (record["run_id"] for name in ("runs", "lineage") for record in source.records[name])
    for run in dict.fromkeys(listed):
        name = f"{folder}/{run}.json"
        if not checkout.has(name):
            absent.append(f"every figure of {run}: the checkout has no {name}")
            continue
        runs += 1
        register = checkout.json(name)
        for figure, published, path in _figures_of_run(source, run):
            found = _at(register, path)
            if found is _ABSENT:
                absent.append(f"{run}, {figure}: {name} does not have it")
                continue
            compared += 1
            if not _same(published, found):
                told = "nothing" if found is None else str(found)[:80]
                differences.append(Difference(f"{run}, {figure}", published or "nothing", told))
    return Comparison(runs, compared, tuple(differences), (*absent, *NOT_IN_RUNS))


def _figures_of_run(source: Source, run: str) -> Iterator[tuple[str, str, tuple[object, ...]]]:
    """Yield each figure of a run: its name, its text as published, and the way to it in the register."""
    yield "run_id", run, ("run_id",)
    for of_run in _of(source, "runs", run):
        yield from ((column, of_run[column], path) for column, path in _OF_RUN.items())
    for record in _of(source, "evaluations", run):
        periodic = record["phase"] == "periodic"
        step = Decimal(record["step"])
        way: tuple[object, ...] = (
            ("curves", record["regime"], step) if periodic else ("final", record["regime"])
        )
        named = f"{record['phase']} {record['regime']} at step {record['step']}"
        yield f"{named}, episodes", record["episodes"], (*way, "n" if periodic else "episodes")
        yield from ((f"{named}, {column}", record[column], (*way, column)) for column in _OF_EVALUATION)
    for record in _of(source, "training", run):
        named, way = f"training step {record['step']}", ("training_curve", Decimal(record["step"]))
        yield from ((f"{named}, {column}", record[column], (*way, at)) for column, at in _OF_STEP.items())
    for record in _of(source, "lineage", run):
        number = Decimal(record["attempt"])
        for column, (*lists, at) in _OF_ATTEMPT.items():
            yield f"attempt {number}, {column}", record[column], (*lists, number, at)
        if record["provider"]:
            yield "provider", record["provider"], ("provider",)
    for record in _of(source, "luck_share", run):
        way = ("luck_share", f"diag:step{record['step']}")
        named = f"luck share at step {record['step']}"
        yield from ((f"{named}, {column}", record[column], (*way, column)) for column in _OF_LUCK)
    cells = _cells(source)
    for record in _of(source, "training_groups", run):
        if record["figure"] not in _ELSEWHERE:
            way = ("training_groups", cells[run]["condition"], record["figure"])
            yield f"training groups, {record['figure']}", record["value"], way


def _of(source: Source, name: str, run: str) -> Iterator[Record]:
    return (record for record in source.records[name] if record["run_id"] == run)


_ABSENT = object()


def _at(content: object, path: tuple[object, ...]) -> object:
    """Return what stands at a place of a register; a number in the way is a step's, or an attempt's."""
    for key in path:
        if isinstance(key, Decimal) and isinstance(content, list):
            points = (point for point in content if isinstance(point, Mapping))
            numbered = (point for point in points if point.get("step", point.get("attempt")) == key)
            content = next(numbered, _ABSENT)
        elif isinstance(content, Mapping):
            content = content.get(key, _ABSENT)
        else:
            return _ABSENT
    return content


def _same(published: str, found: object) -> bool:
    """Whether a printed figure is what a register says: numbers as numbers, an empty cell as null."""
    if found is None or published == "":
        return found is None and published == ""
    if isinstance(found, Decimal):
        try:
            return Decimal(published) == found
        except InvalidOperation:
            return False
    return isinstance(found, str) and found == published
