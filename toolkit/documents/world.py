"""The back office and its noise: draws, episodes, tools, declarations, records."""

from typing import Annotated, Literal, NotRequired, TypedDict

from toolkit.documents.registers import Verified

ToolKind = Literal["read", "list", "write", "control"]
Stale = Literal["snapshot", "recorded", "never"]
Ending = Literal["finished", "budget_exceeded", "stopped"]
RunDesign = Literal["paired", "independent", "neither", "cannot_tell"]
Schemas = list[dict[str, object]] | dict[str, object]
"""Tools as OpenAI, JSON Schema or OpenAPI describe them."""


class DrawDocument(TypedDict):
    """A draw of a schedule, which anybody can recompute."""

    digest: Annotated[str, "SHA-256 of the seed and the event key, hexadecimal."]
    gate: Annotated[float, "Its first word, in [0, 1): whether anything happens."]
    type: Annotated[float, "Its second word: which fault."]
    magnitude: Annotated[float, "Its third word: how much of it."]


class FieldDifferenceDocument(TypedDict):
    """A field in which the final world is not as expected."""

    record: Annotated[str, "Identifier; of a ticket, the customer's."]
    field: Annotated[str, "`record` where a whole record is missing or too much."]
    expected: Annotated[object, "Null: nothing."]
    found: Annotated[object, "Null: nothing."]


class ExposureDocument(TypedDict):
    """A fault that landed."""

    call: Annotated[int, "Number of the call, from 0."]
    tool: Annotated[str, "Of the event key."]
    resource: Annotated[str, "Of the event key."]
    repeat: Annotated[int, "Of the event key."]
    fault: Annotated[str, "Its type."]
    changed: Annotated[bool, "Whether the answer differs from what it would have been."]


class RecoveryDocument(TypedDict):
    """How often a recovery was called for, and made."""

    called_for: Annotated[int, "Faults that called for it."]
    made: Annotated[int, "How many of them got it."]


class CallDocument(TypedDict):
    """A call of an episode."""

    tool: Annotated[object, "What the agent sent as the tool's name: mostly a text."]
    arguments: Annotated[object, "What the agent sent: mostly an object."]
    verbatim: Annotated[bool, "Whether both are as sent; otherwise JSON has no word for them."]
    answer: Annotated[dict[str, object], "What it was answered, with noise."]
    key: Annotated[
        list[object] | None, "Event key: tool, resource, repeat index; null where nothing was drawn."
    ]
    draw: Annotated[str | None, "Digest of the key's draw."]
    fault: Annotated[str | None, "The fault that it met."]
    blocked_by: Annotated[str | None, "The earlier fault that it was refused by."]
    charged: Annotated[bool, "Whether it counts against the budget."]


class EpisodeDocument(TypedDict):
    """One task under one schedule, as it was played; `episode replay` takes it."""

    task: Annotated[str, "As pool:index."]
    task_sha256: Annotated[str, "Of the task's canonical document."]
    regime: Annotated[str, "The noise."]
    schedule_seed: Annotated[str, "A whole number, as text: it may be beyond 2^53."]
    true_success: Annotated[bool, "Whether the final world is the expected one, field by field."]
    observed_reward: Annotated[int, "0 or 1: what the grader reported."]
    flipped: Annotated[bool, "Whether the grader reported a success as a failure."]
    ended: Annotated[Ending, "Who ended it; `stopped`: neither the agent nor the budget."]
    calls_charged: Annotated[int, "Calls that count against the budget."]
    budget: Annotated[int, "Most calls."]
    world_changed: Annotated[bool, "Whether the final world differs from the first at all."]
    differences: list[FieldDifferenceDocument]
    exposures: list[ExposureDocument]
    recovery: Annotated[dict[str, RecoveryDocument], "By what called for it."]
    grader_draw: Annotated[str, "Digest of the grader's draw."]
    prompt: Annotated[str, "What the agent is asked."]
    calls: Annotated[list[CallDocument] | None, "Null where they were not kept."]


class ReplayDocument(TypedDict):
    """A recorded episode that was played again: the same answers, draws and outcome."""

    verdict: Verified
    task: Annotated[str, "The task, as pool:index."]
    calls: Annotated[int, "That were charged."]
    true_success: Annotated[bool, "Whether the final world is the expected one."]
    observed_reward: Annotated[int, "0 or 1: what the grader reported."]


class ParityDocument(TypedDict):
    """The grading of a foreign world, here and by its own project: the same verdicts."""

    world: Annotated[str, "Name of the world."]
    verdict: Verified
    answers: Annotated[dict[str, int], "Answers that pass here and there, by category."]
    changed: Annotated[int, "Changed turns that were compared."]
    passing: Annotated[int, "Those of them that pass."]


class DeclaredToolDocument(TypedDict):
    """A declared tool; what is as it is by default is left out."""

    kind: Annotated[ToolKind, "A `list` is a read that answers with items; `control` tools meet no fault."]
    resource: NotRequired[Annotated[str, "The argument that names the record a call is about."]]
    shows: NotRequired[Annotated[str, "Path of the answer's record or items."]]
    fields: NotRequired[Annotated[list[str], "Fields of that record, one of which may be lost."]]
    offset: NotRequired[Annotated[str, "The argument with which a cut list is continued."]]
    repeatable: NotRequired[Annotated[bool, "A write that leaves twice what it leaves once."]]
    stale: Annotated[Stale, "How the state before the last write is seen."]


class DeclarationDocument(TypedDict):
    """The declared tools of a world."""

    name: Annotated[str, "Of the world."]
    tools: dict[str, DeclaredToolDocument]


class ProposalDocument(TypedDict):
    """A declaration for a person to confirm."""

    declaration: DeclarationDocument
    unsure: Annotated[dict[str, list[str]], "What is guessed, in words, by tool."]


class AnswerDifferenceDocument(TypedDict):
    """A call that a fresh server answered otherwise."""

    call: Annotated[int, "Its number, from 0."]
    tool: Annotated[str, "Name of the tool."]
    recorded: Annotated[dict[str, object], "The response in the record."]
    found: Annotated[dict[str, object], "The response now."]


class NoiseReplayDocument(TypedDict):
    """A record of calls, each fate of which was drawn anew."""

    verdict: Annotated[Literal["verified"], "Of the fates; `differences` says what a fresh server answered."]
    regime: Annotated[str, "The noise."]
    schedule: Annotated[int, "Seed of the schedule."]
    calls: Annotated[int, "How many calls."]
    faults: Annotated[int, "How many faults landed."]
    end: Annotated[str | None, "How the record ends; null where its last line is missing."]
    is_cut: Annotated[bool, "Whether half a line follows the last whole one."]
    differences: Annotated[list[AnswerDifferenceDocument] | None, "Null without a fresh server."]


class SeedsDocument(TypedDict):
    """What a column of seeds says."""

    column: Annotated[str, "Its name."]
    equal: Annotated[int, "Groups whose rollouts have one seed."]
    different: Annotated[int, "Groups whose rollouts have a seed each."]
    mixed: Annotated[int, "Groups in which some rollouts share one."]
    unknown: Annotated[int, "Groups in which a rollout has none."]
    design: Annotated[RunDesign, "What it says."]


class AgreementDocument(TypedDict):
    """Pairs of rollouts of one group that were asked the same."""

    pairs: Annotated[int, "How many."]
    agreeing: Annotated[int, "Answered the same."]
    informative: Annotated[int, "Pairs at questions that several groups asked and that had several answers."]
    informative_agreeing: Annotated[int, "Those of them that were answered the same."]
    by_chance: Annotated[float, "How many would agree were answers shuffled."]
    p: Annotated[float | None, "How often shuffled answers agree as much; null without informative pairs."]
    differing: Annotated[int, "Answered differently, which one schedule never does."]
    design: Annotated[RunDesign, "What it says."]


class RunInspectionDocument(TypedDict):
    """What is found of a run."""

    run: Annotated[str, "Name of the run."]
    design: Annotated[RunDesign, "What the strongest evidence says."]
    basis: Annotated[Literal["seeds", "answers"], "Which evidence that is."]
    declared: Annotated[RunDesign | None, "What it is declared to be."]
    accidental: Annotated[bool, "Paired, and nobody has said so."]
    contradicts: Annotated[bool, "Not what it is declared to be."]
    groups: Annotated[int, "Of two rollouts or more."]
    rollouts: Annotated[int, "In them."]
    seeds: list[SeedsDocument]
    answers: Annotated[AgreementDocument | None, "Null where no call is read."]
    remarks: Annotated[list[str], "What a reader of the design has to know."]


class InspectionDocument(TypedDict):
    """Which design training has really run."""

    log: Annotated[str, "What was inspected."]
    format: Annotated[str, "What wrote it, as it was recognized."]
    design: Annotated[
        Literal["paired", "independent", "neither", "cannot_tell", "by_run"], "`by_run`: runs differ."
    ]
    runs: list[RunInspectionDocument]


class VerifiedGroupsDocument(TypedDict):
    """A record of training groups, whose seeds and flags follow from what it says."""

    record: Annotated[str, "Its path."]
    groups: Annotated[int, "How many groups."]
    rollouts: Annotated[int, "How many rollouts."]
    steps: Annotated[int, "How many steps."]
    zero_variance: Annotated[int, "Groups whose observed rewards are constant."]
    spurious: Annotated[int, "Groups of successes alone whose observed rewards vary."]
