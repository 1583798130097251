"""Evaluations as records of Every Eval Ever, in the folders of its datastore.

A record is what was found of one model, and here a model is a run at a step: it has one result a row of
`evaluations`. Beside it stands, where asked for, a line an episode.
Source: github.com/evaleval/every_eval_ever, schemas 0.3.0 (MIT): eval and instance_level_eval.
"""

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import groupby
from typing import Any

from toolkit.errors import IncompleteError
from toolkit.prereg.registration import Registration
from toolkit.registers.arrow import Row, to_rows
from toolkit.registers.row_tables import EPISODES
from toolkit.registers.study import Study
from toolkit.study.evaluating.evaluated import UNREGISTERED
from toolkit.study.exports.dates import last_date, run_ends

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

Document = dict[str, Any]


def records(
    study: Study, runs: Sequence[Row], registration: Registration | None, *, episodes: bool = False
) -> Iterator[tuple[str, bytes]]:
    """Yield the records of some runs by path, and before each, if asked for, its lines on episodes.

    Args:
        study: the study.
        runs: rows of `runs`.
        registration: the study's; it dates what nothing else does.
        episodes: whether episodes are told, one by one.

    Raises:
        IncompleteError: episodes are asked for, and the study has none.
    """
    if episodes and not study.has(EPISODES.name):
        raise IncompleteError(
            f"study {study.name!r} holds no episodes: its figures are all there is", where=study.folder
        )
    versions = {row["run_id"]: row["code_version"] for row in _launches(study)}
    of_study = _Told(study, run_ends(study), last_date(study, registration), versions, _prompts(study))
    wanted = {run["run_id"]: run for run in runs}
    rows = [dict(row) for row in study.rows("evaluations") if row["run_id"] in wanted]
    rows.sort(key=_checkpoint)
    for (name, step), found in groupby(rows, _checkpoint):
        record = of_study.record(wanted[name], step, list(found))
        path = of_study.path(record)
        lines = of_study.lines(record, name, step) if episodes else []
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
class _Told:
    """What all records of a study have in common.

    Args:
        study: the study.
        ends: when each run ended.
        otherwise: what dates a run of which nobody recorded it.
        versions: the version of this package that played each run; nothing of those that others played.
        prompts: prompt and expected end of each task, by pool and index.
    """

    study: Study
    ends: dict[str, datetime]
    otherwise: datetime
    versions: dict[str, str]
    prompts: dict[tuple[str, int], tuple[str, str]]

    def path(self, record: Document) -> str:
        """Return where the datastore has a record, without the ending."""
        digest = sha256(record["evaluation_id"].encode()).digest()
        return (
            f"data/{self.study.name}/{record['model_info']['id']}/{uuid.UUID(bytes=digest[:16], version=4)}"
        )

    def record(self, run: Row, step: int, rows: Sequence[Row]) -> Document:
        name, manifest = run["run_id"], self.study.manifest
        model = f"{self.study.name}/{name}-step-{step}"
        # When the record was made is when what it says was: the same study gives the same bytes.
        when = str(int((self.ends.get(name) or run.get("launched_at") or self.otherwise).timestamp()))
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": f"{self.study.name}/{model}/{when}",
            "retrieved_timestamp": when,
            "source_metadata": {
                "source_name": self.study.name,
                "source_type": "documentation" if self.study.is_summary else "evaluation_run",
                "source_organization_name": self._organization,
                "evaluator_relationship": self._relationship,
                "additional_details": {
                    "registration": manifest.registration.name,
                    "registration_sha256": manifest.registration.sha256,
                    "registers_logical_sha256": manifest.logical_sha256,
                },
            },
            "eval_library": self._library(run),
            "model_info": self._model(run, step, model),
            "evaluation_results": [self._result(row) for row in rows],
        }

    def lines(self, record: Document, run: str, step: int) -> list[Document]:
        """Return a line for each episode of a run at a step."""
        if not self.study.has_rows(EPISODES.name, run):
            return []
        import pyarrow.compute as pc

        rows = self.study.run_columns(EPISODES.name, run, self.study.table(EPISODES.name).column_names)
        return [self._episode(record, row) for row in to_rows(rows.filter(pc.field("step") == step))]

    @property
    def _organization(self) -> str:
        return self.study.origin.repository.split("/")[0] if self.study.origin else UNKNOWN

    @property
    def _relationship(self) -> str:
        """A study evaluates what it trained; of a model that somebody brought, nobody said whose it is."""
        return "other" if self.study.manifest.registration.name == UNREGISTERED else "first_party"

    def _library(self, run: Row) -> Document:
        played = self.versions.get(run["run_id"])
        if played:
            return {"name": LIBRARY, "version": played}
        return {"name": UNKNOWN, "version": run.get("code_commit") or UNKNOWN}

    def _model(self, run: Row, step: int, model: str) -> Document:
        local, vllm = run.get("provider") == "local", run.get("vllm_version")
        engine = {"inference_engine": {"name": "vLLM", "version": vllm}} if vllm else {}
        details = {name: value for name, value in run.items() if name not in {"run_id", "specification"}}
        return {
            "name": f"{run['run_id']}, step {step}",
            "id": model,
            "developer": self.study.name,
            **engine,
            "additional_details": {
                "deployment_type": "self_deployed" if local else UNKNOWN,
                "model_availability": "open_weights" if any(map(self.study.has, _WEIGHTS)) else UNKNOWN,
                "step": str(step),
                **_words(details),
            },
        }

    def _result(self, row: Row) -> Document:
        where = f"{row['pool']} pool, {row['regime']}, {row['phase']} evaluation at step {row['step']}"
        return {
            "evaluation_result_id": _result_id(row),
            "evaluation_name": self._evaluation(row),
            "source_data": self._source(row),
            "metric_config": {
                "evaluation_description": f"Share of episodes with true success: {where}",
                "metric_id": f"{self.study.name}.true_success",
                "metric_name": "True success",
                "metric_kind": "pass_rate",
                "metric_unit": "proportion",
                "lower_is_better": False,
                "score_type": "continuous",
                "min_score": 0,
                "max_score": 1,
            },
            "score_details": {
                "score": row["successes"] / row["episodes"],
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

    def _episode(self, record: Document, row: Row) -> Document:
        task = f"{row['pool']}:{row['task']}"
        prompt, expected = self.prompts.get((row["pool"], row["task"]), ("", ""))
        reference = [expected] if expected else []
        raw = prompt or task
        calls = {"tool_calls_count": row["calls"]} if "calls" in row else {}
        success = bool(row["true_success"])
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": record["evaluation_id"],
            "model_id": record["model_info"]["id"],
            "evaluation_name": self._evaluation(row),
            "evaluation_result_id": _result_id(row),
            "sample_id": f"{task}, schedule {row['schedule']}",
            "sample_hash": sha256("".join([raw, *reference]).encode()).hexdigest(),
            "interaction_type": "agentic",
            "input": {"raw": raw, "reference": reference},
            "messages": [{"turn_idx": 0, "role": "user", "content": prompt}] if prompt else [],
            "answer_attribution": [],
            "evaluation": {"score": float(success), "is_correct": success, **calls},
            "metadata": {
                **_words({name: row[name] for name in row if name not in _TOLD}),
                "transcript": NO_TRANSCRIPT,
            },
        }


def _checkpoint(row: Row) -> tuple[str, int]:
    return row["run_id"], row["step"]


def _result_id(row: Row) -> str:
    return ":".join(str(row[name]) for name in ("run_id", "phase", "pool", "regime", "step"))


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
