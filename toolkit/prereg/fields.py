"""Fields of a registration's own files; whatever is wrong with one is a TypeError or ValueError here."""

from __future__ import annotations

from datetime import UTC, datetime

# Years between which a margin can be added to a moment; RFC 3161 is from 2001.
EARLIEST, LATEST = 1990, 9998
UNFILLED = "FILL IN"


def text(value: object) -> str:
    """Return text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"expected text, found {value!r}")
    if value.startswith(UNFILLED):
        raise ValueError(f"{value!r} was left as in the template")
    return value


def texts(values: object) -> tuple[str, ...]:
    """Return a list of texts."""
    if not isinstance(values, list):
        raise TypeError(f"expected a list of texts, found {values!r}")
    return tuple(text(value) for value in values)


def utc(moment: datetime) -> datetime:
    """Return a moment in UTC; one without a zone is none."""
    if moment.tzinfo is None:
        raise TypeError(f"{moment} has no time zone")
    found = moment.astimezone(UTC)
    if not EARLIEST <= found.year <= LATEST:
        raise ValueError(f"{moment} is out of range")
    return found
