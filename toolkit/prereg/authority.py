"""Asking time-stamping authorities over HTTP (RFC 3161, section 3.4): all tokens verify, or none counts."""

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from toolkit.deadline import within
from toolkit.errors import IncompleteError, UsageError, VerificationError
from toolkit.files import write_bytes
from toolkit.prereg import evidence
from toolkit.prereg.chain import begin
from toolkit.prereg.record import EVIDENCE, Trusted
from toolkit.prereg.token.der import MAX_BYTES
from toolkit.prereg.token.verdict import VERIFIED, TokenVerdict

PAUSE_S = 1.0
ONE_SECOND = timedelta(seconds=1)
NONCE_BITS = 64
# A reply that fails these checks was cut off or came from something in between, or our clock is a little
# behind; and some refusals pass (RFC 3161, section 2.4.2). Asking again may help.
_WORTH_ANOTHER_TRY = frozenset({"form", "encoding", "time"})
_PASSING = ("time_not_available", "system_failure")
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_OK = 200


@dataclass(frozen=True)
class Reply:
    """A request and the raw body of its answer."""

    request: bytes
    response: bytes


Judge = Callable[[Reply], TokenVerdict]
Say = Callable[[str], None]


class _Unanswered(Exception):  # noqa: N818 - not an error of the program
    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.is_final = reason, is_final


def make_request(digest: bytes) -> bytes:
    """Return a request for a timestamp of a SHA-256 digest, DER."""
    try:
        import rfc3161ng
    except ImportError:
        raise IncompleteError(
            "asking an authority needs rfc3161ng", remedy="pip install 'paired-rollouts-toolkit[freeze]'"
        ) from None
    # `digest=`: given data, the library hashes it with SHA-1 whatever the name says.
    request = rfc3161ng.make_timestamp_request(
        digest=digest,
        hashname="sha256",
        nonce=secrets.randbits(NONCE_BITS) | 1 << (NONCE_BITS - 1),
        include_tsa_certificate=True,
    )
    return bytes(rfc3161ng.encode_timestamp_request(request))


@dataclass(frozen=True)
class Online:
    """An authority that answers over HTTP."""

    trusted: Trusted  # who it is
    certificates: tuple[bytes, ...]  # certificates to be archived, such as its root, DER
    timeout_s: float  # longest time for one whole exchange
    attempts: int = 3  # most exchanges

    def obtain(self, digest: bytes, verify: Judge, say: Say) -> Reply:
        """Ask until a reply verifies; what cannot get better by asking is not asked again."""
        address, reason = self.trusted.address, ""
        for attempt in range(self.attempts):
            if attempt:
                say(f"{address}: {reason}; asking again")
                time.sleep(PAUSE_S * 2 ** (attempt - 1))
            try:
                request = make_request(digest)
                reply = Reply(request, _post(address, request, self.timeout_s))
            except _Unanswered as unanswered:
                reason = unanswered.reason
                if unanswered.is_final:
                    break
                continue
            verdict = verify(reply)
            if verdict.verdict == VERIFIED:
                return reply
            reason = f"its reply does not verify: {verdict.failed_check}: {verdict.message}"
            passing = any(cause in verdict.message for cause in _PASSING)
            if verdict.failed_check not in _WORTH_ANOTHER_TRY and not passing:
                break
        is_rootless = "pinned root" in reason
        cause = "give the root with --root FILE" if is_rootless else "check address and connection"
        raise IncompleteError(
            f"no timestamp from {address}",
            found=reason,
            remedy=f"{cause}, and run the same command again: tokens that were obtained are kept",
        )


def second_reading(response: bytes) -> datetime | None:
    """Return the time that rfc3161ng reads in a reply; None where it cannot read it."""
    import rfc3161ng
    from pyasn1.error import PyAsn1Error

    try:
        token = rfc3161ng.decode_timestamp_response(response).time_stamp_token
        read: datetime = rfc3161ng.get_timestamp(token)
    except (PyAsn1Error, ValueError, TypeError, AttributeError, IndexError):
        return None
    return read.replace(tzinfo=UTC)


def _post(address: str, request: bytes, timeout_s: float) -> bytes:
    """Send a request and return the body of the answer, within one deadline for all of it."""
    try:
        return within(timeout_s, lambda: _exchange(address, request, timeout_s))
    except TimeoutError:
        raise _Unanswered(f"no complete answer within {timeout_s:g} s") from None


def _exchange(address: str, request: bytes, timeout_s: float) -> bytes:
    import requests
    import urllib3

    headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
    try:
        with requests.post(
            address,
            data=request,
            headers=headers,
            timeout=timeout_s,
            stream=True,
            allow_redirects=False,
            auth=lambda prepared: prepared,  # no credentials of the user's: those in .netrc would be sent
        ) as answer:
            if answer.status_code != _OK:
                raise _Unanswered(f"HTTP {answer.status_code}", is_final=answer.status_code not in _BUSY)
            body = b""
            while part := answer.raw.read1(MAX_BYTES, decode_content=True):
                body += part
                if len(body) > MAX_BYTES:
                    raise _Unanswered(f"it answers with more than {MAX_BYTES} bytes", is_final=True)
            return body
    except (requests.exceptions.InvalidURL, requests.exceptions.MissingSchema) as error:
        raise _Unanswered(f"it is no address ({error})", is_final=True) from None
    except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError):
        raise _Unanswered(f"no answer within {timeout_s:g} s") from None
    except requests.exceptions.SSLError as error:
        raise _Unanswered(f"its TLS certificate does not do ({error})") from None
    except (requests.exceptions.ConnectionError, urllib3.exceptions.ProtocolError) as error:
        raise _Unanswered(_why(str(error))) from None
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
        raise _Unanswered(f"{type(error).__name__}: {error}") from None


def _why(error: str) -> str:
    if "refused" in error:
        return "connection refused"
    if "resolve" in error or "resolution" in error:
        return "its name cannot be resolved"
    return "the connection failed or broke off"


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
) -> tuple[dict[str, bytes], tuple[evidence.Judged, ...]]:
    """Obtain a token from each of several authorities."""
    pending = begin(folder, document)
    session = _Session(pending, prefix, document, say)
    judged: list[evidence.Judged] = []
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

    def token_of(self, source: Source) -> evidence.Judged:
        """Return the verified token of one authority: the one that waits, else a new one."""
        authority = source.trusted
        if source.certificates:
            path = self.pending / EVIDENCE / f"{self.prefix}.{authority.slug}.pem"
            write_bytes(path, evidence.write_certificates(source.certificates))
        kept = self._judged(authority)
        if kept.is_verified and datetime.now(UTC) - kept.latest < KEPT_FOR:
            self.say(f"{authority.name}: kept the token obtained before")
            return self._read_twice(kept)
        self.say(f"{authority.name}: asking {authority.address}")
        source.obtain(
            hashlib.sha256(self.document).digest(), lambda reply: self._verify(authority, reply), self.say
        )
        return self._read_twice(self._judged(authority))

    def _read_twice(self, judged: evidence.Judged) -> evidence.Judged:
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

    def _judged(self, authority: Trusted) -> evidence.Judged:
        subject = evidence.Subject(self.pending, self.document)
        return evidence.judge(subject, authority, *evidence.places(self.prefix, authority), datetime.now(UTC))

    def _verify(self, authority: Trusted, reply: Reply) -> TokenVerdict:
        token, request = (self.pending / name for name in evidence.places(self.prefix, authority))
        write_bytes(request, reply.request)
        write_bytes(token, reply.response)
        verdict = self._judged(authority).verdict
        if verdict.verdict != VERIFIED:
            token.unlink()
            request.unlink()
        return verdict


DEFAULT = ("FreeTSA", "DigiCert")


def online(
    addresses: Sequence[str],
    named: Sequence[Trusted],
    known: Sequence[Trusted],
    roots: Sequence[Path],
    timeout_s: float,
) -> tuple[Source, ...]:
    """Return the authorities to ask over HTTP."""
    given = [der for path in roots for der in evidence.read_blocks(path, evidence.CERTIFICATE)]
    chosen = [_known(address, (*named, *known)) for address in addresses]
    chosen = chosen or list(named) or [authority for authority in known if authority.name in DEFAULT]
    if len({authority.operator for authority in chosen}) < 2:  # noqa: PLR2004 - two say more than one
        raise UsageError(
            "at least two authorities of different operators are needed",
            found=", ".join(f"{authority.name} ({authority.operator})" for authority in chosen) or "none",
            remedy="--authority URL, once each",
        )
    return tuple(
        Online(authority, evidence.find_pinned(authority.roots, given), timeout_s)
        for authority in dict.fromkeys(chosen)
    )


def _known(address: str, known: Sequence[Trusted]) -> Trusted:
    for authority in known:
        if address.rstrip("/") == authority.address.rstrip("/"):
            return authority
    raise UsageError(
        f"nobody who is trusted answers at {address}",
        expected=", ".join(authority.address for authority in known),
        remedy="name the authority, its operator and its root's SHA-256 in a trust file: --trust FILE",
    )
