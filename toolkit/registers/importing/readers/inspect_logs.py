"""Logs of Inspect (inspect_ai): what they say of each sample and epoch, through Inspect's own reader.

An epoch is a schedule, counted from 0, and Inspect's task a pool of the registers' tasks, its samples. All
logs of a task that was tried again are read, in the order of their creation: which attempt at a sample counts
is the registration's to say. A sample that was withdrawn, or that no try has, is a row without an outcome.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from toolkit.errors import DamagedError, IncompleteError
from toolkit.files import read_up_to
from toolkit.registers.importing.readers import common
from toolkit.registers.importing.readers.common import Reader, beginning, files_below
from toolkit.registers.importing.source import FILE, LARGEST_TABLE, MOST_CELLS, Log, bounded

_RUN = "number of the log"
_START = re.compile(rb'\s*\{\s*(?:"version"\s*:\s*\d+\s*,\s*)?"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
_SHORTENED = ("...\n(content truncated)", "Key removed from summary (> 1k)")
_LONG = 1000  # characters: a text of a summary that has been cut has more, and ends in dots
_WORDS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""What Inspect's own `value_to_float` makes of words: of the letters as they are, of others in any case."""
_LIMITS = ("message", "token", "turn", "time", "working", "cost")
_BY_HAND = "operator"
"""The limit of a sample that whoever watched the evaluation ended."""
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
    invalidated: Mapping[tuple[str, int], str]  # sample and epoch → the reason, which may be empty
    left_out: set[str] = field(default_factory=set)
    number: int = 0  # among the logs that are read


def _is_log(file: Path) -> bool:
    return file.suffix == ".eval" or (file.suffix == ".json" and bool(_START.match(beginning(file))))


_files = partial(files_below, fits=_is_log)


def _read(paths: list[Path]) -> Log:
    try:
        import inspect_ai.log  # noqa: F401 - asked for before any file is opened
    except ImportError as error:
        raise IncompleteError(
            "reading logs of Inspect needs its own reader",
            found=str(error),
            where=paths[0],
            remedy="pip install 'paired-rollouts-toolkit[inspect]'",
        ) from None
    tasks = _tasks([_opened(file, common.below(file, path)) for path in paths for file in _files(path)])
    logs = [log for tries in tasks for log in tries]
    for number, log in enumerate(logs):
        log.number = number
    told = [_run(log) for log in logs]
    rows: list[dict[str, common.Cell]] = []
    left_out: list[str] = []
    withdrawn: Counter[str] = Counter()
    for tries in tasks:
        own = [_sample(log, summary, withdrawn) for log in tries for summary in log.summaries]
        left_out += _tried(tries, own)
        rows += own + _absent(tries, own, withdrawn)
    if withdrawn:
        counts = ", ".join(f"{count} {what}" for what, count in withdrawn.items())
        left_out.append(f"outcomes of withdrawn samples: {counts}")
    first = logs[0].file
    _check_scored(rows, first)
    with common.reading(first, "a log of Inspect"):
        table = common.with_runs(common.frame(rows, first), told, _RUN, first)
        table = _with_outcomes(common.with_prompts(table, "input"), logs)
    left_out += sorted({name for log in logs for name in log.left_out})
    candidates = [name for run in told for name in run if _may_be_arm(name)]
    return Log(
        INSPECT.name,
        table,
        common.candidates(table, candidates),
        (*left_out, *_ALWAYS),
        tuple(log.file for log in logs),
    )


INSPECT = Reader("Inspect", "logs of inspect_ai (.eval, .json), or a folder of them", _files, _read)


def _opened(file: Path, name: str) -> _Read:
    """Return a log: of an archive, from a copy of what was examined."""
    from inspect_ai.log import EvalLog, read_eval_log, read_eval_log_sample_summaries

    with common.reading(file, "a log of Inspect"), tempfile.TemporaryDirectory() as scratch:
        if file.suffix == ".json":
            raw = read_up_to(file, LARGEST_TABLE + 1)
            bounded("bytes", len(raw), LARGEST_TABLE, file)
            header = read_eval_log(BytesIO(raw), format="json")
            samples = header.samples or ()
            summaries = [sample.summary() for sample in samples]
            marks = {(str(one.id), one.epoch): getattr(one, "invalidation", None) for one in samples}
            invalidated = {place: mark.reason or "" for place, mark in marks.items() if mark}
        else:
            copy, there = checked_copy(file, Path(scratch))
            header = read_eval_log(copy, header_only=True)
            summaries = read_eval_log_sample_summaries(copy)
            invalidated = _invalidated(file) if getattr(header, "invalidated", False) else {}
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
    return _Read(file, name, header, summaries, invalidated)


def _check_scored(rows: Sequence[Mapping[str, common.Cell]], where: Path) -> None:
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


def _tasks(logs: list[_Read]) -> list[list[_Read]]:
    """Return the logs of each task, its tries in the order of their creation."""
    tasks: dict[str, list[_Read]] = {}
    for log in logs:
        tasks.setdefault(log.header.eval.task_id or str(log.file), []).append(log)
    return [sorted(tries, key=lambda log: (log.header.eval.created, log.name)) for tries in tasks.values()]


def _tried(tries: list[_Read], rows: Sequence[Mapping[str, common.Cell]]) -> list[str]:
    """Return in words that a task has several tries, and how many of its samples depend on which counts."""
    if len(tries) == 1:
        return []
    scored: dict[tuple[common.Cell, common.Cell], list[bool]] = {}
    for row in rows:
        scored.setdefault((row["task"], row["schedule"]), []).append(_is_scored(row))
    several = [outcomes for outcomes in scored.values() if len(outcomes) > 1]
    some = sum(any(outcomes) and not all(outcomes) for outcomes in several)
    names = " and ".join(log.file.name for log in tries)
    counts = f"{len(several)} samples are in several, {some} with an outcome in some only"
    return [f"{names} are tries of one task: {counts}; [missing] attempts says which counts"]


def _is_scored(row: Mapping[str, common.Cell]) -> bool:
    return any(name.startswith("score.") and value is not None for name, value in row.items())


def _run(log: _Read) -> dict[str, common.Cell]:
    """Return what a log says of its run, the most telling first."""
    spec, plan = log.header.eval, log.header.plan
    told: dict[str, common.Cell] = {FILE: log.name, "pool": spec.task, "model": spec.model}
    settings = spec.model_generate_config.model_dump(exclude_none=True)
    settings |= plan.config.model_dump(exclude_none=True)
    told["seed"] = settings.pop("seed", None)
    dumped = spec.model_dump(mode="json", exclude_none=True)
    for name in ("task_args", "model_args", "solver_args", "model_roles"):
        told |= common.flat({name: dumped.pop(name, None) or {}}, log.left_out)
    told["solver"] = " + ".join(step.solver for step in plan.steps)
    for step in plan.steps:
        told |= common.flat({"solver": {step.solver: step.params}}, log.left_out)
    told |= common.flat({"generate": settings}, log.left_out)
    told["tags"] = ", ".join(log.header.tags or spec.tags or ()) or None
    told |= common.flat({"run_metadata": dumped.pop("metadata", None) or {}}, log.left_out)
    told["status"] = log.header.status
    told["invalidated"] = log.header.invalidated or None
    told["launched_at"] = _launched(log)
    told |= {
        f"eval.{name}": dumped.pop(name, None) for name in ("eval_id", "eval_set_id", "run_id", "task_id")
    }
    for name in ("task_args_passed", "solver_args_passed"):
        dumped.pop(name, None)
    others: set[str] = set()
    told |= {name: value for name, value in common.flat(dumped, others).items() if name not in _NO_RUN}
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


def _absent(
    tries: list[_Read], rows: Sequence[Mapping[str, common.Cell]], withdrawn: Counter[str]
) -> list[dict[str, common.Cell]]:
    """Return a row for each sample and epoch that a task should have, and no try of it has."""
    there = {(row["task"], row["schedule"]) for row in rows}
    absent: list[dict[str, common.Cell]] = []
    for log in reversed(tries):
        ids, epochs = log.header.eval.dataset.sample_ids or (), log.header.eval.config.epochs or 1
        bounded("samples", len(ids) * epochs, MOST_CELLS, log.file)
        error = f"not in the log, whose status is {log.header.status}"
        wanted = [(str(sample), epoch) for sample in ids for epoch in range(epochs)]
        absent += [
            {_RUN: log.number, "task": sample, "schedule": epoch, "error": error}
            for sample, epoch in wanted
            if (sample, epoch) not in there
        ]
        there.update(wanted)
    withdrawn.update({"not in the log": len(absent)} if absent else {})
    return absent


def _withdrawal(log: _Read, summary: Any) -> tuple[str, str] | None:
    """Return how and why a sample has no outcome, whatever it scored; nothing of one that counts."""
    place = (str(summary.id), summary.epoch)
    if place in log.invalidated:
        reason = log.invalidated[place]
        return "invalidated", f"invalidated: {reason}" if reason else "invalidated"
    if summary.error:
        return "with an error", str(summary.error)
    if summary.limit == _BY_HAND:
        return "cancelled", f"cancelled: {getattr(summary, 'limit_reason', None) or 'by its operator'}"
    return None


def _sample(log: _Read, summary: Any, withdrawn: Counter[str]) -> dict[str, common.Cell]:
    place = {"task": str(summary.id), "schedule": summary.epoch - 1}
    row: dict[str, common.Cell] = {_RUN: log.number, **place}
    if summary.epoch < 1:
        raise DamagedError(
            "an epoch is counted from 1", found=f"{summary.epoch} of {summary.id}", where=log.file
        )
    why = _withdrawal(log, summary)
    if why:
        withdrawn[why[0]] += 1
    row |= _scores(log, {} if why else summary.scores or {})
    for name, score in (summary.scores or {}).items():
        row[f"answer.{name}"] = _untruncated(log, f"answer.{name}", score.answer)
    used = [usage.model_dump() for usage in summary.model_usage.values()]
    sums = {
        name: [one[name] for one in used if one.get(name) is not None] for name in (used[0] if used else ())
    }
    totals = {name: sum(counts) for name, counts in sums.items() if counts}
    row |= {"tokens": totals.pop("total_tokens", None), "cost": totals.pop("total_cost", None)}
    row |= {f"usage.{name}": count for name, count in totals.items()}
    row["error"] = why[1] if why else None
    for name in ("limit", "limit_reason", "retries", "message_count", "turn_count", "total_time"):
        row[name] = getattr(summary, name, None)
    for name in ("working_time", "completed_at", "token_limit_usage"):
        row[name] = getattr(summary, name, None)
    row |= {"sample.started_at": summary.started_at, "sample.uuid": summary.uuid}
    for name in ("input", "target", "description"):
        row[name] = _untruncated(log, name, getattr(summary, name, None))
    if summary.choices:
        log.left_out.add("choices")
    told = common.flat({"metadata": summary.metadata}, log.left_out)
    return row | {name: _untruncated(log, name, value) for name, value in told.items()}


def _scores(log: _Read, scores: Mapping[str, Any]) -> dict[str, common.Cell]:
    """Return the values of scores, one or several each."""
    row: dict[str, common.Cell] = {}
    for name, score in scores.items():
        value = score.value if isinstance(score.value, Mapping) else {"": score.value}
        for part, one in value.items():
            key = f"score.{name}" + (f".{part}" if part else "")
            if isinstance(one, Sequence) and not isinstance(one, str):
                log.left_out.add(key)
            else:
                row[key] = _number(one)
                row[f"{key}.value"] = one if one == "N" else None
    return row


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


def _untruncated(log: _Read, name: str, value: Any) -> common.Cell:
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


def _with_outcomes(table: pl.DataFrame, logs: list[_Read]) -> pl.DataFrame:
    """Give the outcome its name: the only score, or the one that the task declares to be its headline."""
    scores = [
        name
        for name in table.columns
        if name.startswith("score.") and not (name.endswith(".value") and name[:-6] in table.columns)
    ]
    declared = {_headline(log, scores) for log in logs}
    if len(scores) == 1 and table[scores[0]].dtype.is_numeric():
        scorer = pl.lit(scores[0].removeprefix("score.")).alias("scorer")
        return common.with_outcome(table, scores[0]).with_columns(scorer).drop(scores[0])
    named = declared.pop() if len(declared) == 1 else None
    return common.with_outcome(table, named) if named and table[named].dtype.is_numeric() else table


def _headline(log: _Read, scores: list[str]) -> str | None:
    declared = getattr(log.header.eval, "headline_metric", None)
    parts = [part for part in (declared.scorer, declared.score) if part] if declared else []
    name = ".".join(["score", *dict.fromkeys(parts)])
    return name if name in scores else None


MOST_MEMBERS = 2**20
"""Members: a sample is one, or some."""
LARGEST_DIRECTORY = 2**28
"""Bytes of an archive's list of members, a few hundred each."""
MOST_RATIO = 500
"""Bytes unpacked from one: JSON of samples gives ten to fifty."""
SMALL = 2**20
"""Bytes below which a ratio says nothing."""
_SAMPLE = re.compile(r"samples/(?P<id>.+)_epoch_(?P<epoch>\d+)(?:\.json|/.+\.json)", re.DOTALL)
_TAIL = 2**16 + 22 + 76  # the longest comment, and the ends of the two sorts of archive
_ZSTANDARD = 93


def checked_copy(path: Path, into: Path) -> tuple[Path, set[tuple[str, int]]]:
    """Copy header and summaries of a log, whose sizes are bounded, to an archive of their own."""
    mend = "copy the log again; `inspect log recover` mends one whose program was interrupted"
    whole = "a zip archive of JSON documents, whole"
    with common.reading(path, "a readable archive of Inspect", expected=whole, remedy=mend):
        _check_directory(path)
        with zipfile.ZipFile(path) as opened, path.open("rb") as raw:
            listed = opened.infolist()
            bounded("members", len(listed), MOST_MEMBERS, path)
            for member in listed:
                _check_name(member.filename, path)
            members = {member.filename: member for member in listed}
            samples = {(m["id"], int(m["epoch"])) for m in map(_SAMPLE.fullmatch, members) if m}
            wanted = _members(set(members))
            bounded("bytes", sum(members[name].file_size for name in wanted), LARGEST_TABLE, path)
            with zipfile.ZipFile(into / "log.eval", "w") as copy:
                for name in wanted:
                    copy.writestr(name, _unpacked(members[name], raw, path))
    return into / "log.eval", samples


def _invalidated(path: Path) -> dict[tuple[str, int], str]:
    """Return the samples of an archive that was examined that are invalidated, each with the reason."""
    found: dict[tuple[str, int], str] = {}
    with zipfile.ZipFile(path) as opened, path.open("rb") as raw:
        for member in filter(lambda one: _SAMPLE.fullmatch(one.filename), opened.infolist()):
            bounded("bytes in a sample", member.file_size, LARGEST_TABLE, path)
            content = _unpacked(member, raw, path)
            sample = json.loads(content) if b'"invalidation"' in content else {}
            if mark := sample.get("invalidation"):
                found[str(sample["id"]), sample["epoch"]] = mark.get("reason") or ""
    return found


def _check_directory(path: Path) -> None:
    with path.open("rb") as opened:
        opened.seek(max(0, path.stat().st_size - _TAIL))
        tail = opened.read()
    end, wide = tail.rfind(b"PK\x05\x06"), tail.rfind(b"PK\x06\x06")
    if end < 0:
        raise zipfile.BadZipFile("no end of an archive")
    size = int.from_bytes(tail[end + 12 : end + 16], "little")
    if wide >= 0:
        size = int.from_bytes(tail[wide + 40 : wide + 48], "little")
    bounded("bytes in its list of members", size, LARGEST_DIRECTORY, path)


def _check_name(name: str, path: Path) -> None:
    parts = re.split(r"[/\\]", name)
    if name.startswith(("/", "\\")) or ":" in parts[0] or ".." in parts or not name.endswith(".json"):
        raise DamagedError(
            "the archive has a member that Inspect does not write",
            expected="JSON documents below the archive's own folder",
            found=repr(name),
            where=path,
            remedy="whoever gave you the log changed it: ask for what Inspect wrote",
        )


def _members(names: set[str]) -> list[str]:
    """Return the members that are read: the journal where a log was not finished."""
    finished = {"header.json", "summaries.json"}
    journal = {name for name in names if name.startswith("_journal/")}
    return sorted(finished if finished <= names else (finished & names) | journal)


def _unpacked(member: zipfile.ZipInfo, raw: BinaryIO, path: Path) -> bytes:
    """Return a member's bytes: as many as are written, whatever its packed bytes would give."""
    if member.file_size > max(SMALL, MOST_RATIO * member.compress_size):
        raise DamagedError(
            "the archive has a member that unpacks to more than one can",
            expected=f"{MOST_RATIO} times its packed bytes at most",
            found=f"{member.filename}: {member.compress_size} bytes to {member.file_size}",
            where=path,
        )
    if member.flag_bits & common.ENCRYPTED_MEMBER:
        raise zipfile.BadZipFile(f"{member.filename} is encrypted")
    raw.seek(member.header_offset)
    head = raw.read(30)
    raw.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
    packed, most = raw.read(member.compress_size), member.file_size + 1
    if member.compress_type == zipfile.ZIP_STORED:
        content = packed
    elif member.compress_type == zipfile.ZIP_DEFLATED:
        content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most)
    elif member.compress_type == _ZSTANDARD:
        import zstandard

        try:
            unpacker = zstandard.ZstdDecompressor()
            content = unpacker.stream_reader(BytesIO(packed), read_across_frames=True).read(most)
        except zstandard.ZstdError as error:
            raise zipfile.BadZipFile(f"{member.filename}: {error}") from None
    else:
        raise zipfile.BadZipFile(f"{member.filename} is packed in another way ({member.compress_type})")
    if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
        raise zipfile.BadZipFile(f"{member.filename} is not what the archive says of it")
    return content
