"""The frozen files of registrations as scripts of the site."""

import base64

from toolkit.prereg.registration import Registration
from toolkit.website.registers import FOLDER, script


def registration_script(registration: Registration) -> tuple[str, bytes]:
    """Return the name and the content of the script that carries every file of a registration."""
    files = sorted(path for path in registration.folder.rglob("*") if path.is_file())
    content = {
        path.relative_to(registration.folder).as_posix(): base64.b64encode(path.read_bytes()).decode()
        for path in files
    }
    name = f"registrations/{registration.name}"
    return f"{FOLDER}/{name}.js", script(name, content)
