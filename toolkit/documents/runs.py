"""Runs: planned, tried, trained, played, evaluated; and everything reproduced."""

from typing import Annotated, Literal, NotRequired, TypedDict

from toolkit.documents.decisions import DecisionDocument
from toolkit.documents.probe import SealedDocument
from toolkit.documents.registers import Verified
from toolkit.documents.verification import VerificationDocument

Engine = Literal["transformers", "vllm", "endpoint", "scripted"]
Sampling = Literal["own", "shared"]
RunState = Literal["complete", "incomplete", "begun", "not begun"]
Target = Literal["true_success", "observed_reward"]
Format = Literal["every-eval-ever", "in-toto"]


class SettingDocument(TypedDict):
    """A setting of a recipe."""

    setting: Annotated[str, "Its dotted name, as lora.rank."]
    value: Annotated[object, "As the recipe has it."]
    source: Annotated[str, "Where it comes from."]


class PlannedRecipeDocument(TypedDict):
    """A recipe."""

    name: Annotated[str, "Its name."]
    sha256: Annotated[str, "Of its canonical document."]
    settings: list[SettingDocument]


class PlayedCountsDocument(TypedDict):
    """What is played."""

    steps: Annotated[int, "Training steps."]
    groups: Annotated[int, "Of training."]
    rollouts: Annotated[int, "Of training."]
    periodic: Annotated[int, "Episodes of the periodic evaluations."]
    final: Annotated[int, "Episodes of the final evaluation."]
    diagnostic: Annotated[int, "Episodes of the luck-share diagnostics."]
    evaluated: Annotated[int, "Episodes of all evaluations."]
    episodes: Annotated[int, "Rollouts and episodes of evaluation."]


class RangeDocument(TypedDict):
    """A quantity that is known as a range; null for what is not known of it."""

    low: Annotated[float | None, "At least."]
    mean: Annotated[float | None, "In the mean."]
    high: Annotated[float, "At most."]


class PlannedRunDocument(PlayedCountsDocument):
    """A run of a plan."""

    run_id: Annotated[str, "Name of the run."]
    tier: Annotated[int, "Tier of the registered matrix."]
    condition: Annotated[str, "Its condition."]
    arm: Annotated[str, "Its arm."]
    seed: Annotated[int, "Its seed."]
    checkpoints: Annotated[list[int], "Steps that leave one."]
    hours: Annotated[RangeDocument | None, "Null without a rate."]


class PlannedTotalDocument(PlayedCountsDocument):
    """All runs of a plan together."""

    runs: Annotated[int, "How many runs."]
    checkpoints: Annotated[int, "How many checkpoints."]


class PlanBoundsDocument(TypedDict):
    """The most that a plan can take."""

    tokens_trained: Annotated[int, "Tokens of training."]
    tokens_evaluated: Annotated[int, "Tokens of evaluation."]


PlannedTimeDocument = TypedDict(
    "PlannedTimeDocument",
    {
        "verdict": Annotated[Literal["estimated", "not_evaluable"], "Whether a rate can be had."],
        "from": NotRequired[Annotated[str, "What the rate was measured on."]],
        "gpu_seconds_an_episode": NotRequired[
            Annotated[RangeDocument, "Everything of a run divided among its episodes."]
        ],
        "gpus": NotRequired[Annotated[int, "How many there are."]],
        "runs_at_once": NotRequired[Annotated[int, "Each is whole."]],
        "hours": NotRequired[Annotated[RangeDocument, "From the first launch to the last end."]],
        "gpu_hours": NotRequired[Annotated[RangeDocument, "Of all runs."]],
    },
)
PlannedTimeDocument.__doc__ = "How long a plan takes; only the verdict where no rate can be had."


class TrainingPlanDocument(TypedDict):
    """What a training would play, and how long it would take: with --dry-run."""

    recipe: PlannedRecipeDocument
    study: Annotated[str, "Name of the registration."]
    runs: list[PlannedRunDocument]
    total: PlannedTotalDocument
    bounds: PlanBoundsDocument
    time: PlannedTimeDocument
    lacks: Annotated[list[str], "Why something cannot be estimated."]


class TriedStepDocument(TypedDict):
    """A step that was tried."""

    step: Annotated[int, "From 1."]
    seconds: Annotated[float, "Its duration, rollouts included."]
    success: Annotated[float, "Share of its rollouts that truly succeeded."]
    constant: Annotated[float, "Share of its groups whose rewards were all alike."]
    tokens: Annotated[int, "That the loss counted."]
    figures: Annotated[dict[str, float | None], "What the trainer says of it."]
    generation: Annotated[float | None, "Seconds that went to playing the rollouts."]


class TrialDocument(TypedDict):
    """Some steps that were trained and thrown away: with --try."""

    run_id: Annotated[str, "The run whose place in the matrix it had."]
    recipe_sha256: Annotated[str, "Of the recipe's canonical document."]
    coordinates: Annotated[int, "Numbers in the adapter."]
    stack: Annotated[str, "Packages and their versions."]
    accelerator: Annotated[str | None, "Names of the GPUs; null without one."]
    processes: Annotated[int, "How many trained together."]
    kernels: Annotated[str | None, "What computed linear attention."]
    steps: list[TriedStepDocument]
    seconds_per_step: Annotated[float, "Mean; the first is left out where there are more."]
    peak_gpu_bytes: Annotated[int | None, "Most that PyTorch held; null without a GPU."]


class TrainedDocument(TypedDict):
    """Runs that were trained."""

    folder: Annotated[str, "Where the runs are kept."]
    completed: Annotated[list[str], "Runs that were trained to their end."]
    kept: Annotated[list[str], "Runs that were complete before."]


class StudyRunDocument(TypedDict):
    """Runs that were played."""

    study: Annotated[str, "Name of the study."]
    folder: Annotated[str, "Where the runs are kept."]
    completed: Annotated[list[str], "Runs that were played to their end."]
    kept: Annotated[list[str], "Runs that were complete before."]
    incomplete: Annotated[dict[str, list[str]], "What a run's evidence lacks."]
    registers: Annotated[SealedDocument | None, "Null where none were written."]


class StudyCheckDocument(TypedDict):
    """Runs that were played again, and are what is registered: with --check."""

    verdict: Verified
    study: Annotated[str, "Name of the study."]
    runs: Annotated[list[str], "Runs that were played again."]
    tables: Annotated[list[str], "Tables that are as registered."]


class RunStatusDocument(TypedDict):
    """How far a run has come."""

    run_id: Annotated[str, "Name of the run."]
    tier: Annotated[int, "Tier of the registered matrix."]
    state: Annotated[RunState, "`incomplete`: all was played, and the evidence is not what is registered."]
    segments: Annotated[int, "That are there."]
    of: Annotated[int, "Segments that the run has."]
    attempts: Annotated[int, "Launches so far."]
    shortcomings: Annotated[tuple[str, ...], "What its evidence lacks."]
    at_work: Annotated[bool, "Whether a command is at work on it."]


class HeldRunsDocument(TypedDict):
    """The runs that a study's registers have."""

    folder: Annotated[str, "Where they lie."]
    runs: Annotated[int, "How many runs."]
    complete: Annotated[int, "Those of them that are complete."]


class StudyStatusDocument(TypedDict):
    """How far the runs of a study have come."""

    study: Annotated[str, "Name of the study."]
    folder: Annotated[str, "Where the runs are kept."]
    at_work: Annotated[bool, "Whether a command is at work on any run."]
    complete: Annotated[int, "Runs."]
    runs: list[RunStatusDocument]
    registers: Annotated[HeldRunsDocument | None, "Null where the study's registers are not here."]


class MeasureDocument(TypedDict):
    """A mean over episodes, with its interval over tasks."""

    estimate: Annotated[float, "The mean."]
    low: Annotated[float | None, "Null with a single task."]
    high: Annotated[float | None, "Null with a single task."]
    level: Annotated[float, "Confidence level."]


class MeasuresDocument(TypedDict):
    """Each measure of some episodes."""

    success: Annotated[MeasureDocument, "True success, a rate."]
    observed: Annotated[MeasureDocument, "Observed reward, a rate."]
    calls: Annotated[MeasureDocument, "Calls an episode."]
    exposed: Annotated[MeasureDocument, "Share of episodes that met a fault."]


class EvaluatedSetDocument(MeasuresDocument):
    """What was found under one regime."""

    regime: Annotated[str, "The noise."]
    pool: Annotated[str, "The task pool."]
    tasks: Annotated[int, "How many tasks."]
    episodes: Annotated[int, "How many episodes."]
    ended: Annotated[dict[str, int], "Episodes by what ended them."]


class LuckShareDocument(TypedDict):
    """The luck share of a regime and a reward."""

    regime: Annotated[str, "The noise."]
    target: Annotated[Target, "The reward."]
    luck_share: Annotated[float | None, "λ, mean over tasks; null where the reward never varied."]
    pooled: Annotated[float | None, "λ of all tasks together."]
    low: Annotated[float | None, "Lower end of the interval."]
    high: Annotated[float | None, "Upper end of the interval."]
    level: Annotated[float, "Confidence level."]
    tasks: Annotated[int, "How many tasks."]
    tasks_defined: Annotated[int, "Tasks that have a share."]


class EvaluationRegistersDocument(SealedDocument):
    """The registers of an evaluation."""

    study: Annotated[str, "Name of the study."]


class BlocksDocument(TypedDict):
    """Blocks of an evaluation."""

    kept: Annotated[int, "From before."]
    played: Annotated[int, "By this command."]


class EvaluationDocument(TypedDict):
    """A model under every regime, without training."""

    model: Annotated[str, "As it was named."]
    engine: Annotated[Engine, "What ran it."]
    sampling: Annotated[Sampling, "Whether every model meets the same noise at every token."]
    identity: Annotated[dict[str, object], "What all blocks have in common: the engine's settings."]
    server: Annotated[dict[str, object] | None, "What the server says of the model."]
    folder: Annotated[str | None, "Null where nothing was kept."]
    registers: EvaluationRegistersDocument | None
    blocks: BlocksDocument
    sets: list[EvaluatedSetDocument]
    luck_share: list[LuckShareDocument]


class ExportDocument(TypedDict):
    """A study in another project's format."""

    study: Annotated[str, "Name of the study."]
    format: Annotated[Format, "Whose format."]
    folder: Annotated[str, "Where it lies."]
    files: Annotated[dict[str, int], "Bytes by path."]
    bytes: Annotated[int, "Of all files."]


class ReproducedRegistersDocument(TypedDict):
    """Registers that were verified."""

    study: Annotated[str, "Name of the study."]
    verdict: Verified
    rows: Annotated[int, "How many rows."]


class ReproducedAuditDocument(TypedDict):
    """Random rows that were played again."""

    study: Annotated[str, "Name of the study."]
    verdict: Verified
    sample: Annotated[int, "Rows."]
    seed: Annotated[int, "Draws the same rows again."]


class LackingAuditDocument(TypedDict):
    """Rows that could not be played again."""

    study: Annotated[str, "Name of the study."]
    verdict: Annotated[Literal["incomplete"], "What they are played from is not here."]
    lacks: Annotated[str, "What is missing."]


class WrittenSiteDocument(TypedDict):
    """The site that was written."""

    folder: Annotated[str, "Where it lies."]
    files: Annotated[int, "How many."]
    changed: Annotated[list[str], "Files that have other bytes than before."]


class ReproductionDocument(TypedDict):
    """Everything verified, decided and rendered."""

    registers: list[ReproducedRegistersDocument]
    audits: list[ReproducedAuditDocument | LackingAuditDocument]
    registrations: list[VerificationDocument]
    decisions: list[DecisionDocument]
    site: Annotated[WrittenSiteDocument | None, "Null: its packages are not installed."]
