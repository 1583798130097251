"""What keys a table of a rules file has: parser, messages, schema and reference are made of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias

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
    """A table of any names, each with something of one form.

    Args:
        of: the form.
        common: keys beside it that say what a member lacks.
    """

    of: Form
    common: tuple[str, ...] = ()


@dataclass(frozen=True)
class Listed:
    """A list of tables."""

    of: Keys


@dataclass(frozen=True)
class Key:
    """A key of a table.

    Args:
        name: as written.
        form: what it holds; of several tables with keys of their own, one.
        meaning: one line, with its unit.
        default: None where the key is required; `OPTIONAL` where it is not, and what is absent is empty.
        choices: what it may say, or the members of its list may, with what each means where that is told;
            anything where there are none.
        least: the smallest number that it may say.
        only: another key, and its values with which this one is there; `OPTIONAL` stands for absent.
    """

    name: str
    form: Form
    meaning: str
    default: str | None = None
    choices: Collection[Any] = ()
    least: int | None = None
    only: tuple[str, tuple[str, ...]] | None = None

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
