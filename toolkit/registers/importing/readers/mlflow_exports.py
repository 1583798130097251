"""What MLflow exports: traces with their assessments. Tables of runs have no items, and are refused.

A trace is an episode: its inputs are the task. The feedback of each scorer is a column, `score.NAME`, and
where there is one scorer, the outcome. The frames of `search_traces` and of `mlflow.genai.evaluate` have each
trace whole in one column, whatever they were saved as.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from toolkit.errors import IncompleteError
from toolkit.registers.importing.readers import common
from toolkit.registers.importing.readers.common import Reader, Row
from toolkit.registers.importing.readers.tables import header, tables_below
from toolkit.registers.importing.source import FILE, Log, is_truth, read_source

WHAT = "a table of MLflow's traces"
_OF_TRACES = {"trace_id", "trace", "state"}
_OF_RUNS = {"run_id", "experiment_id", "status"}
_OWN = "mlflow."
"""Before the names of tags and metadata that are MLflow's, not the user's."""
_EXPORT = (
    "export the traces of each run: mlflow.search_traces(run_id=RUN).to_json('RUN.jsonl', orient='records', "
    "lines=True); or its items: mlflow.artifacts.download_artifacts(run_id=RUN, "
    "artifact_path='eval_results_table.json', dst_path=RUN)"
)


def _exports(path: Path) -> list[Path]:
    """Return tables of traces or of runs; none where some table is another."""
    files = tables_below(path)
    of_mlflow = (any(own <= {*header(file)} for own in (_OF_TRACES, _OF_RUNS)) for file in files)
    return files if all(of_mlflow) else []


def _read(paths: list[Path]) -> Log:
    files = common.sources(paths, MLFLOW)
    left_out, traces = set[str](), dict[object, Path]()
    rows: list[Row] = []
    for file, name in files:
        if {*header(file)} >= _OF_RUNS:
            raise IncompleteError(
                "a table of MLflow's runs has no items",
                expected="a row a trace, or a row an item of each run",
                where=file,
                remedy=_EXPORT,
            )
        table = read_source(file, set())
        with common.reading(file, WHAT, "a JSON document of the whole trace in column 'trace'"):
            for text in table["trace"]:
                content = json.loads(text)
                remedy = "leave out one of the exports"
                common.check_new(content["info"]["trace_id"], traces, "a trace", file, remedy)
                rows.append({FILE: name, **_trace(content, left_out)})
    failed = sum(row["error"] is not None and _is_assessed(row) for row in rows)
    if failed:
        left_out.add(f"assessments of {failed} traces that did not end well")
    for row in rows:
        row |= {name: None for name in row if name.startswith("score.") and row["error"] is not None}
    with common.reading(paths[0], WHAT):
        table = common.with_prompts(common.frame(_numbered(rows), paths[0]), "inputs")
        scores = [name for name in table.columns if name.startswith("score.")]
        if not scores:
            raise IncompleteError(
                "no trace of the log was assessed",
                expected="feedback of a scorer on each",
                where=paths[0],
                remedy="evaluate them: mlflow.genai.evaluate(data=..., predict_fn=..., scorers=[...])",
            )
        names = [name for name in table.columns if name.startswith(("tags.", "metadata."))]
        told = common.candidates(table, [FILE, "model", "run", *names])
        if len(scores) == 1 and (table[scores[0]].dtype != pl.String or is_truth(table[scores[0]])):
            table = common.with_outcome(table, scores[0])
    return Log(
        MLFLOW.name, table, told, (*sorted(left_out), "spans of traces"), tuple(file for file, _ in files)
    )


MLFLOW = Reader(
    "MLflow",
    "traces of mlflow.search_traces or mlflow.genai.evaluate, saved as JSON, JSON lines, CSV or Parquet",
    _exports,
    _read,
)


def _trace(content: Mapping[str, Any], left_out: set[str]) -> Row:
    info, spans = common.part(content, "info"), common.documents(common.part(content, "data"), "spans")
    told, tags = common.part(info, "trace_metadata"), common.part(info, "tags")
    root: Mapping[str, Any] = next((span for span in spans if not span.get("parent_span_id")), {})
    said = common.part(root, "attributes")
    inputs = said.get("mlflow.spanInputs") or told.get("mlflow.traceInputs") or info.get("request_preview")
    inputs = inputs if isinstance(inputs, str | None) else json.dumps(inputs)
    state, usage = info.get("state"), {"used": json.loads(told.get("mlflow.trace.tokenUsage") or "{}")}
    why = common.part(root, "status").get("message") or f"the trace's state is {state}"
    row: Row = {
        "task": hashlib.sha256(inputs.encode()).hexdigest()[:16] if inputs else None,
        "run": told.get("mlflow.sourceRun"),
        "model": told.get("mlflow.modelId"),
        "pool": "tests",
        "launched_at": info.get("request_time"),
        "inputs": inputs,
        "outputs": said.get("mlflow.spanOutputs"),
        "latency_ms": info.get("execution_duration_ms"),
        "tokens": common.part(usage, "used").get("total_tokens"),
        "error": None if state == "OK" else str(why).partition("\n")[0],
    }
    for name, values in (("tags", tags), ("metadata", told)):
        own = {key: value for key, value in values.items() if not key.startswith(_OWN)}
        row |= common.flat({name: own}, left_out)
    for one in common.documents(info, "assessments"):
        if not one.get("valid", True):
            continue  # a later one corrects it
        kind = "score" if "feedback" in one else "expectation"
        name = f"{kind}.{one['assessment_name']}"
        if name in row:
            left_out.add(f"{name}: all but the last of several")
        row |= common.flat({name: common.part(one, kind.replace("score", "feedback")).get("value")}, left_out)
    return row


def _is_assessed(row: Row) -> bool:
    return any(name.startswith("score.") and value is not None for name, value in row.items())


def _numbered(rows: list[Row]) -> list[Row]:
    """Return traces with `schedule`, which of its run's with its inputs each is, and when the run began."""
    began: dict[tuple[object, ...], str] = {}
    counts = Counter[tuple[object, ...]]()
    for row in sorted(rows, key=lambda row: str(row["launched_at"])):
        run = (row[FILE], row["run"])
        row["schedule"] = counts[*run, row["task"]]
        counts[*run, row["task"]] += 1
        row["launched_at"] = began.setdefault(run, str(row["launched_at"]))
    return rows
