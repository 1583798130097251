"""Registrations: begun, rehearsed, frozen, amended, and the evidence of others adopted."""

from typing import Annotated, Literal, TypedDict

from toolkit.documents.decisions import DecisionDocument
from toolkit.documents.verification import CheckDocument, OwnStanding, TokenDocument
from toolkit.structs import about

PlacingOutcome = Literal["adopted", "unchanged"]
AdoptionOutcome = PlacingOutcome | Literal["dry run"]


class TemplateDocument(TypedDict):
    """A file to be filled in: with --template."""

    template: Annotated[str, about("Its text, in TOML.")]


class DryFreezeDocument(TypedDict):
    """A draft that can be frozen: with --dry-run."""

    registration: Annotated[str, about("Name of the registration.")]
    files: Annotated[list[str], about("Names of the files that would be frozen.")]
    commit: Annotated[str | None, about("Null where the folder is under no version control.")]
    ready: Annotated[Literal[True], about("A draft that cannot be frozen gives an error.")]


class FreezeDocument(TypedDict):
    """A registration that was frozen."""

    registration: Annotated[str, about("Name of the registration.")]
    sha256: Annotated[str, about("Digest of the list of frozen files.")]
    standing: Annotated[OwnStanding, about("`demonstration`: its authorities were made for the occasion.")]
    commit: Annotated[str | None, about("Null where the folder is under no version control.")]
    files: Annotated[tuple[str, ...], about("Names of the frozen files.")]
    authorities: list[TokenDocument]


class ExploratoryEntry(TypedDict, total=False):
    """What only an amendment says."""

    exploratory: Annotated[bool, about("Whether it was made after runs, and binds nothing.")]


class AdditionEntryDocument(ExploratoryEntry):
    """An amendment or a deviation that was added to a registration."""

    registration: Annotated[str, about("Name of the registration.")]
    id: Annotated[str, about("Of the amendment or the deviation.")]
    file: Annotated[str, about("Relative to the registration.")]
    link: Annotated[str, about("The last link of the registration's chain.")]
    authorities: Annotated[list[TokenDocument], about("None where the registration was frozen elsewhere.")]


class AdoptedPoolsDocument(TypedDict):
    """What came of the hashes of task pools."""

    compared: Annotated[int, about("Hashes.")]
    differences: Annotated[tuple[str, ...], about("In words.")]
    not_compared: Annotated[tuple[str, ...], about("What the checkout does not have.")]


class FigureDifferenceDocument(TypedDict):
    """A figure that differs."""

    figure: Annotated[str, about("Where it stands.")]
    published: Annotated[str, about("As it is here.")]
    found: Annotated[str, about("As the checkout has it.")]


class AdoptedFiguresDocument(TypedDict):
    """What came of the figures of the authors' runs."""

    runs: Annotated[int, about("Runs that have a register in the checkout.")]
    compared: Annotated[int, about("Figures.")]
    differences: list[FigureDifferenceDocument]
    not_compared: Annotated[tuple[str, ...], about("In words.")]


class AdoptDocument(TypedDict):
    """The evidence of a freeze, taken from a checkout of its authors' repository."""

    registration: Annotated[str, about("Name of the registration.")]
    outcome: Annotated[AdoptionOutcome, about("`unchanged`: exactly this lay there already.")]
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[list[str], about("Names of the evidence's files.")]
    document_sha256: Annotated[str, about("Of the frozen document.")]
    authorities: list[TokenDocument]
    checks: list[CheckDocument]
    pools: AdoptedPoolsDocument
    figures: Annotated[
        AdoptedFiguresDocument | None, about("Null where the study was not transcribed from run registers.")
    ]


class NewStudyDocument(TypedDict):
    """A study that was begun."""

    study: Annotated[str, about("Its name.")]
    folder: Annotated[str, about("Of the project.")]
    files: Annotated[list[str], about("That were written, relative to it.")]
    columns: Annotated[
        dict[str, str], about("The log's column for each that an import wants, as guessed by name.")
    ]
    attributes: Annotated[dict[str, str], about("The log's column for each attribute of tasks.")]
    unused: Annotated[list[str], about("Columns of the log that were not used.")]
    left_out: Annotated[list[str], about("What of the log was left out, in words.")]
    problem: Annotated[str | None, about("What would keep the log from being imported as it is mapped.")]


class RehearsedPowerDocument(TypedDict):
    """How often a rule would pass in studies of the registered size."""

    effect: Annotated[float, about("True mean difference, in the estimate's unit.")]
    seeds: Annotated[int, about("Seed pairs.")]
    pass_probability: Annotated[float, about("Share of the simulated studies that passed.")]
    monte_carlo_error: Annotated[float, about("Standard error of that.")]
    assumed: Annotated[str, about("What was assumed of an episode, in words.")]


class RehearsalDocument(TypedDict):
    """A draft on a pilot; none of it decides anything."""

    standing: Annotated[str, about("That it decides nothing, in words.")]
    problems: Annotated[
        list[str], about("What keeps the draft from being frozen, or a rule from being decided.")
    ]
    fitted: Annotated[list[str], about("What of the draft was fitted to the pilot.")]
    decisions: list[DecisionDocument]
    power: Annotated[
        dict[str, str | list[RehearsedPowerDocument]], about("By rule; in words why it cannot be simulated.")
    ]
    page: Annotated[str | None, about("The drawing; null where what draws is not installed.")]
