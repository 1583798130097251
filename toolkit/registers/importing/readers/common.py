"""What readers share: which files are a log's, runs as columns beside their rows, nested values as cells."""

from __future__ import annotations

import glob
import hashlib
import json
import math
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import yaml

from toolkit.errors import EXCERPT, DamagedError, ToolkitError
from toolkit.files import file_sha256, read_up_to
from toolkit.registers.importing.source import (
    FILE,
    LARGEST_TABLE,
    LONGEST_LINE,
    MOST_CELLS,
    MOST_COLUMNS,
    Log,
    bounded,
    is_truth,
    json_object,
)


@dataclass(frozen=True)
class Reader:
    """What reads a format, with words for people on what it is and what is read."""

    name: str
    sources: str
    files: Callable[[Path], Sequence[Path]]  # those of a path that are of the format, by name and first bytes
    read: Callable[[list[Path]], Log]  # the whole log, or one clear error


Cell = str | int | float | bool | None
Row = dict[str, Cell]
LARGEST_DOCUMENT = 2**26
"""Bytes of a document that describes a run: with a template of every task it has a thousandth."""
_LARGEST_WHOLE = 2**63
ENCRYPTED_MEMBER = 1
"""The flag of a member of an archive that is encrypted."""


def files_below(path: Path, fits: Callable[[Path], object]) -> list[Path]:
    """Return the files of a folder that fit, in order, without hidden ones; the path itself if it is one."""
    there = path.rglob("*") if path.is_dir() else (path,)
    return sorted(file for file in there if not is_hidden(file, path) and file.is_file() and fits(file))


def is_hidden(file: Path, folder: Path) -> bool:
    """Whether a file below a folder is none of its owner's: what notebooks, editors and macOS leave there."""
    return any(part.startswith(".") or part == "__MACOSX" for part in file.relative_to(folder).parts)


def check_each_once(files: Sequence[Path]) -> None:
    """Check that no two files of a log hold the same bytes: each row would be there twice."""
    sizes = Counter(file.stat().st_size for file in files)
    first: dict[str, Path] = {}
    for file in (file for file in files if sizes[file.stat().st_size] > 1):
        other = first.setdefault(file_sha256(file), file)
        if other is not file:
            raise DamagedError(
                "two files of the log are the same",
                found=f"{other} and {file}",
                remedy="leave one of them out",
            )


def sources(paths: Sequence[Path], reader: Reader, *, each_once: bool = True) -> list[tuple[Path, str]]:
    """Return the files of a log, each with its name: within the bounds, and none out of its folder."""
    found: dict[Path, str] = {}
    for path in paths:
        files = reader.files(path)
        check_within(path, files)
        found = {file: below(file, path) for file in files} | found
    if each_once:
        check_each_once(list(found))
    bounded("bytes", sum(file.stat().st_size for file in found), LARGEST_TABLE, paths[0])
    return list(found.items())


def check_new(key: object, seen: dict[object, Path], what: str, file: Path, remedy: str) -> None:
    """Check that no other file of a log has what this one has."""
    other = seen.setdefault(key, file)
    if other is not file:
        raise DamagedError(f"{what} is in two files of the log", found=f"{other} and {file}", remedy=remedy)


def named(pattern: str) -> Callable[[Path], re.Match[str] | None]:
    """Return what finds the files whose whole name has a pattern."""
    name = re.compile(pattern, re.DOTALL)
    return lambda file: name.fullmatch(file.name)


def beginning(file: Path) -> bytes:
    """Return the first bytes of a file; none of one that cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(4096)
    except OSError:
        return b""


def first_object(file: Path) -> dict[str, Any]:
    """Return the JSON object that the first line of a file is; an empty one where it is none."""
    try:
        with file.open("rb") as opened:
            first = json.loads(opened.readline(LONGEST_LINE))
    except (OSError, ValueError, RecursionError):
        return {}
    return first if isinstance(first, dict) else {}


@contextmanager
def reading(path: Path, what: str, expected: str | None = None, remedy: str | None = None) -> Iterator[None]:
    """Say of which file it was whatever went wrong with reading it."""
    wrong = (ValueError, TypeError, LookupError, ArithmeticError, NotImplementedError, RecursionError)
    unreadable = (OSError, EOFError, zipfile.BadZipFile, zlib.error, yaml.YAMLError)
    try:
        yield
    except ToolkitError:
        raise
    except (*wrong, *unreadable, pl.exceptions.PolarsError, duckdb.Error) as error:
        raise DamagedError(
            f"{path.name} is not {what}", expected=expected, found=_cause(error), where=path, remedy=remedy
        ) from None


def _cause(error: Exception) -> str:
    """Return what an error of a library says: its first line; of Pydantic's also place and cause."""
    lines = str(error).splitlines()[: 3 if hasattr(error, "error_count") else 1]
    said = "; ".join(line.strip() for line in lines)[:EXCERPT] or type(error).__name__
    return f"no {said}" if isinstance(error, KeyError) else said


def parsed(path: Path, what: str, most: int = LARGEST_DOCUMENT) -> Any:
    """Return the JSON value that a file holds."""
    raw = read_up_to(path, most + 1)
    bounded("bytes in the description of a run", len(raw), most, path)
    with reading(path, what):
        return json.loads(raw)


def document(path: Path, what: str, most: int = LARGEST_DOCUMENT) -> dict[str, Any]:
    """Return the JSON object that a file holds."""
    content = parsed(path, what, most)
    with reading(path, what):
        if not isinstance(content, dict):
            raise TypeError("no JSON object")
    return content


def part(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the document that another has under a name; an empty one where it has none."""
    found = content.get(name) if isinstance(content, Mapping) else content
    if not isinstance(content, Mapping) or not isinstance(found, Mapping | None):
        raise TypeError(f"{name!r} is no document")
    return dict(found or {})


def parts(content: object, name: str) -> list[dict[str, Any]]:
    """Return documents of a list."""
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        raise TypeError(f"{name!r} is no list of documents")
    return content


def documents(content: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the documents that another lists under a name; none where it lists nothing."""
    return parts(content.get(name) or [], name)


def flat(content: Mapping[str, Any], left_out: set[str], prefix: str = "") -> dict[str, Cell]:
    """Return the values of a nested document by their dotted names."""
    cells: dict[str, Cell] = {}
    for name, value in content.items():
        if isinstance(value, Mapping):
            cells |= flat(value, left_out, f"{prefix}{name}.")
        elif value is None or isinstance(value, str | int | float):
            cells[f"{prefix}{name}"] = value
        elif value:
            left_out.add(f"{prefix}{name}")
    return cells


def frame(rows: Sequence[Mapping[str, Any]], path: Path) -> pl.DataFrame:
    """Return rows as a table: a column of its own type where all its values have one, else text."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    bounded("columns", len(names), MOST_COLUMNS, path)
    bounded("cells", len(names) * len(rows), MOST_CELLS, path)
    columns = [_column(name, [row.get(name) for row in rows]) for name in names]
    return pl.DataFrame([one for one in columns if one.null_count() < len(one)])


def _column(name: str, values: list[Cell]) -> pl.Series:
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
    own = [name for name in dict.fromkeys(names) if name in table.columns]
    differ = table.group_by("pool").agg(pl.col(own).n_unique()).select(pl.col(own) > 1)
    return tuple(name for name in own if differ[name].any()) or (FILE,)


def with_regimes(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return a table in which a column is the regime, where some pool of a file has several values of it."""
    if name not in table.columns:
        return table
    most = table.group_by(FILE, "pool").agg(pl.col(name).n_unique())[name].max()
    return table.rename({name: "regime"}) if int(str(most)) > 1 else table


MOST_POOLS = 20
"""Pools: above these, a log of many small ones is read by its groups."""


def with_groups(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table of many pools by their groups: a task is then named by its pool, too."""
    if "group" not in table.columns or table["pool"].n_unique() <= MOST_POOLS:
        return table
    grouped = pl.col("group").is_not_null()
    return table.with_columns(
        subtask=pl.col("pool"),
        task=pl.when(grouped).then(pl.format("{}:{}", "pool", "task")).otherwise("task"),
        pool=pl.coalesce("group", "pool"),
    )


def check_tasks(table: pl.DataFrame, told: str, path: Path) -> None:
    """Check that a name means the same task in every run, as a column tells: runs are compared by it."""
    if told not in table.columns:
        return
    counts = table.drop_nulls(told).group_by("pool", "task").agg(pl.col(told).n_unique())
    several = counts.filter(pl.col(told) > 1).sort("pool", "task")
    if several.height:
        first = several.row(0, named=True)
        raise DamagedError(
            "two runs have different tasks under one name",
            expected=f"one {told} a task",
            found=f"{first[told]} of task {first['task']} of {first['pool']}"
            + (f", and {several.height - 1} more" if several.height > 1 else ""),
            where=path,
            remedy="import runs on the same data together, others apart",
        )


def with_prompts(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return a table in which a column is the prompt, where no task has two; rows may lack it."""
    said = table.drop_nulls(name) if name in table.columns else table.clear()
    tasks, texts = (
        (said.select("pool", "task", *more).n_unique() for more in ((), (name,))) if said.height else (0, 1)
    )
    return table.rename({name: "prompt"}) if tasks == texts else table


def with_outcome(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return a table with an outcome as `true_success`, where it is 0 or 1 throughout, or as `score`."""
    cells = table[name]
    if cells.dtype.is_numeric():
        cells = cells.cast(pl.Float64).fill_nan(None)
        told = cells.drop_nulls()
        if len(told) and told.is_in([0.0, 1.0]).all():
            cells = cells.cast(pl.Boolean)
    is_success = cells.dtype == pl.Boolean or (cells.dtype == pl.String and is_truth(cells))
    table = table.with_columns(cells.alias("true_success" if is_success else "score"))
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


_LENIENT = r"""[,:\[]\s*[+-]?(nan|inf)|,\s*[\]}]"""
"""What DuckDB lets through, and JSON may not be."""
_NESTED = {"ARRAY", "OBJECT"}
_WHOLE = {"BIGINT", "UBIGINT"}


def read_json_lines(path: Path, what: str, opened: Sequence[str] = ()) -> tuple[pl.DataFrame, list[str]]:
    """Return the values of JSON lines, in the order of the lines, and the names of what is no value."""
    with reading(path, what), duckdb.connect() as connection:
        lines = f"read_ndjson_objects(?, maximum_object_size = {LONGEST_LINE})"
        try:
            connection.execute(
                f"CREATE TEMP TABLE lines AS SELECT row_number() OVER () AS line, json FROM {lines}",
                [glob.escape(str(path))],
            )
            doubtful = "SELECT json::VARCHAR FROM lines WHERE regexp_matches(json::VARCHAR, ?, 'i')"
            for (text,) in connection.execute(doubtful, [_LENIENT]).fetchall():
                json_object(text.encode(), 1)
        except (duckdb.Error, ValueError):
            _check_objects(path)  # says which line it is
            raise
        pointers = _pointers(connection, "", "", path)
        for name in opened:
            pointers |= _pointers(connection, f"/{_escaped(name)}", f"{name}.", path)
        count = connection.execute("SELECT count(*) FROM lines").fetchall()[0][0]
        bounded("columns", len(pointers), MOST_COLUMNS, path)
        bounded("cells", len(pointers) * count, MOST_CELLS, path)
        return _table(connection, pointers, opened)


def _check_objects(path: Path) -> None:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                json_object(line, number)


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
    return pl.DataFrame({name: _typed(texts, kind) for (name, kind), texts in columns}), nested


def _typed(texts: pl.Series, kinds: set[str]) -> pl.Series:
    """Return values in the type that all of them have in JSON, else as text."""
    plain = kinds - _NESTED
    if plain == {"BOOLEAN"}:
        return texts == "true"
    if plain <= {*_WHOLE, "DOUBLE"}:
        numbers = texts.cast(pl.Int64 if plain <= _WHOLE else pl.Float64, strict=False)
        if numbers.null_count() == texts.null_count():
            return numbers
    return texts


# Runs.

STEM = "run.stem"
"""Column with the name of a run without its seed."""
SEEDS = tuple(f"config.{name}" for name in ("seed", "random_seed", "rng_seed", "run_seed"))
"""Settings that are a run's seed."""
TASK, HISTORY = "task", "history"
"""A history has no tasks: all that it measured was measured on this one."""
OWN = "own."
"""Before the name of a column of the log that a reader's column would hide."""
_SEED = re.compile(r"(?:^|[-_./])(?:seed|s)[-_=]?(\d{1,19})(?=$|[-_./])", re.IGNORECASE)
_DEEPEST = 20


@dataclass(frozen=True)
class Run:
    """A run of a log."""

    folder: Path  # its folder, or the one file that it has
    table: pl.DataFrame  # its rows
    settings: Mapping[str, str] = field(default_factory=dict)  # dotted name, as `config.seed` → text
    files: tuple[Path, ...] = ()  # what was read
    name: str | None = None  # what it is called, where that is not the name of its folder


def joined(name: str, runs: Sequence[Run], left_out: Iterable[str] = ()) -> Log:
    """Return the log that runs make together.

    1. A run has its own name, if every run has one, or that of its folder below the one that all lie in.
    2. Its seed is what its settings say, or what every name says: `grpo-s3`, `grpo/seed_3`.
    3. Settings in which runs differ are columns; the others are named as left out.
    """
    own = [run.name for run in runs if run.name is not None]
    names = own if len(set(own)) == len(runs) else run_names([run.folder for run in runs])  # 1
    stems, seeds = _named_seeds(names)
    told = [next((run.settings[key] for key in SEEDS if key in run.settings), None) for run in runs]
    is_told = None not in told
    if is_told or any("seed" in run.table.columns for run in runs):
        seeds = told if is_told else []  # 2
    keys = dict.fromkeys(key for run in runs for key in run.settings if not (is_told and key in SEEDS))
    differing = [key for key in keys if len({run.settings.get(key) for run in runs}) > 1]  # 3
    same = [key for key in keys if key not in differing]
    check_cells(sum(run.table.height for run in runs), max(run.table.width for run in runs) + len(differing))
    parts = []
    for number, run in enumerate(runs):
        told_of_run = {
            FILE: names[number],
            **({STEM: stems[number]} if stems else {}),
            **({"seed": seeds[number]} if seeds else {}),
            **{key: run.settings.get(key) for key in differing},
        }
        parts.append(with_constants(run.table, told_of_run))
    table = pl.concat(parts, how="diagonal_relaxed")
    if same:
        such = ", ".join(same[:3])
        left_out = (*left_out, f"{len(same)} settings that are the same in every run, such as {such}")
    of_run = (*([STEM] if stems else []), FILE, *differing)
    return Log(
        name, table, of_run, tuple(left_out), tuple(dict.fromkeys(file for run in runs for file in run.files))
    )


def run_names(folders: Sequence[Path]) -> list[str]:
    """Return what runs are called: their folders, below the folder that all have in common."""
    whole = [_called(Path(os.path.abspath(folder))) for folder in folders]  # noqa: PTH100 - links keep names
    base = Path(os.path.commonpath([folder.parent for folder in whole]))
    return [folder.relative_to(base).as_posix() for folder in whole]


def _called(folder: Path) -> Path:
    """Return a folder by the name of its repository, where it is a commit in the Hub's cache."""
    for above in (folder, *folder.parents):
        repository = above.parent.parent
        if above.parent.name == "snapshots" and "--" in repository.name:
            return repository.with_name(repository.name.rpartition("--")[2]) / folder.relative_to(above)
    return folder


def _named_seeds(names: Sequence[str]) -> tuple[list[str], list[str | None]]:
    """Return the names without their seeds, and the seeds; nothing where a name has none."""
    found = [list(_SEED.finditer(name)) for name in names]
    if not all(found):
        return [], []
    last = [matches[-1] for matches in found]
    stems = [
        (name[: match.start()] + name[match.end() :]).strip("-_./") or "run"
        for name, match in zip(names, last, strict=True)
    ]
    return stems, [match[1] for match in last]


def with_constants(table: pl.DataFrame, values: Mapping[str, str | None]) -> pl.DataFrame:
    """Return a table with columns of one text each."""
    texts = (pl.lit(value, dtype=pl.String).alias(name) for name, value in values.items())
    return set_apart(table, values).with_columns(texts)


def set_apart(table: pl.DataFrame, taken: Iterable[str]) -> pl.DataFrame:
    """Return a table whose own columns of names that a reader gives are called `own.NAME`."""
    return table.rename({name: OWN + name for name in taken if name in table.columns})


def numbered(table: pl.DataFrame, items: str | None = None) -> pl.DataFrame:
    """Return rollouts with `schedule` and `task`: a column's, or the start of their prompt's SHA-256."""
    table = set_apart(table, ("task", "schedule"))
    if items is None:
        prompts = table["prompt"].unique().drop_nulls()
        digests = [hashlib.sha256(prompt.encode()).hexdigest()[:16] for prompt in prompts]
        names = pl.DataFrame({"prompt": prompts, "task": pl.Series(digests, dtype=pl.String)})
        table = table.join(names, on="prompt", how="left", maintain_order="left")
    else:
        table = table.with_columns(task=pl.col(items))
    return table.with_columns(schedule=pl.int_range(pl.len()).over(["step", "task"]))


def flattened(document: object, left_out: set[str], where: Path) -> dict[str, str]:
    """Return the values of nested settings by dotted name, as text."""
    found: dict[str, str] = {}

    def visit(value: object, name: str, depth: int) -> None:
        if depth > _DEEPEST or len(found) + len(left_out) > MOST_COLUMNS:
            raise DamagedError(
                "the settings of a run are more than they can be",
                expected=f"{MOST_COLUMNS} at most, in documents at most {_DEEPEST} deep",
                where=where,
            )
        if isinstance(value, dict):
            for key, inner in value.items():
                visit(inner, f"{name}.{key}" if name else str(key), depth + 1)
        elif isinstance(value, bool):
            found[name] = str(value).lower()
        elif isinstance(value, int | float) or (
            # Half of a pair is no text.
            isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)
        ):
            found[name] = str(value)
        elif value is not None:
            left_out.add(name)

    visit(document, "", 0)
    return found


def check_within(folder: Path, files: Iterable[Path]) -> None:
    """Check that files lie in a folder, wherever their links lead; the Hub's cache has links of its own."""
    root = folder.resolve()
    if not root.is_dir():
        return
    cached = next((above.parent / "blobs" for above in root.parents if above.name == "snapshots"), root)
    for file in files:
        target = file.resolve()
        if root not in target.parents and cached not in target.parents:
            raise DamagedError(
                "a file of the log is a link that leads out of its folder",
                expected=f"a file in {folder}",
                found=target,
                where=file,
                remedy="put the file itself there, if it is the log's",
            )


def check_cells(rows: int, columns: int) -> None:
    """Check that runs make a table that can be held."""
    if rows * columns > MOST_CELLS:
        raise DamagedError(
            "the log has more cells than a table can have",
            expected=f"{MOST_CELLS} at most",
            found=f"{rows} rows of {columns} columns",
            remedy="read fewer runs at once",
        )
