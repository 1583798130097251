"""GRPO's training loop once more, in numpy, from its formulas: it shares no code with the trainer.

The world is the toolkit's: tasks, schedules, the desk, the agent that carries out what a policy decides, and
the named seeds. The policy's probabilities, its choices, scores, advantages, the gradient, the optimizers and
the evaluation are written here again, from the papers.

`python -m tests.golden.own_training` trains one cell of the map in both designs, pair by pair: two prompts a
step, faults at p = 0.25, Adam. It evaluates every twentieth step with samples that both designs share, writes
`own_training.json`, and prints what pairing did to the area under the curve.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from math import sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from toolkit import seeds
from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.episodes.episode import Episode, play
from toolkit.lab.policies.agent import Rollout
from toolkit.lab.policies.loglinear import ACTIONS, Situation, features, start_parameters
from toolkit.lab.tasks.pools import POOLS, load_task
from toolkit.noise.regimes import REGIMES

FILE = Path(__file__).with_name("own_training.json")
COMMAND = "python -m tests.golden.own_training"
ROOT = "own-training"
PAIRS, TASKS, SCHEDULES, EVERY = 24, 100, 2, 20
FIRST_SEED = 7000

Array = np.ndarray


@dataclass(frozen=True)
class Cell:
    """What is trained, and how."""

    regime: str = "faults_p025"
    prompts: int = 2
    rollouts: int = 8
    tokens: int = 16
    optimizer: str = "adam"
    rate: float = 0.0035
    square_decay: float = 0.999
    is_scaled: bool = True
    by_symbols: bool = True


@cache
def positions(on: Situation | str, tokens: int) -> Array:
    """Return the parameters of every option of a choice: (options, terms of the logit)."""
    index = {parameter: at for at, parameter in enumerate(start_parameters())}
    if isinstance(on, str):
        first = len(index) + list(TOOLS).index(on) * tokens
        return np.arange(first, first + tokens)[:, None]
    return np.array([[index[feature, action] for feature in features(on)] for action in ACTIONS[on.kind]])


class Policy:
    """The softmax policy of a parameter vector, as the agent asks it."""

    def __init__(self, theta: Array, tokens: int) -> None:
        self.layout = SimpleNamespace(surface_tokens=tokens)
        self.theta, self._tokens = theta, tokens
        self._made: dict[Situation | str, Any] = {}

    def action(self, on: Situation | str) -> Any:
        if on not in self._made:
            logits = self.theta[positions(on, self._tokens)].sum(axis=1)
            chances = np.exp(logits - logits.max())
            chances /= chances.sum()
            inner = np.cumsum(chances)[:-1]
            self._made[on] = SimpleNamespace(
                on=on, chances=chances, pick=lambda unit: int(np.searchsorted(inner, unit, side="right"))
            )
        return self._made[on]

    token = action


def start(tokens: int) -> Array:
    """Return the untrained policy."""
    return np.concatenate([list(start_parameters().values()), np.zeros(tokens * len(TOOLS))])


def score(rollout: Rollout, size: int, tokens: int) -> Array:
    """Return a rollout's score: of each choice, what was chosen less what was to be expected."""
    total = np.zeros(size)
    for choice, at in rollout.decisions + rollout.tokens:
        surprise = -choice.chances
        surprise[at] += 1
        where = positions(choice.on, tokens)
        np.add.at(total, where, np.repeat(surprise[:, None], where.shape[1], axis=1))
    return total


def advantages(rewards: Array, *, is_scaled: bool) -> Array:
    centred = rewards - rewards.mean()
    return centred / (rewards.std(ddof=1) + 1e-4) if is_scaled else centred


def task_at(run: int, number: int) -> int:
    """Return the number-th task that a run meets."""
    size = POOLS["train"].size
    order = seeds.Stream(seeds.order_seed(run, number // size)).shuffled(range(size))
    return order[number % size]


def play_group(
    policy: Policy, cell: Cell, design: str, task: int, row: int, samples: Sequence[int]
) -> tuple[Array, Array, int]:
    """Play a group; return its rewards (G,), its rollouts' scores (G, P), and its decisions and tokens."""
    rewards, scores, symbols = [], [], 0
    for slot, sample in enumerate(samples):
        agent = Rollout(policy, sample)  # type: ignore[arg-type]
        schedule = row if design == "paired" else seeds.slot_seed(row, slot)
        episode = play(load_task(f"train:{task}"), REGIMES[cell.regime], schedule, agent)
        rewards.append(episode.observed_reward)
        scores.append(score(agent, len(policy.theta), cell.tokens))
        symbols += len(agent.decisions) + len(agent.tokens)
    return np.array(rewards, float), np.array(scores), symbols


def gradient(cell: Cell, design: str, place: tuple[str, str, int], step: int, theta: Array) -> Array:
    """Return the gradient of a step, from its rollouts."""
    root, run_id, seed = place
    run, sampling = seeds.run_seed(root, seed), seeds.sampling_seed(root, run_id, seed)
    policy, total, symbols = Policy(theta, cell.tokens), np.zeros(len(theta)), 0
    for group in range(cell.prompts):
        task = task_at(run, (step - 1) * cell.prompts + group)
        samples = [seeds.rollout_seed(sampling, step, group, slot) for slot in range(cell.rollouts)]
        row = seeds.row_seed(run, step, group)
        rewards, scores, of_group = play_group(policy, cell, design, task, row, samples)
        total += advantages(rewards, is_scaled=cell.is_scaled) @ scores
        symbols += of_group
    return total / (symbols if cell.by_symbols else cell.prompts * cell.rollouts)


def train(
    cell: Cell, design: str, place: tuple[str, str, int], steps: int, see: Callable[[int, Array], object]
) -> Array:
    """Train, and return the parameters after the last step; `see` is shown those of every step from 0."""
    theta = start(cell.tokens)
    mean, square = np.zeros_like(theta), np.zeros_like(theta)
    see(0, theta)
    for step in range(1, steps + 1):
        g = gradient(cell, design, place, step, theta)
        if cell.optimizer == "adam":
            mean = 0.9 * mean + 0.1 * g
            square = cell.square_decay * square + (1 - cell.square_decay) * g**2
            g = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - cell.square_decay**step)) + 1e-8)
        theta = theta + cell.rate * (np.sign(g * (np.abs(g) > 1e-14)) if cell.optimizer == "sign" else g)
        see(step, theta)
    return theta


def evaluate(theta: Array, cell: Cell) -> float:
    """Return the share of validation episodes that succeed; samples depend on task and schedule alone."""
    policy = Policy(theta, cell.tokens)
    return float(np.mean([_succeeds(policy, cell, t, s) for t in range(TASKS) for s in range(SCHEDULES)]))


def _succeeds(policy: Policy, cell: Cell, number: int, schedule: int) -> bool:
    task = load_task(f"validation:{number}")
    shared = int.from_bytes(hashlib.sha256(f"{task.task_id}/{schedule}".encode()).digest()[:8], "big")
    agent = Rollout(policy, shared)  # type: ignore[arg-type]
    seed = seeds.evaluation_seed(task.task_id, schedule)
    episode: Episode = play(task, REGIMES[cell.regime], seed, agent)
    return episode.true_success


def curve(cell: Cell, design: str, seed: int, steps: int = 100) -> list[float]:
    """Return true success at every twentieth step of a run."""
    seen: list[float] = []
    place = (ROOT, f"{design}-s{seed}", seed)
    train(cell, design, place, steps, lambda at, x: None if at % EVERY else seen.append(evaluate(x, cell)))
    return seen


def area(success: Sequence[float]) -> float:
    """Return the area under a curve, over its span."""
    return float(np.mean([(a + b) / 2 for a, b in pairwise(success)]))


def t_of(differences: Sequence[float]) -> float:
    return float(np.mean(differences) / (np.std(differences, ddof=1) / sqrt(len(differences))))


def main(pairs: int = PAIRS) -> None:
    """Train, write and print."""
    cell, curves = Cell(), []
    for seed in range(FIRST_SEED, FIRST_SEED + pairs):
        curves.append({design: curve(cell, design, seed) for design in ("paired", "independent")})
        print(f"{len(curves)} of {pairs} pairs", file=sys.stderr)
    differences = [area(each["paired"]) - area(each["independent"]) for each in curves]
    gains = {d: np.mean([area(each[d]) - each[d][0] for each in curves]) for d in ("paired", "independent")}
    document = {
        "command": COMMAND,
        "cell": asdict(cell),
        "first_seed": FIRST_SEED,
        "curves": curves,
        "differences": differences,
        "mean": float(np.mean(differences)),
        "t": t_of(differences),
        "positive": sum(d > 1e-9 for d in differences),
        "gain_ratio": float(gains["paired"] / gains["independent"]),
    }
    FILE.write_text(json.dumps(document, indent=1) + "\n")
    print({name: document[name] for name in ("mean", "t", "positive", "gain_ratio")})


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
