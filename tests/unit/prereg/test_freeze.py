"""A freeze is whole or nothing, over files as they are, by authorities that others can check."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.forge.pki import House, house
from tests.forge.server import Authority, OpensslAuthority
from tests.registrations import rehash
from tests.unit.decisions.study import RULES, rule
from tests.unit.prereg.drafts import (
    Scripted,
    check_rules,
    freeze_with,
    is_untouched,
    problems,
    source,
    told,
    verify,
    write_draft,
)
from toolkit.errors import DamagedError, IncompleteError, RuleError, UsageError, VerificationError
from toolkit.prereg.freeze import freeze, open_draft
from toolkit.prereg.registration import is_draft, load_registration
from toolkit.prereg.timestamping import Online
from toolkit.prereg.trust import write_trust

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_frozen_registration_is_verified(draft: Path, pair: tuple[Online, Online]) -> None:
    frozen = freeze_with(draft, *pair)
    found = verify(draft, *(one.trusted for one in pair))
    assert (found.verdict, found.standing, problems(found)) == ("verified", "public", [])
    assert found.document_sha256 == frozen.sha256 == load_registration(draft).sha256
    assert frozen.files == ("protocol.md", "rules.toml", "trust.toml")
    assert not is_draft(draft)


def test_openssl_is_an_authority_like_any_other(draft: Path, pair: tuple[Online, Online]) -> None:
    with OpensslAuthority() as server:
        openssl = source(server, "OpenSSL")
        freeze_with(draft, pair[0], openssl)
    found = verify(draft, pair[0].trusted, openssl.trusted)
    assert found.verdict == "verified", problems(found)


def test_roots_that_nobody_knows_are_not_enough(draft: Path, pair: tuple[Online, Online]) -> None:
    freeze_with(draft, *pair)
    found = verify(draft)
    assert (found.verdict, problems(found)) == ("not_verified", [(5, "failed")])
    assert "Authority A, Authority B" in told(found, 5)


def test_one_known_root_is_not_enough(draft: Path, pair: tuple[Online, Online]) -> None:
    freeze_with(draft, *pair)
    assert problems(verify(draft, pair[1].trusted)) == [(5, "failed")]


def test_files_are_hashed_as_bytes(draft: Path, pair: tuple[Online, Online]) -> None:
    raw = "# Protocol\r\n\r\nThe gap\u2028is at least 0.03.\r".encode()
    (draft / "protocol.md").write_bytes(raw)
    (draft / "data.bin").write_bytes(b"\xff\x00\r\n")
    freeze_with(draft, *pair)
    listed = (draft / "FROZEN.sha256").read_bytes()
    assert b"%s  protocol.md\n" % hashlib.sha256(raw).hexdigest().encode() in listed
    assert (draft / "protocol.md").read_bytes() == raw
    assert verify(draft, *(one.trusted for one in pair)).verdict == "verified"


def test_a_line_ending_changed_afterwards_fails_the_first_step(
    draft: Path, pair: tuple[Online, Online]
) -> None:
    freeze_with(draft, *pair)
    (draft / "protocol.md").write_bytes((draft / "protocol.md").read_bytes().replace(b"\n", b"\r\n"))
    assert problems(verify(draft, *(one.trusted for one in pair))) == [(1, "failed")]


def test_sha256sum_agrees_with_the_list(draft: Path, pair: tuple[Online, Online]) -> None:
    freeze_with(draft, *pair)
    tool = ["sha256sum"] if shutil.which("sha256sum") else ["shasum", "-a", "256"]
    subprocess.run([*tool, "--check", "FROZEN.sha256"], cwd=draft, check=True, capture_output=True)


def test_the_drafts_own_trust_file_is_kept_as_it_is(draft: Path, pair: tuple[Online, Online]) -> None:
    own = write_trust((pair[1].trusted, pair[0].trusted), "By hand.").encode().replace(b"\n", b"\r\n")
    (draft / "trust.toml").write_bytes(own)
    freeze_with(draft, *pair)
    assert (draft / "trust.toml").read_bytes() == own
    assert verify(draft, *(one.trusted for one in pair)).verdict == "verified"


def test_a_trust_file_that_names_others_is_refused(draft: Path, pair: tuple[Online, Online]) -> None:
    with Authority("C") as other:
        named = (pair[0].trusted, source(other, "Authority C").trusted)
    (draft / "trust.toml").write_text(write_trust(named, "By hand."))
    with pytest.raises(UsageError, match="names other authorities than those to be asked"):
        freeze_with(draft, *pair)
    assert not (draft / "FROZEN.sha256").exists()


def test_a_draft_that_changes_meanwhile_is_not_frozen(draft: Path, pair: tuple[Online, Online]) -> None:
    def change() -> None:
        (draft / "protocol.md").write_bytes(b"Something else.\n")

    with pytest.raises((UsageError, VerificationError)):
        freeze_with(draft, pair[0], Scripted(pair[1], change))
    assert is_untouched(draft)


def test_a_file_that_appears_meanwhile_stops_the_freeze(draft: Path, pair: tuple[Online, Online]) -> None:
    with pytest.raises((UsageError, VerificationError)):
        freeze_with(draft, pair[0], Scripted(pair[1], lambda: (draft / "note.md").write_bytes(b"")))
    assert is_untouched(draft)


def test_what_was_frozen_meanwhile_is_not_frozen_again(draft: Path, pair: tuple[Online, Online]) -> None:
    opened = open_draft(draft, check_rules)
    first = freeze_with(draft, *pair)
    record = (draft / "record.toml").read_bytes()
    with pytest.raises(UsageError, match="frozen already"):
        freeze(draft, opened, pair, [one.trusted for one in pair], standing="public")
    assert (draft / "record.toml").read_bytes() == record
    assert load_registration(draft).sha256 == first.sha256


def test_a_recorded_time_that_no_token_states_is_found(draft: Path, pair: tuple[Online, Online]) -> None:
    freeze_with(draft, *pair)
    record = draft / "record.toml"
    record.write_text(
        re.sub(r"recorded_time = \S+", "recorded_time = 2020-01-01T00:00:00Z", record.read_text())
    )
    rehash(draft)
    assert verify(draft, *(one.trusted for one in pair)).verdict == "not_verified"


def test_forty_freezes_at_once(tmp_path: Path, pair: tuple[Online, Online]) -> None:
    folders = [write_draft(tmp_path, f"study-{number}") for number in range(40)]
    sources = [Online(one.trusted, one.certificates, 60) for one in pair]
    opened = [open_draft(folder, check_rules) for folder in folders]
    known = tuple(one.trusted for one in pair)
    with ThreadPoolExecutor(40) as pool:
        jobs = [
            pool.submit(freeze, folder, one, sources, known, standing="public")
            for folder, one in zip(folders, opened, strict=True)
        ]
        frozen = [job.result() for job in jobs]
    assert len({one.sha256 for one in frozen}) == 40
    assert {verify(folder, *known).verdict for folder in folders} == {"verified"}


def test_of_two_freezes_at_once_one_wins(draft: Path, pair: tuple[Online, Online]) -> None:
    refused = []

    def again() -> None:
        with pytest.raises(UsageError, match="another command is at work") as caught:
            freeze_with(draft, *pair)
        refused.append(caught.value)

    freeze_with(draft, Scripted(pair[0], again), pair[1])
    assert len(refused) == 1
    assert verify(draft, *(one.trusted for one in pair)).verdict == "verified"


# ------------------------------------------------------------------------------------------------- refusals


def _remove_protocol(folder: Path) -> None:
    (folder / "protocol.md").unlink()


def _rules(text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "rules.toml").write_text(text, encoding="utf-8") and None


NOT_READY: dict[str, tuple[Callable[[Path], object], type[Exception], str]] = {
    "a rule that cannot pass": (_rules(RULES + rule("H", "mean(gap) > 1")), RuleError, "H can never pass"),
    "a rule that cannot miss": (_rules(RULES + rule("H", "mean(gap) >= -1")), RuleError, "H can never miss"),
    "an endpoint not declared": (_rules(RULES + rule("H", "mean(gaps) >= 0.03")), RuleError, "gaps"),
    "a wrong unit": (
        _rules(RULES.replace('unit = "fraction"', 'unit = "steps"', 1) + rule("H", "mean(gap) >= 0.03")),
        RuleError,
        "another unit than what it measures",
    ),
    "no TOML": (_rules("name = "), RuleError, "not TOML"),
    "no protocol": (_remove_protocol, IncompleteError, r"protocol\.md is missing"),
    "rules that are no text": (
        lambda folder: (folder / "rules.toml").write_bytes(b"\xff"),
        DamagedError,
        "not UTF-8",
    ),
    "a link to a file": (
        lambda folder: (folder / "data.csv").symlink_to(folder / "protocol.md"),
        UsageError,
        "only plain files",
    ),
    "a link to a folder": (
        lambda folder: (folder / "data").symlink_to(folder.parent, target_is_directory=True),
        UsageError,
        "only plain files",
    ),
    "a link to nothing": (
        lambda folder: (folder / "data").symlink_to(folder / "nothing"),
        UsageError,
        "only plain files",
    ),
    "a space in a name": (
        lambda folder: (folder / "my data.csv").write_bytes(b""),
        UsageError,
        "name that a list cannot hold",
    ),
    "a letter that is not ASCII": (
        lambda folder: (folder / "größe.csv").write_bytes(b""),
        UsageError,
        "name that a list cannot hold",
    ),
    "a record": (lambda folder: (folder / "record.toml").write_bytes(b""), UsageError, "no freeze record"),
    "an amendment": (
        lambda folder: (folder / "amendments").mkdir() or (folder / "amendments/A1.toml").write_bytes(b""),
        UsageError,
        "comes after a freeze",
    ),
    "another name": (
        lambda folder: (folder / "rules.toml").write_text(RULES.replace('"small"', '"large"', 1)),
        UsageError,
        "folder of its name",
    ),
}


@pytest.mark.parametrize("defect", NOT_READY)
def test_a_draft_that_is_not_ready_is_refused(draft: Path, defect: str) -> None:
    change, error, message = NOT_READY[defect]
    change(draft)
    with pytest.raises(error, match=message):
        open_draft(draft, check_rules)


def test_what_is_frozen_is_not_frozen_again(draft: Path, pair: tuple[Online, Online]) -> None:
    freeze_with(draft, *pair)
    with pytest.raises(UsageError, match="frozen already"):
        open_draft(draft, check_rules)


def test_one_authority_is_not_enough(draft: Path, pair: tuple[Online, Online]) -> None:
    with pytest.raises(VerificationError, match="independent authorities"):
        freeze_with(draft, pair[0])
    assert is_untouched(draft)


def test_two_authorities_of_one_operator_are_not_enough(draft: Path) -> None:
    with Authority("A") as one, Authority("B") as other:
        sources = (source(one, "One", operator="Same"), source(other, "Other", operator="Same"))
        with pytest.raises(VerificationError, match="independent authorities") as caught:
            freeze_with(draft, *sources)
    assert caught.value.found == "all come from one operator"
    assert is_untouched(draft)


class _Kin(Authority):
    """An authority of another name, whose signer has the key of house A's."""

    @property
    def house(self) -> House:
        own, other = super().house, house("A")
        return House(own.root, own.intermediate, own.signer.but(key=other.signer.key))


def test_authorities_that_share_a_key_are_not_enough(draft: Path, pair: tuple[Online, Online]) -> None:
    with _Kin("B") as kin, pytest.raises(VerificationError, match="independent authorities") as caught:
        freeze_with(draft, pair[0], source(kin, "Kin"))
    assert "share a key" in (caught.value.found or "")
    assert is_untouched(draft)


def test_two_authorities_of_one_short_name_are_refused(draft: Path) -> None:
    """Their tokens would have one place: each would overwrite the other's."""
    with Authority("A") as one, Authority("B") as other:
        sources = (source(one, "Time stamps"), source(other, "time-stamps"))
        with pytest.raises((UsageError, DamagedError)):
            freeze_with(draft, *sources)
    assert is_untouched(draft)


@pytest.mark.parametrize(("hours", "is_frozen"), [(23.9, True), (25, False)])
def test_times_more_than_a_day_apart_are_refused(
    draft: Path, pair: tuple[Online, Online], hours: float, is_frozen: bool
) -> None:
    with Authority("B", at=datetime.now(UTC) - timedelta(hours=hours)) as late:
        sources = (pair[0], source(late, "Late"))
        if is_frozen:
            assert freeze_with(draft, *sources).standing == "public"
        else:
            with pytest.raises(VerificationError, match="times agree") as caught:
                freeze_with(draft, *sources)
            assert "times disagree by 1.0 days" in (caught.value.found or "")
            assert is_untouched(draft)


def test_a_registration_that_lost_its_chain_is_not_frozen_anew(
    draft: Path, pair: tuple[Online, Online]
) -> None:
    """That would destroy the evidence of its first freeze."""
    freeze_with(draft, *pair)
    (draft / "LATER.chain").unlink()
    with pytest.raises(UsageError, match="was frozen, and its"):
        freeze_with(draft, *pair)
