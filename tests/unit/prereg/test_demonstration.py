"""A freeze by authorities made for the occasion shows how it works, and passes for nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.registrations import chained, rehash
from tests.unit.prereg.drafts import (
    NAME,
    add_to,
    amendment,
    demonstrators,
    deviation,
    freeze_with,
    problems,
    verify,
)
from toolkit.prereg.pending import begin

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.prereg.timestamping import Online


def test_a_demonstration_says_what_it_is(draft: Path) -> None:
    freeze_with(draft, *demonstrators(), standing="demonstration")
    found = verify(draft)
    assert (found.verdict, found.standing) == ("verified", "demonstration")
    assert found.promise.startswith("DEMONSTRATION: its authorities were made for the occasion")
    assert 'standing = "demonstration"' in (draft / "record.toml").read_text()


def test_a_demonstrations_keys_are_written_nowhere(tmp_path: Path, draft: Path) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    sources = demonstrators()
    freeze_with(draft, *sources, standing="demonstration")
    keys = [one.authority._key for one in sources]  # noqa: SLF001 - what must be found nowhere
    secrets = [key.private_numbers().private_value.to_bytes(32, "big") for key in keys]
    secrets += [key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()) for key in keys]
    written = [path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert len(written) > 8
    assert not [raw for raw in written if b"PRIVATE" in raw or any(secret in raw for secret in secrets)]


def test_a_demonstration_relabelled_as_public_is_not_verified(draft: Path) -> None:
    freeze_with(draft, *demonstrators(), standing="demonstration")
    record = draft / "record.toml"
    record.write_text(record.read_text().replace('"demonstration"', '"public"', 1))
    rehash(draft)
    found = verify(draft)
    assert (found.verdict, found.standing, problems(found)) == ("not_verified", "public", [(5, "failed")])


def test_an_attackers_own_authorities_do_not_make_a_registration_public(draft: Path) -> None:
    freeze_with(draft, *demonstrators(), standing="public")
    assert problems(verify(draft)) == [(5, "failed")]


def test_a_demonstration_cut_short_can_become_public(draft: Path, pair: tuple[Online, Online]) -> None:
    freeze_with(draft, *demonstrators(), standing="demonstration")
    (draft / "LATER.chain").unlink()
    begin(draft, (draft / "FROZEN.sha256").read_bytes())
    freeze_with(draft, *pair)
    found = verify(draft, *(one.trusted for one in pair))
    assert (found.verdict, found.standing, chained(draft)) == ("verified", "public", ["record.toml"])
    assert found.registration == NAME


def test_a_demonstration_is_amended_by_authorities_made_for_it(draft: Path) -> None:
    freeze_with(draft, *demonstrators(), standing="demonstration")
    add_to(draft, amendment(), *demonstrators())
    add_to(draft, deviation(), *demonstrators())
    found = verify(draft)
    assert (found.verdict, problems(found), found.standing) == ("verified", [], "demonstration")
    assert chained(draft)[1:] == [
        "trust/A1.toml",
        "amendments/A1.toml",
        "trust/D1.toml",
        "deviations/D1.toml",
    ]


def test_a_demonstrated_token_that_was_removed_is_missed(draft: Path) -> None:
    freeze_with(draft, *demonstrators(), standing="demonstration")
    add_to(draft, amendment(), *demonstrators())
    (draft / "evidence/A1.demonstration-b.tsr").unlink()
    assert problems(verify(draft)) == [(8, "missing")]
