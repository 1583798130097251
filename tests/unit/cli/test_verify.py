"""One command verifies whatever there is, and ends with the code of the worst."""

import json
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Toolkit
from tests.forge.case import recipe
from tests.forge.pki import house
from tests.forge.token import DOCUMENT
from toolkit.places import Home
from toolkit.prereg.evidence import write_certificates

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


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.tsr").write_bytes(recipe().make())
    (tmp_path / "document").write_bytes(DOCUMENT)
    (tmp_path / "root.pem").write_bytes(write_certificates([house().root.der]))
    (tmp_path / "root.der").write_bytes(house().root.der)
    return tmp_path


GOOD = ("good.tsr", "--document", "document", "--root", "root.pem")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("root", ["root.pem", "root.der"])
def test_a_good_token_is_verified_with_its_facts(toolkit: Toolkit, root: str) -> None:
    result = toolkit("verify-token", "good.tsr", "--document", "document", "--root", root)
    assert result.code == 0
    for fact in (
        "good.tsr: verified",
        "serial",
        "CN=Forge Root A, SHA-256",
        "revocation  not checked",
        "Proven",
    ):
        assert fact in result.out
    assert toolkit("verify-token", *GOOD, "--json").json()["verdict"] == "verified"


@pytest.mark.usefixtures("here")
def test_what_a_refused_token_says_is_a_claim(toolkit: Toolkit, here: Path) -> None:
    (here / "document").write_bytes(b"another")
    result = toolkit("verify-token", *GOOD)
    assert result.code == 1
    assert "check 5, imprint: token is for another document" in result.out
    assert "it claims, and nothing of it is verified" in result.out
    assert "Proven" not in result.out


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("good.tsr", "--root", "root.pem"), 2, "one of --document and --digest"),
        ((*GOOD, "--digest", "sha256:" + "0" * 64), 2, "and not both"),
        (("good.tsr", "--digest", "0" * 64, "--root", "root.pem"), 2, "a digest is written ALG:HEX"),
        (("good.tsr", "--digest", "sha256:aa", "--root", "root.pem"), 2, "sha256: 64 digits"),
        (("good.tsr", "--digest", "md5:" + "0" * 32, "--root", "root.pem"), 2, "a digest is written"),
        ((*GOOD, "--policy", "abc"), 2, "a policy is an object identifier"),
        ((*GOOD, "--at", "yesterday"), 2, "a time is written as in"),
        (("good.tsr", "--document", "document"), 2, "--root"),
        (("good.tsr", "--document", "document", "--root", "good.tsr"), 4, "is not what it has to be"),
        (("good.tsr", "--document", "document", "--root", "document"), 4, "document holds no certificate"),
        ((*GOOD, "--request", "good.tsr"), 4, "is not what it has to be"),
        ((*GOOD, "--crl", "root.pem"), 4, "root.pem holds no"),
        (("nothing.tsr", *GOOD[1:]), 3, "nothing.tsr cannot be read"),
        ((".", *GOOD[1:]), 3, "cannot be read"),
        ((*GOOD, "--at", "2020-01-01T00:00:00Z"), 1, "check 14, time: time in the future"),
        ((*GOOD, "--openssl"), 0, "openssl agrees"),
    ],
)
def test_a_wrong_input_is_named(toolkit: Toolkit, arguments: tuple[str, ...], code: int, said: str) -> None:
    result = toolkit("verify-token", *arguments)
    assert (result.code, said in result.out + result.err) == (code, True), result
