"""The Croissant document describes what lies beside it, and nothing that nobody knows."""

import json
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.described import SOURCE, STUDIES, configs, documents, shipped
from toolkit.errors import DamagedError
from toolkit.registers.cards.dataset import dataset_card
from toolkit.registers.cards.documents import croissant

RECORDS = """
import json, sys
import mlcroissant

dataset = mlcroissant.Dataset(jsonld=sys.argv[1])
said = dataset.metadata
assert not said.ctx.issues.errors, said.ctx.issues.report()
assert said.conforms_to[1].endswith("/RAI/1.0"), said.conforms_to
assert said.data_collection and said.data_use_cases and said.data_limitations, "RAI"
assert said.personal_sensitive_information == [said.data_limitations[-1]], said.personal_sensitive_information
print(json.dumps({name: sum(1 for _ in dataset.records(name)) for name in sys.argv[2:]}))
"""


@pytest.fixture(params=STUDIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def document(repositories: dict[str, Path], name: str) -> Any:
    return json.loads((repositories[name] / "croissant.json").read_text(encoding="utf-8"))


def test_it_has_a_record_set_a_table_and_a_field_a_column(document: Any, name: str) -> None:
    columns = {r["@id"]: [f["name"] for f in r["field"]] for r in document["recordSet"]}
    assert columns == {table.name: list(table.column_names) for table in shipped(name).tables}


def test_every_file_of_a_table_is_in_its_file_set(
    document: Any, repositories: dict[str, Path], name: str
) -> None:
    entries = shipped(name).manifest.tables
    assert len(document["distribution"]) == len(entries)
    for file_set in document["distribution"]:
        files = {
            f.relative_to(repositories[name]).as_posix()
            for f in repositories[name].glob(file_set["includes"])
        }
        assert files == set(entries[file_set["@id"].removesuffix("-files")].files)


def test_every_reference_leads_to_a_field_that_is_a_whole_key(document: Any) -> None:
    keys = [r["key"] for r in document["recordSet"]]
    sets = {f["@id"] for f in document["distribution"]}
    for record_set in document["recordSet"]:
        fields = {field["@id"] for field in record_set["field"]}
        assert {key["@id"] for key in record_set["key"]} <= fields
        for field in record_set["field"]:
            assert field["source"]["fileSet"]["@id"] in sets
            if "references" in field:
                assert [field["references"]["field"]] in keys


def test_rows_of_runs_refer_to_them(repositories: dict[str, Path]) -> None:
    document = json.loads((repositories["embedded"] / "croissant.json").read_text(encoding="utf-8"))
    (episodes,) = [r for r in document["recordSet"] if r["@id"] == "episodes"]
    referring = {f["name"]: f["references"] for f in episodes["field"] if "references" in f}
    assert referring == {"run_id": {"field": {"@id": "runs/run_id"}}}


def test_it_says_what_the_card_says(document: Any, repositories: dict[str, Path], name: str) -> None:
    card = (repositories[name] / "README.md").read_text(encoding="utf-8")
    assert f'pretty_name: "{document["name"]}"' in card
    assert document["license"] == "https://creativecommons.org/licenses/by/4.0/"
    assert document["citeAs"].startswith("@misc{sakib")
    assert "reproducibility" in document["keywords"]
    assert len(document["description"]) > 200
    assert "OWNER" not in json.dumps(document)


def test_what_rai_asks_for_is_said_in_the_words_of_the_card(
    document: Any, repositories: dict[str, Path], name: str
) -> None:
    assert document["conformsTo"][1] == "http://mlcommons.org/croissant/RAI/1.0"
    card = re.sub(r"[*`]", "", (repositories[name] / "README.md").read_text(encoding="utf-8"))
    limits = card.split("\n## Limits\n")[1].split("\n## ")[0]
    items = [" ".join(item.split()) for item in limits.strip().removeprefix("- ").split("\n- ")]
    assert document["rai:dataLimitations"] == items
    (persons,) = document["rai:personalSensitiveInformation"]
    assert persons in items
    assert "no person is in these rows" in persons
    made = " ".join(card.split("\n## How it was made\n")[1].split("\n##")[0].split())
    assert made.startswith(document["rai:dataCollection"].split("\n\n")[0])
    asked = card.split("\n## Ask it\n")[1].split("\n## ")[0]
    assert len(document["rai:dataUseCases"]) == asked.count("sql\n")
    assert "SELECT" not in json.dumps(document["rai:dataUseCases"])


def test_a_card_without_such_sections_says_nothing_of_them() -> None:
    held = configs(shipped("task-pools"))
    card = dataset_card(SOURCE.replace("{{tables}}\n", ""), held)
    document = json.loads(croissant(card, held))
    assert document["conformsTo"] == "http://mlcommons.org/croissant/1.1"
    assert [key for key in document if key.startswith("rai:")] == []
    limited = json.loads(
        croissant(card + "\n## Limits\n\nNone of\nthis is `real`.\n\n- One.\n- Two\n  of it.\n", held)
    )
    said = {key: value for key, value in limited.items() if key.startswith("rai:")}
    assert said == {"rai:dataLimitations": ["None of this is real.", "One.", "Two of it."]}


def test_the_same_repository_gives_the_same_documents(repositories: dict[str, Path]) -> None:
    for name, content in documents(shipped("published")).items():
        assert (repositories["published"] / name).read_bytes() == content


@pytest.mark.parametrize("lost", ['pretty_name: "Small"\n', "license: mit\n", "A study.\n\n"])
def test_a_card_that_lacks_what_it_needs_is_refused(lost: str) -> None:
    held = configs(shipped("task-pools"))
    source = SOURCE.replace("{{tables}}\n", "")
    croissant(dataset_card(source, held), held)
    with pytest.raises(DamagedError, match="does not say"):
        croissant(dataset_card(source.replace(lost, ""), held), held)


def test_mlcroissant_reads_as_many_records_as_there_are_rows(repositories: dict[str, Path]) -> None:
    """An implementation of its own: that of the vocabulary's authors."""
    if find_spec("mlcroissant") is None:
        text = "CROISSANT WAS NOT READ by an independent implementation: mlcroissant is missing"
        pytest.fail(text, pytrace=False) if os.environ.get("CI") else pytest.skip(text)
    import subprocess
    import sys

    tables = {name: entry.rows for name, entry in shipped("published").manifest.tables.items()}
    done = subprocess.run(
        [sys.executable, "-c", RECORDS, str(repositories["published"] / "croissant.json"), *tables],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == tables
