"""Edges that mutants of the verifier showed to be untested: each claim here fails on a changed condition."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from tests.forge import der
from tests.forge.case import by, embedding, judged, recipe
from tests.forge.keys import Scheme
from tests.forge.pki import Crl, Revoked, house, stamper
from tests.forge.token import DOCUMENT, MESSAGE_DIGEST, NOW, attribute
from tests.registrations import rehash
from toolkit.errors import DamagedError, IncompleteError
from toolkit.prereg.checks import agreement, independence
from toolkit.prereg.evidence import Judged, Subject, judge
from toolkit.prereg.pending import begin, pending_document
from toolkit.prereg.record import Authority, FreezeRecord, read_record, write_record
from toolkit.prereg.registration import load_registration
from toolkit.prereg.token.certificate import first_line
from toolkit.prereg.token.der import MAX_ELEMENTS, check_der
from toolkit.prereg.token.verdict import Refused, TokenVerdict
from toolkit.prereg.trust import Trusted, parse_trust

AFTER = datetime(2024, 6, 1, tzinfo=UTC)


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
    ],
)
def test_a_form_that_der_does_not_have_is_refused(raw) -> None:
    with pytest.raises(Refused):
        check_der(raw)


def test_unusual_forms_that_der_has_are_read() -> None:
    for raw in (b"\x9f\x1f\x00", b"\x9f\x81\x00\x00", b"\x02\x02\xff\x7f"):
        check_der(raw)


def test_too_many_elements_are_refused_before_they_are_counted_one_by_one() -> None:
    with pytest.raises(Refused, match="elements"):
        check_der(der.tlv(0x30, b"\x05\x00" * (MAX_ELEMENTS + 2)))


def test_an_unknown_attribute_may_have_several_values() -> None:
    several = attribute("1.3.6.1.4.1.99999.7", der.integer(1), der.integer(2))
    assert judged(recipe(extra_attributes=(several,))).verdict == "verified"


def test_a_message_digest_of_another_type_is_refused() -> None:
    found = judged(recipe(values=((MESSAGE_DIGEST, (der.tlv(0x0C, b"x" * 32),)),)))
    assert found.failed_check == "signed_attributes"
    assert found.message == "signed attribute message_digest is missing"


def test_without_document_and_hash_it_is_incomplete() -> None:
    found = judged(recipe(), document=None)
    assert (found.verdict, found.failed_check) == ("incomplete", "imprint")


def test_content_that_is_no_octet_string_is_refused() -> None:
    raw = recipe().make()
    kind = der.oid("1.2.840.113549.1.9.16.1.4")
    at = raw.index(kind) + len(kind)
    inner = at + len(der.header(raw[at:]))
    assert (raw[at], raw[inner]) == (0xA0, 0x04)
    found = judged(raw[:inner] + b"\x0c" + raw[inner + 1 :])
    assert (found.failed_check, found.message) == ("structure", "its content is no OCTET STRING")


def test_a_reply_with_a_third_part_is_refused() -> None:
    found = judged(der.with_more(recipe().make(), der.NULL))
    assert found.failed_check == "status"
    assert found.message == "the reply has more parts than a status and a token"


def test_a_certificate_taken_off_the_list_again_is_good() -> None:
    crl = Crl(house().intermediate, AFTER, (Revoked(house().signer.number, AFTER, "remove from list"),))
    found = judged(recipe(), crls=(crl.der,))
    assert found.verdict == "verified"
    assert any("taken off" in note for note in found.notes)


def test_ed25519_does_not_excuse_a_weak_digest() -> None:
    found = judged(by(stamper("Forge Ed", house().intermediate, "ed25519"), digest="sha1"))
    assert (found.verdict, found.failed_check) == ("not_verified", "signature")


def test_a_key_that_insists_on_sha256_signs_nothing_under_sha512() -> None:
    insisting = stamper("Forge Insisting", house().intermediate, "pss-sha256")
    assert judged(by(insisting)).verdict == "verified"
    found = judged(by(insisting, scheme=Scheme("pss", "sha512"), digest="sha512"))
    assert found.message == "the signature's parameters are not those that its key insists on"


def test_a_parsers_complaint_is_one_line() -> None:
    assert first_line(ValueError()) == "ValueError"
    assert first_line(ValueError("a\nb")) == "a b"


# --------------------------------------------------------------------------------------------- registrations


def test_one_token_does_not_stand_for_two_authorities() -> None:
    moment = datetime(2026, 9, 8, tzinfo=UTC)
    both = tuple(Authority(n, "https://x.example", moment, "evidence/a.tsr") for n in "AB")
    record = FreezeRecord("public", "d", "0" * 64, "FROZEN.sha256", moment, "", "s", both)
    with pytest.raises(ValueError, match="named twice"):
        read_record(write_record(record))


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


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('name = "FreeTSA"', 'name = "Nobody"', "does not name"),
        ("evidence/document", "FROZEN.sha256", "not that of"),
    ],
)
def test_a_record_that_does_not_fit_is_damaged(restated, before, after, told) -> None:
    text = (restated / "record.toml").read_text()
    assert before in text
    (restated / "record.toml").write_text(text.replace(before, after))
    rehash(restated)
    with pytest.raises(DamagedError, match=told):
        load_registration(restated)


def test_a_freeze_without_its_chain_says_how_to_go_on(restated) -> None:
    (restated / "LATER.chain").unlink()
    with pytest.raises(IncompleteError, match="cut short"):
        load_registration(restated)


def test_independence_wants_every_token_verified() -> None:
    def one(label: str, verdict: str) -> Judged:
        root = label * 64
        authority = Trusted(label, label, f"Operator {label}", "https://x.example", (root,))
        stated = TokenVerdict(verdict, None, None, "", root_sha256=root, key_sha256=(label,))
        return Judged(authority, "t", stated)

    tokens = [one("a", "verified"), one("b", "verified"), one("c", "not_verified")]
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
    token = embedding(house().signer, house().intermediate, house().root)
    (tmp_path / "evidence/a.tsr").write_bytes(token.make())
    (tmp_path / "evidence/b.crl").write_bytes(Crl(house("B").intermediate, AFTER).der)
    authority = Trusted("A", "a", "A", "https://a.example", (hashlib.sha256(house().root.der).hexdigest(),))
    found = judge(Subject(tmp_path, DOCUMENT), authority, "evidence/a.tsr", "", NOW)
    assert found.is_verified
    assert not any("issued none of the chain" in note for note in found.verdict.notes)


def test_a_name_with_a_backslash_is_refused() -> None:
    text = '[[authorities]]\nname = \'a\\b\'\noperator = "o"\naddress = "https://x.example"\n'
    with pytest.raises(DamagedError):
        parse_trust(f'{text}roots = ["{"0" * 64}"]\n', "here")
