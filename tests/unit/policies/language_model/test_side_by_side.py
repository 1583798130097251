"""Work side by side: in order, bounded, and left at the first failure."""

import threading
import time

import pytest

from toolkit.policies.language_model.endpoint import side_by_side


def test_answers_come_in_the_order_of_the_items() -> None:
    def later_first(item: int) -> int:
        time.sleep(0.01 * (3 - item))
        return item * 10

    assert side_by_side(later_first, range(4), 4) == [0, 10, 20, 30]


def test_nothing_is_nothing() -> None:
    assert side_by_side(str, [], 4) == []


def test_after_a_failure_nothing_more_is_begun() -> None:
    begun: list[int] = []
    told = threading.Event()

    def fail(item: int) -> None:
        begun.append(item)
        if item > 0:
            told.wait(10)  # taken before the failure was told: it may be the last
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        side_by_side(fail, range(50), 1)
    told.set()
    time.sleep(0.1)
    assert len(begun) <= 2


def test_a_failure_waits_for_nobody() -> None:
    free = threading.Event()

    def fail_or_wait(item: int) -> None:
        if item == 0:
            raise ValueError(item)
        free.wait(10)

    start = time.monotonic()
    with pytest.raises(ValueError, match="0"):
        side_by_side(fail_or_wait, range(3), 3)
    assert time.monotonic() - start < 5
    free.set()
