"""The steps of the published study, which the laboratory holds against draws and plays again."""

import pytest

from toolkit.errors import DamagedError, VerificationError
from toolkit.lab.evidence import Laboratory

FIRST = [("files", "passed"), ("rows", "passed"), ("registration", "passed")]
PLAYED = [*FIRST, ("draws", "passed"), ("replay", "passed"), ("replay", "unproven")]


@pytest.fixture
def asked(monkeypatch):
    """Return what the laboratory is asked, which finds nothing wrong."""
    asked = []
    monkeypatch.setattr(Laboratory, "hold_against_draws", lambda _, study, _say: f"held {study.name}")
    monkeypatch.setattr(
        Laboratory,
        "play_published",
        lambda _, study, sample, seed, _say: asked.append((study.name, sample, seed)) or "played",
    )
    return asked


def steps_of(found):
    (thing,) = found.json()
    return [(step["step"], step["outcome"]) for step in thing["steps"]]


@pytest.mark.parametrize(
    ("options", "steps", "played"),
    [
        (("--depth", "rows"), FIRST[:2], []),
        ((), [*FIRST, ("draws", "passed"), ("replay", "unproven")], []),
        (("--replay", 3, "--seed", 7), PLAYED, [("published", 3, 7)]),
        (("--depth", "replay", "--seed", 8), PLAYED, [("published", 16, 8)]),
    ],
)
def test_what_is_not_public_is_unproven_whatever_is_played(toolkit, asked, options, steps, played) -> None:
    found = toolkit("verify", "published", *options, "--json")
    assert (found.code, steps_of(found), asked) == (0, steps, played)


@pytest.mark.parametrize(
    ("error", "outcome", "code"), [(VerificationError, "failed", 1), (DamagedError, "damaged", 4)]
)
def test_what_its_draws_exclude_is_its_last_step(toolkit, asked, monkeypatch, error, outcome, code) -> None:
    def excluded(*_):
        raise error("impossible", where="here")

    monkeypatch.setattr(Laboratory, "hold_against_draws", excluded)
    found = toolkit("verify", "published", "--replay", 1, "--json")
    assert (found.code, steps_of(found), asked) == (code, [*FIRST, ("draws", outcome)], [])
