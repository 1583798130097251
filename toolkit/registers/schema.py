"""The columns of every register, from which all else derives. A change of meaning is a new major version."""

from functools import partial

from toolkit.registers import columns as c
from toolkit.registers import row_tables
from toolkit.structs import replace

SCHEMA_VERSION = "1.10.0"

# Episodes of an evaluation, and groups of a run, that something holds of.
_episodes = partial(c.count, unit="episodes", at_most=("episodes",))
_groups = partial(c.count, unit="groups", at_most=("groups",))
_rollouts = partial(c.count, unit="rollouts", at_most=("rollouts",))

# What is said of runs of the matrix, and of others: these have no condition, and refer to nothing.
_CELL_OR_NONE = tuple(map(c.maybe, c.CELL))
_OF_RUN_OR_NONE = replace(c.OF_RUN, where_present="condition")

RUNS = c.Table(
    "runs",
    "One row a run: condition × arm × seed, with its hyperparameters, its launch and its stack.",
    (
        c.RUN,
        *c.CELL,
        c.text(
            "role",
            "`pilot`, `primary` and `reference` runs enter decisions; a `replication` is shown beside them.",
            choices=c.ROLES,
        ),
        *c.optional(
            c.share("fault_rate", "Transition noise: probability p of a fault per eligible call."),
            c.share("flip_rate", "Outcome noise: probability q that a success is graded a failure."),
            c.text("scale_rewards", "Scaling of the advantages within a group.", choices=("group", "none")),
            c.text("loss_type", "Aggregation of the token losses."),
            c.count("steps", "Training steps.", unit="steps"),
            c.count("group_size", "Rollouts in a group, G.", unit="rollouts"),
            c.count("prompts_per_step", "Prompts in a training step.", unit="tasks"),
        ),
        c.count("episodes", "Episodes of training and evaluation together.", unit="episodes"),
        *c.optional(
            c.count("training_groups", "Training groups found in the run's evidence.", unit="groups"),
            c.count("training_rollouts", "Training rollouts found in the run's evidence.", unit="rollouts"),
            c.maybe(
                c.count("attempts", "Attempts of the counted run; null where `launches` lists them.", low=1)
            ),
        ),
        c.text("status", "State of the run's evidence.", choices=("COMPLETE", "INCOMPLETE")),
        *c.optional(
            c.maybe(
                c.moment(
                    "launched_at", "When the counted attempt was launched; null where `launches` says so."
                )
            ),
            c.maybe(c.text("registered", "Version of the registration the run was launched under.")),
            c.text("provider", "Where the run was computed."),
            c.maybe(c.text("accelerator", "Accelerator type, inferred from the provider; null for none.")),
            c.maybe(c.text("torch_version", "PyTorch version of the run; null for none.")),
            c.maybe(c.text("vllm_version", "vLLM version of the run; null for none.")),
            c.maybe(c.text("code_commit", "Commit of the training code; null where a release made the run.")),
            c.text(
                "model_commit",
                "Commit of the model's weights, or the SHA-256 of their files where these lie in a folder.",
                nullable=True,
            ),
            c.text("recipe_sha256", "SHA-256 of the settings that a language model was trained with."),
            c.maybe(c.text("register_commit", "Commit at which the original register was read.")),
            c.maybe(c.real("wall_time_s", "Duration of the run.", unit="s", low=0)),
            c.maybe(c.real("peak_memory_gb", "Peak accelerator memory.", unit="GB", low=0)),
            c.maybe(c.real("estimated_cost_usd", "Estimated cost.", unit="USD", low=0)),
            c.maybe(c.text("specification", "JSON: all that decides the bytes of the run.")),
        ),
    ),
    key=("run_id",),
    follows=("episodes",),
)

EVALUATIONS = c.Table(
    "evaluations",
    "One row an evaluation: one run at one step under one regime, as counts of episodes.",
    (
        c.RUN,
        *c.CELL,
        c.text("phase", "During training or at its end.", choices=("periodic", "final")),
        c.text("pool", "Task pool.", choices=("validation", "test")),
        c.text("regime", "Noise of the evaluation.", choices=c.REGIMES),
        c.count("step", "Training step of the evaluated policy."),
        c.count("episodes", "Episodes played.", unit="episodes", low=1),
        *c.optional(
            _episodes("successes", "Episodes with true success."),
            c.real("score", "Scores of the episodes, added up and rounded once.", unit="score"),
            _episodes(
                "missing", "Episodes without an outcome of their own, that count as the registration says."
            ),
            _episodes(
                "excluded", "Episodes left out, as the registration says, because their task lacks one."
            ),
            _episodes(
                "observed_successes",
                "Episodes whose observed reward is 1: a flip makes it less than the successes.",
                at_most=("successes",),
            ),
            _episodes("flipped", "Successes that the grader reported as failures.", at_most=("successes",)),
            _episodes("exposed", "Episodes that met at least one fault."),
            _episodes(
                "recovered",
                "True successes among the exposed episodes; null where none was exposed.",
                nullable=True,
                at_most=("exposed", "successes"),
            ),
            _episodes("finished", "Episodes ended by the policy itself."),
            _episodes("budget_exceeded", "Episodes ended by the call budget."),
            c.count("calls", "Tool calls over all episodes.", unit="calls"),
            replace(c.count("tokens", "Tokens over all episodes.", unit="tokens"), type=c.Type.INT64),
            c.real("cost", "Costs of the episodes, added up and rounded once.", unit="cost", low=0),
            c.count("tasks", "Different tasks played.", unit="tasks", low=1, at_most=("episodes",)),
            _episodes("episodes_per_task", "Episodes of the task that has most of them.", low=1),
            c.text(
                "task_set",
                "SHA-256 of the positions of its tasks, ascending, each as decimal digits and a newline.",
            ),
        ),
    ),
    key=("run_id", "phase", "pool", "regime", "step"),
    parents=(c.OF_RUN,),
    sums=(("successes", ("observed_successes", "flipped")),),
    follows=("episodes",),
)

GROUPS_SUMMARY = c.Table(
    "groups_summary",
    "One row a run: counts over its training groups.",
    (
        c.RUN,
        *c.CELL,
        c.count("groups", "Training groups.", unit="groups", low=1),
        _groups("all_correct", "Groups whose rollouts all truly succeeded."),
        _groups(
            "spurious",
            "All-correct groups whose observed rewards nevertheless vary.",
            at_most=("all_correct",),
        ),
        _groups("zero_variance", "Groups whose observed rewards are constant."),
        c.real("mean_max_abs_advantage", "Largest |advantage| of a group, averaged over groups.", low=0),
        _groups(
            "sharing_one_seed",
            "Groups with one resolved schedule seed; null where the study published none.",
            nullable=True,
        ),
        _groups(
            "several_seeds",
            "Groups with several resolved schedule seeds; null where the study published none.",
            nullable=True,
        ),
    ),
    key=("run_id",),
    parents=(c.OF_RUN,),
    sums=(("groups", ("sharing_one_seed", "several_seeds")),),
    follows=("groups",),
)

TRAINING_STEPS = c.Table(
    "training_steps",
    "One row a training step that a study published: counts over its rollouts. Condition, arm and seed are "
    "null for a run outside the matrix.",
    (
        c.RUN,
        *_CELL_OR_NONE,
        c.count(
            "step",
            "Training step of the policy that played: 0 is the untrained one, and the last is one less than "
            "the steps of the run.",
        ),
        c.count("rollouts", "Rollouts of the step.", unit="rollouts", low=1),
        _rollouts("successes", "Rollouts with true success."),
        _rollouts(
            "observed_successes",
            "Rollouts whose observed reward is 1, which the step was trained on: a flip makes it less than "
            "the successes.",
            at_most=("successes",),
        ),
        _rollouts("budget_exceeded", "Rollouts that exceeded the call budget."),
        c.count("calls", "Tool calls over all rollouts of the step.", unit="calls"),
    ),
    key=("run_id", "step"),
    parents=(_OF_RUN_OR_NONE,),
)

ATTEMPTS = c.Table(
    "attempts",
    "One row an attempt at a run that a study published: what it started from and what it left. Condition, "
    "arm and seed are null for a run outside the matrix.",
    (
        c.RUN,
        *_CELL_OR_NONE,
        c.count("attempt", "Attempt, from 1: a later one resumes where an earlier one stopped.", low=1),
        c.text("status", "State that the attempt ended in.", choices=("COMPLETE", "INCOMPLETE")),
        c.text("error", "Error that ended it; null for none.", nullable=True),
        c.count(
            "from_step",
            "Checkpoint that the attempt resumed from; null for one from the start.",
            unit="steps",
            nullable=True,
        ),
        c.count(
            "until_step",
            "Step from which the next attempt counts; null for the last one.",
            unit="steps",
            nullable=True,
        ),
        c.count("episodes", "Episodes on record from the attempt.", unit="episodes"),
        c.count("episodes_superseded", "Episodes that a later attempt played again.", unit="episodes"),
        c.count("groups", "Training groups on record from the attempt.", unit="groups"),
        c.count("groups_superseded", "Training groups that a later attempt played again.", unit="groups"),
        c.real("wall_time_s", "Duration of the attempt.", unit="s", low=0),
        c.real("estimated_cost_usd", "Estimated cost of the attempt.", unit="USD", low=0),
        c.text("code_commit", "Commit of the training code."),
        c.text("deployed_commit", "Commit that was deployed."),
        c.text("model_commit", "Commit of the model's weights; null where none was recorded.", nullable=True),
        c.text("provider", "Where it was computed; null where `runs` says so.", nullable=True),
        c.text(
            "register_commit",
            "Commit at which the original register was read; null where `runs` says so.",
            nullable=True,
        ),
    ),
    key=("run_id", "attempt"),
    parents=(_OF_RUN_OR_NONE,),
)

REFERENCE_AGENTS = c.Table(
    "reference_agents",
    "One row a pool, noise and scripted agent that a study published as a reference: counts over all tasks "
    "of the pool and their evaluation schedules.",
    (
        c.text("pool", "Pool of the tasks.", choices=c.POOLS),
        c.text("regime", "Noise of the episodes.", choices=c.REGIMES),
        c.text(
            "agent",
            "`naive` makes the planned calls once; `recovering` waits, looks and tries again.",
            choices=("naive", "recovering"),
        ),
        c.count("episodes", "Episodes played.", unit="episodes", low=1),
        _episodes("successes", "Episodes with true success."),
        _episodes("exposed", "Episodes that met a fault."),
        _episodes("outages", "Episodes that met an outage."),
        _episodes("budget_exceeded", "Episodes that exceeded the call budget."),
        c.count("calls", "Tool calls over all episodes.", unit="calls"),
    ),
    key=("pool", "regime", "agent"),
)

REFERENCE_STEPS = c.Table(
    "reference_steps",
    "One row a training step of a published run under faults: what the recovering scripted agent makes of "
    "the step's tasks under the schedules that its seeds draw, played here; beside it the same tasks under "
    "the schedules of another seed.",
    (
        c.RUN,
        *c.CELL,
        c.count("step", "Training step, as in `training_steps`."),
        c.count("episodes", "Episodes played: one a schedule.", unit="episodes", low=1),
        _episodes("successes", "Episodes with true success."),
        c.count("calls", "Tool calls over all episodes.", unit="calls"),
        _episodes("other_successes", "Episodes with true success under the other seed's schedules."),
        c.count("other_calls", "Tool calls under these.", unit="calls"),
    ),
    key=("run_id", "step"),
    parents=(c.OF_RUN,),
)

LUCK_SHARE_SUMMARY = c.Table(
    "luck_share_summary",
    "One row a luck-share diagnostic: 8 schedules × 8 rollouts for each of 16 tasks, by run and step.",
    (
        c.text("run_id", "The run, or the calibration, that was diagnosed."),
        c.text(
            "environment",
            "Version of the environment: the authors' (their runs used v3), or this toolkit's.",
            choices=("v1", "v2", "v3", "toolkit-1"),
        ),
        c.text("policy", "The policy diagnosed."),
        c.text(
            "regime", "Noise of the tables: tool faults, also for runs trained without.", choices=c.REGIMES
        ),
        c.text("condition", "Condition of the run; null for a calibration.", nullable=True),
        c.text("arm", "Arm of the run; null for a calibration.", nullable=True, choices=c.ARMS),
        c.count("seed", "Seed of the run; null for a calibration.", nullable=True),
        c.count("step", "Training step; 0 is the untrained policy."),
        c.text("pool", "Pool of the tasks; null where the register does not name it.", nullable=True),
        c.text("target", "Reward diagnosed; null where the register does not name it.", nullable=True),
        c.real("luck_share", "λ: mean of the per-task ratios, where defined.", low=0, high=1),
        c.real("luck_share_pooled", "Ratio of the averaged components.", nullable=True, low=0, high=1),
        c.share(
            "interval_low",
            "Lower end of the 95% task-bootstrap interval.",
            nullable=True,
            at_most=("interval_high",),
        ),
        c.share("interval_high", "Upper end of the 95% task-bootstrap interval.", nullable=True),
        c.real("variance_between", "Mean between-schedule variance.", unit="reward²", low=0),
        c.real("variance_within", "Mean within-schedule variance.", unit="reward²", low=0),
        c.count("tasks", "Diagnostic tasks.", unit="tasks"),
        c.count("tasks_defined", "Tasks whose ratio is defined.", unit="tasks", at_most=("tasks",)),
    ),
    key=("run_id", "step", "pool", "target"),
    parents=(_OF_RUN_OR_NONE,),
    follows=("luck_share",),
)

INTERVALS = c.Table(
    "intervals",
    "One row an interval that the study published and that its summary figures cannot give again.",
    (
        c.text("endpoint", "Endpoint of the registration that the interval belongs to."),
        c.share("level", "Confidence level."),
        c.exact("low", "Lower end, as printed.", at_most=("estimate",)),
        c.exact("high", "Upper end, as printed."),
        c.exact("estimate", "Point estimate printed beside it.", at_most=("high",)),
        c.count("decimals", "Digits printed after the point.", unit="digits", low=3, high=6),
        c.text("method", "How the interval was made."),
        c.text("resampled", "What was resampled."),
        c.count("resamples", "Bootstrap resamples."),
        c.count("rng_seed", "Seed of the resampling."),
        c.count("tasks", "Tasks resampled.", unit="tasks"),
    ),
    key=("endpoint", "level"),
)

EVENTS = c.Table(
    "events",
    "One row a dated event of the protocol, from the study's own records.",
    (
        c.moment("occurred_at", "When; midnight where only the day is known."),
        c.text("precision", "How exactly the time is known.", choices=("second", "day")),
        c.text(
            "kind",
            "What sort of event.",
            choices=(
                *("freeze", "token", "amendment", "change_before_freeze", "deviation"),
                *("disclosure", "launch", "cancellation", "calibration", "probe"),
            ),
        ),
        c.text("event", "The event."),
        c.text("detail", "Runs, hash, address or commit concerned.", nullable=True),
        c.text("source", "Where the study recorded it."),
    ),
    key=("occurred_at", "event"),
)

TABLES: dict[str, c.Table] = {
    table.name: table
    for table in (
        *(RUNS, EVALUATIONS, TRAINING_STEPS, ATTEMPTS, REFERENCE_AGENTS, REFERENCE_STEPS),
        *(GROUPS_SUMMARY, LUCK_SHARE_SUMMARY),
        *row_tables.OF_PROBE,
        *(INTERVALS, EVENTS),
        *row_tables.TABLES,
    )
}
