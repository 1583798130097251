"""Logs that real programs wrote, and the way from one to a study."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from toolkit.drafting.outline import outlined, scaffold
from toolkit.errors import DamagedError
from toolkit.registers.importing.mapping import parse_mapping
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import Log
from toolkit.registers.importing.tables import tables_of
from toolkit.structs import replace

LOGS = Path(__file__).parents[3] / "fixtures" / "logs"


def study_of(log: Log, **given: str) -> dict[str, pl.DataFrame]:
    """Return the tables of the study that is begun with a log."""
    files = scaffold(outlined("mine", log, given), "me/mine")
    mapping = parse_mapping(files["mappings/mine.toml"])
    return tables_of(log.measured(mapping.columns), mapping)


def outcome(table: pl.DataFrame) -> str:
    """Return the column with the outcome of a benchmark."""
    return "exact_match" if "exact_match" in table.columns else "true_success"


def played(log: Log) -> Log:
    """Return a log without what has no outcome: how much may be missing is for rules to say."""
    return replace(log, table=log.table.drop_nulls(outcome(log.table)))


def lines(file: Path, **numbers: Any) -> list[dict[str, Any]]:
    """Return the documents of JSON lines."""
    return [json.loads(line, **numbers) for line in file.read_text().splitlines()]


def of_file(log: Log, name: str, *columns: str) -> list[tuple[object, ...]]:
    """Return the rows of a run, in order."""
    return log.table.filter(pl.col("file") == name).select(columns).rows()


def refused(*sources: Path, match: str, read: Callable[..., Log] = read_log) -> DamagedError:
    """Check that a log is refused in one clear error; return it."""
    with pytest.raises(DamagedError, match=match) as caught:
        read([str(source) for source in sources])
    assert caught.value.where
    return caught.value
