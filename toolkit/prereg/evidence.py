"""The tokens of a registration: each judged with all that lies beside it, and what derives from them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Annotated, get_origin, get_type_hints

from asn1crypto import pem

from toolkit.errors import DamagedError, IncompleteError, ToolkitError
from toolkit.files import file_sha256, read_bytes, read_up_to
from toolkit.prereg.record import EVIDENCE, Trusted
from toolkit.prereg.registration import Registration
from toolkit.prereg.token.certificate import read_certificate
from toolkit.prereg.token.der import MAX_BYTES, OID, parse
from toolkit.prereg.token.timestamp import embedded_certificates, granted_token, read_timestamp
from toolkit.prereg.token.verdict import INCOMPLETE, NOT_VERIFIED, VERIFIED, Refused, TokenVerdict
from toolkit.prereg.token.verify import Material, verify_token
from toolkit.structs import Document, Shown, about, replace

UNSTATED_ACCURACY = timedelta(seconds=60)
"""What an authority that states no accuracy is taken to be off at most, where an order in time is decided."""

# The first check that asks for a pinned certificate.
NEEDS_ROOT = 12
CERTIFICATE_FILES = (".pem", ".crt", ".cer")
REVOCATION_FILES = (".crl",)


_VERDICT = tuple(
    Shown(name, Annotated[kind.__origin__, about(kind.__metadata__[0])], "", attrgetter(name))
    for name, kind in get_type_hints(TokenVerdict, include_extras=True).items()
    if get_origin(kind) is Annotated
)
"""The keys that a verdict on a token is printed as."""


class JudgedToken(Document, frozen=True):
    """What is known of a token; what its first failure left unknown is null."""

    verdict: Annotated[TokenVerdict, *_VERDICT]


class Judged(Document, frozen=True):
    """An authority's token of a registration."""

    authority: Annotated[
        Trusted,
        Shown("name", str, "The authority.", attrgetter("name")),
        Shown("operator", str, "Who runs the authority.", attrgetter("operator")),
    ]
    place: Annotated[str, Shown("token", str, "Its file, relative to the registration.")]
    verdict: Annotated[TokenVerdict, *_VERDICT]

    @property
    def is_verified(self) -> bool:
        """Whether all checks hold."""
        return self.verdict.verdict == "verified"

    @property
    def no_later_than(self) -> datetime:
        """The token's time and its stated accuracy."""
        assert self.verdict.gen_time is not None  # noqa: S101 - asked of verified tokens only
        return self.verdict.gen_time + timedelta(seconds=self.verdict.accuracy_seconds or 0)

    @property
    def latest(self) -> datetime:
        """The same, with a margin where no accuracy is stated: for deciding an order in time."""
        unstated = self.verdict.accuracy_seconds is None
        return self.no_later_than + (UNSTATED_ACCURACY if unstated else timedelta())


class FreezeToken(Judged, frozen=True):
    """A token of a freeze, beside what the record says of it."""

    recorded_time: Annotated[datetime, about("The author's record, UTC.")]


def places(prefix: str, authority: Trusted) -> tuple[str, str]:
    """Return where an authority's token and its request lie, relative to the registration."""
    return f"{EVIDENCE}/{prefix}.{authority.slug}.tsr", f"{EVIDENCE}/{prefix}.{authority.slug}.tsq"


@dataclass(frozen=True)
class Subject:
    """What tokens are about."""

    folder: Path  # the registration, or what waits to become part of it
    document: bytes | None  # the document's bytes, or None where only its hash is known
    sha256: str = ""  # that hash, hexadecimal


def judge(
    subject: Subject,
    authority: Trusted,
    token_place: str,
    request_place: str,
    at: datetime,
    *,
    with_openssl: bool = False,
) -> Judged:
    """Judge one token of a registration."""
    folder = subject.folder
    token = folder / token_place
    if not token.is_file():
        return Judged(authority, token_place, _incomplete(f"the token is not here: {token_place}"))
    try:
        raw = read_up_to(token, MAX_BYTES + 1)
        request = read_bytes(folder / request_place, MAX_BYTES) if request_place else None
        blocks = tuple(_blocks(folder, CERTIFICATE_FILES, CERTIFICATE))
        certificates = tuple(der for der in blocks if _is_certificate(der))
        crls = tuple(_blocks(folder, REVOCATION_FILES, REVOCATION_LIST))
    except ToolkitError as error:
        return Judged(authority, token_place, _incomplete(str(error)))
    roots = find_pinned(authority.roots, (*embedded_certificates(raw), *certificates))
    material = Material(
        document=subject.document,
        digest=None if subject.document is not None else ("sha256", bytes.fromhex(subject.sha256)),
        roots=roots,
        untrusted=certificates,
        request=request,
        crls=crls,
        policies=authority.policies,
    )
    verdict = verify_token(raw, material, at)
    if not roots and (verdict.failed_step or 0) >= NEEDS_ROOT:
        return Judged(authority, token_place, _incomplete(_rootless(authority, certificates)))
    if with_openssl:
        verdict = second_opinion(raw, material, verdict)
    # A registration keeps the lists of all authorities together: notes on those of others say nothing.
    notes = tuple(note for note in verdict.notes if "issued none of the chain" not in note)
    return Judged(authority, token_place, replace(verdict, notes=notes))


def shared_keys(tokens: Iterable[Judged]) -> tuple[str, ...]:
    """Return the names of authorities whose chains have a public key in common."""
    owners: dict[str, list[str]] = {}
    for judged in tokens:
        for key in dict.fromkeys(judged.verdict.key_sha256):
            owners.setdefault(key, []).append(judged.authority.name)
    return tuple(dict.fromkeys(name for names in owners.values() if len(names) > 1 for name in names))


def _rootless(authority: Trusted, certificates: tuple[bytes, ...]) -> str:
    there = ", ".join(sha256(der).hexdigest()[:16] + "…" for der in certificates) or "none"
    where = f" (from {authority.certificates})" if authority.certificates else ""
    return (
        f"the pinned root certificate of {authority.name} is not here: put the one with SHA-256 "
        f"{' or '.join(authority.roots)}{where} into {EVIDENCE}/ as a .pem file; certificates there: {there}"
    )


def _is_certificate(der: bytes) -> bool:
    """Whether an archived file can be used; what is no certificate must not spoil every token beside it."""
    try:
        read_certificate(der)
    except Refused:
        return False
    return True


def _blocks(folder: Path, endings: tuple[str, ...], kind: str) -> Iterable[bytes]:
    for path in sorted((folder / EVIDENCE).iterdir()):
        if path.suffix.lower() in endings:
            yield from read_blocks(path, kind)


def _incomplete(message: str) -> TokenVerdict:
    return TokenVerdict(INCOMPLETE, "evidence", None, message)


def anchor(registration: Registration) -> str:
    """Return a registration's anchor, in hexadecimal, which nobody knew before its authorities answered."""
    tokens = (registration.folder / authority.token_place for authority in registration.record.authorities)
    return _digest([registration.sha256, *map(file_sha256, tokens)])


def amendment_anchor(registration: Registration, amendment: str) -> str:
    """Return the anchor of what an amendment registers, in hexadecimal."""
    entry = next(entry for entry in registration.entries if entry.id == amendment)
    signed = []
    for authority in registration.trust_in(entry):
        path = registration.folder / places(amendment, authority)[0]
        try:
            token, _ = granted_token(read_bytes(path, MAX_BYTES))
            content = read_timestamp(token).content
        except (Refused, ValueError, TypeError) as error:
            raise DamagedError(
                f"a token of amendment {amendment} is none, and what it registers is anchored in it",
                found=error,
                where=path,
                remedy="restore the registration's evidence",
            ) from None
        signed.append(sha256(content).hexdigest())
    return _digest([anchor(registration), entry.link, *signed])


def _digest(lines: list[str]) -> str:
    return sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


CERTIFICATE = "CERTIFICATE"
REVOCATION_LIST = "X509 CRL"
# The longest revocation lists of public authorities have a tenth of it.
MAX_FILE = 64 << 20


def read_blocks(path: Path, kind: str) -> tuple[bytes, ...]:
    """Return the DER of every block of a kind in a file; a file that is no PEM is one block itself."""
    raw = read_up_to(path, MAX_FILE + 1)
    if len(raw) > MAX_FILE:
        raise DamagedError(f"{path.name} is too large", expected=f"at most {MAX_FILE} bytes", where=path)
    if not pem.detect(raw):
        blocks: tuple[bytes, ...] = (raw,) if raw[:1] == b"\x30" else ()
    else:
        try:
            blocks = tuple(der for name, _, der in pem.unarmor(raw, multiple=True) if name == kind)
        except ValueError as error:
            raise DamagedError(f"{path.name} is damaged PEM", found=error, where=path) from None
    if not blocks:
        raise DamagedError(
            f"{path.name} holds no {kind.lower()}", expected="PEM or DER", found=raw[:30], where=path
        )
    return blocks


def write_certificates(certificates: Iterable[bytes]) -> bytes:
    """Return certificates as PEM."""
    return b"".join(pem.armor(CERTIFICATE, der) for der in certificates)


def find_pinned(fingerprints: Iterable[str], at_hand: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return the certificates with pinned fingerprints: of those at hand, else of this system's list."""
    wanted = set(fingerprints)
    certificates = {sha256(der).hexdigest(): der for der in at_hand}
    if not wanted <= set(certificates):
        certificates |= {sha256(der).hexdigest(): der for der in _system_roots()}
    return tuple(certificates[sha256] for sha256 in sorted(wanted & set(certificates)))


def _system_roots() -> tuple[bytes, ...]:
    import ssl

    path = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    try:
        return read_blocks(Path(path), CERTIFICATE)
    except ToolkitError:
        return ()


SECOND_ENGINE = "second_engine"
_TIMEOUT_S = 20


def second_opinion(raw: bytes, material: Material, verdict: TokenVerdict) -> TokenVerdict:
    """Ask OpenSSL about a token that all checks passed."""
    program = shutil.which("openssl")
    if program is None:
        raise IncompleteError(
            "openssl is not installed", remedy="install it, or do without the second opinion"
        )
    if verdict.verdict != VERIFIED or verdict.gen_time is None:
        return verdict
    if "RSASSA-PSS" in (verdict.signature_algorithm or ""):
        return _noted(verdict, "openssl was not asked: it cannot read RSASSA-PSS signatures of tokens")
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(  # noqa: S603 - a fixed command; its arguments are files made here
                [program, *_arguments(raw, material, verdict, Path(folder))],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise IncompleteError("openssl does not answer", found=error) from None
    if done.returncode == 0:
        return _noted(verdict, "openssl agrees")
    reason = _reason(done.stderr)
    if "Verification: FAILED" not in done.stdout + done.stderr:
        raise IncompleteError("openssl cannot be asked about tokens", found=reason)
    return replace(
        verdict,
        verdict=NOT_VERIFIED,
        failed_step=None,
        failed_check=SECOND_ENGINE,
        message=f"openssl refuses it: {reason}",
    )


def _arguments(raw: bytes, material: Material, verdict: TokenVerdict, folder: Path) -> list[str]:
    assert verdict.gen_time is not None  # noqa: S101 - asked of verified tokens only
    (folder / "token").write_bytes(raw)
    (folder / "roots").write_bytes(write_certificates(material.roots))
    arguments = ["ts", "-verify", "-in", str(folder / "token"), "-digest", verdict.imprint or ""]
    arguments += ["-CAfile", str(folder / "roots"), "-partial_chain"]
    arguments += ["-attime", str(int(verdict.gen_time.timestamp()))]
    if parse(raw).children[0].tag == OID:
        arguments.append("-token_in")
    others = material.untrusted + ((material.signer,) if material.signer else ())
    if others:
        (folder / "untrusted").write_bytes(write_certificates(others))
        arguments += ["-untrusted", str(folder / "untrusted")]
    return arguments


def _noted(verdict: TokenVerdict, note: str) -> TokenVerdict:
    return replace(verdict, notes=(*verdict.notes, note))


def _reason(output: str) -> str:
    """Return the reasons in OpenSSL's error lines: `…:error:code:library:function:reason:file:line:data`."""
    lines = [line.partition(":error:")[2].split(":") for line in output.splitlines()]
    reasons = [" ".join(filter(None, (line[3], *line[6:]))) for line in lines if len(line) > len("code")]
    return "; ".join(dict.fromkeys(reasons)) or output.strip()[-200:] or "no reason given"
