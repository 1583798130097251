"""A pulled study as a plain folder of one's own."""

import shutil
from collections.abc import Callable
from pathlib import Path

from toolkit.errors import IncompleteError, ToolkitError
from toolkit.files import replacing
from toolkit.registers.hub.client import repository_cache
from toolkit.registers.manifest import MANIFEST_NAME, Manifest, check_file, read_manifest
from toolkit.registers.study import Study, open_study


def check_into(folder: Path, study: Study) -> None:
    """Check that a folder may be written: it is missing, empty, or a copy that can be had again.

    A copy that can be had again has the manifest of a commit in the cache, and nothing that is not as that
    manifest says. Rows of one's own, `.git` and notes are in no commit: they would be lost.
    """
    try:
        lost = _lost(folder, study)
    except OSError as error:
        lost = str(error.strerror or error)
    if lost is not None:
        raise IncompleteError(
            f"{folder} holds something that would be lost",
            expected="no folder, an empty one, or one that was pulled from this repository and not changed",
            found=lost,
            where=folder,
            remedy="give another folder, or move this one away",
        )


def copy_into(folder: Path, study: Study, say: Callable[[str], None] = lambda _: None) -> Study:
    """Copy a study into a folder and check the copy."""
    folder = folder.resolve()
    with replacing(folder) as new:
        for name in (MANIFEST_NAME, *study.manifest.files):
            say(name)
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(study.folder / name, new / name)
        copied = open_study(new)
        for name in copied.manifest.files:
            copied.prove(name)
    return open_study(folder, study.origin)


def _lost(folder: Path, study: Study) -> str | None:
    """Return the first thing in a folder that is not a pulled study's; None where there is none."""
    if not folder.exists() and not folder.is_symlink():
        return None
    if not folder.is_dir():
        return "a file"
    there = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    if MANIFEST_NAME not in there:
        return next(iter(there), None)
    if not _was_pulled(folder / MANIFEST_NAME, study):
        return f"{MANIFEST_NAME}, which is of no commit of the repository that was pulled"
    manifest = read_manifest(folder)
    for name, path in there.items():
        is_hidden = any(part.startswith(".") for part in name.split("/"))
        is_folder = path.is_dir() and not path.is_symlink()
        if name == MANIFEST_NAME or (is_folder and not is_hidden):
            continue
        if name not in manifest.files or not _is_proven(folder, name, manifest):
            return name
    return None


def _was_pulled(manifest: Path, study: Study) -> bool:
    """Whether a manifest is that of a study of the Hub, or of another commit of it in the cache."""
    known = [study.folder / MANIFEST_NAME]
    if study.origin is not None:
        snapshots = repository_cache(study.origin.repository) / "snapshots"
        known += sorted(snapshots.glob(f"*/{MANIFEST_NAME}"))
    content = manifest.read_bytes()
    return any(path.is_file() and path.read_bytes() == content for path in known)


def _is_proven(folder: Path, name: str, manifest: Manifest) -> bool:
    try:
        check_file(folder, name, manifest.files[name])
    except ToolkitError:
        return False
    return True
