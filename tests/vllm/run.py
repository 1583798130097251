"""`python -m tests.vllm.run FOLDER MODEL ARM [STEP]`: a run of two steps that vLLM generates, to be killed.

It is trained as `toolkit study run` trains it, but with small evaluations. It kills itself, without a chance
to tidy up, once it has said that it played a step.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.unit.lab.training.language_model.small_model import RUN
from toolkit.lab.evaluation import sets
from toolkit.lab.executors.executor import HERE
from toolkit.lab.play.training_jobs import train_models
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.policies.language_model.opening import model_commit
from toolkit.lab.training.recipe import load_recipe, specify_language_model
from toolkit.specification import LanguageModelSpecification
from toolkit.structs import replace

STEPS = 2
SETTINGS = (
    "engine.kind=vllm",
    "engine.gpu_memory=0.12",
    "step.prompts=2",
    "step.rollouts=8",
    "step.micro_batch=8",
    f"step.steps={STEPS}",
    "step.checkpoint_every=1",
    "sampling.temperature=1.5",
    "sampling.max_completion_tokens=300",
)


def specified(model: str, arm: str) -> LanguageModelSpecification:
    """Return the run."""
    recipe = load_recipe("small", model=model, changes=SETTINGS)
    run = replace(
        RUN,
        run_id=f"c2-{arm}-s3",
        arm=arm,
        battery="small",
        steps=STEPS,
        prompts_per_step=recipe.step.prompts,
    )
    return specify_language_model(run, recipe, model_commit(model, None))


def train(folder: Path, model: str, arm: str, dies_at: str | None = None) -> Sequence[str]:
    """Train the run; return what was said."""
    said: list[str] = []

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)
        said.append(line)
        if dies_at is not None and line.startswith(f"step {dies_at} of"):
            os.kill(os.getpid(), signal.SIGKILL)

    # oneDNN packs weights and drops them: the trainer's could not be taken up.
    from vllm import _custom_ops

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_custom_ops, "_supports_onednn", False)
        patch.setitem(sets.SIZES, "small", sets.Sizes(1, 1, 1, 1))
        train_models(Workplace(folder), [specified(model, arm)], HERE.telling(HERE.watch, say))
    return said


if __name__ == "__main__":
    train(Path(sys.argv[1]), *sys.argv[2:])
