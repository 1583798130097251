"""From a table of episodes to a study: runs, episodes, evaluations, tasks, written as registers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError
from toolkit.registers.arrow import Row, parquet_bytes, shape, to_arrow
from toolkit.registers.cards import repository_documents
from toolkit.registers.columns import WORDS, Column, MissingData, Table, Type
from toolkit.registers.episode_counts import OUTCOMES, count_run
from toolkit.registers.importing.attempts import (
    MOST_EPISODES,
    Scores,
    check_unique,
    combinations,
    completed,
    identities,
)
from toolkit.registers.importing.mapping import OF_RUNS, OF_TASKS, TARGETS, TableMapping
from toolkit.registers.importing.source import ROW, as_words, converted
from toolkit.registers.importing.tasks import TOLD_OF_TASKS, Attributes, numbered, with_attributes
from toolkit.registers.manifest import Manifest, RegistrationRef
from toolkit.registers.row_tables import EPISODES, TASK_POOLS
from toolkit.registers.schema import EVALUATIONS, RUNS, TABLES
from toolkit.registers.writer import table_files, write_study

if TYPE_CHECKING:
    import polars as pl

_TASK_NAME = Column("task", "Name of a task in the table.", Type.STRING)
_RUN_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)


def rows_of(
    source: pl.DataFrame,
    mapping: TableMapping,
    scores: Scores | None = None,
    missing: MissingData | None = None,
    attributes: Attributes | None = None,
) -> pl.DataFrame:
    """Return the rows of a log in the registers' types; words as their places among the words of a column.

    1. Every mapped column is converted, and every constant put beside them.
    2. Runs and schedules that the mapping does not name are named: a run by condition, arm and seed, a
       schedule by the order in which a task's episodes stand in the table.
    """
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
    """Return the tables of a study by name, each sorted by its key.

    1. Tasks are numbered within their pool.
    2. Of several attempts one counts, and what has no outcome counts as registered.
    3. Runs, evaluations and tasks are counted from the episodes.
    """
    import polars as pl

    tasks = numbered(rows)  # 1
    places, named = combinations(rows, ["pool", "task"])
    index = named.join(tasks, on=["pool", "task"], how="left", maintain_order="left")["index"]
    rows = rows.with_columns(index.gather(places).alias("task"))
    if missing is None:
        check_unique(rows)
    else:
        rows = completed(rows, missing, scores)  # 2
    names = [name for name in EPISODES.column_names if name in rows.columns]
    episodes = rows.select(names)[identities(rows).arg_sort()]
    runs = _runs(rows)
    tables = {  # 3
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
    import polars as pl

    absent = [name for name in mapping.read.values() if name not in source.columns]
    if absent:
        raise DamagedError(
            "the table lacks a column that the mapping names",
            expected=", ".join(absent),
            found=", ".join(name for name in source.columns if name != ROW),
        )
    constants = {name: pl.Series(name, [value]) for name, value in mapping.constants.items()}
    columns = [source[ROW]]
    for target in mapping.targets:
        column = _TASK_NAME if target == _TASK_NAME.name else TARGETS[target]
        if target in OUTCOMES and missing:
            column = replace(column, nullable=True)
        if target == "score" and scores:
            column = replace(column, low=float(scores[0]), high=float(scores[1]))
        if target in constants:
            constant = pl.DataFrame({ROW: ["constant"], target: constants[target]})
            cells = as_words_or_numbers(converted(constant, column, target, {}))
            cells = cells.new_from_index(0, source.height).alias(target)
        else:
            words = mapping.values.get(target, {})
            cells = converted(source, column, mapping.columns[target], words)
            cells = cells if target in OF_TASKS else as_words_or_numbers(cells)
        columns.append(cells)
    return pl.DataFrame(columns)


def as_words_or_numbers(cells: pl.Series) -> pl.Series:
    """Return a column of words as their places among them, and another as it is."""
    import polars as pl

    return as_words(cells) if cells.dtype == pl.String else cells


def _named(rows: pl.DataFrame, mapping: TableMapping) -> pl.DataFrame:
    """Return the rows with runs and schedules, named where the mapping leaves them out."""
    import polars as pl

    if "run_id" not in mapping.targets:
        place = ["condition", "arm", "seed"]
        numbers, places = combinations(rows, place)
        names = places.select(run_id=pl.format("{}-{}-s{}", *place))["run_id"]
        rows = rows.with_columns(as_words(names).gather(numbers))
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
    import polars as pl

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
    import polars as pl
    from polars import selectors

    return rows.with_columns(selectors.enum().cast(pl.String))


def frame(table: Table, rows: Sequence[Row]) -> pl.DataFrame:
    """Return rows of a register as a frame."""
    import polars as pl

    made = pl.from_arrow(to_arrow(table, rows))
    if not isinstance(made, pl.DataFrame):
        raise TypeError(made)
    return made


LISTED_WORDS = 5


def write_imported(
    folder: Path,
    files: Mapping[str, Mapping[str, bytes]],
    *,
    study: str,
    registration: RegistrationRef,
    words: Mapping[str, tuple[str, ...]],
    documents: Mapping[str, bytes],
    card: str | None = None,
    runs: Sequence[Row] = (),
    outcomes: Sequence[Row] = (),
    standing: str = "",
    findings: str = "",
    proven: Manifest | None = None,
) -> Manifest:
    """Write a study's repository: beside its place, and put there once it is whole and verified."""
    described = {}
    if card is not None:
        rows = {"runs": runs, "decisions": outcomes}
        described = repository_documents(
            card,
            files,
            registration=registration,
            rows=rows,
            words=words,
            standing=standing,
            findings=findings,
        )
    return write_study(
        folder,
        study=study,
        evidence="rows",
        registration=registration,
        files=files,
        documents={**documents, **described},
        words=words,
        proven=proven,
    )


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
