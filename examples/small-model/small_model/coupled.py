"""How much less two near models differ by luck when they share their samples.

The models are two adapters of study `tiny-lm`, one of each design, at its last step. Each seed plays both on
the same tasks and schedules, three times in all: the first model, the second with the first one's samples,
and the second with its own. What is printed is the ratio of the variances of the difference in success over
seeds, of own to shared samples.

Every line of the file that is kept is a seed; those that are there are not played again.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from small_model.quick import quick
from toolkit.errors import ToolkitError
from toolkit.estimators import variance_ratio
from toolkit.estimators.coupling import VarianceRatio
from toolkit.lab.evaluation.language_model import Sampling, evaluate
from toolkit.lab.evaluation.play import SharedSamples
from toolkit.lab.evaluation.sets import EvaluationSet
from toolkit.lab.play.rows import read_adapter, rows_of_run, specification_of
from toolkit.lab.policies.language_model.loading import load_chat, model_path
from toolkit.lab.policies.language_model.lockstep import LocalEngine
from toolkit.lab.probing.run import put_adapter
from toolkit.lab.training.recipe import recipe_of
from toolkit.places import find_home
from toolkit.registers.study import open_study

ARMS = ("c2-paired-s0", "c2-independent-s0")
MODEL = "small"
MOST_TOKENS = 1024
LEVEL, RESAMPLES, RNG_SEED = 0.95, 10_000, 1


def adapted(run_id: str) -> LocalEngine:
    """Return the engine of a run's last checkpoint."""
    import torch
    from peft import LoraConfig, get_peft_model

    from toolkit.lab.training.language_model.session import load_base
    from toolkit.lab.training.recipe import lora_arguments

    torch.set_num_threads(1)
    study = open_study(find_home().study_folder("tiny-lm"))
    row: Any = max(rows_of_run(study, "adapters", run_id), key=lambda row: row["step"])
    specification: Any = specification_of(study, run_id)
    recipe = recipe_of(specification)
    base = load_base(model_path(MODEL), recipe, cpu=True)
    model = get_peft_model(base, LoraConfig(**lora_arguments(recipe, base)))
    put_adapter(model, read_adapter(row, run_id), run_id)
    chat = load_chat(model_path(MODEL), None, (("enable_thinking", recipe.engine.thinking),))
    return LocalEngine(model.eval(), chat, max_tokens=MOST_TOKENS)


def success(engine: LocalEngine, played: EvaluationSet, key: str) -> float:
    """Return a model's success with shared samples of a key; under two keys they are independent."""
    rows = evaluate(engine, played, Sampling("r", 0, SharedSamples(key)))
    return sum(row["true_success"] for row in rows) / len(rows)


def differences(engines: list[LocalEngine], played: EvaluationSet, seed: int) -> dict[str, float]:
    """Return a seed's difference in success with samples of their own, and with shared ones."""
    one, other = (partial(success, engine, played) for engine in engines)
    first = one(f"coupled {seed}")
    return {
        "seed": seed,
        "own": first - other(f"coupled {seed} own"),
        "shared": first - other(f"coupled {seed}"),
    }


def found(lines: Sequence[str]) -> VarianceRatio:
    """Return the ratio of the variances over the seeds of a file's lines."""
    seeds = [json.loads(line) for line in lines]
    own, shared = ([seed[sampling] for seed in seeds] for sampling in ("own", "shared"))
    return variance_ratio(own, shared, LEVEL, RESAMPLES, RNG_SEED)


def main() -> None:
    """Play, and print the ratio."""
    parser = argparse.ArgumentParser(prog="python -m small_model.coupled", description=__doc__)
    parser.add_argument("file", type=Path, help="keeps every seed; what was begun there is gone on with")
    parser.add_argument("--seeds", type=int, default=48, help="at least 8 (default: 48)")
    parser.add_argument("--tasks", type=int, default=64, help="of the validation pool (default: 64)")
    options = parser.parse_args()
    played = EvaluationSet("final", "validation", "faults_p025", options.tasks, 1)
    lines = options.file.read_text("utf-8").splitlines() if options.file.exists() else []
    try:
        with quick():
            engines = [adapted(run_id) for run_id in ARMS] if len(lines) < options.seeds else []
            for seed in range(len(lines), options.seeds):
                lines.append(json.dumps(differences(engines, played, seed)))
                options.file.write_text("\n".join(lines) + "\n", "utf-8")
                print(lines[-1], file=sys.stderr)
        ratio = found(lines)
    except (ToolkitError, ValueError) as error:
        sys.exit(f"error: {error}")
    high = "?" if ratio.high is None else f"{ratio.high:.1f}"
    print(f"{len(lines)} seeds: variance of a difference {ratio.own:.6f} (own), {ratio.shared:.6f} (shared)")
    print(f"ratio {ratio.ratio:.1f} [{ratio.low:.1f}, {high}]")


if __name__ == "__main__":
    main()
