"""A study goes to the Hub and comes back: the same bytes, whichever way it is named, read and decided."""

import hashlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit
from tests import row_study
from tests.conftest import CHECKOUT, Result, run, snapshot
from tests.hub.conftest import (
    NAME,
    PUBLISHED,
    RUNS,
    SHA,
    cached,
    damage,
    expect,
    make_rows,
    meet,
    name_anew,
    pull,
    put,
)
from tests.hub.server import FixtureHub, Handler
from tests.unit.registers.importing.logs import LOGS, study_of
from toolkit.cases import open_registers
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.files import write_bytes
from toolkit.places import HOME_VARIABLE
from toolkit.registers.hub import client
from toolkit.registers.hub import transfer as pulling
from toolkit.registers.hub.client import Pin, change_pin, looks_like_reference, parse_reference, read_pins
from toolkit.registers.importing.reading import read_log
from toolkit.registers.manifest import MANIFEST_NAME, Origin, read_manifest, write_manifest
from toolkit.registers.query import ask, asking, open_remote
from toolkit.registers.study import open_study
from toolkit.structs import replace


@pytest.fixture(scope="module")
def offered() -> Iterator[FixtureHub]:
    """Return a Hub with the published study, tagged v1.0.0, only to be read."""
    with FixtureHub() as hub:
        put(hub, PUBLISHED, tag="v1.0.0")
        yield hub


@pytest.fixture
def published(offered, tmp_path_factory, monkeypatch) -> str:
    """Return the commit of the published study on the Hub; all tests share a cache."""
    meet(offered, tmp_path_factory.getbasetemp() / "offered", monkeypatch)
    return offered.store.repository(NAME).head.sha


def test_what_is_pulled_by_branch_tag_and_sha_is_what_was_pushed(hub: FixtureHub, tmp_path: Path) -> None:
    hub.page = 3  # a tree of many pages is read to its end
    done = run("registers", "push", "published", NAME, "--tag", "v1.0.0")
    repository = hub.store.repository(NAME)
    commit, files = repository.head.sha, len(repository.head.files) - 1
    assert f"commit {commit}, tag v1.0.0; the Hub states {files} files as here" in done.out
    assert f"cite it as {NAME}@{commit}" in done.out
    assert repository.tags["v1.0.0"][0] == commit
    assert read_manifest(PUBLISHED).logical_sha256 in str(repository.tags["v1.0.0"][1])
    for revision in ("", "@main", "@v1.0.0", f"@{commit}"):
        pulled = run("registers", "pull", f"{NAME}{revision}", "--json").json()
        assert pulled["origin"]["commit"] == commit
        assert pulled["folder"] == str(cached(tmp_path, commit))
    assert snapshot(cached(tmp_path, commit)) == snapshot(PUBLISHED)
    assert len(hub.asked("GET .*/resolve/")) == files  # each once
    assert [path.name for path in cached(tmp_path, commit).parents[1].iterdir() if path.is_dir()] == [
        "studies"
    ]


def alone(hub: FixtureHub, folder: Path, *command: str) -> str:
    """Return what Python says in a process of its own, as a user has it."""
    environment, words = {**os.environ, **hub.environment(folder)}, [sys.executable, *command]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=CHECKOUT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_study_on_the_hub_is_decided_as_the_one_here_is(offered, published, tmp_path) -> None:
    command = ("decide", "H2a", "--study", f"{NAME}@v1.0.0", "--json")
    (decision,) = json.loads(alone(offered, tmp_path, "-m", "toolkit", *command))
    (here,) = run("decide", "H2a", "--study", "published", "--json").json()
    assert decision.pop("origin") == {"repository": NAME, "revision": "v1.0.0", "commit": published}
    assert here.pop("origin") is None
    assert decision == here
    for register in decision["registers"]:
        for path, sha256 in register["files"].items():
            assert hashlib.sha256((PUBLISHED / path).read_bytes()).hexdigest() == sha256


def test_commands_take_a_study_on_the_hub_and_show_its_commit(published: str) -> None:
    study = toolkit.open_study(f"{NAME}@v1.0.0")
    assert study.origin == Origin(NAME, "v1.0.0", published)
    named = ("--study", f"hf://datasets/{NAME}@{published}", "--json")
    assert run("sql", "SELECT count(*) AS n FROM runs", *named).json() == [{"n": 15}]
    (verified,) = run("registers", "verify", *named).json()
    assert verified["origin"] == {"repository": NAME, "revision": published, "commit": published}
    for command in ("decide", "explain"):
        shown = f"{NAME}@{published}, asked for as v1.0.0"
        assert shown in run(command, "H2a", "--study", f"{NAME}@v1.0.0").out
    out = run("decide", "H2a", "--study", "published", "--study", NAME).out
    assert out.count("H2a  Learning under tool faults  (study published)") == 2
    assert out.count(f"{NAME}@{published}") == 1


def test_what_lies_here_wins_over_the_hub(hub, rows, monkeypatch) -> None:
    assert run("registers", "verify", "--study", "tests/nothing").code == 2
    folder = rows.parent / f"{NAME}@v1.0.0"
    folder.parent.mkdir()
    rows.rename(folder)
    monkeypatch.chdir(rows.parent)
    assert open_registers(f"{NAME}@v1.0.0").folder == folder
    assert hub.requests == []


def test_what_is_not_there_is_said(hub: FixtureHub, commit: str) -> None:
    hub.store.create("group/words")
    hub.store.commit("group/words", {"README.md": b"words", "big.parquet": b"x" * 1000})
    for reference, problem in {
        "group/nothing": "there is no such dataset repository, or it is private",
        f"{NAME}@v9": "the repository has no such revision",
        f"{NAME}@{'0' * 40}": "the repository has no such revision",
        "group/words": "group/words is no register of this toolkit",
    }.items():
        for command in (
            ("registers", "pull", reference),
            ("sql", "FROM runs", "--study", reference, "--remote"),
        ):
            assert "--offline" not in expect(run(*command), 3, problem, "what to do").err
    assert hub.asked("big.parquet") == []  # a stranger's data is not downloaded to find that out


@pytest.mark.parametrize("how", ["variable", "no connection", "server error", "option"])
def test_without_the_hub_the_cache_is_used_and_checked_and_this_is_said(
    hub: FixtureHub, warm: Path, commit: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "variable":
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    elif how == "no connection":
        hub.stop()
    elif how == "server error":
        hub.fail("server_error", ".")
    options = ["--offline"] if how == "option" else []
    done = pull("@v1.0.0", "--json", *options)
    assert done.code == 0
    assert done.json()["origin"]["commit"] == commit
    assert "the Hub " in done.err
    assert f"{NAME}@v1.0.0 is taken as commit {commit}, as when it was last asked" in done.err
    assert pull(f"@{commit}", *options).code == 0
    for never_pulled in ("@v2", "", f"@{'0' * 40}"):
        expect(pull(never_pulled, *options), 3, "what to do")
    damage(warm / RUNS)
    assert expect(pull("@v1.0.0", *options), 4).out == ""


def test_python_is_told_that_the_hub_was_not_asked(hub, warm, commit, caplog) -> None:
    assert toolkit.open_study(f"{NAME}@v1.0.0", offline=True).origin is not None
    assert commit in caplog.text
    assert hub.requests == []


def test_what_the_hub_has_no_more_is_offered_from_the_cache(hub: FixtureHub, warm: Path, commit: str) -> None:
    offer = f"take commit {commit} from the cache: --offline"
    fault = hub.fail("forbidden", ".")
    expect(pull(), 3, "log in", offer)
    hub.faults.remove(fault)
    hub.store.repositories.pop(NAME)
    for revision in ("@v1.0.0", f"@{commit}"):
        expect(pull(revision), 3, "there is no such dataset repository", "HF_TOKEN", offer)
        assert pull(revision, "--offline").code == 0


def pull_into(folder: Path) -> Result:
    return pull("", "--into", folder)


@pytest.fixture
def copy(hub: FixtureHub, warm: Path, small: Path, tmp_path: Path) -> Path:
    """Return a copy of the small study that was pulled."""
    assert pull_into(tmp_path / "copies" / "copy").code == 0
    assert snapshot(tmp_path / "copies" / "copy") == snapshot(small)
    return tmp_path / "copies" / "copy"


CHANGES: dict[str, Callable[[Path], object]] = {
    "rows of one's own": lambda copy: damage(next((copy / "episodes").iterdir())),
    "notes": lambda copy: (copy / "notes.txt").write_text("mine"),
    "a hidden note": lambda copy: (copy / ".note").write_text("mine"),
    "a history": lambda copy: write_bytes(copy / ".git" / "HEAD", b"ref: refs/heads/main"),
    "a link": lambda copy: (copy / "link").symlink_to(copy.parent),
    "a study that agrees with itself": lambda copy: make_rows(copy, runs=2),
    "something else": lambda copy: (copy / MANIFEST_NAME).write_text("{}"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_copy_with_something_of_ones_own_is_refused_and_not_touched(copy, change) -> None:
    change(copy)
    before = snapshot(copy)
    expect(pull_into(copy), 3, "holds something that would be lost")
    assert snapshot(copy) == before


def test_a_copy_is_made_whole_and_goes_on(hub: FixtureHub, copy: Path, tmp_path: Path) -> None:
    before = snapshot(copy)
    next((copy / "episodes").iterdir()).unlink()
    assert pull_into(copy).code == 0
    assert snapshot(copy) == before
    put(hub, make_rows(tmp_path / "later", schedules_too=True))
    assert pull_into(copy).code == 0
    assert snapshot(copy) == snapshot(tmp_path / "later")
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / ("x" * 300)):
        assert pull_into(folder).code == 3
    assert (tmp_path / "file").read_text() == "mine"


@pytest.fixture
def carrying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the published study with its registration in it, beside a home that has nothing."""
    folder = tmp_path / "study"
    shutil.copytree(PUBLISHED, folder)
    shutil.copytree(CHECKOUT / "prereg" / "paired-rollouts", folder / "prereg" / "paired-rollouts")
    carried = (folder / "prereg").rglob("*")
    name_anew(folder, *(path.relative_to(folder).as_posix() for path in carried if path.is_file()))
    for name in ("registers", "prereg"):
        (tmp_path / "home" / name).mkdir(parents=True)
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    return folder


def test_a_study_is_decided_and_verified_by_the_registration_that_it_carries(hub, carrying, tmp_path) -> None:
    commit = put(hub, carrying, tag="v1.0.0")
    (decision,) = run("decide", "H2a", "--study", f"{NAME}@v1.0.0", "--json").json()
    assert (decision["verdict"], decision["origin"]["commit"]) == ("miss", commit)
    (verified,) = run("verify-prereg", "--study", f"{NAME}@v1.0.0", "--json").json()
    assert verified["registration"] == "paired-rollouts"
    assert verified["verdict"] == "incomplete"  # the authors' tokens are not part of this project
    # A draft, or another registration of the same name, decides nothing.
    here = tmp_path / "home" / "prereg" / "paired-rollouts"
    here.mkdir()
    (here / "rules.toml").write_text("language = 1\n")
    assert run("decide", "H2a", "--study", NAME).code == 0
    shutil.rmtree(here)
    shutil.copytree(CHECKOUT / "prereg" / "embedded", here)
    assert run("decide", "H2a", "--study", NAME).code == 0


def test_a_study_is_not_verified_by_the_registration_of_another(hub, carrying, tmp_path) -> None:
    manifest = read_manifest(carrying)
    shutil.rmtree(carrying / "prereg")
    files = {name: entry for name, entry in manifest.files.items() if not name.startswith("prereg/")}
    other = replace(manifest.registration, name="embedded")
    write_manifest(carrying, replace(manifest, files=files, registration=other))
    put(hub, carrying)
    shutil.copytree(CHECKOUT / "prereg" / "embedded", tmp_path / "home" / "prereg" / "embedded")
    expect(run("verify-prereg", "--study", NAME), 4, "belongs to other frozen files")


@pytest.mark.slow
def test_datasets_loads_and_streams_the_commit(offered: FixtureHub, published: str, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from datasets import load_dataset\n"
        "asked = dict(name='runs', split='train', revision=sys.argv[2])\n"
        "whole = load_dataset(sys.argv[1], **asked)\n"
        "streamed = list(load_dataset(sys.argv[1], streaming=True, **asked))\n"
        "assert [r['run_id'] for r in streamed] == whole['run_id'][:]\n"
        "print(whole.num_rows)\n"
    )
    done = alone(offered, tmp_path, "-W", "ignore", "-c", script, NAME, published)
    assert int(done) == read_manifest(PUBLISHED).tables["runs"].rows


def test_what_the_real_xet_client_sent_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hf_xet

    (tmp_path / "cas").mkdir()
    with FixtureHub(cas=tmp_path / "cas") as hub:
        meet(hub, tmp_path, monkeypatch)
        # The Hub learns a file's Xet hash from the store; this one is told.
        parquet = sorted(PUBLISHED.rglob("*.parquet"))
        for path, known in zip(parquet, hf_xet.hash_files([str(p) for p in parquet]), strict=True):
            content = path.read_bytes()
            hub.store.keep_elsewhere(hashlib.sha256(content).hexdigest(), len(content), known.hash)
        pushed = run("registers", "push", "published", NAME, "--json").json()
        assert hub.asked("PUT|lfs") == []
        assert len(hub.asked("xet-write-token")) == 1
        assert run("registers", "pull", NAME, "--json").json()["origin"]["commit"] == pushed["commit"]
        assert hub.asked("GET .*resolve.*parquet") == []
        assert snapshot(cached(tmp_path, pushed["commit"])) == snapshot(PUBLISHED)


# A log: files of a repository that is no register.

SOURCE = f"hf://datasets/{NAME}"
DATASET = LOGS / "hub_dataset" / "repository"


def test_a_log_on_the_hub_is_the_one_that_was_put_there_and_is_read_again_without_it(
    hub: FixtureHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = put(hub, DATASET, tag="v1.0.0")
    here = read_log([DATASET]).table.drop("file")
    for revision in ("", "@main", "@v1.0.0", f"@{commit}"):
        log = read_log([f"{SOURCE}{revision}"])
        assert log.table.drop("file").equals(here)
        assert set(log.table["file"]) == {"study"}
    assert study_of(log)["episodes"].height == 72
    said: list[str] = []
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert read_log([SOURCE], said.append).table.height == 72
    assert "as when it was last asked" in "".join(said)
    with pytest.raises(IncompleteError, match="no such file"):
        read_log([f"{SOURCE}/absent"])


def test_only_what_was_named_of_a_log_is_downloaded(hub: FixtureHub, monkeypatch: pytest.MonkeyPatch) -> None:
    put(hub, DATASET)
    assert read_log([f"{SOURCE}/data/validation-*.parquet"]).table.height == 24
    assert not hub.asked("test-0")
    (one,) = read_log([f"{SOURCE}@main/data/test-00000-of-00002.parquet"]).files
    assert one.name == "test-00000-of-00002.parquet"
    hub.requests.clear()
    monkeypatch.setattr(pulling, "LARGEST_LOG", 9000)
    with pytest.raises(DamagedError, match="more than a log has"):
        read_log([SOURCE])
    assert not hub.asked("parquet")
    assert read_log([f"{SOURCE}/data/test-*"]).table.height == 48
    assert not hub.asked("validation|test-00000")


def test_rollouts_of_trl_in_repositories_are_runs_by_their_names(hub: FixtureHub) -> None:
    for name in ("grpo-s0", "dr_grpo-s0"):
        put(hub, LOGS / "trl" / name, f"me/{name}")
    log = read_log([f"hf://datasets/me/{name}" for name in ("grpo-s0", "dr_grpo-s0")])
    assert set(log.table["file"]) == {"grpo-s0", "dr_grpo-s0"}
    assert sorted(study_of(log)["runs"]["arm"]) == ["dr_grpo", "grpo"]


@pytest.mark.parametrize(
    ("source", "error", "fault"),
    [
        ("hf://datasets/only-owner", UsageError, ""),
        ("hf://models/me/mine", UsageError, ""),
        (f"{SOURCE}/data/../../x", UsageError, ""),
        (f"{SOURCE}/absent.parquet", IncompleteError, ""),
        (f"{SOURCE}@absent", IncompleteError, ""),
        ("hf://datasets/me/absent", IncompleteError, ""),
        (SOURCE, DamagedError, "wrong_bytes"),
        (SOURCE, IncompleteError, "cut_body"),
        (SOURCE, IncompleteError, "missing_file"),
    ],
)
def test_a_log_that_cannot_be_had_is_one_clear_error(hub, tmp_path, source, error, fault) -> None:
    put(hub, DATASET)
    if fault:
        hub.fail(fault, "GET .*/resolve/.*test-00000")
    with pytest.raises(error):
        read_log([source])
    assert not list(tmp_path.rglob("snapshots/*/data/test-00000*"))


@pytest.mark.parametrize("path", ["/outside.csv", "data\\outside.csv", "data//outside.csv", "../outside.csv"])
def test_paths_out_of_a_log_are_refused(hub: FixtureHub, tmp_path: Path, path: str) -> None:
    hub.store.create(NAME)
    hub.store.commit(NAME, {path: b"arm,task\n", "data/a.csv": b"arm,task\n"})
    with pytest.raises(DamagedError, match="leads out of its folder"):
        read_log([SOURCE])
    assert not hub.asked("resolve")
    assert not list(tmp_path.rglob("outside*"))


# A study that is read in place.

RANGES = r"GET /datasets/.*\.parquet"
QUERIES = (
    "SELECT run_id, step, regime, count(*) FILTER (true_success) FROM episodes GROUP BY ALL ORDER BY ALL",
    "SELECT count(*) FROM episodes WHERE run_id = 'c2-paired-s000' AND step = 20 AND phase = 'final'",
    "SELECT * FROM episodes ORDER BY ALL",
    "SELECT * FROM runs WHERE flip_rate = 0 AND launched_at IS NULL ORDER BY run_id",
    "SELECT step, seed, sum(calls) FROM episodes JOIN runs USING (run_id) GROUP BY ALL ORDER BY ALL",
    "SELECT max(schedule_seed) FROM episodes WHERE schedule_seed > 9223372036854775808",
    "DESCRIBE episodes",
)


def test_an_answer_is_that_of_the_files_themselves_whatever_the_branch_becomes(hub, small, commit) -> None:
    study = open_remote(parse_reference(NAME))
    hub.store.commit(NAME, {"README.md": b"new"}, deleted=("episodes/",))
    assert study.place == f"{NAME}@{commit}"
    with asking(study) as ask_remotely, asking(open_study(small)) as ask_here:
        for query in QUERIES:
            assert ask_remotely(query) == ask_here(query), query


def test_a_query_of_a_column_fetches_a_fraction_of_the_bytes(hub, tmp_path, monkeypatch) -> None:
    sent, send = [], Handler._send  # noqa: SLF001 - every answer goes through it
    monkeypatch.setattr(
        Handler, "_send", lambda self, *answer: (sent.append(len(answer[1])), send(self, *answer))
    )
    ids, steps = row_study.run_ids(1), tuple(range(300))
    parts = {"runs": [row_study.runs(ids)], "episodes": [row_study.episodes(ids[0], 0, steps, 256)]}
    row_study.seal(tmp_path / "big", row_study.lay(tmp_path / "big", parts))
    put(hub, tmp_path / "big")
    query = "SELECT step, count(*) FILTER (true_success) FROM episodes GROUP BY ALL ORDER BY ALL"
    assert ask(open_remote(parse_reference(NAME)), query) == ask(open_study(tmp_path / "big"), query)
    # All that was sent: the revision, the listing and the manifest too.
    assert sum(sent) < sum(path.stat().st_size for path in (tmp_path / "big").rglob("*.parquet")) / 4


def test_what_is_not_as_the_manifest_says_is_refused_at_once(hub, small, commit) -> None:
    manifest = (small / MANIFEST_NAME).read_bytes()
    hub.store.commit(NAME, {RUNS: (small / RUNS).read_bytes() + b"x"})
    with pytest.raises(DamagedError, match="is not the file that the manifest names"):
        open_remote(parse_reference(NAME))
    hub.store.commit(NAME, {}, deleted=(RUNS,))
    with pytest.raises(IncompleteError, match=f"{RUNS} is not on the Hub"):
        open_remote(parse_reference(NAME))
    hub.store.commit(NAME, {MANIFEST_NAME: manifest.replace(b'"study": "rows"', b'"study": "tows"')})
    with pytest.raises(DamagedError, match="changed after it was written"):
        open_remote(parse_reference(NAME))
    assert not hub.asked(RANGES)


def test_what_fails_while_a_query_runs_is_said_and_gives_no_answer(hub: FixtureHub, commit: str) -> None:
    study = open_remote(parse_reference(NAME))
    for kind in ("truncated_body", "cut_body", "missing_file", "forbidden"):
        with asking(study) as ask_often:
            hub.fail(kind, RANGES)
            with pytest.raises(IncompleteError, match=r"in place|came where|not have|permit"):
                ask_often("SELECT sum(calls) FROM episodes")
        hub.mend()
        study.failures.clear()


def test_the_command_says_what_was_not_hashed(hub, commit, monkeypatch) -> None:
    query = ("sql", "SELECT count(*) AS n FROM runs", "--remote")
    named = ("--study", f"{NAME}@v1.0.0", "--json")
    done = expect(run(*query, *named), 0, f"{NAME}@{commit}", "was not hashed")
    assert done.json() == [{"n": 1}]
    assert run(*query).code == run(*query, "--study", "embedded").code == 2
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    expect(run(*query, *named), 3, "only where the Hub can be asked")


@pytest.mark.parametrize(
    ("text", "repository", "revision"),
    [
        ("group/study", "group/study", "main"),
        ("group/study@v1.0.0", "group/study", "v1.0.0"),
        (f"a/b@{SHA[:7]}", "a/b", SHA[:7]),
        (f"group/study@{SHA}", "group/study", SHA),
        ("hf://datasets/group/my.study@refs%2Fpr%2F1", "group/my.study", "refs/pr/1"),
    ],
)
def test_a_reference_names_a_repository_and_a_revision(text: str, repository: str, revision: str) -> None:
    reference = parse_reference(text)
    assert (reference.repository, reference.revision, reference.asked) == (repository, revision, text)
    assert client.is_commit(reference.revision) == (revision == SHA)


ODD = (
    "",
    "study",
    "a/b/c",
    "/a",
    "a/",
    "../b",
    "./b",
    "a/..",
    "a/b@",
    "a/b@ v",
    "a b/c",
    "a--b/c",
    "a/b@1@2",
)
LONG = (f"a/study@{'v' * 201}", f"hf://datasets/a/study@{'v' * 5000}", f"group/{'s' * 300}", "x" * 5000)


@pytest.mark.parametrize("text", [*ODD, *LONG], ids=lambda text: f"{text[:24]}, {len(text)} characters")
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="names no study on the Hub"):
        parse_reference(text)


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        repository = parse_reference(text).repository
    except UsageError:
        return
    assert looks_like_reference(text)
    assert repository.count("/") == 1


def remember_many(first: int) -> None:
    for number in range(first, first + 15):
        change_pin(NAME, f"v{number}", lambda _: Pin(SHA, is_tag=True))


@pytest.mark.parametrize("make", [threading.Thread, multiprocessing.get_context("fork").Process])
def test_pulls_at_once_lose_no_pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    monkeypatch.setenv("HF_ASSETS_CACHE", str(tmp_path))
    workers = [make(target=remember_many, args=(first,)) for first in (0, 100, 200)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(read_pins(NAME)) == 45


def test_a_tag_that_moves_between_two_pulls_at_once_is_not_overlooked(hub, commit, monkeypatch) -> None:
    """Both have read that nothing is remembered; the other is the first to write."""
    other, turns = "f" * 40, client.in_turn

    def after_the_other(path: Path) -> object:
        monkeypatch.setattr(client, "in_turn", turns)
        change_pin(NAME, "v1.0.0", lambda _: Pin(other, is_tag=True))
        return turns(path)

    monkeypatch.setattr(client, "in_turn", after_the_other)
    expect(pull(), 1, "the tag v1.0.0 was moved")
    assert read_pins(NAME)["v1.0.0"].commit == other


def test_a_moved_tag_is_refused_until_it_is_accepted(hub: FixtureHub, warm: Path, commit: str) -> None:
    moved = hub.store.commit(NAME, {".note": b"hidden, so that the study is the same"}).sha
    hub.store.move_tag(NAME, "v1.0.0", moved)
    assert pull("", "--json").json()["origin"]["commit"] == moved  # a branch is followed
    expect(pull(), 1, "the tag v1.0.0 was moved", commit, moved)
    assert read_pins(NAME)["v1.0.0"] == Pin(commit, is_tag=True)
    tagged = ("--study", f"{NAME}@v1.0.0")
    assert run("decide", "H2a", *tagged).code == 1
    assert run("sql", "FROM runs", *tagged, "--remote").code == 1
    assert pull(f"@{commit}").code == 0
    assert pull("@v1.0.0", "--accept-moved").code == 0
    assert pull("@v1.0.0", "--json").json()["origin"]["commit"] == moved


def test_a_tag_that_became_a_branch_is_held_to_its_commit(hub: FixtureHub, warm: Path, commit: str) -> None:
    hub.store.untag(NAME, "v1.0.0")
    hub.store.repository(NAME).branches["v1.0.0"] = commit
    expect(pull(), 0, "v1.0.0 was a tag and is none now")
    assert read_pins(NAME)["v1.0.0"] == Pin(commit, is_tag=True)
    moved = hub.store.commit(NAME, {".note": b"hidden"}, branch="v1.0.0").sha
    expect(pull(), 1, moved, "it is no tag any more")
    assert pull("@v1.0.0", "--accept-moved").code == 0
    assert read_pins(NAME)["v1.0.0"] == Pin(moved, is_tag=False)


def test_a_tag_that_is_gone_is_said_with_its_commit(hub: FixtureHub, warm: Path, commit: str) -> None:
    hub.store.untag(NAME, "v1.0.0")
    expect(pull(), 3, "the repository has no such revision", f"name {NAME}@{commit}")
    assert pull(f"@{commit}").code == 0


def test_pins_that_are_none_are_damage(hub: FixtureHub, warm: Path) -> None:
    for content in (
        *("{", "[]", "null", "[" * 200_000, '{"v1": {"commit": "x"}}'),
        '{"v1": {"commit": "../../x", "is_tag": true}}',
        json.dumps({"v1": {"commit": SHA, "is_tag": "no"}}),
    ):
        (warm.parents[1] / client.PINS).write_text(content)
        for options in ((), ("--offline",)):
            expect(pull("@v1", *options), 4, "what was remembered of the repository's tags cannot be read")


def test_a_pin_that_cannot_be_written_is_a_remark_where_the_commit_is_in_the_cache(
    hub: FixtureHub, commit: str, tmp_path: Path
) -> None:
    # Permissions do not stop every user: a folder in the lock's place stops all.
    (cached(tmp_path, commit).parents[1] / client.PINS_LOCK).mkdir(parents=True)
    expect(pull(), 3, "cannot be written")
    assert pull(f"@{commit}").code == 0
    expect(pull(), 0, f"that {NAME}@v1.0.0 is commit {commit} is not remembered")
