"""The columns of every register: the one place that says so.

The Arrow schema, the `dataset_info` of the cards, the tables of the documentation and the validation all
derive from here. A change of meaning is a new major version, and its registers are not comparable.
"""

from __future__ import annotations

from toolkit.registers.columns import (
    ARMS,
    CELL,
    OF_RUN,
    REGIMES,
    ROLES,
    RUN,
    Parent,
    Table,
    count,
    exact,
    moment,
    optional,
    real,
    text,
)
from toolkit.registers.probe_tables import (
    PROBE,
    PROBE_CHECKPOINTS,
    PROBE_CLEAN_TASKS,
    PROBE_DIAGNOSTIC_TASKS,
    PROBE_GRAM,
    PROBE_INDICES,
    PROBE_INTERVALS,
)
from toolkit.registers.row_tables import (
    ADAPTERS,
    CHECKPOINTS,
    DECISIONS,
    EPISODES,
    GROUPS,
    LAUNCHES,
    LUCK_SHARE,
    SCHEDULES,
    TASK_POOLS,
)

SCHEMA_VERSION = "1.5.0"

RUNS = Table(
    "runs",
    "One row a run: condition × arm × seed, with its hyperparameters, its launch and its stack.",
    (
        RUN,
        *CELL,
        text(
            "role",
            "`pilot`, `primary` and `reference` runs enter decisions; a `replication` is shown beside them.",
            choices=ROLES,
        ),
        *optional(
            exact(
                "fault_rate", "Transition noise: probability p of a fault per eligible call.", low=0, high=1
            ),
            exact(
                "flip_rate", "Outcome noise: probability q that a success is graded a failure.", low=0, high=1
            ),
            text("scale_rewards", "Scaling of the advantages within a group.", choices=("group", "none")),
            text("loss_type", "Aggregation of the token losses."),
            count("steps", "Training steps.", unit="steps"),
            count("group_size", "Rollouts in a group, G.", unit="rollouts"),
            count("prompts_per_step", "Prompts in a training step.", unit="tasks"),
        ),
        count("episodes", "Episodes of training and evaluation together.", unit="episodes"),
        *optional(
            count("training_groups", "Training groups found in the run's evidence.", unit="groups"),
            count("training_rollouts", "Training rollouts found in the run's evidence.", unit="rollouts"),
            count(
                "attempts",
                "Attempts of the counted run; null where `launches` lists them.",
                low=1,
                nullable=True,
            ),
        ),
        text("status", "State of the run's evidence.", choices=("COMPLETE", "INCOMPLETE")),
        *optional(
            moment(
                "launched_at",
                "When the counted attempt was launched; null where `launches` says so.",
                nullable=True,
            ),
            text("registered", "Version of the registration the run was launched under.", nullable=True),
            text("provider", "Where the run was computed."),
            text(
                "accelerator", "Accelerator type, inferred from the provider; null for none.", nullable=True
            ),
            text("torch_version", "PyTorch version of the run; null for none.", nullable=True),
            text("vllm_version", "vLLM version of the run; null for none.", nullable=True),
            text(
                "code_commit",
                "Commit of the training code; null where a release made the run.",
                nullable=True,
            ),
            text(
                "model_commit",
                "Commit of the model's weights, or the SHA-256 of their files where these lie in a folder.",
                nullable=True,
            ),
            text("recipe_sha256", "SHA-256 of the settings that a language model was trained with."),
            text("register_commit", "Commit at which the original register was read.", nullable=True),
            real("wall_time_s", "Duration of the run.", unit="s", low=0, nullable=True),
            real("peak_memory_gb", "Peak accelerator memory.", unit="GB", low=0, nullable=True),
            real("estimated_cost_usd", "Estimated cost.", unit="USD", low=0, nullable=True),
            text("specification", "JSON: all that decides the bytes of the run.", nullable=True),
        ),
    ),
    key=("run_id",),
)

EVALUATIONS = Table(
    "evaluations",
    "One row an evaluation: one run at one step under one regime, as counts of episodes.",
    (
        RUN,
        *CELL,
        text("phase", "During training or at its end.", choices=("periodic", "final")),
        text("pool", "Task pool.", choices=("validation", "test")),
        text("regime", "Noise of the evaluation.", choices=REGIMES),
        count("step", "Training step of the evaluated policy."),
        count("episodes", "Episodes played.", unit="episodes", low=1),
        count("successes", "Episodes with true success.", unit="episodes", at_most=("episodes",)),
        *optional(
            count(
                "observed_successes",
                "Episodes whose observed reward is 1: a flip makes it less than the successes.",
                unit="episodes",
                at_most=("successes",),
            ),
            count(
                "flipped",
                "Successes that the grader reported as failures.",
                unit="episodes",
                at_most=("successes",),
            ),
            count("exposed", "Episodes that met at least one fault.", unit="episodes", at_most=("episodes",)),
            count(
                "recovered",
                "True successes among the exposed episodes; null where none was exposed.",
                unit="episodes",
                nullable=True,
                at_most=("exposed", "successes"),
            ),
            count("finished", "Episodes ended by the policy itself.", unit="episodes", at_most=("episodes",)),
            count(
                "budget_exceeded",
                "Episodes ended by the call budget.",
                unit="episodes",
                at_most=("episodes",),
            ),
            count("calls", "Tool calls over all episodes.", unit="calls"),
            count("tasks", "Different tasks played.", unit="tasks", low=1, at_most=("episodes",)),
            count(
                "episodes_per_task",
                "Episodes of the task that has most of them.",
                unit="episodes",
                low=1,
                at_most=("episodes",),
            ),
            text(
                "task_set",
                "SHA-256 of the positions of its tasks, ascending, each as decimal digits and a newline.",
            ),
        ),
    ),
    key=("run_id", "phase", "pool", "regime", "step"),
    parents=(OF_RUN,),
    sums=(("successes", ("observed_successes", "flipped")),),
)

GROUPS_SUMMARY = Table(
    "groups_summary",
    "One row a run: counts over its training groups.",
    (
        RUN,
        *CELL,
        count("groups", "Training groups.", unit="groups", low=1),
        count(
            "all_correct", "Groups whose rollouts all truly succeeded.", unit="groups", at_most=("groups",)
        ),
        count(
            "spurious",
            "All-correct groups whose observed rewards nevertheless vary.",
            unit="groups",
            at_most=("all_correct",),
        ),
        count(
            "zero_variance", "Groups whose observed rewards are constant.", unit="groups", at_most=("groups",)
        ),
        real("mean_max_abs_advantage", "Largest |advantage| of a group, averaged over groups.", low=0),
        count(
            "sharing_one_seed",
            "Groups with one resolved schedule seed; null where the study published none.",
            unit="groups",
            nullable=True,
            at_most=("groups",),
        ),
        count(
            "several_seeds",
            "Groups with several resolved schedule seeds; null where the study published none.",
            unit="groups",
            nullable=True,
            at_most=("groups",),
        ),
    ),
    key=("run_id",),
    parents=(OF_RUN,),
    sums=(("groups", ("sharing_one_seed", "several_seeds")),),
)

LUCK_SHARE_SUMMARY = Table(
    "luck_share_summary",
    "One row a luck-share diagnostic: 8 schedules × 8 rollouts for each of 16 tasks, by run and step.",
    (
        text("run_id", "The run, or the calibration, that was diagnosed."),
        text(
            "environment",
            "Version of the environment: the authors' (their runs used v3), or this toolkit's.",
            choices=("v1", "v2", "v3", "toolkit-1"),
        ),
        text("policy", "The policy diagnosed."),
        text("regime", "Noise of the tables: tool faults, also for runs trained without.", choices=REGIMES),
        text("condition", "Condition of the run; null for a calibration.", nullable=True),
        text("arm", "Arm of the run; null for a calibration.", nullable=True, choices=ARMS),
        count("seed", "Seed of the run; null for a calibration.", nullable=True),
        count("step", "Training step; 0 is the untrained policy."),
        text("pool", "Pool of the tasks; null where the register does not name it.", nullable=True),
        text("target", "Reward diagnosed; null where the register does not name it.", nullable=True),
        real("luck_share", "λ: mean of the per-task ratios, where defined.", low=0, high=1),
        real("luck_share_pooled", "Ratio of the averaged components.", nullable=True, low=0, high=1),
        exact(
            "interval_low",
            "Lower end of the 95% task-bootstrap interval.",
            nullable=True,
            low=0,
            high=1,
            at_most=("interval_high",),
        ),
        exact("interval_high", "Upper end of the 95% task-bootstrap interval.", nullable=True, low=0, high=1),
        real("variance_between", "Mean between-schedule variance.", unit="reward²", low=0),
        real("variance_within", "Mean within-schedule variance.", unit="reward²", low=0),
        count("tasks", "Diagnostic tasks.", unit="tasks"),
        count("tasks_defined", "Tasks whose ratio is defined.", unit="tasks", at_most=("tasks",)),
    ),
    key=("run_id", "step", "pool", "target"),
    parents=(Parent("runs", ("run_id",), same=("condition", "arm", "seed"), where_present="condition"),),
)

INTERVALS = Table(
    "intervals",
    "One row an interval that the study published and that its summary figures cannot give again.",
    (
        text("endpoint", "Endpoint of the registration that the interval belongs to."),
        exact("level", "Confidence level.", low=0, high=1),
        exact("low", "Lower end, as printed.", at_most=("estimate",)),
        exact("high", "Upper end, as printed."),
        exact("estimate", "Point estimate printed beside it.", at_most=("high",)),
        count("decimals", "Digits printed after the point.", unit="digits", low=3, high=6),
        text("method", "How the interval was made."),
        text("resampled", "What was resampled."),
        count("resamples", "Bootstrap resamples."),
        count("rng_seed", "Seed of the resampling."),
        count("tasks", "Tasks resampled.", unit="tasks"),
    ),
    key=("endpoint", "level"),
)

EVENTS = Table(
    "events",
    "One row a dated event of the protocol, from the study's own records.",
    (
        moment("occurred_at", "When; midnight where only the day is known."),
        text("precision", "How exactly the time is known.", choices=("second", "day")),
        text(
            "kind",
            "What sort of event.",
            choices=(
                "freeze",
                "token",
                "amendment",
                "change_before_freeze",
                "deviation",
                "disclosure",
                "launch",
                "cancellation",
                "calibration",
                "probe",
            ),
        ),
        text("event", "The event."),
        text("detail", "Runs, hash, address or commit concerned.", nullable=True),
        text("source", "Where the study recorded it."),
    ),
    key=("occurred_at", "event"),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        RUNS,
        EVALUATIONS,
        GROUPS_SUMMARY,
        LUCK_SHARE_SUMMARY,
        PROBE,
        PROBE_CHECKPOINTS,
        PROBE_CLEAN_TASKS,
        PROBE_DIAGNOSTIC_TASKS,
        PROBE_GRAM,
        PROBE_INDICES,
        PROBE_INTERVALS,
        INTERVALS,
        EVENTS,
        LAUNCHES,
        SCHEDULES,
        EPISODES,
        GROUPS,
        LUCK_SHARE,
        CHECKPOINTS,
        ADAPTERS,
        DECISIONS,
        TASK_POOLS,
    )
}
