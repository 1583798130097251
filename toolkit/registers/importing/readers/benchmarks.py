"""What benchmarks of models write: reports of SWE-bench's harness, and runs of HELM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.importing.readers import common
from toolkit.registers.importing.readers.agents import Cells, Items, log_of, several
from toolkit.registers.importing.readers.common import (
    Reader,
    beginning,
    check_each_once,
    files_below,
    reading,
)
from toolkit.registers.importing.source import FILE, LARGEST_TABLE, Log
from toolkit.structs import replace

# SWE-bench's harness sums a run up in MODEL.RUN_ID.json, and has a report of each instance that it tested in
# logs/run_evaluation/RUN_ID/MODEL. An empty patch is a failure, as on the leaderboard. What it could not
# test, be it that a patch does not apply or that Docker failed, is an error: it has no outcome.

SWE_WHAT = "a report of SWE-bench's harness"
_SWE_MARKS = (b'"total_instances"', b'"submitted_instances"')
_STATUS: Mapping[str, tuple[bool | None, str | None]] = {
    "resolved": (True, None),
    "unresolved": (False, None),
    "empty_patch": (False, None),
    "error": (None, "the harness could not test it (error_ids): run_instance.log says why"),
    "incomplete": (None, "there is no prediction for it (incomplete_ids)"),
}


def _is_summary(file: Path) -> bool:
    return file.suffix == ".json" and all(mark in beginning(file) for mark in _SWE_MARKS)


def _is_instance(file: Path) -> bool:
    return file.name == "report.json" and b'"patch_is_None"' in beginning(file)


_swe_files = partial(files_below, fits=lambda file: _is_summary(file) or _is_instance(file))


def _read_swe(paths: list[Path]) -> Log:
    files = common.sources(paths, SWE_BENCH, each_once=False)
    summaries = {file: name for file, name in files if not _is_instance(file)}
    check_each_once(list(summaries))
    tested: dict[Path, dict[str, Path]] = {}
    for file, _ in files:
        if file not in summaries:
            tested.setdefault(file.parent.parent, {})[file.parent.name] = file
    left: set[str] = {"tests of instances"}
    runs = []
    for file, name in summaries.items():
        own = [folder for folder in tested if f"{folder.name}.{folder.parent.name}" == file.stem]
        reports = [one for folder in own for one in tested.pop(folder).items()]
        runs.append(_summary(file, name, dict(reports), left))
    names = dict(zip(tested, common.run_names(list(tested)), strict=True)) if tested else {}
    runs += [_instances(folder, names[folder], own) for folder, own in tested.items()]
    return log_of(SWE_BENCH.name, _without_unasked(runs, left), ("model", "evaluation"), left)


def _summary(file: Path, name: str, reports: Mapping[str, Path], left: set[str]) -> Items:
    content = common.document(file, SWE_WHAT)
    with reading(file, SWE_WHAT):
        listed = {status: list(map(str, content.get(f"{status}_ids", ()))) for status in _STATUS}
        counts = {name: content.get(f"{name}_instances") for name in _STATUS}
        said = {name: count for name, count in counts.items() if count is not None}
        if "incomplete_ids" in content:
            said["total"] = content["total_instances"]
        found = {name: len(ids) for name, ids in listed.items()} | {"total": sum(map(len, listed.values()))}
        twice = several(one for ids in listed.values() for one in ids)
        wrong = {name: count for name, count in said.items() if count != found[name]}
        if twice or wrong:
            raise DamagedError(
                "the report's counts and lists of instances are not of one run",
                expected="each instance in one list" if twice else f"{wrong}",
                found=twice or f"{ {name: found[name] for name in wrong} }",
                where=file,
                remedy="have the harness write the report anew",
            )
        status = {one: name for name, ids in listed.items() for one in ids}
        broken, reasons = set(content.get("infra_failure_ids", ())), common.part(content, "failure_reasons")
        foreign = [one for one in content.get("submitted_ids", ()) if one not in status]
        left |= (
            {f"{len(foreign)} predictions of {name} for instances that the data set lacks"}
            if foreign
            else set()
        )
        rows = []
        for one, state in status.items():
            row = _instance(one, state) | {"failure_reason": reasons.get(one)}
            if one in broken and state == "unresolved":
                row |= {"true_success": None, "error": f"infrastructure failure: {reasons.get(one)}"}
            if one in reports:
                row |= _tested(reports[one], one, state)
            rows.append(row)
    model, _, run = file.stem.rpartition(".")
    told: Cells = {
        FILE: name,
        "pool": "swe_bench",
        "model": model or run,
        "evaluation": run if model else None,
    }
    return Items(told, rows, [file, *reports.values()])


def _instances(folder: Path, name: str, reports: Mapping[str, Path]) -> Items:
    """Return a run whose instances have reports, and that has none itself."""
    errors = {log.parent.name for log in folder.glob("*/run_instance.log")} - set(reports)
    rows = [_instance(one, "error") for one in sorted(errors)]
    rows += [_instance(one, None) | _tested(file, one, None) for one, file in reports.items()]
    told: Cells = {FILE: name, "pool": "swe_bench", "model": folder.name, "evaluation": folder.parent.name}
    return Items(told, rows, list(reports.values()))


def _instance(name: str, status: str | None) -> Cells:
    outcome, error = _STATUS[status or "error"]
    repository = name.rpartition("-")[0].replace("__", "/")
    told: Cells = {"task": name, "schedule": 0, "true_success": outcome, "error": error}
    return told | {"status": status, "repo": repository}


def _tested(file: Path, name: str, status: str | None) -> Cells:
    content = common.document(file, SWE_WHAT)
    with reading(file, SWE_WHAT):
        report = common.part(content, name)
        resolved = report["resolved"]
        if not isinstance(resolved, bool):
            raise TypeError(f"resolved is {resolved!r}")
    own = "resolved" if resolved else "unresolved"
    if status not in {None, own}:
        raise DamagedError(
            "the report of a run and that of an instance disagree",
            expected=f"{name} {own}",
            found=status,
            where=file,
            remedy="have the harness write the run's report anew",
        )
    told: Cells = {"patch_successfully_applied": report.get("patch_successfully_applied")}
    if status is None:
        told |= {"true_success": resolved, "status": own, "error": None}
        if report.get("infra_failure"):
            why = f"infrastructure failure: {report.get('infra_failure_reason')}"
            told |= {"true_success": None, "error": why}
    return told


def _without_unasked(runs: Sequence[Items], left: set[str]) -> list[Items]:
    """Return runs without the instances that none of them has a prediction for: nobody was asked."""
    asked = {row["task"] for run in runs for row in run.rows if row["status"] != "incomplete"}
    rest = {row["task"] for run in runs for row in run.rows} - asked
    left |= {f"{len(rest)} instances that no run has a prediction for"} if rest else set()
    return [replace(run, rows=[row for row in run.rows if row["task"] in asked]) for run in runs]


SWE_BENCH = Reader(
    "SWE-bench",
    "reports of SWE-bench's harness (MODEL.RUN_ID.json, or logs/run_evaluation/RUN_ID)",
    _swe_files,
    _read_swe,
)


# HELM has a folder for each run, with its specification, its requests, and statistics of each instance: one
# that is perturbed is another regime, with other examples in its prompt another schedule. A request that
# failed is scored as an empty answer, where HELM goes on at all: it has no outcome here.

HELM_WHAT = "what HELM writes"
SPEC, STATS, STATES = "run_spec.json", "per_instance_stats.json", "scenario_state.json"
_HELM_MARKS = {SPEC: b'"scenario_spec"', STATS: b'"instance_id"'}
ORIGINAL = "original"
"""The regime of instances that are not perturbed."""
_OF_CLASS = ("name", "robustness", "fairness", "computed_on")
"""What is said of a perturbation that tells no two of them apart, but for its name."""
_OWN = ("task", "schedule", "regime", "pool", "group", "error", "input")
_helm_files = partial(
    files_below, fits=lambda file: file.name in _HELM_MARKS and _HELM_MARKS[file.name] in beginning(file)
)
Place = tuple[str, str, int]
"""An instance, its regime and its trial."""


def _read_helm(paths: list[Path]) -> Log:
    found = common.sources(paths, HELM, each_once=False)
    folders = list(dict.fromkeys(file.parent for file, _ in found))
    absent = [folder / name for folder in folders for name in _HELM_MARKS if not (folder / name).is_file()]
    if absent:
        raise IncompleteError(
            "a run of HELM lacks a file",
            expected=" and ".join(_HELM_MARKS),
            found=f"no {absent[0].name}",
            where=absent[0].parent,
            remedy="let helm-run finish the run, copy its whole folder, or leave it out",
        )
    check_each_once([folder / STATS for folder in folders])
    names = dict(zip(folders, common.run_names(folders), strict=True))
    left, twice = {"completions", "statistics of whole runs"}, set[str]()
    runs = [_helm_run(folder, names[folder], left, twice) for folder in folders]
    left |= {f"{name}, which an instance has twice" for name in twice}
    runs = [replace(run, rows=[_without(row, twice) for row in run.rows]) for run in runs]
    metrics = {name for run in runs for row in run.rows for name in row} - {*_OWN}
    return log_of(HELM.name, runs, ("model", "adapter.", "scenario."), left, metrics)


def _without(row: Cells, names: set[str]) -> Cells:
    return {name: value for name, value in row.items() if name not in names}


def _helm_run(folder: Path, name: str, left: set[str], twice: set[str]) -> Items:
    spec = common.document(folder / SPEC, HELM_WHAT)
    with reading(folder / SPEC, HELM_WHAT):
        adapter, settings = (
            common.part(spec, "adapter_spec"),
            common.part(common.part(spec, "scenario_spec"), "args"),
        )
        base = str(spec["name"]).partition(":")[0]
        pool = ":".join([base, *(f"{key}={settings[key]}" for key in sorted(settings))])
        told: Cells = {FILE: name, "model": adapter.pop("model", None)}
        told["model_deployment"] = adapter.pop("model_deployment", None)
        told |= common.flat({"adapter": adapter, "scenario": settings}, left)
    rows: dict[Place, Cells] = {}
    splits = _states(folder, rows, told, left)
    content = common.parsed(folder / STATS, HELM_WHAT, LARGEST_TABLE)
    with reading(folder / STATS, HELM_WHAT):
        for one in common.parts(content, "statistics"):
            place = _place(one["instance_id"], common.part(one, "perturbation"), one["train_trial_index"])
            row = rows.setdefault(place, {"error": None, "input": None})
            for stat in common.parts(one["stats"], "stats"):
                told_of = common.part(stat, "name")
                splits[place] = told_of.get("split") or splits.get(place)
                metric, count = str(told_of["name"]), stat["count"]
                metric = common.OWN + metric if metric in {*_OWN, *told} else metric
                value = stat["sum"] / count if count else None
                twice |= {metric} if row.setdefault(metric, value) != value else set()
    whole = [_placed(place, row, splits.get(place), (pool, base)) for place, row in rows.items()]
    files = [folder / one for one in (*_HELM_MARKS, STATES) if (folder / one).is_file()]
    return Items(told, whole, files)


def _placed(place: Place, row: Cells, split: str | None, pools: tuple[str, str]) -> Cells:
    """Return an instance with its place; of one whose request failed, without its statistics."""
    if row["error"]:
        row = {key: row[key] for key in ("error", "input")}
    elif row.keys() == {"error", "input"}:
        row["error"] = f"{STATS} has no statistics of it"
    pool, group = (f"{name}:{split}" if split else name for name in pools)
    task, regime, trial = place
    return row | {"task": task, "regime": regime, "schedule": trial, "pool": pool, "group": group}


def _states(folder: Path, rows: dict[Place, Cells], told: Cells, left: set[str]) -> dict[Place, str | None]:
    """Begin the rows of a run with what its requests say; return the splits of its instances."""
    if not (folder / STATES).is_file():
        left.add(f"prompts and failed requests of {folder.name}, which {STATES} would say")
        return {}
    content = common.document(folder / STATES, HELM_WHAT, LARGEST_TABLE)
    splits: dict[Place, str | None] = {}
    with reading(folder / STATES, HELM_WHAT):
        results = []
        for state in common.parts(content["request_states"], "request_states"):
            instance, result = common.part(state, "instance"), common.part(state, "result")
            perturbation = common.part(instance, "perturbation")
            place = _place(instance["id"], perturbation, state["train_trial_index"])
            text = None if perturbation else common.part(instance, "input").get("text")
            row = rows.setdefault(place, {"error": None, "input": text})
            if result.get("success") is False:
                row["error"] = str(result.get("error") or "the request failed")
            splits[place] = instance.get("split")
            results.append(result.get("request_datetime"))
        times = [time for time in results if isinstance(time, int | float)]
        told["launched_at"] = common.moment(min(times)) if times else None
    return splits


def _place(task: object, perturbation: Mapping[str, Any], trial: Any) -> Place:
    if not perturbation:
        return str(task), ORIGINAL, int(trial)
    settings = [f"{key}={perturbation[key]}" for key in sorted(perturbation) if key not in _OF_CLASS]
    return str(task), " ".join([str(perturbation["name"]), *settings]), int(trial)


HELM = Reader(
    "HELM",
    "folders of HELM's runs (benchmark_output/runs/SUITE/RUN), or a folder of them",
    _helm_files,
    _read_helm,
)
