"""A pulled study as a plain folder of one's own."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from toolkit.errors import ToolkitError, UsageError
from toolkit.files import replacing
from toolkit.registers.manifest import MANIFEST_NAME, check_nothing_else, read_manifest
from toolkit.registers.study import Study, open_study

if TYPE_CHECKING:
    from pathlib import Path


def check_into(folder: Path, study: Study) -> None:
    """Check that a folder may be written: it is missing, empty, or this study's and nothing else.

    Raises:
        UsageError: something lies there that would be lost.
    """
    if not folder.exists():
        return
    try:
        if folder.is_dir() and not any(folder.iterdir()):
            return
        manifest = read_manifest(folder)
        check_nothing_else(folder, manifest)
        is_same = manifest.study == study.name
    except (ToolkitError, OSError):
        is_same = False
    if not is_same:
        raise UsageError(
            f"{folder} is there and holds something else",
            expected=f"no folder, an empty one, or one of study {study.name!r}",
            remedy="give another folder",
        )


def copy_into(folder: Path, study: Study) -> Study:
    """Copy a study into a folder and check the copy.

    Returns:
        The copy, with the origin of the study.

    Raises:
        IncompleteError: the folder cannot be written.
        DamagedError: the copy is not what the manifest names.
    """
    folder = folder.resolve()
    with replacing(folder) as new:
        for name in (MANIFEST_NAME, *study.manifest.files):
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(study.folder / name, new / name)
        copied = open_study(new)
        for name in copied.manifest.files:
            copied.prove(name)
    return open_study(folder, study.origin)
