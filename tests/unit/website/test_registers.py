"""What of the registers travels with the site, and what the data page says of it."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import escape
from typing import Any

import pytest

from tests.unit.website.reading import pages_of
from toolkit.decisions.case import Case
from toolkit.places import Home
from toolkit.registers.columns import ARMS
from toolkit.registers.study import Study, open_study
from toolkit.website import registers
from toolkit.website.examples import examples, quoted
from toolkit.website.material import Material
from toolkit.website.pages import data, theory
from toolkit.website.registers import register_files

HOSTILE = "</script><script>alert(1)</script>\"'&{{ 7*7 }}\u2028"
_SCRIPT = re.compile(r'\(globalThis\.toolkitRegisters\?\?=\{\}\)\["([^"]+)"\]=(.*);\n', re.DOTALL)


def carried_value(content: bytes) -> tuple[str, Any]:
    """Return what a script of the registers sets, and to what."""
    match = _SCRIPT.fullmatch(content.decode())
    assert match is not None
    return match[1], json.loads(match[2])


def text_of(module: Any, *studies: Study, cases: tuple[Case, ...] = ()) -> str:
    """Return the text of a module's one page."""
    [text] = pages_of(Material(cases, studies), module).values()
    return text


def test_a_carried_file_is_the_file_of_the_register_and_the_catalogue_has_its_digest(
    published: Study,
) -> None:
    files = register_files(Material((), (published,)))
    for table in published.tables:
        for path, name in zip(published.paths(table.name), published.files(table.name), strict=True):
            key, held = carried_value(files[f"data/published/{name.removesuffix('.parquet')}.js"])
            assert key == f"published/{name}"
            assert base64.b64decode(held) == path.read_bytes()
    key, catalogue = carried_value(files["data/published.js"])
    assert key == "published"
    assert catalogue["manifest"].encode() == (published.folder / "MANIFEST.json").read_bytes()
    for file in (file for table in catalogue["tables"].values() for file in table["files"]):
        whole = (published.folder / file["file"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(whole).hexdigest()


def test_a_table_above_the_limit_is_not_carried_but_named_with_its_command(
    published: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {t.name: registers.table_bytes(published, t.name) for t in published.tables}
    largest = max(sizes, key=sizes.__getitem__)
    monkeypatch.setattr(registers, "LARGEST_TABLE", sizes[largest] - 1)
    files = register_files(Material((), (published,)))
    assert not any(name.startswith(f"data/published/{largest}/") for name in files)
    assert largest not in carried_value(files["data/published.js"])[1]["tables"]
    text = text_of(data, published)
    assert (
        escape(f'toolkit sql "SELECT * FROM {largest} LIMIT 10" --study published').replace("&quot;", "&#34;")
        in text
    )


def test_a_file_about_one_run_says_which(embedded: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registers, "LARGEST_TABLE", 200_000)  # luck_share is the largest table below it
    _, catalogue = carried_value(register_files(Material((), (embedded.study,)))["data/embedded.js"])
    tables = catalogue["tables"]
    files = tables["luck_share"]["files"]
    assert {file["run"] for file in files} == {row["run_id"] for row in embedded.study.rows("luck_share")}
    assert "run" not in tables["runs"]["files"][0]


def test_the_data_page_shows_every_table_and_column_of_every_study(home: Home) -> None:
    studies = tuple(open_study(home.study_folder(name)) for name in home.studies())
    text = text_of(data, *studies)
    for study in studies:
        assert study.manifest.logical_sha256 in text
        for table in study.tables:
            assert f'id="{study.name}-{table.name}"' in text
            assert study.sha256(table.name) in text
            for column in table.columns:
                assert f"<code>{column.name}</code>" in text


def test_a_home_with_tasks_alone_has_a_data_page_and_no_theory(home: Home) -> None:
    tasks = open_study(home.study_folder("task-pools"))
    assert "FROM task_pools" in text_of(data, tasks)
    assert list(theory.pages(Material((), (tasks,)))) == []
    assert list(data.pages(Material(()))) == []


def test_a_study_in_other_words_than_paired_and_independent_has_no_theory_page(case: Case) -> None:
    assert [page.name for page in theory.pages(Material((case,)))] == ["theory.html"]
    words = replace(case.study.manifest, words={"arm": ("greedy", "careful")})
    foreign = replace(case, study=replace(case.study, manifest=words))
    assert list(theory.pages(Material((foreign,)))) == []


def test_hostile_words_of_a_study_are_text_on_the_data_page(published: Study) -> None:
    manifest = replace(published.manifest, words={"arm": (*ARMS, HOSTILE)})
    text = text_of(data, replace(published, manifest=manifest, _kept={}))
    assert "<script>alert" not in text
    assert str(escape("</script><script>alert(1)</script>")) in text


def test_hostile_names_of_runs_are_quoted_in_examples(
    embedded: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = [{**row, "run_id": HOSTILE} for row in embedded.study.rows("runs")[:1]]
    monkeypatch.setattr(type(embedded.study), "rows", lambda _, table: named if table == "runs" else [])
    [asked] = [e for e in examples(embedded.study) if "one run" in e["title"]]
    assert quoted(HOSTILE) in asked["sql"]
    assert quoted(HOSTILE).count("'") == HOSTILE.count("'") * 2 + 2
    assert "<script>alert" not in text_of(data, embedded.study)


def test_the_theory_page_shows_the_figures_that_the_paper_prints(case: Case) -> None:
    text = text_of(theory, cases=(case,))
    for figure in ("0.495000", "0.450000", "0.002615", "0.005845", "0.04956", "0.01367", "0.570"):
        assert figure in text
