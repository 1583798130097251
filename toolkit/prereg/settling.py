"""How soon after a freeze a run may be launched."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.prereg.registration import Registration

SETTLED = timedelta(seconds=10)
"""Longer than the accuracy that time-stamping authorities state: within it, a launch counts as early."""


def seconds_to_settle(registration: Registration, now: datetime) -> float:
    """Return how long a launch has to wait until the freeze is over by every authority's clock.

    Zero also where the record lies in the future: whose clock is wrong, waiting does not show.
    """
    last = max(authority.recorded_time for authority in registration.record.authorities)
    left = (last + SETTLED - now).total_seconds()
    return left if 0 < left <= SETTLED.total_seconds() else 0.0
