"""Dataset cards: what the repositories hold, and the parts that follow from schema and rows."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.described import STUDIES, configs, lay, shipped
from toolkit.errors import DamagedError
from toolkit.registers import cards
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study


@pytest.fixture(scope="session")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a folder a shipped study: its tables and its card."""
    return {name: lay(shipped(name), tmp_path_factory.mktemp(name)) for name in STUDIES}


ALL = [
    cards.Config(table, (cards.Split("train", f"{name}/*.parquet", 1, 8),), 9)
    for name, table in TABLES.items()
]
# The Hub's categories, as its filter shows them.
BOUNDS = {
    "n<1K": (0, 10**3),
    "1K<n<10K": (10**3, 10**4),
    "10K<n<100K": (10**4, 10**5),
    "100K<n<1M": (10**5, 10**6),
    "1M<n<10M": (10**6, 10**7),
}


@pytest.fixture(params=STUDIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_hub_reads_the_metadata(repositories: dict[str, Path], name: str) -> None:
    from huggingface_hub import DatasetCard

    card = DatasetCard((repositories[name] / "README.md").read_text(encoding="utf-8"))
    data = card.data.to_dict()
    assert data["license"] == "cc-by-4.0"
    assert data["language"] == ["en"]
    assert data["task_categories"] == ["reinforcement-learning"]
    assert [config["config_name"] for config in data["configs"] if config.get("default")] == [
        data["configs"][0]["config_name"]
    ]
    (category,) = data["size_categories"]
    rows = sum(entry.rows for entry in shipped(name).manifest.tables.values())
    low, high = BOUNDS[category]
    assert low < rows < high


def test_a_size_category_ends_below_its_bound() -> None:
    sizes = {999: "n<1K", 1000: "1K<n<10K", 999_999: "100K<n<1M", 10**6: "1M<n<10M", 10**9: "n>1B"}
    assert {rows: cards.size_category(rows) for rows in sizes} == sizes


def test_datasets_takes_the_features_that_the_files_have(repositories: dict[str, Path]) -> None:
    from datasets import Features, load_dataset_builder

    tables = {(t.name, t.column_names): name for name in STUDIES for t in shipped(name).tables}
    for (table, _), name in tables.items():
        declared = load_dataset_builder(str(repositories[name]), table).info.features
        file = next((repositories[name] / table).glob("*.parquet"))
        assert declared == Features.from_arrow_schema(pq.read_schema(file)), table


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("published", ("runs", "evaluations", "probe")),
        ("embedded", ("checkpoints", "luck_share")),  # a file a run
        ("task-pools", ("task_pools",)),  # a file a split
    ],
)
def test_datasets_finds_as_many_rows_and_bytes_as_declared(repositories, name, tables, tmp_path) -> None:
    """It checks the rows itself; the sizes it only reports."""
    from datasets import load_dataset, load_dataset_builder

    for table in tables:
        declared = load_dataset_builder(str(repositories[name]), table).info
        for split, part in load_dataset(str(repositories[name]), table, cache_dir=str(tmp_path)).items():
            assert part.num_rows == declared.splits[split].num_examples, table
            assert part.info.splits[split].num_bytes == declared.splits[split].num_bytes, table
        assert declared.download_size == part.info.download_size, table
        assert declared.dataset_size == part.info.dataset_size, table


def test_every_column_is_documented(repositories: dict[str, Path], name: str) -> None:
    card = (repositories[name] / "README.md").read_text(encoding="utf-8")
    study = shipped(name)
    for table in study.tables:
        assert cards.table_text(table, study.manifest.tables[table.name].rows) in card
        assert f"| `{table.name}` | {study.manifest.tables[table.name].rows:,} |" in card
        for column in table.columns:
            assert f"| `{column.name}` |" in card


def test_every_mark_is_filled_in_and_every_link_leads_to_a_heading(repositories, name) -> None:
    card = (repositories[name] / "README.md").read_text(encoding="utf-8")
    assert "{{" not in card
    headings = {
        re.sub(r"[^\w -]", "", h).lower().replace(" ", "-")
        for h in re.findall(r"^#+ (.+)$", card, re.MULTILINE)
    }
    links = re.findall(r"\]\(#([\w-]+)\)", card)
    assert set(links) <= headings
    assert links or name == "task-pools"


@pytest.mark.parametrize("mark", ["{{outcomes}}", "{{findings}}", "{{registration}}", "{{colums}}"])
def test_a_mark_that_nothing_is_given_for_is_refused(mark: str) -> None:
    with pytest.raises(DamagedError, match=re.escape(mark)):
        cards.dataset_card(f"before {mark} after", ALL)


def test_a_table_says_what_it_refers_to() -> None:
    assert "| `advantages` | `list<double>` |" in cards.table_text(TABLES["groups"], 1)  # no markup
    assert "`run_id` refers to `runs`." in cards.table_text(TABLES["episodes"], 1)
    assert "refer to `probe_checkpoints`." in cards.table_text(TABLES["probe"], 1)
    assert "`runs` where `condition` is not null." in cards.table_text(TABLES["luck_share_summary"], 1)


def test_every_table_key_and_reference_names_columns() -> None:
    for table in TABLES.values():
        assert all(table.column(name) for name in table.key), table.name
        for parent in table.parents:
            for name in (*parent.columns, *parent.same):
                assert table.column(name)
                assert TABLES[parent.table].column(name)
        for total, parts in table.sums:
            assert all(table.column(name) for name in (total, *parts))
        for column in table.columns:
            assert all(table.column(name) for name in column.at_most)
            assert column.meaning.endswith(".")


def test_the_rows_and_files_are_those_of_the_manifest() -> None:
    study = shipped("task-pools")
    (config,) = configs(study)
    entry = study.manifest.tables["task_pools"]
    assert config.rows == entry.rows == sum(split.rows for split in config.splits)
    assert config.file_bytes == sum(study.manifest.files[file].bytes for file in entry.files)
    assert {split.name: split.rows for split in config.splits} == {
        "diagnostic": 16,
        "diagnostic_128": 128,
        "test": 300,
        "train": 2000,
        "validation": 300,
    }
    for split in config.splits:  # also where its name begins another's
        files = [file.name for file in study.folder.glob(split.pattern)]
        assert files == [f"{split.name}-00000-of-00001.parquet"]


def test_several_files_of_a_table_are_one_split() -> None:
    study = shipped("embedded")
    files = {f: (study.folder / f).read_bytes() for f in study.manifest.tables["checkpoints"].files[:3]}
    config = cards.config_of(TABLES["checkpoints"], files)
    assert [(split.name, split.rows) for split in config.splits] == [("train", 18)]
    assert "path: checkpoints/*.parquet" in cards.dataset_card("{{configs}}", [config])


def test_the_registration_and_its_amendments_are_named() -> None:
    text = cards.registered_text(RegistrationRef("small", "a" * 64, {"A1": "b" * 64}))
    assert text.splitlines()[2:] == [
        f"| registration `small` | `{'a' * 64}` |",
        f"| amendment `A1` | `{'b' * 64}` |",
    ]


def test_the_matrix_counts_each_run_once_and_those_with_complete_evidence(published: Study) -> None:
    assert cards.matrix_text(published.rows("runs")).splitlines()[2:] == [
        "| C0 | 0 | 0 | group | 2 clean |",
        "| C2 | 0.25 | 0 | group | 3 independent, 3 paired |",
        "| C4 | 0 | 0.1 | group | 3 independent, 4 paired |",
        "",
        "15 runs, 15 of them with complete evidence.",
    ]
    first, *others = published.rows("runs")
    text = cards.matrix_text([{**first, "status": "INCOMPLETE"}, *others])
    assert text.endswith("15 runs, 14 of them with complete evidence.")


def test_an_outcome_shows_verdict_evidence_and_interval() -> None:
    rows = {row["rule"]: row for row in shipped("embedded").rows("decisions")}
    text = cards.outcomes_text([rows["H2a"] | {"title": "Learning"}, rows["H1a"]])
    assert text.splitlines()[2:] == [
        "| H2a | Learning | miss | includes zero | -0.0073 | 95% [-0.0365, 0.0214] |",
        "| H1a | hypothesis | pass | not estimated |  |  |",
    ]
    told = cards.outcomes_text([rows["H1a"]], "incomplete: the token is not here")
    last = "**The registration behind these verdicts:** incomplete: the token is not here"
    assert told.splitlines()[-2:] == ["", last]
