"""Paired rollouts in a training run of TRL.

noise = paired(Files, design="paired", regime="faults_p025", seed=0, record="groups.jsonl")
trainer = GRPOTrainer(
    …, environment_factory=noise, reward_funcs=[noise.observed(solved)], callbacks=[noise]
)

How a rollout knows its group, whatever the order in which TRL resets its environments:

1. The trainer says to its callback which step it plays, how large groups are, and whether it trains: a step's
   rollouts are those that are reset between its begin and its end. A batch that is trained on several times
   is reset once; several batches of one step go on counting.
2. A task is named by the digest of its prompt, or by a column of its row. Of its resets in a step, the first
   G are the slots of its first group, the next G those of its second: a prompt that a step has twice gives
   two groups. Each of several processes counts its own; `repeat` tells theirs apart.
3. Before rewards go out, the groups have to be those that TRL compares: G rollouts after one another, with a
   slot each. Anything else stops the run.
4. Rollouts between steps are an evaluation's: their schedules are those of `toolkit.seeds.evaluation_seed`,
   the same at every step and for every design, and no group is recorded.

Importing this module imports Transformers, which TRL needs; nothing else in this room does.
"""

import hashlib
import inspect
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from toolkit.canonical import canonical
from toolkit.errors import DamagedError, UsageError
from toolkit.noise.declaration import WAIT, Declaration
from toolkit.noise.draws import Design
from toolkit.noise.trainers.groups import Groups, Outcome, Place, observed
from toolkit.noise.trainers.tools import Noisy, declaration_of
from toolkit.seeds import evaluation_seed

Reward = Callable[..., list[float]]
_LONGEST_NAME = 16


def paired(
    tools: type,
    *,
    design: Design,
    regime: str,
    seed: int,
    record: str | Path | None = None,
    task: str = "prompt",
    declaration: Declaration | None = None,
) -> "Paired":
    """Return an environment factory of TRL that puts noise in front of an environment's tools.

    Args:
        tools: the environment: a class whose public methods are tools, with types and docstrings.
        design: `paired`: the rollouts of a group share a schedule; `independent`: each has its own.
        regime: name of the noise.
        seed: of the run.
        record: file that takes the groups; process k > 0 of several has `-k` before its ending.
        task: column that names the task; a prompt is named by its digest.
        declaration: what is known of the tools; what their class declares, if left out.
    """
    return Paired(tools, (design, regime, seed), record, task, declaration or declaration_of(tools))


class Paired(TrainerCallback):  # type: ignore[misc]
    """What makes the environments of a run, wraps its reward and is its trainer's callback; see `paired`."""

    def __init__(
        self,
        tools: type,
        loop: tuple[Design, str, int],
        record: str | Path | None,
        task: str,
        declaration: Declaration,
    ) -> None:
        self.declaration = declaration
        self.tools = tools
        self._loop = loop
        self._record = record
        self._task = task
        self._groups: Groups | None = None
        self._first, self._every = 0, 1
        self._step: int | None = None
        self._met: Counter[str] = Counter()
        self._made = _environment(self)
        Groups(*loop, size=1)  # what cannot be is refused here

    def __call__(self) -> "Environment":
        """Return an environment."""
        return self._made()

    def observed(self, reward: Reward) -> Reward:
        """Return a reward function whose rewards are what the grader reports; what it gives is the truth.

        Args:
            reward: says whether a rollout succeeded, or how far. Of several reward functions, the one that
                the study is about; the others reach TRL as they are.
        """

        @wraps(reward)
        def reported(*values: Any, environments: list[Environment], **named: Any) -> list[float]:
            outcomes = reward(*values, environments=environments, **named)
            self._check(environments)  # 3.
            pairs = zip(environments, outcomes, strict=True)
            return [environment._observed(outcome) for environment, outcome in pairs]  # noqa: SLF001

        return reported

    # 1.
    def on_init_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Learn from the trainer how large groups are, and which process this is."""
        record = None if self._record is None else Path(self._record)
        if record is not None and args.process_index:
            record = record.with_name(f"{record.stem}-{args.process_index}{record.suffix}")
        self._groups = Groups(*self._loop, size=args.num_generations, record=record)
        self._first, self._every = args.process_index, args.world_size

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Go on after the checkpoint that the trainer goes on from."""
        if self._groups is None:  # it was added to a trainer that is there
            self.on_init_end(args, state, control)
        if state.global_step:
            self.groups.resume(state.global_step)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Begin a step: the rollouts that are reset from here on are its."""
        self._step = state.global_step + 1
        self._met.clear()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """End a step: rollouts until the next are an evaluation's."""
        self._step = None
        self._met.clear()

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """End an evaluation: the next one meets its schedules again."""
        self._met.clear()

    @property
    def groups(self) -> Groups:
        """The groups of the run."""
        if self._groups is None:
            raise UsageError(
                "the trainer does not say which step it plays",
                remedy="hand over the factory as a callback too: GRPOTrainer(…, callbacks=[noise])",
            )
        return self._groups

    def met(self, row: dict[str, Any]) -> tuple[int, Place | None, int]:
        """Return schedule seed, group (None of an evaluation) and slot of a rollout that begins."""
        groups = self.groups
        if self._task not in row:
            raise UsageError(
                "a row has no column that names its task",
                expected=self._task,
                found=", ".join(row),
                remedy="name one: paired(…, task=COLUMN)",
            )
        value = row[self._task]
        task = digest(value) if self._task == "prompt" else str(value)
        number = self._met[task]
        self._met[task] += 1
        if self._step is None:  # 4.
            return evaluation_seed(task, number * self._every + self._first), None, number
        repeat, slot = divmod(number, groups.size)  # 2.
        place = Place(self._step, task, repeat * self._every + self._first)
        return groups.schedules(place)[slot], place, slot

    def _check(self, environments: list["Environment"]) -> None:
        size = self.groups.size
        places = [environment._place for environment in environments]  # noqa: SLF001
        if None in places:
            return
        for first in range(0, len(places), size):
            slots = {environment._slot for environment in environments[first : first + size]}  # noqa: SLF001
            if len({*places[first : first + size]}) != 1 or slots != {*range(size)}:
                raise DamagedError(
                    "the rollouts that TRL compares are not one group",
                    expected=f"{size} rollouts of one group, a slot each",
                    found=", ".join(map(str, places[first : first + size])),
                    where=f"rollouts from {first} of a batch of {len(places)}",
                    remedy="let each process generate whole groups: per_device_train_batch_size times "
                    "steps_per_generation is a multiple of num_generations",
                )


def digest(prompt: Any) -> str:
    """Return the name of a task that is known by its prompt, as an import of TRL's own log names it."""
    text = prompt if isinstance(prompt, str) else canonical(prompt)
    return hashlib.sha256(text.encode()).hexdigest()[:_LONGEST_NAME]


class Environment:
    """One rollout after another, as TRL makes, resets and calls them; each class of tools has a subclass."""

    _run: Paired

    def __init__(self) -> None:
        self._target: Any = None
        self._noisy: Any = None
        self._seed = self._slot = 0
        self._place: Place | None = None

    def reset(self, **row: Any) -> Any:
        """Start a rollout, with its row of the data."""
        self._seed, self._place, self._slot = self._run.met(row)
        resets = hasattr(self._run.tools, "reset")
        if self._target is None or not resets:
            self._target = self._run.tools()
        observation = self._target.reset(**row) if resets else None
        regime = self._run.groups.regime
        self._noisy = Noisy(self._target, regime, self._seed, self._run.declaration)
        return observation

    def __getattr__(self, name: str) -> Any:
        """Return what else the environment has: reward functions read it."""
        if name.startswith("__") or self.__dict__.get("_target") is None:
            raise AttributeError(name)
        return getattr(self._target, name)

    def _observed(self, outcome: float) -> float:
        groups = self._run.groups
        reward = observed(groups.regime, self._seed, outcome)
        if self._place is not None:
            exposed = bool(self._noisy.session.exposures)
            groups.keep(self._place, self._slot, Outcome(float(outcome), reward, exposed))
        return reward


def _environment(run: Paired) -> type[Environment]:
    """Return the class of a run's environments: the tools' public methods, and `wait`."""
    methods = {
        name: method
        for name, method in inspect.getmembers(run.tools, inspect.isfunction)
        if not name.startswith("_") and name != "reset"
    }
    made = {name: _forwarded(method) for name, method in ({WAIT: Noisy.wait} | methods).items()}
    return type(run.tools.__name__, (Environment,), {**made, "_run": run})


def _forwarded(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Environment, *values: Any, **named: Any) -> Any:
        answer = getattr(self._noisy, method.__name__)(*values, **named)
        return self._observed(answer) if method.__name__ == "get_reward" else answer

    return call
