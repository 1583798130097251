"""Waiting for a freeze to be over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.conftest import CHECKOUT
from toolkit.prereg.registration import load_registration
from toolkit.prereg.settling import seconds_to_settle


@pytest.mark.parametrize(("age", "left"), [(0.5, 9.5), (9, 1.0), (10, 0.0), (3600, 0.0), (-60, 0.0)])
def test_a_launch_waits_until_the_freeze_is_over_by_every_clock(age: float, left: float) -> None:
    registration = load_registration(CHECKOUT / "prereg" / "embedded")
    last = max(authority.recorded_time for authority in registration.record.authorities)
    assert seconds_to_settle(registration, last + timedelta(seconds=age)) == left
