"""Playing runs: those of a matrix side by side, the segments of a run one after the other."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from toolkit.files import LARGEST_ROWS, read_bytes
from toolkit.lab.executors.executor import HERE, Executor
from toolkit.lab.play import conclusion, segments
from toolkit.lab.play.rows import Given
from toolkit.lab.play.workplace import Launch, PlayedRuns, RunFolder, Workplace, peak_memory_mb
from toolkit.registers.arrow import Row
from toolkit.specification import Specification

Play: TypeAlias = "Callable[[Specification, int, Row | None], segments.Segment]"
"""Plays a segment: the run, the step at which it ends, the checkpoint before it."""


@dataclass(frozen=True)
class _OfRun:
    specification: Specification  # the run

    @property
    def subject(self) -> str:
        """What the job is about."""
        return self.specification.run_id


@dataclass(frozen=True)
class PlayJob(_OfRun):
    """Play a segment."""

    number: int  # position of the segment
    end: int  # step at which it ends
    before: str  # SHA-256 of the file of the segment before; empty for the first
    # Row of `checkpoints` that the segment before ended with; where nothing is trained, the one that is
    # evaluated
    checkpoint: Row | None

    def __str__(self) -> str:
        return f"{self.subject}, segment to step {self.end}"


@dataclass(frozen=True)
class ConcludeJob(_OfRun):
    """Turn a run that was played into registers."""

    segments: tuple[bytes, ...] = field(repr=False)  # the bytes of its segments' files, in order

    def __str__(self) -> str:
        return f"{self.subject}, its rows"


Job: TypeAlias = PlayJob | ConcludeJob


@dataclass(frozen=True)
class Answer:
    """What came of a job."""

    contents: Mapping[str, bytes]  # files for the run's folder, by name
    peak_memory_mb: float  # largest memory of the process so far, in MB


def perform(job: Job, play: Play) -> Answer:
    """Do a job. It reads and writes no file: it may be done on another machine."""
    if isinstance(job, ConcludeJob):
        return Answer(conclusion.conclude(job.specification, job.segments), peak_memory_mb())
    rows = play(job.specification, job.end, job.checkpoint)
    raw = segments.encode(segments.link(job.specification, job.number, job.end, job.before), rows)
    return Answer({segments.segment_name(job.number): raw}, peak_memory_mb())


@dataclass
class _Course:
    """A run on its way: what was played of it, and what is to be done next."""

    folder: RunFolder
    digests: list[str]
    checkpoint: Row | None
    given: Given | None = None
    launch: Launch | None = None
    begun: float = 0.0

    @property
    def left(self) -> int:
        return len(self.folder.segments) - len(self.digests)

    def next_job(self) -> Job:
        """Return what is to be done next; an attempt is recorded with the first."""
        run, number = self.folder.specification, len(self.digests)
        if self.launch is None:
            self.begun = time.monotonic()
            step = 0 if self.checkpoint is None else int(self.checkpoint["step"])
            self.launch = self.folder.launch(Launch.now(run, step))
        if not self.left:
            return ConcludeJob(run, tuple(read_bytes(path, LARGEST_ROWS) for path in self.folder.segments))
        before = self.digests[-1] if self.digests else ""
        end = run.ends[number]
        checkpoint = self.checkpoint if run.trains or self.given is None else self.given(run, end)
        return PlayJob(run, number, end, before, checkpoint)

    def take(self, answer: Answer) -> bool:
        """Write down what was done; return whether the run is complete."""
        self.folder.keep(answer.contents)
        if not self.left:
            self.folder.complete(conclusion.files_of(self.folder.specification))
            assert self.launch is not None  # noqa: S101 - recorded with the first job
            self.folder.record(self.launch.ended(self.begun, answer.peak_memory_mb))
            return True
        raw = answer.contents[segments.segment_name(len(self.digests))]
        self.digests.append(hashlib.sha256(raw).hexdigest())
        # Read back rather than kept: a run goes on from the same bytes whether or not it was cut off.
        self.checkpoint = segments.checkpoint_of(raw)
        return False


def play_runs(
    workplace: Workplace,
    specifications: Sequence[Specification],
    executor: Executor = HERE,
    *,
    play: Play | None = None,
    given: Given | None = None,
) -> PlayedRuns:
    """Play runs to their end, from wherever they were left."""
    folders = [workplace.run(specification) for specification in specifications]
    for folder in folders:
        folder.check_resumable()
    kept = tuple(folder.specification.run_id for folder in folders if folder.is_complete)
    begun = [(folder, folder.resume(executor.say)) for folder in folders if not folder.is_complete]
    courses = [
        _Course(folder, list(standing.digests), standing.checkpoint, given) for folder, standing in begun
    ]
    total = sum(len(folder.segments) for folder in folders)

    def tell(doing: str) -> None:
        executor.watch(total - sum(course.left for course in courses), total, doing)

    tell("what is there was checked")
    work = deque(sorted(courses, key=lambda course: -course.left))
    performed = partial(perform, play=play or segments.play_segment)
    for course, answer in executor.each_step(work, _Course.next_job, performed):
        if not course.take(answer):
            work.appendleft(course)
        tell(course.folder.specification.run_id)
    return PlayedRuns(kept, tuple(course.folder.specification.run_id for course in courses))
