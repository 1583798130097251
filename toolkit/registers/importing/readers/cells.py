"""From the nested documents of a log to columns with one value a row."""

from __future__ import annotations

import glob
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, ToolkitError
from toolkit.files import read_up_to
from toolkit.registers.importing.source import FILE, LONGEST_LINE, MOST_CELLS, MOST_COLUMNS

if TYPE_CHECKING:
    import duckdb
    import polars as pl


Cell = str | int | float | bool | None
LARGEST_DOCUMENT = 2**26
"""Bytes of a document that describes a run: with a template of every task it has a thousandth."""
_LARGEST_WHOLE = 2**63


def bounded(what: str, count: int, most: int, path: Path) -> None:
    """Check that a log has no more of something than one can have."""
    if count > most:
        raise DamagedError(
            f"the log has more {what} than one can have",
            expected=f"{most} at most",
            found=f"{count}, or more",
            where=path,
            remedy="import it in parts",
        )


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Say of which file it was whatever went wrong with reading it."""
    import duckdb
    import polars as pl

    wrong = (ValueError, TypeError, LookupError, RecursionError, ArithmeticError)
    try:
        yield
    except ToolkitError:
        raise
    except (*wrong, OSError, EOFError, NotImplementedError, pl.exceptions.PolarsError, duckdb.Error) as error:
        raise DamagedError(
            f"{path.name} is not {what}",
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            where=path,
        ) from None


def document(path: Path, what: str) -> dict[str, Any]:
    """Return the JSON object that a file holds."""
    raw = read_up_to(path, LARGEST_DOCUMENT + 1)
    bounded("bytes in the description of a run", len(raw), LARGEST_DOCUMENT, path)
    with reading(path, what):
        content = json.loads(raw)
        if not isinstance(content, dict):
            raise TypeError("no JSON object")
    return content


def part(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the document that another has under a name; an empty one where it has none."""
    found = content.get(name)
    if not isinstance(found, Mapping | None):
        raise TypeError(f"{name!r} is no document")
    return dict(found or {})


def flat(content: Mapping[str, Any], prefix: str, left_out: set[str]) -> dict[str, Cell]:
    """Return the values of a nested document by their dotted names."""
    cells: dict[str, Cell] = {}
    for name, value in content.items():
        if isinstance(value, Mapping):
            cells |= flat(value, f"{prefix}{name}.", left_out)
        elif value is None or isinstance(value, str | int | float):
            cells[f"{prefix}{name}"] = value
        elif value:
            left_out.add(f"{prefix}{name}")
    return cells


def frame(rows: Sequence[Mapping[str, Any]], path: Path) -> pl.DataFrame:
    """Return rows as a table: a column of its own type where all its values have one, else text.

    Columns without any value are left out.
    """
    import polars as pl

    names = list(dict.fromkeys(name for row in rows for name in row))
    bounded("columns", len(names), MOST_COLUMNS, path)
    bounded("cells", len(names) * len(rows), MOST_CELLS, path)
    columns = [_column(name, [row.get(name) for row in rows]) for name in names]
    return pl.DataFrame([one for one in columns if one.null_count() < len(one)])


def _column(name: str, values: list[Cell]) -> pl.Series:
    import polars as pl

    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pl.Series(name, values, pl.Boolean)
    if kinds == {int} and all(abs(value or 0) < _LARGEST_WHOLE for value in values if isinstance(value, int)):
        return pl.Series(name, values, pl.Int64)
    if kinds and kinds <= {int, float}:
        return pl.Series(name, values, pl.Float64, strict=False)
    texts = [str(value).lower() if isinstance(value, bool) else value for value in values]
    return pl.Series(name, [text if text is None else str(text) for text in texts], pl.String)


def with_runs(rows: pl.DataFrame, runs: Sequence[Mapping[str, Any]], key: str, path: Path) -> pl.DataFrame:
    """Return rows with what is told of the run of each beside them."""
    told = frame([{key: number, **run} for number, run in enumerate(runs)], path)
    return told.join(rows, on=key, how="inner", maintain_order="right").drop(key)


def candidates(table: pl.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that arms are to be looked for in: what differs on one pool, or else the file."""
    import polars as pl

    own = [name for name in dict.fromkeys(names) if name in table.columns]
    differ = table.group_by("pool").agg(pl.col(own).n_unique()).select(pl.col(own) > 1)
    return tuple(name for name in own if differ[name].any()) or (FILE,)


def with_regimes(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return a table in which a column is the regime, where some pool of a file has several values of it."""
    import polars as pl

    if name not in table.columns:
        return table
    most = table.group_by(FILE, "pool").agg(pl.col(name).n_unique())[name].max()
    return table.rename({name: "regime"}) if int(str(most)) > 1 else table


def with_prompts(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return a table in which a column is the prompt, where each task has one."""
    if name not in table.columns or table[name].null_count():
        return table
    tasks, texts = (table.select("pool", "task", *more).n_unique() for more in ((), (name,)))
    return table.rename({name: "prompt"}) if tasks == texts else table


def with_outcome(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return a table with an outcome under the name that registers have for its sort.

    Scores that are 0 or 1 wherever they are there become truth values; one that is not a number (NaN) is
    none. Where there is none, and no other error, `error` says so.
    """
    import polars as pl

    cells = table[name]
    if cells.dtype.is_numeric():
        cells = cells.cast(pl.Float64).fill_nan(None)
        told = cells.drop_nulls()
        if len(told) and told.is_in([0.0, 1.0]).all():
            cells = cells.cast(pl.Boolean)
    table = table.with_columns(cells.alias("true_success" if cells.dtype == pl.Boolean else "score"))
    if not cells.null_count() and "error" not in table.columns:
        return table
    unscored = pl.when(cells.is_null()).then(pl.lit("it was not scored"))
    errors = [pl.col("error")] if "error" in table.columns else []
    return table.with_columns(pl.coalesce(*errors, unscored).alias("error"))


def moment(seconds: object) -> str | None:
    """Return seconds since 1970 as ISO 8601 in UTC, a text that is such a time already as it is."""
    if not isinstance(seconds, str | int | float) or seconds == "":
        return None
    try:
        number = float(seconds)
    except ValueError:
        return str(seconds)
    if not math.isfinite(number):
        return None
    try:
        return datetime.fromtimestamp(number, UTC).isoformat(timespec="microseconds")
    except (OverflowError, OSError, ValueError):
        return None


def below(file: Path, source: Path) -> str:
    """Return what names a file of a source: its name without its ending, or its path below a folder."""
    named = file.relative_to(source) if source.is_dir() else Path(file.name)
    return named.with_suffix("").as_posix()


_NESTED = {"ARRAY", "OBJECT"}
_WHOLE = {"BIGINT", "UBIGINT"}


def read_json_lines(path: Path, what: str, opened: Sequence[str] = ()) -> tuple[pl.DataFrame, list[str]]:
    """Return the values of JSON lines, in the order of the lines, and the names of what is no value."""
    import duckdb

    with reading(path, what), duckdb.connect() as connection:
        lines = f"read_ndjson_objects(?, maximum_object_size = {LONGEST_LINE})"
        connection.execute(
            f"CREATE TEMP TABLE lines AS SELECT row_number() OVER () AS line, json FROM {lines}",
            [glob.escape(str(path))],
        )
        pointers = _pointers(connection, "", "", path)
        for name in opened:
            pointers |= _pointers(connection, f"/{_escaped(name)}", f"{name}.", path)
        count = connection.execute("SELECT count(*) FROM lines").fetchall()[0][0]
        bounded("columns", len(pointers), MOST_COLUMNS, path)
        bounded("cells", len(pointers) * count, MOST_CELLS, path)
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
