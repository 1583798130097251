"""A query reads the study's tables; it reaches no file, no variable, no setting and no network."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, snapshot
from toolkit.errors import UsageError
from toolkit.registers import query
from toolkit.registers.query import ask
from toolkit.registers.study import Study, open_study

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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a copy of the published study, which nothing here is to change."""
    return shutil.copytree(CHECKOUT / "registers/published", tmp_path_factory.mktemp("copy") / "published")


@pytest.mark.parametrize("sql", REFUSED.values(), ids=REFUSED)
def test_what_is_no_reading_of_the_tables_is_refused(folder: Path, sql: str) -> None:
    import pyarrow as pa

    within_reach = pa.table({"secret": [1]})
    before = snapshot(folder.parent)
    with pytest.raises(UsageError):
        ask(open_study(folder), sql.format(study=folder))
    assert snapshot(folder.parent) == before
    assert within_reach.num_rows == 1


def test_a_query_that_needs_more_memory_than_it_may_use_is_stopped(
    published: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "MEMORY", "64MiB")
    with pytest.raises(UsageError, match="more memory"):
        ask(published, "SELECT list(range) FROM range(100000000)")


def test_what_only_looks_like_a_change_is_answered(published: Study) -> None:
    assert ask(published, "SELECT 'ENABLE_LOGGING' AS disable_profiling").rows == (("ENABLE_LOGGING",),)
