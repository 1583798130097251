"""The SQL box: the registers that travel with the site answer as DuckDB does, and nothing damaged answers."""

import re
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.unit.website.node import ASSETS, in_node
from toolkit.decisions.case import Case
from toolkit.decisions.values import Series
from toolkit.places import Home
from toolkit.registers.query import asking
from toolkit.registers.study import Study, open_study
from toolkit.website.material import Material
from toolkit.website.pages.data import examples
from toolkit.website.registers import carried, catalogue_script, register_files, register_script

ASK = """
    const answers = [];
    for (const sql of given.queries) {
      const tables = await toolkitQuery.catalogue(given.study);
      try {
        const read = (entry, columns) => toolkitQuery.rowsOf(given.study, entry, columns);
        answers.push(await toolkitQuery.ask(sql, tables, read));
      } catch (error) { answers.push({ error: String(error.message) }); }
    }
    return answers;
"""


@pytest.fixture(scope="module")
def files(embedded: Case, published: Study) -> dict[str, bytes]:
    return register_files(Material((), (embedded.study, published)))


@pytest.fixture(scope="module")
def data(files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("site")
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def answers(data: Path, study: Study, queries: list[str], *only: str) -> list[dict[str, Any]]:
    """Ask a study in Node, with the scripts of some tables, or of those whose names begin so."""
    names = [
        register_script(study.name, file)
        for table in study.tables
        if carried(study, table.name)
        for file in study.files(table.name)
        if not only or any(file.startswith(start) for start in only)
    ]
    scripts = [data / catalogue_script(study.name), *(data / name for name in names)]
    found: list[dict[str, Any]] = in_node(
        ASK, {"study": study.name, "queries": queries}, ASSETS / "query.js", *scripts
    )
    return found


def test_every_example_of_the_published_study_answers_as_duckdb_does(
    data: Path, published: Study, case: Case
) -> None:
    queries = [example["sql"] for example in examples(published, case)]
    assert len(queries) >= 4
    with asking(published) as ask:
        for sql, found in zip(queries, answers(data, published, queries), strict=True):
            expected = ask(sql)
            assert found["columns"] == list(expected.columns)
            assert found["rows"] == [[_alike(v) for v in row] for row in expected.rows]


def test_the_example_of_areas_gives_the_first_hypothesis_endpoint(
    data: Path, published: Study, case: Case
) -> None:
    assert not [e for e in examples(published) if "by arm and seed" in e["title"]]  # nothing decides it
    [sql] = [e["sql"] for e in examples(published, case) if e["title"].startswith("H2a: ")]
    [found] = answers(data, published, [sql])
    assert found["columns"] == ["condition", "regime", "arm", "seed", "run_id", "auc"]
    assert {(row[0], row[1]) for row in found["rows"]} == {("C2", "faults_p025")}
    auc = {(row[2], row[3]): row[5] for row in found["rows"]}
    value = case.engine.value("c2_auc")
    assert isinstance(value, Series)
    decided = {int(seed): member for seed, member in value.items}
    assert {seed: auc["paired", seed] - auc["independent", seed] for seed in decided} == {
        seed: pytest.approx(float(member), abs=2e-5)
        for seed, member in decided.items()
        if isinstance(member, Fraction)
    }


REFUSED = {
    "SELECT * FROM runs r JOIN evaluations e USING (run_id, seed)": (
        ".*write JOIN … ON a.run_id = b.run_id AND a.seed = b.seed"
    ),
    "SELECT * FROM probe_gram": (
        '.*with the registers, and does not travel with the site. .*: toolkit sql "SELECT [*] FROM probe_gram'
    ),
    "SELECT * FROM groups": (
        "The study small has no table groups. It has runs, evaluations; not with the site: probe_gram"
    ),
    "SELECT nothing.seed FROM runs": "(?!.*no table).*nothing",
}


def test_a_refusal_says_what_to_ask_instead(data: Path, published: Study) -> None:
    held = {"study": "small", "tables": ["runs", "evaluations"], "leftOut": ["probe_gram"]}
    body = "return given.errors.map(([sql, text]) => toolkitQuery.explained(text, sql, given.held))"
    errors = [
        (sql, a["error"])
        for sql, a in zip(REFUSED, answers(data, published, list(REFUSED), "runs"), strict=True)
    ]
    explained = in_node(body, {"errors": errors, "held": held}, ASSETS / "query.js")
    for words, text in zip(REFUSED.values(), explained, strict=True):
        assert re.match(words, text, re.DOTALL), text


def _alike(value: Any) -> Any:
    """Return what equals a value in JSON: decimals and fractions are doubles there."""
    return value if value is None or isinstance(value, str | bool) else pytest.approx(float(value))


OF_ONE = "FROM episodes WHERE run_id = 'c2-paired-s0'"
OF_EPISODES = (
    "SELECT step, task, schedule, schedule_seed, true_success, calls, ended "
    + OF_ONE
    + " AND phase = 'final' AND regime = 'clean' ORDER BY task, schedule LIMIT 200",
    f"SELECT regime, COUNT(*) AS n, SUM(calls) AS calls_made {OF_ONE} GROUP BY regime ORDER BY regime",
    f"SELECT COUNT(*) AS n {OF_ONE} AND NOT regime = 'clean'",
    f"SELECT COUNT(*) AS n {OF_ONE.replace('= ', 'IN (')}, 'c2-independent-s0') AND true_success",
)


def test_episodes_of_a_run_answer_as_duckdb_does_and_read_its_files_alone(data: Path, embedded: Case) -> None:
    found = answers(
        data, embedded.study, list(OF_EPISODES), "episodes/c2-paired-s0.", "episodes/c2-independent-s0."
    )
    with asking(embedded.study) as ask:
        for sql, answer in zip(OF_EPISODES, found, strict=True):
            expected = [[str(v) for v in row] for row in ask(sql).rows]
            assert [[str(v) for v in row] for row in answer["rows"]] == expected
            assert answer["checked"] is True
    assert [answer["filesRead"] for answer in found] == [1, 1, 1, 2]


def test_a_table_in_the_browser_is_the_table_of_the_register(data: Path, embedded: Case) -> None:
    """Every type of a column: texts, counts, seeds, truth values, lists, decimals, times, nulls."""
    body = """
        const found = {};
        for (const name of given) found[name] = await toolkitQuery.table("embedded", name);
        return found;
    """
    names = ["runs", "schedules", "probe_indices", "luck_share", "evaluations"]
    scripts = [
        data / catalogue_script("embedded"),
        *(data / register_script("embedded", file) for name in names for file in embedded.study.files(name)),
    ]
    found = in_node(body, names, ASSETS / "query.js", *scripts)
    for name in names:
        expected = [{key: _as_json(value) for key, value in row.items()} for row in embedded.study.rows(name)]
        wide = {c.name for c in embedded.study.table(name).columns if "uint64" in c.type.value}
        for row, known in zip(found[name], expected, strict=True):
            assert {k: _wide(v) if k in wide else v for k, v in row.items()} == known, name


def _as_json(value: Any) -> Any:
    """Return a value of a register as JSON would have it in the browser: decimals as doubles."""
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    return float(value) if isinstance(value, Decimal) else value


def _wide(value: Any) -> Any:
    """Return whole numbers of 64 bits, which the test carries as texts, as numbers."""
    return [int(part) for part in value] if isinstance(value, list) else int(value)


def test_times_are_read_as_utc(data: Path, published: Study) -> None:
    body = 'return (await toolkitQuery.table("published", "events")).map((row) => row.occurred_at)'
    [file] = published.files("events")
    scripts = [data / catalogue_script("published"), data / register_script("published", file)]
    found = [datetime.fromisoformat(text) for text in in_node(body, None, ASSETS / "query.js", *scripts)]
    assert len(set(found)) > 5
    assert found == [row["occurred_at"] for row in published.rows("events")]


def test_one_file_of_a_table_gives_the_columns_asked_for(data: Path, embedded: Case) -> None:
    body = """
        const { episodes } = await toolkitQuery.catalogue("embedded");
        const entry = episodes.files.find(({ file }) => file === given);
        const found = await toolkitQuery.rowsOf("embedded", entry, ["task", "calls"]);
        return { rows: found.length, names: Object.keys(found[0]), calls: found.map((row) => row.calls) };
    """
    path = "episodes/c2-paired-s0.parquet"
    scripts = [data / catalogue_script("embedded"), data / register_script("embedded", path)]
    found = in_node(body, path, ASSETS / "query.js", *scripts)
    expected = [row["calls"] for row in pq.read_table(embedded.study.folder / path).to_pylist()]
    assert found == {"rows": len(expected), "names": ["task", "calls"], "calls": expected}


def test_a_file_that_is_not_the_manifests_answers_nothing(
    data: Path, published: Study, tmp_path: Path
) -> None:
    names = [catalogue_script("published"), register_script("published", next(iter(published.files("runs"))))]
    scripts = []
    for at, name in enumerate(names):
        text = (data / name).read_text(encoding="utf-8")
        # One letter of base64 deep in the file: other bytes, of the same length.
        middle = len(text) // 2
        other = "A" if text[middle] != "A" else "B"
        scripts.append(tmp_path / f"{at}.js")
        scripts[-1].write_text(
            text if at == 0 else text[:middle] + other + text[middle + 1 :], encoding="utf-8"
        )
    given = {"study": "published", "queries": ["SELECT run_id FROM runs"]}
    [found] = in_node(ASK, given, ASSETS / "query.js", *scripts)
    assert "is not the file that the manifest names" in found["error"]


ASKING = """
    const asked = [];
    const tables = await toolkitQuery.catalogue("embedded");
    const read = (entry, columns) => toolkitQuery.rowsOf("embedded", entry, columns);
    const allow = async (files) => {
      asked.push(files.map((file) => file.file));
      if (given.refused) throw new Error("no");
    };
    const signal = new AbortController().signal;
    try { await toolkitQuery.ask(given.sql, tables, read, () => undefined, signal, allow); }
    catch (error) { asked.push(error.message); }
    return asked;
"""


def test_a_query_asks_before_it_loads_and_names_the_files_that_it_needs(data: Path, embedded: Case) -> None:
    path = "episodes/c2-paired-s0.parquet"
    scripts = (data / catalogue_script("embedded"), data / register_script("embedded", path))
    for refused in (False, True):
        given = {"sql": f"SELECT COUNT(*) AS n {OF_ONE}", "refused": refused}
        found = in_node(ASKING, given, ASSETS / "query.js", *scripts)
        assert found == [[path], *(["no"] if refused else [])]


def test_files_that_studies_share_are_read_where_they_are_carried(home: Home, tmp_path: Path) -> None:
    tasks, tiny = (open_study(home.study_folder(name)) for name in ("task-pools", "tiny-lm"))
    files = register_files(Material((), (tasks, tiny)))
    pool = "task_pools/validation-00000-of-00001.parquet"
    assert register_script("tiny-lm", pool) not in files
    scripts = []
    for name in (catalogue_script("tiny-lm"), register_script("task-pools", pool)):
        scripts.append(tmp_path / name.replace("/", "-"))
        scripts[-1].write_bytes(files[name])
    body = """
        const { files } = (await toolkitQuery.catalogue("tiny-lm")).task_pools;
        const entry = files.find(({ file }) => file === given);
        return (await toolkitQuery.rowsOf("tiny-lm", entry, ["prompt"])).map((row) => row.prompt);
    """
    found = in_node(body, pool, ASSETS / "query.js", *scripts)
    assert found == pq.read_table(tiny.folder / pool, columns=["prompt"])["prompt"].to_pylist()


def test_sql_that_the_engine_lacks_is_an_error_in_words(data: Path, published: Study) -> None:
    queries = [
        "SELECT LAG(step) OVER (ORDER BY step) FROM evaluations",
        "SELECT * FROM nothing",
        "DROP TABLE runs",
    ]
    found = answers(data, published, queries)
    assert "LAG" in found[0]["error"]
    assert 'Table "nothing" not found' in found[1]["error"]
    assert "error" in found[2]


def test_an_answer_as_csv_quotes_what_would_end_a_cell() -> None:
    answer = {"columns": ["a,b", "c"], "rows": [['say "x"', None], ["two\nlines", [1, 2]]]}
    text = in_node("return toolkitQuery.csv(given)", answer, ASSETS / "query.js")
    assert text == '"a,b",c\r\n"say ""x""",\r\n"two\nlines","[1,2]"\r\n'
