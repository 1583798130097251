"""From a table of episodes to a study: runs, episodes, evaluations, tasks, written as registers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.registers.arrow import Row, parquet_bytes, shape
from toolkit.registers.cards.documents import repository_documents
from toolkit.registers.columns import WORDS, Column, Table, Type
from toolkit.registers.episode_counts import task_set_sha256
from toolkit.registers.imported.mapping import OF_RUNS, OF_TASKS, TARGETS, TableMapping
from toolkit.registers.imported.source import ROW, converted
from toolkit.registers.manifest import Manifest, RegistrationRef
from toolkit.registers.row_tables import EPISODES, TASK_POOLS
from toolkit.registers.schema import EVALUATIONS, RUNS, TABLES
from toolkit.registers.writer import table_files, write_study

if TYPE_CHECKING:
    import polars as pl

MOST_TASKS = MOST_EPISODES = 2**15
_TASK_NAME = Column("task", "Name of a task in the table.", Type.STRING)
_RUN_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
_EVALUATION = ("run_id", "condition", "arm", "seed", "phase", "pool", "regime", "step")


def tables_of(source: pl.DataFrame, mapping: TableMapping) -> dict[str, pl.DataFrame]:
    """Return the tables of a study by name, each sorted by its key.

    1. Every mapped column is converted, and every constant put beside them.
    2. Runs and schedules that the mapping does not name are named: a run by condition, arm and seed, a
       schedule by the order in which a task's episodes stand in the table.
    3. Tasks are numbered within their pool.
    4. Runs, evaluations and tasks are counted from the episodes.

    Args:
        source: the table, as `read_source` returns it.
        mapping: how it is to be read.

    Raises:
        DamagedError: a column is missing, a cell is no value of its column, a run contradicts itself, or an
            episode is there twice.
    """
    import polars as pl

    rows = _named(_converted(source, mapping), mapping)  # 1, 2
    tasks = _tasks(rows)  # 3
    rows = rows.join(tasks.select("pool", "task", "index"), on=["pool", "task"], how="left")
    rows = rows.drop("task").rename({"index": "task"})
    _check_unique(rows)
    tables = {  # 4
        RUNS.name: _runs(rows),
        EPISODES.name: rows.select(name for name in EPISODES.column_names if name in rows.columns),
        EVALUATIONS.name: _evaluations(rows),
        TASK_POOLS.name: tasks.select(
            "pool", "index", pl.col("task").alias("task_id"), *(n for n in OF_TASKS if n in tasks.columns)
        ),
    }
    return {name: table.sort(TABLES[name].key) for name, table in tables.items()}


def _converted(source: pl.DataFrame, mapping: TableMapping) -> pl.DataFrame:
    import polars as pl

    absent = [name for name in mapping.columns.values() if name not in source.columns]
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
        if target in constants:
            constant = pl.DataFrame({ROW: ["constant"], target: constants[target]})
            value = converted(constant, column, target, {})
            columns.append(pl.Series(target, value.extend_constant(value[0], source.height - 1)))
        else:
            words = mapping.values.get(target, {})
            columns.append(converted(source, column, mapping.columns[target], words))
    return pl.DataFrame(columns)


def _named(rows: pl.DataFrame, mapping: TableMapping) -> pl.DataFrame:
    """Return the rows with runs and schedules, named where the mapping leaves them out."""
    import polars as pl

    if "run_id" not in mapping.targets:
        rows = rows.with_columns(
            run_id=pl.format("{}-{}-s{}", pl.col("condition"), pl.col("arm"), pl.col("seed"))
        )
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


def _tasks(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks by pool, numbered: by their number where all have one, else by their name."""
    import polars as pl

    told = [name for name in OF_TASKS if name in rows.columns]
    tasks = rows.select("pool", "task", *told).unique()
    twice = tasks.filter(tasks.select("pool", "task").is_duplicated())
    if twice.height:
        raise DamagedError(
            f"a task has two texts under {', '.join(told)}",
            expected="one text a task",
            found=f"task {twice['task'][0]!r} of pool {twice['pool'][0]!r}",
        )
    tasks = tasks.sort("pool", pl.col("task").cast(pl.Int64, strict=False), "task", nulls_last=True)
    tasks = tasks.with_columns(index=(pl.col("task").cum_count().over("pool") - 1).cast(pl.Int32))
    if tasks["index"].max() >= MOST_TASKS:  # type: ignore[operator]
        raise DamagedError(
            "a pool has more tasks than a register can number", expected=f"at most {MOST_TASKS}"
        )
    return tasks


def _check_unique(rows: pl.DataFrame) -> None:
    """Check that every episode is there once."""
    key = list(EPISODES.key)
    twice = rows.filter(rows.select(key).is_duplicated()).sort(*key, ROW)
    if twice.height:
        first = twice.row(0, named=True)
        numbers = twice.filter(*(twice[name] == first[name] for name in key))[ROW].to_list()
        raise DamagedError(
            "an episode is in the table twice",
            expected="one row a run, evaluation, task and schedule",
            found=f"rows {' and '.join(map(str, numbers[:5]))}: "
            + ", ".join(f"{name}={first[name]}" for name in key),
            remedy="map the column that tells them apart: schedule, or condition, regime, step; if they are "
            "repetitions that no column tells apart, leave schedule out to have them numbered",
        )


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


def _tasks_met(rows: pl.DataFrame) -> pl.DataFrame:
    """Return which tasks every evaluation met, and how often the one that it met most."""
    import polars as pl

    by_task = rows.group_by(*_EVALUATION, "task").agg(met=pl.len()).sort("task")
    met = by_task.group_by(_EVALUATION).agg(
        tasks=pl.len().cast(pl.Int32),
        episodes_per_task=pl.col("met").max().cast(pl.Int32),
        task_set=pl.col("task").sort(),
    )
    sets = [task_set_sha256(tasks) for tasks in met["task_set"].to_list()]
    return met.with_columns(pl.Series("task_set", sets, pl.String))


def _evaluations(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row an evaluation, counted."""
    import polars as pl

    have = set(rows.columns)
    counts = {"episodes": pl.len(), "successes": pl.col("true_success").sum()}
    if "observed_reward" in have:
        counts["observed_successes"] = pl.col("observed_reward").sum()
        counts["flipped"] = (pl.col("true_success") & ~pl.col("observed_reward")).sum()
    if "ended" in have:
        counts["finished"] = (pl.col("ended") == "finished").sum()
        counts["budget_exceeded"] = (pl.col("ended") == "budget_exceeded").sum()
    if "calls" in have:
        counts["calls"] = pl.col("calls").cast(pl.Int64).sum()
    counted = rows.group_by(_EVALUATION).agg(
        expression.cast(pl.Int32).alias(name) for name, expression in counts.items()
    )
    counted = counted.join(_tasks_met(rows), on=_EVALUATION)
    return counted.select(name for name in EVALUATIONS.column_names if name in counted.columns)


LISTED_WORDS = 5


def write_imported(
    folder: Path,
    tables: Mapping[str, pl.DataFrame],
    *,
    study: str,
    registration: RegistrationRef,
    words: Mapping[str, tuple[str, ...]],
    documents: Mapping[str, bytes],
    card: str | None = None,
    outcomes: Sequence[Row] = (),
    standing: str = "",
    findings: str = "",
) -> Manifest:
    """Write a study's repository: beside its place, and put there once it is whole and verified.

    Args:
        folder: the repository; an earlier import of the same study is replaced.
        tables: the study's tables by name, as `tables_of` makes them.
        study: name of the study.
        registration: the registration that it belongs to.
        words: the words that the registration declares, by column.
        documents: other files of the repository by name.
        card: source of the dataset card; none is written where there is none.
        outcomes: rows of `decisions` for the card, each with the rule's `title`.
        standing: what the registration stands on, in words, for the card.
        findings: what was found, for the card.

    Raises:
        IncompleteError: the folder holds something else, or cannot be written.
        DamagedError: a row contradicts the schema, or says a word that the registration does not declare;
            what was in the folder is left.
    """
    _check_words(tables[EPISODES.name], tables[RUNS.name], words)
    files = {name: _files(TABLES[name].with_words(words), table) for name, table in tables.items()}
    described = {}
    if card is not None:
        rows = {"runs": tables[RUNS.name].to_dicts(), "decisions": outcomes}
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
    )


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
        return table_files(table.name, shape(table, rows.to_arrow()))
    return {
        f"{table.name}/{part['run_id'][0]}.parquet": parquet_bytes(table.name, shape(table, part.to_arrow()))
        for part in rows.partition_by("run_id", maintain_order=True)
    }
