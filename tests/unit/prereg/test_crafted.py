"""Forged tokens, one defect each: what the verifier must refuse, where, and what it must accept."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest

from tests.conftest import CHECKOUT
from tests.forge import der
from tests.forge.case import also, by, embedding, given, issuing, judged, recipe, verified
from tests.forge.defects import CASES, CHECKS, Case
from tests.forge.defects_chain import ISSUED, SECOND, crl
from tests.forge.keys import Scheme
from tests.forge.pki import SERVER_AUTH, UNKNOWN, Crl, Revoked, authority, house, root, stamper
from tests.forge.token import (
    CONTENT_TYPE,
    DOCUMENT,
    MESSAGE_DIGEST,
    NOW,
    STAMPED,
    TST_INFO,
    Ess,
    Recipe,
    accuracy,
    attribute,
)
from tests.golden.measure_engines import GIVEN_TIME, Question, ask
from tests.registrations import chained, rehash
from tests.unit.decisions.study import RULES
from tests.unit.prereg.drafts import H, add_to, amendment, freeze_with, problems, verify, write_draft
from toolkit.prereg.chain import begin, pending_document
from toolkit.prereg.evidence import Judged, Subject, judge, places
from toolkit.prereg.record import Trusted
from toolkit.prereg.token.der import MAX_ELEMENTS, check_der
from toolkit.prereg.token.verdict import Refused, TokenVerdict
from toolkit.prereg.token.verify import STEPS, Material, verify_token
from toolkit.prereg.verification import StudyRuns, agreement, independence
from toolkit.structs import replace

VALID = [name for name in CASES if name.startswith("valid: ")]
DEFECTS = [name for name in CASES if not name.startswith("valid: ")]


@cache
def built(name: str) -> Case:
    return CASES[name]()


def verdict_of(case: Case):
    return verify_token(case.token, Material(**case.material), at=case.at)


@pytest.mark.parametrize("name", CASES)
def test_a_forged_token_gets_its_verdict(name) -> None:
    case = built(name)
    verdict = verdict_of(case)
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
    # In notes.
    "valid: granted with modifications": "modifications",
    "valid: unsigned attribute": "unsigned attributes",
    "valid: ESS v1": "SHA-1",
    "valid: accuracy of an hour": "3600",
    "valid: list older than genTime": "older",
    "valid: list of another issuer": "not used",
    "valid: signer revoked after genTime: superseded": "superseded",
}


@pytest.mark.parametrize("name", SAID)
def test_a_verdict_says_what_was_found(name) -> None:
    verdict = verdict_of(built(name))
    assert SAID[name] in " | ".join((verdict.message, *verdict.notes))


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
    assert REVOCATION[name] in verdict_of(built(name)).revocation


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
    assert known in verdict_of(verified(given(Recipe(), crls=(crl(issued=issued),), at=at))).revocation


def test_no_byte_of_a_token_can_be_changed() -> None:
    """One bit of every third byte; only the status, which nobody signs, may become another (0 or 1)."""
    case = built("valid: usual")
    status = case.token.index(b"\x02\x01\x00") + 2
    accepted = []
    for position in range(0, len(case.token), 3):
        changed = bytearray(case.token)
        changed[position] ^= 1 << position % 8
        if verdict_of(replace(case, token=bytes(changed))).verdict == "verified":
            accepted.append(position)
    assert set(accepted) <= {status}


def test_a_token_cut_off_anywhere_is_refused() -> None:
    case = built("valid: usual")
    ends = {
        verdict_of(replace(case, token=case.token[:end])).failed_check for end in range(1, len(case.token))
    }
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


AFTER = datetime(2024, 6, 1, tzinfo=UTC)
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


def _text_for_octets() -> TokenVerdict:
    raw = recipe().make()
    kind = der.oid("1.2.840.113549.1.9.16.1.4")
    at = raw.index(kind) + len(kind)
    inner = at + len(der.header(raw[at:]))
    assert (raw[at], raw[inner]) == (0xA0, 0x04)
    return judged(raw[:inner] + b"\x0c" + raw[inner + 1 :])


def _with_list(**knobs: object) -> TokenVerdict:
    return judged(recipe(), crls=(Crl(house().intermediate, AFTER, **knobs).der,))


def _insisting() -> TokenVerdict:
    signer = stamper("Forge Insisting", house().intermediate, "pss-sha256")
    return judged(by(signer, scheme=Scheme("pss", "sha512"), digest="sha512"))


def _rolled() -> TokenVerdict:
    """A self-issued authority, which does not lengthen its path."""
    top = root("Forge Short", path_length=1)
    old = authority("Forge Rolling", top, "rsa-2048")
    signer = stamper("Forge Rolled", authority("Forge Rolling", old, serial=7))
    return judged(by(signer), roots=(top.der,))


def _below(*, is_pinned: bool = False) -> TokenVerdict:
    """A token of a signer below an authority for web servers, which is pinned itself or not."""
    issuer = authority("Forge Web", house().root, purposes=(SERVER_AUTH,))
    return judged(by(stamper("Forge Stray", issuer)), roots=(issuer.der if is_pinned else house().root.der,))


def _unlisted() -> TokenVerdict:
    issuer = authority("Forge Listless", house().root, usages=("certificate_signing",))
    return judged(by(stamper("Forge Unlisted", issuer)), crls=(crl(issuer=issuer),))


def _further(label: str) -> TokenVerdict:
    """A token whose signed attributes name a further certificate."""
    return judged(recipe(ess=(Ess(house().signer.der), Ess(issuing(label).der))))


TWO_VALUES = attribute("1.3.6.1.4.1.99999.7", der.integer(1), der.integer(2))
# By verdict and the check that it comes from.
EDGES: dict[tuple[str, str | None], dict[str, Callable[[], TokenVerdict]]] = {
    ("verified", None): {
        "a self-issued authority below a short path": _rolled,
        "an authority for web servers alone, pinned": lambda: _below(is_pinned=True),
        "it says: revocation not checked": _unlisted,
        "a further certificate of the chain": lambda: _further("A"),
        "an unknown attribute of several values": lambda: judged(also(TWO_VALUES)),
        "it says: was taken off the revocation list again": lambda: _with_list(
            revoked=(Revoked(house().signer.number, AFTER, "remove from list"),)
        ),
    },
    ("incomplete", "imprint"): {
        "neither document nor hash": lambda: judged(recipe(), document=None),
        "a SHA-512 where only a SHA-256 is known": lambda: judged(
            recipe(imprint_digest="sha512"), document=None, digest=("sha256", bytes(32))
        ),
    },
    ("not_verified", "chain"): {
        "an authority for web servers alone": _below,
        "a further certificate of another chain": lambda: _further("B"),
    },
    ("not_verified", "status"): {
        "a failure beside what is granted": lambda: judged(recipe(failure=14)),
        "it says: the reply has more parts": lambda: judged(der.with_more(recipe().make(), der.NULL)),
    },
    ("not_verified", "structure"): {
        "it says: its content is no OCTET STRING": _text_for_octets,
        "an absurd accuracy": lambda: judged(recipe(accuracy=accuracy(9 * 10**12))),
        "a more absurd accuracy": lambda: judged(recipe(accuracy=accuracy(10**14))),
    },
    ("not_verified", "signed_attributes"): {
        "a content type of which the first value is right": lambda: judged(
            recipe(values=((CONTENT_TYPE, (der.oid(TST_INFO), der.oid(f"{TST_INFO}.1"))),))
        ),
        "it says: signed attribute message_digest is missing": lambda: judged(
            recipe(values=((MESSAGE_DIGEST, (der.tlv(0x0C, b"x" * 32),)),))
        ),
    },
    ("not_verified", "signature"): {
        "it says: weak or unknown algorithm sha1": lambda: judged(
            by(stamper("Forge Ed", house().intermediate, "ed25519"), digest="sha1")
        ),
        "it says: the signature's parameters are not those that its key insists on": _insisting,
    },
    ("not_verified", "revocation"): {
        "a list with an extension twice": lambda: _with_list(extensions=(UNKNOWN, UNKNOWN)),
    },
}


@pytest.mark.parametrize(("expected", "edge"), [(key, edge) for key in EDGES for edge in EDGES[key]])
def test_an_edge_gets_its_verdict(expected, edge) -> None:
    verdict = EDGES[expected][edge]()
    assert (verdict.verdict, verdict.failed_check) == expected, verdict.message
    if edge.startswith("it says: "):
        said = " ".join((verdict.message, *verdict.notes, f"revocation {verdict.revocation}"))
        assert edge.removeprefix("it says: ") in said


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
