"""A study on the Hub is asked in place: the same answers, a fraction of the bytes, no doubt passed over."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import row_study
from tests.conftest import Result
from tests.hub.conftest import make_rows, put
from tests.hub.handler import Handler
from tests.hub.server import FixtureHub
from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.registers.hub.in_place import open_remote
from toolkit.registers.hub.revision import parse_reference
from toolkit.registers.manifest import MANIFEST_NAME
from toolkit.registers.query import ask, asking
from toolkit.registers.study import Study, open_study

NAME = "owner/rows"
RANGES = r"GET /datasets/.*\.parquet"
QUERIES = (
    "SELECT run_id, step, regime, count(*) FILTER (true_success) FROM episodes GROUP BY ALL ORDER BY ALL",
    "SELECT count(*) FROM episodes WHERE run_id = 'c2-paired-s001' AND step = 20 AND phase = 'final'",
    "SELECT * FROM episodes ORDER BY ALL",
    "SELECT * FROM groups ORDER BY run_id, step, position",
    "SELECT * FROM runs WHERE flip_rate = 0 AND launched_at IS NULL ORDER BY run_id",
    "SELECT step, seed, sum(calls) FROM episodes JOIN runs USING (run_id) GROUP BY ALL ORDER BY ALL",
    "SELECT max(schedule_seed) FROM episodes WHERE schedule_seed > 9223372036854775808",
    "DESCRIBE episodes",
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return open_study(make_rows(tmp_path_factory.mktemp("rows"), runs=2))


@pytest.fixture
def commit(hub: FixtureHub, rows: Study) -> str:
    """Return the commit of a study on the Hub, tagged v1."""
    return put(hub, rows.folder, NAME, "v1")


def test_an_answer_is_that_of_the_files_themselves(hub: FixtureHub, rows: Study, commit: str) -> None:
    with asking(open_remote(parse_reference(f"{NAME}@v1"))) as ask_remotely, asking(rows) as ask_here:
        for query in QUERIES:
            assert ask_remotely(query) == ask_here(query), query


def test_the_commit_stays_while_the_branch_goes_on(hub: FixtureHub, commit: str) -> None:
    study = open_remote(parse_reference(NAME))
    hub.store.commit(NAME, {"README.md": b"new"}, deleted=("episodes/",))
    assert study.place == f"{NAME}@{commit}"
    assert ask(study, "SELECT count(*) FROM episodes").rows == ((128,),)


def test_a_query_of_a_column_fetches_a_fraction_of_the_bytes(
    hub: FixtureHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, send = [], Handler._send  # noqa: SLF001 - every answer goes through it
    monkeypatch.setattr(
        Handler, "_send", lambda self, *answer: (sent.append(len(answer[1])), send(self, *answer))
    )
    ids, steps = row_study.run_ids(1), tuple(range(300))
    parts = {"runs": [row_study.runs(ids)], "episodes": [row_study.episodes(ids[0], 0, steps, 256)]}
    row_study.seal(tmp_path / "big", row_study.lay(tmp_path / "big", parts))
    put(hub, tmp_path / "big", NAME, "v1")
    study = open_remote(parse_reference(f"{NAME}@v1"))
    query = "SELECT step, count(*) FILTER (true_success) FROM episodes GROUP BY ALL ORDER BY ALL"
    assert ask(study, query) == ask(open_study(tmp_path / "big"), query)
    assert study.bytes > 750_000
    # All that was sent: the revision, the listing and the manifest too.
    assert study.traffic.bytes < sum(sent) < study.bytes / 4


def test_what_is_not_as_the_manifest_says_is_refused_at_once(
    hub: FixtureHub, rows: Study, commit: str
) -> None:
    file, manifest = "episodes/c2-paired-s000.parquet", (rows.folder / MANIFEST_NAME).read_bytes()
    hub.store.commit(NAME, {file: (rows.folder / file).read_bytes() + b"x"})
    with pytest.raises(DamagedError, match="is not the file that the manifest names"):
        open_remote(parse_reference(NAME))
    hub.store.commit(NAME, {}, deleted=(file,))
    with pytest.raises(IncompleteError, match=f"{file} is not on the Hub"):
        open_remote(parse_reference(NAME))
    hub.store.commit(NAME, {MANIFEST_NAME: manifest.replace(b'"study": "rows"', b'"study": "tows"')})
    with pytest.raises(DamagedError, match="changed after it was written"):
        open_remote(parse_reference(NAME))
    assert not hub.asked(RANGES)


def test_a_tag_that_was_moved_is_refused(hub: FixtureHub, rows: Study, commit: str) -> None:
    open_remote(parse_reference(f"{NAME}@v1"))
    hub.store.commit(NAME, {"README.md": b"other"})
    hub.store.move_tag(NAME, "v1", "main")
    with pytest.raises(VerificationError, match="was moved"):
        open_remote(parse_reference(f"{NAME}@v1"))


def test_what_fails_while_a_query_runs_is_said_and_gives_no_answer(
    hub: FixtureHub, rows: Study, commit: str
) -> None:
    study = open_remote(parse_reference(NAME))
    for kind in ("truncated_body", "cut_body", "missing_file", "forbidden"):
        with asking(study) as ask_often:
            hub.fail(kind, RANGES)
            with pytest.raises(IncompleteError, match=r"in place|came where|not have|permit"):
                ask_often("SELECT sum(calls) FROM episodes")
        hub.mend()
        study.traffic.failures.clear()


def test_offline_says_that_a_study_is_not_read_in_place(
    hub: FixtureHub, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(IncompleteError, match="only where the Hub can be asked"):
        open_remote(parse_reference(f"{NAME}@{commit}"))


def test_the_command_says_what_was_not_hashed(
    hub: FixtureHub, commit: str, toolkit: Callable[..., Result]
) -> None:
    result = toolkit("sql", "SELECT count(*) AS n FROM runs", "--study", f"{NAME}@v1", "--remote", "--json")
    assert result.json() == [{"n": 2}]
    assert f"{NAME}@{commit}" in result.err
    assert "was not hashed" in result.err


def test_remote_needs_a_name_on_the_hub(toolkit: Callable[..., Result]) -> None:
    assert toolkit("sql", "FROM runs", "--remote").code == 2
    assert toolkit("sql", "FROM runs", "--study", "embedded", "--remote").code == 2
