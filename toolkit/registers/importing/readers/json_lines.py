"""JSON lines with nested documents as a table of their values, by DuckDB."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.registers.importing.readers import cells
from toolkit.registers.importing.source import LONGEST_LINE, MOST_CELLS, MOST_COLUMNS

if TYPE_CHECKING:
    import duckdb
    import polars as pl

_NESTED = {"ARRAY", "OBJECT"}
_WHOLE = {"BIGINT", "UBIGINT"}


def read_json_lines(path: Path, what: str, opened: Sequence[str] = ()) -> tuple[pl.DataFrame, list[str]]:
    """Return the values of JSON lines, in the order of the lines, and the names of what is no value."""
    import duckdb

    with cells.reading(path, what), duckdb.connect() as connection:
        lines = f"read_ndjson_objects(?, maximum_object_size = {LONGEST_LINE})"
        connection.execute(
            f"CREATE TEMP TABLE lines AS SELECT row_number() OVER () AS line, json FROM {lines}",
            [glob.escape(str(path))],
        )
        pointers = _pointers(connection, "", "", path)
        for name in opened:
            pointers |= _pointers(connection, f"/{_escaped(name)}", f"{name}.", path)
        count = connection.execute("SELECT count(*) FROM lines").fetchall()[0][0]
        cells.bounded("columns", len(pointers), MOST_COLUMNS, path)
        cells.bounded("cells", len(pointers) * count, MOST_CELLS, path)
        return _table(connection, pointers, opened)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _pointers(connection: duckdb.DuckDBPyConnection, place: str, prefix: str, path: Path) -> dict[str, str]:
    """Return the names below a place of the documents, checked, each with its JSON pointer."""
    found = connection.execute(
        "SELECT json_type(json, $place), json_keys(json, $place), min(line) FROM lines "
        "GROUP BY ALL ORDER BY 3",
        {"place": place},
    ).fetchall()
    pointers: dict[str, str] = {}
    for kind, keys, line in found:
        if (kind != "OBJECT" and not place) or len(set(keys or ())) != len(keys or ()):
            raise DamagedError(
                f"a line of {path.name} is not one JSON object",
                expected="an object that names everything once",
                found=f"line {line}: {'a name twice' if kind == 'OBJECT' else kind.lower()}",
                where=path,
            )
        pointers |= {f"{prefix}{key}": f"{place}/{_escaped(key)}" for key in keys or ()}
    return pointers


def _table(
    connection: duckdb.DuckDBPyConnection, pointers: dict[str, str], opened: Sequence[str]
) -> tuple[pl.DataFrame, list[str]]:
    import polars as pl

    # All values of a line at once: a function for each would parse the line anew.
    kinds: list[set[str]] = [set() for _ in pointers]
    combined = "SELECT DISTINCT json_type(json, $places) FROM lines"
    for (combination,) in connection.execute(combined, {"places": list(pointers.values())}).fetchall():
        for known, kind in zip(kinds, combination, strict=True):
            known.update({kind} - {None, "NULL"})
    told = {name: kind for name, kind in zip(pointers, kinds, strict=True) if kind - _NESTED}
    nested = [
        name
        for name, kind in zip(pointers, kinds, strict=True)
        if kind & _NESTED and not (name in opened and kind == {"OBJECT"})
    ]
    if not told:
        return pl.DataFrame(), nested
    values, places = [], [pointers[name] for name in told]
    for at, kind in enumerate(told.values(), start=1):
        is_value = f"json_type(json, $places[{at}]) NOT IN ('ARRAY', 'OBJECT')"
        values.append(f"CASE WHEN {is_value} THEN texts[{at}] END" if kind & _NESTED else f"texts[{at}]")
    query = (
        f"SELECT {', '.join(f'{value} AS c{at}' for at, value in enumerate(values))} FROM "
        "(SELECT line, json, json_extract_string(json, $places) AS texts FROM lines) ORDER BY line"
    )
    found = connection.sql(query, params={"places": places}).pl()
    columns = zip(told.items(), found.get_columns(), strict=True)
    return pl.DataFrame([_typed(texts.alias(name), kind) for (name, kind), texts in columns]), nested


def _typed(texts: pl.Series, kinds: set[str]) -> pl.Series:
    """Return values in the type that all of them have in JSON, else as text."""
    import polars as pl

    plain = kinds - _NESTED
    if plain == {"BOOLEAN"}:
        return texts == "true"
    if plain <= {*_WHOLE, "DOUBLE"}:
        numbers = texts.cast(pl.Int64 if plain <= _WHOLE else pl.Float64, strict=False)
        if numbers.null_count() == texts.null_count():
            return numbers
    return texts
