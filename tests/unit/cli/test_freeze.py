"""`toolkit freeze`, `amend`, `deviate` and `verify-prereg` together, as their user meets them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Toolkit, snapshot
from tests.forge.server import Authority, OpensslAuthority
from tests.unit.decisions.rows_study import ROW_RULES
from tests.unit.decisions.study import rule
from tests.unit.prereg import drafts
from tests.unit.prereg.drafts import amendment, deviation, is_untouched, trusted, write_trust_file
from toolkit.places import HOME_VARIABLE
from toolkit.prereg import authority as asking
from toolkit.prereg.registration import load_registration


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one draft, where nothing goes through a proxy."""
    shutil.copytree(CHECKOUT / "registers/published", tmp_path / "registers/published")
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(asking, "PAUSE_S", 0.001)
    return drafts.write_draft(tmp_path / "prereg")


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Authority, OpensslAuthority]]:
    with Authority("A") as one, OpensslAuthority() as other:
        yield one, other


@pytest.fixture
def asking_them(tmp_path: Path, servers: tuple[Authority, OpensslAuthority]) -> tuple[str, ...]:
    entries = (trusted(servers[0], "Authority A"), trusted(servers[1], "OpenSSL"))
    options = ["--trust", str(write_trust_file(tmp_path / "mine.toml", *entries))]
    options += ["--root", str(drafts.write_roots(tmp_path / "roots.pem", *servers))]
    for server in servers:
        options += ["--authority", server.url]
    return tuple(options)


def test_freeze_and_verify_over_http(toolkit: Toolkit, asking_them: tuple[str, ...]) -> None:
    frozen = toolkit("freeze", "small", *asking_them)
    verified = toolkit("verify-prereg", "small", *asking_them[:2], "--openssl")
    assert frozen.code == 0, frozen.err
    assert "small: frozen" in frozen.out
    assert "Authority A: asking http://127.0.0.1" in frozen.err
    assert verified.code == 0, verified.out
    assert "small: verified" in verified.out
    assert "DEMONSTRATION" not in frozen.out + verified.out


def test_without_the_readers_trust_file_it_is_not_verified(toolkit, asking_them) -> None:
    toolkit("freeze", "small", *asking_them)
    result = toolkit("verify-prereg", "small", "--json")
    assert result.code == 1
    (found,) = result.json()
    assert found["verdict"] == "not_verified"
    (failed,) = [check for check in found["checks"] if check["outcome"] == "failed"]
    assert failed["step"] == 5
    assert "--trust FILE" in failed["detail"]


def test_a_registration_is_verified_before_there_is_any_study(toolkit: Toolkit, tmp_path: Path) -> None:
    """As whoever freezes one finds it: the runs come afterwards."""
    shutil.rmtree(tmp_path / "registers/published")
    toolkit("freeze", "small", "--demonstration")
    result = toolkit("verify-prereg", "small")
    assert (result.code, "small: verified" in result.out) == (0, True), result.err


def test_freeze_prints_one_json_document(toolkit: Toolkit, asking_them: tuple[str, ...], place: Path) -> None:
    found = toolkit("freeze", "small", *asking_them, "--json").json()
    assert (found["registration"], found["standing"]) == ("small", "public")
    assert found["sha256"] == load_registration(place).sha256
    assert [one["verdict"] for one in found["authorities"]] == ["verified", "verified"]


def test_a_dry_run_asks_nobody_and_writes_nothing(toolkit, asking_them, place, servers) -> None:
    before, asked = snapshot(place), len(servers[0].requests)
    result = toolkit("freeze", "small", "--dry-run", *asking_them)
    assert result.code == 0
    assert "small can be frozen: protocol.md, rules.toml" in result.out
    assert (snapshot(place), len(servers[0].requests)) == (before, asked)


USAGE = {
    "one authority": ("--authority", "{0}"),
    "one authority twice": ("--authority", "{0}", "--authority", "{0}"),
    "one that nobody trusts": ("--authority", "{0}", "--authority", "http://127.0.0.1:9/"),
    "a demonstration that asks": ("--demonstration", "--authority", "{0}"),
    "a timeout of nothing": ("--timeout", "0"),
}


@pytest.mark.parametrize("options", USAGE.values(), ids=USAGE)
def test_what_makes_no_sense_is_wrong_usage(toolkit, asking_them, options, place, servers) -> None:
    words = [word.format(servers[0].url) for word in options]
    toolkit("freeze", "small", *asking_them[:4], *words).refused(2)
    assert is_untouched(place)


EMBEDDED = (CHECKOUT / "prereg/embedded/rules.toml").read_text(encoding="utf-8")
FIXED = EMBEDDED.replace('name = "embedded"', 'name = "small"').replace('"0.25"', '"0.20"', 1)


@pytest.mark.parametrize(
    ("rules", "says"),
    [(FIXED, "fault_rate"), (ROW_RULES + rule("H", "mean(gap) > 1"), "rule H can never pass")],
)
def test_rules_that_could_not_be_played_or_decided_are_refused(toolkit, place, rules, says) -> None:
    """They would be refused when the first run is launched: after the freeze."""
    (place / "rules.toml").write_text(rules, encoding="utf-8")
    toolkit("freeze", "small", "--demonstration").refused(4, says)
    assert is_untouched(place)


def test_a_demonstration_says_so_in_capitals(toolkit: Toolkit) -> None:
    frozen = toolkit("freeze", "small", "--demonstration")
    verified = toolkit("verify-prereg", "small")
    assert (frozen.code, verified.code) == (0, 0), frozen.err
    assert "DEMONSTRATION" in frozen.out
    assert "small: verified   DEMONSTRATION" in verified.out
    assert "it proves nothing to others" in verified.out


def test_an_amendment_and_a_deviation_are_added(toolkit, asking_them, tmp_path, place) -> None:
    toolkit("freeze", "small", *asking_them)
    (tmp_path / "A1.toml").write_bytes(amendment())
    (tmp_path / "D1.toml").write_bytes(deviation())
    amended = toolkit("amend", "small", tmp_path / "A1.toml", *asking_them)
    deviated = toolkit("deviate", "small", tmp_path / "D1.toml", *asking_them, "--json")
    assert (amended.code, deviated.code) == (0, 0), amended.err + deviated.err
    assert "amendment A1 recorded in amendments/A1.toml" in amended.out
    assert deviated.json()["link"] == load_registration(place).entries[-1].link
    assert toolkit("verify-prereg", "small", *asking_them[:2]).code == 0


def adding(*tests: str, name: str = "N") -> bytes:
    return amendment(replaces=[], adds=[name], body=rule(name, *tests))


def test_a_later_amendment_replaces_what_an_earlier_one_added(toolkit, tmp_path, place) -> None:
    toolkit("freeze", "small", "--demonstration")
    (tmp_path / "A1.toml").write_bytes(adding("mean(gap) >= 0.05"))
    (tmp_path / "A2.toml").write_bytes(amendment("A2", replaces=["N"], body=rule("N", "mean(gap) >= 0.06")))
    toolkit("amend", "small", tmp_path / "A2.toml").refused(4, "which there is not yet")
    added = toolkit("amend", "small", tmp_path / "A1.toml", "--json")
    assert (added.code, added.json()["file"]) == (0, "amendments/A1.toml"), added.err
    assert toolkit("amend", "small", tmp_path / "A2.toml").code == 0
    first, later = load_registration(place).amendments
    assert (first.adds, first.replaces, later.replaces) == (("N",), (), ("N",))
    assert toolkit("verify-prereg", "small").code == 0


REFUSED = {
    "an added rule that cannot pass": (adding("mean(gap) > 1"), 4, "can never pass"),
    "an added rule that there is": (adding("mean(gap) >= 0.05", name="H"), 4, "which there is already"),
    "a rule that cannot miss": (amendment(body=rule("H", "mean(gap) >= -1")), 4, "can never miss"),
    "an endpoint not declared": (amendment(body=rule("H", "mean(gaps) >= 0.03")), 4, "gaps"),
    "a deviation": (deviation(), 2, "is no amendment"),
    "no file": (None, 3, "cannot be read"),
}


@pytest.mark.parametrize("defect", REFUSED)
def test_an_amendment_that_is_none_is_refused(toolkit, tmp_path, place, defect) -> None:
    content, code, message = REFUSED[defect]
    toolkit("freeze", "small", "--demonstration")
    before = snapshot(place)
    if content is not None:
        (tmp_path / "A1.toml").write_bytes(content)
    toolkit("amend", "small", tmp_path / "A1.toml").refused(code, message)
    assert snapshot(place) == before


def test_an_amendment_that_empties_a_rule_that_rests_on_it_is_refused(toolkit, tmp_path, place) -> None:
    """G needs H to pass and the gap to be small: with H at 0.6, nothing is left for it to pass with."""
    rests = rule("G", "passes(H)", "mean(gap) <= 0.5")
    (place / "rules.toml").write_text(ROW_RULES + rule("H", "mean(gap) >= 0.03") + rests)
    assert toolkit("freeze", "small", "--demonstration").code == 0
    (tmp_path / "A1.toml").write_bytes(amendment(body=rule("H", "mean(gap) >= 0.6")))
    toolkit("amend", "small", tmp_path / "A1.toml").refused(4, "rule G can never pass")


def test_a_deviation_that_concerns_no_rule_here_is_refused(toolkit: Toolkit, tmp_path: Path) -> None:
    toolkit("freeze", "small", "--demonstration")
    (tmp_path / "D1.toml").write_bytes(deviation(concerns=["H77"]))
    toolkit("deviate", "small", tmp_path / "D1.toml").refused(2, "H77")
