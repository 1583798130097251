"""The registers' files in the browser: the rows that Python reads, and nothing of a file that was changed."""

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.unit.site.node import ASSETS, in_node
from toolkit.decisions.case import Case
from toolkit.places import Home
from toolkit.registers.study import Study, open_study
from toolkit.site.material import Material
from toolkit.site.registers import catalogue_script, register_files, register_script


@pytest.fixture(scope="module")
def data(
    home: Home, tiny: Case, published: Study, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Return the scripts of the registers by name."""
    folder = tmp_path_factory.mktemp("site")
    tasks = open_study(home.study_folder("task-pools"))
    written = {}
    for name, content in register_files(Material((), (tasks, tiny.study, published))).items():
        written[name] = folder / name
        written[name].parent.mkdir(parents=True, exist_ok=True)
        written[name].write_bytes(content)
    return written


def asked(data: dict[str, Path], body: str, given: Any, study: str, *files: str, carrier: str = "") -> Any:
    scripts = [catalogue_script(study), *(register_script(carrier or study, file) for file in files)]
    return in_node(
        f"const {{ catalogue, rowsOf, table }} = toolkitDecide; {body}",
        given,
        ASSETS / "decide.js",
        *(data[name] for name in scripts),
    )


def test_a_table_in_the_browser_is_the_table_of_the_register(data: dict[str, Path], tiny: Case) -> None:
    """Every type of a column: texts, counts, seeds, truth values, lists, decimals, nulls."""
    body = "const of = {}; for (const name of given) of[name] = await table('tiny-lm', name); return of;"
    names = ["runs", "schedules", "probe_indices", "luck_share", "evaluations"]
    found = asked(data, body, names, "tiny-lm", *(file for name in names for file in tiny.study.files(name)))
    for name in names:
        wide = {c.name for c in tiny.study.table(name).columns if "uint64" in c.type.value}
        for row, known in zip(found[name], tiny.study.rows(name), strict=True):
            expected = {key: _as_json(value) for key, value in known.items()}
            assert {k: _wide(v) if k in wide else v for k, v in row.items()} == expected, name


def _as_json(value: Any) -> Any:
    """Return a value of a register as JSON would have it in the browser: decimals as doubles."""
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    return float(value) if isinstance(value, Decimal) else value


def _wide(value: Any) -> Any:
    """Return whole numbers of 64 bits, which the test carries as texts, as numbers."""
    return [int(part) for part in value] if isinstance(value, list) else int(value)


def test_times_are_read_as_utc(data: dict[str, Path], published: Study) -> None:
    body = 'return (await table("published", "events")).map((row) => row.occurred_at)'
    found = asked(data, body, None, "published", *published.files("events"))
    assert len(set(found)) > 5
    assert [datetime.fromisoformat(text) for text in found] == [
        row["occurred_at"] for row in published.rows("events")
    ]


OF_ONE_FILE = """
    const { files } = (await catalogue(given.study))[given.file.split("/")[0]];
    const entry = files.find(({ file }) => file === given.file);
    const found = await rowsOf(given.study, entry, given.columns);
    return { names: Object.keys(found[0]), rows: found.map((row) => given.columns.map((name) => row[name])) };
"""


@pytest.mark.parametrize(
    ("table", "columns", "carrier"),
    [("episodes", ["task", "calls"], "tiny-lm"), ("task_pools", ["prompt"], "task-pools")],
    ids=["one of many files", "a file that studies share"],
)
def test_one_file_of_a_table_gives_the_columns_asked_for(data, tiny, table, columns, carrier) -> None:
    file = list(tiny.study.files(table))[-1]
    assert (register_script("tiny-lm", file) in data) == (carrier == "tiny-lm")
    given = {"study": "tiny-lm", "file": file, "columns": columns}
    found = asked(data, OF_ONE_FILE, given, "tiny-lm", file, carrier=carrier)
    known = pq.read_table(tiny.study.folder / file, columns=columns).to_pylist()
    assert found == {"names": columns, "rows": [[row[name] for name in columns] for row in known]}


def test_a_file_that_is_not_the_manifests_gives_nothing(data, published, tmp_path) -> None:
    [file] = published.files("runs")
    name = register_script("published", file)
    text = data[name].read_text(encoding="utf-8")
    # One letter of base64 deep in the file: other bytes, of the same length.
    middle = len(text) // 2
    forged = tmp_path / "forged.js"
    forged.write_text(f"{text[:middle]}{'AB'[text[middle] == 'A']}{text[middle + 1 :]}", encoding="utf-8")
    body = "return await table('published', 'runs').then(() => '', (error) => error.message)"
    said = asked({**data, name: forged}, body, None, "published", file)
    assert "is not the file that the manifest names" in said
