"""Ten-armed bandits: does optimism find the best lever sooner than chance?

Every problem is a bandit: ten levers, each of which pays 1 with a probability of its own. An agent pulls
levers; at some iterations it is asked which one it would pull for good, and has solved the problem if that is
the best. UCB1 pulls the lever that could be best, epsilon-greedy the one that looks best or, one time in ten,
any. Both meet the same pays: pull n of a lever pays the same, whoever pulls.

    python run.py pilot > pilot.csv
    python run.py > episodes.csv
"""

from __future__ import annotations

import csv
import math
import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count

LEVERS = 10
PROBLEMS = 40
TRIALS = 2
SEEDS = range(5)
PILOT_SEEDS = range(100, 102)
ITERATIONS = (0, 100, 200, 400, 800)

Agent = Callable[[list[int], list[int], random.Random], int]


def ucb1(pulls: list[int], paid: list[int], own: random.Random) -> int:  # noqa: ARG001 - as every agent
    """Pull the lever with the highest upper confidence bound, untried ones first."""
    if 0 in pulls:
        return pulls.index(0)
    width = 2 * math.log(sum(pulls))
    return max(range(LEVERS), key=lambda lever: paid[lever] / pulls[lever] + math.sqrt(width / pulls[lever]))


def epsilon_greedy(pulls: list[int], paid: list[int], own: random.Random) -> int:
    """Pull the lever that paid best so far, or any, one time in ten."""
    if own.random() < 0.1:
        return own.randrange(LEVERS)
    return looks_best(pulls, paid, own)


def looks_best(pulls: list[int], paid: list[int], own: random.Random) -> int:
    """Return the lever with the highest mean pay; one of them where several have it."""
    means = [paid[lever] / pulls[lever] if pulls[lever] else 0.0 for lever in range(LEVERS)]
    return own.choice([lever for lever in range(LEVERS) if means[lever] == max(means)])


def play(agent: Agent, seed: int, problem: int, trial: int) -> Iterator[tuple[int, bool]]:
    """Yield (iteration, solved) at every iteration at which the agent is asked."""
    chances = [random.Random(f"lever {problem} {lever}").uniform(0.2, 0.8) for lever in range(LEVERS)]
    pays = [random.Random(f"pay {seed} {problem} {trial} {lever}") for lever in range(LEVERS)]
    own = random.Random(f"agent {agent.__name__} {seed} {problem} {trial}")
    pulls, paid = [0] * LEVERS, [0] * LEVERS
    for iteration in count():
        if iteration in ITERATIONS:
            yield iteration, chances[looks_best(pulls, paid, own)] == max(chances)
        if iteration == ITERATIONS[-1]:
            return
        lever = agent(pulls, paid, own)
        pulls[lever] += 1
        paid[lever] += pays[lever].random() < chances[lever]


def main() -> None:
    """Write one row an episode."""
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(("agent", "rng", "iteration", "problem", "trial", "solved", "started"))
    for name, agent in {"UCB1": ucb1, "epsilon-greedy": epsilon_greedy}.items():
        for seed in PILOT_SEEDS if "pilot" in sys.argv[1:] else SEEDS:
            started = datetime.now(UTC).isoformat(timespec="seconds")
            for problem in range(PROBLEMS):
                for trial in range(TRIALS):
                    for iteration, solved in play(agent, seed, problem, trial):
                        table.writerow((name, seed, iteration, f"bandit-{problem}", trial, solved, started))


if __name__ == "__main__":
    main()
