"""Getting a document timestamped by several authorities: all tokens verify, or nothing counts.

What was obtained waits until all of it is there (`pending`), and is not asked for again.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from toolkit.errors import IncompleteError, VerificationError
from toolkit.files import write_bytes
from toolkit.prereg.authority import ONE_SECOND, Judge, Reply, Say, second_reading
from toolkit.prereg.evidence import Judged, Subject, judge, places
from toolkit.prereg.pem import write_certificates
from toolkit.prereg.pending import begin
from toolkit.prereg.record import EVIDENCE
from toolkit.prereg.token.verdict import VERIFIED, TokenVerdict
from toolkit.prereg.trust import Trusted

# A token that waited longer would be too far from those still to come.
KEPT_FOR = timedelta(hours=12)


class Source(Protocol):
    """Somebody who can timestamp."""

    @property
    def trusted(self) -> Trusted:
        """Who that is."""

    @property
    def certificates(self) -> tuple[bytes, ...]:
        """Certificates to be archived beside the token, DER."""

    def obtain(self, digest: bytes, verify: Judge, say: Say) -> Reply:
        """Return a reply that verifies."""


def timestamp(
    folder: Path, prefix: str, document: bytes, sources: Sequence[Source], say: Say
) -> tuple[dict[str, bytes], tuple[Judged, ...]]:
    """Obtain a token from each of several authorities."""
    pending = begin(folder, document)
    session = _Session(pending, prefix, document, say)
    judged: list[Judged] = []
    failures: list[IncompleteError] = []
    for source in sources:
        try:
            judged.append(session.token_of(source))
        except IncompleteError as error:
            failures.append(error)
            say(f"{source.trusted.name}: {error.found or error.problem}")
    if failures:
        raise failures[0]  # once everybody was asked: what others gave waits for the next attempt
    names = sorted(path.name for path in (pending / EVIDENCE).iterdir())
    return {f"{EVIDENCE}/{name}": (pending / EVIDENCE / name).read_bytes() for name in names}, tuple(judged)


@dataclass(frozen=True)
class _Session:
    pending: Path
    prefix: str
    document: bytes
    say: Say

    def token_of(self, source: Source) -> Judged:
        """Return the verified token of one authority: the one that waits, else a new one."""
        authority = source.trusted
        if source.certificates:
            path = self.pending / EVIDENCE / f"{self.prefix}.{authority.slug}.pem"
            write_bytes(path, write_certificates(source.certificates))
        kept = self._judged(authority)
        if kept.is_verified and datetime.now(UTC) - kept.latest < KEPT_FOR:
            self.say(f"{authority.name}: kept the token obtained before")
            return self._read_twice(kept)
        self.say(f"{authority.name}: asking {authority.address}")
        source.obtain(
            hashlib.sha256(self.document).digest(), lambda reply: self._verify(authority, reply), self.say
        )
        return self._read_twice(self._judged(authority))

    def _read_twice(self, judged: Judged) -> Judged:
        """Have another decoder read the time, too."""
        read = second_reading((self.pending / judged.place).read_bytes())
        stated = judged.verdict.gen_time
        if read is None or stated is None:
            self.say(f"{judged.authority.name}: rfc3161ng cannot read the token")
        elif abs(read - stated) >= ONE_SECOND:
            raise VerificationError(
                "two decoders read different times in one token", expected=stated, found=read
            )
        return judged

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
