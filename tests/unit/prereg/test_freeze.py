"""A freeze is whole or nothing, over files as they are, by authorities that others can check."""

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.forge.pki import House, house
from tests.forge.server import Authority, OpensslAuthority
from tests.registrations import rehash
from tests.unit.decisions.study import RULES, rule
from tests.unit.prereg import drafts
from tests.unit.prereg.drafts import Scripted, freeze_with, is_untouched, opened, problems, source, verify
from toolkit.errors import DamagedError, IncompleteError, RuleError, UsageError, VerificationError
from toolkit.prereg.freeze import freeze
from toolkit.prereg.registration import is_draft, load_registration
from toolkit.prereg.trust import write_trust


def test_a_frozen_registration_is_verified(draft, pair) -> None:
    frozen = freeze_with(draft, *pair)
    result = verify(draft, *pair)
    assert (result.verdict, result.standing, problems(result)) == ("verified", "public", [])
    assert result.document_sha256 == frozen.sha256 == load_registration(draft).sha256
    assert frozen.files == ("protocol.md", "rules.toml", "trust.toml")
    assert not is_draft(draft)


def test_openssl_is_an_authority_like_any_other(draft, pair) -> None:
    with OpensslAuthority() as server:
        openssl = source(server, "OpenSSL")
        freeze_with(draft, pair[0], openssl)
    result = verify(draft, pair[0], openssl)
    assert result.verdict == "verified", problems(result)


def test_roots_that_nobody_knows_are_not_enough(frozen, pair) -> None:
    result = verify(frozen)
    assert (result.verdict, problems(result)) == ("not_verified", [(5, "failed")])
    assert "Authority A, Authority B" in drafts.told(result, 5)
    assert problems(verify(frozen, pair[1])) == [(5, "failed")]


def test_files_are_hashed_as_bytes(draft, pair) -> None:
    raw = "# Protocol\r\n\r\nThe gap\u2028is at least 0.03.\r".encode()
    (draft / "protocol.md").write_bytes(raw)
    (draft / "data.bin").write_bytes(b"\xff\x00\r\n")
    freeze_with(draft, *pair)
    lines = (draft / "FROZEN.sha256").read_bytes()
    assert b"%s  protocol.md\n" % hashlib.sha256(raw).hexdigest().encode() in lines
    assert (draft / "protocol.md").read_bytes() == raw
    assert verify(draft, *pair).verdict == "verified"


def test_the_drafts_own_trust_file_is_kept_as_it_is(draft, pair) -> None:
    own = write_trust((pair[1].trusted, pair[0].trusted), "By hand.").encode().replace(b"\n", b"\r\n")
    (draft / "trust.toml").write_bytes(own)
    freeze_with(draft, *pair)
    assert (draft / "trust.toml").read_bytes() == own
    assert verify(draft, *pair).verdict == "verified"


def test_a_trust_file_that_names_others_is_refused(draft, pair) -> None:
    with Authority("C") as other:
        others = (pair[0].trusted, source(other, "Authority C").trusted)
    (draft / "trust.toml").write_text(write_trust(others, "By hand."))
    with pytest.raises(UsageError, match="names other authorities than those to be asked"):
        freeze_with(draft, *pair)
    assert not (draft / "FROZEN.sha256").exists()


@pytest.mark.parametrize("name", ["protocol.md", "note.md"], ids=["changed", "added"])
def test_a_draft_that_changes_meanwhile_is_not_frozen(draft, pair, name) -> None:
    with pytest.raises((UsageError, VerificationError)):
        freeze_with(draft, pair[0], Scripted(pair[1], lambda: (draft / name).write_bytes(b"Other.\n")))
    assert is_untouched(draft)


def test_what_was_frozen_meanwhile_is_not_frozen_again(draft, pair) -> None:
    before = opened(draft)
    first = freeze_with(draft, *pair)
    record = (draft / "record.toml").read_bytes()
    with pytest.raises(UsageError, match="frozen already"):
        freeze(draft, before, pair, [online.trusted for online in pair], standing="public")
    assert (draft / "record.toml").read_bytes() == record
    assert load_registration(draft).sha256 == first.sha256


def test_a_recorded_time_that_no_token_states_is_found(frozen, pair) -> None:
    record = frozen / "record.toml"
    record.write_text(re.sub(r"(recorded_time =) \S+", r"\1 2020-01-01T00:00:00Z", record.read_text()))
    rehash(frozen)
    assert verify(frozen, *pair).verdict == "not_verified"


def test_many_freezes_at_once(tmp_path, pair) -> None:
    folders = [drafts.write_draft(tmp_path, f"study-{number}") for number in range(8)]
    patient = [replace(online, timeout_s=60) for online in pair]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda folder: freeze_with(folder, *patient), folders))
    assert len({frozen.sha256 for frozen in made}) == 8
    assert {verify(folder, *pair).verdict for folder in folders} == {"verified"}


def test_of_two_freezes_at_once_one_wins(draft, pair) -> None:
    refused = []

    def again() -> None:
        with pytest.raises(UsageError, match="another command is at work") as caught:
            freeze_with(draft, *pair)
        refused.append(caught.value)

    freeze_with(draft, Scripted(pair[0], again), pair[1])
    assert len(refused) == 1
    assert verify(draft, *pair).verdict == "verified"


# ------------------------------------------------------------------------------------------------- refusals


def _written(name: str, content: str | bytes):
    raw = content.encode() if isinstance(content, str) else content

    def write(folder) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(raw)

    return write


def _linked(name: str, target: str):
    return lambda folder: (folder / name).symlink_to(folder / target)


def _rules(test: str, head: str = RULES):
    return _written("rules.toml", head + rule("H", test))


UNIT = RULES.replace('unit = "fraction"', 'unit = "steps"', 1)
LINKS, NAMES = "only plain files", "name that a list cannot hold"
NOT_READY = {
    "a rule that cannot pass": (_rules("mean(gap) > 1"), RuleError, "H can never pass"),
    "a rule that cannot miss": (_rules("mean(gap) >= -1"), RuleError, "H can never miss"),
    "an endpoint not declared": (_rules("mean(gaps) >= 0.03"), RuleError, "gaps"),
    "a wrong unit": (_rules("mean(gap) >= 0.03", UNIT), RuleError, "another unit than what it measures"),
    "no TOML": (_written("rules.toml", "name = "), RuleError, "not TOML"),
    "no protocol": (lambda f: (f / "protocol.md").unlink(), IncompleteError, r"protocol\.md is missing"),
    "rules that are no text": (_written("rules.toml", b"\xff"), DamagedError, "not UTF-8"),
    "a link to a file": (_linked("data.csv", "protocol.md"), UsageError, LINKS),
    "a link to a folder": (_linked("data", ".."), UsageError, LINKS),
    "a link to nothing": (_linked("data", "nothing"), UsageError, LINKS),
    "a space in a name": (_written("my data.csv", ""), UsageError, NAMES),
    "a letter that is not ASCII": (_written("größe.csv", ""), UsageError, NAMES),
    "a record": (_written("record.toml", ""), UsageError, "no freeze record"),
    "an amendment": (_written("amendments/A1.toml", ""), UsageError, "comes after a freeze"),
    "another name": (
        _written("rules.toml", RULES.replace('"small"', '"large"', 1)),
        UsageError,
        "of its name",
    ),
}


@pytest.mark.parametrize("defect", NOT_READY)
def test_a_draft_that_is_not_ready_is_refused(draft, defect) -> None:
    change, error, message = NOT_READY[defect]
    change(draft)
    with pytest.raises(error, match=message):
        opened(draft)


def _not_independent(folder, *sources) -> str:
    with pytest.raises(VerificationError, match="independent authorities") as caught:
        freeze_with(folder, *sources)
    assert is_untouched(folder)
    return caught.value.found or ""


def test_one_authority_is_not_enough(draft, pair) -> None:
    assert "1 verified tokens" in _not_independent(draft, pair[0])


def test_two_authorities_of_one_operator_are_not_enough(draft, servers) -> None:
    sources = [source(server, name, operator="Same") for server, name in zip(servers, "XY", strict=True)]
    assert _not_independent(draft, *sources) == "all come from one operator"


def test_authorities_that_share_a_key_are_not_enough(draft, pair) -> None:
    kin = Authority("B")
    shared = kin.house.signer.but(key=house("A").signer.key)
    kin.house = House(kin.house.root, kin.house.intermediate, shared)
    with kin:
        assert "share a key" in _not_independent(draft, pair[0], source(kin, "Kin"))


def test_two_authorities_of_one_short_name_are_refused(draft, servers) -> None:
    """Their tokens would have one place: each would overwrite the other's."""
    with pytest.raises((UsageError, DamagedError)):
        freeze_with(draft, source(servers[0], "Time stamps"), source(servers[1], "time-stamps"))
    assert is_untouched(draft)


def test_a_registration_that_lost_its_chain_is_not_frozen_anew(frozen, pair) -> None:
    """That would destroy the evidence of its first freeze."""
    (frozen / "LATER.chain").unlink()
    with pytest.raises(UsageError, match="was frozen, and its"):
        freeze_with(frozen, *pair)
