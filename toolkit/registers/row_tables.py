"""The columns of a study's own rows, from launches to decisions, of task pools and the gradient probe."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from toolkit.registers import columns as c
from toolkit.structs import replace

FAULTS = (
    *("transient", "rate_limit", "outage", "stale_read"),
    *("truncation", "timeout_after_commit", "field_dropout"),
)
RECOVERIES = (
    *("retry_after_transient", "wait_after_rate_limit"),
    *("reread_after_stale", "paginate_after_truncation"),
)
ENDINGS = ("finished", "budget_exceeded", "stopped")


def faults_landed(row: Mapping[str, Any]) -> int:
    """Return how many faults landed in an episode, from its row of `episodes`."""
    return sum(row[fault] for fault in FAULTS)


_of_run = partial(c.Table, parents=(c.OF_RUN_ALONE,))
_STEP = c.short("step", "Training step of the policy that played.", unit="steps")

LAUNCHES = _of_run(
    "launches",
    "One row a launch of a run: what differs by nature from one launch to the next, and enters no row hash "
    "of the study.",
    (
        c.RUN,
        c.count("attempt", "Attempt, from 1: a later one resumes where an earlier one stopped.", low=1),
        c.moment("launched_at", "When the attempt was launched, by the clock of the machine."),
        c.maybe(
            c.moment("ended_at", "When its evidence was complete; null for an attempt that was cut off.")
        ),
        c.count("from_step", "Checkpoint that the attempt started from.", unit="steps"),
        c.maybe(c.real("wall_time_s", "Duration; null for an attempt that was cut off.", unit="s", low=0)),
        c.real("peak_memory_mb", "Peak memory of its process.", unit="MB", low=0, nullable=True),
        c.text("python", "Version of the interpreter."),
        c.text("platform", "Operating system and architecture."),
        c.text("code_version", "Version of this package."),
        c.text("specification_sha256", "SHA-256 of the specification that was launched."),
        *c.optional(
            c.text("stack", "Packages that a language model was trained with, and their versions."),
            c.text("accelerator", "Accelerators that it was trained on; null for none.", nullable=True),
            c.count(
                "processes", "Processes that trained it; vLLM's own generator is seeded by their number."
            ),
            c.text(
                "kernels",
                "Package that computed each function of its linear attention, `reference` for transformers' "
                "own; null for none, or where it was not recorded.",
                nullable=True,
            ),
            c.numbers("step_seconds", "Duration of each step up to the attempt's last checkpoint.", unit="s"),
            c.numbers(
                "generation_seconds", "How much of it went to playing rollouts, step by step.", unit="s"
            ),
        ),
    ),
    key=("run_id", "attempt"),
)

OF_LAUNCHES = frozenset({LAUNCHES.name})
"""The tables that differ by nature from one launch to the next; all others follow from the study's seeds."""

SCHEDULES = c.Table(
    "schedules",
    "One row a schedule of an evaluation: the tasks and the seeds that every arm and checkpoint meets.",
    (
        c.text("pool", "Pool of the task.", choices=c.POOLS),
        c.short("task", "Position of the task in its pool."),
        c.short("schedule", "Index of the schedule."),
        c.seed("schedule_seed", "Seed of the schedule ω."),
    ),
    key=("pool", "task", "schedule"),
    follows=("episodes",),
)

OF_IMPORTS = ("score", "missing", "excluded", "tokens", "cost")
"""Columns of `episodes` that only a study has that was played elsewhere."""

EPISODES = _of_run(
    "episodes",
    "One row an episode of an evaluation; one file a run.",
    (
        c.RUN,
        c.text("phase", "During training or at its end.", choices=c.PHASES),
        c.text("pool", "Pool of the task.", choices=c.POOLS),
        c.text("regime", "Noise of the evaluation.", choices=c.REGIMES),
        _STEP,
        c.short("task", "Position of the task in its pool."),
        c.short("schedule", "Index of the schedule."),
        *c.optional(
            c.seed("schedule_seed", "Seed of the schedule ω: the same for every arm and checkpoint.")
        ),
        *c.optional(
            c.bit(
                "true_success",
                "Whether the episode truly succeeded; in the back office: the final world is the expected "
                "one.",
            ),
            c.real("score", "What it scored, where that is more than yes or no.", unit="score"),
            c.bit("missing", "Whether it has no outcome of its own, and counts as the registration says."),
            c.bit("excluded", "Whether it is left out, as the registration says: its task lacks an episode."),
            c.bit("observed_reward", "Whether the grader reported a success.", at_most=("true_success",)),
            c.short("calls", "Calls charged to the budget.", unit="calls"),
            c.count("tokens", "Tokens that the episode took.", unit="tokens"),
            c.real("cost", "What the episode cost.", unit="cost", low=0),
            c.text("ended", "What ended the episode.", choices=ENDINGS),
            c.bit("world_changed", "Whether the world changed at all."),
            *(c.short(fault, f"Faults of type {fault} that landed.", unit="faults") for fault in FAULTS),
            *(
                column
                for code in RECOVERIES
                for column in (
                    c.short(
                        f"{code}_due", f"Faults that called for {code.replace('_', ' ')}.", unit="faults"
                    ),
                    c.short(
                        f"{code}_made",
                        "How many of them were followed by it.",
                        unit="faults",
                        at_most=(f"{code}_due",),
                    ),
                )
            ),
        ),
    ),
    key=("run_id", "phase", "pool", "regime", "step", "task", "schedule"),
)

GROUPS = _of_run(
    "groups",
    "One row a training group: one prompt at one step, in the trainer's order; one file a run.",
    (
        c.RUN,
        c.short("step", "Training step, from 1.", unit="steps", low=1),
        c.short("position", "Position of the group in its step."),
        c.short("task", "Position of the task in the training pool."),
        c.text(
            "regime",
            "Noise that the group met: blocking arms have clean groups and noisy ones.",
            choices=c.REGIMES,
        ),
        c.seeds("schedule_seeds", "Resolved schedule seed of each rollout."),
        c.bits("true_successes", "True success of each rollout."),
        c.bits("observed_rewards", "Observed reward of each rollout."),
        c.numbers("advantages", "Advantage of each rollout."),
        # A language model's rows say `tokens`, whose sum it would be.
        *c.optional(
            c.short(
                "decisions",
                "Decisions of the group: what token-level aggregation divides by.",
                unit="decisions",
            )
        ),
        c.short("exposed", "Rollouts that met at least one fault.", unit="rollouts"),
        c.bit(
            "zero_variance", "Whether the observed rewards are constant, so that the group has no gradient."
        ),
        c.bit("spurious", "Whether all rollouts truly succeeded and the observed rewards nevertheless vary."),
        *c.optional(
            c.wholes("tokens", "Tokens of each rollout of a language model that the loss counts."),
            c.numbers(
                "importance_weights",
                "Importance weight of each rollout, where another engine sampled than the one that trains: "
                "0 where it was masked.",
            ),
        ),
    ),
    key=("run_id", "step", "position"),
)

STEPS = _of_run(
    "steps",
    "One row a training step of a language model: the trainer's own figures; how long it took stands in "
    "`launches`.",
    (
        c.RUN,
        c.short("step", "Training step, from 1.", unit="steps", low=1),
        c.real("loss", "Loss of the step; null where it is no finite number.", nullable=True),
        c.real(
            "grad_norm",
            "Length of the gradient before it is clipped; null where it is no finite number.",
            low=0,
            nullable=True,
        ),
        c.real(
            "entropy", "Mean entropy of the policy where it chose a token.", unit="nats/token", nullable=True
        ),
        c.real(
            "clipped", "Share of tokens whose probability ratio was clipped.", low=0, high=1, nullable=True
        ),
        *c.optional(
            c.real("importance_weight_mean", "Mean importance weight, where another engine sampled.", low=0),
            c.real("importance_weight_min", "Smallest importance weight.", low=0),
            c.real("importance_weight_max", "Largest importance weight.", low=0),
        ),
    ),
    key=("run_id", "step"),
)

LUCK_SHARE = _of_run(
    "luck_share",
    "One row a task and schedule of a luck-share diagnostic: a row of the 8 × 8 table of rewards.",
    (
        c.RUN,
        _STEP,
        c.text("pool", "Pool of the task.", choices=c.POOLS),
        c.text("regime", "Noise of the tables.", choices=c.REGIMES),
        c.short("task", "Position of the task in its pool."),
        c.short("schedule", "Index of the schedule."),
        c.seed("schedule_seed", "Seed of the schedule ω."),
        c.bits("true_successes", "True success of each policy sample."),
        c.bits("observed_rewards", "Observed reward of each policy sample."),
    ),
    key=("run_id", "step", "pool", "task", "schedule"),
)

CHECKPOINTS = _of_run(
    "checkpoints",
    "One row a checkpoint: the policy's parameters and the optimizer's state, bit for bit.",
    (
        c.RUN,
        c.short("step", "Training steps done.", unit="steps"),
        c.numbers("parameters", "Parameters of the policy, in the order of its features and actions."),
        c.numbers("first_moment", "Adam's running mean of the gradient."),
        c.numbers("second_moment", "Adam's running mean of the squared gradient."),
        c.text("sha256", "SHA-256 of the three, as little-endian doubles."),
    ),
    key=("run_id", "step"),
    is_blob=True,
)

ADAPTERS = _of_run(
    "adapters",
    "One row a checkpoint of a language model: its LoRA adapter, and what training goes on from.",
    (
        c.RUN,
        c.short("step", "Training steps done.", unit="steps"),
        c.text("sha256", "SHA-256 of the adapter's safetensors file."),
        c.count("coordinates", "Numbers in the adapter."),
        c.text(
            "state_sha256",
            "SHA-256 of what training goes on from: of a line for each file of adapter, optimizer, "
            "scheduler, generators and the trainer's state without its log, in order of their names, with "
            "digest and name.",
        ),
        c.text(
            "adapter",
            "The safetensors file in base64; null where it is too large for a table, and kept beside it.",
            nullable=True,
        ),
    ),
    key=("run_id", "step"),
    is_blob=True,
)

DECISIONS = c.Table(
    "decisions",
    "One row a rule: the verdict that the registration reaches on these registers, and its interval.",
    (
        c.text("rule", "The rule."),
        c.text("kind", "What sort of rule."),
        c.text("verdict", "Its verdict."),
        c.text("evidence", "What the registered interval shows."),
        c.real("estimate", "Mean of the rule's estimate.", nullable=True),
        c.text("interval", "Name of the registered interval; null where there is none.", nullable=True),
        c.real("level", "Its confidence level.", low=0, high=1, nullable=True),
        c.real("low", "Its lower end.", nullable=True, at_most=("high",)),
        c.real("high", "Its upper end.", nullable=True),
        c.real("low_error", "Monte Carlo standard deviation of the lower end.", low=0, nullable=True),
        c.real("high_error", "Monte Carlo standard deviation of the upper end.", low=0, nullable=True),
        c.text("inputs_sha256", "SHA-256 of what was decided on: registration, amendments and row hashes."),
    ),
    key=("rule",),
)


TASK_POOLS = c.Table(
    "task_pools",
    "One row a task, with what is known of it: prompt, world, plan, expected end state; one split a pool.",
    (
        c.text("pool", "Pool of the task, and its split.", choices=c.POOLS),
        c.count("index", "Position in the pool."),
        c.text("task_id", "Identifier of the task: pool:index, or the one its study gave it."),
        *c.optional(
            c.text("world_seed", "Seed in [0, 2^64) that the task and its world were generated from."),
            c.text("prompt", "The request in words: all that an agent is given."),
            replace(
                c.text(
                    "attributes", "JSON: attributes of the task that its registration declares, and words."
                ),
                pairs=True,
            ),
            c.text("templates", "Template of each sub-request, in order, separated by spaces."),
            c.text("forms", "Form of each sub-request: how much of what is needed stands in the prompt."),
            c.count("sub_requests", "Sub-requests.", unit="requests", low=1),
            c.count("reads", "Reads of the plan.", unit="calls", at_most=("budget",)),
            c.count("writes", "Writes of the plan, n.", unit="calls", at_most=("budget",)),
            c.count(
                "budget",
                "Calls that an episode may make; in the back office 7 + 2n, at most 21.",
                unit="calls",
            ),
            c.text("plan", "JSON: calls that fulfil the request, each with its tool and arguments."),
            c.text("expected", "JSON: the records that the plan changes, as it leaves them, by identifier."),
            c.text("world", "JSON: every record of the world before the episode, by identifier."),
            c.text("sha256", "SHA-256 of the task's canonical document."),
        ),
    ),
    key=("pool", "index"),
)

SPLIT_BY = {TASK_POOLS.name: "pool"}
"""Table → the column whose values are its splits; any other table is one split."""

TABLES = (
    *(LAUNCHES, SCHEDULES, EPISODES, GROUPS, STEPS, LUCK_SHARE),
    *(CHECKPOINTS, ADAPTERS, DECISIONS, TASK_POOLS),
)


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
_of_probe = partial(c.Table, parents=(OF_CHECKPOINT,), follows=("probe_gram",))


_DESIGNS = {
    "paired": "paired design",
    "independent": "independent design (transition noise: labels drawn with replacement)",
    "stratified": "one rollout a schedule; null for outcome noise",
}


def _by_design(stem: str, meaning: str, unit: str = "score²") -> Iterator[c.Column]:
    for design, words in _DESIGNS.items():
        column = c.real(f"{stem}_{design}", f"{meaning}, {words}.", unit=unit, low=0)
        yield c.maybe(column) if design == "stratified" else column


PROBE = _of_probe(
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

PROBE_CLEAN_TASKS = _of_probe(
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
)

PROBE_DIAGNOSTIC_TASKS = _of_probe(
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

PROBE_INTERVALS = _of_probe(
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

OF_PROBE = (
    *(PROBE, PROBE_CHECKPOINTS, PROBE_CLEAN_TASKS, PROBE_DIAGNOSTIC_TASKS),
    *(PROBE_DRIFT, PROBE_GRAM, PROBE_INDICES, PROBE_INTERVALS),
)
TABLES_OF_PROBE = tuple(table.name for table in OF_PROBE)
BASE = "base"
"""The untrained policy, as `trajectory` names it."""
