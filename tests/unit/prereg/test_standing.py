"""What a registration's verdicts stand on, by the steps of its verification."""

from contextlib import nullcontext

import pytest

from toolkit.errors import VerificationError
from toolkit.prereg.verification import Check, Standing, Verification, require, standing_of

TOKEN = Check(4, "token of A", "missing", "the token is not here: evidence/a.tsr")
TOO_FEW = Check(5, "independent authorities", "missing", "1 verified tokens; all are needed, and at least 2")
PAPER = Check(2, "timestamped document", "missing", "not here: the document.\nGet it from there.")
LATE = Check(9, "amendments before runs", "failed", "A1 made after the first run")
UNPROVEN = Check(8, "amendments and deviations", "unproven", "by the days that they name")

CASES: dict[str, tuple[str, tuple[Check, ...], Standing]] = {
    "what passed is what its record says": ("public", (), Standing("public")),
    "what nobody contradicts does not lessen it": ("public", (UNPROVEN,), Standing("public")),
    "a demonstration is one": ("demonstration", (), Standing("demonstration")),
    "what is missing is told in a line each": (
        "demonstration",
        (PAPER, TOKEN),
        Standing("incomplete", (), ("not here: the document", "the token is not here: evidence/a.tsr")),
    ),
    "what follows from a token that is missing is not told": (
        "public",
        (TOKEN, TOO_FEW),
        Standing("incomplete", (), ("the token is not here: evidence/a.tsr",)),
    ),
    "a single token is": ("public", (TOO_FEW,), Standing("incomplete", (), (TOO_FEW.detail,))),
    "a failed step outweighs, and is named once": (
        "public",
        (PAPER, LATE, LATE),
        Standing("failed", ("amendments before runs",), ("not here: the document",)),
    ),
    "files that do not hold": (
        "unknown",
        (Check(1, "recorded files", "failed", "changed"),),
        Standing("failed", ("recorded files",)),
    ),
}


@pytest.mark.parametrize("claim", CASES)
def test_a_standing_is_the_least_that_the_steps_leave(claim: str) -> None:
    recorded, checks, expected = CASES[claim]
    passed = Check(7, "freeze before runs", "passed", "")
    assert standing_of(Verification("r", "any", (passed, *checks), standing=recorded)) == expected


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("public", ()),
        ("demonstration", ("public",)),
        ("incomplete", ("public", "demonstration")),
        ("failed", ("public", "demonstration", None)),
    ],
)
def test_less_than_what_is_required_is_refused(name: str, refused: tuple[str | None, ...]) -> None:
    standings = {"good": Standing("public"), "r": Standing(name, ("a step",), ("a token",))}
    for least in ("public", "demonstration", None):
        told = (
            pytest.raises(VerificationError, match="registration r ") if least in refused else nullcontext()
        )
        with told:
            require(standings, least)
