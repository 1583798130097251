"""Results of evaluation programs: promptfoo's, and the logs of OpenAI evals."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.importing.readers import common
from toolkit.registers.importing.readers.common import Cell, Reader, Row, files_below
from toolkit.registers.importing.source import FILE, LARGEST_TABLE, LONGEST_LINE, Log, bounded


def _lines(file: Path, what: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON lines; a file whose writer was stopped has half of one at its end."""
    with file.open("rb") as opened:
        for number, line in enumerate(iter(partial(opened.readline, LONGEST_LINE + 1), b""), start=1):
            bounded("bytes in a line", len(line), LONGEST_LINE, file)
            if not line.strip():
                continue
            with common.reading(
                file,
                what,
                "a JSON object on each line",
                f"where line {number} is the last, and was not written to its end: remove it",
            ):
                content = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
                if not isinstance(content, dict):
                    raise TypeError(f"line {number} is no JSON object")
                yield content


# promptfoo: a result is a test that one column played, a prompt with a provider. A test has no name: it is
# what its description, variables and assertions say. `testIdx` counts repetitions, too.

PROMPTFOO_SAYS = "results of promptfoo"
_ERROR = 2
_UNSCORED = "No assertions"
_LONGEST_LABEL = 40
_TIME = rb'("timestamp"\s*:\s*"[^"]*"\s*,\s*)?'
_SUMMARY = re.compile(
    rb'("results"\s*:|^)\s*\{\s*"version"\s*:\s*\d+\s*,\s*' + _TIME + rb'"(prompts|results)"'
)
_OF_A_RESULT = ("success", "score", "provider", "prompt", "testIdx", "promptIdx")
_NO_IDENTITY = ("sessionId",)


def _is_promptfoo(file: Path) -> bool:
    if file.suffix == ".json":
        return bool(_SUMMARY.search(common.beginning(file)))
    return file.suffix == ".jsonl" and {*_OF_A_RESULT} <= common.first_object(file).keys()


@dataclass
class _Promptfoo:
    """What is gathered from files of results."""

    rows: list[Row] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)
    results: dict[object, Path] = field(default_factory=dict)  # id of a result → the file that has it


def _read_promptfoo(paths: list[Path]) -> Log:
    """Read results.

    A row is a result: `task` (of its test), `schedule` (which repetition), `pool` (what the suite is called),
    `provider` and `prompt_label`, `true_success`, `score` and `score.NAME` of each named one.
    """
    files = common.sources(paths, PROMPTFOO)
    found = _Promptfoo()
    for file, name in files:
        _of_file(file, name, found)
    if not any(row.get("true_success") is not None for row in found.rows):
        raise IncompleteError(
            "no result of the log has an outcome",
            expected="tests with assertions, played without an error",
            found=next((row["error"] for row in found.rows if row["error"]), "no result"),
            where=paths[0],
            remedy="give the tests assertions (promptfoo passes every answer without), and run it again",
        )
    with common.reading(paths[0], PROMPTFOO_SAYS):
        _name_pools(found.rows)
        table = common.with_prompts(common.frame(found.rows, paths[0]), "prompt.raw")
        settings = [name for name in table.columns if name.startswith("provider.")]
        told = common.candidates(table, ["provider", "prompt_label", *settings, "suite"])
        table = common.with_outcome(table, "true_success")
    always = ("responses but their text", "parts of gradings", "aggregate results", "traces")
    return Log(
        PROMPTFOO.name, table, told, (*sorted(found.left_out), *always), tuple(file for file, _ in files)
    )


PROMPTFOO = Reader(
    "promptfoo",
    "results that promptfoo eval writes (-o FILE.json or FILE.jsonl), or a folder of them",
    partial(files_below, fits=_is_promptfoo),
    _read_promptfoo,
)


def _of_file(file: Path, name: str, found: _Promptfoo) -> None:
    if file.suffix == ".jsonl":
        whole: dict[str, Any] = {"results": [*_lines(file, PROMPTFOO_SAYS)]}
    else:
        whole = common.document(file, PROMPTFOO_SAYS, LARGEST_TABLE // 4)
    with common.reading(file, PROMPTFOO_SAYS):
        summary = whole if isinstance(whole.get("results"), list) else common.part(whole, "results")
        results = common.documents(summary, "results")
        config = common.part(whole, "config")
        told: Row = {
            FILE: name,
            "suite": config.get("description"),
            "eval_id": whole.get("evalId"),
            "launched_at": summary.get("timestamp"),
        }
        rows = [told | _result(result, config, found.left_out) for result in results]
        labels = _columns(results)
        seen, counts = set[tuple[object, object]](), Counter[tuple[object, object]]()
        order = list(range(len(rows)))
        if all(isinstance(result.get("testIdx"), int) for result in results):
            order = sorted(order, key=lambda at: results[at]["testIdx"])
        for at in order:
            result, row = results[at], rows[at]
            column = result.get("promptIdx", (row["provider"], row["prompt_label"]))
            place = (result.get("testIdx", at), str(column))
            if place in seen:
                raise DamagedError(
                    "a result is in the file twice",
                    found=f"test {place[0]} of column {place[1]}",
                    where=file,
                    remedy="write each evaluation into a file of its own",
                )
            seen.add(place)
            if result.get("id"):
                remedy = "leave out the file of JSON lines, or the older export"
                common.check_new(result["id"], found.results, "a result", file, remedy)
            row["provider"] = labels.get(column, row["provider"])
            row["schedule"] = counts[str(column), row["task"]]
            counts[str(column), row["task"]] += 1
            if not row.pop("_named") and row["schedule"]:
                raise DamagedError(
                    "nothing tells the tests of the log apart",
                    expected="variables or a description in each test",
                    where=file,
                    remedy="give each test a description; or export the results again, without "
                    "PROMPTFOO_STRIP_TEST_VARS: promptfoo export eval ID -o FILE.json",
                )
    found.rows += rows


def _columns(results: list[dict[str, Any]]) -> dict[object, str]:
    """Return the providers' names by column; of two columns that say the same, each with its number."""
    columns = {one["promptIdx"]: (_provider(one), _label(one)) for one in results if "promptIdx" in one}
    told = Counter(columns.values())
    return {
        column: f"{words[0]} #{column}" if told[words] > 1 else words[0] for column, words in columns.items()
    }


def _provider(result: Mapping[str, Any]) -> str:
    provider = result["provider"]
    return str(provider.get("label") or provider["id"]) if isinstance(provider, dict) else str(provider)


def _label(result: Mapping[str, Any]) -> str:
    """Return what a prompt is called; where it has no short label, by a digest."""
    prompt = common.part(result, "prompt")
    label = str(prompt.get("label") or prompt.get("display") or prompt.get("raw"))
    label = label.removeprefix(f"[{_provider(result)}] ")  # older versions say it there, too
    is_name = len(label) <= _LONGEST_LABEL and "\n" not in label
    return label if is_name else f"prompt {hashlib.sha256(label.encode()).hexdigest()[:8]}"


def _result(result: Mapping[str, Any], config: Mapping[str, Any], left_out: set[str]) -> dict[str, Any]:
    test, grading = common.part(result, "testCase"), common.part(result, "gradingResult")
    said = common.part(test, "vars") or common.part(result, "vars")
    names = {name: said[name] for name in said if name not in _NO_IDENTITY and not name.startswith("_")}
    description = test.get("description") or result.get("description")
    identity = json.dumps([description, names, test.get("assert")], sort_keys=True)
    failure = result.get("failureReason")
    answer = common.part(result, "response")
    problem = result.get("error") or answer.get("error")
    # Versions before `failureReason` also put why an assertion failed there: then there is a grading.
    is_error = bool(problem) and not (grading or result["success"])
    has_failed = is_error if failure is None else failure == _ERROR
    is_scored = not has_failed and (
        grading.get("reason") != _UNSCORED or bool(grading.get("componentResults"))
    )
    output, error = answer.get("output"), str(problem or "an error")
    scores = common.part(result, "namedScores") or common.part(grading, "namedScores")
    row: dict[str, Any] = {
        "task": hashlib.sha256(identity.encode()).hexdigest()[:16],
        "provider": _provider(result),
        "prompt_label": _label(result),
        "description": description,
        "true_success": result["success"] if is_scored else None,
        "score": result.get("score") if is_scored else None,
        "error": error.partition("\n")[0] if has_failed else None,
        "output": output if isinstance(output, str) else None,
        "prompt.raw": common.part(result, "prompt").get("raw"),
        # Of a provider that says neither, a result has 0.
        "tokens": common.part(answer, "tokenUsage").get("total"),
        "cost": answer.get("cost"),
        "latency_ms": result.get("latencyMs"),
        "cached": answer.get("cached"),
        "_named": bool(names or description),
    }
    row |= common.flat({"score": scores if is_scored else {}}, left_out)
    row |= common.flat({"vars": names, "metadata": common.part(test, "metadata")}, left_out)
    return row | _settings(result["provider"], config, left_out)


def _settings(provider: object, config: Mapping[str, Any], left_out: set[str]) -> Row:
    """Return what the suite sets for a provider, where one of its providers alone has that name."""
    listed = [one for one in config.get("providers") or () if isinstance(one, dict)]
    own = provider.get("label") or provider.get("id") if isinstance(provider, dict) else provider
    fitting = [one for one in listed if own in (one.get("label"), one.get("id"))]
    settings = fitting[0].get("config") if len(fitting) == 1 else None
    return common.flat({"provider": settings}, left_out) if isinstance(settings, dict) else {}


def _name_pools(rows: list[Row]) -> None:
    """Name the pools by their suites; suites that share a test are one."""
    suites: dict[Cell, set[Cell]] = {}
    for row in rows:
        suites.setdefault(row["task"], set()).add(row["suite"])
    is_one = any(len(names) > 1 for names in suites.values())
    for row in rows:
        row["pool"] = "tests" if is_one or not row["suite"] else row["suite"]


# OpenAI evals: a file is a run, its specification first and its report last; events between are of samples.

EVALS_SAYS = "a log of OpenAI evals"
_OUTCOMES = ("metrics.score", "metrics.accuracy")
_READ = ("match", "metrics", "sampling", "error")
_RUN = "number of the run"
_UNENDED = "{}: no report of run {}, which did not end"


def _spec(content: Mapping[str, Any]) -> dict[str, Any] | None:
    spec = content.get("spec")
    return spec if isinstance(spec, dict) and {"eval_name", "run_id"} <= spec.keys() else None


@dataclass
class _Sample:
    """What the events of a run say of a sample."""

    matches: list[dict[str, Any]] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    prompt: str | None = None
    tokens: int | None = None
    error: str | None = None


def _read_evals(paths: list[Path]) -> Log:
    """Read the logs of runs.

    A row is a match of a sample: `task`, `schedule` (which match of it), `pool` (the eval), `model`,
    `true_success`, or where samples have metrics only, the one that is called score or accuracy.
    """
    files = common.sources(paths, EVALS)
    left_out, rows, told = set[str](), list[Row](), list[Row]()
    runs: dict[object, Path] = {}
    for file, name in files:
        for spec, samples in _runs(file, left_out):
            common.check_new(spec["run_id"], runs, "a run", file, "leave out the one that is not whole")
            with common.reading(file, EVALS_SAYS):
                told.append({FILE: name, **_run_facts(spec, left_out)})
                for sample, events in samples.items():
                    rows += [{_RUN: len(told) - 1, "task": sample, **one} for one in _rows(events, left_out)]
    if not rows:
        raise _without_outcomes(paths[0])
    failed = sum(bool(row.get("error")) and row.get("correct") is not None for row in rows)
    if failed:
        left_out.add(f"outcomes of {failed} samples with an error")
    with common.reading(paths[0], EVALS_SAYS):
        table = common.with_runs(common.frame(rows, paths[0]), told, _RUN, paths[0])
        table = _with_outcome(common.with_prompts(table, "sampling.prompt"), paths[0])
        config = [name for run in told for name in run if name.startswith("run_config.")]
        candidates = common.candidates(table, ["model", "split", *config])
    return Log(EVALS.name, table, candidates, tuple(sorted(left_out)), tuple(file for file, _ in files))


EVALS = Reader(
    "OpenAI evals",
    "logs that oaieval records (.jsonl, with the specification of a run first), or a folder of them",
    partial(
        files_below, fits=lambda file: file.suffix == ".jsonl" and bool(_spec(common.first_object(file)))
    ),
    _read_evals,
)


def _runs(file: Path, left_out: set[str]) -> list[tuple[dict[str, Any], dict[str, _Sample]]]:
    """Return the runs of a file, each with its samples."""
    specs: dict[object, dict[str, Any]] = {}
    samples: dict[object, dict[str, _Sample]] = {}
    seen, last = set[tuple[object, object]](), None
    for line in _lines(file, EVALS_SAYS):
        with common.reading(file, EVALS_SAYS, "a specification, events and a report"):
            if spec := _spec(line):
                last = spec["run_id"]
                if last in specs:
                    raise ValueError(f"run {last} twice")
                specs[last], samples[last] = spec, {}
                left_out.add(_UNENDED.format(file.name, last))
            elif "final_report" in line:
                left_out.discard(_UNENDED.format(file.name, line.get("run_id", last)))
                left_out.add("final reports")
            else:
                place = (line["run_id"], line["event_id"])
                if place in seen:
                    raise ValueError(f"event {place[1]} of run {place[0]} twice")
                seen.add(place)
                _add(samples[line["run_id"]].setdefault(str(line["sample_id"]), _Sample()), line, left_out)
    left_out |= {f"{file.name}: no samples of run {run}" for run in specs if not samples[run]}
    return [(spec, samples[run]) for run, spec in specs.items()]


def _add(sample: _Sample, event: Mapping[str, Any], left_out: set[str]) -> None:
    kind, data = event["type"], event["data"]
    if kind not in _READ or not isinstance(data, dict):
        left_out.add(f"events of type {kind}")
    elif kind == "match":
        sample.matches.append(data)
    elif kind == "metrics":
        sample.metrics.append(data)
    elif kind == "error":
        sample.error = f"{data.get('type')}: {data.get('message')}".partition("\n")[0]
    else:
        prompt, used = data.get("prompt"), common.part(data, "usage").get("total_tokens")
        if sample.prompt is None and prompt:
            sample.prompt = prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False)
        if isinstance(used, int):
            sample.tokens = (sample.tokens or 0) + used


def _rows(sample: _Sample, left_out: set[str]) -> Iterator[Row]:
    for at in range(max(len(sample.matches), len(sample.metrics), 1)):
        match = sample.matches[at] if at < len(sample.matches) else {}
        metrics = sample.metrics[at] if at < len(sample.metrics) else {}
        yield {
            "schedule": at,
            "correct": match.get("correct"),
            **common.flat({name: match.get(name) for name in ("expected", "picked")}, left_out),
            **common.flat({"metrics": metrics}, left_out),
            "sampling.prompt": sample.prompt,
            "tokens": sample.tokens,
            "error": sample.error,
        }


def _run_facts(spec: Mapping[str, Any], left_out: set[str]) -> Row:
    """Return what a specification says of its run; older ones name a model, others completion functions."""
    models = spec.get("completion_fns") or spec.get("model_names") or spec.get("model_name")
    if isinstance(models, dict):
        models = models.get("completions")
    created = str(spec.get("created_at") or "")  # in UTC, which it does not say
    config = common.part(spec, "run_config")
    config.pop("completion_fns", None)
    return {
        "pool": spec["eval_name"],
        "model": " + ".join(map(str, models)) if isinstance(models, list) else str(models),
        "split": spec.get("split"),
        "run_id": spec["run_id"],
        "seed": config.pop("seed", None),
        "launched_at": f"{created}+00:00" if re.fullmatch(r"[-\d]+ [:.\d]+", created) else created or None,
        **{
            name: value
            for name, value in common.flat({"run_config": config}, left_out).items()
            if name != "run_config.command"
        },
    }


def _with_outcome(table: pl.DataFrame, path: Path) -> pl.DataFrame:
    metrics = [
        name for name in table.columns if name.startswith("metrics.") and table[name].dtype.is_numeric()
    ]
    likely = ["correct", *_OUTCOMES, *(metrics if len(metrics) == 1 else [])]
    name = next((one for one in likely if one in table.columns), None)
    if name is None and metrics:
        return table
    if name is None:
        raise _without_outcomes(path)
    if "error" in table.columns:
        table = table.with_columns(
            pl.when(pl.col("error").is_null()).then(pl.col(each)).alias(each)
            for each in {"correct", *metrics} & {*table.columns}
        )
    return common.with_outcome(table, name).drop("correct", strict=False)


def _without_outcomes(path: Path) -> IncompleteError:
    return IncompleteError(
        "no sample of the log has an outcome",
        expected="events of type match or metrics",
        where=path,
        remedy="let the run end: oaieval writes what it has at its end, and every hundred events",
    )
