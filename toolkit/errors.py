"""One exception tree. Each class carries the exit code that the command line ends with.

An error says what was expected, what was found, where, and what to do: a user never needs a traceback
to understand bad input.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal, Self

ExitCode = Literal[1, 2, 3, 4]

EXCERPT = 300
"""How many characters of a foreign text an error quotes."""
CLOSEST = 3
"""How many names an error offers for one that it does not know."""


def did_you_mean(given: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """Return a remedy for a name that is not known."""
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in known}
    close = get_close_matches(given[:EXCERPT].casefold(), folded, CLOSEST)
    question = f"did you mean {' or '.join(repr(folded[name]) for name in close)}?" if close else None
    return ". ".join(filter(None, (question, otherwise))).replace("?. ", "? ") or None


class ToolkitError(Exception):
    """Anything that stops a command for a reason its user can understand.

    Args:
        problem: one sentence, without a full stop.
        expected: what should have been there.
        found: what was there.
        where: file, table, column or rule.
        remedy: what the user can do about it.
    """

    exit_code: ClassVar[ExitCode] = 4

    def __init__(
        self,
        problem: str,
        *,
        expected: object = None,
        found: object = None,
        where: object = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.expected = None if expected is None else str(expected)
        self.found = None if found is None else str(found)
        self.where = None if where is None else str(where)
        self.remedy = remedy

    def restated(self, **facts: object) -> Self:
        """Return the same error with another problem, or other facts: its arguments by name."""
        own = {name: getattr(self, name) for name in ("expected", "found", "where", "remedy")}
        problem = str(facts.pop("problem", self.problem))
        return type(self)(problem, **{**own, **facts})

    def as_dict(self) -> dict[str, Any]:
        """Return the error as the JSON document that `--json` prints."""
        return {
            "problem": self.problem,
            "expected": self.expected,
            "found": self.found,
            "where": self.where,
            "remedy": self.remedy,
            "exit_code": self.exit_code,
        }

    def __str__(self) -> str:
        """Return the error as people read it: the problem, then one indented line a known fact."""
        facts = (
            ("where", self.where),
            ("expected", self.expected),
            ("found", self.found),
            ("what to do", self.remedy),
        )
        return "\n".join([self.problem, *(f"  {name}: {text}" for name, text in facts if text)])


class VerificationError(ToolkitError):
    """Evidence was examined and does not hold (exit 1)."""

    exit_code = 1


class UsageError(ToolkitError):
    """The command was asked for something that does not exist or makes no sense (exit 2)."""

    exit_code = 2


class IncompleteError(ToolkitError):
    """An input is missing or cannot be read; the message says which and how to get it (exit 3)."""

    exit_code = 3


class DamagedError(ToolkitError):
    """Data is damaged or contradicts itself (exit 4)."""

    exit_code = 4


class RuleError(DamagedError):
    """A rules file says something that the rule language does not allow (exit 4)."""
