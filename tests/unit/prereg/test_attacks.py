"""Ways to be fooled that were found by trying: each once led to a verdict that was wrong."""

import hashlib
import re
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from tests.forge.case import judged, recipe
from tests.forge.pki import UNKNOWN, Crl, Revoked, house, stamper
from tests.forge.token import Ess, accuracy
from tests.registrations import chained, rehash
from tests.unit.decisions.study import RULES
from tests.unit.prereg.drafts import H, add_to, amendment, freeze_with, problems, verify, write_draft
from toolkit.prereg.chronology import StudyRuns
from toolkit.prereg.token.timestamp import embedded_certificates
from toolkit.prereg.token.verdict import TokenVerdict

AFTER = datetime(2024, 6, 1, tzinfo=UTC)
VERIFIED = TokenVerdict("verified", None, None, "")


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


@pytest.mark.parametrize("seconds", [9 * 10**12, 10**14])
def test_an_absurd_accuracy_is_refused(seconds) -> None:
    token = recipe(accuracy=accuracy(seconds)).make()
    embedded_certificates(token)
    assert judged(token).failed_check == "structure"


def test_a_list_with_an_extension_twice_is_refused() -> None:
    crl = Crl(house().intermediate, AFTER, extensions=(UNKNOWN, UNKNOWN)).der
    assert judged(recipe(), crls=(crl,)).failed_check == "revocation"


def test_a_sha512_token_is_incomplete_while_only_a_sha256_is_known() -> None:
    found = judged(recipe(imprint_digest="sha512"), document=None, digest=("sha256", bytes(32)))
    assert (found.verdict, found.failed_check) == ("incomplete", "imprint")


def test_an_authority_made_for_web_servers_issues_no_timestamper() -> None:
    sub = house().intermediate.but(purposes=("1.3.6.1.5.5.7.3.1",))
    token = recipe(signer=stamper("Forge constrained", sub), certificates=None)
    assert judged(token, untrusted=(sub.der,)).failed_check == "chain"
    assert judged(token, roots=(sub.der,)).verdict == "verified"


def test_a_further_certificate_named_has_to_be_of_the_chain() -> None:
    for named, verdict in ((house().intermediate, "verified"), (house("B").intermediate, "not_verified")):
        assert judged(recipe(ess=(Ess(house().signer.der), Ess(named.der)))).verdict == verdict


def test_a_signer_that_was_revoked_later_is_not_called_unrevoked() -> None:
    crl = Crl(house().intermediate, AFTER, (Revoked(house().signer.number, AFTER, "superseded"),)).der
    found = judged(recipe(), crls=(crl,))
    assert (found.verdict, "superseded" in (found.revocation or "")) == ("verified", True)


def test_a_proven_amendment_is_dated_by_its_tokens(frozen, pair) -> None:
    """A day that an amendment names, far from its tokens', is what a reader would be shown."""
    add_to(frozen, amendment(), *pair)
    assert verify(frozen, *pair).verdict == "verified"
    path = frozen / "amendments" / "A1.toml"
    path.write_text(re.sub(r'dated = ".*"', 'dated = "2020-01-01"', path.read_text()))
    rehash(frozen)
    chain = (frozen / "LATER.chain").read_bytes()
    for one in pair:
        reply = one.obtain(hashlib.sha256(chain).digest(), lambda _: VERIFIED, lambda _: None)
        place = frozen / "evidence" / f"A1.{one.trusted.slug}"
        place.with_name(place.name + ".tsr").write_bytes(reply.response)
        place.with_name(place.name + ".tsq").write_bytes(reply.request)
    assert problems(verify(frozen, *pair)) == [(8, "failed")]


def test_junk_beside_good_certificates_spoils_no_token(frozen, pair) -> None:
    (frozen / "evidence" / "junk.pem").write_bytes(b"0\x03\x02\x01\x01")
    assert verify(frozen, *pair).verdict == "verified"
