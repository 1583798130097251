"""A registration's files on the site: what its lists name and what proves them, nothing that is not ours."""

import base64
from dataclasses import replace
from pathlib import Path

from tests.unit.site.reading import pages_of
from tests.unit.site.test_registers import carried_value
from toolkit.places import Home
from toolkit.prereg.registration import Registration, load_registration
from toolkit.site.links import Markup
from toolkit.site.material import Material
from toolkit.site.pages import registration as maker
from toolkit.site.registers import download, frozen_file_content, frozen_files


def of(home: Home, name: str) -> Registration:
    return load_registration(home.registration_folder(name))


def test_every_file_of_a_demonstration_is_there_as_it_lies_in_its_folder(home: Home) -> None:
    embedded = of(home, "embedded")
    present = {
        p.relative_to(embedded.folder).as_posix(): p for p in embedded.folder.rglob("*") if p.is_file()
    }
    assert frozen_files(embedded) == {name: path.read_bytes() for name, path in present.items()}


def test_a_script_carries_the_same_bytes_as_the_downloads(home: Home) -> None:
    embedded = of(home, "embedded")
    content = frozen_file_content(Material((), registrations=(embedded,)))
    key, held = carried_value(content.pop("data/registrations/embedded.js"))
    assert key == "registrations/embedded"
    assert {download("embedded", n): base64.b64decode(text) for n, text in held.items()} == content


def test_evidence_of_others_and_what_is_no_evidence_stay_where_they_are(home: Home, tmp_path: Path) -> None:
    adopted = of(home, "paired-rollouts")
    assert not [name for name in frozen_files(adopted) if name.startswith("evidence/")]
    own = of(home, "embedded")
    for name, content in frozen_files(own).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "evidence" / "signer.key").write_bytes(b"secret")
    assert frozen_files(replace(own, folder=tmp_path)) == frozen_files(own)


def test_the_page_leads_to_every_file(home: Home) -> None:
    embedded = of(home, "embedded")
    [text] = pages_of(Material((), registrations=(embedded,)), maker).values()
    offered = {r.target for r in Markup(text).references if r.is_download}
    assert offered == {f"../{download('embedded', name)}" for name in frozen_files(embedded)}
