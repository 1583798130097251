"""Certificates and revocation lists from files, PEM or DER."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from asn1crypto import pem

from toolkit.errors import DamagedError, ToolkitError
from toolkit.files import read_up_to

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
    """Return the certificates with pinned fingerprints: of those at hand, else of this system's list.

    Where a certificate comes from does not matter, since its fingerprint says which one it is.
    """
    wanted = set(fingerprints)
    certificates = {hashlib.sha256(der).hexdigest(): der for der in at_hand}
    if not wanted <= set(certificates):
        certificates |= {hashlib.sha256(der).hexdigest(): der for der in _system_roots()}
    return tuple(certificates[sha256] for sha256 in sorted(wanted & set(certificates)))


def _system_roots() -> tuple[bytes, ...]:
    import ssl

    path = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    try:
        return read_blocks(Path(path), CERTIFICATE)
    except ToolkitError:
        return ()
