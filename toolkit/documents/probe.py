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

    folder: str
    logical_sha256: Annotated[str, "Of what the rows say."]


class ProbeRunDocument(TypedDict):
    """A probe that was measured; with --check compared, otherwise written."""

    study: str
    trajectories: list[str]
    kept: Annotated[list[str], "Trajectories that were finished before."]
    largest_residual: Annotated[float, "Of the exact identities, score²."]
    verdict: NotRequired[Annotated[Literal["verified"], "With --check."]]
    tables: NotRequired[Annotated[list[str], "With --check: tables that are as registered."]]
    registers: NotRequired[Annotated[SealedDocument, "Without --check."]]


class ProbeCheckDocument(TypedDict):
    """Figures that were computed anew from the evidence alone."""

    verdict: Verified
    rows: int
    largest_residual: Annotated[float, "Of the exact identities, score²."]


class TracesDocument(TypedDict):
    """Covariance traces of the group gradient by design: of MC in score², of SW in score²/token²."""

    noise: Noise
    estimator: Estimator
    condition_left: Annotated[float | None, "L of the exact condition, score²."]
    condition_right: Annotated[float | None, "R of it, score²."]
    identity_residual: Annotated[float | None, "score²."]
    trace_paired: float
    trace_independent: float
    trace_stratified: StratifiedReal
    trace_within_paired: float
    trace_within_independent: float
    trace_within_stratified: StratifiedReal
    trace_between_paired: float
    trace_between_independent: float
    trace_between_stratified: StratifiedReal
    mean_norm_paired: Annotated[float, "Norm of the mean gradient; of MC in score, of SW in score/token."]
    mean_norm_independent: float
    mean_norm_stratified: StratifiedReal
    reward_contrast_paired: Annotated[float, "Variance of a reward contrast, reward²."]
    reward_contrast_independent: float
    reward_contrast_stratified: StratifiedReal
    cosine: Annotated[float | None, "Between the designs' mean gradients; null where one is zero."]


class FigureDocument(TypedDict):
    """A figure over tasks, with its interval and what noise alone would give."""

    noise: Noise
    estimator: Estimator
    figure: Annotated[
        str, "As `trace_ratio`, paired over independent; `toolkit registers schema` lists them."
    ]
    tasks: int
    level: Annotated[float, "Confidence level."]
    value: float | None
    low: float | None
    high: float | None
    standard_error: Annotated[float | None, "The jackknife's."]
    corrected: Annotated[float | None, "The value, its bias of order 1/tasks taken off."]
    pure_noise: Annotated[float | None, "What noise alone gives."]
    debiased: Annotated[float | None, "The value without what noise adds to it."]


class StepDriftDocument(TypedDict):
    """The drift under steps as a trainer takes them."""

    noise: Noise
    estimator: Estimator
    prompts_per_step: int
    level: Annotated[float, "Confidence level."]
    drift_paired: Annotated[float | None, "In units of the learning rate."]
    drift_independent: float | None
    ratio: Annotated[float | None, "Paired over independent."]
    corrected: Annotated[float | None, "The ratio, its bias taken off."]
    low: float | None
    high: float | None


class CheckpointDocument(TypedDict):
    """A checkpoint that was probed."""

    trajectory: Annotated[str, "`base` is the untrained policy."]
    step: int
    scored: Annotated[Literal["all", "actions"], "Which coordinates."]
    adapter_sha256: Annotated[str | None, "Null for a fresh adapter."]
    adapter_fingerprint: Annotated[str, "Of the parameters that were scored."]
    coordinate_names_sha256: str
    spec_sha256: Annotated[str, "Of the probe's specification."]
    code_commit: Annotated[str | None, "Null where a release made it."]
    coordinates: Annotated[int, "How many were scored."]
    clean_rollouts: int
    clean_successes: int
    diagnostic_rollouts: Annotated[int, "Scored for transition noise."]
    masked_rollouts: Annotated[int, "With importance weight 0."]
    weight_mean: Annotated[float, "Importance weight, of those above 0."]
    weight_min: float
    weight_max: float
    reference_tokens: Annotated[float, "What SW is divided by."]
    summaries: list[TracesDocument]
    figures: list[FigureDocument]
    drifts: Annotated[list[StepDriftDocument], "None where the study has no such table."]


class OfProbeCheck(TypedDict, total=False):
    """What is said with --check."""

    check: ProbeCheckDocument


class ProbeReportDocument(OfProbeCheck):
    """What a study's probe says, checkpoint by checkpoint."""

    study: str
    evidence: Annotated[bool, "Whether the study ships the inner products behind the figures."]
    checkpoints: list[CheckpointDocument]


class UncertainDocument(TypedDict):
    """A figure over tasks, with a 95% interval."""

    value: Annotated[float | None, "Null where the tasks do not define it."]
    low: float | None
    high: float | None
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

    paired: int
    independent: int


class PredictionDocument(TypedDict):
    """What is predicted under some settings."""

    regime: str
    group_size: int
    surface_tokens: int
    scale_rewards: Literal["group", "none"]
    constant_groups: Literal["kept", "resampled"]
    loss_type: Literal["dapo", "dr_grpo"]
    prompts_per_step: int
    optimizer: Optimizer
    level: Annotated[float, "Confidence level."]
    blocks: Annotated[int, "Blocks of tasks that the intervals rest on."]
    tasks: int
    steps: Annotated[DesignCountsDocument, "Groups, or steps, that give the drift."]
    designs: DesignsFiguresDocument
    ratios: RatiosDocument


class PlayingPolicyDocument(TypedDict):
    """A checkpoint that played."""

    study: str
    run: str
    step: int


class PredictedDriftDocument(TypedDict):
    """How fast training with each design will learn, from played groups."""

    policy: Annotated[PlayingPolicyDocument | None, "Null for the untrained policy."]
    seed: Annotated[str, "The name that every seed is derived from."]
    predictions: list[PredictionDocument]


class AdviceDocument(TypedDict):
    """Whether to pair, from rollouts of both designs."""

    tasks: int
    groups: DesignCountsDocument
    group_size: int
    optimizer: Optimizer
    batch: Annotated[int, "Groups a step."]
    figures: Annotated[dict[str, UncertainDocument], "By name; those that could not be had have no entry."]
    not_evaluable: Annotated[dict[str, str], "Why a figure could not be had."]
    verdict: Literal["pair", "do_not_pair", "either", "undecided", "not_evaluable"]
    tasks_needed: Annotated[int | None, "Tasks that are likely to settle what is undecided."]
    batch_needed: Annotated[int | None, "Groups a step at which pairing loses nothing."]
    sentences: Annotated[list[str], "The advice in words."]
    level: Annotated[float, "Confidence level."]
