"""An evaluation in progress: a folder with one file a block. One command at a time writes in it.

    evaluation.json     of which policy, by which code: written first
    blocks/…            what was played
    registers/          the study, once all of it was played

A block's file:

    SHA-256 of everything below, in hexadecimal
    JSON: the SHA-256 of the evaluation's identity, and the block's name
    JSON: its rows

Every file is written beside its place and renamed, and is never changed afterwards.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import toolkit
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.files import hold, read_bytes, sealed, unsealed, write_durably
from toolkit.registers.schema import SCHEMA_VERSION
from toolkit.study.evaluating.jobs import jobs, perform_here
from toolkit.tasks.task import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from toolkit.policies.language_model.opening import Opening
    from toolkit.registers.arrow import Row
    from toolkit.study.evaluating.jobs import Asked, BlockJob

    Perform = Callable[[Sequence[BlockJob]], Iterable[tuple[BlockJob, list[Row]]]]
    Watch = Callable[[int, int, str], None]

IDENTITY = "evaluation.json"
BLOCKS = "blocks"
LOCK = ".lock"
REGISTERS = "registers"
SHOWN = 5
OF_CODE = ("toolkit", "schema", "pools")


@dataclass(frozen=True)
class Played:
    """What came of playing.

    Args:
        rows: table → its rows.
        kept: blocks that had been played before.
        played: blocks that were played now.
    """

    rows: dict[str, list[Row]]
    kept: int
    played: int


def identity(policy: dict[str, Any], asked: Asked, pools: dict[str, str]) -> dict[str, Any]:
    """Return what all blocks of a folder have in common.

    Args:
        policy: what decides an engine's turns, as `identify` returns it.
        asked: what is to be played; which sets, and how much of them, does not enter.
        pools: pool → SHA-256 of its tasks.
    """
    return {
        **policy,
        "seed": asked.seed,
        "pools": pools,
        "toolkit": toolkit.__version__,
        "schema": SCHEMA_VERSION,
    }


@dataclass(frozen=True)
class EvaluationFolder:
    """The folder of an evaluation.

    Args:
        folder: the folder.
        identity: what all its blocks have in common.
    """

    folder: Path
    identity: dict[str, Any]

    @property
    def registers(self) -> Path:
        """Where its study is."""
        return self.folder / REGISTERS

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder for one command alone, once it is clear that it is this evaluation's.

        Raises:
            UsageError: another command holds it, or it is another evaluation's.
            IncompleteError: it cannot be written, or holds something else.
            DamagedError: what says whose it is cannot be read.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IncompleteError(
                "the evaluation's folder cannot be made", found=error.strerror, where=self.folder
            ) from None
        with hold(self.folder, LOCK, "evaluation's folder"):
            self._check_identity()
            (self.folder / BLOCKS).mkdir(exist_ok=True)
            for left in (self.folder / BLOCKS).glob(".*.part"):
                left.unlink(missing_ok=True)
            yield

    def play(
        self,
        opening: Opening,
        asked: Asked,
        *,
        perform: Perform = perform_here,
        watch: Watch = lambda *_: None,
        say: Callable[[str], None] = lambda _: None,
    ) -> Played:
        """Play what is not there yet, and return the rows of all that was asked for.

        Args:
            opening: the engine.
            asked: what is to be played.
            perform: does jobs, in whatever order and place, and yields each with its rows.
            watch: told how many episodes are done, of how many, and which block was the last.
            say: told what was set aside and is played again.

        Raises:
            ToolkitError: a job failed; every block before it is kept.
            DamagedError: a block is another evaluation's.
        """
        listed = jobs(opening, asked)
        found = {job.name: rows for job in listed if (rows := self._kept(job, say)) is not None}
        left = [job for job in listed if job.name not in found]
        total = sum(job.episodes for job in listed)
        done = total - sum(job.episodes for job in left)
        watch(done, total, "what is there was checked")
        kept = len(found)
        for job, rows in perform(left):
            write_durably(self._place(job), self._encoded(job, rows))
            found[job.name] = rows
            done += job.episodes
            watch(done, total, str(job))
        tables: dict[str, list[Row]] = {}
        for job in listed:
            tables.setdefault(job.table, []).extend(found[job.name])
        return Played(tables, kept, len(left))

    def _check_identity(self) -> None:
        path = self.folder / IDENTITY
        if not path.is_file():
            there = sorted(part.name for part in self.folder.iterdir() if not part.name.startswith("."))
            if there:
                raise IncompleteError(
                    "the folder holds something, and nothing says of which evaluation",
                    expected=f"{IDENTITY}, or nothing",
                    found=", ".join(there[:SHOWN]),
                    where=self.folder,
                    remedy="restore the file, or give another folder (--out)",
                )
            write_durably(path, (json.dumps(self.identity, indent=2, ensure_ascii=False) + "\n").encode())
            return
        found = _document(path)
        differing = [n for n in sorted({*found, *self.identity}) if found.get(n) != self.identity.get(n)]
        if not differing:
            return
        of_code = set(differing) <= set(OF_CODE)
        raise UsageError(
            "the folder holds an evaluation by another version of this package"
            if of_code
            else "the folder holds an evaluation of another policy",
            expected=_said(found, differing),
            found=_said(self.identity, differing),
            where=path,
            remedy="go on with that version, or give another folder (--out): two versions are not mixed"
            if of_code
            else "give another folder (--out), or what this one was begun with",
        )

    def _place(self, job: BlockJob) -> Path:
        return self.folder / BLOCKS / job.name

    def _header(self, job: BlockJob) -> dict[str, str]:
        return {
            "evaluation": hashlib.sha256(canonical(self.identity).encode()).hexdigest(),
            "block": job.name,
        }

    def _encoded(self, job: BlockJob, rows: list[Row]) -> bytes:
        payload = f"{canonical(self._header(job))}\n{canonical(rows)}\n".encode()
        return sealed(payload)

    def _kept(self, job: BlockJob, say: Callable[[str], None]) -> list[Row] | None:
        """Return a block's rows; None where it was not played, or its file is no longer whole."""
        path = self._place(job)
        if not path.is_file():
            return None
        payload = unsealed(read_bytes(path))
        if payload is None:
            number = 1 + len(list(path.parent.glob(f"{path.name}.damaged-*")))
            kept = path.replace(path.with_name(f"{path.name}.damaged-{number}"))
            say(f"{job.name} was cut short or changed; kept as {kept.name}, and played again")
            return None
        header, rows = (json.loads(part) for part in payload.splitlines())
        if header != self._header(job):
            raise DamagedError(
                "a block belongs to another evaluation, or to another place in this one",
                expected=canonical(self._header(job)),
                found=canonical(header),
                where=path,
                remedy="put back the file that belongs here, or move this one away: it will be played again",
            )
        listed: list[Row] = rows
        return listed


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise DamagedError(
            f"{path.name} is not JSON", found=error, where=path, remedy="restore it, or give another --out"
        ) from None
    if not isinstance(document, dict):
        raise DamagedError(f"{path.name} holds no JSON object", where=path)
    return document


def _said(document: dict[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name} {json.dumps(document.get(name), ensure_ascii=False)}" for name in names)
