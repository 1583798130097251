"""A tool's parameters: what they accept, and how a value that is unambiguously meant is read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal
from unicodedata import category, normalize

from toolkit.noise.layer import error


class Refusal(Exception):  # noqa: N818 - it is an answer, not an error
    """A tool's refusal: a code of `CODES`, a sentence for the agent, and further fields of the answer."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details

    def answer(self) -> dict[str, Any]:
        """Return it as `{"error": {"code", "message", …}}`."""
        return error(self.code, self.message, **self.details)


CODES = {
    "unknown_tool": "There is no such tool.",
    "invalid_arguments": "An argument is missing, unknown, of a wrong type or out of its range.",
    "not_found": "There is no such customer, order or product.",
    "conflict": "The record's state does not allow this.",
    "temporarily_unavailable": "The call failed; trying again may work.",
    "rate_limited": "Too many calls: every call fails until `retry_after` seconds were waited.",
    "outage": "This request fails for the rest of the episode.",
    "timeout": "No answer came in time: whether the write was applied is unknown.",
    "budget_exceeded": "The call budget is spent; the episode has ended.",
    "episode_over": "The episode has ended; nothing was done.",
}


WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,15}")
LARGEST = 10**15
LONGEST_TEXT = 500
LONGEST_WORD = 40


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """One argument of a tool; two parameters are the same only if they are one object."""

    name: str  # its name
    type: Literal["string", "integer"]  # `string` or `integer`, as in JSON Schema
    about: str  # what it means
    default: str | int | None = None  # its value where it is left out; a parameter without one is required
    minimum: int = 0  # smallest whole number
    maximum: int = LARGEST  # largest whole number
    max_length: int = LONGEST_TEXT  # longest text, in characters
    choices: tuple[str, ...] = ()  # the texts allowed
    identifier: bool = False  # whether it names a record: upper case, no spaces around it

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is None

    def read(self, value: Any) -> str | int:
        """Return the value as the tool takes it."""
        return self._whole(value) if self.type == "integer" else self._text(value)

    def _whole(self, value: Any) -> int:
        if type(value) is not int:
            whole = isinstance(value, float) and value.is_integer()
            if not whole and not (isinstance(value, str) and WHOLE_NUMBER.fullmatch(value.strip())):
                raise self._refused("a whole number", value)
            value = int(value)
        if not self.minimum <= value <= self.maximum:
            raise self._refused(f"a whole number from {self.minimum} to {self.maximum}", value)
        return int(value)

    def _text(self, value: Any) -> str:
        if type(value) is int and abs(value) < LARGEST:
            value = str(value)
        if not isinstance(value, str):
            raise self._refused("text", value)
        text = value.strip()
        if not text and self.required:
            raise self._refused("text that is not empty", value)
        if len(text) > self.max_length:
            raise self._refused(f"at most {self.max_length} characters", value)
        if self.identifier:
            text = text.upper()
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise self._refused("text in Unicode", text) from None
            text = normalize("NFC", text)
        if not text.isprintable():
            text = " ".join(text.split())
            if any(category(character) == "Cc" for character in text):
                raise self._refused("text without control characters", value)
        return self._choice(text) if self.choices else text

    def _choice(self, text: str) -> str:
        if text.lower() not in self.choices:
            raise self._refused(f"one of {', '.join(self.choices)}", text)
        return text.lower()

    def _refused(self, expected: str, value: Any) -> Refusal:
        return Refusal(
            "invalid_arguments", f"{self.name} must be {expected}; found {shown(value)}", parameter=self.name
        )


@lru_cache(maxsize=1 << 14, typed=True)
def _read_once(parameter: Parameter, value: Any) -> str | int:
    """Read a value once: episodes name the same few records again and again."""
    return parameter.read(value)


def shown(value: Any) -> str:
    """Return a value for a message: short, in ASCII, whatever was sent."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= LARGEST:
        return "a number of many digits"
    if isinstance(value, str):
        value = value[: LONGEST_WORD + 1]
    elif isinstance(value, dict | list | tuple | set):
        return f"a {type(value).__name__}"
    text = ascii(value)
    return text if len(text) <= LONGEST_WORD else f"{text[:LONGEST_WORD]}…"


def read_arguments(parameters: tuple[Parameter, ...], arguments: Any) -> dict[str, Any]:
    """Return a call's arguments, one value a parameter, defaults filled in."""
    if type(arguments) is not dict:
        raise Refusal("invalid_arguments", f"arguments must be an object; found {shown(arguments)}")
    read: dict[str, Any] = {}
    given = 0
    for parameter in parameters:
        name = parameter.name
        value = arguments.get(name)
        if value is not None:
            try:
                read[name] = _read_once(parameter, value)
            except TypeError:  # a list or an object cannot be remembered
                read[name] = parameter.read(value)
            given += 1
        elif parameter.default is not None:
            read[name] = parameter.default
        else:
            raise Refusal("invalid_arguments", f"{name} is missing", parameter=name)
    if given < len(arguments) and not arguments.keys() <= read.keys():
        raise _unknown(parameters, arguments)
    return read


def _unknown(parameters: tuple[Parameter, ...], arguments: Mapping[Any, Any]) -> Refusal:
    known = [parameter.name for parameter in parameters]
    extra = next(name for name in arguments if name not in known)
    return Refusal(
        "invalid_arguments", f"there is no argument {shown(extra)}; there are {', '.join(known) or 'none'}"
    )
