"""Registrations: begun and rehearsed."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from toolkit.decisions.decision import Decision
from toolkit.structs import about


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
    decisions: Sequence[Decision]
    power: Annotated[
        dict[str, str | list[RehearsedPowerDocument]], about("By rule; in words why it cannot be simulated.")
    ]
    page: Annotated[str | None, about("The drawing; null where what draws is not installed.")]
