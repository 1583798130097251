"""Designs are recovered from what rollouts were answered; chance is taken for more as often as it may."""

from collections.abc import Iterator
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from toolkit.lab.inspection.inspection import Agreement, Call, _judged, agreement, asked

TASKS, STEPS, TURNS = 3, 12, 3
Rollout = tuple[int, str, list[Call]]


def numbers(seed: int | str) -> Random:
    return Random(seed)  # noqa: S311 - nothing secret


def rollout(chance: Random, choices: Random, rate: float, skill: float, *, keyed: int | None) -> list[Call]:
    """The calls of a rollout that learns to repeat what failed; what it wrote shows in what it reads."""
    calls: list[Call] = []
    met: dict[str, int] = {}
    written, request = 0, ""
    for _ in range(TURNS):
        is_repeated = bool(calls) and calls[-1].answer == "busy" and choices.random() < skill
        request = request if is_repeated else choices.choice(("read", "write"))
        met[request] = met.get(request, 0) + 1
        drawn = chance if keyed is None else numbers(f"{keyed} {request} {met[request]}")
        is_busy = drawn.random() < rate
        written += request == "write" and not is_busy
        calls.append(Call(request, "busy" if is_busy else str(written)))
    return calls


def training(seed: int, size: int, rate: float, *, shared: int, keyed: bool = False) -> Iterator[Rollout]:
    """Return a training whose policy changes: the first `shared` rollouts of each group have one schedule."""
    choices = numbers(f"policy {seed}")
    for step in range(STEPS):
        for task in range(TASKS):
            group = step * TASKS + task
            for slot in range(size):
                schedule = hash((seed, group, 0 if slot < shared else slot))
                calls = rollout(
                    numbers(schedule), choices, rate, step / STEPS, keyed=schedule if keyed else None
                )
                yield group, str(task), calls


def design(found: Agreement) -> str:
    return _judged("run", STEPS * TASKS, 0, declared=None, seeds=(), answers=found).design


logs = {
    "seed": st.integers(0, 2**32),
    "size": st.integers(4, 8),
    "rate": st.floats(0.25, 0.75),
    "keyed": st.booleans(),
}


@given(**logs)
def test_independent_rollouts_are_never_paired(seed: int, size: int, rate: float, *, keyed: bool) -> None:
    found = agreement(asked(training(seed, size, rate, shared=0, keyed=keyed)))
    assert found.differing
    # What else there is to fear is `neither`, as often as the level says: below.
    assume(found.p is not None and found.p > 0.01)
    assert design(found) == "independent"


def test_chance_is_taken_for_more_as_often_as_the_level_says() -> None:
    found = [agreement(asked(training(seed, 4, 0.4, shared=0, keyed=bool(seed % 2)))) for seed in range(100)]
    values = [one.p for one in found if one.p is not None]
    assert len(values) == 100
    # Of 100 such logs: three standard errors about what is expected.
    assert sum(p <= 0.05 for p in values) <= 12
    assert sum(p <= 0.01 for p in values) <= 4
    assert 0.42 < sum(values) / 100 < 0.6
