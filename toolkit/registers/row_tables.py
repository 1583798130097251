"""The columns of a study's own rows, from launches and episodes to decisions, and those of task pools."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolkit.registers import columns as c

FAULTS = (
    *("transient", "rate_limit", "outage", "stale_read"),
    *("truncation", "timeout_after_commit", "field_dropout"),
)
RECOVERIES = (
    "retry_after_transient",
    "wait_after_rate_limit",
    "reread_after_stale",
    "paginate_after_truncation",
)
ENDINGS = ("finished", "budget_exceeded", "stopped")


def faults_landed(row: Mapping[str, Any]) -> int:
    """Return how many faults landed in an episode, from its row of `episodes`."""
    return sum(row[fault] for fault in FAULTS)


_STEP = c.short("step", "Training step of the policy that played.", unit="steps")

LAUNCHES = c.Table(
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
    parents=(c.OF_RUN_ALONE,),
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

EPISODES = c.Table(
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
    parents=(c.OF_RUN_ALONE,),
)

GROUPS = c.Table(
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
    parents=(c.OF_RUN_ALONE,),
)

STEPS = c.Table(
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
    parents=(c.OF_RUN_ALONE,),
)

LUCK_SHARE = c.Table(
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
    parents=(c.OF_RUN_ALONE,),
)

CHECKPOINTS = c.Table(
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
    parents=(c.OF_RUN_ALONE,),
    is_blob=True,
)

ADAPTERS = c.Table(
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
    parents=(c.OF_RUN_ALONE,),
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
    LAUNCHES,
    SCHEDULES,
    EPISODES,
    GROUPS,
    STEPS,
    LUCK_SHARE,
    CHECKPOINTS,
    ADAPTERS,
    DECISIONS,
    TASK_POOLS,
)
