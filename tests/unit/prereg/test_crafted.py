"""Forged tokens, one defect each: what the verifier must refuse, where, and what it must accept."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest

from tests.conftest import CHECKOUT
from tests.forge import der
from tests.forge.case import given, verified
from tests.forge.defects import CASES, CHECKS, Case
from tests.forge.defects_time import ISSUED, SECOND, crl
from tests.forge.pki import SERVER_AUTH, authority, house, root, stamper
from tests.forge.token import CONTENT_TYPE, NOW, STAMPED, TST_INFO, Ess, Recipe
from tests.golden.measure_engines import GIVEN_TIME, Question, ask
from toolkit.prereg.token.der import check_der
from toolkit.prereg.token.verdict import Refused
from toolkit.prereg.token.verify import STEPS, Material, verify_token

VALID = [name for name in CASES if name.startswith("valid: ")]
DEFECTS = [name for name in CASES if not name.startswith("valid: ")]


@cache
def built(name: str) -> Case:
    return CASES[name]()


def judged(case: Case):
    return verify_token(case.token, Material(**case.material), at=case.at)


@pytest.mark.parametrize("name", CASES)
def test_a_forged_token_gets_its_verdict(name) -> None:
    case = built(name)
    verdict = judged(case)
    assert (verdict.verdict, verdict.failed_check) == (case.expected, case.failed_check), verdict.message


def test_every_check_of_a_token_has_several_defects() -> None:
    assert len(DEFECTS) >= 130
    assert len(VALID) >= 20
    assert {check: len(names) for check, names in CHECKS.items() if len(names) < 4} == {}
    assert [check for _, check in STEPS] == list(CHECKS)


@pytest.mark.parametrize("name", VALID)
def test_openssl_accepts_what_is_called_valid(name) -> None:
    case = built(name)
    # At the token's own time OpenSSL takes every list issued later for not yet valid.
    question = Question(name, "valid", True, case.token, {**case.material, "crls": ()}, case.at)
    # Where OpenSSL cannot judge, it must still be seen to refuse: otherwise the excuse is out of date.
    assert ask(GIVEN_TIME, question) == (case.beyond_openssl is None, None), case.beyond_openssl


# What the message must say, so that the reader knows what to do.
MESSAGES = {
    "empty": "empty",
    "PEM": "PEM",
    "base64 in lines": "base64",
    "HTML": "HTML",
    "rejected with a text": "Time source is not synchronised",
    "document with other line endings": "line endings",
    "token for the document with other line endings": "line endings",
    "token for the hash of the document": "hash of the hash",
    "token for the hash in hexadecimal": "hexadecimal",
    "another nonce": "nonce",
    "request for another document": "imprint",
    "no certificate at all": "missing",
    "digest SHA-1": "weak",
    "RSA key of 1024 bits": "1024",
    "eku not critical": "critical",
    "another root pinned": "Forge Root B",
    "signer expired at genTime": "expired",
    "signer revoked before genTime: key compromise": "2024-01-31",
}
NOTES = {
    "valid: granted with modifications": "modifications",
    "valid: unsigned attribute": "unsigned attributes",
    "valid: ESS v1": "SHA-1",
    "valid: accuracy of an hour": "3600",
    "valid: list older than genTime": "older",
    "valid: list of another issuer": "not used",
    "valid: signer revoked after genTime: superseded": "superseded",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_says_what_was_found(name) -> None:
    assert MESSAGES[name] in judged(built(name)).message


@pytest.mark.parametrize("name", NOTES)
def test_a_note_says_what_is_unusual(name) -> None:
    assert NOTES[name] in " | ".join(judged(built(name)).notes)


REVOCATION = {
    "valid: usual": "not checked",
    "valid: clean list": "not revoked",
    "valid: clean lists for the whole chain": "not revoked",
    "valid: clean list that has run out": "not revoked",
    "valid: clean list of users' certificates": "not revoked",
    "valid: list older than genTime": "not checked",
    "valid: list of another issuer": "not checked",
    "valid: signer revoked after genTime: superseded": "superseded",
    "valid: clean delta list": "not checked",
    "valid: clean list of some reasons": "not checked",
    "valid: clean list of authorities' certificates": "not checked",
    "valid: clean list with an unknown critical extension": "not checked",
}


@pytest.mark.parametrize("name", REVOCATION)
def test_only_a_list_that_can_vouch_vouches(name) -> None:
    assert REVOCATION[name] in judged(built(name)).revocation


@pytest.mark.parametrize(
    ("issued", "at", "known"),
    [
        (STAMPED, NOW, "not checked"),
        (STAMPED + SECOND, NOW, "not revoked"),
        (ISSUED, ISSUED, "not revoked"),
        (ISSUED, ISSUED - SECOND, "not checked"),
    ],
)
def test_a_list_vouches_only_for_older_tokens_and_not_before_its_time(issued, at, known) -> None:
    assert known in judged(verified(given(Recipe(), crls=(crl(issued=issued),), at=at))).revocation


def test_a_list_of_an_authority_that_signs_none_is_not_used() -> None:
    issuer = authority("Forge Listless", house().root, usages=("certificate_signing",))
    case = verified(given(Recipe(signer=stamper("Forge Unlisted", issuer)), crls=(crl(issuer=issuer),)))
    assert judged(case).revocation == "not checked"


def test_further_certificates_that_are_named_are_those_of_the_chain() -> None:
    for house_of_further, failed in (("A", None), ("B", "chain")):
        further = Ess(house(house_of_further).intermediate.der)
        case = verified(Recipe(ess=(Ess(house().signer.der), further)))
        assert judged(case).failed_check == failed


def test_an_attribute_whose_first_value_is_right_has_no_second_one() -> None:
    values = (CONTENT_TYPE, (der.oid(TST_INFO), der.oid(f"{TST_INFO}.1")))
    assert judged(verified(Recipe(values=(values,)))).failed_check == "signed_attributes"


def test_a_self_issued_authority_does_not_lengthen_its_path() -> None:
    top = root("Forge Short", path_length=1)
    old = authority("Forge Rolling", top, "rsa-2048")
    signer = stamper("Forge Rolled", authority("Forge Rolling", old, serial=7))
    case = verified(given(Recipe(signer=signer), roots=(top.der,)))
    assert judged(case).verdict == "verified"


def test_an_authority_for_web_servers_alone_issues_no_stampers() -> None:
    issuer = authority("Forge Web", house().root, purposes=(SERVER_AUTH,))
    case = verified(Recipe(signer=stamper("Forge Stray", issuer)))
    assert judged(case).failed_check == "chain"
    pinned = case.material | {"roots": (issuer.der,)}
    assert judged(replace(case, material=pinned)).verdict == "verified"


def test_a_reply_does_not_grant_and_fail() -> None:
    assert judged(verified(Recipe(failure=14))).failed_check == "status"


def test_padding_of_bits_is_zero() -> None:
    check_der(b"\x03\x02\x01\x02")
    with pytest.raises(Refused, match="DER writes otherwise"):
        check_der(b"\x03\x02\x01\x03")


def test_no_byte_of_a_token_can_be_changed() -> None:
    """One bit of every third byte; only the status, which nobody signs, may become another (0 or 1)."""
    case = built("valid: usual")
    status = case.token.index(b"\x02\x01\x00") + 2
    accepted = []
    for position in range(0, len(case.token), 3):
        changed = bytearray(case.token)
        changed[position] ^= 1 << position % 8
        if judged(replace(case, token=bytes(changed))).verdict == "verified":
            accepted.append(position)
    assert set(accepted) <= {status}


def test_a_token_cut_off_anywhere_is_refused() -> None:
    case = built("valid: usual")
    ends = {judged(replace(case, token=case.token[:end])).failed_check for end in range(1, len(case.token))}
    assert ends == {"encoding"}


def test_the_readmes_example_works_with_the_folder_alone_under_another_name(tmp_path) -> None:
    folder = CHECKOUT / "toolkit/prereg/token"
    shutil.copytree(folder, tmp_path / "taken")
    _, _, example = (folder / "README.md").read_text(encoding="utf-8").partition("```python\n")
    script = example.partition("```")[0].replace("toolkit.prereg.token", "taken")
    script += "import sys\nassert 'toolkit' not in sys.modules\n"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("TokenVerdict(verdict='verified'")
