"""Reading one section of a rules file: every key known, every value of its type, nothing left over."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from toolkit.errors import RuleError

_REQUIRED: Any = object()
_DECIMAL = re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)
IDENTIFIER = re.compile(r"[A-Za-z]\w{0,59}", re.ASCII)


class Section:
    """A TOML table being read key by key.

    Args:
        content: the table.
        where: its name, for messages.
    """

    def __init__(self, content: object, where: str) -> None:
        if not isinstance(content, dict):
            raise RuleError("a section is not a table", found=type(content).__name__, where=where)
        self._left: dict[str, Any] = dict(content)
        self._known: list[str] = []
        self.where = where

    def wrong(self, problem: str, *, expected: object = None, found: object = None) -> RuleError:
        """Return the error of something that the section says."""
        return RuleError(problem, expected=expected, found=found, where=self.where)

    def has(self, key: str) -> bool:
        """Whether a key is there and was not taken yet."""
        return key in self._left

    def text(self, key: str, default: str | None = _REQUIRED) -> str:
        """Take a string that says something; an optional one that is absent is empty."""
        present = key in self._left
        value = self._take(key, str, default)
        if present and not value:
            raise self.wrong(f"{key!r} is empty")
        return str(value or "")

    def whole(self, key: str, default: int | None = _REQUIRED) -> int | None:
        """Take a whole number."""
        value = self._take(key, int, default)
        return None if value is None else int(value)

    def flag(self, key: str) -> bool:
        """Take true or false; what is absent is false."""
        value = self._left.pop(key, False)
        if not isinstance(value, bool):
            raise self.wrong(f"{key!r} has the wrong type", expected="bool", found=repr(value))
        return value

    def texts(self, key: str, default: tuple[str, ...] = _REQUIRED) -> tuple[str, ...]:
        """Take a list of strings."""
        return tuple(str(value) for value in self._list(key, str, default))

    def wholes(self, key: str, default: tuple[int, ...] = _REQUIRED) -> tuple[int, ...]:
        """Take a list of whole numbers."""
        return tuple(int(value) for value in self._list(key, int, default))

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = _REQUIRED) -> str:
        """Take a string out of a closed set."""
        value = self.text(key, default)
        if value and value not in choices:
            raise self.wrong(
                f"{key!r} is not one of the allowed values", expected=", ".join(choices), found=value
            )
        return value

    def exact(self, key: str, default: str | None = _REQUIRED) -> Fraction | None:
        """Take a decimal string as an exact number."""
        value = self.text(key, default)
        return exact_number(value, self.where) if value else None

    def range(self, key: str) -> tuple[Fraction, Fraction]:
        """Take two decimal strings, the first below the second."""
        ends = self.texts(key)
        if len(ends) != 2:  # noqa: PLR2004 - a range has two ends
            raise self.wrong(f"{key!r} has two ends", found=list(ends))
        low, high = (exact_number(end, self.where) for end in ends)
        if low >= high:
            raise self.wrong(f"{key!r} does not rise", found=list(ends))
        return low, high

    def table(self, key: str) -> dict[str, Any]:
        """Take a sub-table; an absent one is empty."""
        return dict(self._take(key, dict, {}))

    def tables(self, key: str) -> list[Any]:
        """Take a list of sub-tables; an absent one is empty."""
        return list(self._take(key, list, []))

    def done(self) -> None:
        """Check that nothing is left.

        Raises:
            RuleError: a key that the language does not know.
        """
        if self._left:
            raise self.wrong(
                "a section has keys that the rule language does not know",
                expected=f"no keys but {', '.join(dict.fromkeys(self._known))}",
                found=", ".join(sorted(self._left)),
            )

    def _take(self, key: str, kind: type, default: object) -> Any:
        self._known.append(key)
        if key not in self._left and default is _REQUIRED:
            raise self.wrong(f"{key!r} is missing")
        if key not in self._left:
            return default
        value = self._left.pop(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.wrong(f"{key!r} has the wrong type", expected=kind.__name__, found=repr(value))
        return value

    def _list(self, key: str, kind: type, default: Any) -> Any:
        values = self._take(key, list, default)
        for value in values:
            if not isinstance(value, kind) or isinstance(value, bool) or value == "":
                raise self.wrong(
                    f"{key!r} has a member of the wrong type", expected=kind.__name__, found=repr(value)
                )
        return tuple(values)


def exact_number(text: str, where: str) -> Fraction:
    """Return a decimal string as a fraction.

    Raises:
        RuleError: it is no plain decimal number.
    """
    if not _DECIMAL.fullmatch(text):
        raise RuleError("not a decimal number", expected="digits, as in -0.03", found=text[:40], where=where)
    return Fraction(text)


def identifier(text: str, where: str) -> str:
    """Return a name that can stand in tests, file names and addresses.

    Raises:
        RuleError: it has another character than letters, digits and underscores, or starts with a digit.
    """
    if not IDENTIFIER.fullmatch(text):
        raise RuleError(
            "a name has a character that it cannot have",
            expected="letters, digits and underscores, a letter first, at most 60",
            found=text[:80],
            where=where,
        )
    return text


def strings(content: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return a table of strings.

    Raises:
        RuleError: a value is no string.
    """
    for key, value in content.items():
        if not isinstance(value, str):
            raise RuleError(f"{key!r} has the wrong type", expected="str", found=repr(value), where=where)
    return dict(content)
