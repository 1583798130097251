"""Rows of a study's Parquet files, read without the site's code."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

Row = dict[str, Any]
PERIODIC = "periodic"


@cache
def rows(study: Path, name: str) -> list[Row]:
    """Return the rows of a table's files; none where the study has no such table."""
    files = sorted((study / name).glob("*.parquet"))
    return pl.read_parquet(files).to_dicts() if files else []


def matching(held: Sequence[Row], **cells: Any) -> list[Row]:
    return [row for row in held if all(row[name] == cell for name, cell in cells.items())]


def means(arm: str, by_step: Mapping[int, list[tuple[int, int]]], seeds: int) -> Iterator[Sequence[Any]]:
    """Yield the mean of an arm's rates at every step where all seeds have counts, with their sums."""
    for step, counts in by_step.items():
        if len(counts) == seeds:
            whole = (
                tuple(map(sum, zip(*counts, strict=True))) if len({n for _, n in counts}) == 1 else ("", "")
            )
            yield (arm, "mean", step, fmean(k / n for k, n in counts), *whole)
