"""Probing a registered row again: one task's rollouts at one checkpoint, played, scored and multiplied."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from toolkit.errors import VerificationError
from toolkit.policies.loglinear import Policy, layout
from toolkit.probe.design import ACTIONS, ALL
from toolkit.probe.evidence import inner_products
from toolkit.probe.rollouts import coordinate_blocks, play_and_score
from toolkit.study.check.replay import same
from toolkit.study.play.rows import rows_of_run
from toolkit.study.probing.probed import trajectory_sampling
from toolkit.study.probing.run import BASE

if TYPE_CHECKING:
    from toolkit.probe.rollouts import Scored
    from toolkit.registers.arrow import Row
    from toolkit.registers.study import Study
    from toolkit.study.probing.design import RegisteredProbe

COMPARED = ("pool", "regime", "rewards", "tokens", "weights", "gram")
"""Columns that one task's rollouts give; products with other tasks follow from all of them."""


class ProbeReplayer:
    """Probes rows of `probe_gram` again.

    Args:
        study: the study.
        probe: its registered probe.
    """

    def __init__(self, study: Study, probe: RegisteredProbe) -> None:
        self._study = study
        self._design = probe.design
        self._runs = {run.run_id: run for run in probe.runs}
        self._played = lru_cache(maxsize=4)(self._play)

    def rows(self, trajectory: str) -> list[Row]:
        """Return a trajectory's rows of evidence."""
        return rows_of_run(self._study, "probe_gram", trajectory)

    def check(self, row: Row) -> None:
        """Play and score a row's rollouts again, and compare.

        Raises:
            VerificationError: they come out otherwise, or the row is none of the registered probe.
        """
        place = f"probe_gram of {row['trajectory']}@{row['step']}, {row['scored']}, task {row['task']}"
        sets = {one.noise: one for one in self._design.sets}
        expected = {run for run in self._runs if row["step"]} or {BASE}
        if row["trajectory"] not in expected or row["task"] >= sets[row["noise"]].tasks:
            raise VerificationError(
                "a row of evidence belongs to no registered checkpoint or task",
                expected=", ".join(sorted(expected)[:5]),
                found=place,
            )
        played = self._played(row["trajectory"], row["step"], row["noise"], row["task"])
        rollouts = sets[row["noise"]]
        found = {
            "pool": rollouts.pool,
            "regime": rollouts.regime,
            "rewards": [bool(reward) for reward in played.rewards[0]],
            "tokens": played.tokens[row["scored"]][0].tolist(),
            "weights": played.weights[0].tolist(),
            "gram": self._gram(played, row),
        }
        same(place, {name: row[name] for name in COMPARED}, found)

    def _gram(self, played: Scored, row: Row) -> list[float]:
        run = next(iter(self._runs.values())) if row["trajectory"] == BASE else self._runs[row["trajectory"]]
        parts = coordinate_blocks(layout(run.surface_tokens), self._design.scored)
        matrix = inner_products(played.scores[..., parts[ACTIONS]])
        if row["scored"] == ALL and run.surface_tokens:
            matrix = matrix + inner_products(played.scores[..., parts[ALL]])
        upper = np.triu_indices(matrix.shape[-1])
        listed: list[float] = matrix[0][upper].tolist()
        return listed

    def _play(self, trajectory: str, step: int, noise: str, task: int) -> Scored:
        run = next(iter(self._runs)) if trajectory == BASE else trajectory
        rows = rows_of_run(self._study, "checkpoints", run)
        found = [row["parameters"] for row in rows if row["step"] == step]
        if not found:
            raise VerificationError(
                "a row of evidence belongs to no checkpoint",
                expected=", ".join(str(row["step"]) for row in rows),
                found=f"{trajectory}@{step}",
            )
        policy = Policy(found[0], self._runs[run].surface_tokens)
        rollouts = next(one for one in self._design.sets if one.noise == noise)
        sampling = trajectory_sampling(self._design, trajectory)
        return play_and_score(policy, rollouts, sampling, step, [task])
