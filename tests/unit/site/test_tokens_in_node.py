"""Tokens as the browser judges them: the program's own verifier says the same, but for what is listed."""

import base64
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import pytest

from tests.forge.defects import CASES
from tests.unit.prereg.test_real_tokens import MISSING, PRESENT, REAL
from tests.unit.site.node import ASSETS, in_node
from toolkit.places import Home
from toolkit.prereg.registration import is_draft, load_registration
from toolkit.prereg.token.verify import Material, verify_token
from toolkit.site.registers import frozen_files

TOKENS = """
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const judge = ({ token, document, certificates, ...given }) => toolkitTokens.verifyToken(bytes(token), {
  ...given, document: document === null ? undefined : bytes(document), certificates: certificates.map(bytes),
});
const answers = [];
for (const one of given) answers.push(await judge(one));
return answers;
"""
REGISTRATIONS = """
globalThis.toolkitRegisters = {};
const answers = [];
for (const [name, files] of Object.entries(given)) {
  toolkitRegisters[`registrations/${name}`] = files;
  answers.push(await verifyTokens(name).catch((error) => error.message));
}
return answers;
"""
SAME = {"verified": True, "not_verified": False, "incomplete": None}
# No browser verifies with these keys as it stands.
UNSUPPORTED = {
    "valid: Ed25519",
    "valid: PSS key",
    "valid: PSS key with parameters",
    "valid: intermediate with an Ed25519 key",
}
# What the page says that it leaves to the program: encoding, further certificates, what nobody signs.
LOOSER = {
    "ESS v2 with another serial number",
    "ESS v2 with another issuer",
    "ESS v1 with another serial number",
    "an unknown attribute twice",
    "algorithm protection of another digest",
    "algorithm protection of another signature",
    "ECDSA signature with a trailing byte",
    "ECDSA signature with a byte too many in its length",
    "PSS with its mask named wrongly",
    "PSS with another trailer",
    "PSS with another mask than MGF1",
    "PSS hash with something empty for its NULL",
    "PSS mask's hash with something empty for its NULL",
    "embedded bystander with a wrong signature",
    "embedded bystander authority with a wrong signature",
    "embedded copy of the pinned certificate with another name",
    "embedded copy of the root with another issuer",
}
CHECKED = ("imprint", "certificate_id", "signed_attributes", "signature", "purpose", "chain")


def base(content: bytes) -> str:
    return base64.b64encode(content).decode()


def asked(token: bytes, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the browser is asked of a token, with the same material."""
    roots, signer = given.get("roots", ()), given.get("signer")
    beside = (*roots, *given.get("untrusted", ()), *((signer,) if signer else ()))
    algorithm, digest = given.get("digest") or ("", b"")
    return {
        "token": base(token),
        "document": None if given.get("document") is None else base(given["document"]),
        "digest": {"algorithm": algorithm.upper().replace("SHA", "SHA-"), "hex": digest.hex()},
        "roots": [sha256(der).hexdigest() for der in roots],
        "certificates": [base(der) for der in beside],
    }


def judged(tokens: Iterable[tuple[bytes, Mapping[str, Any]]]) -> list[Any]:
    answers: list[Any] = in_node(TOKENS, [asked(*each) for each in tokens], ASSETS / "tokens.js")
    return answers


@pytest.fixture(scope="module")
def shipped(home: Home) -> dict[str, dict[str, bytes]]:
    """Return every frozen registration's files as the site carries them."""
    folders = [f for f in sorted((home.root / "prereg").iterdir()) if f.is_dir() and not is_draft(f)]
    return {folder.name: frozen_files(load_registration(folder)) for folder in folders}


def verified(registrations: Mapping[str, Mapping[str, bytes]]) -> list[Any]:
    given = {name: {k: base(v) for k, v in files.items()} for name, files in registrations.items()}
    answers: list[Any] = in_node(REGISTRATIONS, given, ASSETS / "tokens.js")
    return answers


@pytest.mark.skipif(not REAL, reason=MISSING)
def test_every_real_token_gets_the_same_verdict_in_the_browser() -> None:
    answers = judged((real.token, real.material) for real in REAL.values())
    for (name, real), answer in zip(REAL.items(), answers, strict=True):
        expected = verify_token(real.token, Material(**real.material), PRESENT)
        assert (answer["ok"], answer["reason"]) == (SAME[expected.verdict], answer["reason"]), name


@pytest.mark.slow
def test_of_forged_tokens_the_browser_accepts_none_but_those_listed_and_refuses_no_good_one() -> None:
    cases = {name: made() for name, made in CASES.items()}
    cases = {n: case for n, case in cases.items() if case.failed_check in (None, *CHECKED)}
    answers = judged((case.token, case.material) for case in cases.values())
    told = {name: answer["ok"] for name, answer in zip(cases, answers, strict=True)}
    good = {name for name, case in cases.items() if case.failed_check is None}
    assert {name for name in good if told[name] is not True} == UNSUPPORTED
    assert {name for name in set(cases) - good if told[name] is True} == LOOSER


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("valid: usual", ""),
        ("signer expired at genTime", "leads to no pinned root"),
        ("another root pinned", "leads to no pinned root"),
        ("eku code signing", "not one for timestamping alone"),
        ("signature with a bit flipped", "signature does not match"),
        ("ESS v2 names another signer", "name another certificate"),
    ],
)
def test_a_forged_token_is_refused_for_its_own_reason(case: str, reason: str) -> None:
    made = CASES[case]()
    [answer] = judged([(made.token, made.material)])
    assert answer["ok"] is (not reason)
    assert reason in answer["reason"]


def test_every_token_of_the_shipped_demonstrations_is_verified(shipped: dict[str, dict[str, bytes]]) -> None:
    own = {name: files for name, files in shipped.items() if "evidence/freeze.demonstration-a.tsr" in files}
    assert len(own) >= 6
    for (name, files), answers in zip(own.items(), verified(own), strict=True):
        assert [a["ok"] for a in answers] == [True] * sum(place.endswith(".tsr") for place in files), name
        assert all("Not checked here: revocation" in answer["notChecked"] for answer in answers)


def test_of_tokens_that_are_not_here_nothing_is_said(shipped: dict[str, dict[str, bytes]]) -> None:
    [answers] = verified({"paired-rollouts": shipped["paired-rollouts"]})
    assert [(a["authority"], a["ok"]) for a in answers] == [("FreeTSA", None), ("DigiCert", None)]
    assert "is not on this site" in answers[0]["says"]


def flipped(content: bytes, at: int = -1) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("evidence/freeze.demonstration-a.tsr", "its signature does not match"),
        ("rules.toml", "SHA-256 of rules.toml: expected"),
        ("trust.toml", "SHA-256 of trust.toml: expected"),
        ("amendments/A1.toml", "SHA-256 of amendments/A1.toml: expected"),
    ],
)
def test_a_changed_byte_of_a_registration_is_found(shipped, place, said) -> None:
    files = shipped["embedded"]
    [answer] = verified({"embedded": files | {place: flipped(files[place])}})
    assert said in (answer if isinstance(answer, str) else answer[0]["says"])


def test_a_list_that_was_made_anew_for_other_files_is_not_the_one_that_was_timestamped(shipped) -> None:
    files = dict(shipped["coupled"])
    files["rules.toml"] += b"\n"
    hashed = {name: sha256(files[name]).hexdigest() for name in ("protocol.md", "rules.toml", "trust.toml")}
    files["FROZEN.sha256"] = "".join(f"{h}  {name}\n" for name, h in hashed.items()).encode()
    files["LATER.chain"] = b""
    [answers] = verified({"coupled": files})
    assert [answer["ok"] for answer in answers] == [False, False]
    assert "its imprint" in answers[0]["says"]
    assert "is not the document's SHA-256" in answers[0]["says"]
