"""`toolkit verify-token`: is this RFC 3161 token good, for this document, under these roots?"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.output import FILE, bold, json_option, print_json, say_line, styled
from toolkit.errors import DamagedError, UsageError
from toolkit.line_ends import CAUSE

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.prereg.token.verdict import TokenVerdict

_POLICY = re.compile(r"\d+(?:\.\d+)+", re.ASCII)
# Hashes of documents, and their sizes in bytes; the weak one is there to be told so.
SIZES = {"sha1": 20, "sha256": 32, "sha384": 48, "sha512": 64}


@click.command("verify-token")
@click.argument("token", type=FILE)
@click.option("--document", type=FILE, help="The document that the token is for.")
@click.option("--digest", metavar="ALG:HEX", help="Its hash, where the document is not at hand.")
@click.option(
    "--root", "roots", type=FILE, multiple=True, required=True, help="Pinned certificates: the trust."
)
@click.option("--untrusted", type=FILE, multiple=True, help="Certificates that may stand between.")
@click.option("--signer", type=FILE, help="The signing certificate, where the token does not embed it.")
@click.option(
    "--request", type=FILE, help="The request that the token answers: nonce and imprint must match."
)
@click.option("--crl", "lists", type=FILE, multiple=True, help="Archived revocation lists.")
@click.option("--policy", "policies", multiple=True, metavar="OID", help="Accept these policies only.")
@click.option("--at", metavar="ISO8601", help="Judge at this time instead of now.")
@click.option(
    "--openssl", "with_openssl", is_flag=True, help="Ask OpenSSL as well: it can veto, never rescue."
)
@json_option
@click.pass_context
def verify_token(
    context: click.Context,
    *,
    token: Path,
    document: Path | None,
    digest: str | None,
    roots: tuple[Path, ...],
    untrusted: tuple[Path, ...],
    signer: Path | None,
    request: Path | None,
    lists: tuple[Path, ...],
    policies: tuple[str, ...],
    at: str | None,
    with_openssl: bool,
    as_json: bool,
) -> None:
    """Verify TOKEN, a TimeStampResp or a bare token, offline, in fifteen checks.

    It stops at the first check that fails, and names it. Files with certificates and lists are PEM (one or
    several) or DER. Certificates are judged at the token's own time, so that it outlives them.

    \b
    Examples:
      toolkit verify-token token.tsr --document protocol.md --root root.pem
      toolkit verify-token token.tsr --document protocol.md --root root.pem \\
        --crl issuer.crl --openssl
      toolkit verify-token token.tst --document protocol.md --root root.pem --json
    """
    from toolkit.files import read_bytes, read_up_to
    from toolkit.prereg.evidence import CERTIFICATE, REVOCATION_LIST, read_blocks
    from toolkit.prereg.token.certificate import read_certificate
    from toolkit.prereg.token.der import MAX_BYTES
    from toolkit.prereg.token.request import read_request
    from toolkit.prereg.token.verify import Material
    from toolkit.prereg.token.verify import verify_token as verify

    if (document is None) == (digest is None):
        raise UsageError("one of --document and --digest is needed, and not both")
    for policy in policies:
        if not _POLICY.fullmatch(policy):
            raise UsageError("a policy is an object identifier, as in 1.2.3.4.1", found=policy)

    def certificates(path: Path) -> tuple[bytes, ...]:
        return checked(path, read_blocks(path, CERTIFICATE), read_certificate)

    archived = certificates(signer) if signer else ()
    material = Material(
        document=read_bytes(document) if document else None,
        digest=_digest(digest) if digest else None,
        roots=tuple(der for path in roots for der in certificates(path)),
        untrusted=(*(der for path in untrusted for der in certificates(path)), *archived[1:]),
        signer=archived[0] if archived else None,
        request=checked(request, (read_bytes(request),), read_request)[0] if request else None,
        crls=tuple(der for path in lists for der in read_blocks(path, REVOCATION_LIST)),
        policies=policies,
    )
    raw = read_up_to(token, MAX_BYTES + 1)
    verdict = verify(raw, material, _moment(at))
    if verdict.verdict != "verified" and material.document and b"\r\n" in material.document:
        again = replace(material, document=material.document.replace(b"\r\n", b"\n"))
        if verify(raw, again, _moment(at)).verdict == "verified":
            verdict = replace(verdict, notes=(*verdict.notes, f"{document}: {CAUSE}"))
    if with_openssl:
        from toolkit.prereg.evidence import second_opinion

        verdict = second_opinion(raw, material, verdict)
    if as_json:
        from toolkit.prereg.evidence import token_document

        print_json(token_document(verdict))
    else:
        _print(token, verdict)
    context.exit({"verified": 0, "not_verified": 1}.get(verdict.verdict, 3))


def checked(path: Path, blocks: tuple[bytes, ...], read: Callable[[bytes], object]) -> tuple[bytes, ...]:
    """Return blocks of a file that a reader understands."""
    from toolkit.prereg.token.verdict import Refused

    try:
        for block in blocks:
            read(block)
    except (Refused, ValueError, TypeError, KeyError) as error:
        raise DamagedError(f"{path.name} is not what it has to be", found=error, where=path) from None
    return blocks


def _print(path: Path, verdict: TokenVerdict) -> None:
    say_line(bold(path.name), ": ", styled(verdict.verdict))
    if verdict.failed_check:
        step = f"check {verdict.failed_step}, " if verdict.failed_step else ""
        say_line(f"  {step}{verdict.failed_check}: {verdict.message}")
    accuracy = "not stated" if verdict.accuracy_seconds is None else f"{verdict.accuracy_seconds:g} s"
    facts = (
        ("time", verdict.gen_time and f"{verdict.gen_time:%Y-%m-%dT%H:%M:%SZ} ± {accuracy}"),
        ("serial", verdict.serial),
        ("policy", verdict.policy),
        ("imprint", verdict.imprint and f"{verdict.imprint_algorithm} {verdict.imprint}"),
        ("signer", verdict.signer),
        ("signature", verdict.signature_algorithm),
        ("root", verdict.root_sha256 and f"{verdict.root}, SHA-256 {verdict.root_sha256}"),
        ("revocation", verdict.revocation),
        *(("note", note) for note in verdict.notes),
    )
    if verdict.verdict != "verified" and verdict.gen_time:
        say_line("  it claims, and nothing of it is verified:")
    for name, fact in facts:
        if fact:
            say_line(f"  {name:<12}{fact}")
    if verdict.verdict == "verified":
        say_line(
            "  Proven, by the clock of that signer: bytes with this imprint existed no later than "
            f"{verdict.gen_time:%Y-%m-%dT%H:%M:%SZ} ± {accuracy}. Not proven: who wrote them."
        )


def _digest(text: str) -> tuple[str, bytes]:
    algorithm, _, value = text.partition(":")
    name = algorithm.lower().replace("-", "")
    try:
        digest = bytes.fromhex(value)
    except ValueError:
        digest = b""
    if name not in SIZES or len(digest) != SIZES[name]:
        raise UsageError(
            "a digest is written ALG:HEX, as in sha256:6dc7...",
            expected=", ".join(f"{one}: {2 * size} digits" for one, size in SIZES.items()),
            found=text,
        )
    return name, digest


def _moment(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError("a time is written as in 2026-11-20T00:00:00Z", found=text) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
