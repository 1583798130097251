"""SQL reads the study and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import snapshot
from toolkit.errors import UsageError
from toolkit.registers.query import ask

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.places import Home
    from toolkit.registers.study import Study


def test_every_table_is_a_view(published: Study) -> None:
    for table in published.tables:
        answer = ask(published, f"SELECT count(*) FROM {table.name}")
        assert answer.rows == ((published.manifest.tables[table.name].rows,),)


def test_no_column_needs_quotes(published: Study) -> None:
    for table in published.tables:
        answer = ask(published, f"SELECT {', '.join(table.column_names)} FROM {table.name}")
        assert answer.columns == table.column_names


def test_the_usual_questions_are_answered(published: Study) -> None:
    assert ask(published, "DESCRIBE runs").rows[0][0] == "run_id"
    assert ask(published, "SUMMARIZE runs").rows
    assert ask(published, "WITH r AS (FROM runs) SELECT count(*) FROM r").rows == ((15,),)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        ";",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        "SELECT nothing FROM runs",
        "FROM diary",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW runs",
        "INSERT INTO runs SELECT * FROM runs",
        "COPY (SELECT 1) TO 'x.csv'",
        "COPY runs TO '{study}/x.parquet'",
        "EXPORT DATABASE '{study}/out'",
        "EXPLAIN SELECT 1",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{study}/x.csv'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{study}/runs/train-00000-of-00001.parquet'",
        "SELECT * FROM read_csv('{study}/source/runs.csv')",
        "ATTACH '{study}/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_text('{study}/../../README.md')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT getenv('HOME')",
    ],
)
def test_anything_else_is_refused_and_writes_nothing(copy: Home, sql: str) -> None:
    from toolkit.registers.study import open_study

    study = open_study(copy.study_folder("published"))
    before = snapshot(copy.root)
    with pytest.raises(UsageError):
        ask(study, sql.format(study=study.folder))
    assert snapshot(copy.root) == before


def test_a_folder_with_a_quote_in_its_name_is_no_way_out(copy: Home, tmp_path: Path) -> None:
    import shutil

    from toolkit.registers.study import open_study

    odd = tmp_path / "it's; DROP"
    shutil.copytree(copy.registers / "published", odd)
    assert ask(open_study(odd), "SELECT count(*) FROM runs").rows == ((15,),)
