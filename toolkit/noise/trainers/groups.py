"""Groups of rollouts in anybody's training loop: each rollout's schedule, and the register of groups.

groups = Groups("paired", "faults_p025", seed=0, size=8, record="groups.jsonl")
rollout = groups.rollout(step=1, task="2 + 2", slot=0)
tools = rollout.noisy(Files())
…
reward = rollout.observed(1.0 if solved else 0.0)

A schedule's seed follows from (design, seed, step, task, repeat, slot), never from the order in which
rollouts are played; `repeat` tells the groups apart that a step has of one task.

A group is recorded once its last rollout was observed, a line of JSON each, with the names that the register
`groups` has:

1. A line is written whole: one that a killed run left half is removed before the next.
2. A group that was recorded before is not recorded again, and must come out the same.
3. A run that goes on from a checkpoint forgets the groups of later steps, which it trains on anew.
"""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from toolkit.canonical import canonical
from toolkit.errors import DamagedError, UsageError, VerificationError
from toolkit.files import read_bytes, write_bytes
from toolkit.noise.declaration import Declaration
from toolkit.noise.draws import DESIGNS, Design, Schedule, group_seeds
from toolkit.noise.regimes import REGIMES, Regime
from toolkit.noise.session import Session
from toolkit.noise.trainers.tools import Noisy
from toolkit.seeds import LIMIT, group_seed
from toolkit.structs import Document, about, as_builtins, parse

LARGEST_RECORD = 2**30
_FOLLOWING = ("schedule_seeds", "observed_rewards", "zero_variance", "spurious")


class Place(NamedTuple):
    """Which group: its step, its task, and which of the task's groups in the step."""

    step: int
    task: str
    repeat: int = 0


Whole = Annotated[int, Meta(ge=0)]


class Group(Document, frozen=True):
    """A recorded group: its loop, its place, and lists with a value a slot."""

    design: Design
    regime: str
    seed: Whole
    step: Whole
    task: str
    repeat: Whole
    schedule_seeds: Annotated[list[str], about("As text: JSON's numbers end at 2^53 for many readers.")]
    true_outcomes: Annotated[list[float], about("What each rollout earned."), Meta(min_length=1)]
    observed_rewards: Annotated[list[float], about("What the grader reported.")]
    exposed: Annotated[Whole, about("Rollouts that met a fault.")]
    zero_variance: Annotated[bool, about("Whether the observed rewards are constant.")]
    spurious: Annotated[bool, about("Whether all rollouts succeeded and the observed rewards vary.")]

    def __post_init__(self) -> None:
        size = len(self.schedule_seeds)
        if not size == len(self.true_outcomes) == len(self.observed_rewards) >= self.exposed:
            raise ValueError("a value that is not one of a slot")
        if self.regime not in REGIMES or max(self.seed, self.step, self.repeat) >= LIMIT:
            raise ValueError("an unknown regime, or a number of 2^64 or more")

    @property
    def place(self) -> Place:
        """Which group it is."""
        return Place(self.step, self.task, self.repeat)


class Rollout:
    """One rollout of a group, as `Groups.rollout` gives it; `schedule_seed` is that of its schedule ω."""

    def __init__(self, groups: "Groups", place: Place, slot: int) -> None:
        self.place, self.slot = place, slot
        self.schedule_seed = groups.schedules(place)[slot]
        self._groups = groups
        self._session: Session | None = None

    def noisy(self, target: Any, declaration: Declaration | None = None) -> Noisy:
        """Return an object with the rollout's noise in front of its tools."""
        tools = Noisy(target, self._groups.regime, self.schedule_seed, declaration)
        self._session = tools.session
        return tools

    def session(self, declaration: Declaration) -> Session:
        """Return the rollout's noise in front of tools that are called by their names."""
        self._session = Session(declaration, self._groups.regime, self.schedule_seed)
        return self._session

    def observed(self, outcome: float, *, exposed: bool = False) -> float:
        """End the rollout: return its reward as the grader reports it, and keep the true one.

        Args:
            outcome: what the rollout earned.
            exposed: whether it met a fault where its tools are not in front of this object's noise.
        """
        reward = observed(self._groups.regime, self.schedule_seed, outcome)
        exposed = exposed or (self._session is not None and bool(self._session.exposures))
        self._groups.keep(self.place, self.slot, Outcome(float(outcome), reward, exposed))
        return reward


class Outcome(NamedTuple):
    """What became of a rollout: what it earned, what the grader reported, whether it met a fault."""

    true: float
    observed: float
    exposed: bool


def observed(regime: Regime, schedule_seed: int, outcome: float) -> float:
    """Return a reward as the grader reports it: zero where the schedule flips a success.

    Raises:
        UsageError: the outcome is no number.
    """
    if not math.isfinite(outcome):
        raise UsageError("a rollout's outcome is a finite number", found=outcome)
    return 0.0 if outcome and regime.flips(Schedule(schedule_seed)) else float(outcome)


class Groups:
    """The groups of one training run.

    Args:
        design: `paired`: the rollouts of a group share a schedule; `independent`: each has its own.
        regime: name of the noise.
        seed: of the loop, in [0, 2^64).
        size: rollouts in a group, G.
        record: file that takes the groups; none are recorded where it is left out.

    Raises:
        UsageError: there is no such design or regime, or no such seed or size.
        DamagedError: the record is none, or another loop's.
    """

    def __init__(
        self, design: Design, regime: str, seed: int, size: int, record: str | Path | None = None
    ) -> None:
        if design not in DESIGNS:
            raise UsageError("there is no such design", expected=", ".join(DESIGNS), found=design)
        if regime not in REGIMES:
            raise UsageError("there is no such regime", expected=", ".join(REGIMES), found=regime)
        if not (0 <= seed < LIMIT and size >= 1):
            raise UsageError(
                "a loop has a seed and groups have a size",
                expected="a seed in [0, 2^64), at least one rollout",
                found=f"seed {seed}, size {size}",
            )
        self.regime = REGIMES[regime]
        self.size = size
        self._loop = (design, regime, seed)
        self._record = None if record is None else Path(record)
        self._open: dict[Place, dict[int, Outcome]] = {}
        self._recorded: dict[Place, Group] = {}
        if self._record is not None and self._record.exists():
            self._take_up(self._record)

    def rollout(self, step: int, task: str | int, slot: int, repeat: int = 0) -> Rollout:
        """Return a rollout.

        Args:
            step: training step.
            task: name or number of the task.
            slot: which rollout of its group, from 0.
            repeat: which of the task's groups in the step, from 0.

        Raises:
            UsageError: a group has no such slot.
        """
        if not 0 <= slot < self.size:
            raise UsageError("a group has no such slot", expected=f"0 to {self.size - 1}", found=slot)
        return Rollout(self, Place(step, str(task), repeat), slot)

    def keep(self, place: Place, slot: int, outcome: Outcome) -> None:
        """Keep a rollout's outcome; with the last of its group, record the group."""
        outcomes = self._open.setdefault(place, {})
        if slot in outcomes:
            raise UsageError(
                "a rollout was observed twice",
                where=f"step {place.step}, task {place.task!r}, repeat {place.repeat}, slot {slot}",
                remedy="give each group that a step has of one task a `repeat` of its own",
            )
        outcomes[slot] = outcome
        if len(outcomes) == self.size:
            del self._open[place]
            self._write(self.group(place, [outcomes[at] for at in range(self.size)]))

    def resume(self, step: int) -> None:
        """Go on after a step: forget the recorded groups of later ones, and what was left open."""
        self._open.clear()
        kept = {place: group for place, group in self._recorded.items() if place.step <= step}
        if self._record is not None and len(kept) < len(self._recorded):  # 3
            write_bytes(self._record, b"".join(map(_line, kept.values())))
        self._recorded = kept

    def schedules(self, place: Place) -> tuple[int, ...]:
        """Return the seed of each rollout's schedule, by slot."""
        design, _, seed = self._loop
        return group_seeds(design, group_seed(seed, *place), self.size)

    def group(self, place: Place, outcomes: Sequence[Outcome]) -> Group:
        """Return a group whose rollouts are all observed."""
        true, rewards = [one.true for one in outcomes], [one.observed for one in outcomes]
        return Group(
            *self._loop,
            *place,
            schedule_seeds=list(map(str, self.schedules(place))),
            true_outcomes=true,
            observed_rewards=rewards,
            exposed=sum(one.exposed for one in outcomes),
            zero_variance=len(set(rewards)) == 1,
            spurious=all(true) and len(set(rewards)) > 1,
        )

    def _take_up(self, record: Path) -> None:
        content = read_bytes(record, LARGEST_RECORD)
        whole = content[: content.rfind(b"\n") + 1]
        for group in _groups(whole, record):
            theirs = (group.design, group.regime, group.seed)
            if theirs != self._loop or len(group.schedule_seeds) != self.size:
                raise DamagedError(
                    "the record is another loop's",
                    expected="{}, {}, seed {}, groups of {}".format(*self._loop, self.size),
                    found="{}, {}, seed {}, groups of {}".format(*theirs, len(group.schedule_seeds)),
                    where=record,
                    remedy="give each loop a record of its own",
                )
            self._recorded[group.place] = group
        if whole != content:  # 1
            write_bytes(record, whole)

    def _write(self, group: Group) -> None:
        before = self._recorded.get(group.place)
        if before is None:
            if self._record is not None:
                self._recorded[group.place] = group
                with self._record.open("ab", buffering=0) as file:
                    file.write(_line(group))
        elif before != group:  # 2
            raise DamagedError(
                "a group was recorded before, and came out otherwise",
                expected=before.true_outcomes,
                found=group.true_outcomes,
                where=f"{self._record}: step {group.step}, task {group.task!r}, repeat {group.repeat}",
                remedy="a run that goes on from a checkpoint calls resume(step), a new run has a record "
                "of its own, several groups of a task in a step have a `repeat` each",
            )


class Verified(Document, frozen=True):
    """A record of training groups, whose seeds and flags follow from what it says."""

    record: Annotated[str, about("Its path.")]
    groups: Annotated[int, about("How many groups.")]
    rollouts: Annotated[int, about("How many rollouts.")]
    steps: Annotated[int, about("How many steps.")]
    zero_variance: Annotated[int, about("Groups whose observed rewards are constant.")]
    spurious: Annotated[int, about("Groups of successes alone whose observed rewards vary.")]


def read(record: Path) -> list[Group]:
    """Read a record.

    Raises:
        IncompleteError: there is no such file.
        DamagedError: a line is no group, or none is.
    """
    groups = list(_groups(read_bytes(record, LARGEST_RECORD), record))
    if not groups:
        raise DamagedError("the record has no groups, and no data is not zero", where=record)
    return groups


def verify(record: str | Path) -> Verified:
    """Verify that a record follows from its loop, its groups' places and its true outcomes.

    No group is there twice; schedule seeds are derived again; observed rewards follow from true outcomes,
    regime and schedules, and flags from both. True outcomes and exposures are taken at their word.

    Raises:
        VerificationError: a line says something else.
        IncompleteError, DamagedError: as `read`.
    """
    path = Path(record)
    groups = read(path)
    seen: set[tuple[object, ...]] = set()
    for number, group in enumerate(groups, start=1):
        place = (group.design, group.regime, group.seed, *group.place)
        followed = _again(group)
        wrong = next((name for name in _FOLLOWING if getattr(group, name) != getattr(followed, name)), None)
        if place in seen or wrong:
            raise VerificationError(
                f"{wrong} of a group do not follow" if wrong else "a group is there twice",
                expected=wrong and getattr(followed, wrong),
                found=wrong and getattr(group, wrong),
                where=f"{path}, line {number}: step {group.step}, task {group.task!r}",
            )
        seen.add(place)
    return Verified(
        record=str(record),
        groups=len(groups),
        rollouts=sum(len(group.schedule_seeds) for group in groups),
        steps=len({group.step for group in groups}),
        zero_variance=sum(group.zero_variance for group in groups),
        spurious=sum(group.spurious for group in groups),
    )


def _again(group: Group) -> Group:
    """Return a group as it has to be, given its place and what its rollouts earned."""
    loop = Groups(group.design, group.regime, group.seed, len(group.schedule_seeds))
    slots = (loop.rollout(*group.place[:2], slot, group.repeat) for slot in range(loop.size))
    outcomes = [
        Outcome(true, observed(loop.regime, rollout.schedule_seed, true), exposed=False)
        for rollout, true in zip(slots, group.true_outcomes, strict=True)
    ]
    return loop.group(group.place, outcomes)


def _line(group: Group) -> bytes:
    return canonical(as_builtins(group)).encode() + b"\n"


def _groups(content: bytes, path: Path) -> Iterator[Group]:
    problem = "a line of the record is not a group"
    for number, line in enumerate(content.splitlines(), start=1):
        where = f"{path}, line {number}"
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DamagedError(problem, found=error, where=where) from None
        yield parse(Group, document, problem, where)
