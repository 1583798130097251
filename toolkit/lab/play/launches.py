"""Attempts at a run: when, where, from which checkpoint; what differs from one to the next by nature."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic

import toolkit
from toolkit.specification import Specification


@dataclass(frozen=True)
class Launch:
    """An attempt at a run, as `launches` has it."""

    attempt: int  # from 1
    launched_at: str  # ISO 8601, UTC
    from_step: int  # checkpoint that it started from
    python: str  # python, platform, code_version: where it ran
    platform: str
    code_version: str
    specification_sha256: str  # what was launched
    # Packages that a language model is trained with, and their versions; None for another policy
    stack: str | None = None
    accelerator: str | None = None  # what it is trained on; None for a processor
    processes: int | None = None  # how many processes train it
    # What computes its linear attention; None where it has none, or an earlier version trained it
    kernels: str | None = None
    step_seconds: tuple[float, ...] = ()  # duration of each step up to the attempt's last checkpoint
    generation_seconds: tuple[float, ...] = ()  # how much of it went to playing rollouts
    ended_at: str | None = None  # ISO 8601, UTC; None for an attempt that was cut off
    wall_time_s: float | None = None  # its duration; None likewise
    peak_memory_mb: float | None = None  # largest memory of its process; None likewise

    @staticmethod
    def now(specification: Specification, from_step: int, **stack: str | int | None) -> Launch:
        """Return an attempt that begins now, on this machine; its number is given when it is kept."""
        return Launch(
            attempt=0,
            launched_at=_now(),
            from_step=from_step,
            python=platform.python_version(),
            platform=f"{platform.system()} {platform.machine()}",
            code_version=toolkit.__version__,
            specification_sha256=specification.sha256(),
            **stack,  # type: ignore[arg-type]
        )

    def ended(self, begun: float, peak_memory_mb: float) -> Launch:
        """Return the attempt as it ends at this moment."""
        seconds = round(monotonic() - begun, 3)
        return replace(self, ended_at=_now(), wall_time_s=seconds, peak_memory_mb=peak_memory_mb)


def peak_memory_mb() -> float:
    """Return the largest memory that this process has had, in MB."""
    import resource  # POSIX only, like the lock

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Bytes on macOS, kilobytes elsewhere.
    return round(peak / (1e6 if sys.platform == "darwin" else 1e3), 1)


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
