"""What of the registers and registrations travels with the site, and what the data page says of it."""

import base64
import json
import re
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.site.reading import pages_of
from toolkit.decisions.case import Case
from toolkit.places import Home
from toolkit.prereg.registration import Registration, load_registration
from toolkit.registers.columns import ARMS
from toolkit.registers.study import Study, open_study
from toolkit.site import registers
from toolkit.site.build import SPARE
from toolkit.site.checking import Markup
from toolkit.site.material import Material
from toolkit.site.pages import data
from toolkit.site.pages import registration as maker
from toolkit.site.registers import download, frozen_file_content, frozen_files, register_files
from toolkit.structs import replace

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


def test_a_carried_file_is_the_file_of_the_register_and_the_catalogue_has_its_digest(published) -> None:
    files = register_files(Material((), (published,)))
    for table in published.tables:
        for path, name in zip(published.paths(table.name), published.files(table.name), strict=True):
            key, held = carried_value(files[f"data/published/{name.removesuffix('.parquet')}.js"])
            assert key == f"published/{name}"
            assert base64.b64decode(held) == path.read_bytes()
    key, held = carried_value(files["data/published.js"])
    assert key == "published"
    assert held["manifest"] == (published.folder / "MANIFEST.json").read_text(encoding="utf-8")
    assert (held["at"], held["runs"]) == ({}, {})


def test_a_file_above_the_limit_is_not_carried_and_its_table_is_named_with_its_command(
    published: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {t.name: registers.table_bytes(published, t.name) for t in published.tables}
    largest = max(sizes, key=sizes.__getitem__)
    monkeypatch.setattr(registers, "LARGEST_FILE", sizes[largest] - 1)
    files = register_files(Material((), (published,)))
    assert not any(name.startswith(f"data/published/{largest}/") for name in files)
    assert carried_value(files["data/published.js"])[1]["largest_file"] == sizes[largest] - 1
    text = text_of(data, published)
    assert (
        escape(f'toolkit sql "SELECT * FROM {largest} LIMIT 10" --study published').replace("&quot;", "&#34;")
        in text
    )


def test_only_blobs_are_left_out_of_the_shipped_studies_whatever_a_tables_size(home: Home) -> None:
    """The limit is a file's: 984 files of episodes, 9.4 MB together, are all carried."""
    for name in home.studies():
        study = open_study(home.study_folder(name))
        left_out = {table.name for table in study.tables if not registers.carried(study, table.name)}
        assert left_out == {table.name for table in study.tables if table.is_blob}
        assert left_out <= {"adapters", "checkpoints", "probe_gram"}


def test_pools_that_studies_share_are_carried_once(home: Home) -> None:
    studies = tuple(open_study(home.study_folder(name)) for name in ("tiny-lm", "small-lm", "task-pools"))
    files = register_files(Material((), studies))
    pools = [name for name in files if "/task_pools/" in name]
    assert len(pools) == len({files[name].partition(b"=")[2] for name in pools})
    at = carried_value(files["data/small-lm.js"])[1]["at"]
    for file, key in at.items():
        study, _, name = key.partition("/")
        assert registers.register_script(study, name) in files
        other = next(s for s in studies if s.name == study)
        assert other.manifest.files[name].sha256 == studies[1].manifest.files[file].sha256
    assert any("/task_pools/" in f"/{file}" for file in at)


def test_a_file_is_about_the_run_that_its_name_says_or_the_catalogue_says_otherwise(
    embedded: Case, tmp_path: Path
) -> None:
    assert carried_value(register_files(Material((), (embedded.study,)))["data/embedded.js"])[1]["runs"] == {}
    for table in ("luck_share", "episodes"):
        stems = {name.rpartition("/")[2] for name in embedded.study.files(table)}
        runs = {
            f"{run}.parquet"
            for run in embedded.study.columns(table, ["run_id"])["run_id"].unique().to_pylist()
        }
        assert stems == runs
    path = tmp_path / "some.parquet"
    pq.write_table(pa.table({"run_id": ["a", "b"]}), path)
    assert registers.only_run(path) is None


def test_hostile_words_of_a_study_are_text_on_the_data_page(published: Study) -> None:
    manifest = replace(published.manifest, words={"arm": (*ARMS, HOSTILE)})
    text = text_of(data, replace(published, manifest=manifest, _kept={}))
    assert "<script>alert" not in text
    assert str(escape("</script><script>alert(1)</script>")) in text


def of(home: Home, name: str) -> Registration:
    return load_registration(home.registration_folder(name))


def test_every_file_of_a_demonstration_is_there_in_a_script_with_its_bytes_and_on_its_page(
    home: Home,
) -> None:
    embedded = of(home, "embedded")
    paths = [path for path in embedded.folder.rglob("*") if path.is_file()]
    held = {path.relative_to(embedded.folder).as_posix(): path.read_bytes() for path in paths}
    assert frozen_files(embedded) == held
    material = Material((), registrations=(embedded,))
    content = frozen_file_content(material)
    key, script = carried_value(content.pop("data/registrations/embedded.js"))
    assert key == "registrations/embedded"
    assert {name: base64.b64decode(text) for name, text in script.items()} == held
    assert content == {download("embedded", name): raw for name, raw in held.items()}
    [text] = pages_of(material, maker).values()
    offered = {
        reference.target for reference in Markup(SPARE.sub("", text)).references if reference.is_download
    }
    assert offered == {f"../{download('embedded', name)}" for name in held}


def test_evidence_of_others_and_what_is_no_evidence_stay_where_they_are(home: Home, tmp_path: Path) -> None:
    adopted = of(home, "paired-rollouts")
    assert not [name for name in frozen_files(adopted) if name.startswith("evidence/")]
    own = of(home, "embedded")
    for name, content in frozen_files(own).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "evidence" / "signer.key").write_bytes(b"secret")
    assert frozen_files(replace(own, folder=tmp_path)) == frozen_files(own)
