"""Reading a log of any format: from files, folders and patterns, here or on the Hub."""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.registers.importing.readers.agents import BFCL, TAU, TAU2
from toolkit.registers.importing.readers.benchmarks import HELM, SWE_BENCH
from toolkit.registers.importing.readers.common import Reader, is_hidden
from toolkit.registers.importing.readers.evaluators import EVALS, PROMPTFOO
from toolkit.registers.importing.readers.every_eval_ever import EVERY_EVAL_EVER
from toolkit.registers.importing.readers.inspect_logs import INSPECT
from toolkit.registers.importing.readers.lm_eval import LM_EVAL
from toolkit.registers.importing.readers.mlflow_exports import MLFLOW
from toolkit.registers.importing.readers.rollouts import GROUPS, TRL, VERL
from toolkit.registers.importing.readers.tables import DATASETS, HISTORIES, TABLES
from toolkit.registers.importing.source import ENCRYPTED, ROW, Log
from toolkit.structs import replace

# The more particular first.
READERS = (
    *(INSPECT, LM_EVAL, EVERY_EVAL_EVER, BFCL, TAU2, TAU, HELM, SWE_BENCH, PROMPTFOO, EVALS),
    *(TRL, VERL, GROUPS, DATASETS, MLFLOW, HISTORIES, TABLES),
)
ON_THE_HUB = "hf://"
EXPORTS = {
    ".wandb": "export each run's history from W&B as CSV, JSON lines or Parquet: pandas.DataFrame("
    "wandb.Api().run('ENTITY/PROJECT/RUN').scan_history()).to_csv('RUN.csv', index=False)",
    **dict.fromkeys(
        (".pkl", ".pickle"),
        "a pickle can run anything: load it yourself if you trust it, and save its rows as CSV or Parquet",
    ),
    ".encrypted": ENCRYPTED,
}
"""How to export what is not read, by the ending of its files."""


def read_log(sources: Sequence[str | Path], say: Callable[[str], None] = lambda _: None) -> Log:
    """Read a log: patterns and what is on the Hub become files, which one format has to know."""
    paths = _expanded(sources, say)
    for path in paths:
        if not path.exists():
            raise IncompleteError("there is no such file", where=path, remedy="give the path of a log")
    reader = next((one for one in READERS if all(map(one.files, paths))), None)
    if reader is None:
        raise UsageError(
            "the log is of a format that is not read, or of several",
            expected="; ".join(f"{one.name}: {one.sources}" for one in READERS),
            found=", ".join(str(path) for path in paths[:5]),
            remedy=next(
                (
                    how
                    for end, how in EXPORTS.items()
                    if any(path.suffix == end or any(path.rglob(f"*{end}")) for path in paths)
                ),
                None,
            ),
        )
    log = reader.read(paths)
    if not log.table.height:
        raise DamagedError("the log has no rows, and no data is not zero", where=paths[0])
    numbered = log.table.drop(ROW, strict=False).with_row_index(ROW, offset=1)
    hidden = [
        file.relative_to(path).as_posix()
        for path in paths
        if path.is_dir()
        for file in sorted(path.rglob("*"))
        if is_hidden(file, path) and file.is_file()
    ]
    files = log.files or tuple(paths)
    left_out = [*log.left_out, *([f"hidden files: {', '.join(hidden)}"] if hidden else [])]
    left_out += [f"a log of another format: {name}" for name in _others(paths, {reader, TABLES}, files)]
    return replace(log, table=numbered, files=files, left_out=tuple(left_out))


def _others(paths: Sequence[Path], but: Collection[Reader], read: Sequence[Path]) -> list[str]:
    """Return the formats of which a folder has files that were not read, each with the first of them."""
    found = {
        reader.name: sorted({file for path in paths for file in reader.files(path)} - {*read})
        for reader in READERS
        if reader not in but
    }
    return [f"{name}, such as {files[0].name}" for name, files in found.items() if files]


def _expanded(sources: Sequence[str | Path], say: Callable[[str], None]) -> list[Path]:
    paths = []
    for source in sources:
        given = Path(source)
        if str(source).startswith(ON_THE_HUB):
            from toolkit.registers.hub.transfer import fetch_log  # brings what asks the Hub

            paths += fetch_log(str(source), say)
        elif given.exists():
            paths.append(given)
        else:
            matches = sorted(glob.glob(str(source), recursive=True))  # noqa: PTH207 - as a shell does
            paths += [Path(match) for match in matches] or [given]
    return paths
