"""Logs of Inspect (inspect_ai): what they say of each sample and epoch, through Inspect's own reader.

An epoch is a schedule, counted from 0, and Inspect's task a pool of the registers' tasks, its samples. Of two
logs of one task that was tried again, the later has what the earlier had, and is read alone. A sample that
the log should have and has not is a row, too: with its error, and no outcome.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, IncompleteError
from toolkit.files import read_up_to
from toolkit.registers.importing.log import FILE, Log
from toolkit.registers.importing.readers import cells
from toolkit.registers.importing.readers.inspect_archive import checked_copy
from toolkit.registers.importing.source import LARGEST_TABLE, MOST_CELLS

if TYPE_CHECKING:
    import polars as pl

NAME = "Inspect"
SOURCES = "logs of inspect_ai (.eval, .json), or a folder of them"
_RUN = "number of the log"
_START = re.compile(rb'\s*\{\s*(?:"version"\s*:\s*\d+\s*,\s*)?"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
_SHORTENED = ("...\n(content truncated)", "Key removed from summary (> 1k)")
_LONG = 1000  # characters: a text of a summary that has been cut has more, and ends in dots
_WORDS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""What Inspect's own `value_to_float` makes of words: of the letters as they are, of others in any case."""
_LIMITS = ("message", "token", "turn", "time", "working", "cost")
_NO_RUN = ("eval_id", "eval_set_id", "run_id", "task_id", "created", "task", "model", "dataset.sample_ids")
_ALWAYS = (
    "messages, outputs, events and stores of samples",
    "explanations and metadata of scores",
    "usage by model and role (columns have the sums)",
    "line breaks within answers and metadata",
    "aggregate results",
)


@dataclass
class _Read:
    """One log as Inspect reads it."""

    file: Path
    name: str
    header: Any
    summaries: list[Any]
    left_out: set[str] = field(default_factory=set)


def recognizes(path: Path) -> bool:
    """Whether a path is a log of Inspect, or a folder that has one."""
    return bool(_files(path))


def read(paths: list[Path]) -> Log:
    """Read logs of Inspect."""
    try:
        import inspect_ai.log  # noqa: F401 - asked for before any file is opened
    except ImportError as error:
        raise IncompleteError(
            "reading logs of Inspect needs its own reader",
            found=str(error),
            where=paths[0],
            remedy="pip install 'paired-rollouts-toolkit[inspect]'",
        ) from None
    logs, left_out = _last_tries(
        [_opened(file, cells.below(file, path)) for path in paths for file in _files(path)]
    )
    told = [_run(log) for log in logs]
    rows = [{_RUN: number, **row} for number, log in enumerate(logs) for row in _samples(log)]
    first = logs[0].file
    _check_scored(rows, first)
    with cells.reading(first, "a log of Inspect"):
        table = cells.with_runs(cells.frame(rows, first), told, _RUN, first)
        table = _with_outcomes(_with_prompts(table), logs)
    left_out += sorted({name for log in logs for name in log.left_out})
    candidates = [name for run in told for name in run if _may_be_arm(name)]
    return Log(
        NAME,
        table,
        cells.candidates(table, candidates),
        (*left_out, *_ALWAYS),
        tuple(log.file for log in logs),
    )


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in {".eval", ".json"} and _is_log(file))
    return [path] if _is_log(path) else []


def _is_log(file: Path) -> bool:
    try:
        if not file.is_file():
            return False
        if file.suffix == ".eval":
            return True
        with file.open("rb") as opened:
            return file.suffix == ".json" and bool(_START.match(opened.read(4096)))
    except OSError:
        return False


def _opened(file: Path, name: str) -> _Read:
    """Return a log: of an archive, from a copy of what was examined."""
    from inspect_ai.log import EvalLog, read_eval_log, read_eval_log_sample_summaries

    with cells.reading(file, "a log of Inspect"), tempfile.TemporaryDirectory() as scratch:
        if file.suffix == ".json":
            raw = read_up_to(file, LARGEST_TABLE + 1)
            cells.bounded("bytes", len(raw), LARGEST_TABLE, file)
            header = read_eval_log(BytesIO(raw), format="json")
            summaries = [sample.summary() for sample in header.samples or ()]
        else:
            copy, there = checked_copy(file, Path(scratch))
            header = read_eval_log(copy, header_only=True)
            summaries = read_eval_log_sample_summaries(copy)
            untold = there - {(str(summary.id), summary.epoch) for summary in summaries}
            if untold:
                raise DamagedError(
                    "the log has samples that its summaries leave out",
                    found=", ".join(f"{sample} (epoch {epoch})" for sample, epoch in sorted(untold)[:5]),
                    where=file,
                    remedy="inspect log recover LOG, or inspect log convert",
                )
        known = EvalLog.model_fields["version"].default
        if header.version > known:
            raise DamagedError(
                "the log is of a newer version than the installed inspect_ai reads",
                expected=f"{known} at most",
                found=header.version,
                where=file,
                remedy="pip install --upgrade inspect_ai",
            )
    if not summaries and header.eval.config.log_samples is False:
        raise IncompleteError(
            "the log was written without its samples",
            where=file,
            remedy="run the evaluation without --no-log-samples",
        )
    return _Read(file, name, header, summaries)


def _check_scored(rows: Sequence[Mapping[str, cells.Cell]], where: Path) -> None:
    if any(name.startswith("score.") for row in rows for name in row):
        return
    error = next((row["error"] for row in rows if row.get("error")), "no error")
    raise IncompleteError(
        "no sample of the logs has a score",
        expected="samples that were played to their end and scored",
        found=error,
        where=where,
        remedy="run the evaluation again, without --no-score, or score its logs: inspect score LOG",
    )


def _last_tries(logs: list[_Read]) -> tuple[list[_Read], list[str]]:
    """Return the last log of each task, and in words those that it stands for."""
    last: dict[str, _Read] = {}
    for log in sorted(logs, key=lambda log: (log.header.eval.created, log.name)):
        last[log.header.eval.task_id or log.name] = log
    kept = [log for log in logs if any(log is one for one in last.values())]
    return kept, [
        f"{log.file.name}: {last[log.header.eval.task_id].file.name} is a later try of the same task"
        for log in logs
        if not any(log is one for one in kept)
    ]


def _run(log: _Read) -> dict[str, cells.Cell]:
    """Return what a log says of its run, the most telling first."""
    spec, plan = log.header.eval, log.header.plan
    told: dict[str, cells.Cell] = {FILE: log.name, "pool": spec.task, "model": spec.model}
    settings = spec.model_generate_config.model_dump(exclude_none=True)
    settings |= plan.config.model_dump(exclude_none=True)
    told["seed"] = settings.pop("seed", None)
    dumped = spec.model_dump(mode="json", exclude_none=True)
    for name in ("task_args", "model_args", "solver_args", "model_roles"):
        told |= cells.flat({name: dumped.pop(name, None) or {}}, "", log.left_out)
    told["solver"] = " + ".join(step.solver for step in plan.steps)
    for step in plan.steps:
        told |= cells.flat({"solver": {step.solver: step.params}}, "", log.left_out)
    told |= cells.flat({"generate": settings}, "", log.left_out)
    told["tags"] = ", ".join(log.header.tags or spec.tags or ()) or None
    told |= cells.flat({"run_metadata": dumped.pop("metadata", None) or {}}, "", log.left_out)
    told["status"] = log.header.status
    told["invalidated"] = log.header.invalidated or None
    told["launched_at"] = _launched(log)
    told |= {
        f"eval.{name}": dumped.pop(name, None) for name in ("eval_id", "eval_set_id", "run_id", "task_id")
    }
    for name in ("task_args_passed", "solver_args_passed"):
        dumped.pop(name, None)
    others: set[str] = set()
    told |= {name: value for name, value in cells.flat(dumped, "", others).items() if name not in _NO_RUN}
    log.left_out |= others - set(_NO_RUN)
    return told


def _may_be_arm(name: str) -> bool:
    parts = ("task_args.", "model_args.", "solver", "generate.", "model_roles.", "run_metadata.")
    limits = tuple(f"config.{limit}_limit" for limit in _LIMITS)
    return name in {"model", "tags", *limits} or name.startswith(parts)


def _launched(log: _Read) -> str:
    """Return when the first sample of a log was begun: a later try has samples of the one before."""
    begun = [log.header.eval.created, log.header.stats.started_at]
    begun += [summary.started_at for summary in log.summaries]
    return min(str(time) for time in begun if time)


def _samples(log: _Read) -> list[dict[str, cells.Cell]]:
    """Return a row for each sample and epoch, those that are missing too."""
    rows = [_sample(log, summary) for summary in log.summaries]
    ids, epochs = log.header.eval.dataset.sample_ids or (), log.header.eval.config.epochs or 1
    cells.bounded("samples", len(ids) * epochs, MOST_CELLS, log.file)
    there = {(row["task"], row["schedule"]) for row in rows}
    wanted = ((str(sample), epoch) for sample in ids for epoch in range(epochs))
    error = f"not in the log, whose status is {log.header.status}"
    return rows + [
        {"task": sample, "schedule": epoch, "error": error}
        for sample, epoch in wanted
        if (sample, epoch) not in there
    ]


def _sample(log: _Read, summary: Any) -> dict[str, cells.Cell]:
    row: dict[str, cells.Cell] = {"task": str(summary.id), "schedule": summary.epoch - 1}
    if summary.epoch < 1:
        raise DamagedError(
            "an epoch is counted from 1", found=f"{summary.epoch} of {summary.id}", where=log.file
        )
    for name, score in (summary.scores or {}).items():
        value = score.value if isinstance(score.value, Mapping) else {"": score.value}
        for part, one in value.items():
            key = f"score.{name}" + (f".{part}" if part else "")
            if isinstance(one, Sequence) and not isinstance(one, str):
                log.left_out.add(key)
            else:
                row[key] = _number(one)
                row[f"{key}.value"] = one if one == "N" else None
        row[f"answer.{name}"] = _whole(log, f"answer.{name}", score.answer)
    used = [usage.model_dump() for usage in summary.model_usage.values()]
    sums = {
        name: [one[name] for one in used if one.get(name) is not None] for name in (used[0] if used else ())
    }
    totals = {name: sum(counts) for name, counts in sums.items() if counts}
    row |= {"tokens": totals.pop("total_tokens", None), "cost": totals.pop("total_cost", None)}
    row |= {f"usage.{name}": count for name, count in totals.items()}
    for name in ("error", "limit", "limit_reason", "retries", "message_count", "turn_count", "total_time"):
        row[name] = getattr(summary, name, None)
    for name in ("working_time", "completed_at", "token_limit_usage"):
        row[name] = getattr(summary, name, None)
    row |= {"sample.started_at": summary.started_at, "sample.uuid": summary.uuid}
    for name in ("input", "target", "description"):
        row[name] = _whole(log, name, getattr(summary, name, None))
    if summary.choices:
        log.left_out.add("choices")
    told = cells.flat({"metadata": summary.metadata}, "", log.left_out)
    return row | {name: _whole(log, name, value) for name, value in told.items()}


def _number(value: Any) -> Any:
    """Return a score as Inspect counts it; what it cannot count stays as it is, and NaN is none."""
    if isinstance(value, str):
        word = _WORDS.get(value, _WORDS.get(value.lower()) if len(value) > 1 else None)
        if word is not None:
            return word
        try:
            number = float(value)
        except ValueError:
            return value
        return number if math.isfinite(number) else value
    if isinstance(value, bool | int | float):
        return None if math.isnan(value) else float(value)
    return value


def _whole(log: _Read, name: str, value: Any) -> cells.Cell:
    """Return a value that a summary has in full; lists, and texts that it has cut, are left out."""
    if isinstance(value, str):
        if not value.endswith(_SHORTENED) and not (len(value) > _LONG and value.endswith("...")):
            return value
        log.left_out.add(f"{name}, where it is long")
        return None
    if value is None or isinstance(value, int | float):
        return value
    log.left_out.add(f"{name}, where it is a list")
    return None


def _with_prompts(table: pl.DataFrame) -> pl.DataFrame:
    """Call the input a prompt where each task has one."""
    if "input" not in table.columns or table["input"].null_count():
        return table
    tasks, texts = table.select("pool", "task").n_unique(), table.select("pool", "task", "input").n_unique()
    return table.rename({"input": "prompt"}) if tasks == texts else table


def _with_outcomes(table: pl.DataFrame, logs: list[_Read]) -> pl.DataFrame:
    """Give the outcome its name: the only score, or the one that the task declares to be its headline."""
    import polars as pl

    scores = [
        name
        for name in table.columns
        if name.startswith("score.") and not (name.endswith(".value") and name[:-6] in table.columns)
    ]
    declared = {_headline(log, scores) for log in logs}
    if len(scores) == 1 and table[scores[0]].dtype.is_numeric():
        scorer = pl.lit(scores[0].removeprefix("score.")).alias("scorer")
        return cells.with_outcome(table, scores[0]).with_columns(scorer).drop(scores[0])
    named = declared.pop() if len(declared) == 1 else None
    return cells.with_outcome(table, named) if named and table[named].dtype.is_numeric() else table


def _headline(log: _Read, scores: list[str]) -> str | None:
    declared = getattr(log.header.eval, "headline_metric", None)
    parts = [part for part in (declared.scorer, declared.score) if part] if declared else []
    name = ".".join(["score", *dict.fromkeys(parts)])
    return name if name in scores else None
