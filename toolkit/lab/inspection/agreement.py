"""Whether the rollouts of a group that asked the same were answered the same, more often than by chance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from toolkit.lab.inspection.calls import Call

if TYPE_CHECKING:
    from toolkit.documents.world import AgreementDocument, RunDesign

PERMUTATIONS = 1999
"""The least p is 1/2000, a twentieth of the level that decides."""
_SEED = 0
_CELLS = 4_000_000  # of a block of permutations

Question = tuple[str, tuple[Call, ...], str]
"""Task, the calls and answers so far, and what is asked then."""
Asked = Mapping[Question, Mapping[int, Sequence[str]]]
"""For each question, the answers that the rollouts of each group were given."""


@dataclass(frozen=True)
class Agreement:
    """Pairs of rollouts of one group that were asked the same, at the same point of the same history."""

    pairs: int  # such pairs
    agreeing: int  # those of them that were answered the same
    informative: int  # pairs at questions that several groups asked and that had several answers
    informative_agreeing: int  # those of them that were answered the same
    # How many would have been, were answers shuffled between the rollouts that asked the same
    by_chance: float
    p: float | None  # how often shuffled answers agree at least as much; None without informative pairs

    @property
    def differing(self) -> int:
        """Pairs that were answered differently, which rollouts under one schedule never are."""
        return self.pairs - self.agreeing

    @property
    def expected_differing(self) -> float:
        """How many informative pairs would differ by chance: what there is to see."""
        return self.informative - self.by_chance

    def document(self, design: RunDesign) -> AgreementDocument:
        """Return it as JSON values, with the design that it speaks for."""
        return {
            "pairs": self.pairs,
            "agreeing": self.agreeing,
            "informative": self.informative,
            "informative_agreeing": self.informative_agreeing,
            "by_chance": self.by_chance,
            "p": self.p,
            "differing": self.differing,
            "design": design,
        }


def asked(rollouts: Iterable[tuple[int, str, Sequence[Call]]]) -> Asked:
    """Return what was asked and answered.

    Only calls with the same history are the same question. A world whose only chance is its schedule then
    answers rollouts under one schedule alike, whether it draws in sequence or by what is called; and under
    schedules of their own, answers do not depend on the group, however the policy changes between steps.
    """
    found: dict[Question, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for group, task, calls in rollouts:
        for at, call in enumerate(calls):
            found[task, tuple(calls[:at]), call.request][group].append(call.answer)
    return found


def agreement(questions: Asked) -> Agreement:
    """Count agreeing pairs within groups, and compare them with answers that are shuffled.

    The answers to each question are shuffled between all rollouts of the run that asked it. That is exact for
    the first call of a rollout; which later questions are asked follows from earlier answers, and only the
    mean and the spread of the sum are those of the shuffled ones.
    """
    pairs = agreeing = informative = informative_agreeing = 0
    by_chance = 0.0
    shuffled = np.zeros(PERMUTATIONS)
    generator = np.random.default_rng(_SEED)
    for groups in questions.values():
        sizes = [len(answers) for answers in groups.values()]
        codes, answers = _coded([answer for own in groups.values() for answer in own])
        inside = sum(comb(size, 2) for size in sizes)
        alike = int(_alike(codes[None], sizes, answers)[0])
        pairs, agreeing = pairs + inside, agreeing + alike
        if inside and len(sizes) > 1 and len(answers) > 1:
            informative, informative_agreeing = informative + inside, informative_agreeing + alike
            by_chance += inside * sum(comb(count, 2) for count in answers) / comb(len(codes), 2)
            shuffled += _shuffled(codes, sizes, answers, generator)
    as_much = int((shuffled >= informative_agreeing).sum())
    p = (1 + as_much) / (1 + PERMUTATIONS) if informative else None
    return Agreement(pairs, agreeing, informative, informative_agreeing, by_chance, p)


def _coded(answers: list[str]) -> tuple[npt.NDArray[np.int32], list[int]]:
    """Return answers as numbers, and how often each was given."""
    _, codes, counts = np.unique(answers, return_inverse=True, return_counts=True)
    return codes.astype(np.int32), counts.tolist()


def _shuffled(
    codes: npt.NDArray[np.int32], sizes: list[int], counts: list[int], generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return the agreeing pairs within groups after each permutation."""
    block = max(1, _CELLS // len(codes))
    bounds = [*range(0, PERMUTATIONS, block), PERMUTATIONS]
    parts = [
        _alike(generator.permuted(np.tile(codes, (end - start, 1)), axis=1), sizes, counts)
        for start, end in pairwise(bounds)
    ]
    return np.concatenate(parts)


def _alike(codes: npt.NDArray[np.int32], sizes: list[int], counts: list[int]) -> npt.NDArray[np.int64]:
    """Return the agreeing pairs within groups, for each row of answers."""
    starts = np.cumsum([0, *sizes[:-1]])
    total = np.zeros(len(codes), dtype=np.int64)
    for answer, count in enumerate(counts):
        if count > 1:
            inside = np.add.reduceat(codes == answer, starts, axis=1, dtype=np.int64)
            total += (inside * (inside - 1) // 2).sum(axis=1)
    return total
