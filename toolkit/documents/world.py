"""The back office: draws, episodes, tools."""

from typing import Annotated, Literal, TypedDict

from toolkit.documents.registers import Verified
from toolkit.structs import about

Ending = Literal["finished", "budget_exceeded", "stopped"]
Schemas = list[dict[str, object]] | dict[str, object]
"""Tools as OpenAI, JSON Schema or OpenAPI describe them."""


class DrawDocument(TypedDict):
    """A draw of a schedule, which anybody can recompute."""

    digest: Annotated[str, about("SHA-256 of the seed and the event key, hexadecimal.")]
    gate: Annotated[float, about("Its first word, in [0, 1): whether anything happens.")]
    type: Annotated[float, about("Its second word: which fault.")]
    magnitude: Annotated[float, about("Its third word: how much of it.")]


class FieldDifferenceDocument(TypedDict):
    """A field in which the final world is not as expected."""

    record: Annotated[str, about("Identifier; of a ticket, the customer's.")]
    field: Annotated[str, about("`record` where a whole record is missing or too much.")]
    expected: Annotated[object, about("Null: nothing.")]
    found: Annotated[object, about("Null: nothing.")]


class ExposureDocument(TypedDict):
    """A fault that landed."""

    call: Annotated[int, about("Number of the call, from 0.")]
    tool: Annotated[str, about("Of the event key.")]
    resource: Annotated[str, about("Of the event key.")]
    repeat: Annotated[int, about("Of the event key.")]
    fault: Annotated[str, about("Its type.")]
    changed: Annotated[bool, about("Whether the answer differs from what it would have been.")]


class RecoveryDocument(TypedDict):
    """How often a recovery was called for, and made."""

    called_for: Annotated[int, about("Faults that called for it.")]
    made: Annotated[int, about("How many of them got it.")]


class CallDocument(TypedDict):
    """A call of an episode."""

    tool: Annotated[object, about("What the agent sent as the tool's name: mostly a text.")]
    arguments: Annotated[object, about("What the agent sent: mostly an object.")]
    verbatim: Annotated[bool, about("Whether both are as sent; otherwise JSON has no word for them.")]
    answer: Annotated[dict[str, object], about("What it was answered, with noise.")]
    key: Annotated[
        list[object] | None, about("Event key: tool, resource, repeat index; null where nothing was drawn.")
    ]
    draw: Annotated[str | None, about("Digest of the key's draw.")]
    fault: Annotated[str | None, about("The fault that it met.")]
    blocked_by: Annotated[str | None, about("The earlier fault that it was refused by.")]
    charged: Annotated[bool, about("Whether it counts against the budget.")]


class EpisodeDocument(TypedDict):
    """One task under one schedule, as it was played; `episode replay` takes it."""

    task: Annotated[str, about("As pool:index.")]
    task_sha256: Annotated[str, about("Of the task's canonical document.")]
    regime: Annotated[str, about("The noise.")]
    schedule_seed: Annotated[str, about("A whole number, as text: it may be beyond 2^53.")]
    true_success: Annotated[bool, about("Whether the final world is the expected one, field by field.")]
    observed_reward: Annotated[int, about("0 or 1: what the grader reported.")]
    flipped: Annotated[bool, about("Whether the grader reported a success as a failure.")]
    ended: Annotated[Ending, about("Who ended it; `stopped`: neither the agent nor the budget.")]
    calls_charged: Annotated[int, about("Calls that count against the budget.")]
    budget: Annotated[int, about("Most calls.")]
    world_changed: Annotated[bool, about("Whether the final world differs from the first at all.")]
    differences: list[FieldDifferenceDocument]
    exposures: list[ExposureDocument]
    recovery: Annotated[dict[str, RecoveryDocument], about("By what called for it.")]
    grader_draw: Annotated[str, about("Digest of the grader's draw.")]
    prompt: Annotated[str, about("What the agent is asked.")]
    calls: Annotated[list[CallDocument] | None, about("Null where they were not kept.")]


class ReplayDocument(TypedDict):
    """A recorded episode that was played again: the same answers, draws and outcome."""

    verdict: Verified
    task: Annotated[str, about("The task, as pool:index.")]
    calls: Annotated[int, about("That were charged.")]
    true_success: Annotated[bool, about("Whether the final world is the expected one.")]
    observed_reward: Annotated[int, about("0 or 1: what the grader reported.")]
