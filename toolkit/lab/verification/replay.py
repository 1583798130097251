"""Playing a registered row again, from the run's checkpoint before it.

Steps, whose numbers the code repeats:

1. Read the run's specification and the newest checkpoint before the row; of a run whose checkpoints are not
   kept, the untrained policy.
2. An episode of an evaluation is played by the checkpoint itself, a training group by the weights of
   its step: training goes on from the checkpoint up to there, and every group on the way has to come out as
   registered.
3. What comes out has to be what the register says, column by column.
"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from toolkit import errors, seeds
from toolkit.lab.evaluation import diagnostic, play
from toolkit.lab.evaluation.diagnostic import POOL as DIAGNOSTIC
from toolkit.lab.evaluation.sets import EvaluationSet
from toolkit.lab.play import segments
from toolkit.lab.play.checkpoints import check_registered
from toolkit.lab.play.rows import keeps_checkpoints, rows_of_run, run_file, run_row, specification_of
from toolkit.lab.policies.loglinear import Policy, layout, untrained
from toolkit.lab.training import checkpoint, grpo
from toolkit.lab.training.optimizer import Weights, start
from toolkit.lab.training.rows import draws_at
from toolkit.lab.worlds.world import AnyEpisode
from toolkit.registers.arrow import Row
from toolkit.registers.study import Study
from toolkit.specification import Specification


class Replayer:
    """Plays the rows of one run again.

    Args:
        study: the study.
        run_id: the run.

    Raises:
        IncompleteError, UsageError, DamagedError: the run's rows are not here, or are damaged.
    """

    def __init__(self, study: Study, run_id: str) -> None:
        self._study = study
        self.run_id = run_id
        run_file(study, "episodes", run_id)
        keeps = keeps_checkpoints(run_row(study, run_id))
        kept = rows_of_run(study, "checkpoints", run_id) if keeps else ()  # 1
        self._checkpoints = {row["step"]: row for row in kept}
        self.specification: Specification = specification_of(study, run_id)
        if not self.specification.trains:
            check_registered(self.specification, list(self._checkpoints.values()), f"checkpoints of {run_id}")
        self._reached = {0: start(untrained(self.specification.surface_tokens))}
        self._sampling = seeds.sampling_seed(self.specification.root, run_id, self.specification.seed)
        self._weights_before = lru_cache(maxsize=2)(self._trained_to)
        self._groups: dict[int, list[Row]] | None = None

    def rows(self, table: str) -> list[Any]:
        """Return the run's rows of a table."""
        return rows_of_run(self._study, table, self.run_id)

    def check(self, table: str, row: Any) -> None:
        """Play a row again and compare."""
        match table:
            case "episodes":
                self.played(row)
            case "luck_share":
                at = {
                    "run_id": self.run_id,
                    "pool": DIAGNOSTIC,
                    "regime": diagnostic.regime_diagnosed(self.specification.regime),
                    **{name: row[name] for name in ("step", "task", "schedule")},
                }
                if row["step"] not in self.specification.diagnosed:
                    raise errors.VerificationError(
                        f"{self.run_id} has a luck-share table that is not registered",
                        expected=f"steps {', '.join(map(str, self.specification.diagnosed))}",
                        found=row["step"],
                    )
                policy = self._policy(self._weights_before(row["step"]))
                again = diagnostic.diagnosed_row(policy, at, self._sampling)
                same(f"{table} of {self.run_id}", row, again)
            case "checkpoints" if not self.specification.trains:
                self._at_checkpoint(row["step"])
            case "checkpoints":
                self._check_checkpoint(self._played_to(row["step"]))
            case _:
                self._trained(self._weights_before(row["step"] - 1))

    def evaluated(self, phase: str, regime: str, step: int, task: int, schedule: int) -> AnyEpisode:
        """Play one episode of an evaluation, every call kept."""
        at = {"phase": phase, "regime": regime, "step": step, "task": task, "schedule": schedule}
        self._set(at)
        row = next((row for row in self.rows("episodes") if all(row[name] == at[name] for name in at)), None)
        if row is None:
            known = ", ".join(map(str, self.specification.ends))
            raise errors.UsageError("the run has no such evaluation", expected=f"steps {known}", found=step)
        return self.played(row, traced=True)

    def played(self, row: Row, *, traced: bool = False) -> AnyEpisode:
        """Play the episode of an evaluation row, and compare it with the row."""
        episode = self.episode(row, traced=traced)
        again = play.episode_row(self.run_id, self._set(row), row["step"], row["schedule"], episode)
        same(f"episodes of {self.run_id}", row, again)
        return episode

    def episode(self, row: Row, *, traced: bool = False) -> AnyEpisode:
        """Play the episode of an evaluation row."""
        policy = self._policy(self._at_checkpoint(row["step"]))  # 2
        at, sampling = (row["task"], row["schedule"]), segments.evaluated_with(self.specification)
        return play.play_episode(policy, self._set(row), row["step"], sampling, at, traced=traced)

    def rollout(self, step: int, position: int, slot: int) -> AnyEpisode:
        """Play one rollout of a training group, every call kept."""
        specification = self.specification
        if not specification.trains:
            raise errors.UsageError(
                f"{self.run_id} trains nothing, and has no training step",
                expected="an episode of an evaluation: --regime, --task and --schedule",
            )
        if not 1 <= step <= specification.steps:
            raise errors.UsageError(
                "there is no such training step", expected=f"1 to {specification.steps}", found=step
            )
        weights = self._weights_before(step - 1)
        rows = self._registered(step)
        groups = tuple(islice(draws_at(specification, step), len(rows)))
        if position >= len(groups) or slot >= specification.group_size:
            raise errors.UsageError(
                "there is no such rollout",
                expected=f"position below {len(groups)}, slot below {specification.group_size}",
                found=f"position {position}, slot {slot}",
            )
        policy = self._policy(weights)
        _, episode = grpo.play_rollout(specification, policy, step, groups[position], slot, traced=True)
        row = rows[position]
        outcome = {"true_success": episode.true_success, "observed_reward": bool(episode.observed_reward)}
        expected = {
            "true_success": row["true_successes"][slot],
            "observed_reward": row["observed_rewards"][slot],
        }
        same(f"rollout {slot} of group {position} at step {step} of {self.run_id}", expected, outcome)  # 3
        return episode

    def _set(self, row: Mapping[str, Any]) -> EvaluationSet:
        sets = segments.sets_of(self.specification, row["step"])
        wanted = (row["phase"], row["regime"])
        chosen = next((each for each in sets if (each.phase, each.regime) == wanted), None)
        if chosen is None or row["task"] not in chosen.positions or row["schedule"] >= chosen.schedules:
            raise errors.UsageError(
                "the run has no such episode",
                expected=", ".join(f"{each.name} ({each.tasks} tasks × {each.schedules})" for each in sets),
                found=f"{row['phase']}/{row['regime']}, task {row['task']}, schedule {row['schedule']}",
            )
        return chosen

    def _policy(self, weights: Weights) -> Policy:
        return Policy(weights.parameters, self.specification.surface_tokens)

    def _at_checkpoint(self, step: int) -> Weights:
        if not self.specification.keeps_checkpoints and step in self.specification.ends:
            return self._weights_before(step)
        if step not in self._checkpoints:
            known = ", ".join(map(str, sorted(self._checkpoints)))
            raise errors.UsageError("the run has no checkpoint at that step", expected=known, found=step)
        size = layout(self.specification.surface_tokens).size
        return checkpoint.read_checkpoint(self._checkpoints[step], self.run_id, size)

    def _played_to(self, step: int) -> Weights:
        """Return the weights that training gives at a step, from the checkpoint before it."""
        return self._trained(self._weights_before(step - 1)) if step else self._weights_before(0)

    def _trained_to(self, step: int) -> Weights:
        """Return the weights after a step: training goes on from the newest checkpoint up to it."""
        if self.specification.keeps_checkpoints:
            weights = self._at_checkpoint(max(known for known in self._checkpoints if known <= step))  # 2
        else:
            weights = self._reached[max(known for known in self._reached if known <= step)]
        if not weights.step:
            self._check_checkpoint(self._reached[0])
        while weights.step < step:
            weights = self._trained(weights)
        return weights

    def _trained(self, weights: Weights) -> Weights:
        after, rows = grpo.train_step(self.specification, weights)
        registered = self._registered(after.step) if self.specification.keeps_groups else rows
        if len(registered) != len(rows):
            raise errors.DamagedError(
                f"step {after.step} of {self.run_id} has another number of groups",
                expected=len(rows),
                found=len(registered),
            )
        for row, again in zip(registered, rows, strict=True):
            same(f"group {row['position']} at step {row['step']} of {self.run_id}", row, again)  # 3
        self._check_checkpoint(after)
        if after.step in self.specification.ends:
            self._reached[after.step] = after
        return after

    def _check_checkpoint(self, weights: Weights) -> None:
        """Compare weights with the checkpoint of their step, where there is one."""
        row = self._checkpoints.get(weights.step)
        if row is not None:
            subject = f"the checkpoint at step {weights.step} of {self.run_id}"
            same(subject, row, checkpoint.checkpoint_row(self.run_id, weights))

    def _registered(self, step: int) -> list[Row]:
        if self._groups is None:
            self._groups = {}
            for row in self.rows("groups"):
                self._groups.setdefault(row["step"], []).append(row)
        return self._groups.get(step, [])


def same(what: str, registered: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Compare a row with what came out."""
    for name, value in registered.items():
        if found.get(name) != value:
            raise errors.VerificationError(
                f"{what} came out otherwise",
                expected=str(value)[: errors.EXCERPT],
                found=str(found.get(name))[: errors.EXCERPT],
                where=name,
                remedy="the register was changed, or the code that made it: see toolkit study run --check",
            )
