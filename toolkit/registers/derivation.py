"""Rows that follow from others, beside those that are stored: where they differ, and which row it is."""

from collections.abc import Mapping, Sequence
from math import isclose
from typing import Any

from toolkit.errors import DamagedError
from toolkit.registers.arrow import str_key
from toolkit.registers.schema import TABLES

NEAR = 1e-9
"""Doubles from another processor may differ in their last digits: by far less than a verdict turns on."""

_REMEDY = "restore the file, or rebuild the registers from the rows"


def compare(table: str, derived: Sequence[Mapping[str, Any]], stored: Sequence[Mapping[str, Any]]) -> None:
    """Compare rows of a table with those that follow, in the columns that both have."""
    key = TABLES[table].key
    sources = " and ".join(TABLES[table].follows) or "the registration"
    mine, theirs = ({tuple(row[name] for name in key): row for row in rows} for rows in (derived, stored))
    for at in sorted({*mine, *theirs}, key=lambda at: tuple(map(str_key, at))):
        ours, recorded = mine.get(at), theirs.get(at)
        where = f"{table} row " + ", ".join(f"{n}={v}" for n, v in zip(key, at, strict=True))
        if ours is None or recorded is None:
            surplus = f"{table} has a row that does not follow from {sources}"
            lacking = f"{table} lacks a row that follows from {sources}"
            raise DamagedError(surplus if ours is None else lacking, where=where, remedy=_REMEDY)
        for name, value in ours.items():
            if name in recorded and not _is_same(value, recorded[name]):
                raise DamagedError(
                    f"{table}.{name} is not what follows from {sources}",
                    expected=value,
                    found=recorded[name],
                    where=where,
                    remedy=_REMEDY,
                )


def _is_same(derived: object, stored: object) -> bool:
    if isinstance(derived, float) and isinstance(stored, float):
        return isclose(derived, stored, rel_tol=NEAR, abs_tol=NEAR * NEAR)
    return derived == stored
