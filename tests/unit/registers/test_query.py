"""SQL reads the study and nothing else."""

import shutil
import time
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, snapshot
from toolkit.errors import DamagedError, UsageError
from toolkit.registers import query
from toolkit.registers.query import ask, asking
from toolkit.registers.study import Study, open_study


def test_the_usual_questions_are_answered(published: Study) -> None:
    assert ask(published, "DESCRIBE runs").rows[0][0] == "run_id"
    assert ask(published, "SUMMARIZE runs").rows
    assert ask(published, "WITH r AS (FROM runs) SELECT count(*) FROM r").rows == ((15,),)


def test_a_folder_with_a_quote_in_its_name_is_no_way_out(folder: Path) -> None:
    odd = folder.rename(folder.with_name("it's; DROP"))
    assert ask(open_study(odd), "SELECT count(*) FROM runs").rows == ((15,),)


def test_rows_that_are_not_kept_are_counted(published: Study) -> None:
    with asking(published) as ask_often:
        answer = ask_often("FROM runs ORDER BY run_id", most=2)
    assert (len(answer.rows), answer.total) == (2, 15)
    assert answer.rows == ask(published, "FROM runs ORDER BY run_id").rows[:2]


def test_a_study_can_be_asked_again_after_half_an_answer(published: Study) -> None:
    with asking(published) as ask_often:
        next(iter(ask_often.batches("FROM range(1000000)")))
        assert ask_often("SELECT 1").rows == ((1,),)


ENDLESS = {
    "before the first row": "SELECT 1 FROM range(1000000) a, range(1000000) b WHERE a.range * b.range < 0",
    "row by row": "SELECT sin(range) FROM range(1000000000000)",
}


@pytest.mark.parametrize("sql", ENDLESS.values(), ids=ENDLESS)
@pytest.mark.parametrize("how", ["rows", "file"])
def test_a_query_has_a_time_limit(published: Study, tmp_path: Path, sql: str, how: str) -> None:
    with asking(published, 0.2) as ask_often:
        calls = {
            "rows": lambda: ask_often(sql, most=10),
            "file": lambda: ask_often.write_parquet(sql, tmp_path / "answer.parquet"),
        }
        with pytest.raises(UsageError, match="takes too long") as raised:
            calls[how]()
        assert "--timeout 10" in str(raised.value.remedy)
        assert ask_often("SELECT 1").rows == ((1,),)
    assert list(tmp_path.iterdir()) == []


def test_a_query_that_does_not_stop_is_left_behind(published: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "GRACE_S", 0.1)
    begin = time.monotonic()
    with pytest.raises(UsageError, match="takes too long"), asking(published, 0.1) as ask_often:
        ask_often("SELECT count(*) FROM runs WHERE list_sum(range(20000000)) < 0")
    assert time.monotonic() - begin < 1


def test_what_the_reader_of_an_answer_takes_does_not_count(published: Study) -> None:
    with asking(published, 0.5) as ask_often:
        for _ in ask_often.batches("FROM range(300000)"):
            time.sleep(0.2)


def test_an_answer_that_is_held_has_a_bound(published: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "MOST_KEPT", 10)
    with pytest.raises(UsageError, match="too long to be held"):
        ask(published, "FROM runs")
    with asking(published) as ask_often:
        assert ask_often("FROM runs", most=10).total == 15


def test_an_answer_keeps_its_types_in_parquet(published: Study, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    query = "SELECT occurred_at, event, 1.50::DECIMAL(9, 6) AS figure, [true, NULL] AS truths FROM events"
    with asking(published) as ask_often:
        rows = ask_often.write_parquet(query, tmp_path / "events.parquet")
    written = pq.read_table(tmp_path / "events.parquet")
    assert rows == written.num_rows == published.manifest.tables["events"].rows
    assert [str(kind) for kind in written.schema.types] == [
        "timestamp[us, tz=UTC]",
        "string",
        "decimal128(9, 6)",
        "list<element: bool>",
    ]
    expected = published.arrow("events").select(["occurred_at", "event"])
    assert sorted(map(str, written.select(["occurred_at", "event"]).to_pylist())) == sorted(
        map(str, expected.to_pylist())
    )


def test_an_answer_replaces_no_file(published: Study, tmp_path: Path) -> None:
    (tmp_path / "mine.parquet").write_bytes(b"mine")
    with asking(published) as ask_often, pytest.raises(UsageError, match="replaces no file"):
        ask_often.write_parquet("FROM runs", tmp_path / "mine.parquet")
    assert (tmp_path / "mine.parquet").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT CAST(range AS INTERVAL) AS x FROM range(3)", "DuckDB refused"),
        ("SELECT INTERVAL 1 DAY AS x", "no form in Parquet"),
        ("SELECT error('in the middle') FROM range(300000)", "DuckDB refused"),
        ("COPY runs TO 'x.parquet'", "one statement"),
    ],
)
def test_an_answer_that_fails_leaves_no_file(published, tmp_path, query, problem) -> None:
    with asking(published) as ask_often, pytest.raises(UsageError, match=problem):
        ask_often.write_parquet(query, tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_relations_are_over_checked_files(folder: Path) -> None:
    relation = open_study(folder).relation("runs")
    assert relation.filter("arm = 'paired'").aggregate("count(*)").fetchall() == [(7,)]
    file = folder / "runs" / "train-00000-of-00001.parquet"
    file.write_bytes(file.read_bytes() + b"x")
    for read in (lambda study: study.relation("runs"), lambda study: study.duckdb()):
        with pytest.raises(DamagedError, match="not the file that the manifest names"):
            read(open_study(folder))


def test_relations_of_one_connection_are_joined(published: Study) -> None:
    with published.duckdb() as connection:
        runs, counts = connection.view("runs"), connection.view("groups_summary")
        joined = runs.join(counts, "run_id").aggregate("count(*), sum(groups)")
        assert joined.pl().rows() == joined.fetchall()
        assert joined.to_arrow_table().num_rows == 1
        assert joined.fetchall()[0][0] == 15


OUTSIDE = {
    "a file's text": "SELECT * FROM read_text('/etc/passwd')",
    "a file's bytes": "SELECT * FROM read_blob('/proc/self/environ')",
    "standard input": "SELECT * FROM read_csv('/dev/stdin')",
    "a guessed format": "FROM sniff_csv('/etc/passwd')",
    "JSON": "FROM read_json('/etc/passwd')",
    "the metadata of a file": "FROM parquet_metadata('{study}/../embedded/runs/x.parquet')",
    "another study": "FROM read_parquet('{study}/../task-pools/*/*.parquet')",
    "the study's card": "FROM read_text('{study}/README.md')",
    "a folder": "FROM glob('{study}/*')",
    "a home folder": "FROM read_text('~/.profile')",
    "a database": "FROM read_duckdb('{study}/x.db')",
    "a web page": "FROM 'https://example.org/x.parquet'",
    "plain http": "FROM read_parquet('http://127.0.0.1:9/x.parquet')",
    "the Hub": "FROM 'hf://datasets/owner/name/x.parquet'",
    "a bucket": "FROM read_parquet('s3://bucket/x.parquet')",
    "credentials": "FROM duckdb_secrets()",
    "the environment": "SELECT getenv('HOME')",
    "a variable of this program": "FROM within_reach",
    "the same by its name as text": "FROM query_table('within_reach')",
    "an extension to be installed": "FROM sqlite_scan('a', 'b')",
    "a file by way of a text": "FROM query('SELECT * FROM read_text(''/etc/' || 'passwd'')')",
    "a file by way of JSON": "FROM json_execute_serialized_sql(json_serialize_sql("
    "'SELECT * FROM read_text(''/etc/passwd'')'))",
    "a file within an expression": "SELECT (SELECT content FROM read_text('/etc/passwd')) FROM runs",
    "a file within a table expression": "WITH x AS (FROM read_text('/etc/passwd')) FROM x",
}

NO_QUERY = {
    "nothing": "",
    "no statement": ";",
    "two statements": "SELECT 1; SELECT 2",
    "no SQL": "SELEC 1",
    "a column that is not there": "SELECT nothing FROM runs",
    "a table that is not there": "FROM diary",
    "an explanation": "EXPLAIN SELECT 1",
}

CHANGES = {
    "a table": "CREATE TABLE t AS SELECT 1",
    "a view": "DROP VIEW runs",
    "a row": "INSERT INTO runs SELECT * FROM runs",
    "a copy": "COPY (SELECT 1) TO 'x.csv'",
    "a copy of a table": "COPY runs TO '{study}/x.parquet'",
    "a copy that is explained": "EXPLAIN ANALYZE COPY (SELECT 1) TO '{study}/x.csv'",
    "an overwritten table": "EXPLAIN ANALYZE COPY (SELECT 1) TO '{study}/runs/train-00000-of-00001.parquet'",
    "an extension": "INSTALL httpfs",
    "access": "SET enable_external_access = true",
    "a copy by way of a text": "FROM query('COPY (SELECT 1) TO ''{study}/x.csv''')",
    "a change in a table expression": "WITH x AS (DELETE FROM runs RETURNING *) FROM x",
    "a second statement after a comment": "SELECT 1 -- ;\n; COPY runs TO '{study}/x.csv'",
    "settings": "SET memory_limit = '1TB'",
    "settings by a pragma": "PRAGMA memory_limit = '1TB'",
    "an attached database": "ATTACH ':memory:' AS other",
    "a call": "CALL enable_logging()",
    "logs on standard output": "FROM enable_logging(storage = 'stdout')",
    "logs in a file": "FROM enable_logging(storage = 'file', storage_config = {{'path': '{study}/log'}})",
    "logs by way of a text": "FROM query('FROM enable_' || 'logging()')",
    "a profile in a file": "FROM enable_profiling(save_location = '{study}/x.txt', format = 'query_tree')",
    "a profile by its whole name": "WITH x AS MATERIALIZED (FROM system.main.enable_profiling()) FROM x",
    "a profile in a condition": "SELECT 1 WHERE EXISTS (FROM disable_profiling())",
    "a macro": "CREATE MACRO one() AS 1",
    "a prepared statement": "PREPARE one AS SELECT 1",
    "a variable": "SET VARIABLE x = 1",
    "a checkpoint": "CHECKPOINT",
    "an export": "EXPORT DATABASE '{study}/x'",
    "a file to be loaded": "LOAD '{study}/x.duckdb_extension'",
}


REFUSED = OUTSIDE | NO_QUERY | CHANGES


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """Return the folder of a copy of the published study, and what nothing here is to change."""
    parent = tmp_path_factory.mktemp("copy")
    return shutil.copytree(CHECKOUT / "registers/published", parent / "published"), snapshot(parent)


@pytest.mark.parametrize("sql", REFUSED.values(), ids=REFUSED)
def test_what_is_no_reading_of_the_tables_is_refused(untouched, sql: str) -> None:
    import pyarrow as pa

    within_reach = pa.table({"secret": [1]})
    folder, before = untouched
    with pytest.raises(UsageError):
        ask(open_study(folder), sql.format(study=folder))
    assert snapshot(folder.parent) == before
    assert within_reach.num_rows == 1


def test_a_query_that_needs_more_memory_than_it_may_use_is_stopped(published, monkeypatch) -> None:
    monkeypatch.setattr(query, "MEMORY", "64MiB")
    with pytest.raises(UsageError, match="more memory"):
        ask(published, "SELECT list(range) FROM range(100000000)")


def test_what_only_looks_like_a_change_is_answered(published: Study) -> None:
    assert ask(published, "SELECT 'ENABLE_LOGGING' AS disable_profiling").rows == (("ENABLE_LOGGING",),)
