"""Tokens as the browser judges them: the program's own verifier says the same, but for what is listed."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pytest

from tests.forge.vectors import FORGED, ON_THE_PAGE, Page
from tests.unit.prereg.test_real_tokens import MISSING, PRESENT, REAL
from tests.unit.site.node import ASSETS, base, in_node, judged_in_node
from toolkit.places import Home
from toolkit.prereg.registration import is_draft, load_registration
from toolkit.prereg.token.verify import Material, verify_token
from toolkit.site.registers import frozen_files

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
    "a further certificate of another chain",
    "embedded bystander with a wrong signature",
    "embedded bystander authority with a wrong signature",
    "embedded copy of the pinned certificate with another name",
    "embedded copy of the root with another issuer",
}


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
    answers = judged_in_node((real.token, Material(**real.material)) for real in REAL.values())
    for (name, real), answer in zip(REAL.items(), answers, strict=True):
        expected = verify_token(real.token, Material(**real.material), PRESENT)
        assert (answer["ok"], answer["reason"]) == (SAME[expected.verdict], answer["reason"]), name


def test_of_forged_tokens_the_browser_accepts_none_but_those_listed_and_refuses_no_good_one() -> None:
    asked = {name: vector for name, vector in FORGED.items() if vector.page}
    assert {*asked} == {name for name, v in FORGED.items() if v.verdict.failed_check in ON_THE_PAGE}
    answers = judged_in_node((vector.token, vector.material) for vector in asked.values())
    told = {name: Page(a["ok"], a["reason"]) for name, a in zip(asked, answers, strict=True)}
    assert told == {name: vector.page for name, vector in asked.items()}
    good = {name for name, vector in asked.items() if vector.verdict.verdict == "verified"}
    assert {name for name in good if told[name].ok is not True} == UNSUPPORTED
    assert {name for name in {*asked} - good if told[name].ok is True} == LOOSER


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
