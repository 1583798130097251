"""Runs, evaluations, training groups and luck shares of the published study."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from toolkit.registers.published.source import (
    Record,
    Source,
    decimal,
    maybe_decimal,
    maybe_number,
    number,
    put,
    share_of,
    whole,
)

if TYPE_CHECKING:
    from toolkit.registers.arrow import Row

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


def runs(source: Source) -> list[Row]:
    """Return the rows of `runs`."""
    return [
        {
            "run_id": r["run_id"],
            **cell(r),
            "role": r["role"],
            "fault_rate": decimal(r, "p"),
            "flip_rate": decimal(r, "q"),
            "scale_rewards": r["scale_rewards"],
            "loss_type": r["loss_type"],
            "steps": whole(r, "steps"),
            "group_size": whole(r, "num_generations"),
            "prompts_per_step": whole(r, "prompts_per_step"),
            "episodes": whole(r, "episodes"),
            "training_groups": whole(r, "training_groups_found"),
            "training_rollouts": whole(r, "training_rollouts_found"),
            "attempts": whole(r, "attempts"),
            "status": r["status"],
            "launched_at": moment(r["launched_at_utc"]) if r["launched_at_utc"] else None,
            "registered": None if r["preregistered"] in ("", "no") else r["preregistered"],
            "provider": r["provider"],
            "accelerator": r["gpu"],
            "torch_version": r["torch"],
            "vllm_version": r["vllm"],
            "code_commit": r["git_commit"],
            "model_commit": r["model_commit_hash"] or None,
            "register_commit": r["register_commit"],
            "wall_time_s": number(r, "wall_time_s"),
            "peak_memory_gb": number(r, "peak_mem_gb"),
            "estimated_cost_usd": number(r, "estimated_cost_usd"),
            "specification": None,
        }
        for r in source.records["runs"]
    ]


def evaluations(source: Source) -> list[Row]:
    """Return the rows of `evaluations`: every printed fraction turned back into its count."""
    return [_evaluation(r) for r in source.records["evaluations"]]


def groups_summary(source: Source) -> list[Row]:
    """Return the rows of `groups_summary`."""
    cells = {r["run_id"]: cell(r) for r in source.records["runs"]}
    figures: dict[str, Record] = {}
    for r in source.records["training_groups"]:
        put(figures.setdefault(r["run_id"], {}), r["figure"], r["value"])
    rows: list[Row] = []
    for run_id, f in figures.items():
        groups, all_correct = whole(f, "groups"), whole(f, "all_correct_groups")
        rows.append(
            {
                "run_id": run_id,
                **cells[run_id],
                "groups": groups,
                "all_correct": all_correct,
                "spurious": share_of(f["spurious_among_all_correct"], all_correct, run_id),
                "zero_variance": share_of(f["zero_variance_frac"], groups, run_id),
                "mean_max_abs_advantage": number(f, "mean_max_abs_advantage"),
                "sharing_one_seed": int(f["groups_sharing_one_seed"])
                if "groups_sharing_one_seed" in f
                else None,
                "several_seeds": int(f["groups_with_several_seeds"])
                if "groups_with_several_seeds" in f
                else None,
            }
        )
    return rows


def luck_share_summary(source: Source) -> list[Row]:
    """Return the rows of `luck_share_summary`: the runs' diagnostics and the calibrations before them."""
    cells = {r["run_id"]: cell(r) for r in source.records["runs"]}
    rows: list[Row] = [
        {
            "run_id": r["run_id"],
            "environment": "v3",
            "policy": "Qwen3.5-2B",
            "regime": "faults_p025",
            **cells[r["run_id"]],
            "step": whole(r, "step"),
            "pool": None,
            "target": r["target"] or None,
            "luck_share": number(r, "lam"),
            "luck_share_pooled": number(r, "lam_pooled"),
            "interval_low": maybe_decimal(r, "ci95_low"),
            "interval_high": maybe_decimal(r, "ci95_high"),
            "variance_between": number(r, "sigma2_env_mean"),
            "variance_within": number(r, "sigma2_pol_mean"),
            "tasks": whole(r, "tasks"),
            "tasks_defined": whole(r, "tasks_defined"),
        }
        for r in source.records["luck_share"]
    ]
    calibrations: dict[tuple[str, str, str, str], Record] = {}
    for r in source.records["calibration"]:
        if r["regime"] in _CALIBRATED:
            key = (r["run_id"], r["register_version"], r["model"], _CALIBRATED[r["regime"]])
            put(calibrations.setdefault(key, {}), r["figure"], r["value"])
    for (run_id, environment, model, regime), f in calibrations.items():
        pooled = {"luck_share_pooled": "", **f}
        rows.append(
            {
                "run_id": run_id,
                "environment": environment,
                "policy": model,
                "regime": regime,
                "condition": None,
                "arm": None,
                "seed": None,
                "step": 0,
                "pool": None,
                "target": None,
                "luck_share": number(f, "luck_share"),
                "luck_share_pooled": maybe_number(pooled, "luck_share_pooled"),
                "interval_low": None,
                "interval_high": None,
                "variance_between": number(f, "sigma2_env_mean"),
                "variance_within": number(f, "sigma2_pol_mean"),
                "tasks": whole(f, "tasks"),
                "tasks_defined": whole(f, "tasks_defined"),
            }
        )
    return rows


def cell(record: Record) -> Row:
    """Return the columns that place a run in the matrix."""
    return {"condition": record["condition"], "arm": record["arm"], "seed": whole(record, "seed")}


def moment(text: str) -> datetime:
    """Return a time from its ISO 8601 text.

    Raises:
        ValueError: it is none, or has no zone.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return time


def _evaluation(r: Record) -> Row:
    episodes = whole(r, "episodes")
    where = {name: r[name] for name in ("run_id", "phase", "regime", "step")}

    def counted(column: str, total: int = episodes) -> int:
        return share_of(r[column], total, where)

    exposed = counted("exposed_frac")
    return {
        "run_id": r["run_id"],
        **cell(r),
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
