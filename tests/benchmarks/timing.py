"""Ways that take turns, the medians of their rounds, and whether a goal is met."""

import statistics
import time
from collections.abc import Callable, Mapping


def medians(
    ways: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    times: int = 1,
) -> dict[str, float]:
    """Return the median seconds that each way takes once, after a round that is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            started = clock()
            for _ in range(times):
                way()
            taken[name].append((clock() - started) / times)
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}


def verdict(is_met: bool, goal: str) -> str:
    """Return whether a goal is met, and the goal."""
    return f"{'met' if is_met else 'MISSED'}: {goal}"
