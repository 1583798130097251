"""A time for all of something."""

import threading

import pytest

from toolkit.deadline import is_left_behind, within


def test_what_is_done_in_time_is_returned_or_raised() -> None:
    assert within(5, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0)


def test_what_is_not_done_in_time_is_left_behind() -> None:
    ended = threading.Event()
    with pytest.raises(TimeoutError, match=r"0\.05 s"):
        within(0.05, ended.wait)
    assert is_left_behind()
    ended.set()
