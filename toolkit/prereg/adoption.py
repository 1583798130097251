"""`toolkit adopt`: the evidence of a freeze, from anybody's checkout: read with limits, verified, placed."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError, VerificationError
from toolkit.files import file_sha256, read_bytes, replacing, write_bytes
from toolkit.line_ends import CAUSE, is_converted, is_converted_file
from toolkit.prereg.chain import LARGEST_FROZEN, locked
from toolkit.prereg.evidence import CERTIFICATE, CERTIFICATE_FILES, REVOCATION_FILES, read_blocks
from toolkit.prereg.record import EVIDENCE, Checkout, FreezeRecord
from toolkit.prereg.registration import Registration
from toolkit.prereg.token.der import MAX_BYTES
from toolkit.prereg.verification import TIME, Check, Reader, Verification, verify_registration
from toolkit.structs import Document, about

MAX_CERTIFICATES = 1 << 20
MAX_NOTE = 64 << 10
# Files, document, spans, tokens, authorities, times; what is left compares with runs and with later files.
NEEDED = (1, 2, 3, 4, 5, 6)
RESTATEMENT = 3
_REFUSED: dict[str, type[ToolkitError]] = {"failed": VerificationError, "missing": IncompleteError}
ADOPTED: Final = "adopted"
UNCHANGED: Final = "unchanged"

Say = Callable[[str], None]


class Pools(Document, frozen=True):
    """What came of the hashes of task pools."""

    compared: Annotated[int, about("Hashes: those of the list, and of the files that are there.")]
    differences: Annotated[tuple[str, ...], about("In words.")]
    not_compared: Annotated[tuple[str, ...], about("What the checkout does not have.")]


@dataclass(frozen=True)
class Evidence:
    """Evidence that was verified, to be put in its place."""

    folder: Path  # its place
    contents: Mapping[str, bytes]  # its files
    checks: tuple[Check, ...]  # what the steps said of it
    verification: Verification  # what `verify-prereg` says with it
    pools: Pools  # what came of the pools' hashes
    runs: str  # the folder of the checkout that has the runs' registers


def examine(registration: Registration, checkout: Folder, reader: Reader, say: Say) -> Evidence:
    """Find the evidence of a restated document's freeze in a checkout of its authors' repository."""
    places = registration.record.checkout
    if places is None:
        raise UsageError(
            f"registration {registration.name!r} does not say where a checkout keeps its evidence",
            expected=f"[checkout] in {registration.folder / 'record.toml'}",
        )
    say("comparing the document")
    document = _document(registration.record, places, checkout)
    _records_agree(registration.record, places, checkout)
    say("verifying the tokens")
    contents = _evidence(registration, places, checkout, document)
    verification = _verified(registration, contents, reader)
    say("comparing the task pools")
    pools = _pools(places, checkout)
    needed = tuple(check for check in verification.checks if check.step in NEEDED)
    return Evidence(registration.folder / EVIDENCE, contents, needed, verification, pools, places.runs)


def put_in_place(evidence: Evidence) -> Literal["adopted", "unchanged"]:
    """Put verified evidence where `verify-prereg` reads it, all of it or nothing."""
    with locked(evidence.folder.parent):
        if evidence.folder.is_dir():
            there = {path.name: path.read_bytes() for path in evidence.folder.iterdir() if path.is_file()}
            if there == evidence.contents:
                return UNCHANGED
        with replacing(evidence.folder) as new:
            for name, content in evidence.contents.items():
                (new / name).write_bytes(content)
    return ADOPTED


def _document(record: FreezeRecord, places: Checkout, checkout: Folder) -> bytes:
    content = checkout.read(places.document, LARGEST_FROZEN)
    digest = hashlib.sha256(content).hexdigest()
    if digest == record.document_sha256:
        return content
    remedy = f"restore it: git checkout {record.freeze_commit or 'COMMIT'} -- {places.document}"
    if is_converted(content, record.document_sha256):
        remedy = "its line ends were converted: git config core.autocrlf false, and check it out again"
    raise VerificationError(
        "the checkout's document is not the one that was timestamped",
        expected=f"SHA-256 {record.document_sha256}",
        found=f"SHA-256 {digest}",
        where=checkout.root / places.document,
        remedy=remedy,
    )


def _records_agree(record: FreezeRecord, places: Checkout, checkout: Folder) -> None:
    note = checkout.read(places.digest, MAX_NOTE).decode(errors="replace").split()
    _agree(record.document_sha256, note[0] if note else "nothing", places.digest)
    freeze = checkout.json(places.freeze)
    if not isinstance(freeze, dict):
        raise DamagedError(f"{places.freeze} is no record of a freeze", where=checkout.root / places.freeze)
    _agree(record.document_sha256, freeze.get("sha256", "nothing"), f"{places.freeze}: sha256")
    # Its first version was written before the commit that it names later.
    stated = {"document": places.document, "commit": record.freeze_commit}
    stated["frozen_on_utc"] = f"{record.frozen_at:{TIME}}"
    for key, recorded in stated.items():
        if recorded and key in freeze:
            _agree(recorded, freeze[key], f"{places.freeze}: {key}")


def _agree(recorded: str, found: object, where: str) -> None:
    if recorded != found:
        raise VerificationError(
            "the authors' record of the freeze does not agree with this registration's",
            expected=recorded,
            found=found,
            where=where,
            remedy="ask the authors; one of the two records was changed",
        )


def _evidence(
    registration: Registration, places: Checkout, checkout: Folder, document: bytes
) -> dict[str, bytes]:
    """Return the evidence by file name; what a reader laid beside it stays."""
    record = registration.record
    contents = _kept(registration.folder / EVIDENCE)
    for path in places.certificates:
        if checkout.has(path):
            contents[_name(path)] = checkout.read(path, MAX_CERTIFICATES)
    contents[_name(record.document_place)] = document
    for authority in record.authorities:
        if authority.name not in places.tokens:
            raise DamagedError(
                f"the record does not say where a checkout keeps the token of {authority.name}",
                where=registration.folder / "record.toml",
            )
        contents[_name(authority.token_place)] = checkout.read(places.tokens[authority.name], MAX_BYTES)
        if authority.request_place:
            contents[_name(authority.request_place)] = checkout.read(places.request, MAX_BYTES)
    return contents


def _kept(evidence: Path) -> dict[str, bytes]:
    endings = (*CERTIFICATE_FILES, *REVOCATION_FILES)
    if evidence.is_symlink():
        raise UsageError("the folder of the evidence is a link", where=evidence, remedy="remove it")
    if not evidence.is_dir():
        return {}
    there = (path for path in evidence.iterdir() if path.suffix.lower() in endings and path.is_file())
    return {path.name: path.read_bytes() for path in there}


def _verified(registration: Registration, contents: dict[str, bytes], reader: Reader) -> Verification:
    """Verify a copy of the registration with the evidence in place."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / registration.folder.name
        shutil.copytree(registration.folder, folder, ignore=shutil.ignore_patterns(EVIDENCE, ".*"))
        (folder / EVIDENCE).mkdir()
        for name, content in contents.items():
            write_bytes(folder / EVIDENCE / name, content)
        for path in (folder / EVIDENCE).iterdir():
            if path.suffix.lower() in CERTIFICATE_FILES:
                read_blocks(path, CERTIFICATE)
        verification = verify_registration(folder, reader)
    for check in verification.checks:
        kind = _REFUSED.get(check.outcome)
        if kind and check.step in NEEDED and (check.outcome, check.step) != ("missing", RESTATEMENT):
            raise kind(
                f"the evidence does not pass step {check.step}, {check.name}",
                found=check.detail,
                remedy="nothing was put in place; toolkit verify-prereg says what each step asks for",
            )
    return verification


def _pools(places: Checkout, checkout: Folder) -> Pools:
    hashes = list(_pool_hashes(places, checkout))
    differences = []
    for source, path, digest in hashes:
        if digest not in {None, places.pools[path]}:
            converted = is_converted_file(checkout.root / path, places.pools[path])
            found = CAUSE if converted else f"expected SHA-256 {places.pools[path]}, found {digest}"
            differences.append(f"{source} of {path}: {found}")
    absent = tuple(f"{source} of {path}" for source, path, digest in hashes if digest is None)
    return Pools(len(hashes) - len(absent), tuple(differences), absent)


def _pool_hashes(places: Checkout, checkout: Folder) -> Iterator[tuple[str, str, object]]:
    """Yield each pool's hash as the authors list it, and as its file has it; None where one is not here."""
    listed: dict[str, object] = {}
    if checkout.has(places.manifest):
        manifest: Any = checkout.json(places.manifest)
        try:
            listed = {str(entry["path"]): entry["sha256"] for entry in manifest["files"].values()}
        except (KeyError, TypeError, AttributeError) as error:
            raise DamagedError(
                f"{places.manifest} is no list of pools", found=error, where=checkout.root
            ) from None
    for path in places.pools:
        yield places.manifest, path, listed.get(path)
        yield "the file", path, checkout.sha256(path) if checkout.has(path) else None


def _name(path: str) -> str:
    return path.rpartition("/")[2]


# A run's register has 40 kB; a pool of tasks 9 MB.
MAX_JSON = 8 << 20
MAX_POOL = 256 << 20
DEEPEST = 40


class Folder:
    """A checkout of somebody's repository."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise UsageError("a checkout is a folder", found=root, remedy="git clone the repository first")
        self.root = root.resolve()

    def has(self, name: str) -> bool:
        """Whether there is something under a name, whatever it is."""
        path = self.root / name
        return path.exists() or path.is_symlink()

    def read(self, name: str, limit: int) -> bytes:
        """Return a file's bytes."""
        return read_bytes(self._inside(name), limit)

    def sha256(self, name: str, limit: int = MAX_POOL) -> str:
        """Return the SHA-256 of a file, read in blocks; errors as `read`."""
        path = self._inside(name)
        size = path.stat().st_size
        if size > limit:
            raise DamagedError(
                f"{name} is too long to be read", expected=f"{limit} bytes at most", found=f"{size} bytes"
            )
        return file_sha256(path)

    def json(self, name: str) -> Any:
        """Return a JSON document, its numbers exactly as they are written; further errors as `read`."""
        raw = self.read(name, MAX_JSON)
        try:
            if _depth(raw) > DEEPEST:
                raise ValueError(f"nested more than {DEEPEST} deep")  # noqa: TRY301 - one message
            return json.loads(raw, parse_float=Decimal, parse_int=Decimal)
        except (ValueError, ArithmeticError, RecursionError) as error:
            raise DamagedError(f"{name} is not JSON", found=error, where=self.root / name) from None

    def _inside(self, name: str) -> Path:
        try:
            path = (self.root / name).resolve()
            if path.is_symlink():  # newer versions of Python leave a loop as it is
                raise RuntimeError("a link that leads to itself")  # noqa: TRY301 - one message
        except (OSError, RuntimeError, ValueError) as error:
            raise DamagedError(f"{name} cannot be followed", found=error, where=self.root) from None
        if not path.is_relative_to(self.root):
            raise VerificationError(
                f"{name} leads out of the checkout",
                expected="a file in it",
                found=path,
                where=self.root / name,
                remedy="take a checkout without such a link; nothing outside one is read",
            )
        if not path.exists():
            raise IncompleteError(
                f"the checkout has no {name}",
                where=self.root,
                remedy="take a checkout of the whole repository, at a commit after the freeze",
            )
        return path


def _depth(raw: bytes) -> int:
    """Return how deeply brackets are nested at most, those in strings counted, too."""
    depth = deepest = 0
    for byte in raw:
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest
