"""Forged tokens, one defect each: what the verifier must refuse, where, and what it must accept."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from tests.conftest import CHECKOUT
from tests.forge import der
from tests.forge.case import embedding
from tests.forge.defects import CASES
from tests.forge.edges import AFTER
from tests.forge.pki import Crl, house
from tests.forge.token import DOCUMENT, NOW
from tests.forge.vectors import FORGED, USUAL, by_check
from tests.golden.measure_engines import GIVEN_TIME, Question, ask
from tests.registrations import chained, rehash
from tests.unit.decisions.study import RULES
from tests.unit.prereg.drafts import H, add_to, amendment, freeze_with, problems, verify, write_draft
from toolkit.prereg.chain import begin, pending_document
from toolkit.prereg.evidence import Judged, Subject, judge, places
from toolkit.prereg.record import Trusted
from toolkit.prereg.token.der import MAX_ELEMENTS, check_der
from toolkit.prereg.token.verdict import Refused, TokenVerdict
from toolkit.prereg.token.verify import Material, verify_token
from toolkit.prereg.verification import StudyRuns, agreement, independence

VALID = [name for name in FORGED if name.startswith("valid: ")]


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_token_gets_its_verdict(name) -> None:
    vector = FORGED[name]
    assert verify_token(vector.token, vector.material, vector.at) == vector.verdict


def test_every_check_of_a_token_has_several_defects() -> None:
    assert [check for check, count in by_check().items() if count < 4] == []
    assert [name for name, vector in FORGED.items() if vector.verdict.verdict == "verified"] == VALID
    assert len(VALID) >= 100


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGED)
def test_a_token_forged_now_gets_the_same_verdict(name) -> None:
    """With keys of its own; what is said of it may name another number."""
    made, stored = CASES[name](), FORGED[name].verdict
    verdict = verify_token(made.token, Material(**made.material), made.at)
    assert (verdict.verdict, verdict.failed_check) == (made.expected, made.failed_check), verdict.message
    assert (stored.verdict, stored.failed_check) == (made.expected, made.failed_check)


@pytest.mark.parametrize("name", VALID)
def test_openssl_accepts_what_is_called_valid(name) -> None:
    vector = FORGED[name]
    # At the token's own time OpenSSL takes every list issued later for not yet valid.
    question = Question(name, "valid", True, vector.token, {**vars(vector.material), "crls": ()}, vector.at)
    # Where OpenSSL cannot judge, it must still be seen to refuse: otherwise the excuse is out of date.
    assert ask(GIVEN_TIME, question) == (vector.beyond_openssl is None, None), vector.beyond_openssl


# What must be said, so that the reader knows what to do; and of what is unusual.
SAID = {
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
    "a reply of more parts": "the reply has more parts",
    "content that is text for octets": "its content is no OCTET STRING",
    "a message digest that is text": "signed attribute message_digest is missing",
    "SHA-1 in an Ed25519 signature": "weak or unknown algorithm sha1",
    "PSS parameters that the key does not allow": "not those that its key insists on",
    # In notes.
    "valid: granted with modifications": "modifications",
    "valid: unsigned attribute": "unsigned attributes",
    "valid: ESS v1": "SHA-1",
    "valid: accuracy of an hour": "3600",
    "valid: list older than genTime": "older",
    "valid: list of another issuer": "not used",
    "valid: signer revoked after genTime: superseded": "superseded",
}


# Only a list that can vouch does.
REVOCATION = {
    "valid: usual": "not checked",
    "valid: clean list": "not revoked",
    "valid: clean lists for the whole chain": "not revoked",
    "valid: clean list that has run out": "not revoked",
    "valid: clean list of users' certificates": "not revoked",
    "valid: list older than genTime": "not checked",
    "valid: list of another issuer": "not checked",
    "valid: clean delta list": "not checked",
    "valid: clean list of some reasons": "not checked",
    "valid: clean list of authorities' certificates": "not checked",
    "valid: clean list with an unknown critical extension": "not checked",
    "valid: signer whose issuer signs no lists": "not checked",
    "valid: signer taken off the list again": "was taken off the revocation list again",
    "valid: list issued at genTime": "not checked",
    "valid: list issued a second after genTime": "not revoked",
    "valid: list issued at the present": "not revoked",
    "valid: list issued a second after the present": "not checked",
}


@pytest.mark.parametrize(("name", "said"), SAID.items())
def test_a_stored_verdict_says_what_was_found(name, said) -> None:
    verdict = FORGED[name].verdict
    assert said in " | ".join((verdict.message, *verdict.notes))


@pytest.mark.parametrize("name", REVOCATION)
def test_only_a_list_that_can_vouch_vouches(name) -> None:
    assert REVOCATION[name] in (FORGED[name].verdict.revocation or "")


def verdict_of_bytes(raw: bytes) -> TokenVerdict:
    usual = FORGED[USUAL]
    return verify_token(raw, usual.material, usual.at)


def test_no_byte_of_a_token_can_be_changed() -> None:
    """One bit of every third byte; only the status, which nobody signs, may become another (0 or 1)."""
    token = FORGED[USUAL].token
    accepted = []
    for position in range(0, len(token), 3):
        changed = bytearray(token)
        changed[position] ^= 1 << position % 8
        if verdict_of_bytes(bytes(changed)).verdict == "verified":
            accepted.append(position)
    assert {*accepted} <= {token.index(b"\x02\x01\x00") + 2}


def test_a_token_cut_off_anywhere_is_refused() -> None:
    token = FORGED[USUAL].token
    assert {verdict_of_bytes(token[:end]).failed_check for end in range(1, len(token))} == {"encoding"}


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


VERIFIED = TokenVerdict("verified", None, None, "")


# ---------------------------------------------------------------------------------------------------- tokens


@pytest.mark.parametrize(
    "raw",
    [
        b"\x30\x80" + b"\x05\x00" * 64,  # not 128 bytes, but an indefinite length
        b"\x9f\x1e\x00",  # tag number 30 in the long form
        b"\x9f\x80\x1f\x00",  # a tag number with a leading zero
        b"\x02\x02\xff\x80",  # a negative integer with a needless byte
        b"\x06\x01\x80",
        b"\x03\x02\x08\x00",
        b"\x03\x02\x01\x03",  # padding of bits that is not zero
    ],
)
def test_a_form_that_der_does_not_have_is_refused(raw) -> None:
    with pytest.raises(Refused):
        check_der(raw)


@pytest.mark.parametrize(
    "raw", [b"\x9f\x1f\x00", b"\x9f\x81\x00\x00", b"\x02\x02\xff\x7f", b"\x03\x02\x01\x02"]
)
def test_unusual_forms_that_der_has_are_read(raw) -> None:
    check_der(raw)


def test_too_many_elements_are_refused_before_they_are_counted_one_by_one() -> None:
    with pytest.raises(Refused, match="elements"):
        check_der(der.tlv(0x30, b"\x05\x00" * (MAX_ELEMENTS + 2)))


# --------------------------------------------------------------------------------------------- registrations


def test_what_waits_for_another_document_is_removed(tmp_path) -> None:
    old = begin(tmp_path, b"one") / "evidence" / "A.tsr"
    old.write_bytes(b"token")
    begin(tmp_path, b"one")
    assert old.exists()
    begin(tmp_path, b"two")
    assert not old.exists()
    assert pending_document(tmp_path) == b"two"


def test_what_waits_without_its_evidence_is_begun_anew(tmp_path) -> None:
    (begin(tmp_path, b"one") / "evidence").rmdir()
    assert (begin(tmp_path, b"one") / "evidence").is_dir()


def test_independence_wants_every_token_verified() -> None:
    tokens = []
    for label, verdict in (("a", "verified"), ("b", "verified"), ("c", "not_verified")):
        authority = Trusted(label, f"Operator {label}", "https://x.example", (label * 64,))
        stated = TokenVerdict(verdict, None, None, "", root_sha256=label * 64, key_sha256=(label,))
        tokens.append(Judged(authority, "t", stated))
    trust = [each.authority for each in tokens]
    assert independence(tokens, trust).outcome == "missing"
    assert independence(tokens[:2], trust).outcome == "passed"


def test_times_may_be_a_day_apart_and_no_more() -> None:
    def outcome(apart: timedelta) -> str:
        verdicts = [TokenVerdict("verified", None, None, "", gen_time=NOW + d) for d in (timedelta(), apart)]
        return agreement([Judged(None, "t", verdict) for verdict in verdicts]).outcome

    assert outcome(timedelta(hours=24)) == "passed"
    assert outcome(timedelta(hours=24, microseconds=1)) == "failed"


def test_lists_of_other_authorities_are_no_news_in_a_registration(tmp_path) -> None:
    (tmp_path / "evidence").mkdir()
    made = embedding(house().signer, house().intermediate, house().root).make()
    (tmp_path / "evidence/a.tsr").write_bytes(made)
    (tmp_path / "evidence/b.crl").write_bytes(Crl(house("B").intermediate, AFTER).der)
    authority = Trusted("A", "A", "https://a.example", (hashlib.sha256(house().root.der).hexdigest(),))
    token = judge(Subject(tmp_path, DOCUMENT), authority, "evidence/a.tsr", "", NOW)
    assert token.is_verified
    assert not any("issued none of the chain" in note for note in token.verdict.notes)


def test_a_freeze_made_here_cannot_be_called_a_restatement(frozen, pair) -> None:
    """Its amendments would need no token: one made after the runs would pass under any date."""
    shutil.copy(frozen / "FROZEN.sha256", frozen / "evidence" / "list")
    record = frozen / "record.toml"
    record.write_text(record.read_text().replace('place = "FROZEN.sha256"', 'place = "evidence/list"'))
    (frozen / "amendments").mkdir()
    (frozen / "amendments" / "A1.toml").write_bytes(amendment())
    rehash(frozen, [*chained(frozen), "amendments/A1.toml"])
    assert (3, "failed") in problems(verify(frozen, *pair))


def test_a_freeze_that_excepts_every_run_does_not_precede_the_runs(tmp_path, pair) -> None:
    exception = '\n[[exceptions]]\nrun = "r"\nreason = "It was a pilot."\n'
    folder = write_draft(tmp_path, rules=RULES + H + exception)
    freeze_with(folder, *pair)
    run = {"run_id": "r", "role": "primary", "launched_at": datetime.now(UTC) - timedelta(days=99)}
    study = StudyRuns("s", [run], ("primary",))
    result = verify(folder, *pair, studies=[study])
    assert result.chronology[0].verdict == "run_before_freeze"
    assert (7, "failed") in problems(result)


def test_a_proven_amendment_is_dated_by_its_tokens(frozen, pair) -> None:
    """A day that an amendment names, far from its tokens', is what a reader would be shown."""
    add_to(frozen, amendment(), *pair)
    assert verify(frozen, *pair).verdict == "verified"
    path = frozen / "amendments" / "A1.toml"
    path.write_text(re.sub(r'dated = ".*"', 'dated = "2020-01-01"', path.read_text()))
    rehash(frozen)
    chain = (frozen / "LATER.chain").read_bytes()
    for source in pair:
        reply = source.obtain(hashlib.sha256(chain).digest(), lambda _: VERIFIED, lambda _: None)
        token, request = (frozen / name for name in places("A1", source.trusted))
        token.write_bytes(reply.response)
        request.write_bytes(reply.request)
    assert problems(verify(frozen, *pair)) == [(8, "failed")]


def test_junk_beside_good_certificates_spoils_no_token(frozen, pair) -> None:
    (frozen / "evidence" / "junk.pem").write_bytes(b"0\x03\x02\x01\x01")
    assert verify(frozen, *pair).verdict == "verified"
