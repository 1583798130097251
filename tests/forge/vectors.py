"""Forged tokens as they are stored, each with what it is judged by and what has to be said of it.

`tests/vectors/tokens.jsonl.gz` has one a line, bytes in base64: the Python and the TypeScript are held to it.
`python -m tests.forge.vectors` forges all anew, with keys of one run, and prints of which something else is
said than before, but for numbers.
"""

import gzip
import re
from collections import Counter
from datetime import datetime
from pathlib import Path

import msgspec

from toolkit.prereg.token.verdict import TokenVerdict
from toolkit.prereg.token.verify import STEPS, Material, verify_token

FILE = Path(__file__).parents[1] / "vectors" / "tokens.jsonl.gz"


class Page(msgspec.Struct, frozen=True):
    """What the browser says of a token."""

    ok: bool | None
    reason: str


class Vector(msgspec.Struct, frozen=True):
    """A token; `beyond_openssl` says why `openssl ts -verify` cannot be asked about a valid one."""

    name: str
    token: bytes
    material: Material
    at: datetime
    verdict: TokenVerdict
    page: Page | None = None  # where the defect is not one that the page leaves to the program
    beyond_openssl: str | None = None


# What the page examines, too.
ON_THE_PAGE = (None, "imprint", "certificate_id", "signed_attributes", "signature", "purpose", "chain")
FORGED: dict[str, Vector] = {}
if FILE.exists():
    _LINES = msgspec.json.Decoder(Vector).decode_lines(gzip.decompress(FILE.read_bytes()))
    FORGED.update({vector.name: vector for vector in _LINES})
USUAL = "valid: usual"


def by_check() -> dict[str, int]:
    """Return how many defects each check has to find."""
    counts = Counter(vector.verdict.failed_check for vector in FORGED.values())
    return {check: counts[check] for _, check in STEPS}


def _forge() -> dict[str, Vector]:
    from tests.forge.defects import CASES
    from tests.unit.site.node import judged_in_node

    made = {}
    for name, make in CASES.items():
        case = make()
        material = Material(**case.material)
        verdict = verify_token(case.token, material, case.at)
        if (verdict.verdict, verdict.failed_check) != (case.expected, case.failed_check):
            raise ValueError(f"{name}: {verdict}")
        made[name] = Vector(name, case.token, material, case.at, verdict, None, case.beyond_openssl)
    asked = [vector for vector in made.values() if vector.verdict.failed_check in ON_THE_PAGE]
    answers = judged_in_node((vector.token, vector.material) for vector in asked)
    for vector, answer in zip(asked, answers, strict=True):
        page = Page(answer["ok"], answer["reason"])
        made[vector.name] = msgspec.structs.replace(vector, page=page)
    return made


def _said(vector: Vector) -> str:
    verdict = vector.verdict
    said = (verdict.verdict, verdict.failed_check, verdict.message, verdict.revocation, *verdict.notes)
    return re.sub(r"[0-9a-f]*\d[0-9a-f]*", "#", " | ".join(map(str, (*said, vector.page))))


def main() -> None:
    """Forge, say what differs, write."""
    forged = _forge()
    for name, vector in forged.items():
        before = _said(FORGED[name]) if name in FORGED else "new"
        if before != _said(vector):
            print(f"{name}: {before} → {_said(vector)}")
    lines = b"".join(msgspec.json.encode(vector) + b"\n" for vector in forged.values())
    FILE.write_bytes(gzip.compress(lines, mtime=0))
    print(f"{FILE}: {len(forged)} tokens, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
