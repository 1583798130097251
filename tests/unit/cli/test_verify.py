"""One command verifies whatever there is, and ends with the code of the worst."""

import json
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Toolkit
from toolkit.places import Home

STAMP = "examples/own-study/prompting/registered/prereg/prompting/evidence/freeze.demonstration-a"


def outcomes(thing: dict) -> dict[str, str]:
    return {step["step"]: step["outcome"] for step in thing["steps"]}


@pytest.mark.parametrize("depth", ["files", "rows", "registration"])
def test_a_study_is_verified_down_to_a_depth(toolkit: Toolkit, alone: Home, depth: str) -> None:
    (study,) = toolkit("verify", alone.registers / "published", "--depth", depth, "--json").json()
    steps = ["files", "rows", "registration"]
    assert list(outcomes(study)) == steps[: steps.index(depth) + 1]
    assert (study["kind"], study["verdict"]) == ("study", "verified")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("published", "its runs were not played by this toolkit: nothing is played again"),
        pytest.param("embedded", "1 rows played again, all as registered (seed 7)", marks=pytest.mark.slow),
    ],
)
def test_rows_of_a_study_are_played_again(toolkit: Toolkit, name: str, says: str) -> None:
    *_, study = toolkit("verify", name, "--replay", "1", "--seed", "7", "--json").json()
    assert study["steps"][-1] == {"step": "replay", "outcome": "passed", "detail": says}


def test_what_is_damaged_keeps_nothing_else_from_being_verified(toolkit: Toolkit, alone: Home) -> None:
    (table, *_) = (alone.registers / "published").rglob("*.parquet")
    table.write_bytes(table.read_bytes()[:-1])
    done = toolkit("verify", "--json")
    found = {(thing["kind"], thing["thing"]): thing for thing in json.loads(done.out)}
    assert done.code == 4
    assert outcomes(found["study", "published"]) == {"files": "damaged"}
    assert found["registration", "embedded"]["verdict"] == "verified"
    assert found["registration", "paired-rollouts"]["verdict"] == "incomplete"
    assert toolkit("verify", "embedded", "--require", "public").code == 1


def test_a_token_is_verified_for_its_document(toolkit: Toolkit) -> None:
    folder = CHECKOUT / Path(STAMP).parents[1]
    asked = ("verify", CHECKOUT / f"{STAMP}.tsr", "--root", CHECKOUT / f"{STAMP}.pem", "--json")
    (token,) = toolkit(*asked, "--document", folder / "FROZEN.sha256").json()
    assert (token["kind"], token["verdict"]) == ("token", "verified")
    other = toolkit(*asked, "--document", folder / "rules.toml")
    assert (other.code, json.loads(other.out)[0]["verdict"]) == (1, "not_verified")
    toolkit("verify", CHECKOUT / f"{STAMP}.tsr").refused(2, "roots that somebody pinned")


def test_a_statement_is_what_is_decided_here(toolkit: Toolkit, tmp_path: Path) -> None:
    toolkit("export", "published", "--as", "in-toto", "--rule", "H2a", "--into", tmp_path / "out")
    path = tmp_path / "out" / "H2a.statement.json"
    (statement,) = toolkit("verify", path, "--json").json()
    assert set(outcomes(statement).values()) == {"passed"}
    forged = json.loads(path.read_text())
    forged["predicate"]["decision"]["verdict"] = "pass"
    path.write_text(json.dumps(forged))
    done = toolkit("verify", path, "--json")
    assert done.code == 1
    assert outcomes(json.loads(done.out)[0])["verdict and numbers"] == "failed"
    path.write_text("{}")
    assert toolkit("verify", path).code == 4


def test_what_cannot_be_verified_is_refused(toolkit: Toolkit) -> None:
    toolkit("verify", "emdedded").refused(2, "embedded")
    toolkit("verify", "embedded", "--depth", "rows", "--replay", "2").refused(2, "leave --depth out")
