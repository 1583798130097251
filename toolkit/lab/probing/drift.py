"""The drift of training settings, predicted from groups that are played before any training."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from toolkit.errors import DamagedError, UsageError, did_you_mean
from toolkit.lab.executors.executor import HERE, Executor
from toolkit.lab.play.rows import rows_of_run, specification_of
from toolkit.lab.policies.loglinear import Policy, untrained
from toolkit.lab.probe.advice import GroupEvidence
from toolkit.lab.probe.predicted import POOL, Cell, Groups, Prediction, play_groups, predict
from toolkit.lab.tasks.pools import POOLS
from toolkit.lab.training.checkpoint import read_checkpoint
from toolkit.noise.draws import DESIGNS, Design
from toolkit.noise.regimes import REGIMES
from toolkit.registers.study import Study
from toolkit.specification import LanguageModelSpecification

ROLLOUTS = 4000
"""Rollouts of a job, both designs together: about a second."""


@dataclass(frozen=True)
class DriftJob:
    """Play some groups of both designs."""

    parameters: tuple[float, ...] = field(repr=False)  # of the policy
    regime: str  # the noise
    group_size: int  # G
    surface_tokens: int  # V
    name: str  # names all seeds
    start: int  # start, stop: the groups
    stop: int

    @property
    def kind(self) -> tuple[str, int, int]:
        """What its groups have in common with those of other jobs."""
        return self.regime, self.group_size, self.surface_tokens

    @property
    def subject(self) -> str:
        """What the job is about."""
        return f"{self.regime}, G = {self.group_size}, V = {self.surface_tokens}"

    def __str__(self) -> str:
        return f"{self.subject}, groups {self.start} to {self.stop - 1}"


def perform(job: DriftJob) -> dict[Design, Groups]:
    """Play a job's groups. Nothing is read or written."""
    policy = Policy(job.parameters, job.surface_tokens)
    return play_groups(policy, job.regime, job.group_size, job.name, range(job.start, job.stop))


def predicted_drift(
    cells: Sequence[Cell],
    *,
    groups: int = 6000,
    seed: str = "drift",
    parameters: Sequence[float] | None = None,
    executor: Executor = HERE,
) -> list[Prediction]:
    """Predict the drift of cells; what several of them have in common is played once."""
    if groups < 1:
        raise UsageError("no group is played", expected="a number of groups", found=groups)
    kinds = list(dict.fromkeys(cell.played for cell in cells))
    jobs = [job for kind in kinds for job in _jobs(kind, groups, seed, parameters)]
    parts: dict[tuple[str, int, int], dict[int, dict[Design, Groups]]] = {kind: {} for kind in kinds}
    waiting = Counter(job.kind for job in jobs)
    found: dict[Cell, Prediction] = {}
    for done, (job, answer) in enumerate(executor.each_done(jobs, perform), 1):
        kind = job.kind
        parts[kind][job.start] = answer
        executor.watch(done, len(jobs), job.subject)
        if len(parts[kind]) == waiting[kind]:
            ordered = [of for _, of in sorted(parts.pop(kind).items())]
            played = {design: Groups.joined([of[design] for of in ordered]) for design in DESIGNS}
            found |= {cell: predict(played, cell) for cell in cells if cell.played == kind}
    return [found[cell] for cell in cells]


def played_evidence(
    cell: Cell, *, tasks: int, seed: str, parameters: Sequence[float] | None, executor: Executor = HERE
) -> GroupEvidence:
    """Play a group of both designs for every task; return them as anybody's rollouts would be."""
    if tasks > (most := POOLS[POOL].size):
        raise UsageError("the training pool has fewer tasks", expected=f"{most} at most", found=tasks)
    jobs = _jobs(cell.played, tasks, seed, parameters)
    answers = {}
    for done, (job, answer) in enumerate(executor.each_done(jobs, perform), 1):
        answers[job.start] = answer
        executor.watch(done, len(jobs), job.subject)
    parts = [Groups.joined([of[design] for _, of in sorted(answers.items())]) for design in DESIGNS]
    both = Groups.joined(parts)
    is_scaled = cell.scale_rewards == "group"
    return GroupEvidence(
        np.arange(len(both.numbers)) < tasks,
        both.numbers,
        both.varied,
        cell.group_size,
        gradients=both.gradients / both.divisors[:, None] if is_scaled else both.gradients,
        direction=both.gradients if is_scaled else None,
        common_mean=not is_scaled,
    )


def _jobs(
    kind: tuple[str, int, int], groups: int, seed: str, parameters: Sequence[float] | None
) -> list[DriftJob]:
    regime, size, surface_tokens = kind
    if regime not in REGIMES:
        problem = f"there is no regime {regime!r}"
        raise UsageError(problem, expected=", ".join(REGIMES), remedy=did_you_mean(regime, REGIMES))
    weights = untrained(surface_tokens) if parameters is None else tuple(parameters)
    if len(weights) != (expected := len(untrained(surface_tokens))):
        problem = f"the policy has no {surface_tokens} surface tokens"
        raise UsageError(problem, expected=f"{expected} parameters", found=len(weights))
    many = max(1, ROLLOUTS // (2 * size))
    return [
        DriftJob(weights, regime, size, surface_tokens, seed, start, min(start + many, groups))
        for start in range(0, groups, many)
    ]


def checkpoint_parameters(study: Study, run_id: str, step: int) -> tuple[tuple[float, ...], Cell]:
    """Return the policy of a run's checkpoint, and the settings that the run trains with."""
    runs = [row["run_id"] for row in study.rows("runs")]
    if run_id not in runs:
        problem = f"study {study.name} has no run {run_id!r}"
        raise UsageError(problem, expected=", ".join(sorted(runs)), remedy=did_you_mean(run_id, runs))
    run = specification_of(study, run_id)
    if isinstance(run, LanguageModelSpecification):
        problem = "a language model's groups are not played here"
        remedy = "give its rollouts to `toolkit probe advise`, in a folder"
        raise UsageError(problem, found=run_id, where=study.name, remedy=remedy)
    rows = {int(row["step"]): row for row in rows_of_run(study, run.checkpoint_table, run_id)}
    if step not in rows:
        raise UsageError(
            f"{run_id} has no checkpoint at step {step}", expected=", ".join(map(str, sorted(rows)))
        )
    weights = read_checkpoint(rows[step], run_id, len(untrained(run.surface_tokens)))
    if run.regime not in REGIMES:
        raise DamagedError(f"the run's noise is unknown: {run.regime}", where=run_id)
    names = Cell.__struct_fields__
    return weights.parameters, Cell(**{name: getattr(run, name) for name in names})
