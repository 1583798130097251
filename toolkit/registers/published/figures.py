"""The tables of the published study, each from its transcribed figures."""

from datetime import UTC, datetime
from decimal import Decimal

from toolkit.errors import DamagedError
from toolkit.registers.arrow import Row
from toolkit.registers.probe_tables import PROBE_CHECKPOINTS, PROBE_CLEAN_TASKS, PROBE_DIAGNOSTIC_TASKS
from toolkit.registers.published.source import Record, Source, decimal, number, put, row_of, share_of, whole
from toolkit.registers.schema import GROUPS_SUMMARY, LUCK_SHARE_SUMMARY, RUNS

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
    return [
        row_of(
            RUNS,
            r,
            names,
            {
                "registered": None if r["preregistered"] in ("", "no") else r["preregistered"],
                "specification": None,
            },
            lacking=("recipe_sha256",),
        )
        for r in source.records["runs"]
    ]


def evaluations(source: Source) -> list[Row]:
    """Return the rows of `evaluations`: every printed fraction turned back into its count."""
    return [_evaluation(r) for r in source.records["evaluations"]]


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
        for (trajectory, step), cells in _figures(source).items()
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
    for checkpoint, cells in _figures(source).items():
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
    names = {
        "squared_norms_paired": "paired_sum_sq_norm",
        "squared_norms_independent": "independent_resampled_sum_sq_norm",
        "squared_norms_stratified": "stratified_sum_sq_norm",
    }
    return [
        row_of(PROBE_DIAGNOSTIC_TASKS, r, names, SCORED) for r in source.records["probe_diagnostic_tasks"]
    ]


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
        rows.append(
            {
                "occurred_at": at if at.tzinfo else at.replace(tzinfo=UTC),
                "precision": "second" if at.tzinfo else "day",
                "kind": _kind(r["event"]),
                "event": r["event"],
                "detail": r["detail"] or None,
                "source": r["source"],
            }
        )
    return rows


def _cells(source: Source) -> dict[str, Row]:
    """Return the columns that place each run in the matrix."""
    return {r["run_id"]: _cell(r) for r in source.records["runs"]}


def _cell(record: Record) -> Row:
    return {"condition": record["condition"], "arm": record["arm"], "seed": whole(record, "seed")}


def _evaluation(r: Record) -> Row:
    episodes = whole(r, "episodes")
    where = {name: r[name] for name in ("run_id", "phase", "regime", "step")}

    def counted(column: str, total: int = episodes) -> int:
        return share_of(r[column], total, where)

    exposed = counted("exposed_frac")
    return {
        "run_id": r["run_id"],
        **_cell(r),
        "phase": r["phase"],
        "pool": _POOL[r["phase"]],
        "regime": _AT_TRAINING[r["condition"]] if r["regime"] in _OWN_NOISE else _REGIMES[r["regime"]],
        "step": whole(r, "step"),
        "episodes": episodes,
        "successes": counted("true_success"),
        "observed_successes": counted("observed_reward"),
        "flipped": counted("flipped_frac"),
        "exposed": exposed,
        "recovered": counted("recovery_success", exposed) if r["recovery_success"] else None,
        "finished": counted("finished_frac"),
        "budget_exceeded": counted("budget_exceeded_frac"),
        "calls": counted("mean_calls"),
    }


def _figures(source: Source) -> _Figures:
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
