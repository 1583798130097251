"""What a column and a table of a register are, and the words and columns that several tables share."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Annotated

from toolkit.errors import DamagedError
from toolkit.structs import Document, about, one_of, replace


class Type(Enum):
    """The column types of the registers; each names its Arrow type and its `datasets` feature."""

    STRING = "string"
    BOOL = "bool"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT64 = "uint64"
    FLOAT64 = "float64"
    DECIMAL = "decimal128(9, 6)"
    TIMESTAMP = "timestamp[us, tz=UTC]"
    BOOLS = "list<bool>"
    INT32S = "list<int32>"
    UINT64S = "list<uint64>"
    FLOAT64S = "list<double>"

    @property
    def is_number(self) -> bool:
        """Whether bounds can be declared for the column."""
        return self not in (Type.STRING, Type.BOOL, Type.TIMESTAMP) and not self.is_list

    @property
    def element(self) -> Type | None:
        """Type of the elements of a list, which may have any length; None for a type that is none."""
        return {
            Type.BOOLS: Type.BOOL,
            Type.INT32S: Type.INT32,
            Type.UINT64S: Type.UINT64,
            Type.FLOAT64S: Type.FLOAT64,
        }.get(self)

    @property
    def is_list(self) -> bool:
        """Whether a value is a list."""
        return self.element is not None

    @property
    def most(self) -> int | None:
        """The largest count that it holds, or that an element does; None for what holds none."""
        bits = {Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}.get(self.element or self)
        return None if bits is None else 2 ** (bits - 1) - 1


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str  # column name
    meaning: str  # one sentence for readers; ends up in the card and in `toolkit registers schema`
    type: Type  # storage type
    unit: str | None = None  # unit of the values where they have one
    nullable: bool = False  # whether a value may be absent
    choices: tuple[str, ...] | None = None  # the allowed values, where the set is closed
    low: float | None = None  # smallest allowed value
    high: float | None = None  # largest allowed value
    at_most: tuple[str, ...] = ()  # other columns of the same row that bound this one from above
    pairs: bool = False  # whether a text is canonical JSON, name → word, of the same names in every row
    optional: bool = False  # whether a study may leave the column out, because it did not record it


@dataclass(frozen=True)
class Parent:
    """A reference: the columns' values stand together in a row of another table."""

    table: str  # the other table
    columns: tuple[str, ...]  # the columns that refer to it, named alike there
    same: tuple[str, ...] = ()  # further columns that say the same here as there
    where_present: str | None = None  # a column; rows in which it is null refer to nothing


@dataclass(frozen=True)
class Table:
    """One configuration of a dataset repository."""

    name: str  # configuration name
    meaning: str  # one sentence on what a row is
    columns: tuple[Column, ...]  # in storage order
    key: tuple[str, ...]  # the columns that identify a row; rows are sorted by them
    parents: tuple[Parent, ...] = ()  # what its rows refer to
    sums: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (total, parts): they add up, where none is null
    follows: tuple[str, ...] = ()  # tables whose rows every row of it follows from, where a study has rows
    is_blob: bool = False  # whether only programs read it, such as weights: no site carries it

    def __hash__(self) -> int:
        """Return a hash that takes no walk through every column, to keep by a table what follows from it."""
        return hash((self.name, self.column_names))

    def column(self, name: str) -> Column | None:
        """Return the column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Column names in storage order."""
        return tuple(column.name for column in self.columns)

    def narrowed(self, names: Collection[str]) -> Table:
        """Return the table without the optional columns that are not among the names."""
        kept = {column.name for column in self.columns if column.name in names or not column.optional}
        return replace(
            self,
            columns=tuple(
                replace(column, at_most=tuple(name for name in column.at_most if name in kept))
                for column in self.columns
                if column.name in kept
            ),
            sums=tuple((total, parts) for total, parts in self.sums if {total, *parts} <= kept),
        )

    def with_words(self, words: Mapping[str, tuple[str, ...]]) -> Table:
        """Return the table with the words of a study, by column, in place of the toolkit's."""
        return replace(
            self,
            columns=tuple(
                replace(column, choices=words[column.name]) if column.name in words else column
                for column in self.columns
            ),
        )


def optional(*columns: Column) -> tuple[Column, ...]:
    """Return columns that a study may leave out."""
    return tuple(replace(column, optional=True) for column in columns)


def maybe(column: Column) -> Column:
    """Return a column whose values may be absent."""
    return replace(column, nullable=True)


text = partial(Column, type=Type.STRING)
"""Declare a string column."""
count = partial(Column, type=Type.INT32, low=0)
"""Declare a column of non-negative whole numbers."""
short = partial(Column, type=Type.INT16, low=0)
"""Declare a column of small non-negative whole numbers."""
bit = partial(Column, type=Type.BOOL)
"""Declare a column of truth values."""
seed = partial(Column, type=Type.UINT64)
"""Declare a column of seeds in [0, 2^64)."""
bits = partial(Column, type=Type.BOOLS)
"""Declare a column of lists of truth values."""
wholes = partial(Column, type=Type.INT32S)
"""Declare a column of lists of whole numbers."""
seeds = partial(Column, type=Type.UINT64S)
"""Declare a column of lists of seeds."""
numbers = partial(Column, type=Type.FLOAT64S)
"""Declare a column of lists of doubles."""
real = partial(Column, type=Type.FLOAT64)
"""Declare a double-precision column."""
exact = partial(Column, type=Type.DECIMAL)
"""Declare a decimal column: a figure printed with a fixed number of digits, kept exactly."""
share = partial(exact, low=0, high=1)
"""Declare a decimal column of fractions."""
moment = partial(Column, type=Type.TIMESTAMP)
"""Declare a UTC time column."""


ARMS = ("clean", "paired", "independent", "blocking", "blocking_paired")
REGIMES = (
    *("clean", "faults_p010", "faults_p025", "faults_p025_outage_free", "faults_p025_outage_heavy"),
    *("held_out_types", "challenge", "flips_q005", "flips_q010"),
)
POOLS = ("diagnostic", "diagnostic_128", "test", "train", "validation")
ROLES = ("pilot", "primary", "reference", "replication")
BATTERIES = ("registered", "learning", "small", "curve")
PHASES = ("periodic", "final")

WORDS = {"arm": ARMS, "regime": REGIMES, "pool": POOLS}
"""Columns whose words a registration may declare, with those of the back office that hold otherwise."""

RUN = text("run_id", "The run that produced the row.")
CELL = (
    text("condition", "Condition of the run: what it works under, such as the noise of training."),
    text("arm", "Arm of the run: what is compared, such as how a group's schedules are drawn.", choices=ARMS),
    count("seed", "Seed of the run; runs of two arms with one seed are a pair."),
)
OF_RUN = Parent("runs", ("run_id",), same=("condition", "arm", "seed"))
OF_RUN_ALONE = Parent("runs", ("run_id",))


FAILURE, EXCLUDED, BOUNDS = "failure", "excluded", "bounds"
TREATMENTS = {
    FAILURE: "they count as failures; a score, calls, tokens or cost that is missing is no number, and these "
    "endpoints say `missing` themselves",
    EXCLUDED: "their tasks are left out of the comparison, in the runs of that seed",
    BOUNDS: "a verdict stands only if it is the same with all of them failures, or lowest scores, with all "
    "successes, or highest scores, and with those of any one arm",
}
ATTEMPTS = {
    "one": "an episode is there once, or the log is refused",
    "first": "of several attempts the first counts, whatever came of it",
    "last": "of several attempts the last counts",
}


class MissingData(Document, frozen=True):
    """What becomes of episodes without an outcome: errors, and rows that a log lacks."""

    counts_as: Annotated[str, one_of(TREATMENTS, "what episodes without an outcome count as")]
    most: Annotated[Fraction, about("share of an evaluation's episodes that may be missing, from 0, below 1")]
    attempts: Annotated[str, one_of(ATTEMPTS, "which of several attempts counts")] = "one"

    @property
    def in_words(self) -> str:
        """What is registered, in words."""
        return (
            f"Of episodes without an outcome: {TREATMENTS[self.counts_as]}; at most {float(self.most):.1%} "
            f"of an evaluation; {ATTEMPTS[self.attempts]}."
        )


def attributes_text(attributes: Mapping[str, str]) -> str:
    """Return attributes as the one text that says them."""
    return json.dumps(attributes, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read_attributes(text: str, where: str | None = None) -> dict[str, str]:
    """Return the attributes that a text says."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    texts = isinstance(read, dict) and all(isinstance(value, str) and value for value in read.values())
    if not texts or attributes_text(read) != text:
        raise DamagedError(
            "attributes of a task are no canonical JSON of texts",
            expected=attributes_text({"name": "value"}),
            found=text[:80],
            where=where,
        )
    return dict(read)
