"""The jobs of an evaluation: a set or a diagnostic, block by block. A job is all that another process needs.

A job's answer depends on the job alone, so that jobs can be done in any order, in any place, and again.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.evaluation import diagnostic, language_model
from toolkit.evaluation.sets import EvaluationSet
from toolkit.noise.regimes import REGIMES
from toolkit.policies.language_model.opening import Opening, open_engine
from toolkit.registers.arrow import Row
from toolkit.seeds import sampling_seed
from toolkit.tasks.pools import POOLS

ROOT = "toolkit evaluate"
"""What the seeds derive from: no registration's, so that no registered run meets them."""
PHASE = "final"
DIAGNOSTIC = "diagnostic"
EPISODES, LUCK_SHARE = "episodes", "luck_share"


@dataclass(frozen=True)
class Asked:
    """What an evaluation is to play.

    Args:
        regimes: the noise of each set.
        pool: pool of the sets' tasks.
        tasks: how many of its tasks.
        schedules: how many schedules a task. Under noise that is not drawn they are all the same, and repeat
            what the policy samples.
        luck_share: whether the diagnostic is played, too, under each regime whose noise is drawn.
        seed: number of the sampling: another one samples anew, under the same schedules.
    """

    regimes: tuple[str, ...]
    pool: str = "test"
    tasks: int = 200
    schedules: int = 4
    luck_share: bool = True
    seed: int = 0

    def evaluation(self, regime: str) -> EvaluationSet:
        """Return the set of a regime; the challenge, which draws nothing, has one schedule, as registered."""
        schedules = 1 if REGIMES[regime].challenge else self.schedules
        return EvaluationSet(PHASE, self.pool, regime, self.tasks, schedules)

    @property
    def diagnosed(self) -> tuple[str, ...]:
        """The regimes whose luck share is measured: under the others no schedule differs from another."""
        return tuple(regime for regime in self.regimes if self.luck_share and _is_drawn(regime))

    @property
    def diagnosed_tasks(self) -> int:
        """How many tasks of the diagnostic are played."""
        return min(self.tasks, POOLS[DIAGNOSTIC].size)


@dataclass(frozen=True)
class BlockJob:
    """Play a block.

    Args:
        opening: the engine.
        table: `episodes` of a set, or `luck_share`.
        evaluation: the set; of a diagnostic, its pool and regime.
        first: position of the block's first task.
        beyond: position after its last.
        seed: number of the sampling.
    """

    opening: Opening
    table: str
    evaluation: EvaluationSet
    first: int
    beyond: int
    seed: int

    @property
    def name(self) -> str:
        """Name of the block, unique in an evaluation."""
        of = self.evaluation
        return f"{self.table}-{of.regime}-{of.pool}-{self.first:04}-{self.beyond:04}-{of.schedules}"

    @property
    def subject(self) -> str:
        """What the job is about."""
        return str(self)

    @property
    def episodes(self) -> int:
        """How many episodes it has."""
        samples = diagnostic.SAMPLES if self.table == LUCK_SHARE else 1
        return (self.beyond - self.first) * self.evaluation.schedules * samples

    def __str__(self) -> str:
        return f"{self.evaluation.regime}, {self.evaluation.pool}:{self.first} to {self.beyond - 1}"


def jobs(opening: Opening, asked: Asked) -> tuple[BlockJob, ...]:
    """Return the jobs of an evaluation: its sets, then its diagnostics."""
    sets = [
        BlockJob(opening, EPISODES, evaluation, block.start, block.stop, asked.seed)
        for evaluation in map(asked.evaluation, asked.regimes)
        for block in language_model.blocks(evaluation.tasks, evaluation.schedules)
    ]
    tables = [
        BlockJob(
            opening,
            LUCK_SHARE,
            EvaluationSet(PHASE, DIAGNOSTIC, regime, asked.diagnosed_tasks, diagnostic.SCHEDULES),
            block.start,
            block.stop,
            asked.seed,
        )
        for regime in asked.diagnosed
        for block in language_model.blocks(asked.diagnosed_tasks, diagnostic.SCHEDULES * diagnostic.SAMPLES)
    ]
    return (*sets, *tables)


def perform(job: BlockJob) -> list[Row]:
    """Do a job.

    Returns:
        Rows of its table.

    Raises:
        ToolkitError: it failed.
    """
    of = job.evaluation
    sampling = language_model.Sampling(of.regime, 0, sampling_seed(ROOT, of.regime, job.seed))
    tasks = range(job.first, job.beyond)
    engine = open_engine(job.opening)
    if job.table == LUCK_SHARE:
        return language_model.diagnose_block(engine, of.regime, of.pool, tasks, sampling)
    return language_model.evaluate_block(engine, of, tasks, sampling)


def _is_drawn(regime: str) -> bool:
    """Whether schedules differ under a regime: faults or flips are drawn."""
    return REGIMES[regime].mixture is not None or REGIMES[regime].flip_rate > 0
