"""What is printed where a command fails."""

from typing import Annotated, Literal, TypedDict

ExitCode = Literal[1, 2, 3, 4]


class ErrorFacts(TypedDict):
    """What stopped a command."""

    problem: Annotated[str, "One sentence."]
    expected: Annotated[str | None, "What should have been there."]
    found: Annotated[str | None, "What was there."]
    where: Annotated[str | None, "File, table, column or rule."]
    remedy: Annotated[str | None, "What the user can do about it."]
    exit_code: Annotated[
        ExitCode,
        "1: a verification failed; 2: wrong usage; 3: an input is missing; 4: damaged or inconsistent data.",
    ]


class ErrorDocument(TypedDict):
    """The document of a command that failed; a check that ran and found something prints its own."""

    error: ErrorFacts
