"""What a process is asked to do: play a segment of a run, conclude it, or probe a trajectory.

A job carries all that it needs, and who does it reads and writes no file: it may be on another machine.

Whoever holds the study's folder writes the answers: a process that outlives its parent leaves no trace.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from toolkit.study.play.segments import encode, link
from toolkit.study.play.workplace import segment_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolkit.probe.design import Design
    from toolkit.registers.arrow import Row
    from toolkit.study.play.run import Segment
    from toolkit.training.specification import LanguageModelSpecification, Specification

Play: TypeAlias = "Callable[[Specification, int, Row | None], Segment]"
"""Plays a segment: the run, the step at which it ends, the checkpoint before it."""


@dataclass(frozen=True)
class PlayJob:
    """Play a segment.

    Args:
        specification: the run.
        number: position of the segment.
        end: step at which it ends.
        before: SHA-256 of the file of the segment before; empty for the first.
        checkpoint: row of `checkpoints` that the segment before ended with.
    """

    specification: Specification
    number: int
    end: int
    before: str
    checkpoint: Row | None

    @property
    def subject(self) -> str:
        """What the job is about."""
        return self.specification.run_id

    def __str__(self) -> str:
        return f"{self.subject}, segment to step {self.end}"


@dataclass(frozen=True)
class ConcludeJob:
    """Turn a run that was played into registers.

    Args:
        specification: the run.
        segments: the bytes of its segments' files, in order.
    """

    specification: Specification
    segments: tuple[bytes, ...] = field(repr=False)

    @property
    def subject(self) -> str:
        """What the job is about."""
        return self.specification.run_id

    def __str__(self) -> str:
        return f"{self.subject}, its rows"


@dataclass(frozen=True)
class ProbeJob:
    """Probe the checkpoints of a trajectory.

    Args:
        design: the probe.
        trajectory: the run, or `base`.
        surface_tokens: V of its policy.
        checkpoints: their rows of `checkpoints`, by step.
        pools: pool → SHA-256 of the tasks that are played.
    """

    design: Design
    trajectory: str
    surface_tokens: int
    checkpoints: tuple[Row, ...]
    pools: tuple[tuple[str, str], ...]

    @property
    def subject(self) -> str:
        """What the job is about."""
        return self.trajectory

    def __str__(self) -> str:
        return f"{self.subject}, its probe"


@dataclass(frozen=True)
class ModelProbeJob:
    """Probe the checkpoints of a language model's trajectory; its base model is found where this is done.

    Args:
        design: the probe.
        trajectory: the run, or `base`.
        run: the run whose checkpoints they are.
        checkpoints: their rows of `adapters`, by step.
        pools: pool → SHA-256 of the tasks that are played.
    """

    design: Design
    trajectory: str
    run: LanguageModelSpecification
    checkpoints: tuple[Row, ...] = field(repr=False)
    pools: tuple[tuple[str, str], ...]

    @property
    def subject(self) -> str:
        """What the job is about."""
        return self.trajectory

    def __str__(self) -> str:
        return f"{self.subject}, its probe"


AnyProbeJob: TypeAlias = ProbeJob | ModelProbeJob
Job: TypeAlias = PlayJob | ConcludeJob | AnyProbeJob


@dataclass(frozen=True)
class Answer:
    """What came of a job.

    Args:
        contents: files for the run's folder, by name.
        peak_memory_mb: largest memory of the process so far, in MB.
    """

    contents: Mapping[str, bytes]
    peak_memory_mb: float


def perform(job: Job, play: Play) -> Answer:
    """Do a job.

    Raises:
        ToolkitError: it failed.
    """
    return Answer(_contents(job, play), peak_memory_mb())


def peak_memory_mb() -> float:
    """Return the largest memory that this process has had, in MB."""
    import resource  # POSIX only, like the lock

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Bytes on macOS, kilobytes elsewhere.
    return round(peak / (1e6 if sys.platform == "darwin" else 1e3), 1)


def _contents(job: Job, play: Play) -> Mapping[str, bytes]:
    if isinstance(job, ConcludeJob):
        from toolkit.study.play.conclusion import conclude

        return conclude(job.specification, job.segments)
    if isinstance(job, ProbeJob):
        from toolkit.study.probing.probed import probe_trajectory

        return probe_trajectory(job)
    if isinstance(job, ModelProbeJob):
        from toolkit.study.probing.probed_model import probe_model_trajectory

        return probe_model_trajectory(job)
    segment = play(job.specification, job.end, job.checkpoint)
    return {
        segment_name(job.number): encode(link(job.specification, job.number, job.end, job.before), segment)
    }
