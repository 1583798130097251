"""From a table of episodes to a study: runs, episodes, evaluations, tasks, written as registers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import polars as pl
from polars import selectors

from toolkit.errors import DamagedError
from toolkit.registers.arrow import Row, parquet_bytes, shape, to_arrow
from toolkit.registers.columns import WORDS, Column, MissingData, Table, Type, attributes_text
from toolkit.registers.episode_counts import OUTCOMES, PLACE, count_run
from toolkit.registers.importing.mapping import OF_EPISODES, OF_RUNS, OF_TASKS, TARGETS, TableMapping
from toolkit.registers.importing.source import FILE, ROW, as_codes, converted, refused
from toolkit.registers.row_tables import EPISODES, TASK_POOLS
from toolkit.registers.schema import EVALUATIONS, RUNS, TABLES
from toolkit.registers.writer import table_files
from toolkit.structs import replace

_TASK_NAME = Column("task", "Name of a task in the table.", Type.STRING)
_RUN_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)


def rows_of(
    source: pl.DataFrame,
    mapping: TableMapping,
    scores: Scores | None = None,
    missing: MissingData | None = None,
    attributes: Attributes | None = None,
) -> pl.DataFrame:
    """Return the rows of a log in the registers' types, with runs and schedules named."""
    rows = _converted(source, mapping, scores, missing)
    return _named(with_attributes(rows, source, mapping, attributes or {}), mapping)


def tables_of(
    source: pl.DataFrame,
    mapping: TableMapping,
    scores: Scores | None = None,
    missing: MissingData | None = None,
    attributes: Attributes | None = None,
) -> dict[str, pl.DataFrame]:
    """Return the tables of a study, as `counted` does; arguments and errors as those of `rows_of` as well."""
    return counted(rows_of(source, mapping, scores, missing, attributes), scores, missing)


def counted(
    rows: pl.DataFrame, scores: Scores | None = None, missing: MissingData | None = None
) -> dict[str, pl.DataFrame]:
    """Return the tables of a study by name, each sorted by its key and counted from the episodes."""
    tasks = numbered(rows)
    places, named = combinations(rows, ["pool", "task"])
    index = named.join(tasks, on=["pool", "task"], how="left", maintain_order="left")["index"]
    rows = rows.with_columns(index.gather(places).alias("task"))
    if missing is None:
        check_unique(rows)
    else:
        rows = completed(rows, missing, scores)
    names = [name for name in EPISODES.column_names if name in rows.columns]
    episodes = rows.select(names)[identities(rows).arg_sort()]
    runs = _runs(rows)
    tables = {
        RUNS.name: runs,
        EPISODES.name: episodes,
        EVALUATIONS.name: _evaluations(episodes, runs),
        TASK_POOLS.name: tasks.select(
            "pool",
            "index",
            pl.col("task").cast(pl.String).alias("task_id"),
            *(n for n in TOLD_OF_TASKS if n in tasks.columns),
        ),
    }
    return {
        name: table if name == EPISODES.name else table.sort(TABLES[name].key)
        for name, table in tables.items()
    }


def _converted(
    source: pl.DataFrame, mapping: TableMapping, scores: Scores | None, missing: MissingData | None
) -> pl.DataFrame:
    absent = [name for name in mapping.read.values() if name not in source.columns]
    if absent:
        raise DamagedError(
            "the table lacks a column that the mapping names",
            expected=", ".join(absent),
            found=", ".join(name for name in source.columns if name != ROW),
        )
    constants = {name: pl.Series(name, [value]) for name, value in mapping.constants.items()}
    columns = [source[ROW]]
    if FILE in source.columns:  # errors name it
        columns.append(as_codes(source[FILE].cast(pl.String)))
    for target in mapping.targets:
        column = _TASK_NAME if target == _TASK_NAME.name else TARGETS[target]
        if missing and (target in OUTCOMES or target in OF_NO_OUTCOME):
            column = replace(column, nullable=True)
        if target == "score" and scores:
            column = replace(column, low=float(scores[0]), high=float(scores[1]))
        if target in constants:
            constant = pl.DataFrame({ROW: ["constant"], target: constants[target]})
            cells = as_codes_or_numbers(converted(constant, column, target, {}))
            cells = cells.new_from_index(0, source.height).alias(target)
        else:
            words = mapping.values.get(target, {})
            cells = converted(source, column, mapping.columns[target], words)
            cells = cells if target in OF_TASKS else as_codes_or_numbers(cells)
        columns.append(cells)
    return _with_prompts(pl.DataFrame(columns))


def _with_prompts(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows that say their task's prompt, where another row of the task does; else it is empty."""
    if "prompt" not in rows.columns:
        return rows
    own = pl.col("prompt").cast(pl.String).replace("", None)
    return rows.with_columns(own.fill_null(own.drop_nulls().first().over("pool", "task")).fill_null(""))


def as_codes_or_numbers(cells: pl.Series) -> pl.Series:
    """Return a column of words as their places among them, and another as it is."""
    return as_codes(cells) if cells.dtype == pl.String else cells


def _named(rows: pl.DataFrame, mapping: TableMapping) -> pl.DataFrame:
    """Return the rows with runs and schedules, named where the mapping leaves them out."""
    if "run_id" not in mapping.targets:
        place = ["condition", "arm", "seed"]
        numbers, places = combinations(rows, place)
        names = places.select(run_id=pl.format("{}-{}-s{}", *place))["run_id"]
        rows = rows.with_columns(as_codes(names).gather(numbers))
    odd = [name for name in rows["run_id"].unique() if not _RUN_NAME.fullmatch(name)]
    if odd:
        raise DamagedError(
            "a run has a name that no file can have",
            expected="letters, digits, hyphens, dots and underscores, at most 100",
            found=repr(min(odd)),
            remedy="map run_id to a column with plain names, or translate them under [values.run_id]",
        )
    if "schedule" not in mapping.targets:
        evaluation = ["run_id", "phase", "pool", "regime", "step", "task"]
        most = rows.group_by(evaluation).len().sort("len").row(-1, named=True)
        if most["len"] > MOST_EPISODES:
            raise DamagedError(
                "a task has more episodes in one evaluation than a register can number",
                expected=f"at most {MOST_EPISODES}",
                found=f"{most['len']} of task {most['task']!r} in run {most['run_id']}",
                remedy="map the column that tells its episodes apart: step, regime or condition",
            )
        rows = rows.with_columns(schedule=(pl.col(ROW).cum_count().over(evaluation) - 1).cast(pl.Int16))
    return rows


def _runs(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row a run, its values those of all its rows."""
    told = [name for name in OF_RUNS if name in rows.columns and name != "run_id"]
    if "launched_at" in told:  # a run in several logs was launched with the first
        rows = rows.with_columns(pl.col("launched_at").min().over("run_id"))
    runs = rows.select("run_id", *told).unique()
    twice = runs.filter(pl.col("run_id").is_duplicated()).sort("run_id")
    if twice.height:
        run = twice["run_id"][0]
        mine = twice.filter(pl.col("run_id") == run)
        name = next(name for name in told if mine[name].n_unique() > 1)
        raise DamagedError(
            f"run {run!r} contradicts itself",
            expected=f"one {name} a run",
            found=", ".join(map(str, mine[name].unique().sort().to_list()[:5])),
        )
    counted = rows.group_by("run_id").agg(episodes=pl.len().cast(pl.Int32))
    runs = runs.join(counted, on="run_id")
    return runs.select(name for name in RUNS.column_names if name in runs.columns)


def _evaluations(episodes: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Return one row an evaluation, counted as whoever verifies them counts."""
    place = {run["run_id"]: run for run in runs.select("run_id", "condition", "arm", "seed").to_dicts()}
    evaluations = [
        place[run] | row
        for run, part in _by_run(episodes)
        for row in count_run(run, part, EVALUATIONS.column_names).evaluations
    ]
    return frame(EVALUATIONS.narrowed(evaluations[0]), evaluations)


def _by_run(episodes: pl.DataFrame) -> Iterator[tuple[str, Any]]:
    """Yield the rows of each run as the registers have them, a `pyarrow.Table`."""
    table = EPISODES.narrowed(episodes.columns)
    start = 0
    for length in episodes["run_id"].rle().struct.field("len"):
        part = _in_texts(episodes.slice(start, length))
        yield part["run_id"][0], shape(table, part.to_arrow())
        start += length


def _in_texts(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(selectors.enum().cast(pl.String))


def frame(table: Table, rows: Sequence[Row]) -> pl.DataFrame:
    """Return rows of a register as a frame."""
    made = pl.from_arrow(to_arrow(table, rows))
    if not isinstance(made, pl.DataFrame):
        raise TypeError(made)
    return made


LISTED_WORDS = 5


def files_of(
    tables: Mapping[str, pl.DataFrame], words: Mapping[str, tuple[str, ...]]
) -> dict[str, dict[str, bytes]]:
    """Return the Parquet files of a study by table and name."""
    _check_words(tables[EPISODES.name], tables[RUNS.name], words)
    return {name: _files(TABLES[name].with_words(words), table) for name, table in tables.items()}


def _check_words(episodes: pl.DataFrame, runs: pl.DataFrame, words: Mapping[str, tuple[str, ...]]) -> None:
    """Check that rows say only words that are declared."""
    for column, own in WORDS.items():
        used = (runs if column in runs.columns else episodes)[column].unique().sort().to_list()
        declared = words.get(column, own)
        unknown = [word for word in used if word not in declared]
        if unknown:
            raise DamagedError(
                f"the table says a word for {column} that the registration does not declare",
                expected=", ".join(declared),
                found=", ".join(unknown[:LISTED_WORDS]) + (", ..." if len(unknown) > LISTED_WORDS else ""),
                remedy=f"translate it under [values.{column}] of the mapping, or declare it under [words] of "
                "the rules before they are frozen",
            )


def _files(table: Table, rows: pl.DataFrame) -> dict[str, bytes]:
    """Return a table's files by name, in the order of its rows: one a run for episodes."""
    table = table.narrowed(rows.columns)
    if table.name != EPISODES.name:
        return table_files(table.name, shape(table, _in_texts(rows).to_arrow()))
    return {f"{table.name}/{run}.parquet": parquet_bytes(table.name, part) for run, part in _by_run(rows)}


NOTHING = {Type.BOOL: False, Type.INT16: 0, Type.INT32: 0, Type.FLOAT64: 0.0}
"""What stands in a column of an episode that has no outcome, and counts for nothing."""
_OF_EVERY_EPISODE = (*EPISODES.key, "schedule_seed", *OUTCOMES)
OF_NO_OUTCOME = frozenset(
    name
    for name, column in {**OF_TASKS, **OF_EPISODES}.items()
    if name in OF_TASKS or (column.type in NOTHING and name not in _OF_EVERY_EPISODE)
)
"""Columns that may be empty where there is no outcome."""
MOST_TASKS = MOST_EPISODES = 2**15
Scores = tuple[Fraction, Fraction]
_SET = ("phase", "pool", "regime")
_KEY = list(EPISODES.key)


def identities(rows: pl.DataFrame) -> pl.Series:
    """Return a number for each episode, ordered as the key of `episodes` is: less to sort than its parts."""
    return _numbered_within(rows, ["run_id", *PLACE])


def combinations(rows: pl.DataFrame, names: Sequence[str]) -> tuple[pl.Series, pl.DataFrame]:
    """Return which combination of some columns each row has, and these in order, without copying all rows."""
    codes = pl.zeros(rows.height, pl.Int64, eager=True)
    for name in names:
        values = rows[name].to_physical()
        different = values.unique().sort()
        codes = codes * len(different) + different.search_sorted(values)
    firsts = pl.DataFrame({"code": codes}).with_row_index("first").unique("code", keep="first").sort("code")
    return firsts["code"].search_sorted(codes), rows.select(names)[firsts["first"]]


def _numbered_within(rows: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Return numbers of episodes that are alike where these columns, task and schedule are."""
    numbers = combinations(rows, names)[0].cast(pl.Int64)
    return (numbers * MOST_TASKS + rows["task"]) * MOST_EPISODES + rows["schedule"]


_REPETITIONS = (
    "if they are repetitions that no column tells apart, leave schedule out to have them numbered; "
)


def check_unique(rows: pl.DataFrame) -> None:
    """Check that every episode is there once."""
    episodes = identities(rows)
    ordered = episodes.sort()
    if (ordered == ordered.shift(1)).any():
        twice = rows.filter(episodes.is_duplicated()).sort(*_KEY, ROW)
        first = twice.row(0, named=True)
        same = twice.filter(*(twice[name] == first[name] for name in _KEY)).head(5)
        several = FILE in same.columns and same[FILE].n_unique() > 1
        numbers = [f"{row[ROW]} of {row[FILE]}" if several else str(row[ROW]) for row in same.to_dicts()]
        raise DamagedError(
            "an episode is in the table twice",
            expected="one row a run, evaluation, task and schedule",
            found=f"rows {' and '.join(numbers)}: " + ", ".join(f"{name}={first[name]}" for name in _KEY),
            remedy="map the column that tells them apart: schedule, or condition, regime, step; "
            + ("" if several else _REPETITIONS)
            + "if they are attempts, register under [missing] which counts",
        )


def completed(rows: pl.DataFrame, missing: MissingData, scores: Scores | None) -> pl.DataFrame:
    """Return episodes with what the registration says of those that are there twice or have no outcome."""
    if missing.attempts != "one":
        rows = rows.sort(ROW).unique(_KEY, keep="first" if missing.attempts == "first" else "last")
    check_unique(rows)
    lacking = _lacking(rows)
    rows = pl.concat([rows, lacking], how="diagonal") if lacking.height else rows
    outcomes = [name for name in OUTCOMES if name in rows.columns]
    rows = rows.with_columns(missing=pl.any_horizontal(pl.col(name).is_null() for name in outcomes))
    for name in (name for name in rows.columns if name in OF_NO_OUTCOME):
        column = TARGETS[name]
        if rows.filter(pl.col(name).is_null() & ~pl.col("missing")).height:
            raise refused(
                rows, rows[name].is_null() & ~rows["missing"], column, name, "a value beside an outcome"
            )
        if column.type in NOTHING:
            rows = rows.with_columns(pl.col(name).fill_null(NOTHING[column.type]))
    if not rows["missing"].any():
        return rows.drop("missing")
    lowest = {"true_success": False, "score": float(scores[0]) if scores else 0.0}
    return rows.with_columns(pl.col(name).fill_null(lowest[name]) for name in outcomes)


def _episodes_in_full(rows: pl.DataFrame) -> int:
    """Return how many episodes there would be if every evaluation had what any on its set has."""
    _, sets = combinations(rows, _SET)
    met = _numbered_within(rows, _SET).unique() // (MOST_TASKS * MOST_EPISODES)
    sizes = sets.with_columns(met.alias("set").value_counts(name="size").sort("set")["size"])
    _, evaluations = combinations(rows, ["run_id", *_SET, "step"])
    return int(evaluations.join(sizes, on=_SET)["size"].sum())


def _lacking(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the episodes that an evaluation lacks and another on its set has, without outcomes."""
    if rows.height == _episodes_in_full(rows):
        return rows.clear()
    grid = rows.select(*_SET, "task", "schedule").unique()
    of_run = [name for name in RUNS.column_names if name in rows.columns and name != "run_id"]
    evaluations = rows.group_by("run_id", *_SET, "step").agg(pl.col(name).first() for name in of_run)
    lacking = evaluations.join(grid, on=_SET).join(rows, on=_KEY, how="anti")
    tasks = rows.group_by("pool", "task").agg(pl.col("prompt").first()) if "prompt" in rows.columns else None
    lacking = lacking if tasks is None else lacking.join(tasks, on=["pool", "task"], how="left")
    told = {
        column.name: column
        for column in EPISODES.columns
        if column.name in rows.columns and column.name not in lacking.columns and column.name not in OUTCOMES
    }
    unsaid = [name for name, column in told.items() if column.type not in NOTHING]
    if unsaid:
        first = lacking.sort(_KEY).row(0, named=True)
        raise DamagedError(
            "the log lacks an episode, of which a mapped column cannot be made up",
            expected=", ".join(unsaid),
            found=", ".join(f"{name}={first[name]}" for name in _KEY),
            remedy="leave the column out of the mapping, or add the episode to the log",
        )
    return lacking.with_columns(
        pl.lit(NOTHING[column.type]).cast(rows.schema[name]).alias(name) for name, column in told.items()
    )


Attributes = Mapping[str, tuple[str, ...]]
"""Attribute of a task → the words that are declared for it."""
ATTRIBUTES = "attributes"
TOLD_OF_TASKS = (*OF_TASKS, ATTRIBUTES)


def with_attributes(
    rows: pl.DataFrame, source: pl.DataFrame, mapping: TableMapping, declared: Attributes
) -> pl.DataFrame:
    """Return rows with the attributes of their tasks as one text, where any are registered."""
    if {*mapping.attributes} != {*declared}:
        raise DamagedError(
            "the mapping gives other attributes of tasks than those that the registration declares",
            expected=", ".join(declared) or "none",
            found=", ".join(mapping.attributes) or "none",
            remedy="name the column of each under [attributes] of the mapping; those of the rules are frozen",
        )
    if not declared:
        return rows
    cells = pl.DataFrame([_attribute(source, mapping, name, declared[name]) for name in declared])
    said = cells.unique(maintain_order=True)
    texts = [attributes_text(row) for row in said.to_dicts()]
    told = cells.join(
        said.with_columns(pl.Series(ATTRIBUTES, texts)), on=cells.columns, how="left", maintain_order="left"
    )
    return rows.with_columns(as_codes(told[ATTRIBUTES]))


def _attribute(source: pl.DataFrame, mapping: TableMapping, name: str, words: tuple[str, ...]) -> pl.Series:
    column = Column(name, "An attribute of the task.", Type.STRING)
    cells = converted(source, column, mapping.attributes[name], mapping.values.get(name, {}))
    unknown = ~cells.is_in(words)
    if unknown.any():
        raise refused(source, unknown, column, mapping.attributes[name], ", ".join(words))
    return cells


def numbered(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks by pool, numbered: by their number where all have one, else by their name."""
    told = [name for name in TOLD_OF_TASKS if name in rows.columns]
    tasks = rows.group_by("pool", "task", *told).agg(pl.col(ROW).min()).sort(ROW)
    twice = tasks.filter(tasks.select("pool", "task").is_duplicated())
    if twice.height:
        first, *others = twice.to_dicts()
        same = (row for row in others if (row["pool"], row["task"]) == (first["pool"], first["task"]))
        other = next(same)
        differ = [name for name in told if first[name] != other[name]]
        raise DamagedError(
            f"a task has two texts under {', '.join(differ)}",
            expected="one text a task",
            found=f"task {first['task']!r} of pool {first['pool']!r}: "
            + "; ".join(f"{row[differ[0]]!r} in row {row[ROW]}" for row in (first, other)),
        )
    tasks = tasks.drop(ROW)
    name = pl.col("task").cast(pl.String)
    tasks = tasks.sort("pool", name.cast(pl.Int64, strict=False), name, nulls_last=True)
    tasks = tasks.with_columns(index=(pl.col("task").cum_count().over("pool") - 1).cast(pl.Int32))
    if tasks["index"].max() >= MOST_TASKS:  # type: ignore[operator]
        raise DamagedError(
            "a pool has more tasks than a register can number", expected=f"at most {MOST_TASKS}"
        )
    return tasks
