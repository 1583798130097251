"""What a registered study costs: what was measured of it, and what follows for other numbers of GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from toolkit.training.plan import Range, Rate, RunCounts, Schedule


@dataclass(frozen=True)
class Accelerator:
    """A GPU: its name, its memory in bytes, its peak in operations a second, and where these come from."""

    name: str
    memory: int
    peak: float
    source: str


class MeasuredRun(NamedTuple):
    """A run that was measured: its name, how long it took, and its episodes."""

    run_id: str
    seconds: float
    episodes: int


@dataclass(frozen=True)
class Measured:
    """Durations of runs in a study's registers.

    Args:
        id: what it is called in the list.
        title: what was measured.
        study: whose registers hold it.
        hardware: on what.
        date: when.
        query: what gives the rows.
        runs: the rows; empty where the study is not here.
    """

    id: str
    title: str
    study: str
    hardware: str
    date: str
    query: str
    runs: tuple[MeasuredRun, ...]

    @property
    def seconds(self) -> float:
        """Seconds of all runs together."""
        return sum(run.seconds for run in self.runs)


@dataclass(frozen=True)
class Policy:
    """What the study costs with one policy.

    Args:
        name: of the model.
        parameters: of its text.
        operations: of a token's forward pass.
        source: where its sizes come from.
        gpus: GPUs that one run occupies.
        rate: of an episode; None where nothing was measured.
        run: hours of one run, over the shortest and the longest; None without a rate.
        schedules: by number of GPUs; empty without a rate.
    """

    name: str
    parameters: int
    operations: int
    source: str
    gpus: int
    rate: Rate | None
    run: Range | None
    schedules: tuple[Schedule, ...]


@dataclass(frozen=True)
class Costs:
    """What a registered study costs.

    Args:
        registration: whose matrix is counted.
        tier: the tier of it.
        recipe: name of the recipe.
        runs: what each run plays.
        accelerator: the GPU.
        measured: what was measured, all of it.
        policies: the study with each policy.
        processors: processors, and the hours that the same runs take on them with the policy that needs no
            GPU; empty where they were not measured.
        tokens: the most tokens of training's and of evaluation's sequences.
        operations: the most operations of them, with the recipe's model.
        at_most: tokens a second that are assumed, and the most hours that a run then takes.
    """

    registration: str
    tier: int
    recipe: str
    runs: tuple[RunCounts, ...]
    accelerator: Accelerator
    measured: tuple[Measured, ...]
    policies: tuple[Policy, ...]
    processors: tuple[tuple[int, float], ...]
    tokens: tuple[int, int]
    operations: int
    at_most: tuple[tuple[int, float], ...]

    @property
    def share_of_peak(self) -> float | None:
        """The share of the GPU's peak that the most operations would be of the measured time; at most that.

        None where no run was measured on it.
        """
        rate = self.policies[0].rate
        if rate is None or rate.seconds.mean is None:
            return None
        seconds = rate.seconds.mean * sum(run.episodes for run in self.runs)
        return self.operations / (seconds * self.accelerator.peak)

    def with_id(self, name: str) -> Measured:
        """Return what was measured, by what it is called."""
        return next(measured for measured in self.measured if measured.id == name)
