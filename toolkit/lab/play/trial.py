"""Some steps of a training outside any registration: whether they run, and how long they take.

Nothing of it is kept, nothing is evaluated, and its seeds are none of a registered run's.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from toolkit.lab.executors.executor import Say
from toolkit.lab.play.capacity import check_capacity
from toolkit.lab.play.stopping import Pace
from toolkit.lab.policies.language_model.loading import model_path
from toolkit.lab.training.language_model.groups import GENERATION_TIME, step_figures
from toolkit.lab.training.language_model.session import Moments, open_session, stack
from toolkit.lab.training.recipe import Recipe, read_recipe, specify_language_model
from toolkit.registers.arrow import Row
from toolkit.specification import LanguageModelSpecification, Specification

if TYPE_CHECKING:
    from toolkit.documents.runs import TrialDocument

ROOT = "try"
"""What the seeds derive from: a registered run's root begins with its study's name and has its anchor."""


@dataclass(frozen=True)
class TriedStep:
    """A step."""

    step: int  # its number, from 1
    seconds: float  # its duration, rollouts included
    success: float  # share of its rollouts that truly succeeded
    constant: float  # share of its groups whose rewards were all alike, so that they had no gradient
    tokens: int  # tokens that the loss counted
    # What the trainer says of it, as `steps` has it
    figures: Mapping[str, float | None] = field(default_factory=dict)
    generation: float | None = None  # seconds of its duration that went to playing the rollouts


@dataclass(frozen=True)
class Trial:
    """What came of a trial."""

    run_id: str  # the run whose place in the matrix it had
    recipe: Recipe  # the settings, shortened
    coordinates: int  # numbers in the adapter
    stack: Mapping[str, Any]  # packages, accelerators, processes, and what computed linear attention
    steps: tuple[TriedStep, ...]  # the steps
    # Most memory that PyTorch held on the GPU, an engine's in this process included; None without one
    peak_gpu_bytes: int | None

    @property
    def seconds_per_step(self) -> float:
        """Mean duration of a step; the first, which warms up, is left out where there are more."""
        later = self.steps[1:] or self.steps
        return sum(step.seconds for step in later) / len(later)

    def document(self) -> TrialDocument:
        """Return the trial as JSON values."""
        said = {
            "run_id": self.run_id,
            "recipe_sha256": self.recipe.sha256(),
            "coordinates": self.coordinates,
            **self.stack,
            "steps": [asdict(step) for step in self.steps],
            "seconds_per_step": self.seconds_per_step,
            "peak_gpu_bytes": self.peak_gpu_bytes,
        }
        return cast("TrialDocument", said)  # steps and stack by name


def shortened(run: Specification, recipe: Recipe, steps: int) -> LanguageModelSpecification:
    """Return a run of some steps in the place of a registered one, with the sizes of a recipe."""
    document = recipe.document()
    document["step"] |= {"steps": steps, "checkpoint_every": steps}
    document["optimizer"]["warmup_steps"] = min(recipe.optimizer.warmup_steps, steps)
    plain = Specification(**{f.name: getattr(run, f.name) for f in fields(Specification)})
    tried = replace(
        plain,
        root=f"{ROOT} {run.run_id}",
        steps=steps,
        prompts_per_step=recipe.step.prompts,
        group_size=recipe.step.rollouts,
        diagnosed=(),
        pools={},
    )
    return specify_language_model(tried, read_recipe(document, recipe.name), "")


def try_steps(run: Specification, recipe: Recipe, steps: int, *, cpu: bool, say: Say) -> Trial:
    """Train some steps, and keep nothing."""
    import torch

    specification = shortened(run, recipe, steps)
    groups: list[Row] = []
    ends: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        session = open_session(
            specification,
            model_path(recipe.model),
            Path(scratch),
            record=groups.extend,
            moments=Moments(lambda _: None, lambda _: ends.append(time.monotonic()), lambda *_: None),
            cpu=cpu,
        )
        check_capacity(specification, session.coordinates)
        session.trainer.told = Pace(say)
        begun = time.monotonic()
        session.train(None)
    has_gpu = torch.cuda.is_available() and not cpu
    return Trial(
        run_id=run.run_id,
        recipe=session.recipe,
        coordinates=session.coordinates,
        stack={**stack(), "kernels": session.kernels},
        steps=tuple(
            _tried(number, end - before, groups, session.trainer.state.log_history)
            for number, (before, end) in enumerate(zip([begun, *ends], ends, strict=False), start=1)
        ),
        peak_gpu_bytes=torch.cuda.max_memory_allocated() if has_gpu else None,
    )


def _tried(number: int, seconds: float, groups: list[Row], log: list[dict[str, Any]]) -> TriedStep:
    own = [group for group in groups if group["step"] == number]
    outcomes = [outcome for group in own for outcome in group["true_successes"]]
    logged = next((entry for entry in log if entry.get("step") == number and "loss" in entry), {})
    return TriedStep(
        step=number,
        seconds=seconds,
        success=sum(outcomes) / len(outcomes),
        constant=sum(group["zero_variance"] for group in own) / len(own),
        tokens=sum(sum(group["tokens"]) for group in own),
        figures=step_figures(logged),
        generation=logged.get(GENERATION_TIME),
    )
