"""What a run is: everything that decides its bytes, frozen before it is launched."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from toolkit.canonical import canonical
from toolkit.lab.training.recipe import Recipe, read_recipe

KEEPS_ALL = "all"


@dataclass(frozen=True)
class Specification:
    """The specification of a run.

    Args:
        study: name of the study.
        root: what every seed of the run derives from. It holds the registration's anchor, so that no
            registered run can have been played before the freeze; a pilot's, which comes before it, does not.
        run_id: name of the run.
        condition, arm, seed: its place in the matrix.
        tier: tier of the matrix.
        role: role of the run in the decisions.
        regime: noise of training.
        at_noise: regime of the periodic evaluation at training noise.
        battery: which evaluation sets are played: `registered`, or `learning` for the learning curve alone.
        scale_rewards: `group`: advantages are divided by their group's standard deviation; `none`: not.
        steps: training steps.
        prompts_per_step: groups in a step.
        group_size: rollouts in a group, G.
        learning_rate: Adam's, as decimal text.
        surface_tokens: V, reward-irrelevant tokens a tool is called with; 0 for none.
        checkpoint_every: steps between two checkpoints, each evaluated.
        diagnosed: steps at which the luck share is diagnosed.
        pools: pool → SHA-256 of the tasks that the run may meet.
        code: version of the code that decides the bytes.
        sampling: what the policy samples in an evaluation: the run's `own`, or `shared` by all arms, runs and
            steps of a study.
        optimizer: `adam`, `gradient` (a plain step) or `sign` (of every coordinate's gradient).
        square_decay: Adam's β₂, as decimal text.
        loss_type: `dapo`: a step's sum over its decisions and tokens is divided by their number; `dr_grpo`:
            by its number of rollouts.
        constant_groups: groups whose rewards are all alike are `kept`, or `resampled`: dropped, and tasks
            drawn until a step has its number of others.
        registers: what they keep of the run: `all`, `no_checkpoints`, or `evaluations`: neither checkpoints
            nor training groups. Whoever plays such a row again plays the run from its start.
        checkpoints: where nothing is trained, the `study` and `run` whose checkpoints are evaluated, and
            their `sha256`.
        sub_requests: how many sub-requests the tasks have that it trains and is evaluated on; 0 for any.
        world: the foreign world that it is played in; empty for the back office.
    """

    checkpoint_table: ClassVar[str] = "checkpoints"
    """Table that the run's checkpoints are rows of."""

    study: str
    root: str
    run_id: str
    condition: str
    arm: str
    seed: int
    tier: int
    role: str
    regime: str
    at_noise: str
    scale_rewards: str
    battery: str = "registered"
    steps: int = 100
    prompts_per_step: int = 24
    group_size: int = 8
    learning_rate: str = "0.0035"
    surface_tokens: int = 16
    checkpoint_every: int = 20
    diagnosed: tuple[int, ...] = (0, 100)
    pools: Mapping[str, str] = field(default_factory=dict)
    code: str = "1"
    sampling: str = "own"
    optimizer: str = "adam"
    square_decay: str = "0.999"
    loss_type: str = "dapo"
    constant_groups: str = "kept"
    registers: str = "all"
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    sub_requests: int = 0
    world: str = ""

    @property
    def trains(self) -> bool:
        """Whether the run trains; if not, it evaluates checkpoints of another study."""
        return not self.checkpoints

    @property
    def groups(self) -> int:
        """Training groups of the run."""
        return self.steps * self.prompts_per_step if self.trains else 0

    @property
    def keeps_checkpoints(self) -> bool:
        """Whether its checkpoints are in the registers."""
        return self.registers == KEEPS_ALL

    @property
    def keeps_groups(self) -> bool:
        """Whether its training groups are in the registers."""
        return self.registers != "evaluations"

    @property
    def ends(self) -> tuple[int, ...]:
        """The steps at which the run's segments end: those of its checkpoints, 0 among them."""
        return tuple(range(0, self.steps + 1, self.checkpoint_every))

    def document(self) -> dict[str, Any]:
        """Return the specification as JSON values.

        What came later is left out where it is as it always was: a specification keeps its digest.
        """
        document = {**asdict(self), "diagnosed": list(self.diagnosed), "pools": dict(self.pools)}
        return {name: value for name, value in document.items() if _LATER.get(name) != value}

    def sha256(self) -> str:
        """Return the SHA-256 of the canonical document."""
        return hashlib.sha256(canonical(self.document()).encode()).hexdigest()


_LATER = {
    "sampling": "own",
    "optimizer": "adam",
    "square_decay": "0.999",
    "loss_type": "dapo",
    "constant_groups": "kept",
    "registers": "all",
    "checkpoints": {},
    "sub_requests": 0,
    "world": "",
}
"""Settings that came later, and the value that they had before."""


@dataclass(frozen=True)
class LanguageModelSpecification(Specification):
    """The specification of a language model's run.

    Its sizes and learning rate are those of the recipe; it has no surface tokens.

    Args:
        recipe: the recipe's document.
        model_commit: commit of the model that it starts from, or the SHA-256 of its files.
    """

    checkpoint_table: ClassVar[str] = "adapters"

    recipe: Mapping[str, Any] = field(default_factory=dict)
    model_commit: str = ""

    def document(self) -> dict[str, Any]:
        """Return the specification as JSON values."""
        return {**super().document(), "recipe": dict(self.recipe)}

    @property
    def settings(self) -> Recipe:
        """The recipe."""
        return read_recipe(self.recipe, self.run_id)


def specify_language_model(
    specification: Specification, recipe: Recipe, model_commit: str
) -> LanguageModelSpecification:
    """Return the specification of a language model's run."""
    return LanguageModelSpecification(
        **{
            **asdict(specification),
            "learning_rate": recipe.optimizer.learning_rate,
            "surface_tokens": 0,
            "checkpoint_every": recipe.step.checkpoint_every,
        },
        recipe=recipe.document(),
        model_commit=model_commit,
    )


def read_specification(document: Mapping[str, Any]) -> Specification:
    """Return the specification that a document is, of either kind of run."""
    kind = LanguageModelSpecification if "recipe" in document else Specification
    return kind(**{**document, "diagnosed": tuple(document["diagnosed"])})
