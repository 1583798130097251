"""Evaluation results as the Hugging Face Hub reads them: a model repository's card, and its `.eval_results`.

The card has the `model-index`; from `.eval_results/*.yaml` model pages and leaderboards are made now.
Source: huggingface.co/docs/hub/eval-results and model-cards.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from toolkit.errors import IncompleteError
from toolkit.registers.arrow import Row
from toolkit.registers.cards.adapter import Metric, metrics_of, model_index, results_text
from toolkit.registers.cards.documents import CARD
from toolkit.registers.study import Study
from toolkit.study.exports.models import Model, models_of, run_ends

HUB = "https://huggingface.co/datasets"


def model_repositories(
    study: Study, runs: Sequence[Row], repository: str, commit: str | None
) -> Iterator[tuple[str, bytes]]:
    """Yield what belongs into the model repository of each model, in a folder of its name.

    What is told is each run's last evaluation: its final one, or the last periodic one where it has no other.

    Args:
        study: the study.
        runs: rows of `runs`.
        repository: where its registers are on the Hub: OWNER/NAME.
        commit: the commit of them that is meant; None where nobody said it.

    Raises:
        IncompleteError: a run was not evaluated.
    """
    ends, evaluations = run_ends(study), [dict(row) for row in study.rows("evaluations")]
    for model in models_of(study, runs):
        results = []
        for name in model.run_ids:
            last = last_results([row for row in evaluations if row["run_id"] == name])
            if not last:
                raise IncompleteError(f"run {name} has no evaluation", where=study.folder)
            results += last
        entries = [
            _entry(row, metric, repository, commit, ends.get(row["run_id"]))
            for row in results
            for metric in metrics_of(row)
        ]
        yield f"{model.folder}/{CARD}", _card(study, model, results, repository, commit).encode()
        yield f"{model.folder}/.eval_results/{study.name}.yaml", _entries_text(entries).encode()


def last_results(evaluations: Sequence[Row]) -> list[Row]:
    """Return a run's evaluations at its last step: the final ones where there are any, else the periodic."""
    step = max((row["step"] for row in evaluations), default=None)
    last = [row for row in evaluations if row["step"] == step]
    return [row for row in last if row["phase"] == "final"] or last


def _card(study: Study, model: Model, results: Sequence[Row], repository: str, commit: str | None) -> str:
    from huggingface_hub.utils import yaml_dump

    name, registration = model.folder, study.manifest.registration
    index = model_index(name, f"Study {study.name}", results, repository, commit)
    where = f"The rows are in `{repository}@{commit}`" if commit else f"The rows are in `{repository}`"
    text = f"`{model.name}`, evaluated outside any registration. {where}."
    if model.is_own:
        run = model.runs[0]
        text = (
            f"Run `{name}` of study `{study.name}`: condition {run['condition']}, arm {run['arm']}, seed "
            f"{run['seed']}, evaluated at step {results[0]['step']}. {where}; the study was registered as "
            f"`{registration.name}`, SHA-256 `{registration.sha256}`."
        )
    metadata = yaml_dump({"model-index": index}, sort_keys=False)
    return f"---\n{metadata}---\n\n# {name}\n\n{text}\n\n{results_text(results)}\n"


def _entry(row: Row, metric: Metric, repository: str, commit: str | None, ended: datetime | None) -> Any:
    from huggingface_hub import EvalResultEntry

    return EvalResultEntry(
        dataset_id=repository,
        task_id=f"{row['pool']}-{row['regime']}-{metric.type}",
        value=metric.of(row),
        dataset_revision=commit,
        date=f"{ended:%Y-%m-%dT%H:%M:%SZ}" if ended else None,
        source_url=f"{HUB}/{repository}" + (f"/tree/{commit}" if commit else ""),
        source_name="Registers of every evaluation",
        notes=f"{metric.name}, {row['episodes']} episodes, {row['phase']} evaluation, step {row['step']}",
    )


def _entries_text(entries: Sequence[Any]) -> str:
    from huggingface_hub import eval_result_entries_to_yaml
    from huggingface_hub.utils import yaml_dump

    return yaml_dump(eval_result_entries_to_yaml(list(entries)), sort_keys=False)
