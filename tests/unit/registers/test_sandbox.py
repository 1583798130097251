"""A query reads the study's tables; it reaches no file, no variable, no setting and no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import snapshot
from toolkit.errors import UsageError
from toolkit.registers.query import ask
from toolkit.registers.study import open_study

if TYPE_CHECKING:
    from toolkit.places import Home

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

CHANGES = {
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


@pytest.mark.parametrize("sql", [*OUTSIDE.values(), *CHANGES.values()], ids=[*OUTSIDE, *CHANGES])
def test_what_is_no_reading_of_the_tables_is_refused(copy: Home, sql: str) -> None:
    import pyarrow as pa

    within_reach = pa.table({"secret": [1]})
    study = open_study(copy.study_folder("published"))
    before = snapshot(study.folder)
    with pytest.raises(UsageError):
        ask(study, sql.format(study=study.folder))
    assert snapshot(study.folder) == before
    assert within_reach.num_rows == 1


def test_a_query_that_needs_more_memory_than_it_may_use_is_stopped(copy: Home) -> None:
    study = open_study(copy.study_folder("published"))
    with pytest.raises(UsageError, match="more memory"):
        ask(study, "SELECT list(range) FROM range(3000000000)")


def test_what_only_looks_like_a_change_is_answered(copy: Home) -> None:
    study = open_study(copy.study_folder("published"))
    assert ask(study, "SELECT 'ENABLE_LOGGING' AS disable_profiling").rows == (("ENABLE_LOGGING",),)
