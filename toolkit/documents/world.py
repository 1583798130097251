"""The back office and its noise: draws, episodes, tools, declarations, records."""

from typing import Annotated, Literal, NotRequired, TypedDict

from toolkit.documents.registers import Verified
from toolkit.structs import about

ToolKind = Literal["read", "list", "write", "control"]
Stale = Literal["snapshot", "recorded", "never"]
Ending = Literal["finished", "budget_exceeded", "stopped"]
RunDesign = Literal["paired", "independent", "neither", "cannot_tell"]
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


class ParityDocument(TypedDict):
    """The grading of a foreign world, here and by its own project: the same verdicts."""

    world: Annotated[str, about("Name of the world.")]
    verdict: Verified
    answers: Annotated[dict[str, int], about("Answers that pass here and there, by category.")]
    changed: Annotated[int, about("Changed turns that were compared.")]
    passing: Annotated[int, about("Those of them that pass.")]


class DeclaredToolDocument(TypedDict):
    """A declared tool; what is as it is by default is left out."""

    kind: Annotated[
        ToolKind, about("A `list` is a read that answers with items; `control` tools meet no fault.")
    ]
    resource: NotRequired[Annotated[str, about("The argument that names the record a call is about.")]]
    shows: NotRequired[Annotated[str, about("Path of the answer's record or items.")]]
    fields: NotRequired[Annotated[list[str], about("Fields of that record, one of which may be lost.")]]
    offset: NotRequired[Annotated[str, about("The argument with which a cut list is continued.")]]
    repeatable: NotRequired[Annotated[bool, about("A write that leaves twice what it leaves once.")]]
    stale: Annotated[Stale, about("How the state before the last write is seen.")]


class DeclarationDocument(TypedDict):
    """The declared tools of a world."""

    name: Annotated[str, about("Of the world.")]
    tools: dict[str, DeclaredToolDocument]


class ProposalDocument(TypedDict):
    """A declaration for a person to confirm."""

    declaration: DeclarationDocument
    unsure: Annotated[dict[str, list[str]], about("What is guessed, in words, by tool.")]


class AnswerDifferenceDocument(TypedDict):
    """A call that a fresh server answered otherwise."""

    call: Annotated[int, about("Its number, from 0.")]
    tool: Annotated[str, about("Name of the tool.")]
    recorded: Annotated[dict[str, object], about("The response in the record.")]
    found: Annotated[dict[str, object], about("The response now.")]


class NoiseReplayDocument(TypedDict):
    """A record of calls, each fate of which was drawn anew."""

    verdict: Annotated[
        Literal["verified"], about("Of the fates; `differences` says what a fresh server answered.")
    ]
    regime: Annotated[str, about("The noise.")]
    schedule: Annotated[int, about("Seed of the schedule.")]
    calls: Annotated[int, about("How many calls.")]
    faults: Annotated[int, about("How many faults landed.")]
    end: Annotated[str | None, about("How the record ends; null where its last line is missing.")]
    is_cut: Annotated[bool, about("Whether half a line follows the last whole one.")]
    differences: Annotated[list[AnswerDifferenceDocument] | None, about("Null without a fresh server.")]


class SeedsDocument(TypedDict):
    """What a column of seeds says."""

    column: Annotated[str, about("Its name.")]
    equal: Annotated[int, about("Groups whose rollouts have one seed.")]
    different: Annotated[int, about("Groups whose rollouts have a seed each.")]
    mixed: Annotated[int, about("Groups in which some rollouts share one.")]
    unknown: Annotated[int, about("Groups in which a rollout has none.")]
    design: Annotated[RunDesign, about("What it says.")]


class AgreementDocument(TypedDict):
    """Pairs of rollouts of one group that were asked the same."""

    pairs: Annotated[int, about("How many.")]
    agreeing: Annotated[int, about("Answered the same.")]
    informative: Annotated[
        int, about("Pairs at questions that several groups asked and that had several answers.")
    ]
    informative_agreeing: Annotated[int, about("Those of them that were answered the same.")]
    by_chance: Annotated[float, about("How many would agree were answers shuffled.")]
    p: Annotated[
        float | None, about("How often shuffled answers agree as much; null without informative pairs.")
    ]
    differing: Annotated[int, about("Answered differently, which one schedule never does.")]
    design: Annotated[RunDesign, about("What it says.")]


class RunInspectionDocument(TypedDict):
    """What is found of a run."""

    run: Annotated[str, about("Name of the run.")]
    design: Annotated[RunDesign, about("What the strongest evidence says.")]
    basis: Annotated[Literal["seeds", "answers"], about("Which evidence that is.")]
    declared: Annotated[RunDesign | None, about("What it is declared to be.")]
    accidental: Annotated[bool, about("Paired, and nobody has said so.")]
    contradicts: Annotated[bool, about("Not what it is declared to be.")]
    groups: Annotated[int, about("Of two rollouts or more.")]
    rollouts: Annotated[int, about("In them.")]
    seeds: list[SeedsDocument]
    answers: Annotated[AgreementDocument | None, about("Null where no call is read.")]
    remarks: Annotated[list[str], about("What a reader of the design has to know.")]


class InspectionDocument(TypedDict):
    """Which design training has really run."""

    log: Annotated[str, about("What was inspected.")]
    format: Annotated[str, about("What wrote it, as it was recognized.")]
    design: Annotated[
        Literal["paired", "independent", "neither", "cannot_tell", "by_run"], about("`by_run`: runs differ.")
    ]
    runs: list[RunInspectionDocument]


class VerifiedGroupsDocument(TypedDict):
    """A record of training groups, whose seeds and flags follow from what it says."""

    record: Annotated[str, about("Its path.")]
    groups: Annotated[int, about("How many groups.")]
    rollouts: Annotated[int, about("How many rollouts.")]
    steps: Annotated[int, about("How many steps.")]
    zero_variance: Annotated[int, about("Groups whose observed rewards are constant.")]
    spurious: Annotated[int, about("Groups of successes alone whose observed rewards vary.")]
