"""Real tokens of some twenty authorities: they lie beside the checkout, and the project holds none of them.

Their bytes are other people's; `../shared/fixtures/tsa/manifest.json` says where each was published.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from toolkit.prereg.evidence import CERTIFICATE, read_blocks, second_opinion
from toolkit.prereg.token.verify import Material, verify_token

TSA = Path(__file__).parents[4] / "shared/fixtures/tsa"
MISSING = f"REAL TOKENS ARE MISSING: there is no {TSA}; nothing was judged but crafted ones"
PRESENT = datetime(2026, 11, 20, tzinfo=UTC)
"""The manifest: judge at this time."""


@dataclass(frozen=True)
class Real:
    """A real token, what is given beside it, and whether it is good."""

    name: str
    valid: bool
    why: str
    token: bytes
    material: dict[str, Any]
    facts: dict[str, Any]


def read_real() -> dict[str, Real]:
    """Return the real tokens by name; none where they are missing. Nobody downloads them, CI neither."""
    manifest = TSA / "manifest.json"
    if not manifest.is_file():
        return {}
    return {case["name"]: _read(case) for case in json.loads(manifest.read_text(encoding="utf-8"))["cases"]}


def _read(one: dict[str, Any]) -> Real:
    files = {kind: TSA / path for kind, path in one["files"].items() if kind != "token_format"}
    roots, others, signer = (
        read_blocks(files[kind], CERTIFICATE) if kind in files else ()
        for kind in ("roots", "intermediates", "signer")
    )
    facts = one.get("facts", {})
    digest = (facts["imprint_alg"], bytes.fromhex(facts["imprint"])) if facts.get("imprint") else None
    material = {
        "document": files["data"].read_bytes() if "data" in files else None,
        "digest": None if "data" in files else digest,
        "roots": roots,
        "untrusted": (*others, *signer[1:]),
        "signer": signer[0] if signer else None,
        "request": files["request"].read_bytes() if "request" in files else None,
    }
    expected = one["expected"]
    return Real(
        one["name"],
        expected["verdict"] == "valid",
        expected["why"],
        files["token"].read_bytes(),
        material,
        facts,
    )


REAL = read_real()
VALID = [name for name, real in REAL.items() if real.valid]
INVALID = [name for name, real in REAL.items() if not real.valid]
# Which check says no.
CHECKS = {
    "rejection-2017": "status",
    "globalsign-2017-adobecds-nonce": "chain",
    "globalsign-2017-adobecds-nocert": "chain",
    "sigstage-2025-badsig": "signature",
    "sigstore-conformance-outside-tsa-cert-validity": "chain",
    "nowina-2024-sha1-imprint": "imprint",
    "ed25519-2020-sha1-imprint": "imprint",
    "tspclient-TimeStampTokenWithInvalidTSTInfo": "structure",
    "tspclient-TimeStampTokenWithInvalideContentType": "structure",
    "tspclient-TimeStampTokenWithoutSigningCertificate": "certificate_id",
    "tspclient-TimeStampTokenWithoutCertificate": "signer",
}

pytestmark = pytest.mark.skipif(not REAL, reason=MISSING)


def judged(real: Real, **changed: Any):
    return verify_token(real.token, Material(**real.material | changed), PRESENT)


@pytest.mark.parametrize("name", VALID)
def test_a_good_real_token_is_verified(name) -> None:
    verdict = judged(REAL[name])
    assert verdict.verdict == "verified", verdict.message


@pytest.mark.parametrize("name", INVALID)
def test_a_bad_real_token_fails_where_its_defect_is(name) -> None:
    verdict = judged(REAL[name])
    assert verdict.verdict in {"not_verified", "incomplete"}, REAL[name].why
    assert verdict.failed_check == CHECKS.get(name, verdict.failed_check)


@pytest.mark.parametrize("name", VALID)
def test_what_a_real_token_states_is_read_as_others_read_it(name) -> None:
    verdict, facts = judged(REAL[name]), REAL[name].facts
    stated = datetime.fromisoformat(facts["gen_time"])
    assert verdict.gen_time is not None
    assert abs((verdict.gen_time - stated).total_seconds()) < 1
    assert (verdict.policy, verdict.serial) == (facts["policy"], str(facts["serial"]))
    assert (verdict.imprint_algorithm, verdict.imprint) == (facts["imprint_alg"], facts["imprint"])
    assert verdict.root_sha256 in facts["root_sha256"]


@pytest.mark.parametrize("name", VALID)
def test_openssl_vetoes_no_good_real_token(name) -> None:
    real = REAL[name]
    verdict = second_opinion(real.token, Material(**real.material), judged(real))
    assert verdict.verdict == "verified", verdict.message
    assert verdict.notes[-1].startswith(("openssl agrees", "openssl was not asked"))


def test_openssl_is_asked_about_all_but_one_good_real_token() -> None:
    pss = [name for name in VALID if "RSASSA-PSS" in (judged(REAL[name]).signature_algorithm or "")]
    assert pss == ["fujitsu-2023-rsapss-sha512"]


@pytest.mark.parametrize("name", VALID)
def test_no_good_real_token_holds_under_anothers_root(name) -> None:
    own = REAL[name].material["roots"]
    others = {der for other in VALID for der in REAL[other].material["roots"] if der not in own}
    assert judged(REAL[name], roots=tuple(sorted(others))).failed_check == "chain"
