"""Getting a document timestamped by several authorities: all tokens verify, or nothing counts.

What was obtained waits in a hidden folder of the registration until all of it is there. A command that failed
goes on where it stopped, and a registration is never half frozen.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from toolkit.errors import IncompleteError, UsageError
from toolkit.files import write_bytes
from toolkit.prereg.authority import Reply, obtain
from toolkit.prereg.evidence import Judged, Subject, judge, places
from toolkit.prereg.record import EVIDENCE
from toolkit.prereg.token.pem import write_certificates
from toolkit.prereg.token.verdict import VERIFIED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from toolkit.prereg.demonstration import DemonstrationAuthority
    from toolkit.prereg.token.verdict import TokenVerdict
    from toolkit.prereg.trust import Trusted

PENDING = ".pending"
LOCK = ".lock"
DOCUMENT = "document"


class Source(Protocol):
    """Somebody who can timestamp."""

    @property
    def trusted(self) -> Trusted:
        """Who that is."""

    @property
    def certificates(self) -> tuple[bytes, ...]:
        """Certificates to be archived beside the token, DER."""

    def obtain(
        self, digest: bytes, verify: Callable[[Reply], TokenVerdict], say: Callable[[str], None]
    ) -> Reply:
        """Return a reply that verifies.

        Raises:
            IncompleteError: there is none to be had.
        """


@dataclass(frozen=True)
class Online:
    """An authority that answers over HTTP.

    Args:
        trusted: who it is.
        certificates: certificates to be archived, such as its root, DER.
        timeout_s: longest time for one exchange.
    """

    trusted: Trusted
    certificates: tuple[bytes, ...]
    timeout_s: float

    def obtain(
        self, digest: bytes, verify: Callable[[Reply], TokenVerdict], say: Callable[[str], None]
    ) -> Reply:
        """Ask it, again where that can help."""
        return obtain(self.trusted.address, digest, verify, timeout_s=self.timeout_s, say=say)


@dataclass(frozen=True)
class Demonstrated:
    """An authority made for the occasion."""

    authority: DemonstrationAuthority

    @property
    def trusted(self) -> Trusted:
        """Its entry in the registration's trust file."""
        return self.authority.trusted

    @property
    def certificates(self) -> tuple[bytes, ...]:
        """Its root."""
        return (self.authority.root,)

    def obtain(
        self, digest: bytes, verify: Callable[[Reply], TokenVerdict], say: Callable[[str], None]
    ) -> Reply:
        """Let it answer a request that any authority would be sent."""
        from toolkit.prereg.authority import make_request

        request = make_request(digest)
        reply = Reply(request, self.authority.answer(request))
        if verify(reply).verdict != VERIFIED:
            raise IncompleteError(
                "the demonstration's own token does not verify", found=verify(reply).message
            )
        say(f"{self.trusted.name}: made for the occasion")
        return reply


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a registration for one command alone; the hold ends with the process, however that ends.

    Raises:
        UsageError: another command holds it.
    """
    path = folder / LOCK
    try:
        stream = path.open("ab")
    except OSError as error:
        raise IncompleteError(
            "the registration cannot be written", found=error.strerror, where=folder
        ) from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                "another command is at work on this registration", where=folder, remedy="wait for it to end"
            ) from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def timestamp(
    folder: Path, prefix: str, document: bytes, sources: Sequence[Source], say: Callable[[str], None]
) -> tuple[dict[str, bytes], tuple[Judged, ...]]:
    """Obtain a token from each of several authorities.

    Args:
        folder: the registration.
        prefix: how the evidence files' names begin.
        document: what is timestamped.
        sources: the authorities.
        say: told what happens.

    Returns:
        The evidence, by file name relative to the registration, and the verdict on each token.

    Raises:
        IncompleteError: an authority gave no token that verifies; the others' are kept for the next attempt.
    """
    pending = folder / PENDING
    if not _is_for(pending, document):
        shutil.rmtree(pending, ignore_errors=True)
        (pending / EVIDENCE).mkdir(parents=True)
        write_bytes(pending / DOCUMENT, document)
    session = _Session(pending, prefix, document, say)
    judged = tuple(session.token_of(source) for source in sources)
    names = sorted(path.name for path in (pending / EVIDENCE).iterdir())
    return {f"{EVIDENCE}/{name}": (pending / EVIDENCE / name).read_bytes() for name in names}, judged


def discard_pending(folder: Path) -> None:
    """Remove what was waiting, once it stands in its place."""
    shutil.rmtree(folder / PENDING, ignore_errors=True)


def _is_for(pending: Path, document: bytes) -> bool:
    """Whether what waits was obtained for this document."""
    place = pending / DOCUMENT
    return place.is_file() and place.read_bytes() == document and (pending / EVIDENCE).is_dir()


@dataclass(frozen=True)
class _Session:
    pending: Path
    prefix: str
    document: bytes
    say: Callable[[str], None]

    def token_of(self, source: Source) -> Judged:
        """Return the verified token of one authority: the one that waits, else a new one."""
        authority = source.trusted
        if source.certificates:
            place = self.pending / EVIDENCE / f"{self.prefix}.{authority.slug}.pem"
            write_bytes(place, write_certificates(source.certificates))
        kept = self._judged(authority)
        if kept.is_verified:
            self.say(f"{authority.name}: kept the token obtained before")
            return kept
        self.say(f"{authority.name}: asking {authority.address}")
        source.obtain(
            hashlib.sha256(self.document).digest(), lambda reply: self._verify(authority, reply), self.say
        )
        return self._judged(authority)

    def _judged(self, authority: Trusted) -> Judged:
        subject = Subject(self.pending, self.document)
        return judge(subject, authority, *places(self.prefix, authority), datetime.now(UTC))

    def _verify(self, authority: Trusted, reply: Reply) -> TokenVerdict:
        token, request = (self.pending / name for name in places(self.prefix, authority))
        write_bytes(request, reply.request)
        write_bytes(token, reply.response)
        verdict = self._judged(authority).verdict
        if verdict.verdict != VERIFIED:
            token.unlink()
            request.unlink()
        return verdict
