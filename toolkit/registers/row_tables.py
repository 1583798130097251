"""The columns of a study's own rows, from launches and episodes to decisions, and those of task pools."""

from __future__ import annotations

from toolkit.registers.columns import (
    OF_RUN_ALONE,
    PHASES,
    POOLS,
    REGIMES,
    RUN,
    Table,
    bit,
    bits,
    count,
    moment,
    numbers,
    optional,
    real,
    seed,
    seeds,
    short,
    text,
    wholes,
)

FAULTS = (
    "transient",
    "rate_limit",
    "outage",
    "stale_read",
    "truncation",
    "timeout_after_commit",
    "field_dropout",
)
RECOVERIES = (
    "retry_after_transient",
    "wait_after_rate_limit",
    "reread_after_stale",
    "paginate_after_truncation",
)
ENDINGS = ("finished", "budget_exceeded", "stopped")

_STEP = short("step", "Training step of the policy that played.", unit="steps")

LAUNCHES = Table(
    "launches",
    "One row a launch of a run: what differs by nature from one launch to the next, and enters no row hash "
    "of the study.",
    (
        RUN,
        count("attempt", "Attempt, from 1: a later one resumes where an earlier one stopped.", low=1),
        moment("launched_at", "When the attempt was launched, by the clock of the machine."),
        moment(
            "ended_at", "When its evidence was complete; null for an attempt that was cut off.", nullable=True
        ),
        count("from_step", "Checkpoint that the attempt started from.", unit="steps"),
        real(
            "wall_time_s", "Duration; null for an attempt that was cut off.", unit="s", low=0, nullable=True
        ),
        real("peak_memory_mb", "Peak memory of its process.", unit="MB", low=0, nullable=True),
        text("python", "Version of the interpreter."),
        text("platform", "Operating system and architecture."),
        text("code_version", "Version of this package."),
        text("specification_sha256", "SHA-256 of the specification that was launched."),
        *optional(
            text("stack", "Packages that a language model was trained with, and their versions."),
            text("accelerator", "Accelerators that it was trained on; null for none.", nullable=True),
            count("processes", "Processes that trained it; vLLM's own generator is seeded by their number."),
        ),
    ),
    key=("run_id", "attempt"),
    parents=(OF_RUN_ALONE,),
)

OF_LAUNCHES = frozenset({LAUNCHES.name})
"""The tables that differ by nature from one launch to the next; all others follow from the study's seeds."""

SCHEDULES = Table(
    "schedules",
    "One row a schedule of an evaluation: the tasks and the seeds that every arm and checkpoint meets.",
    (
        text("pool", "Pool of the task.", choices=POOLS),
        short("task", "Position of the task in its pool."),
        short("schedule", "Index of the schedule."),
        seed("schedule_seed", "Seed of the schedule ω."),
    ),
    key=("pool", "task", "schedule"),
)

EPISODES = Table(
    "episodes",
    "One row an episode of an evaluation; one file a run.",
    (
        RUN,
        text("phase", "During training or at its end.", choices=PHASES),
        text("pool", "Pool of the task.", choices=POOLS),
        text("regime", "Noise of the evaluation.", choices=REGIMES),
        _STEP,
        short("task", "Position of the task in its pool."),
        short("schedule", "Index of the schedule."),
        *optional(seed("schedule_seed", "Seed of the schedule ω: the same for every arm and checkpoint.")),
        bit(
            "true_success",
            "Whether the episode truly succeeded; in the back office: the final world is the expected one.",
        ),
        *optional(
            bit("observed_reward", "Whether the grader reported a success.", at_most=("true_success",)),
            short("calls", "Calls charged to the budget.", unit="calls"),
            text("ended", "What ended the episode.", choices=ENDINGS),
            bit("world_changed", "Whether the world changed at all."),
            *(short(fault, f"Faults of type {fault} that landed.", unit="faults") for fault in FAULTS),
            *(
                column
                for code in RECOVERIES
                for column in (
                    short(f"{code}_due", f"Faults that called for {code.replace('_', ' ')}.", unit="faults"),
                    short(
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
    parents=(OF_RUN_ALONE,),
)

GROUPS = Table(
    "groups",
    "One row a training group: one prompt at one step, in the trainer's order; one file a run.",
    (
        RUN,
        short("step", "Training step, from 1.", unit="steps", low=1),
        short("position", "Position of the group in its step."),
        short("task", "Position of the task in the training pool."),
        text(
            "regime",
            "Noise that the group met: blocking arms have clean groups and noisy ones.",
            choices=REGIMES,
        ),
        seeds("schedule_seeds", "Resolved schedule seed of each rollout."),
        bits("true_successes", "True success of each rollout."),
        bits("observed_rewards", "Observed reward of each rollout."),
        numbers("advantages", "Advantage of each rollout."),
        short(
            "decisions", "Decisions of the group: what token-level aggregation divides by.", unit="decisions"
        ),
        short("exposed", "Rollouts that met at least one fault.", unit="rollouts"),
        bit("zero_variance", "Whether the observed rewards are constant, so that the group has no gradient."),
        bit("spurious", "Whether all rollouts truly succeeded and the observed rewards nevertheless vary."),
        *optional(
            wholes("tokens", "Tokens of each rollout of a language model that the loss counts."),
            numbers(
                "importance_weights",
                "Importance weight of each rollout, where another engine sampled than the one that trains: "
                "0 where it was masked.",
            ),
        ),
    ),
    key=("run_id", "step", "position"),
    parents=(OF_RUN_ALONE,),
)

LUCK_SHARE = Table(
    "luck_share",
    "One row a task and schedule of a luck-share diagnostic: a row of the 8 × 8 table of rewards.",
    (
        RUN,
        _STEP,
        text("pool", "Pool of the task.", choices=POOLS),
        text("regime", "Noise of the tables.", choices=REGIMES),
        short("task", "Position of the task in its pool."),
        short("schedule", "Index of the schedule."),
        seed("schedule_seed", "Seed of the schedule ω."),
        bits("true_successes", "True success of each policy sample."),
        bits("observed_rewards", "Observed reward of each policy sample."),
    ),
    key=("run_id", "step", "pool", "task", "schedule"),
    parents=(OF_RUN_ALONE,),
)

CHECKPOINTS = Table(
    "checkpoints",
    "One row a checkpoint: the policy's parameters and the optimizer's state, bit for bit.",
    (
        RUN,
        short("step", "Training steps done.", unit="steps"),
        numbers("parameters", "Parameters of the policy, in the order of its features and actions."),
        numbers("first_moment", "Adam's running mean of the gradient."),
        numbers("second_moment", "Adam's running mean of the squared gradient."),
        text("sha256", "SHA-256 of the three, as little-endian doubles."),
    ),
    key=("run_id", "step"),
    parents=(OF_RUN_ALONE,),
)

ADAPTERS = Table(
    "adapters",
    "One row a checkpoint of a language model: its LoRA adapter, and what training goes on from.",
    (
        RUN,
        short("step", "Training steps done.", unit="steps"),
        text("sha256", "SHA-256 of the adapter's safetensors file."),
        count("coordinates", "Numbers in the adapter."),
        text(
            "state_sha256",
            "SHA-256 of what training goes on from: of a line for each file of adapter, optimizer, "
            "scheduler, generators and the trainer's state without its log, in order of their names, with "
            "digest and name.",
        ),
        text(
            "adapter",
            "The safetensors file in base64; null where it is too large for a table, and kept beside it.",
            nullable=True,
        ),
    ),
    key=("run_id", "step"),
    parents=(OF_RUN_ALONE,),
)

DECISIONS = Table(
    "decisions",
    "One row a rule: the verdict that the registration reaches on these registers, and its interval.",
    (
        text("rule", "The rule."),
        text("kind", "What sort of rule."),
        text("verdict", "Its verdict."),
        text("evidence", "What the registered interval shows."),
        real("estimate", "Mean of the rule's estimate.", nullable=True),
        text("interval", "Name of the registered interval; null where there is none.", nullable=True),
        real("level", "Its confidence level.", low=0, high=1, nullable=True),
        real("low", "Its lower end.", nullable=True, at_most=("high",)),
        real("high", "Its upper end.", nullable=True),
        real("low_error", "Monte Carlo standard deviation of the lower end.", low=0, nullable=True),
        real("high_error", "Monte Carlo standard deviation of the upper end.", low=0, nullable=True),
        text("inputs_sha256", "SHA-256 of what was decided on: registration, amendments and row hashes."),
    ),
    key=("rule",),
)


TASK_POOLS = Table(
    "task_pools",
    "One row a task, with what is known of it: prompt, world, plan, expected end state; one split a pool.",
    (
        text("pool", "Pool of the task, and its split.", choices=POOLS),
        count("index", "Position in the pool."),
        text("task_id", "Identifier of the task: pool:index, or the one its study gave it."),
        *optional(
            text("world_seed", "Seed in [0, 2^64) that the task and its world were generated from."),
            text("prompt", "The request in words: all that an agent is given."),
            text("templates", "Template of each sub-request, in order, separated by spaces."),
            text("forms", "Form of each sub-request: how much of what is needed stands in the prompt."),
            count("sub_requests", "Sub-requests.", unit="requests", low=1, high=3),
            count("reads", "Reads of the plan.", unit="calls", at_most=("budget",)),
            count("writes", "Writes of the plan, n.", unit="calls", low=1, at_most=("budget",)),
            count("budget", "Calls that an episode may make: 7 + 2n, at most 21.", unit="calls", high=21),
            text("plan", "JSON: calls that fulfil the request, each with its tool and arguments."),
            text("expected", "JSON: the records that the plan changes, as it leaves them, by identifier."),
            text("world", "JSON: every record of the world before the episode, by identifier."),
            text("sha256", "SHA-256 of the task's canonical document."),
        ),
    ),
    key=("pool", "index"),
)

SPLIT_BY = {TASK_POOLS.name: "pool"}
"""Table → the column whose values are its splits; any other table is one split."""
