"""The gradient probe: measured, reported, and what it advises."""

from typing import Annotated, Literal, NotRequired, TypedDict

from toolkit.documents.registers import Verified

Noise = Annotated[Literal["outcome", "transition"], "Grader flips, or tool faults."]
Estimator = Annotated[
    Literal["MC", "SW"],
    "MC: advantages centred; SW: standardized, importance-weighted, over reference tokens.",
]
Optimizer = Literal["adam", "gradient", "sign"]
StratifiedReal = Annotated[float | None, "One rollout a schedule; null under flips."]


class SealedDocument(TypedDict):
    """Registers that were written."""

    folder: Annotated[str, "Where they lie."]
    logical_sha256: Annotated[str, "Of what the rows say."]


class ProbeRunDocument(TypedDict):
    """A probe that was measured; with --check compared, otherwise written."""

    study: Annotated[str, "Name of the study."]
    trajectories: Annotated[list[str], "Trajectories that were probed."]
    kept: Annotated[list[str], "Trajectories that were finished before."]
    largest_residual: Annotated[float, "Of the exact identities, score²."]
    verdict: NotRequired[Annotated[Literal["verified"], "With --check."]]
    tables: NotRequired[Annotated[list[str], "With --check: tables that are as registered."]]
    registers: NotRequired[Annotated[SealedDocument, "Without --check."]]


class ProbeCheckDocument(TypedDict):
    """Figures that were computed anew from the evidence alone."""

    verdict: Verified
    rows: Annotated[int, "Rows that are those stored."]
    largest_residual: Annotated[float, "Of the exact identities, score²."]


class TracesDocument(TypedDict):
    """Covariance traces of the group gradient by design: of MC in score², of SW in score²/token²."""

    noise: Noise
    estimator: Estimator
    condition_left: Annotated[float | None, "L of the exact condition, score²."]
    condition_right: Annotated[float | None, "R of it, score²."]
    identity_residual: Annotated[float | None, "score²."]
    trace_paired: Annotated[float, "Trace of the covariance, paired design."]
    trace_independent: Annotated[float, "Trace of the covariance, independent design."]
    trace_stratified: StratifiedReal
    trace_within_paired: Annotated[float, "Its part within tasks, paired design."]
    trace_within_independent: Annotated[float, "Its part within tasks, independent design."]
    trace_within_stratified: StratifiedReal
    trace_between_paired: Annotated[float, "Its part between tasks, paired design."]
    trace_between_independent: Annotated[float, "Its part between tasks, independent design."]
    trace_between_stratified: StratifiedReal
    mean_norm_paired: Annotated[float, "Norm of the mean gradient; of MC in score, of SW in score/token."]
    mean_norm_independent: Annotated[float, "Norm of the mean gradient, independent design."]
    mean_norm_stratified: StratifiedReal
    reward_contrast_paired: Annotated[float, "Variance of a reward contrast, reward²."]
    reward_contrast_independent: Annotated[
        float, "Variance of a reward contrast, reward², independent design."
    ]
    reward_contrast_stratified: StratifiedReal
    cosine: Annotated[float | None, "Between the designs' mean gradients; null where one is zero."]


class FigureDocument(TypedDict):
    """A figure over tasks, with its interval and what noise alone would give."""

    noise: Noise
    estimator: Estimator
    figure: Annotated[
        str, "As `trace_ratio`, paired over independent; `toolkit registers schema` lists them."
    ]
    tasks: Annotated[int, "Tasks that it is over."]
    level: Annotated[float, "Confidence level."]
    value: Annotated[float | None, "Null where the tasks do not define it."]
    low: Annotated[float | None, "Of the interval; null without one."]
    high: Annotated[float | None, "Of the interval; null without one."]
    standard_error: Annotated[float | None, "The jackknife's."]
    corrected: Annotated[float | None, "The value, its bias of order 1/tasks taken off."]
    pure_noise: Annotated[float | None, "What noise alone gives."]
    debiased: Annotated[float | None, "The value without what noise adds to it."]


class StepDriftDocument(TypedDict):
    """The drift under steps as a trainer takes them."""

    noise: Noise
    estimator: Estimator
    prompts_per_step: Annotated[int, "Groups a step, B."]
    level: Annotated[float, "Confidence level."]
    drift_paired: Annotated[float | None, "In units of the learning rate."]
    drift_independent: Annotated[float | None, "In units of the learning rate."]
    ratio: Annotated[float | None, "Paired over independent."]
    corrected: Annotated[float | None, "The ratio, its bias taken off."]
    low: Annotated[float | None, "Of the ratio's interval."]
    high: Annotated[float | None, "Of the ratio's interval."]


class CheckpointDocument(TypedDict):
    """A checkpoint that was probed."""

    trajectory: Annotated[str, "`base` is the untrained policy."]
    step: Annotated[int, "Step of the training."]
    scored: Annotated[Literal["all", "actions"], "Which coordinates."]
    adapter_sha256: Annotated[str | None, "Null for a fresh adapter."]
    adapter_fingerprint: Annotated[str, "Of the parameters that were scored."]
    coordinate_names_sha256: Annotated[str, "Of the names of the scored coordinates."]
    spec_sha256: Annotated[str, "Of the probe's specification."]
    code_commit: Annotated[str | None, "Null where a release made it."]
    coordinates: Annotated[int, "How many were scored."]
    clean_rollouts: Annotated[int, "Clean rollouts scored."]
    clean_successes: Annotated[int, "Those of them that succeeded."]
    diagnostic_rollouts: Annotated[int, "Scored for transition noise."]
    masked_rollouts: Annotated[int, "With importance weight 0."]
    weight_mean: Annotated[float, "Importance weight, of those above 0."]
    weight_min: Annotated[float, "The smallest."]
    weight_max: Annotated[float, "The largest."]
    reference_tokens: Annotated[float, "What SW is divided by."]
    summaries: list[TracesDocument]
    figures: list[FigureDocument]
    drifts: Annotated[list[StepDriftDocument], "None where the study has no such table."]


class OfProbeCheck(TypedDict, total=False):
    """What is said with --check."""

    check: ProbeCheckDocument


class ProbeReportDocument(OfProbeCheck):
    """What a study's probe says, checkpoint by checkpoint."""

    study: Annotated[str, "Name of the study."]
    evidence: Annotated[bool, "Whether the study ships the inner products behind the figures."]
    checkpoints: list[CheckpointDocument]


class UncertainDocument(TypedDict):
    """A figure over tasks, with a 95% interval."""

    value: Annotated[float | None, "Null where the tasks do not define it."]
    low: Annotated[float | None, "Null without an interval."]
    high: Annotated[float | None, "Null without an interval."]
    standard_error: Annotated[float | None, "The jackknife's."]
    corrected: Annotated[float | None, "The value, its bias of order 1/tasks taken off."]


class DesignFiguresDocument(TypedDict):
    """Figures of one design."""

    groups: Annotated[int, "That were played."]
    constant: Annotated[float, "Share of them whose rewards are constant."]
    draws: Annotated[float, "Groups played for one that counts."]
    symbols: Annotated[float, "Decisions and tokens a group."]
    trace: Annotated[float, "Covariance trace of a group's gradient."]
    along: Annotated[float, "Its variance along the mean gradient."]
    strongest: Annotated[float, "Its variance on the coordinates with most signal, summed."]
    drift: Annotated[float, "Expected progress a step, in units of the learning rate."]


class DesignsFiguresDocument(TypedDict):
    """Figures of both designs."""

    paired: DesignFiguresDocument
    independent: DesignFiguresDocument


class RatiosDocument(TypedDict):
    """Paired over independent."""

    trace: UncertainDocument
    along: UncertainDocument
    strongest: UncertainDocument
    drift: UncertainDocument


class DesignCountsDocument(TypedDict):
    """A number of each design."""

    paired: Annotated[int, "Of the paired design."]
    independent: Annotated[int, "Of the independent design."]


class PredictionDocument(TypedDict):
    """What is predicted under some settings."""

    regime: Annotated[str, "The noise."]
    group_size: Annotated[int, "Rollouts a group, G."]
    surface_tokens: Annotated[int, "V."]
    scale_rewards: Annotated[
        Literal["group", "none"], "Whether advantages are divided by their group's standard deviation."
    ]
    constant_groups: Annotated[
        Literal["kept", "resampled"], "What becomes of groups whose rewards are constant."
    ]
    loss_type: Annotated[Literal["dapo", "dr_grpo"], "What divides a step's sum."]
    prompts_per_step: Annotated[int, "Groups a step, B."]
    optimizer: Annotated[Optimizer, "What takes a step."]
    level: Annotated[float, "Confidence level."]
    blocks: Annotated[int, "Blocks of tasks that the intervals rest on."]
    tasks: Annotated[int, "Tasks of the blocks."]
    steps: Annotated[DesignCountsDocument, "Groups, or steps, that give the drift."]
    designs: DesignsFiguresDocument
    ratios: RatiosDocument


class PlayingPolicyDocument(TypedDict):
    """A checkpoint that played."""

    study: Annotated[str, "Name of the study."]
    run: Annotated[str, "Name of the run."]
    step: Annotated[int, "Of the checkpoint."]


class PredictedDriftDocument(TypedDict):
    """How fast training with each design will learn, from played groups."""

    policy: Annotated[PlayingPolicyDocument | None, "Null for the untrained policy."]
    seed: Annotated[str, "The name that every seed is derived from."]
    predictions: list[PredictionDocument]


class AdviceDocument(TypedDict):
    """Whether to pair, from rollouts of both designs."""

    tasks: Annotated[int, "Tasks of both designs."]
    groups: DesignCountsDocument
    group_size: Annotated[int, "Rollouts a group, G."]
    optimizer: Annotated[Optimizer, "What takes a step."]
    batch: Annotated[int, "Groups a step."]
    figures: Annotated[dict[str, UncertainDocument], "By name; those that could not be had have no entry."]
    not_evaluable: Annotated[dict[str, str], "Why a figure could not be had."]
    verdict: Annotated[
        Literal["pair", "do_not_pair", "either", "undecided", "not_evaluable"],
        "`either`: learning is as fast to a twentieth; `undecided`: the interval leaves it open.",
    ]
    tasks_needed: Annotated[int | None, "Tasks that are likely to settle what is undecided."]
    batch_needed: Annotated[int | None, "Groups a step at which pairing loses nothing."]
    sentences: Annotated[list[str], "The advice in words."]
    level: Annotated[float, "Confidence level."]
