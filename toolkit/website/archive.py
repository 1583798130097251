"""The site as one file."""

import io
import zipfile
from collections.abc import Mapping

FOLDER = "site"
# The earliest that the format can say, and the rights of a file that everybody may read.
EARLIEST = (1980, 1, 1, 0, 0, 0)
READABLE = 0o100644 << 16
UNIX = 3


def archive(content: Mapping[str, bytes]) -> bytes:
    """Return a zip of the site's files, below one folder; the same files give the same bytes.

    Names are sorted, and neither times nor rights of the machine's files enter. Packing is zlib's: another
    implementation of it may give other bytes that hold the same.

    Args:
        content: every file by name.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as whole:
        for name in sorted(content):
            entry = zipfile.ZipInfo(f"{FOLDER}/{name}", EARLIEST)
            entry.create_system, entry.external_attr = UNIX, READABLE
            whole.writestr(entry, content[name], zipfile.ZIP_DEFLATED, 9)
    return packed.getvalue()
