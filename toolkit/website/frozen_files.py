"""The files of a registration on the site: to download, and as a script from which a page verifies them.

All that its lists name is there, with its tokens and certificates. The evidence of a registration
that restates another document is that document's authors', and stays where it is.
"""

import base64
from pathlib import PurePosixPath

from toolkit.files import read_bytes
from toolkit.prereg.chain import CHAIN
from toolkit.prereg.evidence import CERTIFICATE_FILES, REVOCATION_FILES
from toolkit.prereg.hashlist import entries
from toolkit.prereg.record import EVIDENCE, FROZEN
from toolkit.prereg.registration import Registration
from toolkit.website.material import Material
from toolkit.website.page import registration_page
from toolkit.website.registers import FOLDER, script

_EVIDENCE = (".tsr", ".tsq", *CERTIFICATE_FILES, *REVOCATION_FILES)


def every_registration(material: Material) -> dict[str, Registration]:
    """Return the registrations of a site by name: frozen ones, and those that its studies are decided by."""
    return {r.name: r for r in (*material.registrations, *(case.registration for case in material.cases))}


def frozen_files(registration: Registration) -> dict[str, bytes]:
    """Return the files of a registration that may be passed on, by their place in it.

    Raises:
        IncompleteError: one cannot be read.
    """
    folder = registration.folder
    names = [
        FROZEN,
        *entries(read_bytes(folder / FROZEN), FROZEN),
        CHAIN,
        *(e.name for e in registration.entries),
    ]
    if not registration.record.is_restated:
        names += sorted(
            f"{EVIDENCE}/{p.name}" for p in (folder / EVIDENCE).glob("*") if p.suffix in _EVIDENCE
        )
    return {name: read_bytes(folder / name) for name in names}


def download(registration: str, name: str) -> str:
    """Return where a file of a registration lies on the site."""
    return f"{_folder(registration)}/{name}"


def frozen_file_content(material: Material) -> dict[str, bytes]:
    """Return every registration's files, and the script that holds them all, by their names on the site."""
    content: dict[str, bytes] = {}
    for name, registration in every_registration(material).items():
        files = frozen_files(registration)
        content |= {download(name, place): held for place, held in files.items()}
        encoded = {place: base64.b64encode(held).decode() for place, held in files.items()}
        content[f"{FOLDER}/{_folder(name)}.js"] = script(_folder(name), encoded)
    return content


def _folder(registration: str) -> str:
    return str(PurePosixPath(registration_page(registration)).with_suffix(""))
