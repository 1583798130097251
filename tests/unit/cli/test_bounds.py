"""Files that are larger than anybody's would be: refused before they are read."""

import os

import pytest

from tests.conftest import Toolkit
from toolkit.places import Home

HUGE = 3_000_000_000
PREREG = "prereg/paired-rollouts"


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("verify-prereg", f"{PREREG}/rules.toml"),
        ("verify-prereg", f"{PREREG}/protocol.md"),
        ("verify-prereg", f"{PREREG}/FROZEN.sha256"),
        ("verify-prereg", f"{PREREG}/LATER.chain"),
        ("verify-prereg", f"{PREREG}/record.toml"),
        ("decide H2a", f"{PREREG}/amendments/A1.toml"),
        ("decide H2a", "registers/published/MANIFEST.json"),
        ("registers verify", "registers/published/README.md"),
        ("decide H2a", "registers/published/evaluations/train-00000-of-00001.parquet"),
    ],
)
def test_what_is_too_long_is_refused_unread(toolkit: Toolkit, alone: Home, command: str, file: str) -> None:
    path = alone.root / file
    assert path.is_file()
    os.truncate(path, HUGE)  # it has a hole, and takes no room
    done = toolkit(*command.split())
    assert done.code in {1, 4}
    assert f"{HUGE} bytes" in done.err + done.out
    assert "Traceback" not in done.err
