"""The anchor of a registration."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CHECKOUT
from toolkit.errors import IncompleteError
from toolkit.prereg.anchor import anchor
from toolkit.prereg.registration import load_registration

if TYPE_CHECKING:
    from toolkit.places import Home

FOLDER = CHECKOUT / "prereg" / "embedded"


def test_the_anchor_is_the_hash_of_digest_and_tokens() -> None:
    registration = load_registration(FOLDER)
    tokens = [(FOLDER / a.token_place).read_bytes() for a in registration.record.authorities]
    lines = [registration.sha256, *(hashlib.sha256(token).hexdigest() for token in tokens)]
    expected = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    assert anchor(registration) == expected


def test_another_token_is_another_anchor(copy: Home) -> None:
    folder = copy.registrations / "embedded"
    before = anchor(load_registration(folder))
    token = folder / "evidence" / "freeze.demonstration-a.tsr"
    token.write_bytes(token.read_bytes() + b"0")
    assert anchor(load_registration(folder)) != before


def test_without_a_token_there_is_no_anchor(copy: Home) -> None:
    folder = copy.registrations / "embedded"
    (folder / "evidence" / "freeze.demonstration-b.tsr").unlink()
    with pytest.raises(IncompleteError):
        anchor(load_registration(folder))
