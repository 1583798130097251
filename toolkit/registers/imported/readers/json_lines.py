"""JSON lines with nested documents as a table of their values, by DuckDB."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.registers.imported.readers import cells
from toolkit.registers.imported.source import LONGEST_LINE, MOST_CELLS, MOST_COLUMNS

if TYPE_CHECKING:
    import duckdb
    import polars as pl

_NESTED = {"ARRAY", "OBJECT"}
_WHOLE = {"BIGINT", "UBIGINT"}


def read_json_lines(path: Path, what: str, opened: Sequence[str] = ()) -> tuple[pl.DataFrame, list[str]]:
    """Return the values of JSON lines, in the order of the lines, and the names of what is no value.

    Args:
        path: the file.
        what: what it should be, in words.
        opened: documents whose values have columns of their own, as `doc.question`; of others
            nothing is read.

    Raises:
        DamagedError: a line is no JSON object, names something twice, or has more than a table can have.
    """
    import duckdb

    with cells.reading(path, what), duckdb.connect() as connection:
        lines = f"read_ndjson_objects(?, maximum_object_size = {LONGEST_LINE})"
        connection.execute(
            f"CREATE TEMP TABLE lines AS SELECT row_number() OVER () AS line, json FROM {lines}",
            [glob.escape(str(path))],
        )
        _check_objects(connection, path)
        pointers = _pointers(connection, "", "")
        for name in opened:
            pointers |= _pointers(connection, f"/{_escaped(name)}", f"{name}.")
        count = connection.execute("SELECT count(*) FROM lines").fetchall()[0][0]
        cells.bounded("columns", len(pointers), MOST_COLUMNS, path)
        cells.bounded("cells", len(pointers) * count, MOST_CELLS, path)
        return _table(connection, pointers, opened)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _check_objects(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    wrong = connection.execute(
        "SELECT line, json_type(json) FROM lines WHERE json_type(json) <> 'OBJECT' "
        "OR len(json_keys(json)) <> len(list_distinct(json_keys(json))) ORDER BY line LIMIT 1"
    ).fetchall()
    if wrong:
        line, kind = wrong[0]
        raise DamagedError(
            f"a line of {path.name} is not one JSON object",
            expected="an object that names everything once",
            found=f"line {line}: {'a name twice' if kind == 'OBJECT' else kind.lower()}",
            where=path,
        )


def _pointers(connection: duckdb.DuckDBPyConnection, place: str, prefix: str) -> dict[str, str]:
    """Return the names below a place of the documents, each with its JSON pointer."""
    keys = connection.execute(
        "SELECT key, min(line) AS first, min(nth) AS nth FROM (SELECT line, unnest(keys) AS key, "
        "generate_subscripts(keys, 1) AS nth FROM (SELECT line, json_keys(json, $place) AS keys FROM lines)) "
        "GROUP BY key ORDER BY first, nth, key",
        {"place": place},
    ).fetchall()
    return {f"{prefix}{key}": f"{place}/{_escaped(key)}" for key, *_ in keys}


def _table(
    connection: duckdb.DuckDBPyConnection, pointers: dict[str, str], opened: Sequence[str]
) -> tuple[pl.DataFrame, list[str]]:
    import polars as pl

    names, places = list(pointers), list(pointers.values())
    asked = ", ".join("list(DISTINCT json_type(json, ?))" for _ in places)
    kinds = [
        set(kind or ()) for kind in connection.execute(f"SELECT {asked} FROM lines", places).fetchall()[0]
    ]
    nested = [name for name, kind in zip(names, kinds, strict=True) if kind & _NESTED and name not in opened]
    told = [at for at, kind in enumerate(kinds) if kind - _NESTED - {"NULL"}]
    values = ", ".join(
        f"CASE WHEN json_type(json, $p{at}) NOT IN ('ARRAY', 'OBJECT') "
        f"THEN json_extract_string(json, $p{at}) END AS c{at}"
        for at in told
    )
    query = f"SELECT line{', ' * bool(values)}{values} FROM lines ORDER BY line"
    found = connection.sql(query, params={f"p{at}": places[at] for at in told}).pl()
    return pl.DataFrame([_typed(found[f"c{at}"].alias(names[at]), kinds[at]) for at in told]), nested


def _typed(texts: pl.Series, kinds: set[str]) -> pl.Series:
    """Return values in the type that all of them have in JSON, else as text."""
    import polars as pl

    plain = kinds - _NESTED - {"NULL"}
    if plain == {"BOOLEAN"}:
        return texts == "true"
    if plain <= {*_WHOLE, "DOUBLE"}:
        numbers = texts.cast(pl.Int64 if plain <= _WHOLE else pl.Float64, strict=False)
        if numbers.null_count() == texts.null_count():
            return numbers
    return texts
