"""OpenSSL as a second engine: it may veto a token, with its reason, and never rescues one.

It forgives what the fifteen checks do not, and cannot read some tokens that are good: those signed with
RSASSA-PSS. What it cannot judge is a note.
"""

import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from toolkit.errors import IncompleteError
from toolkit.prereg.pem import write_certificates
from toolkit.prereg.token.der import OID, parse
from toolkit.prereg.token.verdict import NOT_VERIFIED, VERIFIED, TokenVerdict
from toolkit.prereg.token.verify import Material

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
