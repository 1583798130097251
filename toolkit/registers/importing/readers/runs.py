"""What the runs of a log are called and how they were configured, as columns beside their rows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.registers.importing.source import FILE, MOST_CELLS, MOST_COLUMNS, Log

if TYPE_CHECKING:
    import polars as pl

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
    # Dotted name, as `config.seed` → value, as text
    settings: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()  # what was read
    name: str | None = None  # what it is called, where that is not the name of its folder


def joined(name: str, runs: Sequence[Run], left_out: Iterable[str] = ()) -> Log:
    """Return the log that runs make together.

    1. A run has its own name, if every run has one, or that of its folder below the one that all lie in.
    2. Its seed is what its settings say, or what every name says: `grpo-s3`, `grpo/seed_3`.
    3. Settings in which runs differ are columns; the others are named as left out.
    """
    import polars as pl

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
    import polars as pl

    texts = (pl.lit(value, dtype=pl.String).alias(name) for name, value in values.items())
    return set_apart(table, values).with_columns(texts)


def set_apart(table: pl.DataFrame, taken: Iterable[str]) -> pl.DataFrame:
    """Return a table whose own columns of names that a reader gives are called `own.NAME`."""
    return table.rename({name: OWN + name for name in taken if name in table.columns})


def numbered(table: pl.DataFrame, prompt: str = "prompt", place: Sequence[str] = ("step",)) -> pl.DataFrame:
    """Return rollouts with `task`, the first digits of the SHA-256 of their prompt, and `schedule`."""
    import hashlib

    import polars as pl

    names = table.select(pl.col(prompt).unique().drop_nulls()).with_columns(
        task=pl.col(prompt).map_elements(
            lambda text: hashlib.sha256(text.encode()).hexdigest()[:16], return_dtype=pl.String
        )
    )
    table = set_apart(table, ("task", "schedule")).join(names, on=prompt, how="left", maintain_order="left")
    return table.with_columns(schedule=pl.int_range(pl.len()).over([*place, "task"]))


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
        elif isinstance(value, int | float) or (isinstance(value, str) and _is_text(value)):
            found[name] = str(value)
        elif value is not None:
            left_out.add(name)

    visit(document, "", 0)
    return found


def _is_text(value: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in value)  # half of a pair is no text


def files_below(path: Path, names: re.Pattern[str]) -> list[Path]:
    """Return the files of a folder that have a name, in order; the path itself where it is such a file."""
    if path.is_file():
        return [path] if names.fullmatch(path.name) else []
    return sorted(file for file in path.rglob("*") if names.fullmatch(file.name) and file.is_file())


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
