"""The gradient probe of the published study: summaries by checkpoint, and their per-task rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.registers.published.source import Record, Source, maybe_number, number, put, share_of, whole

if TYPE_CHECKING:
    from toolkit.registers.arrow import Row

SCORED = "all"
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
    rows: list[Row] = []
    for (trajectory, step), cells in _figures(source).items():
        both, outcome = cells["both", ""], cells["outcome", ""]
        rollouts = whole(both, "clean_rollouts")
        rows.append(
            {
                "trajectory": trajectory,
                "step": step,
                "scored": SCORED,
                "adapter_sha256": both.get("adapter_sha256"),
                "adapter_fingerprint": both["lora_fingerprint"],
                "coordinate_names_sha256": both["coordinate_names_sha256"],
                "spec_sha256": both["spec_sha256"],
                "code_commit": both["git_commit"],
                "coordinates": whole(both, "coordinates"),
                "clean_rollouts": rollouts,
                "clean_successes": whole(outcome, "clean_successes"),
                "diagnostic_rollouts": whole(both, "diagnostic_rollouts"),
                "masked_rollouts": share_of(both["rho_zero_fraction"], rollouts, (trajectory, step)),
                "weight_mean": number(both, "rho_nonzero_mean"),
                "weight_min": number(both, "rho_nonzero_min"),
                "weight_max": number(both, "rho_nonzero_max"),
                "reference_tokens": number(both, "t_ref"),
            }
        )
    return rows


def probe_clean_tasks(source: Source) -> list[Row]:
    """Return the rows of `probe_clean_tasks`."""
    return [
        {
            "trajectory": r["trajectory"],
            "step": whole(r, "step"),
            "scored": SCORED,
            "task_id": r["task_id"],
            "successes": whole(r, "k_success"),
            "condition_left": number(r, "lhs"),
            "condition_right": number(r, "rhs"),
        }
        for r in source.records["probe_clean_tasks"]
    ]


def probe_diagnostic_tasks(source: Source) -> list[Row]:
    """Return the rows of `probe_diagnostic_tasks`."""
    return [
        {
            "trajectory": r["trajectory"],
            "step": whole(r, "step"),
            "scored": SCORED,
            "task_id": r["task_id"],
            "squared_norms_paired": number(r, "paired_sum_sq_norm"),
            "squared_norms_independent": number(r, "independent_resampled_sum_sq_norm"),
            "squared_norms_stratified": number(r, "stratified_sum_sq_norm"),
        }
        for r in source.records["probe_diagnostic_tasks"]
    ]


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
    row: Row = {"trajectory": trajectory, "step": step, "scored": SCORED}
    row |= {"noise": noise, "estimator": estimator}
    optional = {"lhs_mean": "", "rhs_mean": "", "identity_residual": "", **f}
    row["condition_left"] = maybe_number(optional, "lhs_mean")
    row["condition_right"] = maybe_number(optional, "rhs_mean")
    row["identity_residual"] = maybe_number(optional, "identity_residual")
    for stem, figure in _STEMS.items():
        for design, name in designs.items():
            absent = design == "stratified" and noise == "outcome"
            row[f"{stem}_{design}"] = None if absent else number(f, f"{figure}_{name}")
    row["cosine"] = number(f, "cosine_paired_independent")
    return row
