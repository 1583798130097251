"""Playing runs: those of a matrix side by side, the segments of a run one after the other.

1. What lies there already is checked: complete runs are kept, others go on from their newest checkpoint.
2. The runs with most left to play are begun first, one a place; a place stays with its run to its end.
3. Every segment is written down as soon as it was played; then the run's rows, and last that it is complete.

What a run leaves depends on its specification alone: not on the places, nor on where it was cut off.
"""

from __future__ import annotations

import hashlib
import platform
import time
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import toolkit
from toolkit.errors import UsageError
from toolkit.files import read_bytes
from toolkit.study.executors.where import HERE, executor
from toolkit.study.play import run as runs
from toolkit.study.play.conclusion import files_of
from toolkit.study.play.jobs import ConcludeJob, PlayJob, perform
from toolkit.study.play.segments import checkpoint_of
from toolkit.study.play.workplace import Launch, segment_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.registers.arrow import Row
    from toolkit.study.executors.executor import Executor
    from toolkit.study.executors.where import Where
    from toolkit.study.play.jobs import Answer, Job, Play
    from toolkit.study.play.workplace import RunFolder, Standing, Workplace
    from toolkit.training.specification import Specification

    Say = Callable[[str], None]


@dataclass(frozen=True)
class Tick:
    """How far the playing has come.

    Args:
        done: segments that are there.
        total: segments of all runs that were asked for.
        doing: what has just been finished, in words.
    """

    done: int
    total: int
    doing: str


@dataclass(frozen=True)
class Played:
    """What came of playing.

    Args:
        kept: runs that were complete before, untouched.
        completed: runs that were completed now.
    """

    kept: tuple[str, ...]
    completed: tuple[str, ...]


@dataclass
class _Course:
    """A run on its way: what is known of it, and what is to be done next."""

    folder: RunFolder
    digests: list[str]
    checkpoint: Row | None
    launch: Launch | None = None
    begun: float = 0.0
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = len(self.folder.segments) - len(self.digests)

    def begin(self) -> Job:
        """Record an attempt; return the first job."""
        self.begun = time.monotonic()
        self.launch = self.folder.launch(_facts(self.folder.specification, self.checkpoint))
        return self.next()

    def next(self) -> Job:
        """Return what is to be done next."""
        run, number = self.folder.specification, len(self.digests)
        if not self.left:
            return ConcludeJob(run, tuple(map(read_bytes, self.folder.segments)))
        end = runs.ends(run)[number]
        return PlayJob(run, number, end, self.digests[-1] if self.digests else "", self.checkpoint)

    def take(self, answer: Answer) -> bool:
        """Write down what was done; return whether the run is complete."""
        self.folder.keep(answer.contents)
        if not self.left:
            self.folder.complete(files_of(self.folder.specification))
            self._end(answer.peak_memory_mb)
            return True
        raw = answer.contents[segment_name(len(self.digests))]
        self.digests.append(hashlib.sha256(raw).hexdigest())
        # Read back rather than kept: a run goes on from the same bytes whether or not it was cut off.
        self.checkpoint = checkpoint_of(raw)
        self.left -= 1
        return False

    def _end(self, peak_memory_mb: float) -> None:
        assert self.launch is not None  # noqa: S101 - a course is begun before it is taken anywhere
        self.folder.record(
            replace(
                self.launch,
                ended_at=now(),
                wall_time_s=round(time.monotonic() - self.begun, 3),
                peak_memory_mb=peak_memory_mb,
            )
        )


def play_runs(
    workplace: Workplace,
    specifications: Sequence[Specification],
    *,
    where: Where = HERE,
    play: Play | None = None,
    watch: Callable[[Tick], None] = lambda _: None,
    say: Say = lambda _: None,
) -> Played:
    """Play runs to their end, from wherever they were left.

    Args:
        workplace: the folder, held by the caller.
        specifications: the runs.
        where: where to play; one place plays in this process.
        play: plays a segment; a function that a new process can import. Normally `play_segment`.
        watch: told whenever a segment is there, or a run complete.
        say: told what was kept aside, or lost, and played again.

    Raises:
        UsageError: a run was launched with another specification, or by another version.
        IncompleteError: the disk is full, or a process ended; the same call goes on from there.
        DamagedError: what lies there is not what it has to be, or a segment is not rows of a run.
    """
    folders = [workplace.run(specification) for specification in specifications]
    for folder in folders:  # 1
        check_begun(folder)
    kept = tuple(folder.specification.run_id for folder in folders if folder.is_complete)
    courses = [_course(folder, folder.resume(say)) for folder in folders if not folder.is_complete]
    tally = _Tally(sum(len(folder.segments) for folder in folders), courses, watch)
    tally.tell("what is there was checked")
    if courses:
        performed = partial(perform, play=play or runs.play_segment)
        with executor(where, performed, most=len(courses), say=say) as places:
            _drive(places, courses, tally)
    return Played(kept, tuple(course.folder.specification.run_id for course in courses))


@dataclass
class _Tally:
    """What is told of the playing."""

    total: int
    courses: Sequence[_Course]
    watch: Callable[[Tick], None]

    def tell(self, doing: str) -> None:
        """Tell how far the playing has come."""
        self.watch(Tick(self.total - sum(course.left for course in self.courses), self.total, doing))


def _drive(places: Executor[Job, Answer], courses: Sequence[_Course], tally: _Tally) -> None:
    """Take courses to their ends, as many at once as there are places."""
    waiting = deque(sorted(courses, key=lambda course: -course.left))  # 2
    busy: dict[int, _Course] = {}
    free = list(range(places.places))
    while waiting or busy:
        while free and waiting:
            place = free.pop(0)
            busy[place] = waiting.popleft()
            places.start(place, busy[place].begin())
        for place, answer in places.wait():
            course = busy[place]
            if course.take(answer):  # 3
                del busy[place]
                free.append(place)
            else:
                places.start(place, course.next())
            tally.tell(course.folder.specification.run_id)


def check_begun(folder: RunFolder) -> None:
    """Check that what is in a run's folder can be gone on with, before anything is played."""
    folder.check_launched()
    versions = {launch.code_version for launch in folder.launches()} - {toolkit.__version__}
    if folder.is_complete:
        folder.check_complete()
    elif versions:
        raise UsageError(
            f"{folder.specification.run_id} was begun by another version of this package",
            expected=", ".join(sorted(versions)),
            found=toolkit.__version__,
            where=folder.folder,
            remedy="go on with that version, or move the run's folder away: a run has one version throughout",
        )


def _course(folder: RunFolder, standing: Standing) -> _Course:
    return _Course(folder, list(standing.digests), standing.checkpoint)


def _facts(specification: Specification, checkpoint: Row | None) -> Launch:
    return Launch(
        attempt=0,
        launched_at=now(),
        from_step=0 if checkpoint is None else int(checkpoint["step"]),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        code_version=toolkit.__version__,
        specification_sha256=specification.sha256(),
    )


def now() -> str:
    """Return the time, as launches say it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
