"""The gradient probe: measured, reported, and what it advises."""

from typing import Annotated, Literal, NotRequired, TypedDict

from toolkit.documents.registers import Verified
from toolkit.structs import about

Noise = Annotated[Literal["outcome", "transition"], about("Grader flips, or tool faults.")]
Estimator = Annotated[
    Literal["MC", "SW"],
    about("MC: advantages centred; SW: standardized, importance-weighted, over reference tokens."),
]
Optimizer = Literal["adam", "gradient", "sign"]
StratifiedReal = Annotated[float | None, about("One rollout a schedule; null under flips.")]


class SealedDocument(TypedDict):
    """Registers that were written."""

    folder: Annotated[str, about("Where they lie.")]
    logical_sha256: Annotated[str, about("Of what the rows say.")]


class ProbeRunDocument(TypedDict):
    """A probe that was measured; with --check compared, otherwise written."""

    study: Annotated[str, about("Name of the study.")]
    trajectories: Annotated[list[str], about("Trajectories that were probed.")]
    kept: Annotated[list[str], about("Trajectories that were finished before.")]
    largest_residual: Annotated[float, about("Of the exact identities, score².")]
    verdict: NotRequired[Annotated[Literal["verified"], about("With --check.")]]
    tables: NotRequired[Annotated[list[str], about("With --check: tables that are as registered.")]]
    registers: NotRequired[Annotated[SealedDocument, about("Without --check.")]]


class ProbeCheckDocument(TypedDict):
    """Figures that were computed anew from the evidence alone."""

    verdict: Verified
    rows: Annotated[int, about("Rows that are those stored.")]
    largest_residual: Annotated[float, about("Of the exact identities, score².")]


class TracesDocument(TypedDict):
    """Covariance traces of the group gradient by design: of MC in score², of SW in score²/token²."""

    noise: Noise
    estimator: Estimator
    condition_left: Annotated[float | None, about("L of the exact condition, score².")]
    condition_right: Annotated[float | None, about("R of it, score².")]
    identity_residual: Annotated[float | None, about("score².")]
    trace_paired: Annotated[float, about("Trace of the covariance, paired design.")]
    trace_independent: Annotated[float, about("Trace of the covariance, independent design.")]
    trace_stratified: StratifiedReal
    trace_within_paired: Annotated[float, about("Its part within tasks, paired design.")]
    trace_within_independent: Annotated[float, about("Its part within tasks, independent design.")]
    trace_within_stratified: StratifiedReal
    trace_between_paired: Annotated[float, about("Its part between tasks, paired design.")]
    trace_between_independent: Annotated[float, about("Its part between tasks, independent design.")]
    trace_between_stratified: StratifiedReal
    mean_norm_paired: Annotated[
        float, about("Norm of the mean gradient; of MC in score, of SW in score/token.")
    ]
    mean_norm_independent: Annotated[float, about("Norm of the mean gradient, independent design.")]
    mean_norm_stratified: StratifiedReal
    reward_contrast_paired: Annotated[float, about("Variance of a reward contrast, reward².")]
    reward_contrast_independent: Annotated[
        float, about("Variance of a reward contrast, reward², independent design.")
    ]
    reward_contrast_stratified: StratifiedReal
    cosine: Annotated[float | None, about("Between the designs' mean gradients; null where one is zero.")]


class FigureDocument(TypedDict):
    """A figure over tasks, with its interval and what noise alone would give."""

    noise: Noise
    estimator: Estimator
    figure: Annotated[
        str, about("As `trace_ratio`, paired over independent; `toolkit registers schema` lists them.")
    ]
    tasks: Annotated[int, about("Tasks that it is over.")]
    level: Annotated[float, about("Confidence level.")]
    value: Annotated[float | None, about("Null where the tasks do not define it.")]
    low: Annotated[float | None, about("Of the interval; null without one.")]
    high: Annotated[float | None, about("Of the interval; null without one.")]
    standard_error: Annotated[float | None, about("The jackknife's.")]
    corrected: Annotated[float | None, about("The value, its bias of order 1/tasks taken off.")]
    pure_noise: Annotated[float | None, about("What noise alone gives.")]
    debiased: Annotated[float | None, about("The value without what noise adds to it.")]


class StepDriftDocument(TypedDict):
    """The drift under steps as a trainer takes them."""

    noise: Noise
    estimator: Estimator
    prompts_per_step: Annotated[int, about("Groups a step, B.")]
    level: Annotated[float, about("Confidence level.")]
    drift_paired: Annotated[float | None, about("In units of the learning rate.")]
    drift_independent: Annotated[float | None, about("In units of the learning rate.")]
    ratio: Annotated[float | None, about("Paired over independent.")]
    corrected: Annotated[float | None, about("The ratio, its bias taken off.")]
    low: Annotated[float | None, about("Of the ratio's interval.")]
    high: Annotated[float | None, about("Of the ratio's interval.")]


class CheckpointDocument(TypedDict):
    """A checkpoint that was probed."""

    trajectory: Annotated[str, about("`base` is the untrained policy.")]
    step: Annotated[int, about("Step of the training.")]
    scored: Annotated[Literal["all", "actions"], about("Which coordinates.")]
    adapter_sha256: Annotated[str | None, about("Null for a fresh adapter.")]
    adapter_fingerprint: Annotated[str, about("Of the parameters that were scored.")]
    coordinate_names_sha256: Annotated[str, about("Of the names of the scored coordinates.")]
    spec_sha256: Annotated[str, about("Of the probe's specification.")]
    code_commit: Annotated[str | None, about("Null where a release made it.")]
    coordinates: Annotated[int, about("How many were scored.")]
    clean_rollouts: Annotated[int, about("Clean rollouts scored.")]
    clean_successes: Annotated[int, about("Those of them that succeeded.")]
    diagnostic_rollouts: Annotated[int, about("Scored for transition noise.")]
    masked_rollouts: Annotated[int, about("With importance weight 0.")]
    weight_mean: Annotated[float, about("Importance weight, of those above 0.")]
    weight_min: Annotated[float, about("The smallest.")]
    weight_max: Annotated[float, about("The largest.")]
    reference_tokens: Annotated[float, about("What SW is divided by.")]
    summaries: list[TracesDocument]
    figures: list[FigureDocument]
    drifts: Annotated[list[StepDriftDocument], about("None where the study has no such table.")]


class OfProbeCheck(TypedDict, total=False):
    """What is said with --check."""

    check: ProbeCheckDocument


class ProbeReportDocument(OfProbeCheck):
    """What a study's probe says, checkpoint by checkpoint."""

    study: Annotated[str, about("Name of the study.")]
    evidence: Annotated[bool, about("Whether the study ships the inner products behind the figures.")]
    checkpoints: list[CheckpointDocument]


class UncertainDocument(TypedDict):
    """A figure over tasks, with a 95% interval."""

    value: Annotated[float | None, about("Null where the tasks do not define it.")]
    low: Annotated[float | None, about("Null without an interval.")]
    high: Annotated[float | None, about("Null without an interval.")]
    standard_error: Annotated[float | None, about("The jackknife's.")]
    corrected: Annotated[float | None, about("The value, its bias of order 1/tasks taken off.")]


class DesignFiguresDocument(TypedDict):
    """Figures of one design."""

    groups: Annotated[int, about("That were played.")]
    constant: Annotated[float, about("Share of them whose rewards are constant.")]
    draws: Annotated[float, about("Groups played for one that counts.")]
    symbols: Annotated[float, about("Decisions and tokens a group.")]
    trace: Annotated[float, about("Covariance trace of a group's gradient.")]
    along: Annotated[float, about("Its variance along the mean gradient.")]
    strongest: Annotated[float, about("Its variance on the coordinates with most signal, summed.")]
    drift: Annotated[float, about("Expected progress a step, in units of the learning rate.")]


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

    paired: Annotated[int, about("Of the paired design.")]
    independent: Annotated[int, about("Of the independent design.")]


class PredictionDocument(TypedDict):
    """What is predicted under some settings."""

    regime: Annotated[str, about("The noise.")]
    group_size: Annotated[int, about("Rollouts a group, G.")]
    surface_tokens: Annotated[int, about("V.")]
    scale_rewards: Annotated[
        Literal["group", "none"], about("Whether advantages are divided by their group's standard deviation.")
    ]
    constant_groups: Annotated[
        Literal["kept", "resampled"], about("What becomes of groups whose rewards are constant.")
    ]
    loss_type: Annotated[Literal["dapo", "dr_grpo"], about("What divides a step's sum.")]
    prompts_per_step: Annotated[int, about("Groups a step, B.")]
    optimizer: Annotated[Optimizer, about("What takes a step.")]
    level: Annotated[float, about("Confidence level.")]
    blocks: Annotated[int, about("Blocks of tasks that the intervals rest on.")]
    tasks: Annotated[int, about("Tasks of the blocks.")]
    steps: Annotated[DesignCountsDocument, about("Groups, or steps, that give the drift.")]
    designs: DesignsFiguresDocument
    ratios: RatiosDocument


class PlayingPolicyDocument(TypedDict):
    """A checkpoint that played."""

    study: Annotated[str, about("Name of the study.")]
    run: Annotated[str, about("Name of the run.")]
    step: Annotated[int, about("Of the checkpoint.")]


class PredictedDriftDocument(TypedDict):
    """How fast training with each design will learn, from played groups."""

    policy: Annotated[PlayingPolicyDocument | None, about("Null for the untrained policy.")]
    seed: Annotated[str, about("The name that every seed is derived from.")]
    predictions: list[PredictionDocument]


class AdviceDocument(TypedDict):
    """Whether to pair, from rollouts of both designs."""

    tasks: Annotated[int, about("Tasks of both designs.")]
    groups: DesignCountsDocument
    group_size: Annotated[int, about("Rollouts a group, G.")]
    optimizer: Annotated[Optimizer, about("What takes a step.")]
    batch: Annotated[int, about("Groups a step.")]
    figures: Annotated[
        dict[str, UncertainDocument], about("By name; those that could not be had have no entry.")
    ]
    not_evaluable: Annotated[dict[str, str], about("Why a figure could not be had.")]
    verdict: Annotated[
        Literal["pair", "do_not_pair", "either", "undecided", "not_evaluable"],
        about("`either`: learning is as fast to a twentieth; `undecided`: the interval leaves it open."),
    ]
    tasks_needed: Annotated[int | None, about("Tasks that are likely to settle what is undecided.")]
    batch_needed: Annotated[int | None, about("Groups a step at which pairing loses nothing.")]
    sentences: Annotated[list[str], about("The advice in words.")]
    level: Annotated[float, about("Confidence level.")]
