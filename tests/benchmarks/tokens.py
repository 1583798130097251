"""Verifying tokens beside other engines, and `toolkit verify-prereg` from cold beside a bare interpreter.

In turns and in one run, so that the ratios hold when the machine's speed drifts. Every engine is given the
same token, made here, its document and its root.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from tests.benchmarks.timing import medians, verdict
from tests.forge.case import recipe
from tests.forge.pki import house
from tests.forge.token import DOCUMENT, NOW
from toolkit.prereg.evidence import write_certificates
from toolkit.prereg.token.verify import Material, verify_token

ROUNDS, TOKENS = 15, 20
COLD_GOAL_S = 0.4
SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def here(token: bytes) -> Callable[[], None]:
    material = Material(document=DOCUMENT, roots=(house().root.der,))

    def verify() -> None:
        if verify_token(token, material, NOW).verdict != "verified":
            raise ValueError("the benchmark's token is not verified")

    return verify


def by_openssl(folder: Path) -> Callable[[], None]:
    command = ["openssl", "ts", "-verify", "-in", "token", "-data", "document", "-CAfile", "root.pem"]
    return lambda: subprocess.run(command, cwd=folder, check=True, **SILENT)


def by_rfc3161_client(token: bytes) -> Callable[[], None]:
    from cryptography import x509
    from rfc3161_client import VerifierBuilder, decode_timestamp_response

    root = x509.load_der_x509_certificate(house().root.der)

    def verify() -> None:
        verifier = VerifierBuilder(roots=[root]).build()
        verifier.verify_message(decode_timestamp_response(token), DOCUMENT)

    return verify


def command(*arguments: str, codes: tuple[int, ...] = (0,)) -> Callable[[], None]:
    """Return a whole process to run; `verify-prereg` ends with 3 where evidence is missing."""

    def run() -> None:
        code = subprocess.run([sys.executable, *arguments], check=False, **SILENT).returncode
        if code not in codes:
            raise ValueError(f"{arguments} ended with {code}")

    return run


def compare() -> None:
    """Print medians of several rounds and the ratios."""
    token = recipe().make()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.joinpath("token").write_bytes(token)
        folder.joinpath("document").write_bytes(DOCUMENT)
        folder.joinpath("root.pem").write_bytes(write_certificates((house().root.der,)))
        engines = {"toolkit": here(token)}
        if has_client := find_spec("rfc3161_client") is not None:
            engines["rfc3161-client"] = by_rfc3161_client(token)
        processes = {
            "openssl ts -verify": by_openssl(folder),
            "python -c pass": command("-c", "pass"),
            "toolkit verify-prereg": command("-m", "toolkit", "verify-prereg", "--json", codes=(0, 3)),
        }
        taken = medians(engines, ROUNDS, times=TOKENS) | medians(processes, ROUNDS)
    print(f"tokens, medians of {ROUNDS} rounds")
    for name, figure in taken.items():
        print(f"  {name:22} {1000 * figure:9.2f} ms")
    if not has_client:
        print("  rfc3161-client: skipped, it is not installed (pip install rfc3161-client)")
    print(f"  openssl / toolkit        {taken['openssl ts -verify'] / taken['toolkit']:6.2f}")
    if has_client:
        print(f"  rfc3161-client / toolkit {taken['rfc3161-client'] / taken['toolkit']:6.2f}")
    cold = taken["toolkit verify-prereg"]
    met = verdict(cold < COLD_GOAL_S, f"verify-prereg under {COLD_GOAL_S} s")
    print(f"  verify-prereg / python   {cold / taken['python -c pass']:6.2f}  {met}")


if __name__ == "__main__":
    compare()
