"""The columns of the gradient probe: its evidence, and the figures that follow from it."""

from collections.abc import Iterator

from toolkit.registers import columns as c

NOISES = ("outcome", "transition")
SCORED = ("all", "actions")
COMPARATORS = ("independent", "stratified")
FIGURES = (
    *("condition_ratio", "trace_ratio", "trace_ratio_stratified", "within_ratio"),
    *("within_share_paired", "within_share_independent", "within_share_stratified"),
    *("norm_over_floor_paired", "norm_over_floor_independent", "norm_over_floor_stratified"),
)

_CHECKPOINT = (
    c.text("trajectory", "Training trajectory the checkpoint lies on; `base` is the untrained policy."),
    c.count("step", "Training step of the checkpoint."),
    c.text(
        "scored",
        "Coordinates that were scored: all of them, or those of the actions alone, as if the policy had no "
        "surface tokens.",
        choices=SCORED,
    ),
)
_NOISE = c.text(
    "noise",
    "Outcome noise (grader flips, exactly over masks) or transition noise (tool faults).",
    choices=NOISES,
)
_ESTIMATOR = (
    _NOISE,
    c.text(
        "estimator",
        "MC: mean-centred advantages. SW: standardized and importance-weighted, divided by T_ref: its "
        "traces are in score²/token², its norms in score/token.",
        choices=("MC", "SW"),
    ),
)

OF_CHECKPOINT = c.Parent("probe_checkpoints", ("trajectory", "step", "scored"))


_DESIGNS = {
    "paired": "paired design",
    "independent": "independent design (transition noise: labels drawn with replacement)",
    "stratified": "one rollout a schedule; null for outcome noise",
}


def _by_design(stem: str, meaning: str, unit: str = "score²") -> Iterator[c.Column]:
    for design, words in _DESIGNS.items():
        column = c.real(f"{stem}_{design}", f"{meaning}, {words}.", unit=unit, low=0)
        yield c.maybe(column) if design == "stratified" else column


PROBE = c.Table(
    "probe",
    "One row a checkpoint × noise × estimator: covariance traces of the group gradient by design.",
    (
        *_CHECKPOINT,
        *_ESTIMATOR,
        c.real(
            "condition_left",
            "L: ‖g_c‖² of the clean group gradient, averaged over groups: Σ_ij r_i r_j K_ij / G², K the Gram "
            "matrix of the scores centred within the group, r the true outcomes.",
            unit="score²",
            nullable=True,
            low=0,
        ),
        c.real(
            "condition_right",
            "R: Σ_i r_i K_ii / G² with the same K, averaged over groups.",
            unit="score²",
            nullable=True,
            low=0,
        ),
        c.real("identity_residual", "Residual of the exact identity.", unit="score²", nullable=True),
        *_by_design("trace", "Trace of the covariance of the group gradient"),
        *_by_design("trace_within", "Within part of the trace"),
        *_by_design("trace_between", "Between part of the trace"),
        *_by_design("mean_norm", "Norm of the mean gradient", unit="score"),
        *_by_design("reward_contrast", "Variance of a reward contrast", unit="reward²"),
        c.real(
            "cosine",
            "Cosine between the two designs' mean gradients (paired, independent); null where one is zero.",
            nullable=True,
            low=-1,
            high=1,
        ),
    ),
    key=("trajectory", "step", "scored", "noise", "estimator"),
    parents=(OF_CHECKPOINT,),
    follows=("probe_gram",),
)

PROBE_CHECKPOINTS = c.Table(
    "probe_checkpoints",
    "One row a probed checkpoint: what was scored, and the importance weights met.",
    (
        *_CHECKPOINT,
        c.text(
            "adapter_sha256",
            "SHA-256 of the adapter, or of the row of `checkpoints`; null for a fresh adapter.",
            nullable=True,
        ),
        c.text("adapter_fingerprint", "Fingerprint of the parameters that were scored."),
        c.text("coordinate_names_sha256", "SHA-256 of the names of the scored coordinates."),
        c.text("spec_sha256", "SHA-256 of the probe's specification."),
        c.text("code_commit", "Commit of the probe's code; null where a release made it.", nullable=True),
        c.count("coordinates", "Scored coordinates.", unit="coordinates"),
        c.count("clean_rollouts", "Clean rollouts scored.", unit="rollouts"),
        c.count(
            "clean_successes", "Clean rollouts that succeeded.", unit="rollouts", at_most=("clean_rollouts",)
        ),
        c.count("diagnostic_rollouts", "Rollouts scored for transition noise.", unit="rollouts"),
        c.count(
            "masked_rollouts",
            "Clean rollouts with importance weight 0.",
            unit="rollouts",
            at_most=("clean_rollouts",),
        ),
        c.real("weight_mean", "Mean nonzero importance weight of the clean rollouts.", low=0),
        c.real("weight_min", "Smallest nonzero importance weight.", low=0),
        c.real("weight_max", "Largest importance weight.", low=0),
        c.real("reference_tokens", "T_ref: the fixed token normalizer of SW.", unit="tokens", low=0),
    ),
    key=("trajectory", "step", "scored"),
    follows=("probe_gram",),
)

PROBE_CLEAN_TASKS = c.Table(
    "probe_clean_tasks",
    "One row a checkpoint × task: both sides of the exact condition on one clean group.",
    (
        *_CHECKPOINT,
        c.text("task_id", "Validation task."),
        c.count("successes", "True successes in the clean group.", unit="rollouts"),
        c.real(
            "condition_left",
            "L of the group: Σ_ij r_i r_j K_ij / G², K the Gram matrix of its centred scores.",
            unit="score²",
            low=0,
        ),
        c.real("condition_right", "R of the group: Σ_i r_i K_ii / G².", unit="score²", low=0),
    ),
    key=("trajectory", "step", "scored", "task_id"),
    parents=(OF_CHECKPOINT,),
    follows=("probe_gram",),
)

PROBE_DIAGNOSTIC_TASKS = c.Table(
    "probe_diagnostic_tasks",
    "One row a checkpoint × task: summed squared norms of the MC group gradients under tool faults.",
    (
        *_CHECKPOINT,
        c.text("task_id", "Diagnostic task."),
        c.real(
            "squared_norms_paired", "Sum over the task's paired groups, one a schedule.", unit="score²", low=0
        ),
        c.real("squared_norms_independent", "Sum over the task's resampled groups.", unit="score²", low=0),
        c.real("squared_norms_stratified", "Sum over the task's stratified groups.", unit="score²", low=0),
    ),
    key=("trajectory", "step", "scored", "task_id"),
    parents=(OF_CHECKPOINT,),
    follows=("probe_gram",),
)

_PRODUCTS = (
    "Inner products of the task's mean gradients with those of the tasks up to it, estimator {}: for each of "
    "these a matrix, row by row, this task's designs by the other's; paired, independent and, for transition "
    "noise, stratified."
)

PROBE_GRAM = c.Table(
    "probe_gram",
    "One row a checkpoint × noise × task: the evidence from which every figure of the probe follows; one "
    "file a trajectory.",
    (
        *_CHECKPOINT,
        _NOISE,
        c.text("pool", "Pool of the task.", choices=c.POOLS),
        c.text(
            "regime", "Noise of the episodes; outcome noise is put on afterwards, exactly.", choices=c.REGIMES
        ),
        c.short("task", "Position of the task in its pool."),
        c.bits(
            "rewards",
            "True outcome of each rollout, schedule by schedule: those of one schedule are a paired group.",
        ),
        c.wholes("tokens", "Decisions and tokens of each rollout that the loss counts.", unit="tokens"),
        c.numbers("weights", "Importance weight of each rollout; 1 where sampled from the scored policy."),
        c.numbers(
            "gram", "Inner products of the rollouts' scores: upper triangle, row by row.", unit="score²"
        ),
        c.numbers("products_mc", _PRODUCTS.format("MC"), unit="score²"),
        c.numbers("products_sw", _PRODUCTS.format("SW") + " Not yet divided by T_ref².", unit="score²"),
    ),
    key=("trajectory", "step", "scored", "noise", "task"),
    parents=(OF_CHECKPOINT,),
    is_blob=True,
)

PROBE_INDICES = c.Table(
    "probe_indices",
    "One row a resampled group of a diagnostic task: the rollouts that it is put together from at every "
    "checkpoint.",
    (
        c.text(
            "design",
            "Independent: schedules drawn with replacement, distinct rollouts within each. Stratified: one "
            "rollout a schedule.",
            choices=COMPARATORS,
        ),
        c.short("task", "Position of the task in its pool."),
        c.short("group", "Number of the group."),
        c.wholes("rollouts", "Positions of the rollouts in `probe_gram.rewards`."),
    ),
    key=("design", "task", "group"),
)

PROBE_INTERVALS = c.Table(
    "probe_intervals",
    "One row a checkpoint × noise × estimator × figure: how far other tasks would move the figure, and what "
    "stands beside it. Six significant digits.",
    (
        *_CHECKPOINT,
        *_ESTIMATOR,
        c.text("figure", "The figure.", choices=FIGURES),
        c.count("tasks", "Tasks, the unit that is resampled.", unit="tasks", low=2),
        c.real("level", "Confidence level of the interval.", low=0, high=1),
        c.real(
            "value",
            "The plain figure. Ratios are paired over comparator; shares within tasks over total; a norm is "
            "squared, over the spread of the tasks' mean gradients divided by their number. Null where it is "
            "not defined; its uncertainty is null where some resample does not define it.",
            nullable=True,
        ),
        c.real("low", "Lower end of the task-bootstrap interval.", nullable=True, at_most=("high",)),
        c.real("high", "Its upper end.", nullable=True),
        c.real("standard_error", "Jackknife over tasks.", nullable=True, low=0),
        c.real("corrected", "The figure, its bias of order 1/T taken off by the jackknife.", nullable=True),
        c.real(
            "pure_noise", "What noise alone gives, without tasks that differ or a gradient.", nullable=True
        ),
        c.real(
            "debiased",
            "A share without the bias of few groups a task; of a squared norm, the share beyond noise.",
            nullable=True,
        ),
    ),
    key=("trajectory", "step", "scored", "noise", "estimator", "figure"),
    parents=(OF_CHECKPOINT,),
    follows=("probe_gram",),
)

PROBE_DRIFT = c.Table(
    "probe_drift",
    "One row a checkpoint × noise × estimator × groups in a step: the drift, the progress that a step of "
    "Adam is expected to make along the mean gradient. It follows from scores, coordinate by coordinate, and "
    "not from `probe_gram`. Six significant digits.",
    (
        *_CHECKPOINT,
        *_ESTIMATOR,
        c.count("prompts_per_step", "Groups in a step, B.", unit="groups", low=1),
        c.real("level", "Confidence level of the interval.", low=0, high=1),
        c.real(
            "drift_paired",
            "Paired design, a unit of learning rate; SW: not divided by T_ref, and along the mean-centred "
            "mean gradient. Noise may make it negative.",
            unit="score",
            nullable=True,
        ),
        c.real("drift_independent", "Independent design, likewise.", unit="score", nullable=True),
        c.real(
            "ratio",
            "Paired over independent. Below one, pairing slows the optimizer down. Few tasks for the groups "
            "in a step bias it.",
            nullable=True,
        ),
        c.real("corrected", "The ratio, its bias of order 1/T taken off by the jackknife.", nullable=True),
        c.real(
            "low",
            "Lower end of its interval: `corrected` less Student's quantile of the jackknife's errors.",
            nullable=True,
            at_most=("high",),
        ),
        c.real("high", "Its upper end.", nullable=True),
    ),
    key=("trajectory", "step", "scored", "noise", "estimator", "prompts_per_step"),
    parents=(OF_CHECKPOINT,),
)

TABLES = (
    *(PROBE, PROBE_CHECKPOINTS, PROBE_CLEAN_TASKS, PROBE_DIAGNOSTIC_TASKS),
    *(PROBE_DRIFT, PROBE_GRAM, PROBE_INDICES, PROBE_INTERVALS),
)
