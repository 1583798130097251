"""The columns of task pools."""

from __future__ import annotations

from toolkit.registers.columns import Table, count, optional, text
from toolkit.registers.vocabulary import POOLS

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
