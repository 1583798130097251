"""Edges that mutants of the verifier showed to be untested: each claim here fails on a changed condition."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from tests.forge import der
from tests.forge.case import recipe
from tests.forge.pki import Crl, house
from tests.forge.token import DOCUMENT, MESSAGE_DIGEST, NOW, attribute
from toolkit.errors import DamagedError, IncompleteError
from toolkit.prereg.chronology import StudyRuns
from toolkit.prereg.token.der import MAX_ELEMENTS, check_der
from toolkit.prereg.token.verdict import Refused
from toolkit.prereg.token.verify import Material, verify_token

ROOT = (house().root.der,)


def judged(token, **knobs):
    material = {"document": DOCUMENT, "roots": ROOT} | knobs
    return verify_token(token.make(), Material(**material), NOW)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x30\x80" + b"\x05\x00" * 64,  # not 128 bytes, but an indefinite length
        b"\x9f\x1e\x00",  # tag number 30 in the long form
        b"\x9f\x80\x1f\x00",  # a tag number with a leading zero
    ],
)
def test_a_form_that_der_does_not_have_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused):
        check_der(raw)


def test_a_tag_of_two_bytes_may_begin_with_31() -> None:
    check_der(b"\x9f\x1f\x00")
    check_der(b"\x9f\x81\x00\x00")


def test_too_many_elements_are_refused_before_they_are_counted_one_by_one() -> None:
    with pytest.raises(Refused, match="elements"):
        check_der(der.tlv(0x30, b"\x05\x00" * (MAX_ELEMENTS + 2)))


def test_an_unknown_attribute_may_have_several_values() -> None:
    several = attribute("1.3.6.1.4.1.99999.7", der.integer(1), der.integer(2))
    assert judged(recipe(extra_attributes=(several,))).verdict == "verified"


def test_a_message_digest_of_another_type_is_refused() -> None:
    found = judged(recipe(values=((MESSAGE_DIGEST, (der.tlv(0x0C, b"x" * 32),)),)))
    assert (found.failed_check, found.message) == (
        "signed_attributes",
        "signed attribute message_digest is missing",
    )


def test_without_document_and_hash_it_is_incomplete() -> None:
    found = judged(recipe(), document=None)
    assert (found.verdict, found.failed_check) == ("incomplete", "imprint")


def test_content_that_is_no_octet_string_is_refused() -> None:

    info = recipe()
    raw = info.make()
    at = raw.index(der.oid("1.2.840.113549.1.9.16.1.4")) + len(der.oid("1.2.840.113549.1.9.16.1.4"))
    assert raw[at] == 0xA0
    inner = at + len(der.header(raw[at:]))
    assert raw[inner] == 0x04
    changed = raw[:inner] + b"\x0c" + raw[inner + 1 :]
    found = verify_token(changed, Material(document=DOCUMENT, roots=ROOT), NOW)
    assert (found.failed_check, found.message) == ("structure", "its content is no OCTET STRING")


def test_one_token_does_not_stand_for_two_authorities() -> None:
    from toolkit.prereg.record import Authority, FreezeRecord, read_record, write_record

    moment = datetime(2026, 9, 8, tzinfo=UTC)
    both = tuple(Authority(n, "https://x.example", moment, "evidence/a.tsr") for n in "AB")
    record = FreezeRecord("public", "d", "0" * 64, "FROZEN.sha256", moment, "", "s", both)
    with pytest.raises(ValueError, match="named twice"):
        read_record(write_record(record))


# to test_pending.py (there is none)
def test_what_waits_for_another_document_is_removed(tmp_path) -> None:
    from toolkit.prereg.pending import begin, pending_document

    old = begin(tmp_path, b"one") / "evidence" / "A.tsr"
    old.write_bytes(b"token")
    begin(tmp_path, b"one")
    assert old.exists()
    begin(tmp_path, b"two")
    assert not old.exists()
    assert pending_document(tmp_path) == b"two"


def test_what_waits_without_its_evidence_is_begun_anew(tmp_path) -> None:
    from toolkit.prereg.pending import begin

    (begin(tmp_path, b"one") / "evidence").rmdir()
    assert (begin(tmp_path, b"one") / "evidence").is_dir()


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('name = "FreeTSA"', 'name = "Nobody"', "does not name"),
        ("evidence/document", "FROZEN.sha256", "not that of"),
    ],
)
def test_a_record_that_does_not_fit_is_damaged(copy, before: str, after: str, told: str) -> None:
    from tests.registrations import rehash
    from toolkit.prereg.registration import load_registration

    folder = copy.registrations / "paired-rollouts"
    text = (folder / "record.toml").read_text()
    assert before in text
    (folder / "record.toml").write_text(text.replace(before, after))
    rehash(folder)
    with pytest.raises(DamagedError, match=told):
        load_registration(folder)


def test_a_freeze_without_its_chain_says_how_to_go_on(copy) -> None:
    from toolkit.prereg.registration import load_registration

    folder = copy.registrations / "paired-rollouts"
    (folder / "LATER.chain").unlink()
    with pytest.raises(IncompleteError, match="cut short"):
        load_registration(folder)


def test_independence_wants_every_token_verified() -> None:
    from toolkit.prereg.checks import independence
    from toolkit.prereg.evidence import Judged
    from toolkit.prereg.token.verdict import TokenVerdict
    from toolkit.prereg.trust import Trusted

    def one(label: str, verdict: str) -> Judged:
        root = label * 64
        authority = Trusted(label, label, f"Operator {label}", "https://x.example", (root,))
        return Judged(
            authority, "t", TokenVerdict(verdict, None, None, "", root_sha256=root, key_sha256=(label,))
        )

    tokens = [one("a", "verified"), one("b", "verified"), one("c", "not_verified")]
    trust = [judged.authority for judged in tokens]
    assert independence(tokens, trust).outcome == "missing"
    assert independence(tokens[:2], trust).outcome == "passed"


@pytest.mark.parametrize("edge", [timedelta(hours=24), timedelta(hours=24, microseconds=1)])
def test_times_may_be_a_day_apart_and_no_more(edge: timedelta) -> None:
    from toolkit.prereg.checks import agreement
    from toolkit.prereg.evidence import Judged
    from toolkit.prereg.token.verdict import TokenVerdict

    tokens = [
        Judged(None, "t", TokenVerdict("verified", None, None, "", gen_time=NOW + d))
        for d in (timedelta(), edge)
    ]
    assert agreement(tokens).outcome == ("passed" if edge == timedelta(hours=24) else "failed")


def test_a_needless_byte_of_a_negative_integer_is_refused() -> None:
    with pytest.raises(Refused):
        check_der(b"\x02\x02\xff\x80")
    check_der(b"\x02\x02\xff\x7f")


def test_a_run_without_a_launch_time_is_named(home) -> None:
    from tests.unit.prereg.test_verification import ROLES, verified

    run = {"run_id": "whichever", "role": "primary", "launched_at": None}
    result = verified(home.registration_folder("paired-rollouts"), StudyRuns("s", [run], ROLES))
    assert "no launch time, or one in the future: whichever" in next(
        c.detail for c in result.checks if c.step == 7
    )


def test_lists_of_other_authorities_are_no_news_in_a_registration(tmp_path) -> None:
    from toolkit.prereg.evidence import Subject, judge
    from toolkit.prereg.trust import Trusted

    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence/a.tsr").write_bytes(
        recipe(certificates=tuple(c.der for c in (house().signer, house().intermediate, house().root))).make()
    )
    (tmp_path / "evidence/b.crl").write_bytes(
        Crl(house("B").intermediate, datetime(2024, 6, 1, tzinfo=UTC)).der
    )
    authority = Trusted("A", "a", "A", "https://a.example", (hashlib.sha256(house().root.der).hexdigest(),))
    found = judge(Subject(tmp_path, DOCUMENT), authority, "evidence/a.tsr", "", NOW)
    assert found.is_verified
    assert not any("issued none of the chain" in note for note in found.verdict.notes)


def test_a_reply_with_a_third_part_is_refused() -> None:
    raw = recipe().make()
    body = raw[len(der.header(raw)) :]
    found = verify_token(der.seq(body, der.NULL), Material(document=DOCUMENT, roots=ROOT), NOW)
    assert (found.failed_check, found.message) == (
        "status",
        "the reply has more parts than a status and a token",
    )


@pytest.mark.parametrize("raw", [b"\x06\x01\x80", b"\x03\x02\x08\x00"])
def test_a_value_that_der_does_not_have_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused):
        check_der(raw)


def test_a_certificate_taken_off_the_list_again_is_good() -> None:
    from tests.forge.pki import Revoked

    after = datetime(2024, 6, 1, tzinfo=UTC)
    crl = Crl(house().intermediate, after, (Revoked(house().signer.number, after, "remove from list"),))
    found = judged(recipe(), crls=(crl.der,))
    assert found.verdict == "verified"
    assert any("taken off" in note for note in found.notes)


def test_ed25519_does_not_excuse_a_weak_digest() -> None:
    from tests.forge.case import by
    from tests.forge.pki import stamper

    found = judged(by(stamper("Forge Ed", house().intermediate, "ed25519"), digest="sha1"))
    assert (found.verdict, found.failed_check) == ("not_verified", "signature")


def test_a_name_with_a_backslash_is_refused() -> None:
    from toolkit.prereg.trust import parse_trust

    with pytest.raises(DamagedError):
        parse_trust(
            '[[authorities]]\nname = \'a\\b\'\noperator = "o"\naddress = "https://x.example"\n'
            f'roots = ["{"0" * 64}"]\n',
            "here",
        )


def test_a_frozen_registration_that_lacks_a_file_is_incomplete(copy) -> None:
    from tests.unit.prereg.test_verification import verified

    folder = copy.registrations / "paired-rollouts"
    (folder / "protocol.md").unlink()
    result = verified(folder)
    assert (result.verdict, result.checks[0].outcome) == ("incomplete", "missing")
    assert "protocol.md cannot be read" in result.checks[0].detail


def test_a_key_that_insists_on_sha256_signs_nothing_under_sha512() -> None:
    from tests.forge.case import by
    from tests.forge.keys import Scheme
    from tests.forge.pki import stamper

    insisting = stamper("Forge Insisting", house().intermediate, "pss-sha256")
    assert judged(by(insisting)).verdict == "verified"
    found = judged(by(insisting, scheme=Scheme("pss", "sha512"), digest="sha512"))
    assert found.message == "the signature's parameters are not those that its key insists on"


def test_a_parsers_complaint_is_one_line() -> None:
    from toolkit.prereg.token.certificate import first_line

    assert first_line(ValueError()) == "ValueError"
    assert first_line(ValueError("a\nb")) == "a b"
