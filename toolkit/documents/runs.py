"""Runs: planned, tried, trained, played, evaluated; and everything reproduced."""

from typing import Annotated, Literal, NotRequired, TypedDict

from toolkit.documents.decisions import DecisionDocument
from toolkit.documents.probe import SealedDocument
from toolkit.documents.registers import Verified
from toolkit.documents.verification import VerificationDocument
from toolkit.structs import about

Engine = Literal["transformers", "vllm", "endpoint", "scripted"]
Sampling = Literal["own", "shared"]
Target = Literal["true_success", "observed_reward"]
Format = Literal["every-eval-ever", "in-toto"]


class TrainedDocument(TypedDict):
    """Runs that were trained."""

    folder: Annotated[str, about("Where the runs are kept.")]
    completed: Annotated[list[str], about("Runs that were trained to their end.")]
    kept: Annotated[list[str], about("Runs that were complete before.")]


class StudyRunDocument(TypedDict):
    """Runs that were played."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where the runs are kept.")]
    completed: Annotated[list[str], about("Runs that were played to their end.")]
    kept: Annotated[list[str], about("Runs that were complete before.")]
    incomplete: Annotated[dict[str, list[str]], about("What a run's evidence lacks.")]
    registers: Annotated[SealedDocument | None, about("Null where none were written.")]


class StudyCheckDocument(TypedDict):
    """Runs that were played again, and are what is registered: with --check."""

    verdict: Verified
    study: Annotated[str, about("Name of the study.")]
    runs: Annotated[list[str], about("Runs that were played again.")]
    tables: Annotated[list[str], about("Tables that are as registered.")]


class MeasureDocument(TypedDict):
    """A mean over episodes, with its interval over tasks."""

    estimate: Annotated[float, about("The mean.")]
    low: Annotated[float | None, about("Null with a single task.")]
    high: Annotated[float | None, about("Null with a single task.")]
    level: Annotated[float, about("Confidence level.")]


class MeasuresDocument(TypedDict):
    """Each measure of some episodes."""

    success: Annotated[MeasureDocument, about("True success, a rate.")]
    observed: Annotated[MeasureDocument, about("Observed reward, a rate.")]
    calls: Annotated[MeasureDocument, about("Calls an episode.")]
    exposed: Annotated[MeasureDocument, about("Share of episodes that met a fault.")]


class EvaluatedSetDocument(MeasuresDocument):
    """What was found under one regime."""

    regime: Annotated[str, about("The noise.")]
    pool: Annotated[str, about("The task pool.")]
    tasks: Annotated[int, about("How many tasks.")]
    episodes: Annotated[int, about("How many episodes.")]
    ended: Annotated[dict[str, int], about("Episodes by what ended them.")]


class LuckShareDocument(TypedDict):
    """The luck share of a regime and a reward."""

    regime: Annotated[str, about("The noise.")]
    target: Annotated[Target, about("The reward.")]
    luck_share: Annotated[float | None, about("λ, mean over tasks; null where the reward never varied.")]
    pooled: Annotated[float | None, about("λ of all tasks together.")]
    low: Annotated[float | None, about("Lower end of the interval.")]
    high: Annotated[float | None, about("Upper end of the interval.")]
    level: Annotated[float, about("Confidence level.")]
    tasks: Annotated[int, about("How many tasks.")]
    tasks_defined: Annotated[int, about("Tasks that have a share.")]


class EvaluationRegistersDocument(SealedDocument):
    """The registers of an evaluation."""

    study: Annotated[str, about("Name of the study.")]


class BlocksDocument(TypedDict):
    """Blocks of an evaluation."""

    kept: Annotated[int, about("From before.")]
    played: Annotated[int, about("By this command.")]


class EvaluationDocument(TypedDict):
    """A model under every regime, without training."""

    model: Annotated[str, about("As it was named.")]
    engine: Annotated[Engine, about("What ran it.")]
    sampling: Annotated[Sampling, about("Whether every model meets the same noise at every token.")]
    identity: Annotated[dict[str, object], about("What all blocks have in common: the engine's settings.")]
    server: Annotated[dict[str, object] | None, about("What the server says of the model.")]
    folder: Annotated[str | None, about("Null where nothing was kept.")]
    registers: EvaluationRegistersDocument | None
    blocks: BlocksDocument
    sets: list[EvaluatedSetDocument]
    luck_share: list[LuckShareDocument]


class ExportDocument(TypedDict):
    """A study in another project's format."""

    study: Annotated[str, about("Name of the study.")]
    format: Annotated[Format, about("Whose format.")]
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[dict[str, int], about("Bytes by path.")]
    bytes: Annotated[int, about("Of all files.")]


class ReproducedRegistersDocument(TypedDict):
    """Registers that were verified."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Verified
    rows: Annotated[int, about("How many rows.")]


class ReproducedAuditDocument(TypedDict):
    """Random rows that were played again, or why they could not be."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Annotated[Literal["verified", "incomplete"], about("`incomplete`: something is missing.")]
    sample: NotRequired[Annotated[int, about("Rows that were played again.")]]
    seed: NotRequired[Annotated[int, about("Draws the same rows again.")]]
    lacks: NotRequired[Annotated[str, about("What is missing.")]]


class WrittenSiteDocument(TypedDict):
    """The site that was written."""

    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[int, about("How many.")]
    changed: Annotated[list[str], about("Files that have other bytes than before.")]


class ReproductionDocument(TypedDict):
    """Everything verified, decided and rendered."""

    registers: list[ReproducedRegistersDocument]
    audits: list[ReproducedAuditDocument]
    registrations: list[VerificationDocument]
    decisions: list[DecisionDocument]
    site: Annotated[WrittenSiteDocument | None, about("Null: its packages are not installed.")]
