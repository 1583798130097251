"""Runs: planned, tried, trained, played, evaluated; and everything reproduced."""

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from toolkit.decisions.decision import Decision
from toolkit.documents.probe import SealedDocument
from toolkit.documents.registers import Verified
from toolkit.prereg.verification import Verification
from toolkit.structs import about

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
    registrations: Sequence[Verification]
    decisions: Sequence[Decision]
    site: Annotated[WrittenSiteDocument | None, about("Null: its packages are not installed.")]
