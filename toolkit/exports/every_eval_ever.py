"""Evaluations as records of Every Eval Ever, in the folders of its datastore.

A record is what was found of one model at one step: it has a result for each metric of each row of
`evaluations`. Beside it stands, where asked for, a line for each metric of each episode.
Source: github.com/evaleval/every_eval_ever, schemas 0.3.0 (MIT): eval and instance_level_eval.
"""

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from toolkit.errors import IncompleteError
from toolkit.prereg.registration import Registration
from toolkit.registers.arrow import Row, to_rows
from toolkit.registers.manifest import UNREGISTERED
from toolkit.registers.row_tables import EPISODES
from toolkit.registers.study import Study

SCHEMA_VERSION = "0.3.0"
LIBRARY = "paired-rollouts-toolkit"
UNKNOWN = "unknown"
NO_TRANSCRIPT = (
    "The registers keep how an episode ended, and no transcript. Where they hold no prompts, "
    "the input is the task's name."
)
_WEIGHTS = ("checkpoints", "adapters")
# They stand in the record itself; the other columns are told as details, in words.
_TOLD = {"run_id", "phase", "pool", "regime", "step", "task", "schedule", "true_success"}
# A score has no bounds that the registers know: the schema lets them out where it has no type either.
_BOUNDED = {"success_rate": {"score_type": "continuous", "min_score": 0, "max_score": 1}}
_UNITS = {"success_rate": {"metric_kind": "pass_rate", "metric_unit": "proportion"}}

ON_THE_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)

Document = dict[str, Any]


@dataclass(frozen=True)
class Metric:
    """A mean over the episodes of an evaluation."""

    type: str  # its name for machines
    name: str  # its name for readers
    column: str  # the sum over episodes, in `evaluations`
    of_episode: str  # what each episode adds to it, in `episodes`

    def of(self, row: Row) -> float:
        """Return it for a row of `evaluations`."""
        return float(row[self.column] / row["episodes"])


METRICS = (
    Metric("success_rate", "True success", "successes", "true_success"),
    Metric("score", "Mean score", "score", "score"),
)


@dataclass(frozen=True)
class Model:
    """A model that a study evaluated."""

    name: str  # a run's, whose policies it is; or what `toolkit evaluate` was given
    runs: tuple[Row, ...]  # rows of `runs`: the one, or one a regime
    is_own: bool  # whether the study trained it

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The names of its runs."""
        return tuple(run["run_id"] for run in self.runs)

    @property
    def folder(self) -> str:
        """Its name as a folder can have it."""
        return re.sub(r"[^\w.-]+", "-", self.name.rstrip("/").rpartition("/")[2])

    @property
    def shared(self) -> Row:
        """What its rows of `runs` say alike; the specification, which is a document, left out."""
        first, *others = self.runs
        alike = {name: value for name, value in first.items() if all(o.get(name) == value for o in others)}
        return {name: value for name, value in alike.items() if name != "specification"}


def models_of(study: Study, runs: Sequence[Row]) -> list[Model]:
    """Return the models of some runs: one a run, or one for all that evaluated what somebody brought."""
    if study.manifest.registration.name != UNREGISTERED:
        return [Model(run["run_id"], (run,), is_own=True) for run in runs]
    named = _grouped(runs, lambda run: json.loads(run["specification"])["model"])
    return [Model(name, tuple(rows), is_own=False) for name, rows in named.items()]


def _grouped(rows: Iterable[Row], name: Callable[[Row], str]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(name(row), []).append(row)
    return grouped


def run_ends(study: Study) -> dict[str, datetime]:
    """Return when the last launch of each run ended; a run of which nobody recorded it is not there."""
    ends: dict[str, datetime] = {}
    for launch in _launches(study):
        run, end = launch["run_id"], launch["ended_at"]
        if end is not None:
            ends[run] = max(ends.get(run, end), end)
    return ends


def last_date(study: Study, registration: Registration | None, told: datetime | None = None) -> datetime:
    """Return the last moment that a study's rows name, an end or a launch of a run; no clock is asked."""
    launched: list[datetime] = [at for run in study.rows("runs") if (at := run.get("launched_at"))]
    if found := [*run_ends(study).values(), *launched]:
        return max(found)
    if told is not None:
        return told
    if registration is None:
        raise IncompleteError(
            "nothing here says when anything was, and the format wants a date",
            where=study.folder,
            remedy="say when the study was made: --date YYYY-MM-DD",
        )
    return registration.record.frozen_at


def records(
    study: Study,
    runs: Sequence[Row],
    registration: Registration | None,
    *,
    episodes: bool = False,
    date: datetime | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Yield the records of some runs by path, and before each, if asked for, its lines on episodes."""
    if episodes:
        _check_episodes(study)
    versions = {row["run_id"]: row["code_version"] for row in _launches(study)}
    otherwise = last_date(study, registration, date)
    of_study = _StudyFacts(study, run_ends(study), otherwise, versions, _prompts(study))
    for model, step, rows in _evaluated(study, models_of(study, runs)):
        record = of_study.record(model, step, rows)
        path = of_study.path(record)
        lines = of_study.lines(record, model, step) if episodes else []
        if lines:
            content = "".join(map(_line, lines)).encode()
            samples = f"{path}_samples.jsonl"
            record["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": samples,
                "hash_algorithm": "sha256",
                "checksum": sha256(content).hexdigest(),
                "total_rows": len(lines),
            }
            yield samples, content
        yield f"{path}.json", f"{json.dumps(record, indent=2, ensure_ascii=False)}\n".encode()


@dataclass(frozen=True)
class _StudyFacts:
    """What all records of a study have in common."""

    study: Study  # the study
    ends: dict[str, datetime]  # when each run ended
    otherwise: datetime  # what dates a run of which nobody recorded it
    versions: dict[str, str]  # run → version of this package that played it; nothing of others' runs
    prompts: dict[tuple[str, int], tuple[str, str]]  # prompt and expected end of each task, by pool and index

    def path(self, record: Document) -> str:
        """Return where the datastore has a record, without the ending."""
        digest = sha256(record["evaluation_id"].encode()).digest()
        return (
            f"data/{self.study.name}/{record['model_info']['id']}/{uuid.UUID(bytes=digest[:16], version=4)}"
        )

    def record(self, model: Model, step: int, rows: Sequence[Row]) -> Document:
        """Return the record of a model at a step, with the results that its rows of `evaluations` are."""
        registration = self.study.manifest.registration
        # When the record was made is when what it says was: the same study gives the same bytes.
        when = str(int(self._when(model).timestamp()))
        told = self._model(model, step)
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": f"{self.study.name}/{told['id']}/{when}",
            "retrieved_timestamp": when,
            "source_metadata": {
                "source_name": self.study.name,
                "source_type": "documentation" if self.study.is_summary else "evaluation_run",
                "source_organization_name": self.study.origin.repository.split("/")[0]
                if self.study.origin
                else UNKNOWN,
                # Of a model that somebody brought, nobody said whose it is.
                "evaluator_relationship": "first_party" if model.is_own else "other",
                "additional_details": {
                    "registration": registration.name,
                    "registration_sha256": registration.sha256,
                    "registers_logical_sha256": self.study.manifest.logical_sha256,
                },
            },
            "eval_library": self._library(model),
            "model_info": told,
            "evaluation_results": [
                self._result(row, metric) for row in rows for metric in METRICS if metric.column in row
            ],
        }

    def lines(self, record: Document, model: Model, step: int) -> list[Document]:
        """Return a line for each episode of a model at a step."""
        import pyarrow.compute as pc

        names, found = self.study.table(EPISODES.name).column_names, []
        for run in model.run_ids:
            if self.study.has_rows(EPISODES.name, run):
                rows = self.study.run_columns(EPISODES.name, run, names)
                found += to_rows(rows.filter(pc.field("step") == step))
        metrics = [metric for metric in METRICS if metric.of_episode in names]
        return [self._episode(record, row, metric) for row in found for metric in metrics]

    def _when(self, model: Model) -> datetime:
        ends = [self.ends[run] for run in model.run_ids if run in self.ends]
        launched = [at for run in model.runs if (at := run.get("launched_at"))]
        return max(ends or launched or [self.otherwise])

    def _library(self, model: Model) -> Document:
        played = self.versions.get(model.run_ids[0])
        if played or not model.is_own:
            return {"name": LIBRARY, "version": played or self.study.manifest.code_version}
        return {"name": UNKNOWN, "version": model.shared.get("code_commit") or UNKNOWN}

    def _model(self, model: Model, step: int) -> Document:
        """Return what is known of a model. A study stands for the developer of what nobody has on the Hub."""
        said = model.shared
        local, vllm = said.get("provider") == "local", said.get("vllm_version")
        weights = model.is_own and any(map(self.study.has, _WEIGHTS))
        known = not model.is_own and ON_THE_HUB.fullmatch(model.name) is not None
        of_study = f"{self.study.name}/{model.folder}" + (f"-step-{step}" if model.is_own else "")
        identity = model.name if known else of_study
        return {
            "name": f"{model.name}, step {step}" if model.is_own else model.name,
            "id": identity,
            "developer": identity.split("/")[0],
            **({"inference_engine": {"name": "vLLM", "version": vllm}} if vllm else {}),
            "additional_details": {
                "deployment_type": "self_deployed" if local else UNKNOWN,
                "model_availability": "open_weights" if weights else UNKNOWN,
                "step": str(step),
                **_words(said),
            },
        }

    def _result(self, row: Row, metric: Metric) -> Document:
        where = f"{row['pool']} pool, {row['regime']}, {row['phase']} evaluation at step {row['step']}"
        return {
            "evaluation_result_id": _result_id(row, metric),
            "evaluation_name": self._evaluation(row),
            "source_data": self._source(row),
            "metric_config": {
                "evaluation_description": f"{metric.name}, mean over episodes: {where}",
                "metric_id": f"{self.study.name}.{metric.type}",
                "metric_name": metric.name,
                **_UNITS.get(metric.type, {}),
                "lower_is_better": False,
                **_BOUNDED.get(metric.type, {}),
            },
            "score_details": {
                "score": metric.of(row),
                "details": _words({name: row[name] for name in row if name not in _TOLD}),
            },
        }

    def _source(self, row: Row) -> Document:
        name = f"{self.study.name}: {row['pool']} pool"
        if self.study.origin is None:
            return {"dataset_name": name, "source_type": "other"}
        return {
            "dataset_name": name,
            "source_type": "hf_dataset",
            "hf_repo": self.study.origin.repository,
            "additional_details": {"revision": self.study.origin.commit},
        }

    def _evaluation(self, row: Row) -> str:
        return f"{self.study.name}.{row['pool']}.{row['regime']}"

    def _episode(self, record: Document, row: Row, metric: Metric) -> Document:
        task = f"{row['pool']}:{row['task']}"
        prompt, expected = self.prompts.get((row["pool"], row["task"]), ("", ""))
        reference = [expected] if expected else []
        raw = prompt or task
        calls = {"tool_calls_count": row["calls"]} if "calls" in row else {}
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": record["evaluation_id"],
            "model_id": record["model_info"]["id"],
            "evaluation_name": self._evaluation(row),
            "evaluation_result_id": _result_id(row, metric),
            "sample_id": f"{task}, schedule {row['schedule']}",
            "sample_hash": sha256("".join([raw, *reference]).encode()).hexdigest(),
            "interaction_type": "agentic",
            "input": {"raw": raw, "reference": reference},
            "messages": [{"turn_idx": 0, "role": "user", "content": prompt}] if prompt else [],
            "answer_attribution": [],
            "evaluation": {
                "score": float(row[metric.of_episode]),
                "is_correct": bool(row["true_success"]),
                **calls,
            },
            "metadata": {
                **_words({name: row[name] for name in row if name not in _TOLD}),
                "transcript": NO_TRANSCRIPT,
            },
        }


def _evaluated(study: Study, models: Sequence[Model]) -> Iterator[tuple[Model, int, list[Row]]]:
    """Yield the rows of `evaluations` of each model at each step at which it has some."""
    by_run = _grouped(study.rows("evaluations"), lambda row: str(row["run_id"]))
    for model in models:
        rows = [row for run in model.run_ids for row in by_run.get(run, ())]
        for step in sorted({row["step"] for row in rows}):
            yield model, step, [row for row in rows if row["step"] == step]


def _result_id(row: Row, metric: Metric) -> str:
    where = (str(row[name]) for name in ("run_id", "phase", "pool", "regime", "step"))
    return ":".join([*where, metric.type])


def _check_episodes(study: Study) -> None:
    """Check that a study has episodes that can be told."""
    if not study.has(EPISODES.name):
        raise IncompleteError(
            f"study {study.name!r} holds no episodes: its figures are all there is", where=study.folder
        )
    if "true_success" not in study.table(EPISODES.name).column_names:
        raise IncompleteError(
            f"the episodes of study {study.name!r} have a score, and no success",
            expected="true_success: the format asks of each whether it is correct",
            where=study.folder,
            remedy="leave --episodes out",
        )


def _launches(study: Study) -> Sequence[Any]:
    return study.rows("launches") if study.has("launches") else ()


def _prompts(study: Study) -> dict[tuple[str, int], tuple[str, str]]:
    """Return the prompt and the expected end of each task that the study holds."""
    names = ("pool", "index", "prompt", "expected")
    if not study.has("task_pools") or not set(names) <= set(study.table("task_pools").column_names):
        return {}
    columns = study.columns("task_pools", names).to_pydict()
    return {
        (pool, index): (prompt, expected)
        for pool, index, prompt, expected in zip(*(columns[name] for name in names), strict=True)
    }


def _words(details: Row) -> dict[str, str]:
    """Return details as text, which is all that the schema takes; what is not there is left out."""
    return {name: _word(value) for name, value in details.items() if value is not None}


def _word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _line(document: Document) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"
