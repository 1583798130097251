"""What is about the command line itself: errors, and the completion of what is typed."""

from typing import Annotated, Literal, TypedDict

Shell = Literal["bash", "zsh", "fish"]
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


class CompletionDocument(TypedDict):
    """What has a shell complete commands, rules, studies and runs."""

    shell: Annotated[Shell, "Which shell."]
    script: Annotated[str, "In the shell's language."]
