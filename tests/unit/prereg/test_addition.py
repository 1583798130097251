"""What is added after a freeze: recorded in order, timestamped like it, whole or found."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.conftest import snapshot
from tests.forge.server import Authority
from tests.registrations import chained, rehash
from tests.unit.decisions.study import RULES, rule
from tests.unit.prereg import drafts
from tests.unit.prereg.drafts import add_to, amendment, deviation, problems, source, verify, write_draft
from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError, VerificationError
from toolkit.files import file_sha256
from toolkit.prereg.chain import extend_chain
from toolkit.prereg.registration import load_registration
from toolkit.rules.rulebook import load_rulebook


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
BACK, AHEAD, SILENT = "dated the day on which it is recorded", "say when it happened", "say what it has to"
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


def test_a_third_authority_more_does_no_harm(frozen, pair) -> None:
    with Authority("C") as third:
        add_to(frozen, amendment(), *pair, source(third, "Authority C"))
    assert verify(frozen, *pair).verdict == "verified"


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
    assert add_to(restated, deviation("D99", concerns=["H2a"])).tokens == ()
    assert chained(restated) == [*before, "deviations/D99.toml"]
    assert load_registration(restated).deviations[-1].id == "D99"
    assert {check.step: check.outcome for check in verify(restated).checks}[8] == "unproven"
