"""Verifying tokens beside other engines, and `toolkit verify-prereg` from cold beside a bare interpreter.

In turns and in one run, so that the ratios hold when the machine's speed drifts. Every engine is given the
same token, made here, its document and its root.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tests.forge.case import recipe
from tests.forge.pki import house
from tests.forge.token import DOCUMENT, NOW
from toolkit.prereg.pem import write_certificates
from toolkit.prereg.token.verify import Material, verify_token

if TYPE_CHECKING:
    from collections.abc import Callable

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
        ways: dict[str, tuple[Callable[[], None], int]] = {
            "toolkit": (here(token), TOKENS),
            "openssl ts -verify": (by_openssl(folder), 1),
            "python -c pass": (command("-c", "pass"), 1),
            "toolkit verify-prereg": (command("-m", "toolkit", "verify-prereg", "--json", codes=(0, 3)), 1),
        }
        if has_client := find_spec("rfc3161_client") is not None:
            ways["rfc3161-client"] = (by_rfc3161_client(token), TOKENS)
        taken = _taken(ways)
    print(f"tokens, medians of {ROUNDS} rounds")
    for name, figure in taken.items():
        print(f"  {name:22} {1000 * figure:9.2f} ms")
    if not has_client:
        print("  rfc3161-client: skipped, it is not installed (pip install rfc3161-client)")
    print(f"  openssl / toolkit        {taken['openssl ts -verify'] / taken['toolkit']:6.2f}")
    if has_client:
        print(f"  rfc3161-client / toolkit {taken['rfc3161-client'] / taken['toolkit']:6.2f}")
    cold = taken["toolkit verify-prereg"]
    met = "met" if cold < COLD_GOAL_S else "MISSED"
    ratio = cold / taken["python -c pass"]
    print(f"  verify-prereg / python   {ratio:6.2f}  {met}: verify-prereg under {COLD_GOAL_S} s")


def _taken(ways: dict[str, tuple[Callable[[], None], int]]) -> dict[str, float]:
    """Return the median seconds that each way takes once; the first round is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, (way, times) in ways.items():
            started = time.perf_counter()
            for _ in range(times):
                way()
            if number:
                taken[name].append((time.perf_counter() - started) / times)
    return {name: statistics.median(times) for name, times in taken.items()}


if __name__ == "__main__":
    compare()
