"""Runs of Weights & Biases as they lie on the disk that they ran on, synchronized or offline."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError
from toolkit.files import read_bytes
from toolkit.registers.imported.log import Log
from toolkit.registers.imported.readers.runs import (
    HISTORY,
    TASK,
    Run,
    check_cells,
    check_within,
    files_below,
    flattened,
    joined,
    set_apart,
    with_constants,
)
from toolkit.registers.imported.source import MOST_COLUMNS
from toolkit.registers.imported.wandb_file import HEADER, WandbRun, read_wandb

if TYPE_CHECKING:
    import polars as pl

NAME = "W&B runs"
SOURCES = "run folders of W&B (with run-ID.wandb), or the folder wandb that has them"
_FILE = re.compile(r"run-[\w.-]+\.wandb")
_MEDIUM = "._type"
CONFIG, SUMMARY, METADATA = "config.yaml", "wandb-summary.json", "wandb-metadata.json"
_LARGEST = 2**20


def recognizes(path: Path) -> bool:
    """Whether a path is a run's file, or a folder that has one."""
    return any(_is_run(file) for file in files_below(path, _FILE)[:1])


def _is_run(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(HEADER)) == HEADER
    except OSError:
        return False


def read(paths: list[Path]) -> Log:
    """Read the histories of runs.

    A row is a call of `log`: `step`, the metrics by their names, `task` (always `history`: a history has no
    episodes), `launched_at`, `summary.NAME` where the history has no such metric, and `config.NAME` and
    `run.NAME` in which runs differ.

    Raises:
        DamagedError: a file is not what its name says, or leads out of its folder.
    """
    left_out: dict[str, None] = {}
    parts: dict[str, list[tuple[Path, WandbRun]]] = {}
    for path in paths:
        files = files_below(path, _FILE)
        check_within(path, files)
        for file in files:
            run = read_wandb(file)
            if run.history:
                parts.setdefault(run.run.get("id", str(file)), []).append((file, run))
            else:
                left_out[f"{file.name}: nothing was logged"] = None
    if not parts:
        raise DamagedError("no run of the log has a history", where=paths[0])
    runs = [_run(part, left_out) for part in parts.values()]
    return replace(joined(NAME, runs, left_out), is_history=True)


def _run(parts: list[tuple[Path, WandbRun]], left_out: dict[str, None]) -> Run:
    """Return a run; one that was resumed has a file each time."""
    file, last = parts[-1]
    settings = settings_of(last, left_out, file)
    for part, run in parts:
        left_out |= dict.fromkeys(sorted(run.others))
        if run.is_cut_off:
            left_out[f"{part.name}: the end, which was cut off"] = None
    table = _history([row for _, run in parts for row in run.history], file, left_out)
    table = with_values(table, last, left_out, file)
    return Run(file.parent, table, settings, tuple(part for part, _ in parts), last.run.get("name"))


def settings_of(run: WandbRun, left_out: dict[str, None], where: Path) -> dict[str, str]:
    """Return the configuration of a run as `config.NAME`, and what it is called as `run.NAME`."""
    unlisted: set[str] = set()
    own = {name: value for name, value in run.config.items() if name not in {"_wandb", "wandb_version"}}
    config = {f"config.{name}": value for name, value in flattened(own, unlisted, where).items()}
    left_out |= dict.fromkeys(f"config.{name}" for name in sorted(unlisted))
    return config | {f"run.{name}": value for name, value in run.run.items()}


def read_beside(folder: Path) -> tuple[WandbRun, list[Path]]:
    """Return what W&B wrote of a run beside its history, its configuration, summary and start, and the files.

    Raises:
        DamagedError: a file is not what its name says, or leads out of the folder.
    """
    run, files = WandbRun(), []
    for name in (CONFIG, SUMMARY, METADATA):
        file = next((one for one in (folder / name, folder / "files" / name) if one.is_file()), None)
        if file is None:
            continue
        check_within(folder, [file])
        document = _document(file)
        files.append(file)
        if name == CONFIG:
            told = {
                key: value for key, value in document.items() if isinstance(value, dict) and "value" in value
            }
            run.config.update((str(key), value["value"]) for key, value in told.items())
        elif name == SUMMARY:
            run.summary.update(document)
        else:
            started = document.get("startedAt")
            run.launched_at = started if isinstance(started, str) else None
    return run, files


def _document(file: Path) -> dict[Any, Any]:
    import yaml

    try:
        text = read_bytes(file, _LARGEST).decode()
        found = yaml.safe_load(text) if file.suffix == ".yaml" else json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("no document")  # noqa: TRY004, TRY301 - of the file, not of a type
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise DamagedError(
            f"{file.name} is not what W&B writes", found=str(error).splitlines()[0], where=file
        ) from None
    return found


def _history(rows: list[dict[str, Any]], file: Path, left_out: dict[str, None]) -> pl.DataFrame:
    """Return calls of `log` as a table of text; media and lists are left out by name."""
    import polars as pl

    names = list(dict.fromkeys(name for row in rows for name in row))
    media = {name.removesuffix(_MEDIUM) for name in names if name.endswith(_MEDIUM)}
    if len(names) > MOST_COLUMNS:
        raise DamagedError(
            "the history has more columns than a table can have",
            expected=f"{MOST_COLUMNS} at most",
            found=len(names),
            where=file,
        )
    check_cells(len(rows), len(names))
    columns: dict[str, list[str | None]] = {}
    for name in names:
        cells = [row.get(name) for row in rows]
        if any(name == medium or name.startswith(f"{medium}.") for medium in media):
            continue
        if any(isinstance(cell, list | dict) for cell in cells):
            left_out[name] = None
        else:
            columns[name] = [_text(cell) for cell in cells]
    left_out |= dict.fromkeys(sorted(media))
    try:
        table = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    except UnicodeEncodeError as error:
        raise DamagedError("the history has what is no text", found=error, where=file) from None
    return set_apart(table, ["step"] if "_step" in table.columns else []).rename(
        {"_step": "step"}, strict=False
    )


def with_values(table: pl.DataFrame, run: WandbRun, left_out: dict[str, None], where: Path) -> pl.DataFrame:
    """Return a history with the values of its whole run."""
    unlisted: set[str] = set()
    own = {
        name: value
        for name, value in run.summary.items()
        if name not in {*table.columns, *left_out} and not name.startswith("_")
        if not any(name.startswith(f"{known}.") for known in left_out)
    }
    summary = {f"summary.{name}": value for name, value in flattened(own, unlisted, where).items()}
    left_out |= dict.fromkeys(f"summary.{name}" for name in sorted(unlisted))
    return with_constants(table, {TASK: HISTORY, "launched_at": run.launched_at, **summary})


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)
