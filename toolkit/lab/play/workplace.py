"""A study in progress: a folder, with one folder a run in it. One command at a time is at work on a run.

.c2-paired-s0.lock         there as long as a command is at work on the run; others may be on other runs
c2-paired-s0/
specification.json       what was launched
attempt-1.json, …        one a launch: when, where, from which checkpoint; what differs by nature
segment-000, …           what was played, in a chain; `segment-003.damaged-1` was found broken and kept
episodes.parquet, …      the run's rows, once all of it was played
summary.json             what follows from the rows, and what they lack
COMPLETE.json            written last: the SHA-256 of everything above but the attempts
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Literal

import toolkit
from toolkit import errors, files
from toolkit.lab.executors import folder as folders
from toolkit.lab.play.capacity import check_capacity
from toolkit.lab.play.segments import BrokenSegmentError, check_segment, link, segment_name
from toolkit.line_ends import refuse_converted
from toolkit.registers.arrow import Row
from toolkit.specification import Specification
from toolkit.structs import Document, about, as_builtins, parse, replace

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


SPECIFICATION = "specification.json"
COMPLETE = "COMPLETE.json"
SUMMARY = "summary.json"
RESTORE = "restore the file, or move it away"


class Launch(Document, frozen=True):
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


@dataclass(frozen=True)
class PlayedRuns:
    """What came of playing runs."""

    kept: tuple[str, ...]  # runs that were complete before
    completed: tuple[str, ...]  # runs that were played to their end


@dataclass(frozen=True)
class Standing:
    """How far a run has come."""

    digests: tuple[str, ...] = ()  # SHA-256 of each segment's file, in order
    checkpoint: Row | None = None  # the newest one; None where nothing was played


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    folder: Path  # the folder
    specification: Specification  # what is to be run in it

    @property
    def is_complete(self) -> bool:
        """Whether everything was played and what it consists of was written down."""
        return (self.folder / COMPLETE).is_file()

    @property
    def segments(self) -> tuple[Path, ...]:
        """The places of the run's segments."""
        return tuple(self.folder / segment_name(number) for number in range(len(self.specification.ends)))

    @property
    def played(self) -> int:
        """Segments that are there, unexamined."""
        return sum(path.is_file() for path in self.segments)

    def launches(self) -> list[Launch]:
        """Return the attempts, in order."""
        launches = []
        for path in sorted(self.folder.glob("attempt-*.json"), key=lambda path: (len(path.name), path.name)):
            document = folders.read_document(path, RESTORE)
            launches.append(parse(Launch, document, "an attempt's file is invalid", path))
        return launches

    def check_launched(self) -> None:
        """Check that what lies here, if anything, was launched with this very specification."""
        path = self.folder / SPECIFICATION
        if not path.is_file():
            if self.played:
                problem = f"{self.specification.run_id} has segments and no specification"
                remedy = "restore the file, or move the folder away: the run will be played again"
                raise errors.DamagedError(problem, where=path, remedy=remedy)
            return
        launched, wanted = folders.read_document(path, RESTORE), self.specification.document()
        differing = sorted(name for name in {*launched, *wanted} if launched.get(name) != wanted.get(name))
        if differing:
            raise errors.UsageError(
                f"{self.specification.run_id} was launched with another specification",
                expected=", ".join(f"{name} {wanted.get(name)}" for name in differing),
                found=", ".join(f"{name} {launched.get(name)}" for name in differing),
                where=path,
                remedy="give another folder (--folder), or what it was launched with",
            )

    def check_resumable(self) -> None:
        """Check that what lies here can be gone on with, before anything is played."""
        self.check_launched()
        check_capacity(self.specification)
        versions = {launch.code_version for launch in self.launches()} - {toolkit.__version__}
        if self.is_complete:
            self.check_complete()
        elif versions:
            raise errors.UsageError(
                f"{self.specification.run_id} was begun by another version of this package",
                expected=", ".join(sorted(versions)),
                found=toolkit.__version__,
                where=self.folder,
                remedy="go on with that version, or move the run's folder away: a run has one version "
                "throughout",
            )

    def check_complete(self) -> Mapping[str, str]:
        """Check that a complete run consists of the files that it was complete with."""
        if not self.is_complete:
            problem = f"{self.specification.run_id} is not complete"
            found = f"{self.played} of {len(self.segments)} segments"
            remedy = f"play it: toolkit study run {self.specification.study}"
            raise errors.IncompleteError(problem, found=found, where=self.folder, remedy=remedy)
        digests = folders.read_document(self.folder / COMPLETE, RESTORE).get("files")
        if not isinstance(digests, dict) or not digests:
            problem = f"{COMPLETE} names no files"
            remedy = "remove it: the run goes on from its segments"
            raise errors.DamagedError(problem, where=self.folder / COMPLETE, remedy=remedy)
        for name, digest in digests.items():
            if files.file_sha256(self.folder / name) != digest:
                refuse_converted(name, self.folder / name, digest, errors.DamagedError, self.folder / name)
                raise errors.DamagedError(
                    f"{name} of {self.specification.run_id} is not the file that the run was complete with",
                    expected=f"SHA-256 {digest}",
                    where=self.folder / name,
                    remedy="restore the file, or move the run's folder away: it will be played again",
                )
        return digests

    def shortcomings(self) -> tuple[str, ...]:
        """Return what a complete run's evidence lacks."""
        path = self.folder / SUMMARY
        try:
            return tuple(map(str, json.loads(files.read_bytes(path))["shortcomings"]))
        except (ValueError, KeyError, TypeError) as error:
            raise errors.DamagedError("a run's summary is not one", found=error, where=path) from None

    def resume(self, say: Callable[[str], None]) -> Standing:
        """Return how far the run has come; broken segments, and those after them, are set aside."""
        standing = Standing()
        for number, (path, end) in enumerate(zip(self.segments, self.specification.ends, strict=True)):
            if not path.is_file():
                self._set_aside(number + 1, "follows one that is missing", say)
                break
            raw = files.read_bytes(path, files.LARGEST_ROWS)
            before = standing.digests[-1] if standing.digests else ""
            try:
                checkpoint = check_segment(raw, link(self.specification, number, end, before), path)
            except BrokenSegmentError:
                self._set_aside(number, "was cut short or changed", say)
                break
            standing = Standing((*standing.digests, hashlib.sha256(raw).hexdigest()), checkpoint)
        return standing

    def launch(self, facts: Launch) -> Launch:
        """Record an attempt, and what is launched where it is the first; return it with its number."""
        files.make_folder(self.folder)
        if not (self.folder / SPECIFICATION).exists():
            folders.write_document(self.folder / SPECIFICATION, self.specification.document())
        before = [launch.attempt for launch in self.launches()]
        launch = replace(facts, attempt=max(before, default=0) + 1)
        self.record(launch)
        return launch

    def record(self, launch: Launch) -> None:
        """Write an attempt down."""
        folders.write_document(self.folder / f"attempt-{launch.attempt}.json", as_builtins(launch))

    def keep(self, contents: Mapping[str, bytes]) -> None:
        """Write files of the run."""
        for name, content in contents.items():
            files.write_durably(self.folder / name, content)

    def complete(self, names: Iterable[str]) -> None:
        """Write down, last, what the run consists of."""
        whole = [SPECIFICATION, *(path.name for path in self.segments), *names]
        digests = {name: files.file_sha256(self.folder / name) for name in sorted(whole)}
        document = {"run_id": self.specification.run_id, "files": digests}
        folders.write_document(self.folder / COMPLETE, document)

    def _set_aside(self, start: int, why: str, say: Callable[[str], None]) -> None:
        for path in self.segments[start:]:
            if path.is_file():
                kept = folders.set_aside(path)
                say(f"{self.specification.run_id}: {path.name} {why}; kept as {kept.name}, and played again")
                why = f"follows {self.segments[start].name}"


RunState = Literal["complete", "incomplete", "begun", "not begun"]


class RunStatus(Document, frozen=True):
    """How far a run has come."""

    run_id: Annotated[str, about("Name of the run.")]
    tier: Annotated[int, about("Tier of the registered matrix.")]
    state: Annotated[
        RunState, about("`incomplete`: all was played, and the evidence is not what is registered.")
    ]
    segments: Annotated[int, about("That are there.")]
    of: Annotated[int, about("Segments that the run has.")]
    attempts: Annotated[int, about("Launches so far.")]
    shortcomings: Annotated[tuple[str, ...], about("What its evidence lacks.")]
    at_work: Annotated[bool, about("Whether a command is at work on it.")]


class HeldRuns(Document, frozen=True):
    """The runs that a study's registers have."""

    folder: Annotated[str, about("Where they lie.")]
    runs: Annotated[int, about("How many runs.")]
    complete: Annotated[int, about("Those of them that are complete.")]


class StudyStatus(Document, frozen=True):
    """How far the runs of a study have come."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where the runs are kept.")]
    at_work: Annotated[bool, about("Whether a command is at work on any run.")]
    complete: Annotated[int, about("Runs.")]
    runs: list[RunStatus]
    registers: Annotated[HeldRuns | None, about("Null where the study's registers are not here.")]


@dataclass(frozen=True)
class Workplace:
    """The folder of a study in progress."""

    folder: Path

    def run(self, specification: Specification) -> RunFolder:
        """Return the folder of a run."""
        return RunFolder(self.folder / specification.run_id, specification)

    def is_held(self, run_id: str) -> bool:
        """Whether a command is at work on a run at this moment."""
        return files.is_held(self.folder, _lock(run_id))

    def held(self, specifications: Iterable[Specification]) -> AbstractContextManager[None]:
        """Hold runs for one command alone; others may be at work on other runs, on other machines too."""
        names = sorted(specification.run_id for specification in specifications)
        locks = {_lock(name): f"run {name}" for name in names}
        return folders.held(self.folder, locks, [self.folder / name for name in names])

    def statuses(self, specifications: Iterable[Specification]) -> list[RunStatus]:
        """Return the state of each run, by the names of its files: `run` examines them."""
        statuses = []
        for run in map(self.run, specifications):
            attempts = len(run.launches())
            lacking = run.shortcomings() if run.is_complete else ()
            state: RunState = "begun" if attempts else "not begun"
            if run.is_complete:
                state = "incomplete" if lacking else "complete"
            name, tier, of = run.specification.run_id, run.specification.tier, len(run.segments)
            statuses.append(
                RunStatus(name, tier, state, run.played, of, attempts, lacking, self.is_held(name))
            )
        return statuses

    def check_unplayed(self, specifications: Iterable[Specification]) -> None:
        """Refuse to launch complete runs again."""
        for specification in specifications:
            run = self.run(specification)
            if run.is_complete:
                raise errors.UsageError(
                    f"{specification.run_id} is complete, and a complete run is not launched again",
                    where=run.folder,
                    remedy="give another --folder to play it there, --check to compare it with the "
                    "registers, or --keep-complete",
                )

    def lacking(
        self, specifications: Iterable[Specification], *, with_incomplete: bool
    ) -> dict[str, list[str]]:
        """Return what the evidence of complete runs lacks, where it lacks anything."""
        shortcomings = {each.run_id: list(self.run(each).shortcomings()) for each in specifications}
        lacking = {run: reasons for run, reasons in shortcomings.items() if reasons}
        if lacking and not with_incomplete:
            problem = "the evidence of a run is not what is registered, and it does not count"
            found = "; ".join(f"{run}: {reasons[0]}" for run, reasons in lacking.items())
            remedy = "`toolkit study status` says everything; --with-incomplete writes registers anyway"
            raise errors.IncompleteError(problem, found=found, where=self.folder, remedy=remedy)
        return lacking


def _lock(run_id: str) -> str:
    return f".{run_id}.lock"
