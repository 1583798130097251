"""Records of Every Eval Ever: a run's description, and beside it what was measured on each sample.

The description alone has aggregate results, and no episodes. Where a sample was measured in several ways,
each is a regime. `is_correct` is a success where it says what the score says; converters of other programs
write it for any score above nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from toolkit.errors import DamagedError, IncompleteError
from toolkit.files import file_sha256
from toolkit.line_ends import refuse_converted
from toolkit.registers.importing.readers import common
from toolkit.registers.importing.readers.common import Reader, beginning, files_below, read_json_lines
from toolkit.registers.importing.source import FILE, LARGEST_TABLE, Log, bounded

WHAT = "a record of Every Eval Ever"
VERSION = re.compile(r"(instance_level_eval_)?0\.[23]\.\d+")
"""Versions of its schema that are read."""
_RUN = "number of the run"
_MARKS = (b'"schema_version"', b'"evaluation_id"')
_OPENED = ("input", "evaluation", "token_usage", "performance", "metadata", "output")
_ARMS = ("model", "generation_config.", "model_info.")
_NAMES = {
    "sample_id": "task",
    "evaluation_name": "pool",
    "model_id": "model",
    "token_usage.total_tokens": "tokens",
    "evaluation.tool_calls_count": "calls",
}


@dataclass(frozen=True)
class _Record:
    """A description, and its samples."""

    file: Path
    name: str
    content: Mapping[str, Any]
    samples: Path | None


def _is_record(file: Path) -> bool:
    start = beginning(file) if file.suffix in {".json", ".jsonl"} else b""
    return all(mark in start for mark in _MARKS) and (file.suffix == ".json" or b'"sample_id"' in start)


_records = partial(files_below, fits=_is_record)


def _read(paths: list[Path]) -> Log:
    records = [_opened(file, path) for path in paths for file in _files(path)]
    whole = [record for record in records if record.samples]
    if not whole:
        raise IncompleteError(
            "records with aggregate results only have no episodes",
            expected="samples beside them, which detailed_evaluation_results names",
            found=", ".join(record.file.name for record in records[:5]),
            where=paths[0],
            remedy="convert the log anew with its samples, or import the log that the record was made from",
        )
    files = [record.samples for record in whole if record.samples]
    bounded("bytes", sum(file.stat().st_size for file in files), LARGEST_TABLE, paths[0])
    left_out = {f"{record.file.name}: aggregate results only" for record in records if not record.samples}
    parts: list[pl.DataFrame] = []
    told: list[dict[str, common.Cell]] = []
    for record in whole:
        rows, runs = _samples(record, len(told), left_out)
        parts.append(rows)
        told += runs
    with common.reading(paths[0], WHAT):
        rows = pl.concat(parts, how="diagonal_relaxed")
        table = common.with_runs(rows, told, _RUN, paths[0])
        table = _with_schedules(common.with_regimes(table, "evaluation_result_id"))
        table = _with_outcome(common.with_prompts(table, "input.raw"))
    if "error" in table.columns and table["error"].count():
        left_out.add(f"scores of {table['error'].count()} samples with an error")
    candidates = ["model", *(name for run in told for name in run if name.startswith(_ARMS))]
    return Log(
        EVERY_EVAL_EVER.name,
        table,
        common.candidates(table, candidates),
        tuple(sorted(left_out)),
        tuple(file for record in whole for file in (record.file, record.samples) if file),
    )


EVERY_EVAL_EVER = Reader(
    "Every Eval Ever",
    "records of Every Eval Ever (UUID.json with UUID_samples.jsonl beside it), or a folder of them",
    _records,
    _read,
)


def _files(path: Path) -> list[Path]:
    """Return the descriptions of a source; of samples, the one beside them."""
    if path.is_dir():
        return [file for file in _records(path) if file.suffix == ".json"]
    if path.suffix == ".json":
        return [path]
    beside = path.with_name(f"{path.stem.removesuffix('_samples')}.json")
    if not beside.is_file():
        raise IncompleteError(
            "the samples have no record beside them, which says of which run they are",
            expected=beside.name,
            where=path,
        )
    return [beside]


def _opened(file: Path, source: Path) -> _Record:
    content = common.document(file, WHAT)
    with common.reading(file, WHAT):
        _check_version(content.get("schema_version"), file)
        detailed = common.part(content, "detailed_evaluation_results")
        if not detailed:
            return _Record(file, common.below(file, source), content, None)
        samples = file.with_name(Path(str(detailed.get("file_path")).replace("\\", "/")).name)
        if not samples.is_file():
            raise IncompleteError(
                "the record's samples are not beside it",
                expected=samples.name,
                where=file,
                remedy="copy them there",
            )
        if detailed.get("hash_algorithm") == "sha256" and detailed.get("checksum") != file_sha256(samples):
            refuse_converted(samples.name, samples, str(detailed.get("checksum")), DamagedError, samples)
            raise DamagedError(
                "the samples are not those that the record was written with",
                expected=f"SHA-256 {detailed.get('checksum')}",
                where=samples,
            )
    return _Record(file, common.below(file, source), content, samples)


def _check_version(version: object, file: Path) -> None:
    if not isinstance(version, str) or not VERSION.fullmatch(version):
        raise DamagedError(
            "the record is of a version of its schema that is not read",
            expected="0.2 or 0.3",
            found=version,
            where=file,
        )


def _samples(
    record: _Record, first: int, left_out: set[str]
) -> tuple[pl.DataFrame, list[dict[str, common.Cell]]]:
    """Return a record's samples, each with the number of its run, and those runs: one a result."""
    file = record.samples or record.file
    rows, lists = read_json_lines(file, WHAT, _OPENED)
    with common.reading(file, WHAT):
        for version in rows["schema_version"].unique().sort():
            _check_version(version, file)
        wanted = common.part(record.content, "detailed_evaluation_results").get("total_rows")
        if wanted is not None and wanted != rows.height:
            raise DamagedError(
                "the record has other samples than it says", expected=wanted, found=rows.height, where=file
            )
        rows = rows.rename({name: ours for name, ours in _NAMES.items() if name in rows.columns})
        rows = rows.with_columns(pl.col("task").cast(pl.String)).drop("schema_version")
        key = "evaluation_result_id" if "evaluation_result_id" in rows.columns else "pool"
        results = rows[key].unique(maintain_order=True).to_list()
        numbers = {result: first + number for number, result in enumerate(results)}
        rows = rows.with_columns(pl.col(key).replace_strict(numbers, return_dtype=pl.Int64).alias(_RUN))
        left_out |= {*lists, "aggregate results"}
    with common.reading(record.file, WHAT):
        return rows, [_run(record, key, result, left_out) for result in results]


def _run(record: _Record, key: str, result: object, left_out: set[str]) -> dict[str, common.Cell]:
    content = dict(record.content)
    name = "evaluation_name" if key == "pool" else key
    entries = [dict(one) for one in content.pop("evaluation_results", None) or []]
    entry = next((one for one in entries if one.get(name) == result), {})
    content.pop("detailed_evaluation_results", None)
    told: dict[str, common.Cell] = {FILE: record.name}
    launched = content.pop("evaluation_timestamp", None) or entry.get("evaluation_timestamp")
    told["launched_at"] = common.moment(launched)
    lists: set[str] = set()
    for part in ("generation_config", "metric_config", "source_data"):
        told |= common.flat({part: common.part(entry, part)}, lists)
    told |= common.flat(
        {name: content[name] for name in content if name not in {"schema_version", "evaluation_id"}}, lists
    )
    seeds = [told[name] for name in told if name.rpartition(".")[2] == "seed"]
    left_out |= lists
    return told | ({"seed": seeds[0]} if len(seeds) == 1 else {})


def _with_schedules(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with schedules where epochs, counted from 1, are told."""
    if "metadata.epoch" not in table.columns:
        return table
    epochs = table["metadata.epoch"].cast(pl.String).cast(pl.Int64, strict=False)
    if epochs.null_count() or (epochs < 1).any():
        return table
    return table.with_columns((epochs - 1).alias("schedule")).drop("metadata.epoch")


def _with_outcome(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with its scores as the outcome; of a sample with an error there is none."""
    score, truth = "evaluation.score", "evaluation.is_correct"
    if "error" in table.columns:
        failed = pl.col("error").is_not_null() & (pl.col("error") != "")
        table = table.with_columns(
            pl.when(~failed).then(pl.col(name)).alias(name)
            for name in (score, truth)
            if name in table.columns
        )
    if (
        truth in table.columns
        and table.select((pl.col(score) == pl.col(truth).cast(pl.Float64)).all()).item()
    ):
        return common.with_outcome(table, truth).drop(score, truth)
    return common.with_outcome(table, score).drop(score)
