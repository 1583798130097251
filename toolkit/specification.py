"""What a run is: everything that decides its bytes, frozen before it is launched."""

import hashlib
from typing import Any, ClassVar

from msgspec import field, structs

from toolkit.canonical import canonical
from toolkit.structs import Document, parse

KEEPS_ALL = "all"
CODE = "1"
CHECKPOINT_EVERY = 20
PUBLISHED = "published"
"""The world of the published study."""


class Specification(Document, frozen=True):
    """The specification of a run."""

    checkpoint_table: ClassVar[str] = "checkpoints"
    """Table that the run's checkpoints are rows of."""

    study: str  # name of the study
    # What every seed of the run derives from. It holds the registration's anchor, so that no registered
    # run can have been played before the freeze; a pilot's, which comes before it, does not.
    root: str
    run_id: str  # name of the run
    condition: str  # condition, arm, seed: its place in the matrix
    arm: str
    seed: int
    tier: int  # tier of the matrix
    role: str  # role of the run in the decisions
    regime: str  # noise of training
    at_noise: str  # regime of the periodic evaluation at training noise
    scale_rewards: str  # `group`: advantages are divided by their group's standard deviation; `none`: not
    # Which evaluation sets are played: `registered`, or `learning` for the learning curve alone
    battery: str = "registered"
    steps: int = 100  # training steps
    prompts_per_step: int = 24  # groups in a step
    group_size: int = 8  # rollouts in a group, G
    learning_rate: str = "0.0035"  # Adam's, as decimal text
    surface_tokens: int = 16  # V, reward-irrelevant tokens a tool is called with; 0 for none
    checkpoint_every: int = CHECKPOINT_EVERY  # steps between two checkpoints, each evaluated
    diagnosed: tuple[int, ...] = (0, 100)  # steps at which the luck share is diagnosed
    # Pool → SHA-256 of the tasks that the run may meet
    pools: dict[str, str] = field(default_factory=dict)
    code: str = CODE  # version of the code that decides the bytes
    # What the policy samples in an evaluation: the run's `own`, or `shared` by all arms, runs and steps
    # of a study
    sampling: str = "own"
    optimizer: str = "adam"  # `adam`, `gradient` (a plain step) or `sign` (of every coordinate's gradient)
    square_decay: str = "0.999"  # Adam's β₂, as decimal text
    # `dapo`: a step's sum over its decisions and tokens is divided by their number; `dr_grpo`: by its
    # number of rollouts
    loss_type: str = "dapo"
    # Groups whose rewards are all alike are `kept`, or `resampled`: dropped, and tasks drawn until a step
    # has its number of others
    constant_groups: str = "kept"
    # What they keep of the run: `all`, `no_checkpoints`, or `evaluations`: neither checkpoints nor
    # training groups. Whoever plays such a row again plays the run from its start.
    registers: str = "all"
    # Where nothing is trained, the `study` and `run` whose checkpoints are evaluated, and their `sha256`
    checkpoints: dict[str, str] = field(default_factory=dict)
    # How many sub-requests the tasks have that it trains and is evaluated on; 0 for any
    sub_requests: int = 0
    world: str = ""  # the foreign world that it is played in; empty for the back office

    @property
    def has_published_schedules(self) -> bool:
        """Whether schedules have the published study's seeds: those of language models in its world."""
        return False

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
        document = {**structs.asdict(self), "diagnosed": list(self.diagnosed)}
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


class LanguageModelSpecification(Specification, frozen=True):
    """The specification of a language model's run.

    Its sizes and learning rate are those of the recipe; it has no surface tokens.
    """

    checkpoint_table: ClassVar[str] = "adapters"

    recipe: dict[str, Any] = field(default_factory=dict)  # the recipe's document
    model_commit: str = ""  # commit of the model that it starts from, or the SHA-256 of its files

    @property
    def has_published_schedules(self) -> bool:
        """Whether schedules have the published study's seeds: those of language models in its world."""
        return self.world == PUBLISHED


def read_specification(document: object, where: object) -> Specification:
    """Return the specification that a document is, of either kind of run."""
    is_model = isinstance(document, dict) and "recipe" in document
    kind = LanguageModelSpecification if is_model else Specification
    return parse(kind, document, "the specification of a run is invalid", where)
