"""The evidence of the published study, from a checkout of its authors' repository."""

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from tests.authors_checkout import (
    DOCUMENT,
    FREEZE,
    POOLS,
    adapt,
    change_json,
    copy_of,
    figures_of,
    fingerprint,
    forged,
    put,
    stamped,
    vouched,
    write_checkout,
)
from tests.conftest import CHECKOUT, Result, run
from tests.forge.server import Authority
from tests.restated_document import FROZEN_DOCUMENT, made_document
from tests.unit.lab.worlds.published.made_words import write as write_words
from toolkit.lab.worlds.published import tasks
from toolkit.lab.worlds.published.words import AT, adopted_words
from toolkit.places import HOME_VARIABLE, Home
from toolkit.prereg.authority import make_request

RUN = "registers/runs/t1-c2-paired-s1.json"
REAL = FROZEN_DOCUMENT.is_file()


@pytest.fixture(scope="module")
def document() -> bytes:
    """The frozen document where it is at hand, else a made one: both are adopted in the same way."""
    return FROZEN_DOCUMENT.read_bytes() if REAL else made_document()


@pytest.fixture(scope="module")
def made(tmp_path_factory, document):
    """A home whose restatement rests on made authorities, and a checkout that has all the evidence."""
    root, authorities = tmp_path_factory.mktemp("adopt"), forged()
    home = Home(root / "home")
    for name in ("prereg/paired-rollouts", "cards", "registers/published"):
        shutil.copytree(CHECKOUT / name, home.root / name)
    adapt(home, document, authorities)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(home.root))
        assert run("registers", "build", "published").code == 0
    write_checkout(root / "checkout", document, authorities, figures_of(home))
    (root / "trust.toml").write_text(vouched(authorities))
    return root


@pytest.fixture
def place(made, tmp_path, monkeypatch) -> Path:
    """The same, to be damaged."""
    shutil.copytree(made / "home", tmp_path / "home")
    copy_of(made / "checkout", tmp_path / "checkout")
    shutil.copy(made / "trust.toml", tmp_path / "trust.toml")
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    return tmp_path


def adopt(place: Path, *more: object) -> Result:
    return run("adopt", "published", place / "checkout", "--trust", place / "trust.toml", *more)


def evidence(place: Path) -> Path:
    return place / "home/prereg/paired-rollouts/evidence"


def outcomes(place: Path) -> dict[int, str]:
    link = (place / "home/prereg/paired-rollouts/LATER.chain").read_text().splitlines()[-1].split()[0]
    options = ("--trust", place / "trust.toml", "--restatement", link, "--json")
    (verified,) = run("verify-prereg", "paired-rollouts", *options).json()
    return {"verdict": verified["verdict"], **{c["step"]: c["outcome"] for c in verified["checks"]}}


def test_a_whole_checkout_is_adopted_and_then_verifies(place, document) -> None:
    assert outcomes(place)[2] == "missing"
    tried = adopt(place, "--dry-run", "--json")
    assert (tried.code, tried.json()["outcome"], evidence(place).exists()) == (0, "dry run", False)
    done = adopt(place, "--json")
    said = done.json()
    assert (done.code, said["outcome"]) == (0, "adopted"), done.err
    assert said["pools"] == {"compared": 8, "differences": [], "not_compared": []}
    assert (said["figures"]["runs"], said["figures"]["differences"]) == (17, [])
    told = " ".join((CHECKOUT / "GUIDE.md").read_text(encoding="utf-8").split())
    assert f"{said['figures']['compared']:,} figures" in told
    assert (evidence(place) / "document").read_bytes() == document
    assert sorted(path.name for path in evidence(place).iterdir()) == said["files"]
    found = outcomes(place)
    assert (found["verdict"], found[3]) == ("verified", "unproven")
    assert {found[step] for step in (1, 2, 4, 5, 6, 7)} == {"passed"}
    before = {path: path.stat().st_mtime_ns for path in evidence(place).iterdir()}
    again = adopt(place)
    assert (again.code, "in its place already" in again.out) == (0, True)
    assert {path: path.stat().st_mtime_ns for path in evidence(place).iterdir()} == before


def test_once_adopted_a_rule_is_explained_in_the_words_that_it_restates(place, document) -> None:
    without = run("explain", "H2a")
    assert "toolkit adopt published CHECKOUT" in without.out
    adopt(place)
    (explained,) = run("explain", "H2a", "--json").json()
    restated = explained["restates"]
    shown = {span["name"]: span for span in restated["spans"]}
    assert (restated["is_at_hand"], shown["H2a"]["lines"]) == (True, [62, 62])
    assert shown["H2a"]["text"].encode() == document.splitlines(keepends=True)[61]
    assert document.splitlines()[61].decode() in run("explain", "H2a").out


def test_what_a_checkout_lacks_is_named_and_never_taken_for_equal(place) -> None:
    shutil.rmtree(place / "checkout/data")
    (place / "checkout" / RUN).unlink()
    change_json("registers/runs/t1-c4-paired-s0.json", lambda r: r["curves"]["clean"].pop())(
        place / "checkout"
    )
    done = adopt(place, "--json")
    said = done.json()
    assert (done.code, said["pools"]["compared"], len(said["pools"]["not_compared"])) == (0, 0, 8)
    assert said["figures"]["runs"] == 16
    lacking = " ".join(said["figures"]["not_compared"])
    for words in (RUN, "t1-c4-paired-s0, periodic clean at step 100, true_success", "launch time"):
        assert words in lacking
    told = adopt(place).out
    assert "figures compared: " in told
    assert "not compared: every figure of t1-c2-paired-s1" in told
    shutil.rmtree(place / "checkout/registers/runs")
    assert "figures compared: 0, of 0 runs; " in adopt(place).out


@pytest.fixture
def made_tasks(place, monkeypatch) -> None:
    """Have the checkout hold words, and its made pools be what they give."""
    write_words(place / "checkout", monkeypatch)
    made = {name: [{"task_id": f"{name}-00000"}] for name in POOLS}
    monkeypatch.setattr(tasks, "pools", lambda _words, _progress: made)


@pytest.mark.usefixtures("made_tasks")
def test_words_are_adopted_with_the_tasks_that_they_give(place) -> None:
    said = adopt(place, "--json").json()
    assert said["tasks"] == {"tasks": 4, "differences": [], "not_compared": []}
    there = {path.name for path in evidence(place).iterdir()}
    assert {"world.py", "tasks.py", "tools.py", "dataset.py"} <= there == set(said["files"])
    assert adopted_words(Home(place / "home")).units == ("piece", "pieces")
    assert adopt(place, "--json").json()["outcome"] == "unchanged"
    assert outcomes(place)["verdict"] == "verified"


@pytest.mark.usefixtures("made_tasks")
def test_a_task_that_the_words_do_not_give_ends_with_1(place) -> None:
    path = place / "checkout/data/tasks/test.jsonl"
    path.write_bytes(path.read_bytes() + b"{}\n")
    done = adopt(place)
    assert done.code == 1
    assert (
        "DIFFERS: data/tasks/test.jsonl, line 2: the seed gives no task, and the file has another" in done.out
    )
    words = place / "checkout" / AT / "world.py"
    words.write_bytes(b"")
    assert "world.py is not the file that the published runs were made with" in adopt(place).out
    assert not (evidence(place) / "world.py").exists()
    words.unlink()
    assert "tasks generated anew: 0; different: 0" in adopt(place).out


def _without(name: str):
    return lambda root: (root / name).unlink()


def _with(name: str, content: bytes):
    return lambda root: put(root, name, content)


def _frozen_as(**facts: str):
    return change_json(f"{FREEZE}/freeze.json", lambda freeze: freeze.update(facts))


def _edit(name: str, old: bytes, new: bytes):
    def edited(root: Path) -> None:
        content = (root / name).read_bytes()
        assert old in content
        (root / name).write_bytes(content.replace(old, new, 1))

    return edited


def _token(house: str, *, late: bool = False, of: bytes | None = None):
    """Have the first token be of an authority, an hour late, or over another digest."""

    def stamp(root: Path) -> None:
        request = (root / f"{FREEZE}/prereg.tsq").read_bytes() if of is None else make_request(of)
        at = stamped("FreeTSA") + timedelta(hours=late)
        put(root, f"{FREEZE}/prereg_freetsa.tsr", Authority(house, at=at).recipe(request).make())

    return stamp


def _another_nonce(root: Path) -> None:
    digest = bytes.fromhex(fingerprint((root / DOCUMENT).read_bytes()))
    put(root, f"{FREEZE}/prereg.tsq", make_request(digest))


def _link(name: str, target: str):
    def linked(root: Path) -> None:
        (root / name).unlink()
        (root / name).symlink_to(target)

    return linked


def _linked_folder(root: Path) -> None:
    shutil.move(root / "registers/freeze", root.parent / "freeze")
    (root / "registers/freeze").symlink_to(root.parent / "freeze")


def _huge(name: str, size: int):
    def grown(root: Path) -> None:
        with (root / name).open("r+b") as stream:
            stream.truncate(size)

    return grown


def _pipe(root: Path) -> None:
    (root / DOCUMENT).unlink()
    os.mkfifo(root / DOCUMENT)


SHA256 = f"{FREEZE}/PREREGISTRATION.md.sha256"
REFUSED = {
    "the document changed": (_edit(DOCUMENT, b"a", b"b"), 1, "is not the one that was timestamped"),
    "its line ends converted": (
        lambda root: put(root, DOCUMENT, (root / DOCUMENT).read_bytes().replace(b"\n", b"\r\n")),
        1,
        "core.autocrlf",
    ),
    "the document missing": (_without(DOCUMENT), 3, f"the checkout has no {DOCUMENT}"),
    "the SHA-256 file differs": (_with(SHA256, b"0" * 64), 1, "PREREGISTRATION.md.sha256"),
    "the SHA-256 file is empty": (_with(SHA256, b"\n"), 1, "found: nothing"),
    "freeze.json has another hash": (_frozen_as(sha256="0" * 64), 1, "freeze.json: sha256"),
    "freeze.json has another commit": (_frozen_as(commit="0" * 40), 1, "freeze.json: commit"),
    "freeze.json has another time": (_frozen_as(frozen_on_utc="2026"), 1, "freeze.json: frozen_on_utc"),
    "freeze.json is a list": (_with(f"{FREEZE}/freeze.json", b"[]"), 4, "no record of a freeze"),
    "freeze.json is no JSON": (_with(f"{FREEZE}/freeze.json", b"{"), 4, "is not JSON"),
    "freeze.json is deep": (_with(f"{FREEZE}/freeze.json", b"[" * 41 + b"]" * 41), 4, "more than 40 deep"),
    "freeze.json has a number without end": (
        _with(f"{FREEZE}/freeze.json", b'{"sha256": 1e99999999999999999999}'),
        4,
        "is not JSON",
    ),
    "a token over another document": (_token("A", of=bytes(32)), 1, "token is for another document"),
    "a token missing": (
        _without(f"{FREEZE}/prereg_digicert.tsr"),
        3,
        "the checkout has no registers/freeze/v1/prereg_digicert.tsr",
    ),
    "a token that is none": (_with(f"{FREEZE}/prereg_digicert.tsr", b"<html>"), 1, "not a DER token"),
    "a token of the other authority": (_token("B"), 1, "step 4, token of FreeTSA"),
    "a token of another time": (_token("A", late=True), 1, "the record says 2026-09-08T12:34:39Z"),
    "the request's nonce wrong": (_another_nonce, 1, "reply does not answer this request (nonce differs)"),
    "the request missing": (_without(f"{FREEZE}/prereg.tsq"), 3, "no registers/freeze/v1/prereg.tsq"),
    "certificates that are none": (_with(f"{FREEZE}/freetsa_cacert.pem", b"no"), 4, "holds no certificate"),
    "no certificates": (
        _without(f"{FREEZE}/freetsa_cacert.pem"),
        3,
        "pinned root certificate of FreeTSA is not here",
    ),
    "a link out of the checkout": (_link(DOCUMENT, "/etc/hostname"), 1, "leads out of the checkout"),
    "a folder that is a link out": (_linked_folder, 1, "leads out of the checkout"),
    "a link to itself": (_link(DOCUMENT, "PREREGISTRATION.md"), 4, DOCUMENT),
    "a run's register that is a link out": (_link(RUN, "/etc/hostname"), 1, "leads out of the checkout"),
    "a document without end": (_huge(DOCUMENT, 9 << 20), 4, "is too long to be read"),
    "a token without end": (_huge(f"{FREEZE}/prereg_freetsa.tsr", 2 << 20), 4, "is too long to be read"),
    "a register without end": (_huge(RUN, 9 << 20), 4, "is too long to be read"),
    "a pool without end": (_huge("data/tasks/train.jsonl", 257 << 20), 4, "is too long to be read"),
    "a document that is a pipe": (_pipe, 3, DOCUMENT),
    "a list of pools that is none": (_with("data/tasks/MANIFEST.json", b"[1]"), 4, "is no list of pools"),
}


@pytest.mark.parametrize("damage", REFUSED)
def test_damaged_evidence_is_named_and_nothing_is_put_in_place(place, damage) -> None:
    change, code, words = REFUSED[damage]
    change(place / "checkout")
    done = adopt(place).refused(code, words)
    assert "evidence" not in {path.name for path in evidence(place).parent.iterdir()}, done.err


def test_authorities_that_the_reader_does_not_know_prove_nothing(place) -> None:
    (place / "trust.toml").write_text(vouched({"A": Authority("C"), "B": Authority("D")}))
    adopt(place).refused(1, "step 5, independent authorities", "nobody but the registration itself vouches")
    assert adopt(place, "--json").refused(1).json()["error"]["exit_code"] == 1
    assert not evidence(place).exists()


DIFFERING = {
    "a pool's listed hash": (
        change_json("data/tasks/MANIFEST.json", lambda m: m["files"]["test"].update(sha256="0" * 64)),
        "data/tasks/MANIFEST.json of data/tasks/test.jsonl: expected SHA-256",
    ),
    "a pool's file": (
        lambda root: put(root, "data/tasks/train.jsonl", b"{}\n"),
        "the file of data/tasks/train.jsonl: expected SHA-256",
    ),
    "a success rate in a digit that a double does not hold": (
        _edit(RUN, b'"true_success": 0.703125', b'"true_success": 0.70312500000000001'),
        "periodic noisy at step 60, true_success: published 0.703125, in the checkout 0.70312500000000001",
    ),
    "a final count": (
        change_json(RUN, lambda r: r["final"]["clean"].update(episodes=801)),
        "final clean at step 100, episodes: published 800, in the checkout 801",
    ),
    "a missing value that became a number": (
        change_json(RUN, lambda r: r["final"]["clean"].update(recovery_success=0.0)),
        "recovery_success: published nothing, in the checkout 0.0",
    ),
    "a number that became null": (
        change_json(RUN, lambda r: r["auc"].update(noisy=None)),
        "auc_noisy: published 0.62109375, in the checkout nothing",
    ),
    "another run under its name": (
        change_json(RUN, lambda r: r.update(run_id="t1-c2-paired-s2")),
        "t1-c2-paired-s1, run_id: published t1-c2-paired-s1, in the checkout t1-c2-paired-s2",
    ),
    "a luck share": (
        change_json(RUN, lambda r: r["luck_share"]["diag:step0"].update(lam=0.5)),
        "luck share at step 0, lam: published 0.3800802461775287, in the checkout 0.5",
    ),
    "a training step": (
        change_json(RUN, lambda r: r["training_curve"][60].update(true_success=0.5)),
        "t1-c2-paired-s1, training step 60, true_success: published 0.640625, in the checkout 0.5",
    ),
    "an attempt of a run outside the matrix": (
        change_json(
            "registers/runs/smoke-do-train.json", lambda r: r["attempts"][1].update(resumed_from_step=2)
        ),
        "smoke-do-train, attempt 2, resumed_from_step: published 3, in the checkout 2",
    ),
    "what an attempt left": (
        change_json(RUN, lambda r: r["lineage"]["groups"][0].update(records=2401)),
        "t1-c2-paired-s1, attempt 1, groups: published 2400, in the checkout 2401",
    ),
    "spurious groups": (
        change_json(RUN, lambda r: r["training_groups"]["C2"].update(groups=2399)),
        "training groups, groups: published 2400, in the checkout 2399",
    ),
    "text that would move a terminal": (
        change_json(RUN, lambda r: r.update(status="\x1b[2J")),
        "status: published COMPLETE, in the checkout \\x1b[2J",
    ),
}


@pytest.mark.parametrize("difference", DIFFERING)
def test_a_hash_or_figure_that_differs_is_named_and_ends_with_1(place, difference) -> None:
    change, words = DIFFERING[difference]
    change(place / "checkout")
    done = adopt(place)
    assert (done.code, words in done.out) == (1, True), done.out + done.err
    assert sum("DIFFERS" in line for line in done.out.splitlines()) == 1
    # The evidence is proven by the tokens, whatever else the checkout holds.
    assert outcomes(place)["verdict"] == "verified"


def test_an_adoption_leaves_a_readers_own_certificates_and_writes_nowhere_else(place) -> None:
    evidence(place).mkdir()
    mine = (place / "checkout" / f"{FREEZE}/freetsa_cacert.pem").read_bytes()
    (evidence(place) / "mine.pem").write_bytes(mine)
    (evidence(place) / "note.txt").write_text("no evidence")
    before = {path for path in place.rglob("*") if evidence(place) not in path.parents}
    assert adopt(place).code == 0
    assert {path for path in place.rglob("*") if evidence(place) not in path.parents} == before
    names = {path.name for path in evidence(place).iterdir()}
    assert ("mine.pem" in names, "note.txt" in names) == (True, False)


def test_what_adopt_cannot_be_asked_is_refused(place, monkeypatch) -> None:
    run("adopt", "published", place / "nowhere").refused(2, "a checkout is a folder")
    run("adopt", "nothing", place / "checkout").refused(2, "there is no study")
    record = place / "home/prereg/paired-rollouts/evidence"
    record.symlink_to(place)
    adopt(place).refused(2, "the folder of the evidence is a link")
    monkeypatch.setenv(HOME_VARIABLE, str(CHECKOUT))
    run("adopt", "embedded", place / "checkout").refused(
        2, "does not say where a checkout keeps its evidence"
    )
