"""Outputs of lm-evaluation-harness: the samples that `--log_samples` writes, and the results beside them.

A row is a document under a filter. Its task in the registers is the document's number, its pool the harness's
task; of more than twenty such, the outermost groups are the pools (MMLU has 57 tasks). Where a document has
several filters they are regimes: each is an evaluation of its own. Versions before 0.4.8 name no filter in
their samples: a document's rows are then the filters that the results have figures of, in their order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.importing.readers import common
from toolkit.registers.importing.readers.common import Reader, files_below, read_json_lines
from toolkit.registers.importing.source import FILE, LARGEST_TABLE, Log, bounded

WHAT = "an output of lm-evaluation-harness"
_TIME = r"(?P<time>\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}(?:\.\d+)?)"
_SAMPLES = re.compile(rf"samples_(?P<task>.+)_{_TIME}\.jsonl", re.DOTALL)
_RESULTS = re.compile(rf"results_{_TIME}\.json", re.DOTALL)
_RUN = "number of the run"
_TOLD = ("doc_id", "filter", "target", "doc_hash", "prompt_hash", "target_hash", "metrics")
_LISTS = ("arguments", "resps", "filtered_resps")
_ALWAYS = (
    "arguments (the prompts)",
    "resps",
    "filtered_resps",
    "chat_template",
    "pretty_env_info",
    "aggregate results",
)
_ARMS = ("num_fewshot", "system_instruction", "fewshot_as_multiturn", "chat_template_sha")


_OF_OLD_VERSIONS = (
    "before version 0.4.8 the rows of a document are filters, not repetitions: evaluate with a later version"
)


@dataclass(frozen=True)
class _Samples:
    """The samples of one task in one run."""

    file: Path
    results: Path
    name: str
    task: str


def _outputs(path: Path) -> list[Path]:
    return files_below(path, lambda file: _SAMPLES.fullmatch(file.name) or _RESULTS.fullmatch(file.name))


def _read(paths: list[Path]) -> Log:
    files = [one for path in paths for one in _samples_of(path)]
    bounded("bytes", sum(one.file.stat().st_size for one in files), LARGEST_TABLE, paths[0])
    results = cache(lambda path: common.document(path, WHAT))
    left_out, parts, metrics = set[str](), [], dict[str, None]()
    for number, one in enumerate(files):
        rows, lists = read_json_lines(one.file, WHAT, ("doc",))
        with common.reading(one.file, WHAT):
            metrics |= dict.fromkeys(
                name for name in rows.columns if name not in _TOLD and not name.startswith("doc.")
            )
            rows = _with_filters(rows, one, results(one.results))
            left_out |= {name for name in lists if name not in {*_LISTS, "metrics"}}
            task = rows["doc_id"].cast(pl.String).alias("task")
            parts.append(rows.drop("doc_id").with_columns(task, pl.lit(number).alias(_RUN)))
    told = [_run(one, results(one.results), left_out) for one in files]
    with common.reading(paths[0], WHAT):
        rows = pl.concat(parts, how="diagonal_relaxed")
        table = common.with_runs(rows, told, _RUN, paths[0])
        table = common.with_regimes(common.with_groups(table).with_columns(schedule=pl.lit(0)), "filter")
        common.check_tasks(table, "doc_hash", paths[0])
        named = [name for name in metrics if name in table.columns]
        if len(named) == 1:
            table = common.with_outcome(table, named[0]).drop(named)
            table = table.with_columns(metric=pl.lit(named[0]))
    starts = ("model_args.", "gen_kwargs.", "task.")
    candidates = [
        name for run in told for name in run if name in {"model", *_ARMS} or name.startswith(starts)
    ]
    repeats = [(run["pool"], run.get("task.repeats")) for run in told]
    several = sorted({f"{pool}: {count}" for pool, count in repeats if isinstance(count, int) and count > 1})
    if several:
        left_out.add(f"repeats, of which a filter makes one outcome ({', '.join(several)})")
    return Log(
        LM_EVAL.name,
        table.drop("metrics", strict=False),
        common.candidates(table, candidates),
        (*sorted(left_out), *_ALWAYS),
        (*dict.fromkeys(one.results for one in files), *(one.file for one in files)),
    )


LM_EVAL = Reader(
    "lm-evaluation-harness",
    "output of lm_eval --log_samples: a folder, or samples_*.jsonl with results_*.json beside them",
    _outputs,
    _read,
)


def _samples_of(path: Path) -> list[_Samples]:
    """Return the samples of a source: below a folder, beside results, or themselves."""
    outputs = _outputs(path)
    described = [file for file in outputs if _RESULTS.fullmatch(file.name)]
    files = [file for file in outputs if _SAMPLES.fullmatch(file.name)]
    if match := path.is_file() and _RESULTS.fullmatch(path.name):
        files = sorted(path.parent.glob(f"samples_*_{match['time']}.jsonl"))
    found = [_beside(file, path) for file in files]
    for results in described:
        _check_complete(results, {one.task for one in found if one.results == results})
    return found


def _beside(file: Path, source: Path) -> _Samples:
    match = _SAMPLES.fullmatch(file.name)
    time = match["time"] if match else ""
    beside = sorted(file.parent.glob(f"*_{time}.json"))
    if match is None or not beside:
        raise IncompleteError(
            "the samples have no results beside them, which say of which model they are",
            expected=f"results_{time}.json",
            where=file,
            remedy="copy the whole folder that lm_eval wrote",
        )
    return _Samples(file, beside[0], common.below(beside[0], source), match["task"])


def _check_complete(results: Path, there: set[str]) -> None:
    wanted = common.document(results, WHAT).get("n-samples")
    absent = sorted(set(wanted) - there) if isinstance(wanted, dict) else [] if there else ["any task"]
    if absent:
        raise IncompleteError(
            "results without their samples are no episodes",
            expected=f"samples of {', '.join(absent[:5])}",
            where=results,
            remedy="run lm_eval with --log_samples, and copy the whole folder that it wrote; or name those "
            "samples_*.jsonl that are to be read",
        )


def _with_filters(rows: pl.DataFrame, one: _Samples, results: Mapping[str, Any]) -> pl.DataFrame:
    """Return samples of which each says its filter; refuse those that have one twice."""
    if "filter" not in rows.columns:
        figures = common.part(common.part(results, "results"), one.task)
        names = list(dict.fromkeys(name.partition(",")[2] for name in figures if "," in name)) or ["none"]
        counts = rows.group_by("doc_id").len().filter(pl.col("len") != len(names)).sort("doc_id")
        if counts.height:
            first = counts.row(0, named=True)
            raise DamagedError(
                "the samples do not say which filter they are of",
                expected=f"{len(names)} a document, for each filter of the results: {', '.join(names)}",
                found=f"{first['len']} of document {first['doc_id']} of {one.task}",
                where=one.file,
                remedy=_OF_OLD_VERSIONS,
            )
        place = (pl.col("doc_id").cum_count().over("doc_id") - 1).cast(pl.UInt32)
        return rows.with_columns(filter=pl.lit(pl.Series(names)).gather(place))
    twice = rows.filter(rows.select("doc_id", "filter").is_duplicated())
    if twice.height:
        raise DamagedError(
            "a document is there twice under one filter",
            found=f"document {twice['doc_id'][0]} of {one.task}, filter {twice['filter'][0]}",
            where=one.file,
            remedy="remove the samples that are not this evaluation's",
        )
    return rows


def _run(one: _Samples, results: Mapping[str, Any], left_out: set[str]) -> dict[str, common.Cell]:
    """Return what the results say of a run and its task, the most telling first."""
    with common.reading(one.results, WHAT):
        config, lists = common.part(results, "config"), set[str]()
        arguments = _arguments(config.pop("model_args", None))
        model = results.get("model_name") or arguments.get("pretrained") or config.get("model")
        told: dict[str, common.Cell] = {FILE: one.name, "pool": one.task, "model": model}
        told |= common.flat({"model_args": arguments}, lists)
        told |= common.flat({"gen_kwargs": _arguments(config.pop("gen_kwargs", None))}, lists)
        told["num_fewshot"] = common.part(results, "n-shot").get(one.task)
        told |= {name: results.get(name) for name in _ARMS[1:]}
        told["seed"] = config.pop("random_seed", None)
        told["launched_at"] = common.moment(results.get("date"))
        told["group"] = _group(one.task, common.part(results, "group_subtasks"))
        of_task = common.part(common.part(results, "configs"), one.task)
        described = {"version": common.part(results, "versions").get(one.task)} | of_task
        described.pop("metadata", None)  # the model's arguments once more, and the file's place
        told |= common.flat({"config": config, "task": described}, lists)
        better = common.part(common.part(results, "higher_is_better"), one.task)
        told |= common.flat({"higher_is_better": better}, lists)
        others = ("lm_eval_version", "transformers_version", "git_hash", "model_source")
        told |= {name: results.get(name) for name in others}
        left_out |= lists
    return told


def _arguments(content: object) -> dict[str, Any]:
    """Return arguments of a model, which older versions write as they were typed: `name=value,name=value`."""
    if isinstance(content, Mapping):
        return dict(content)
    pairs = (pair.partition("=") for pair in content.split(",")) if isinstance(content, str) else ()
    return {name.strip(): value for name, _, value in pairs if name.strip()}


def _group(task: str, subtasks: Mapping[str, list[str]]) -> str | None:
    """Return the outermost group of a task."""
    group, seen = task, set[str]()
    while group not in seen:
        seen.add(group)
        group = next((name for name, tasks in subtasks.items() if group in tasks), group)
    return None if group == task else group
