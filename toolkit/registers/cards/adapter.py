"""The model card of a LoRA adapter: what a run trained, and how it was evaluated, from the registers' rows.

What a row does not say is called unknown: nothing here is filled in from elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from toolkit.errors import IncompleteError, UsageError
from toolkit.registers.arrow import Row
from toolkit.registers.cards.dataset import filled, registered_text
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.origin import Origin

UNKNOWN = "unknown"
_TASK = "Tool use in a simulated back office"
_TRAINING = {
    "condition": "condition",
    "arm": "arm",
    "seed": "seed",
    "role": "role in the decisions",
    "fault_rate": "faults: probability a call, p",
    "flip_rate": "flips: probability a success, q",
    "scale_rewards": "advantages scaled by",
    "loss_type": "aggregation of the token losses",
    "steps": "training steps",
    "prompts_per_step": "prompts a step",
    "group_size": "rollouts a prompt, G",
    "training_rollouts": "training rollouts",
    "accelerator": "accelerator",
    "torch_version": "PyTorch",
    "vllm_version": "vLLM",
    "code_commit": "commit of the training code",
    "registered": "version of the registration it was launched under",
}


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter.

    Args:
        repository: where it is to be had: OWNER/NAME on the Hub.
        base_model: the model that it adapts, likewise.
        step: training step that it was saved at.
        licence: identifier of its licence on the Hub.
        rank: r; None where unknown.
        alpha: LoRA's scaling numerator; None where unknown.
        targets: names of the adapted modules, or a word for all of them; empty where unknown.
    """

    repository: str
    base_model: str
    step: int
    licence: str
    rank: int | None = None
    alpha: float | None = None
    targets: tuple[str, ...] = ()


def adapter_card(
    source: str,
    adapter: Adapter,
    run: Row,
    evaluations: Sequence[Row],
    *,
    origin: Origin,
    registration: RegistrationRef,
) -> str:
    """Return the model card of an adapter."""
    if "steps" in run and adapter.step > run["steps"]:
        raise UsageError(
            f"run {run['run_id']} has no step {adapter.step}", expected=f"at most {run['steps']}"
        )
    results = [
        row
        for row in evaluations
        if (row["run_id"], row["phase"], row["step"]) == (run["run_id"], "final", adapter.step)
    ]
    if not results:
        raise IncompleteError(
            f"run {run['run_id']} has no final evaluation at step {adapter.step}",
            where=origin.pinned,
            remedy="name the step that was evaluated",
        )
    revision = run.get("model_commit")
    parts = {
        "metadata": _metadata(adapter, results, origin),
        "name": adapter.repository.split("/")[-1],
        "repository": adapter.repository,
        "base_model": adapter.base_model,
        "base_revision": f', revision="{revision}"' if revision else "",
        "run_id": run["run_id"],
        "step": str(adapter.step),
        "adapter": _facts(
            {
                "base model": f"`{adapter.base_model}`",
                "commit of its weights": f"`{revision}`" if revision else None,
                "rank": adapter.rank,
                "alpha": adapter.alpha,
                "adapted modules": ", ".join(adapter.targets) or None,
            }
        ),
        "training": _facts({label: run.get(name) for name, label in _TRAINING.items()}),
        "registers": f"`{origin.repository}` at commit `{origin.commit}`",
        "study": origin.pinned,
        "results": results_text(results),
        "registration": registered_text(registration),
        "licence": adapter.licence,
    }
    return filled(source, parts)


def _metadata(adapter: Adapter, results: Sequence[Row], origin: Origin) -> str:
    from huggingface_hub.utils import yaml_dump

    name = adapter.repository.split("/")[-1]
    document = {
        "license": adapter.licence,
        "library_name": "peft",
        "base_model": adapter.base_model,
        "base_model_relation": "adapter",
        "pipeline_tag": "text-generation",
        "tags": ["lora", "grpo", "reinforcement-learning", "tool-use", "pre-registration"],
        "model-index": model_index(name, _TASK, results, origin.repository, origin.commit),
    }
    return yaml_dump(document, sort_keys=False).rstrip()


@dataclass(frozen=True)
class Metric:
    """A mean over the episodes of an evaluation.

    Args:
        type: its name for machines.
        name: its name for readers.
        column: the sum over episodes, in `evaluations`.
        of_episode: what each episode adds to it, in `episodes`.
    """

    type: str
    name: str
    column: str
    of_episode: str

    def of(self, row: Row) -> float:
        """Return it for a row of `evaluations`."""
        return float(row[self.column] / row["episodes"])


METRICS = (
    Metric("success_rate", "True success", "successes", "true_success"),
    Metric("score", "Mean score", "score", "score"),
)


def metrics_of(row: Row) -> list[Metric]:
    """Return the metrics that a row of `evaluations` has."""
    return [metric for metric in METRICS if metric.column in row]


def model_index(
    name: str, task: str, results: Sequence[Row], repository: str, commit: str | None
) -> list[dict[str, object]]:
    """Return the `model-index` of a card. The Hub's own class merges results that differ in arguments."""
    evaluated = [
        {
            "task": {"type": "reinforcement-learning", "name": task},
            "dataset": {
                "name": f"{row['pool']} pool, {row['regime']}, step {row['step']}",
                "type": repository,
                "config": "evaluations",
                "split": "train",
                **({"revision": commit} if commit else {}),
                "args": {name: row[name] for name in ("run_id", "phase", "regime", "step")},
            },
            "metrics": [
                {"type": metric.type, "name": metric.name, "value": metric.of(row)}
                for metric in metrics_of(row)
            ],
        }
        for row in results
    ]
    return [{"name": name, "results": evaluated}]


def _facts(facts: dict[str, object]) -> str:
    lines = ["| fact | value |", "| --- | --- |"]
    for label, value in facts.items():
        # A decimal column keeps its trailing zeros, which say nothing here.
        shown = f"{float(value):g}" if isinstance(value, (Decimal, float)) else value
        lines.append(f"| {label} | {UNKNOWN if shown is None else shown} |")
    return "\n".join(lines)


def results_text(rows: Sequence[Row]) -> str:
    """Return a table of rows of `evaluations`."""
    metrics = [metric for metric in METRICS if any(metric.column in row for row in rows)]
    names = ["episodes", *(metric.name.lower() for metric in metrics), "met a fault", "recovered"]
    lines = [f"| {' | '.join(['pool', 'noise', *names])} |", f"| --- | --- |{' ---: |' * len(names)}"]
    for row in rows:
        told = (f"{metric.of(row):.4f}" if metric.column in row else None for metric in metrics)
        cells = (
            row["pool"],
            f"`{row['regime']}`",
            row["episodes"],
            *told,
            row.get("exposed"),
            row.get("recovered"),
        )
        lines.append(f"| {' | '.join('' if cell is None else str(cell) for cell in cells)} |")
    return "\n".join(lines)
