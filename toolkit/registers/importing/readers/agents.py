"""What benchmarks of agents write: results and scores of BFCL, trajectories of tau2 and tau-bench.

An item has no outcome where the program around the agent failed, and `error` says how. What the agent did
wrong is a failure, as each benchmark counts it.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.importing.readers import common
from toolkit.registers.importing.readers.common import (
    Reader,
    beginning,
    check_each_once,
    files_below,
    named,
    reading,
)
from toolkit.registers.importing.source import FILE, LARGEST_TABLE, MOST_CELLS, Log, bounded

_RUN = "number of the run"
Cells = dict[str, common.Cell]


@dataclass(frozen=True)
class Items:
    """A run of a benchmark."""

    told: Cells  # what is said of the whole run: its file and pool, then the likeliest arms
    rows: Sequence[Cells]  # its items
    files: Sequence[Path]  # what was read


def log_of(
    name: str,
    runs: Sequence[Items],
    arms: tuple[str, ...],
    left_out: Iterable[str],
    outcomes: Iterable[str] = ("true_success",),
) -> Log:
    """Return the log that runs make; `arms` begin the names of what runs may be compared in."""
    used = tuple(dict.fromkeys(file for run in runs for file in run.files))
    rows = [{_RUN: number, **row} for number, run in enumerate(runs) for row in run.rows]
    if not any(row.get(outcome) is not None for outcome in outcomes for row in rows):
        raise IncompleteError(
            "no item of the log has an outcome",
            found=next((row["error"] for row in rows if row["error"]), "no items"),
            where=used[0],
            remedy="run the benchmark's evaluation to its end, and import what it wrote",
        )
    with reading(used[0], f"an output of {name}"):
        told = [run.told for run in runs]
        table = common.with_groups(common.with_runs(common.frame(rows, used[0]), told, _RUN, used[0]))
        common.check_tasks(table, "input", used[0])
        table = common.with_prompts(table, "input")
        candidates = [column for one in told for column in one if column.startswith(arms)]
        return Log(name, table, common.candidates(table, candidates), tuple(sorted(left_out)), used)


def several(names: Iterable[object]) -> str:
    """Return the first names that are there more than once, as text."""
    return ", ".join([name for name, count in Counter(map(str, names)).items() if count > 1][:5])


# BFCL writes answers to result/MODEL, and to score/MODEL the counts of each category and its failures: what
# is in the results and not among the failures is a success. An error of the inference is scored as an answer,
# and is right where no call is expected: it has no outcome here.

BFCL_WHAT = "what BFCL writes"
_BFCL_NAME = r"BFCL_v(?P<version>\d+)_(?P<category>\w+)_(?P<kind>result|score)\.json"
_bfcl_match = named(_BFCL_NAME)
_bfcl_files = partial(files_below, fits=_bfcl_match)
_GROUPS = (
    *("non_live", "live", "multi_turn", "agentic", "format_sensitivity"),
    *("memory", "kv", "vector", "rec_sum"),
)
"""Folders between a model's and its files, since version 4."""
_ERROR = "Error during inference"
_SCALARS = ("latency", "input_token_count", "output_token_count", "result")


def _read_bfcl(paths: list[Path]) -> Log:
    pairs: dict[tuple[Path, str, str, str], dict[str, list[Path]]] = {}
    for file, _ in common.sources(paths, BFCL, each_once=False):
        folder, match = file.parent, _bfcl_match(file)
        while folder.name in _GROUPS:
            folder = folder.parent
        if match:
            key = (folder.parent.parent, folder.name, match["version"], match["category"])
            pairs.setdefault(key, {"result": [], "score": []})[match["kind"]].append(file)
    left: set[str] = {"prompts", "explanations of failures"}
    scored = [key for key, files in pairs.items() if not _is_preparation(key[3], files, left)]
    whole = {key: _pair(key, pairs[key]) for key in scored or pairs}
    check_each_once([result for result, _ in whole.values()])
    folders = list(dict.fromkeys(key[0] / key[1] for key in whole))
    names = dict(zip(folders, common.run_names(folders), strict=True))
    runs: list[Items] = []
    for (project, model, version, category), (result, score) in whole.items():
        name = names[project / model]
        told: Cells = {FILE: name, "pool": category, "model": model, "version": f"BFCL_v{version}"}
        parts = result.parent.relative_to(project).parts[2:]
        told["group"] = parts[0] if parts else None
        runs.append(Items(told, _answers(result, score, left), (result, score)))
    return log_of(BFCL.name, runs, ("model",), left)


def _is_preparation(category: str, files: Mapping[str, list[Path]], left: set[str]) -> bool:
    """Whether results are of the conversations that fill a memory before its items, which are not scored."""
    is_one = category.endswith("_prereq") and not files["score"]
    left |= {f"{category}, which is not scored"} if is_one else set()
    return is_one


def _pair(key: tuple[Path, str, str, str], files: Mapping[str, list[Path]]) -> tuple[Path, Path]:
    """Return the result and the score of a model in a category."""
    results, scores = files["result"], files["score"]
    if len(results) == len(scores) == 1:
        return results[0], scores[0]
    model, category = key[1], key[3]
    where = (results or scores)[0]
    if not results:
        raise IncompleteError(
            "the scores have no results beside them: they list failed items only",
            expected=f"BFCL_v{key[2]}_{category}_result.json of {model}",
            where=where,
            remedy="give the folder that has both result/ and score/",
        )
    if not scores:
        raise IncompleteError(
            "the results have no scores beside them: nothing says which answers are right",
            expected=f"BFCL_v{key[2]}_{category}_score.json of {model}",
            where=where,
            remedy="give the folder that has both result/ and score/; to score them: "
            f"bfcl evaluate --model {model} --test-category {category}",
        )
    raise DamagedError(
        f"{model} has several files of {category}",
        expected="one result and one score",
        found=", ".join(map(str, [*results, *scores])),
        where=where,
        remedy="give one folder of results and its folder of scores: --table result --table score",
    )


def _lines(file: Path) -> list[dict[str, Any]]:
    with reading(file, BFCL_WHAT), file.open("rb") as lines:
        return [dict(json.loads(line)) for line in lines if line.strip()]


def _answers(result: Path, score: Path, left: set[str]) -> list[Cells]:
    """Return the items of a category, if its scores are of these answers."""
    answers = _lines(result)
    with reading(score, BFCL_WHAT, expected="a line with total_count and correct_count, then the failures"):
        header, *failures = _lines(score) or [{}]
        told = _counts(header["total_count"], header["correct_count"])
        failed = {str(one["id"]): one for one in failures}
    with reading(result, BFCL_WHAT):
        said = {str(one["id"]): one["result"] for one in answers}
        left |= {name for one in answers for name in one} - {"id", *_SCALARS}
        found = _counts(len(answers), len(answers) - len(failures))
        twice = several([one["id"] for one in answers] + [f"{one['id']} (failed)" for one in failures])
        other = [name for name in failed if name not in said or _differs(failed[name], said[name])]
        if twice or found != told or other:
            raise DamagedError(
                "the scores are not of these results",
                expected=told,
                found=f"twice: {twice}" if twice else f"other: {', '.join(other[:5])}" if other else found,
                where=f"{result}, {score}",
                remedy="run bfcl evaluate on these results again",
            )
        return [_answer(one, failed.get(str(one["id"]))) for one in answers]


def _counts(total: object, correct: object) -> str:
    return f"total_count {total}, correct_count {correct}"


def _differs(failure: Mapping[str, Any], answer: object) -> bool:
    scored = failure.get("model_result_raw") or failure.get("model_result")
    return isinstance(scored, str) and isinstance(answer, str) and scored != answer


def _answer(one: Mapping[str, Any], failure: Mapping[str, Any] | None) -> Cells:
    said = one["result"]
    error = said if isinstance(said, str) and said.startswith(_ERROR) else None
    row: Cells = {"task": str(one["id"]), "schedule": 0, "error": error}
    row["true_success"] = None if error else failure is None
    if failure:
        explained = failure.get("error")
        inner = explained.get("error_type") if isinstance(explained, Mapping) else None
        row["error_type"] = str(failure.get("error_type") or inner)
    values = {name: one.get(name) for name in _SCALARS}
    return row | {name: value for name, value in values.items() if isinstance(value, str | int | float)}


BFCL = Reader(
    "BFCL",
    "the folder of bfcl-eval that has both result/ and score/, or both of them",
    _bfcl_files,
    _read_bfcl,
)


# tau2 and tau-bench call a reward of 1, within a millionth, a success. What ends a simulation early is a
# failure of its agent, as tau2 counts it, but for errors of infrastructure, program or simulated user.

TAU2_WHAT, TAU_WHAT = "a file of tau2's simulations", "a file of tau-bench's trajectories"
_TAU2_MARKS = (b'"info"', b'"git_commit"', b'"num_trials"', b'"max_steps"')
_TAU_START = re.compile(rb'\s*\[\s*\{\s*"task_id"\s*:\s*\d+\s*,\s*"reward"\s*:[^,]*,\s*"info"\s*:\s*\{')
_TAU_NAME = named(
    r"(?P<strategy>tool-calling|act|react|few-shot)-(?P<model>.+)-(?P<temperature>\d+(\.\d+)?)"
    r"_range_-?\d+--?\d+_user-(?P<user>.+)_\d{10}\.json"
)
_NEAR = 1e-6


def _is_tau2(file: Path) -> bool:
    return file.suffix == ".json" and all(mark in beginning(file) for mark in _TAU2_MARKS)


def _is_tau(file: Path) -> bool:
    return file.suffix == ".json" and bool(_TAU_START.match(beginning(file)))


_tau2_files = partial(files_below, fits=_is_tau2)
_tau_files = partial(files_below, fits=_is_tau)


def _read_tau2(paths: list[Path]) -> Log:
    files = common.sources(paths, TAU2)
    left: set[str] = {"messages", "checks of rewards", "policies"}
    runs = [_simulations(file, name, left) for file, name in files]
    return log_of(TAU2.name, runs, ("model", "agent.", "user.", "info."), left)


def _simulations(file: Path, name: str, left: set[str]) -> Items:
    content = common.document(file, TAU2_WHAT, LARGEST_TABLE)
    with reading(file, TAU2_WHAT):
        info = common.part(content, "info")
        agent, user = common.part(info, "agent_info"), common.part(info, "user_info")
        user.pop("global_simulation_guidelines", None)
        domain = common.part(info, "environment_info").get("domain_name")
        told: Cells = {
            FILE: name,
            "pool": str(domain),
            "model": agent.pop("llm", None),
            "seed": info.get("seed"),
        }
        others = {
            key: info[key]
            for key in info
            if key not in {"agent_info", "user_info", "environment_info", "seed"}
        }
        told |= common.flat({"agent": agent, "user": user, "info": others}, left)
        told["timestamp"] = content.get("timestamp")  # without its zone
        prompts = {str(task["id"]): _scenario(task) for task in common.parts(content["tasks"], "tasks")}
        found = content.get("simulations")
        played = _beside(file, content.get("simulation_index")) if found is None else found
        rows = [_simulation(one, prompts) for one in common.parts(played, "simulations")]
        return Items(told, rows + _absent(rows, prompts, int(info["num_trials"]), file), [file])


def _beside(file: Path, index: object) -> list[dict[str, Any]]:
    """Return the simulations that have a file each, in the folder beside what describes their run."""
    there = {one.stem: one for one in files_below(file.parent / "simulations", named(r".+\.json"))}
    common.check_within(file.parent, there.values())
    listed = None if index is None else common.parts(index, "simulation_index")
    wanted = set(there) if listed is None else {str(one["id"]) for one in listed}
    if wanted != set(there):
        raise IncompleteError(
            "the folder has other simulations than its results list",
            expected=f"{len(wanted)} in simulations/",
            found=f"{len(there)}, among them not: {', '.join(sorted(wanted - set(there))[:5]) or 'none'}",
            where=file,
            remedy="copy the whole folder that tau2 wrote, after its run",
        )
    return [common.document(one, TAU2_WHAT, LARGEST_TABLE) for one in there.values()]


def _scenario(task: Mapping[str, Any]) -> str | None:
    """Return what the simulated user is told."""
    told = common.part(task, "user_scenario").get("instructions")
    if isinstance(told, Mapping):
        return "\n".join(f"{key}: {text}" for key, text in told.items() if isinstance(text, str))
    return told if isinstance(told, str) else None


def _simulation(one: Mapping[str, Any], prompts: Mapping[str, str | None]) -> Cells:
    ended, rewarded = str(one.get("termination_reason")), common.part(one, "reward_info")
    broken = ended.endswith("_error") and ended != "agent_error"
    error = common.part(one, "info").get("error") or ended if broken else None
    said = common.parts(one.get("messages") or [], "messages")
    messages = [message for message in said if message.get("role") == "assistant"]
    parts = common.part(rewarded, "reward_breakdown")
    return {
        **_rewarded(one["task_id"], one.get("trial"), rewarded.get("reward"), error),
        "termination_reason": ended,
        "input": prompts.get(str(one["task_id"])),
        "calls": sum(len(message.get("tool_calls") or ()) for message in messages),
        "agent_cost": one.get("agent_cost"),
        "user_cost": one.get("user_cost"),
        "duration": one.get("duration"),
        "simulation": one.get("id"),
        "simulation.seed": one.get("seed"),
        **{f"reward.{name}": value for name, value in parts.items()},
    }


def _rewarded(task: object, trial: Any, reward: Any, error: object) -> Cells:
    """Return the outcome of a simulation."""
    told = isinstance(reward, int | float) and math.isfinite(reward) and error is None
    return {
        "task": str(task),
        "schedule": trial or 0,
        "true_success": abs(reward - 1) <= _NEAR if told else None,
        "reward": float(reward) if told else None,
        "error": None if told else str(error or "it was not rewarded"),
    }


def _absent(rows: Sequence[Cells], prompts: Mapping[str, str | None], trials: int, file: Path) -> list[Cells]:
    """Return a row for every trial of a task that a run should have, and has not."""
    bounded("simulations", len(prompts) * trials, MOST_CELLS, file)
    there = {(row["task"], row["schedule"]) for row in rows}
    none = "not in the log: the run was not played to its end"
    return [
        {**_rewarded(task, trial, None, none), "input": prompts[task]}
        for task, trial in product(prompts, range(trials))
        if (task, trial) not in there
    ]


TAU2 = Reader(
    "tau2",
    "simulations of tau2-bench (data/simulations/RUN.json, or RUN/results.json with simulations/ beside it)",
    _tau2_files,
    _read_tau2,
)


def _read_tau(paths: list[Path]) -> Log:
    files = common.sources(paths, TAU)
    runs = [_trajectories(file, name) for file, name in files]
    arms = ("model", "strategy", "temperature", "user")
    return log_of(TAU.name, runs, arms, {"traj", "info.reward_info"})


def _trajectories(file: Path, name: str) -> Items:
    match = _TAU_NAME(file)
    told = {key: match[key] for key in ("model", "strategy", "temperature", "user")} if match else {}
    content = common.parsed(file, TAU_WHAT, LARGEST_TABLE)
    with reading(file, TAU_WHAT):
        rows = []
        for one in common.parts(content, "trajectories"):
            info = common.part(one, "info")
            row = _rewarded(one["task_id"], one["trial"], one["reward"], info.get("error"))
            prompt = common.part(info, "task").get("instruction")
            rows.append(row | {"input": prompt, "user_cost": info.get("user_cost")})
        prompts = {str(row["task"]): row["input"] for row in reversed(rows) if row["input"]}
        tasks = {str(row["task"]): prompts.get(str(row["task"])) for row in rows}
        trials = max(int(one["trial"]) for one in content) + 1
        return Items(
            {FILE: name, "pool": "tau-bench", **told}, rows + _absent(rows, tasks, trials, file), [file]
        )


TAU = Reader("tau-bench", "trajectories of tau-bench (results/*.json)", _tau_files, _read_tau)
