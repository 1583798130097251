"""The documents of a dataset repository: for its readers the card, for machines the Croissant document.

Croissant 1.1 is a vocabulary of JSON-LD for datasets. A file set is a table's Parquet files, a record set is
a table, a field is a column; a field that refers to another table's rows says so. What Croissant RAI 1.0 asks
about collection, uses, limits and persons is answered in the words of the card's own sections.
Source: docs.mlcommons.org/croissant, specifications 1.1 and RAI 1.0.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.errors import DamagedError
from toolkit.registers.arrow import Row
from toolkit.registers.cards.dataset import Config, column_text, config_of, dataset_card, parents_text
from toolkit.registers.columns import Column, Table, Type
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.schema import TABLES

CARD = "README.md"
CROISSANT = "croissant.json"
DOCUMENTS = (CARD, CROISSANT)


def repository_documents(
    source: str,
    files: Mapping[str, Mapping[str, bytes]],
    *,
    registration: RegistrationRef | None = None,
    rows: Mapping[str, Sequence[Row]] | None = None,
    words: Mapping[str, tuple[str, ...]] | None = None,
    standing: str = "",
    findings: str = "",
) -> dict[str, bytes]:
    """Return the documents of a repository by name.

    Its Parquet files are given by table and name, in the order of the card's configurations, and `words` are
    the study's own by column where it does not use the toolkit's; the rest as for `dataset_card`.
    """
    configs = [config_of(TABLES[name].with_words(words or {}), parts) for name, parts in files.items()]
    card = dataset_card(
        source, configs, registration=registration, rows=rows, standing=standing, findings=findings
    )
    return {CARD: card.encode(), CROISSANT: croissant(card, configs).encode()}


CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
RAI_CONFORMS_TO = "http://mlcommons.org/croissant/RAI/1.0"
# The terms of the vocabulary that a reader expects to be declared, used here or not.
_TERMS = (
    *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field"),
    *("fileObject", "fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset"),
    *("jsonPath", "key", "md5"),
    *("parentField", "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate"),
    *("separator", "source", "subField", "transform"),
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    **{term: f"cr:{term}" for term in _TERMS},
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "description": {"@container": "@language"},
}
_TYPES = {
    Type.STRING: "sc:Text",
    Type.BOOL: "sc:Boolean",
    Type.INT16: "cr:Int16",
    Type.INT32: "cr:Int32",
    Type.INT64: "cr:Int64",
    Type.UINT64: "cr:UInt64",
    Type.FLOAT64: "cr:Float64",
    Type.DECIMAL: "sc:Float",
    Type.TIMESTAMP: "sc:DateTime",
}
_LICENCES = {
    "apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
    "cc-by-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "cc0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "mit": "https://opensource.org/license/mit",
}


def croissant(card: str, configs: Sequence[Config]) -> str:
    """Return the Croissant document of a dataset repository, as JSON.

    It names no owner, no address and no date, which nothing in the repository knows, and no hash of a file:
    those are in the manifest, which names this document. Its file sets are found beside it.

    Args:
        card: the README, with its metadata on top; its first paragraph describes the dataset, its first
            BibTeX block cites it, and its sections `How it was made`, `Ask it` and `Limits` answer RAI.
        configs: what the repository holds.

    Raises:
        DamagedError: the card has no name, no licence or no first paragraph.
    """
    licence, responsible = _said(card, "license"), _responsible(card)
    document = {
        "@context": dict(sorted(_CONTEXT.items())),
        "@type": "sc:Dataset",
        "conformsTo": [CONFORMS_TO, RAI_CONFORMS_TO] if responsible else CONFORMS_TO,
        "name": _said(card, "pretty_name"),
        "description": _first_paragraph(card),
        "license": _LICENCES.get(licence, licence),
        **_cited(card),
        "keywords": re.findall(r"^- (.+)$", _block(card, "tags"), re.MULTILINE),
        "inLanguage": "en",
        **responsible,
        "distribution": [_file_set(config.table) for config in configs],
        "recordSet": [_record_set(config, {other.table.name for other in configs}) for config in configs],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _file_set(table: Table) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"{table.name}-files",
        "name": f"{table.name}-files",
        "description": f"Parquet files of {table.name}.",
        "encodingFormat": "application/x-parquet",
        "includes": f"{table.name}/*.parquet",
    }


def _record_set(config: Config, held: set[str]) -> dict[str, Any]:
    table = config.table
    # A reader joins on each reference by itself: several columns together would multiply the rows, and a
    # reference that only some rows have is none. Those stand in the description alone.
    parents = {
        parent.columns[0]: parent.table
        for parent in table.parents
        if parent.table in held and len(parent.columns) == 1 and parent.where_present is None
    }
    described = " ".join([table.meaning, f"{config.rows} rows.", *parents_text(table)])
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": _plain(described),
        "key": [{"@id": f"{table.name}/{name}"} for name in table.key],
        "field": [_field(table.name, column, parents.get(column.name)) for column in table.columns],
    }


def _field(table: str, column: Column, parent: str | None) -> dict[str, Any]:
    kind = column.type.element or column.type
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{table}/{column.name}",
        "name": column.name,
        "description": _plain(column_text(column)) + (f" Unit: {column.unit}." if column.unit else ""),
        "dataType": _TYPES[kind],
        "source": {"fileSet": {"@id": f"{table}-files"}, "extract": {"column": column.name}},
    }
    if column.type.is_list:
        field |= {"isArray": True, "arrayShape": "-1"}  # one dimension, of any length
    if parent is not None:
        field["references"] = {"field": {"@id": f"{parent}/{column.name}"}}
    return field


def _said(card: str, key: str) -> str:
    """Return a value of the card's metadata that is one word or one quoted text."""
    match = re.search(rf'^{key}: *"?(.+?)"? *$', _metadata(card), re.MULTILINE)
    if match is None:
        raise _lacking(key)
    return match[1]


def _block(card: str, key: str) -> str:
    """Return the list under a key of the card's metadata; nothing where there is none."""
    match = re.search(rf"^{key}:\n((?:- .+\n)+)", _metadata(card), re.MULTILINE)
    return "" if match is None else match[1]


def _first_paragraph(card: str) -> str:
    match = re.search(r"^# .+\n\n((?:.+\n)+)", card, re.MULTILINE)
    if match is None:
        raise _lacking("a first paragraph under its title")
    return _plain(" ".join(match[1].split()))


def _cited(card: str) -> dict[str, str]:
    match = re.search(r"^```bibtex\n(.*?)^```", card, re.DOTALL | re.MULTILINE)
    return {} if match is None else {"citeAs": match[1].strip()}


def _responsible(card: str) -> dict[str, Any]:
    """Return the fields of Croissant RAI that the card's sections have words for; no other is there."""
    limits = _paragraphs(card, "Limits")
    fields = {
        "rai:dataCollection": "\n\n".join(_paragraphs(card, "How it was made")),
        "rai:dataUseCases": _paragraphs(card, "Ask it"),
        "rai:dataLimitations": limits,
        "rai:personalSensitiveInformation": [text for text in limits if re.search(r"\bpersons?\b", text)],
    }
    return {name: said for name, said in fields.items() if said}


def _paragraphs(card: str, heading: str) -> list[str]:
    """Return the paragraphs and the lists' items of a section, up to a heading within it.

    Code and tables are left out; a section that is not there has none.
    """
    section = re.search(rf"^## {heading}\n(.*?)(?=^##|\Z)", card, re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^```.*?^```$", "", section[1] if section else "", flags=re.DOTALL | re.MULTILINE)
    blocks = re.split(r"\n(?:[ \t]*\n)+|\n?^- ", prose, flags=re.MULTILINE)
    texts = (_plain(" ".join(block.split())) for block in blocks if not block.lstrip().startswith("|"))
    return [text for text in texts if text]


def _metadata(card: str) -> str:
    return card.split("\n---\n", 1)[0] + "\n"


def _plain(markdown: str) -> str:
    """Return a text without the marks of emphasis and code."""
    return re.sub(r"[*`]", "", markdown)


def _lacking(what: str) -> DamagedError:
    return DamagedError(
        "the card does not say what a Croissant document needs",
        expected="pretty_name and license in its metadata, a title, and a paragraph under it",
        found=f"no {what}",
        remedy="complete the source of the card",
    )
