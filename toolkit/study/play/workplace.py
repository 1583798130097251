"""A study in progress: a folder, with one folder a run in it. One command at a time is at work on a run.

    .c2-paired-s0.lock         there as long as a command is at work on the run; others may be on other runs
    c2-paired-s0/
      specification.json       what was launched
      attempt-1.json, …        one a launch: when, where, from which checkpoint; what differs by nature
      segment-000, …           what was played, in a chain; `segment-003.damaged-1` was found broken and kept
      episodes.parquet, …      the run's rows, once all of it was played
      summary.json             what follows from the rows, and what they lack
      COMPLETE.json            written last: the SHA-256 of everything above but the attempts

Every file is written beside its place, is on the disk before it is renamed, and is never changed afterwards
but for the end of an attempt. A kill leaves no more than a file's beginning under another name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.files import file_sha256, hold, is_held, read_bytes, write_durably
from toolkit.study.play.run import ends
from toolkit.study.play.segments import BrokenSegmentError, check_segment, link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from toolkit.registers.arrow import Row
    from toolkit.training.specification import Specification

SPECIFICATION = "specification.json"
COMPLETE = "COMPLETE.json"
SUMMARY = "summary.json"


@dataclass(frozen=True)
class Launch:
    """An attempt at a run, as `launches` has it.

    Args:
        attempt: from 1.
        launched_at: ISO 8601, UTC.
        from_step: checkpoint that it started from.
        python, platform, code_version: where it ran.
        specification_sha256: what was launched.
        stack: packages that a language model is trained with, and their versions; None for another policy.
        accelerator: what it is trained on; None for a processor.
        processes: how many processes train it.
        ended_at: ISO 8601, UTC; None for an attempt that was cut off.
        wall_time_s: its duration; None likewise.
        peak_memory_mb: largest memory of its process; None likewise.
    """

    attempt: int
    launched_at: str
    from_step: int
    python: str
    platform: str
    code_version: str
    specification_sha256: str
    stack: str | None = None
    accelerator: str | None = None
    processes: int | None = None
    ended_at: str | None = None
    wall_time_s: float | None = None
    peak_memory_mb: float | None = None


@dataclass(frozen=True)
class Standing:
    """How far a run has come.

    Args:
        digests: SHA-256 of each segment's file, in order.
        checkpoint: the newest one; None where nothing was played.
    """

    digests: tuple[str, ...] = ()
    checkpoint: Row | None = None


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run.

    Args:
        folder: the folder.
        specification: what is to be run in it.
    """

    folder: Path
    specification: Specification

    @property
    def is_complete(self) -> bool:
        """Whether everything was played and what it consists of was written down."""
        return (self.folder / COMPLETE).is_file()

    @property
    def segments(self) -> tuple[Path, ...]:
        """The places of the run's segments."""
        return tuple(self.folder / segment_name(number) for number in range(len(ends(self.specification))))

    @property
    def played(self) -> int:
        """Segments that are there, unexamined."""
        return sum(path.is_file() for path in self.segments)

    def launches(self) -> list[Launch]:
        """Return the attempts, in order.

        Raises:
            DamagedError: one says something else than an attempt says.
        """
        found = []
        for path in sorted(self.folder.glob("attempt-*.json"), key=lambda path: (len(path.name), path.name)):
            try:
                found.append(Launch(**_document(path)))
            except TypeError as error:
                raise DamagedError("an attempt's file is not one", found=error, where=path) from None
        return found

    def check_launched(self) -> None:
        """Check that what lies here, if anything, was launched with this very specification.

        Raises:
            UsageError: it was launched with another one.
            DamagedError: there are segments, and nothing says of what.
        """
        path = self.folder / SPECIFICATION
        if not path.is_file():
            if self.played:
                raise DamagedError(
                    f"{self.specification.run_id} has segments and no specification",
                    where=path,
                    remedy="restore the file, or move the folder away: the run will be played again",
                )
            return
        found, wanted = _document(path), self.specification.document()
        differing = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
        if differing:
            raise UsageError(
                f"{self.specification.run_id} was launched with another specification",
                expected=", ".join(f"{name} {wanted.get(name)}" for name in differing),
                found=", ".join(f"{name} {found.get(name)}" for name in differing),
                where=path,
                remedy="give another folder (--folder), or what it was launched with",
            )

    def check_complete(self) -> Mapping[str, str]:
        """Check that a complete run consists of the files that it was complete with.

        Returns:
            File → SHA-256.

        Raises:
            IncompleteError: the run is not complete, or a file is missing.
            DamagedError: a file was changed.
        """
        if not self.is_complete:
            raise IncompleteError(
                f"{self.specification.run_id} is not complete",
                found=f"{self.played} of {len(self.segments)} segments",
                where=self.folder,
                remedy=f"play it: toolkit study run {self.specification.study}",
            )
        files = _document(self.folder / COMPLETE).get("files")
        if not isinstance(files, dict) or not files:
            raise DamagedError(
                f"{COMPLETE} names no files",
                where=self.folder / COMPLETE,
                remedy="remove it: the run goes on from its segments",
            )
        for name, digest in files.items():
            if file_sha256(self.folder / name) != digest:
                raise DamagedError(
                    f"{name} of {self.specification.run_id} is not the file that the run was complete with",
                    expected=f"SHA-256 {digest}",
                    where=self.folder / name,
                    remedy="restore the file, or move the run's folder away: it will be played again",
                )
        return files

    def resume(self, say: Callable[[str], None]) -> Standing:
        """Return how far the run has come; broken segments, and those after them, are set aside.

        Args:
            say: told what was set aside.

        Raises:
            DamagedError: a segment is another run's, or follows another one.
        """
        standing = Standing()
        for number, (path, end) in enumerate(zip(self.segments, ends(self.specification), strict=True)):
            if not path.is_file():
                self._set_aside(number + 1, "follows one that is missing", say)
                break
            raw = read_bytes(path)
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
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IncompleteError(
                "the run's folder cannot be made", found=error.strerror, where=self.folder
            ) from None
        if not (self.folder / SPECIFICATION).exists():
            write_durably(self.folder / SPECIFICATION, _text(self.specification.document()))
        before = [launch.attempt for launch in self.launches()]
        launch = replace(facts, attempt=max(before, default=0) + 1)
        self.record(launch)
        return launch

    def record(self, launch: Launch) -> None:
        """Write an attempt down."""
        write_durably(self.folder / f"attempt-{launch.attempt}.json", _text(asdict(launch)))

    def keep(self, contents: Mapping[str, bytes]) -> None:
        """Write files of the run."""
        for name, content in contents.items():
            write_durably(self.folder / name, content)

    def complete(self, names: Iterable[str]) -> None:
        """Write down, last, what the run consists of."""
        whole = [SPECIFICATION, *(path.name for path in self.segments), *names]
        files = {name: file_sha256(self.folder / name) for name in sorted(whole)}
        write_durably(self.folder / COMPLETE, _text({"run_id": self.specification.run_id, "files": files}))

    def _set_aside(self, start: int, why: str, say: Callable[[str], None]) -> None:
        """Rename the segments from one on; nothing is deleted."""
        for path in self.segments[start:]:
            if path.is_file():
                number = 1 + len(list(self.folder.glob(f"{path.name}.damaged-*")))
                kept = path.replace(path.with_name(f"{path.name}.damaged-{number}"))
                say(f"{self.specification.run_id}: {path.name} {why}; kept as {kept.name}, and played again")
                why = f"follows {self.segments[start].name}"


@dataclass(frozen=True)
class Workplace:
    """The folder of a study in progress."""

    folder: Path

    def run(self, specification: Specification) -> RunFolder:
        """Return the folder of a run."""
        return RunFolder(self.folder / specification.run_id, specification)

    def is_held(self, run_id: str) -> bool:
        """Whether a command is at work on a run at this moment."""
        return is_held(self.folder, _lock(run_id))

    @contextlib.contextmanager
    def held(self, specifications: Iterable[Specification]) -> Iterator[None]:
        """Hold runs for one command alone, and clear away what a killed one had not finished writing.

        Commands on other runs of the same folder may be at work at the same time, on other machines too where
        the file system is shared and has locks.

        Raises:
            UsageError: another command holds one of the runs.
            IncompleteError: the folder cannot be written, or not locked.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IncompleteError(
                "the study's folder cannot be made", found=error.strerror, where=self.folder
            ) from None
        with contextlib.ExitStack() as holds:
            for run_id in sorted(specification.run_id for specification in specifications):
                holds.enter_context(hold(self.folder, _lock(run_id), f"run {run_id}"))
                for left in (self.folder / run_id).glob(".*.part"):
                    left.unlink(missing_ok=True)
            yield


def _lock(run_id: str) -> str:
    return f".{run_id}.lock"


def segment_name(number: int) -> str:
    """Return the name of a segment's file."""
    return f"segment-{number:03}"


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise DamagedError(
            f"{path.name} is not JSON", found=error, where=path, remedy="restore the file, or move it away"
        ) from None
    if not isinstance(document, dict):
        raise DamagedError(f"{path.name} holds no JSON object", where=path)
    return document


def _text(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
