"""Gram matrices over simulated scores: which fraction of this machine's double-precision product rate.

Each line is one accumulation by one thread, whose processor time is counted: what else runs on the machine
disturbs it less. It pauses now and then, off the clock, to time products of two square matrices: both see the
same machine. The blocks come in rotation from more memory than caches hold, so that reading them is on the
clock, as are conversion, sums and the check that all is finite; making them is not.

Operations are counted as needed: a symmetric product has N(N + 1)/2 entries, a multiplication and an addition
a coordinate each. Beside it stands the count of a product that computes both triangles, 2N² a coordinate.
"""

import resource
import time
from collections.abc import Iterator

import numpy as np

from tests.benchmarks.harness import verdict
from toolkit.lab.probe.evidence import default_width, gram

COORDINATES = 33_600_000
POOL_BYTES = 96 * 2**20
SIDE, PAUSES, GOAL, GOAL_MB = 768, 16, 0.6, 2000
# Vectors and coordinates: the rollouts of a task, and those of a pool over a part of the coordinates.
LINES = [(64, COORDINATES), (512, COORDINATES // 64)]


class Reference:
    """Products of two square matrices."""

    def __init__(self) -> None:
        self.one, self.other = np.random.default_rng(1).standard_normal((2, SIDE, SIDE))
        self.product = np.empty((SIDE, SIDE))
        self.rounds, self.took = 0, 0.0

    def measure(self) -> None:
        """Time one product, after one that only warms up."""
        np.matmul(self.one, self.other, out=self.product)
        started = time.thread_time()
        np.matmul(self.one, self.other, out=self.product)
        self.took += time.thread_time() - started
        self.rounds += 1

    @property
    def rate(self) -> float:
        """Operations a second, over all rounds: as disturbed as what stands beside it."""
        return 2 * SIDE**3 * self.rounds / self.took


def measure(vectors: int, coordinates: int) -> None:
    """Accumulate once and print both rates."""
    width = default_width(vectors)
    rng = np.random.default_rng(2)
    stored = [
        rng.standard_normal((vectors, width), dtype=np.float32)
        for _ in range(POOL_BYTES // (4 * vectors * width))
    ]
    reference, paused = Reference(), 0.0

    def simulated() -> Iterator[np.ndarray]:
        nonlocal paused
        every = max(1, coordinates // width // PAUSES)
        for number, start in enumerate(range(0, coordinates, width)):
            if number % every == 0:
                before = time.thread_time()
                reference.measure()
                paused += time.thread_time() - before
            yield stored[number % len(stored)][:, : coordinates - start]

    gram(stored[:4])
    started = time.thread_time()
    gram(simulated(), count=coordinates)
    took = time.thread_time() - started - paused
    rate, needed = reference.rate, vectors * (vectors + 1) * coordinates / took
    share, full = needed / rate, 2 * vectors / (vectors + 1) * needed / rate
    met = verdict(share >= GOAL, f"at least {GOAL:.0%}")
    print(
        f"  {vectors:4} {coordinates / 1e6:7.2f} {took:7.2f} {rate / 1e9:8.1f} "
        f"{needed / 1e9:8.1f} {share:7.0%} {full:11.0%}  {met}"
    )


def compare() -> None:
    """Measure and print one line a size."""
    print(f"Gram matrices by block, beside products of {SIDE} × {SIDE} doubles; one thread, processor time")
    print("     N       P       s  product     gram  needed  full count")
    print("             M          GFLOP/s  GFLOP/s")
    for vectors, coordinates in LINES:
        measure(vectors, coordinates)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  peak {peak:.0f} MB, {POOL_BYTES >> 20} MB of it simulated scores a line", end="  ")
    print(f"{verdict(peak < GOAL_MB, f'under {GOAL_MB} MB')}")
