"""Everything that can be wrong with a push: nothing half-done, nothing lost, nothing moved."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, run
from tests.hub.conftest import NAME, PUBLISHED, TOKEN, damage, expect, make_rows, name_anew, push, put
from tests.hub.server import FixtureHub
from toolkit.files import write_bytes
from toolkit.prereg.registration import load_registration
from toolkit.registers.hub import transfer as pushing
from toolkit.registers.manifest import read_manifest, write_manifest
from toolkit.structs import replace


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the small study with a table more, only to be read."""
    return make_rows(tmp_path_factory.mktemp("more") / "study", schedules_too=True)


def test_a_commit_of_somebody_else_in_between_is_not_overwritten(small: Path, hub: FixtureHub) -> None:
    fault = hub.fail("another_writer", "POST .*/commit/main")
    expect(push(small), 1, "somebody else has committed in the meantime; nothing was changed")
    assert fault.met == 1
    assert hub.store.repository(NAME).head.title == "another writer"


def test_a_push_goes_on_top_of_the_commit_that_one_names(hub: FixtureHub, small: Path, more: Path) -> None:
    old = put(hub, small)
    done = push(more, "--parent", old, "--json").json()
    assert done["added"] == ["schedules/test.parquet"]
    assert done["changed"] == ["MANIFEST.json", "README.md"]
    assert hub.store.repository(NAME).head.parent == old
    assert len(hub.asked("PUT")) == 1
    new = hub.store.repository(NAME).head.sha
    hub.requests.clear()
    expect(push(small, "--parent", old, "--replace"), 1, old, new)
    assert hub.store.repository(NAME).head.sha == new
    assert hub.asked("POST") == []


def test_a_card_that_was_not_filled_in_is_not_published(hub: FixtureHub, rows: Path) -> None:
    write_bytes(rows / "README.md", b"# FILL IN: the study in one line\n")
    name_anew(rows, "README.md")
    expect(push(rows), 2, "the card was not filled in")
    assert NAME not in hub.store.repositories


def test_rows_are_not_changed_or_removed_unless_that_is_said(hub, small, more, tmp_path) -> None:
    old, second = put(hub, more), make_rows(tmp_path / "second", runs=2)
    for study, words in ((second, "runs/"), (small, "schedules/test.parquet")):
        expect(push(study), 2, "registers are append-only", words)
    assert hub.store.repository(NAME).head.sha == old
    assert push(small, "--replace").code == 0
    files = hub.store.repository(NAME).head.files
    assert "schedules/test.parquet" not in files
    assert ".gitattributes" in files


def test_an_empty_repository_is_taken_and_none_of_something_else(small: Path, hub: FixtureHub) -> None:
    hub.store.create(NAME)
    assert push(small).code == 0
    manifest = (PUBLISHED / "MANIFEST.json").read_bytes()
    another = hub.store.commit(NAME, {"MANIFEST.json": manifest}).sha
    expect(push(small, "--replace"), 2, "holds another study")
    assert hub.store.repository(NAME).head.sha == another
    none = hub.store.commit(NAME, {"data.csv": b"1,2"}, deleted=("MANIFEST.json",)).sha
    expect(push(small, "--replace"), 2, "holds something that is no register")
    assert hub.store.repository(NAME).head.sha == none


def test_a_damaged_study_is_not_pushed(hub: FixtureHub, rows: Path) -> None:
    damage(next((rows / "runs").iterdir()))
    assert push(rows).code == 4
    assert hub.requests == []


def test_a_tag_that_is_there_is_not_moved(hub: FixtureHub, commit: str, more: Path) -> None:
    expect(push(more, "--tag", "v1.0.0"), 1, "the tag v1.0.0")
    assert hub.store.repository(NAME).tags["v1.0.0"][0] == commit
    assert hub.store.repository(NAME).head.sha == commit  # refused before anything was sent


def test_a_tag_made_meanwhile_is_not_moved(small, hub, commit, monkeypatch) -> None:
    hub.store.untag(NAME, "v1.0.0")
    initial = hub.store.repository(NAME).commits[commit].parent
    check = pushing.check_push

    def then_tagged(*args: object, **kwargs: object) -> None:
        check(*args, **kwargs)
        hub.store.tag(NAME, "v2", str(initial))

    monkeypatch.setattr(pushing, "check_push", then_tagged)
    expect(push(small, "--tag", "v2"), 1, "the tag v2")
    assert hub.store.repository(NAME).tags["v2"][0] == initial


@pytest.mark.parametrize(("kind", "where"), [("forbidden", "PUT"), ("hung_up", "POST .*/commit/")])
def test_an_interrupted_push_changes_nothing_and_goes_on(small, hub, kind, where) -> None:
    # The first three contents arrive, and all others do not; or all do, and the commit does not.
    hub.fail("another_writer", where, 3 if where == "PUT" else 0)
    hub.fail(kind, where)
    expect(push(small), 3, "what to do")
    assert list(hub.store.repository(NAME).head.files) == [".gitattributes"]
    hub.mend()
    before = [request for request in hub.asked("PUT") if request.rpartition("/")[2] in hub.store.contents]
    hub.requests.clear()
    assert push(small).code == 0
    parquet = [name for name in read_manifest(small).files if name.endswith(".parquet")]
    assert len(hub.asked("PUT")) == len(parquet) - len(set(before))
    assert before


def test_a_hub_that_states_other_content_is_not_believed(hub: FixtureHub, small: Path) -> None:
    commit, fail = hub.store.commit, []

    def altered(name: str, added: dict[str, bytes | str], *args: object, **kwargs: object) -> object:
        if "README.md" in added:
            fail.append(added)
            added = {**added, "README.md": b"---\n---\nsomething else"}
        return commit(name, added, *args, **kwargs)

    hub.store.commit = altered
    problem = "what the Hub states of the commit is not what was pushed"
    expect(push(small, "--tag", "v1.0.0"), 1, problem, "README.md")
    assert fail
    assert hub.store.repository(NAME).tags == {}


def test_no_permission_or_no_hub_is_no_push(small, hub, monkeypatch) -> None:
    hub.token = TOKEN
    for token in ("", "hf_another"):
        monkeypatch.setenv("HF_TOKEN", token)
        expect(push(small), 3, "HF_TOKEN")
    assert hub.store.repositories == {}
    hub.requests.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert (push(small).code, hub.requests) == (3, [])
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    hub.stop()
    expect(push(small), 3, "the Hub cannot be reached")


def test_a_tag_has_the_form_of_one(small: Path, hub: FixtureHub) -> None:
    names = ("a b", "../x", "", "v1..2", "v1.lock", "v1.", "main", "HEAD")
    for tag in (*names, "a" * 101, "0" * 40, "ABCDE12345" * 4):
        assert push(small, "--tag", tag).code == 2
    assert run("registers", "push", small, f"{NAME}@dev").code == 2  # a push goes to the branch main
    assert hub.requests == []
    tags = ["v1.0.0", "1", "v1.lock.2", "2026-01-01", "0" * 39, "v1+a_b"]
    for tag in tags:
        assert push(small, "--tag", tag).code == 0
    assert list(hub.store.repository(NAME).tags) == tags


def test_a_tag_by_the_name_of_a_branch_is_refused(small: Path, hub: FixtureHub, commit: str) -> None:
    hub.store.repository(NAME).branches["dev"] = commit
    expect(push(small, "--tag", "dev"), 2, "is a branch of")
    assert hub.asked("POST .*/tag/") == []


def test_a_public_repository_is_not_made_private_by_a_push(hub: FixtureHub, commit: str, more: Path) -> None:
    for arguments in (("--private",), ("--private", "--dry-run")):
        expect(push(more, *arguments), 2, "is public")
    assert hub.store.repository(NAME).head.sha == commit
    assert hub.asked("POST|PUT") == []
    hub.store.repository(NAME).private = True
    assert push(more, "--private").code == 0


def test_a_push_of_the_same_study_makes_no_commit(hub: FixtureHub, small: Path) -> None:
    push = ("registers", "push", small, NAME)
    planned = run(*push, "--dry-run", "--json").json()
    assert planned["outcome"] == "planned"
    assert "MANIFEST.json" in planned["added"]
    assert hub.store.repositories == {}
    run(*push, "--private")
    assert hub.store.repository(NAME).private
    head = hub.store.repository(NAME).head.sha
    again = run(*push, "--tag", "v1.0.0", "--json").json()
    assert (again["outcome"], again["commit"]) == ("unchanged", head)
    assert len(hub.asked("POST .*/commit/")) == 1
    assert run(*push, "--tag", "v1.0.0").code == 0


# A registration that a study carries is guarded as its rows are, and has to be one.

REGISTRATION = "embedded"
CARRIED = f"prereg/{REGISTRATION}"
CHAIN = f"{CARRIED}/LATER.chain"


def reseal(folder: Path) -> None:
    """Have the manifest name what lies there of a registration."""
    manifest = read_manifest(folder)
    files = {name: entry for name, entry in manifest.files.items() if not name.startswith("prereg/")}
    write_manifest(folder, replace(manifest, files=files))
    carried = sorted(path for path in (folder / "prereg").rglob("*") if path.is_file())
    name_anew(folder, *(path.relative_to(folder).as_posix() for path in carried))


def name(folder: Path, sha256: str) -> None:
    """Have the manifest name a registration by its digest."""
    manifest = read_manifest(folder)
    reference = replace(manifest.registration, name=REGISTRATION, sha256=sha256)
    write_manifest(folder, replace(manifest, registration=reference))


@pytest.fixture
def carrying(rows: Path) -> Path:
    """Return the folder of a study of rows that carries a registration which loads."""
    source = CHECKOUT / "prereg" / REGISTRATION
    shutil.copytree(source, rows / CARRIED)
    name(rows, load_registration(source).sha256)
    reseal(rows)
    return rows


def earlier(study: Path, folder: Path) -> Path:
    """Make the study as it was before the last thing was registered later."""
    shutil.copytree(study, folder)
    lines = (folder / CHAIN).read_text().splitlines(keepends=True)
    (folder / CHAIN).write_text("".join(lines[:-1]))
    (folder / CARRIED / lines[-1].split()[-1]).unlink()
    reseal(folder)
    return folder


def test_what_is_registered_later_is_added_and_the_chain_grows(hub, carrying, tmp_path) -> None:
    put(hub, earlier(carrying, tmp_path / "earlier"))
    done = push(carrying, "--json")
    assert done.code == 0, done.err
    assert CHAIN in done.json()["changed"]
    assert [name for name in done.json()["added"] if name.startswith(CARRIED)]


def of_another_chain(folder: Path) -> None:
    path = folder / CHAIN
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0].replace(lines[0][:4], "0000", 1), *lines[1:-1]]))


def of_other_rules(folder: Path) -> None:
    path = folder / CARRIED / "rules.toml"
    path.write_text(path.read_text() + "\n# other\n")


def of_more_than_is_here(folder: Path) -> None:
    (folder / CARRIED / "amendments" / "A99.toml").write_text("an amendment")


@pytest.mark.parametrize(
    ("change", "name"),
    [(of_another_chain, "LATER.chain"), (of_other_rules, "rules.toml"), (of_more_than_is_here, "A99.toml")],
)
def test_a_registration_that_is_there_is_not_changed_unless_that_is_said(
    hub: FixtureHub, carrying: Path, tmp_path: Path, change: Callable[[Path], None], name: str
) -> None:
    there = tmp_path / "there"
    shutil.copytree(carrying, there)
    change(there)
    reseal(there)
    old = put(hub, there)
    expect(push(carrying), 2, "change or remove a registration", name)
    assert hub.store.repository(NAME).head.sha == old
    assert push(carrying, "--replace").code == 0


def of_another_digest(folder: Path) -> None:
    name(folder, "0" * 64)


def of_a_draft(folder: Path) -> None:
    (folder / CARRIED / "FROZEN.sha256").unlink()
    (folder / CHAIN).unlink()


@pytest.mark.parametrize(
    ("change", "code", "problem"),
    [
        (of_other_rules, 1, ""),
        (of_another_chain, 1, ""),
        (of_another_digest, 4, "is not the one that its manifest names"),
        (of_a_draft, 3, ""),
    ],
)
def test_a_registration_that_is_not_the_manifests_frozen_one_is_not_pushed(
    hub: FixtureHub, carrying: Path, change: Callable[[Path], None], code: int, problem: str
) -> None:
    change(carrying)
    reseal(carrying)
    expect(push(carrying), code, problem)
    assert hub.requests == []
