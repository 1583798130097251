"""The shipped repositories, with their documents made anew from the sources of the cards."""

import shutil
from pathlib import Path

from tests.conftest import CHECKOUT
from toolkit.registers.cards import Config, config_of, repository_documents
from toolkit.registers.study import Study, open_study

STUDIES = ("published", "embedded", "tiny-lm", "task-pools")
"""Each kind: of figures, played with rows, of a language model, and of pools alone."""
SOURCE = """---
pretty_name: "Small"
license: mit
{{configs}}
{{dataset_info}}
---

# Small

A study.

{{tables}}
"""
"""The smallest source that a repository's documents can be made from."""


def shipped(name: str) -> Study:
    return open_study(CHECKOUT / "registers" / name)


def files(study: Study) -> dict[str, dict[str, bytes]]:
    """Return the Parquet files of a study's tables."""
    return {
        table.name: {file: (study.folder / file).read_bytes() for file in study.files(table.name)}
        for table in study.tables
    }


def configs(study: Study) -> list[Config]:
    """Return what a study's folder holds, read from its files."""
    return [config_of(study.table(name), parts) for name, parts in files(study).items()]


def documents(study: Study) -> dict[str, bytes]:
    """Return a study's documents from the source of its card; what was found stands for itself."""
    source = (CHECKOUT / "cards" / f"{study.name}.md").read_text(encoding="utf-8")
    rows = {name: study.rows(name) for name in ("runs", "decisions") if study.has(name)}
    return repository_documents(
        source, files(study), registration=study.manifest.registration, rows=rows, findings="- It was found."
    )


def lay(study: Study, folder: Path) -> Path:
    """Lay a study's tables into a folder, with its documents, and return it."""
    for name, content in documents(study).items():
        (folder / name).write_bytes(content)
    for entry in study.manifest.tables.values():
        for file in entry.files:
            (folder / file).parent.mkdir(exist_ok=True)
            shutil.copyfile(study.folder / file, folder / file)
    return folder
