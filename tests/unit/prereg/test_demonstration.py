"""A freeze by authorities made for the occasion shows how it works, and passes for nothing else."""

import pytest

from tests.registrations import chained, rehash
from tests.unit.prereg import drafts
from tests.unit.prereg.drafts import add_to, demonstrate, demonstrators, freeze_with, problems, verify
from toolkit.prereg.chain import begin


@pytest.fixture
def shown(draft):
    demonstrate(draft)
    return draft


def test_a_demonstration_says_what_it_is(shown) -> None:
    result = verify(shown)
    assert (result.verdict, result.standing) == ("verified", "demonstration")
    assert result.promise.startswith("DEMONSTRATION: its authorities were made for the occasion")
    assert 'standing = "demonstration"' in (shown / "record.toml").read_text()


def test_a_demonstrations_keys_are_written_nowhere(tmp_path, draft) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    sources = demonstrate(draft)
    keys = [source._key for source in sources]  # noqa: SLF001 - what must be found nowhere
    secrets = [key.private_numbers().private_value.to_bytes(32, "big") for key in keys]
    secrets += [key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()) for key in keys]
    written = [path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert len(written) > 8
    assert not [raw for raw in written if b"PRIVATE" in raw or any(secret in raw for secret in secrets)]


def test_a_demonstration_relabelled_as_public_is_not_verified(shown) -> None:
    record = shown / "record.toml"
    record.write_text(record.read_text().replace('"demonstration"', '"public"', 1))
    rehash(shown)
    result = verify(shown)
    assert (result.verdict, result.standing, problems(result)) == ("not_verified", "public", [(5, "failed")])


def test_a_demonstration_cut_short_can_become_public(shown, pair) -> None:
    (shown / "LATER.chain").unlink()
    begin(shown, (shown / "FROZEN.sha256").read_bytes())
    freeze_with(shown, *pair)
    result = verify(shown, *pair)
    assert (result.verdict, result.standing, chained(shown)) == ("verified", "public", ["record.toml"])
    assert result.registration == drafts.NAME


def test_a_demonstration_is_amended_by_authorities_made_for_it(shown) -> None:
    add_to(shown, drafts.amendment(), *demonstrators())
    add_to(shown, drafts.deviation(), *demonstrators())
    result = verify(shown)
    assert (result.verdict, problems(result), result.standing) == ("verified", [], "demonstration")
    added = ["trust/A1.toml", "amendments/A1.toml", "trust/D1.toml", "deviations/D1.toml"]
    assert chained(shown)[1:] == added
