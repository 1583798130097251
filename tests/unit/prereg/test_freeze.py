"""A freeze is whole or nothing, over files as they are, by authorities that others can check."""

import hashlib
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from tests.conftest import snapshot
from tests.forge.pki import House, house
from tests.forge.server import Authority
from tests.registrations import chained, rehash
from tests.unit.decisions.study import RULES, rule
from tests.unit.prereg import drafts
from tests.unit.prereg.drafts import (
    Scripted,
    add_to,
    amendment,
    demonstrate,
    deviation,
    freeze_with,
    is_untouched,
    opened,
    problems,
    source,
    verify,
    write_draft,
)
from toolkit.errors import (
    DamagedError,
    IncompleteError,
    RuleError,
    ToolkitError,
    UsageError,
    VerificationError,
)
from toolkit.files import file_sha256
from toolkit.prereg import authority
from toolkit.prereg.authority import online
from toolkit.prereg.chain import begin, extend_chain, read_recorded
from toolkit.prereg.freeze import freeze
from toolkit.prereg.record import write_trust
from toolkit.prereg.registration import is_draft, load_registration
from toolkit.rules.rulebook import load_rulebook
from toolkit.structs import replace


def test_a_frozen_registration_is_verified(draft, pair) -> None:
    frozen = freeze_with(draft, *pair)
    result = verify(draft, *pair)
    assert (result.verdict, result.standing, problems(result)) == ("verified", "public", [])
    assert result.document_sha256 == frozen.sha256 == load_registration(draft).sha256
    assert frozen.files == ("protocol.md", "rules.toml", "trust.toml")
    assert not is_draft(draft)


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


def test_authorities_of_one_operator_are_not_asked(servers) -> None:
    named = [
        source(server, name, operator="Same").trusted for server, name in zip(servers, "XY", strict=True)
    ]
    with pytest.raises(UsageError, match="of different operators"):
        online((), named, (), (), 1)


def test_tokens_that_are_days_apart_are_not_enough(draft, pair) -> None:
    early = Authority("B", at=datetime.now(UTC) - timedelta(days=2))
    with early, pytest.raises(VerificationError, match="times agree"):
        freeze_with(draft, pair[0], source(early, "Early"))
    assert is_untouched(draft)


def test_a_token_that_two_decoders_read_differently_is_refused(draft, pair, monkeypatch) -> None:
    monkeypatch.setattr(authority, "second_reading", lambda _: datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(VerificationError, match="two decoders"):
        freeze_with(draft, *pair)
    assert is_untouched(draft)


def test_a_link_is_no_file_of_a_registration(tmp_path) -> None:
    (tmp_path / "own.md").write_bytes(b"own")
    (tmp_path / "protocol.md").symlink_to("own.md")
    with pytest.raises(VerificationError, match="is a link"):
        read_recorded(tmp_path, "protocol.md", hashlib.sha256(b"own").hexdigest())


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


@pytest.fixture(scope="module")
def _twice_added(tmp_path_factory, _frozen, pair):
    """A registration with an amendment and a deviation, made once."""
    folder = shutil.copytree(_frozen, tmp_path_factory.mktemp("made") / _frozen.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "*")
        add_to(folder, amendment(), *pair)
        add_to(folder, deviation(), *pair)
    return folder


@pytest.fixture
def added(_twice_added, tmp_path):
    return shutil.copytree(_twice_added, tmp_path / _twice_added.name)


def test_an_amendment_changes_the_rule_that_it_names(added) -> None:
    registration = load_registration(added)
    book = load_rulebook(registration.rules, [entry.rules for entry in registration.amendments])
    assert book.rule("H").criteria[0].test == "mean(gap) >= 0.05"
    change = book.changes["H"]
    assert (change.amendment, change.frozen.criteria[0].test) == ("A1", "mean(gap) >= 0.03")
    assert [(event.id, event.title) for event in registration.deviations] == [("D1", "A power cut")]


def test_what_was_added_is_verified_in_its_order(added, pair) -> None:
    result = verify(added, *pair)
    assert (result.verdict, problems(result)) == ("verified", [])
    assert chained(added) == ["record.toml", "amendments/A1.toml", "deviations/D1.toml"]
    assert drafts.told(result, 8).startswith("A1 by ")


# ------------------------------------------------------------------------------------------------- refusals

YESTERDAY_BUT_ONE = str((datetime.now(UTC) - timedelta(days=2)).date())
NEXT_WEEK = str((datetime.now(UTC) + timedelta(days=7)).date())
BACK, AHEAD, SILENT = "dated the day on which it is recorded", "say when it happened", "is invalid"
REFUSED: dict[str, tuple[bytes, type[ToolkitError], str]] = {
    "an amendment dated back": (amendment("A2", dated=YESTERDAY_BUT_ONE), UsageError, BACK),
    "an amendment dated ahead": (amendment("A2", dated=NEXT_WEEK), UsageError, BACK),
    "a deviation dated ahead": (deviation("D2", dated=NEXT_WEEK), UsageError, AHEAD),
    "a deviation without a day": (deviation("D2").replace(b"dated", b"# dated"), UsageError, AHEAD),
    "an id that is taken": (amendment("A1"), UsageError, "'A1' cannot be used"),
    "an id that is taken but for its case": (amendment("a1"), UsageError, "'a1' cannot be used"),
    "the id of a deviation": (amendment("D1"), UsageError, "'D1' cannot be used"),
    "the name of the freeze's own tokens": (amendment("freeze"), UsageError, "'freeze' cannot be used"),
    "the same with a capital": (deviation("Freeze"), UsageError, "'Freeze' cannot be used"),
    "an id that leads out": (amendment("../A2"), ToolkitError, "A2"),
    "an id with a folder": (amendment("more/A2"), ToolkitError, "A2"),
    "an id that is a number": (amendment().replace(b'id = "A1"', b"id = 7"), DamagedError, SILENT),
    "an empty id": (amendment(""), ToolkitError, "."),
    "nothing about what was seen": (amendment("A2", seen=""), ToolkitError, "."),
    "a deviation with nothing about what was seen": (deviation("D2", seen=""), ToolkitError, "."),
    "blanks for what was seen": (deviation("D2", seen="  "), ToolkitError, "."),
    "a number for what was seen": (deviation("D2", seen=3), ToolkitError, "."),
    "no such kind": (deviation("D2", kind="accident"), DamagedError, SILENT),
    "no reason": (amendment("A2").replace(b"reason", b"because"), DamagedError, SILENT),
    "no TOML": (b"[amendment", DamagedError, SILENT),
    "no text": (b"\xff\xfe", DamagedError, SILENT),
    "nothing": (b"", DamagedError, SILENT),
    "nested too deep": (b"x = " + b"[" * 100_000, DamagedError, SILENT),
}


@pytest.mark.parametrize("defect", REFUSED)
def test_what_cannot_be_added_is_refused(added, pair, defect) -> None:
    content, error, message = REFUSED[defect]
    before = snapshot(added)
    with pytest.raises(error, match=message):
        add_to(added, content, *pair)
    assert snapshot(added) == before


def test_an_addition_to_a_draft_is_refused(tmp_path, pair) -> None:
    with pytest.raises(IncompleteError, match="is a draft"):
        add_to(write_draft(tmp_path), amendment(), *pair)


def test_an_addition_to_a_registration_that_was_changed_is_refused(frozen, pair) -> None:
    def change(_) -> None:
        (frozen / "protocol.md").write_bytes(b"Another one.\n")

    with pytest.raises(VerificationError, match="was changed after its hash"):
        add_to(frozen, amendment(), *pair, meanwhile=change)


def test_two_amendments_at_once_do_not_contradict_each_other(frozen, pair) -> None:
    """Both declare one name: each was checked alone, and with both the rules would be none."""
    more = RULES[RULES.index("[endpoints.gap]") : RULES.index("[endpoints.other]")].replace("gap", "rise")
    first, second = (amendment(n, body=more + rule("H", "mean(rise) >= 0.03")) for n in ("A1", "A2"))
    with pytest.raises(ToolkitError):
        add_to(frozen, second, *pair, meanwhile=lambda _: add_to(frozen, first, *pair))
    registration = load_registration(frozen)
    book = load_rulebook(registration.rules, [entry.rules for entry in registration.amendments])
    assert book.changes["H"].amendment == "A1"


def test_other_authorities_than_the_freezes_can_vouch_for_an_addition(frozen, pair) -> None:
    """One of the freeze's may be gone by then."""
    with Authority("C") as third, Authority("D") as other:
        fresh = source(third, "Authority C"), source(other, "Authority D")
        add_to(frozen, amendment(), *fresh)
    result = verify(frozen, *pair, *fresh)
    assert (result.verdict, problems(result)) == ("verified", [])


def test_an_addition_that_one_authority_refuses_is_not_recorded(frozen, pair) -> None:
    with Authority("C", "rejection") as bad:
        elsewhere = replace(pair[1], trusted=replace(pair[1].trusted, address=bad.url))
        with pytest.raises(IncompleteError, match="no timestamp"):
            add_to(frozen, amendment(), pair[0], elsewhere)
    assert load_registration(frozen).amendments == ()
    assert verify(frozen, *pair).verdict == "verified"
    asked = drafts.Scripted(pair[0])
    add_to(frozen, amendment(), asked, pair[1])
    assert asked.asked == 0
    assert verify(frozen, *pair).verdict == "verified"


# ------------------------------------------------------------------------------------------------ tampering


def _lines(folder, change) -> None:
    path = folder / "LATER.chain"
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


def _other_hash(line: str) -> str:
    link, digest, name = line.split("  ")
    return "  ".join((link, f"{int(digest, 16) ^ 1:064x}", name))


def _append(folder, name: str, content: bytes) -> None:
    """Add a file to the chain as anybody can, without a token."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    chain = folder / "LATER.chain"
    chain.write_bytes(extend_chain(chain.read_bytes(), file_sha256(folder / "FROZEN.sha256"), name, content))


def _swap_tokens(folder) -> None:
    first_path, other = (folder / "evidence" / f"{label}.authority-a.tsr" for label in ("A1", "D1"))
    first, second = first_path.read_bytes(), other.read_bytes()
    first_path.write_bytes(second)
    other.write_bytes(first)


def _rewrite(folder, *names: str) -> None:
    """Write the chain anew, as if only these files had ever been added; tokens of others are left behind."""
    for name in {"amendments/A1.toml", "deviations/D1.toml"} - {*names}:
        (folder / name).unlink()
    rehash(folder, ["record.toml", *names])


def _edit_entry(folder) -> None:
    path = folder / "amendments/A1.toml"
    path.write_bytes(path.read_bytes().replace(b"0.05", b"0.01"))
    rehash(folder)


A1, D1 = "amendments/A1.toml", "deviations/D1.toml"
TAMPERED = {
    (1, "failed"): {
        "a line dropped": lambda f: _lines(f, lambda x: [x[0], x[2]]),
        "a hash edited": lambda f: _lines(f, lambda x: [x[0], _other_hash(x[1]), x[2]]),
        "the amendment changed": lambda f: (f / A1).write_bytes(amendment(seen="All.")),
    },
    (8, "missing"): {
        "a token removed": lambda f: (f / "evidence/A1.authority-b.tsr").unlink(),
        "a request removed": lambda f: (f / "evidence/A1.authority-b.tsq").unlink(),
        "an entry without a token": lambda f: _append(f, "amendments/A9.toml", amendment("A9", **OLD)),
    },
    (8, "failed"): {
        "tokens exchanged": _swap_tokens,
        "the amendment removed and the chain made anew": lambda f: _rewrite(f, D1),
        "the last entry cut off": lambda f: _rewrite(f, A1),
        "the amendment edited and the chain made anew": _edit_entry,
        "the order changed and the chain made anew": lambda f: _rewrite(f, D1, A1),
    },
}


@pytest.mark.parametrize(
    ("step", "damage"), [(step, damage) for step in TAMPERED for damage in TAMPERED[step]]
)
def test_tampering_is_found_at_its_step(added, pair, step, damage) -> None:
    TAMPERED[step][damage](added)
    result = verify(added, *pair)
    assert result.verdict != "verified"
    assert problems(result) == [step], drafts.told(result, step[0])


OLD = {"dated": "2020-01-01"}
SLIPPING = {
    # A rule changed after the runs, dated back, hashed and chained by its forger, with no token at all.
    "amendments/more/A9.toml": amendment("A9", body=rule("H", "mean(gap) >= 0.001"), **OLD),
    "amendments/./A9.toml": amendment("A9", body=rule("H", "mean(gap) >= 0.001"), **OLD),
    "amendments//A9.toml": amendment("A9", body=rule("H", "mean(gap) >= 0.001"), **OLD),
    "deviations/more/D9.toml": deviation("D9", **OLD),
    # Deviation and amendment share the names of their tokens: one id has one token a place.
    "deviations/A1.toml": deviation("A1"),
}


@pytest.mark.parametrize("name", SLIPPING)
def test_nothing_slips_past_the_tokens_in_another_place_or_under_a_taken_id(added, pair, name) -> None:
    try:
        _append(added, name, SLIPPING[name])
        result = verify(added, *pair)
    except DamagedError:
        return
    assert result.verdict != "verified"


def test_a_registration_frozen_elsewhere_records_without_tokens(restated) -> None:
    before = chained(restated)
    assert add_to(restated, deviation("D99", concerns=["H2a"])).authorities == ()
    assert chained(restated) == [*before, "deviations/D99.toml"]
    assert load_registration(restated).deviations[-1].id == "D99"
    assert {check.step: check.outcome for check in verify(restated).checks}[8] == "unproven"


def git(folder, *words: str) -> str:
    identity = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, check=True, text=True)
    return done.stdout.strip()


def commit(folder) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "All of it")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(tmp_path, "init", "--quiet")
    return tmp_path


@pytest.fixture
def committed(repository):
    folder = write_draft(repository)
    commit(repository)
    return folder


def freeze_it(folder) -> str:
    demonstrate(folder)
    return load_registration(folder).record.freeze_commit


def refused(folder) -> str:
    with pytest.raises(UsageError, match="not committed") as caught:
        opened(folder)
    return caught.value.found or ""


@pytest.mark.parametrize("name", ["protocol.md", "data.csv"])
@pytest.mark.parametrize("is_staged", [False, True])
def test_what_is_not_committed_as_it_is_is_refused(committed, name, is_staged) -> None:
    (committed / name).write_bytes(b"Changed.\n")
    if is_staged:
        git(committed, "add", ".")
    assert name in refused(committed)


def test_the_commit_is_recorded_whatever_changed_elsewhere(committed) -> None:
    (committed.parent / "notes.txt").write_bytes(b"")
    assert freeze_it(committed) == git(committed, "rev-parse", "HEAD")


def test_an_untracked_draft_is_refused(repository) -> None:
    assert refused(write_draft(repository)) == "protocol.md, rules.toml"


def test_an_ignored_file_is_refused(committed) -> None:
    """It would be frozen, and nobody who clones the repository would have it."""
    (committed.parent / ".gitignore").write_text("*.csv\n")
    commit(committed.parent)
    (committed / "data.csv").write_bytes(b"")
    assert "data.csv" in refused(committed)


def test_line_endings_that_a_clone_would_not_have_are_refused(committed) -> None:
    """Git calls a file clean whose bytes are not the committed ones, where it converts line endings."""
    (committed.parent / ".gitattributes").write_text("*.md text eol=crlf\n")
    commit(committed.parent)
    path = committed / "protocol.md"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    git(committed.parent, "add", ".")
    assert git(committed, "status", "--porcelain") == ""
    with pytest.raises(ToolkitError, match=r"protocol\.md|not committed"):
        opened(committed)


def test_a_repository_that_git_cannot_read_is_not_called_clean(committed) -> None:
    (committed / "data.csv").write_bytes(b"")
    (committed.parent / ".git" / "index").write_bytes(b"damaged")
    with pytest.raises(ToolkitError):
        opened(committed)


def test_a_freeze_cut_short_keeps_its_commit_and_lets_no_changed_file_in(committed) -> None:
    frozen_at = freeze_it(committed)
    (committed / "LATER.chain").unlink()
    (committed / "record.toml").unlink()
    begin(committed, (committed / "FROZEN.sha256").read_bytes())
    protocol = committed / "protocol.md"
    protocol.rename(committed / "kept")
    protocol.write_bytes(b"Changed.\n")
    assert "protocol.md" in refused(committed)
    (committed / "kept").rename(protocol)
    assert freeze_it(committed) == frozen_at


def test_what_a_freeze_left_beside_its_files_is_no_change(committed) -> None:
    """A killed one leaves files half written and its lock, a failed one what waits."""
    (committed / "evidence").mkdir()
    (committed / ".pending" / "evidence").mkdir(parents=True)
    left = (".FROZEN.sha256.123.part", ".lock", "evidence/.freeze.demonstration-a.tsr.123.part")
    for name in (*left, ".pending/document"):
        (committed / name).write_bytes(b"")
    assert freeze_it(committed) == git(committed, "rev-parse", "HEAD")
