"""Sections of a rules file: their keys, declared once, read with the place of what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

from toolkit.errors import RuleError
from toolkit.structs import replace

OPTIONAL = ""


class Value(Enum):
    """What a key holds, where that is no table with keys of its own."""

    TEXT = "text"
    DECIMAL = "decimal string"
    NUMBER = "number, or decimal string"
    SCALAR = "text or number"
    WHOLE = "whole number"
    FLAG = "true or false"
    TEXTS = "list of texts"
    DECIMALS = "list of decimal strings"
    WHOLES = "list of whole numbers"
    SHA256 = "64 hexadecimal digits"
    RANGE = "two decimal strings, rising"
    TABLE = "table"
    TABLES = "list of tables"


_TYPES = {
    **dict.fromkeys((Value.TEXT, Value.DECIMAL, Value.SHA256), str),
    **dict.fromkeys((Value.TEXTS, Value.DECIMALS, Value.WHOLES, Value.RANGE, Value.TABLES), list),
    Value.WHOLE: int,
    Value.FLAG: bool,
    Value.TABLE: dict,
}


@dataclass(frozen=True)
class Named:
    """A table of any names, each with something of one form."""

    of: Form  # the form
    common: tuple[str, ...] = ()  # keys beside it that say what a member lacks


@dataclass(frozen=True)
class Listed:
    """A list of tables."""

    of: Keys


@dataclass(frozen=True)
class Key:
    """A key of a table."""

    name: str  # as written
    form: Form  # what it holds; of several tables with keys of their own, one
    meaning: str  # one line, with its unit
    default: str | None = None  # None of a required key; `OPTIONAL` where what is absent is empty
    # What it may say, or the members of its list may, with what each means where that is told; anything
    # where there are none
    choices: Collection[Any] = ()
    least: int | None = None  # the smallest number that it may say
    only: tuple[str, tuple[str, ...]] | None = None  # another key, and its values with which this is there

    @property
    def value(self) -> Value:
        """What it holds, keys of tables left out."""
        if isinstance(self.form, Value):
            return self.form
        return Value.TABLES if isinstance(self.form, Listed) else Value.TABLE

    @property
    def type(self) -> type:
        """The type that TOML gives it."""
        return _TYPES[self.value]

    def applies(self, content: Mapping[str, Any]) -> bool:
        """Whether a table that says so may have the key."""
        return self.only is None or content.get(self.only[0], OPTIONAL) in self.only[1]


Keys: TypeAlias = Mapping[str, Key]
Form: TypeAlias = Value | Named | Listed | Keys | tuple[Keys, ...]


def keys(*declared: Key) -> Keys:
    """Return the keys of a table, in the order in which messages name them."""
    return {key.name: key for key in declared}


def optional(declared: Keys) -> Keys:
    """Return the keys of a table that says a part of another one."""
    return {name: replace(key, default=OPTIONAL) for name, key in declared.items()}


def alike(names: Iterable[str], form: Form) -> Keys:
    """Return keys of one form, whatever they are called."""
    return {name: Key(name, form, "") for name in names}


SPANS = Key("spans", Value.TEXTS, "spans of a document frozen elsewhere that it restates", OPTIONAL)


DECIMAL = re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)
IDENTIFIER = re.compile(r"[A-Za-z]\w{0,59}", re.ASCII)


class Section:
    """A TOML table being read key by key.

    Its reader asks for every key that is declared, and for no other: a `LookupError` says otherwise.
    """

    def __init__(self, content: object, where: str, keys: Keys) -> None:
        if not isinstance(content, dict):
            raise RuleError("a section is not a table", found=type(content).__name__, where=where)
        self._left: dict[str, Any] = dict(content)
        self._known = {name: key for name, key in keys.items() if key.applies(content)}
        self._keys = keys
        self._asked: set[str] = set()
        self.where = where

    def wrong(self, problem: str, *, expected: object = None, found: object = None) -> RuleError:
        """Return the error of something that the section says."""
        return RuleError(problem, expected=expected, found=found, where=self.where)

    def has(self, key: str) -> bool:
        """Whether a key is there and was not taken yet."""
        self._ask(key)
        return key in self._left

    def text(self, key: str) -> str:
        """Take a string that says something; an optional one that is absent has its default."""
        return self._text(key, Value.TEXT)

    def whole(self, key: str) -> int:
        """Take a whole number; an optional one that is absent is 0."""
        present, value = self._is_there(key), int(self._take(key, Value.WHOLE))
        least = self._keys[key].least
        if present and least is not None and value < least:
            raise self.wrong(f"{key!r} is too small", expected=f"at least {least}", found=value)
        return value

    def flag(self, key: str) -> bool:
        """Take true or false; what is absent is false."""
        return bool(self._take(key, Value.FLAG))

    def texts(self, key: str) -> tuple[str, ...]:
        """Take a list of strings."""
        return self._list(key, str, Value.TEXTS)

    def wholes(self, key: str) -> tuple[int, ...]:
        """Take a list of whole numbers."""
        return self._list(key, int, Value.WHOLES)

    def exact(self, key: str) -> Fraction | None:
        """Take a decimal string as an exact number."""
        value = self._text(key, Value.DECIMAL)
        return exact_number(value, self.where) if value else None

    def exacts(self, key: str) -> tuple[Fraction, ...]:
        """Take a list of decimal strings."""
        return tuple(exact_number(value, self.where) for value in self._list(key, str, Value.DECIMALS))

    def range(self, key: str) -> tuple[Fraction, Fraction]:
        """Take two decimal strings, the first below the second."""
        ends = self._list(key, str, Value.RANGE)
        if len(ends) != 2:  # noqa: PLR2004 - a range has two ends
            raise self.wrong(f"{key!r} has two ends", found=list(ends))
        low, high = (exact_number(end, self.where) for end in ends)
        if low >= high:
            raise self.wrong(f"{key!r} does not rise", found=list(ends))
        return low, high

    def table(self, key: str) -> dict[str, Any]:
        """Take a sub-table; an optional one that is absent is empty."""
        return dict(self._take(key, Value.TABLE))

    def strings(self, key: str) -> dict[str, str]:
        """Take a sub-table of strings."""
        content = self.table(key)
        for name, value in content.items():
            if not isinstance(value, str):
                raise self.wrong(f"{name!r} has the wrong type", expected="str", found=repr(value))
        return content

    def tables(self, key: str) -> list[Any]:
        """Take a list of sub-tables; an absent one is empty, which its reader may refuse."""
        return list(self._take(key, Value.TABLES))

    def rest(self) -> dict[str, Any]:
        """Take every key that was not asked for yet, by name, each as it is declared; nothing may be left."""
        asked = [name for name in self._keys if name not in self._asked]
        taken = {name: _TAKEN[self._keys[name].value](self, name) for name in asked}
        self.done()
        return taken

    def done(self) -> None:
        """Check that nothing is left."""
        idle = self._known.keys() - self._asked
        if idle:
            raise LookupError(f"{self.where} has keys that nothing reads: {', '.join(sorted(idle))}")
        if self._left:
            raise self.wrong(
                "a section has keys that the rule language does not know",
                expected=f"no keys but {', '.join(self._known)}",
                found=", ".join(sorted(self._left)),
            )

    def _is_there(self, name: str) -> bool:
        return name in self._left and name in self._known

    def _ask(self, name: str) -> Key:
        if name not in self._keys:
            raise LookupError(f"{self.where} is asked for {name}, which its keys do not declare")
        self._asked.add(name)
        return self._keys[name]

    def _take(self, name: str, value_of: Value) -> Any:
        key = self._ask(name)
        if key.value is not value_of:
            raise LookupError(f"{name} of {self.where} is declared as {key.value}, and read as {value_of}")
        if name not in self._known:
            return key.type()
        if name not in self._left:
            if key.default is None and value_of is not Value.TABLES:
                raise self.wrong(f"{name!r} is missing")
            return key.default or key.type()
        value = self._left.pop(name)
        if not isinstance(value, key.type) or (isinstance(value, bool) and key.type is not bool):
            raise self.wrong(f"{name!r} has the wrong type", expected=key.type.__name__, found=repr(value))
        return value

    def _text(self, key: str, form: Value) -> str:
        present = self._is_there(key)
        value = str(self._take(key, form))
        if present and not value:
            raise self.wrong(f"{key!r} is empty")
        self._check_chosen(key, [value] if present else [])
        return value

    def _list(self, key: str, kind: type, form: Value) -> tuple[Any, ...]:
        values = self._take(key, form)
        for value in values:
            if not isinstance(value, kind) or isinstance(value, bool) or value == "":
                raise self.wrong(
                    f"{key!r} has a member of the wrong type", expected=kind.__name__, found=repr(value)
                )
        self._check_chosen(key, values)
        return tuple(values)

    def _check_chosen(self, key: str, values: list[Any]) -> None:
        choices = self._keys[key].choices
        found = next((value for value in values if choices and value not in choices), None)
        if found is not None:
            allowed = ", ".join(choices)
            raise self.wrong(f"{key!r} is not one of the allowed values", expected=allowed, found=found)


_TAKEN: dict[Value, Callable[[Section, str], Any]] = {
    Value.TEXT: Section.text,
    Value.DECIMAL: Section.exact,
    Value.WHOLE: Section.whole,
    Value.FLAG: Section.flag,
    Value.TEXTS: Section.texts,
    Value.WHOLES: Section.wholes,
    Value.DECIMALS: Section.exacts,
    Value.RANGE: Section.range,
    Value.TABLE: Section.table,
}


def exact_number(text: str, where: str) -> Fraction:
    """Return a decimal string as a fraction."""
    if not DECIMAL.fullmatch(text):
        raise RuleError("not a decimal number", expected="digits, as in -0.03", found=text[:40], where=where)
    return Fraction(text)


def identifier(text: str, where: str) -> str:
    """Return a name that can stand in tests, file names and addresses."""
    if not IDENTIFIER.fullmatch(text):
        raise RuleError(
            "a name has a character that it cannot have",
            expected="letters, digits and underscores, a letter first, at most 60",
            found=text[:80],
            where=where,
        )
    return text
