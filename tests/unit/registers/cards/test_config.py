"""What a repository holds of a table is read from its files."""

from tests.described import configs, shipped
from toolkit.registers.cards.dataset import config_of, dataset_card
from toolkit.registers.schema import TABLES


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
    config = config_of(TABLES["checkpoints"], files)
    assert [(split.name, split.rows) for split in config.splits] == [("train", 18)]
    assert "path: checkpoints/*.parquet" in dataset_card("{{configs}}", [config])
