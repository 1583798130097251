"""Verifying tokens beside other engines, and `toolkit verify-prereg` from cold beside a bare interpreter.

In turns and in one run, so that the ratios hold when the machine's speed drifts. Every engine is given the
same token, made here, its document and its root.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from rfc3161_client import VerifierBuilder, decode_timestamp_response

from tests.benchmarks.harness import PYTHON, TOOLKIT, medians, run, verdict
from tests.forge.case import recipe
from tests.forge.pki import house
from tests.forge.token import DOCUMENT, NOW
from toolkit.prereg.evidence import write_certificates
from toolkit.prereg.token.verify import Material, verify_token

ROUNDS, TOKENS = 15, 20
COLD_GOAL_S = 0.4


def here(token: bytes) -> Callable[[], None]:
    material = Material(document=DOCUMENT, roots=(house().root.der,))

    def verify() -> None:
        if verify_token(token, material, NOW).verdict != "verified":
            raise ValueError("the benchmark's token is not verified")

    return verify


def by_rfc3161_client(token: bytes) -> Callable[[], object]:
    verifier = VerifierBuilder(roots=[x509.load_der_x509_certificate(house().root.der)]).build()
    return lambda: verifier.verify_message(decode_timestamp_response(token), DOCUMENT)


def compare() -> None:
    """Print medians of several rounds and the ratios."""
    token = recipe().make()
    engines = {"toolkit": here(token), "rfc3161-client": by_rfc3161_client(token)}
    files = {"-in": token, "-data": DOCUMENT, "-CAfile": write_certificates((house().root.der,))}
    openssl = ["openssl", "ts", "-verify"]
    processes = {
        "openssl ts -verify": lambda: run(*openssl),
        "python -c pass": lambda: run(PYTHON, "-c", "pass"),
        # It ends with 3 where evidence is missing.
        "toolkit verify-prereg": lambda: run(*TOOLKIT, "verify-prereg", "--json", codes=(0, 3)),
    }
    with tempfile.TemporaryDirectory() as place:
        for option, content in files.items():
            path = Path(place, option.strip("-"))
            path.write_bytes(content)
            openssl += [option, str(path)]
        taken = medians(engines, ROUNDS, times=TOKENS) | medians(processes, ROUNDS)
    print(f"tokens, medians of {ROUNDS} rounds")
    for name, figure in taken.items():
        print(f"  {name:22} {1000 * figure:9.2f} ms")
    for name in ("openssl ts -verify", "rfc3161-client"):
        print(f"  {f'{name} / toolkit':28} {taken[name] / taken['toolkit']:6.2f}")
    cold = taken["toolkit verify-prereg"]
    met = verdict(cold < COLD_GOAL_S, f"verify-prereg under {COLD_GOAL_S} s")
    print(f"  {'verify-prereg / python':28} {cold / taken['python -c pass']:6.2f}  {met}")
