"""`toolkit verify-token`: wrong inputs are named as such, and are no verdict on a token."""

from pathlib import Path

import pytest

from tests.conftest import Toolkit
from tests.forge.case import recipe
from tests.forge.pki import house
from tests.forge.token import DOCUMENT
from toolkit.prereg.evidence import write_certificates


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
