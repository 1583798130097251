"""Another project's package where the reader has it: found, and verified by what its files hold.

Nothing of it is copied into this project. It is looked for in the wheel that an environment variable names,
then among the installed packages.
"""

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from toolkit.errors import DamagedError, IncompleteError


@dataclass(frozen=True)
class Package:
    """A package of a fixed version."""

    name: str  # what it is imported as
    version: str  # the version
    names: tuple[str, ...]  # the files that are read or run
    sha256: str  # of these files: a line each with its SHA-256 and its name, sorted by name
    remedy: str  # how to get it
    wheel: str  # the environment variable that may name its wheel

    @lru_cache  # noqa: B019 - one package is one object
    def files(self) -> dict[str, bytes]:
        """Return its files by name, verified."""
        read = self._read(self._place(), sorted(self.names))
        found = digest(read.items())
        if found != self.sha256:
            raise self._other(f"SHA-256 {found}")
        return read

    def module(self, name: str) -> Any:
        """Return a module of the package, imported once its files are verified; raises as `files`."""
        self.files()
        if os.environ.get(self.wheel) and str(self._place()) not in sys.path:
            sys.path.insert(0, str(self._place()))
        try:
            return import_module(f"{self.name}.{name}")
        except ImportError as error:
            raise IncompleteError(
                f"{self.name}.{name} cannot be imported", found=error, remedy=self.remedy
            ) from None

    def _place(self) -> Path:
        named = os.environ.get(self.wheel)
        if named:
            return Path(named)
        found = importlib.util.find_spec(self.name)
        if found is None or found.origin is None:
            raise IncompleteError(f"the package {self.name} is not installed", remedy=self.remedy)
        return Path(found.origin).parent.parent

    def _read(self, place: Path, names: Iterable[str]) -> dict[str, bytes]:
        try:
            if place.is_dir():
                return {name: (place / name).read_bytes() for name in names}
            with ZipFile(place) as wheel:
                return {name: wheel.read(name) for name in names}
        except (OSError, BadZipFile, KeyError) as error:
            raise self._other(error) from None

    def _other(self, found: object) -> DamagedError:
        problem = f"the package {self.name} is not version {self.version}"
        expected = f"files with SHA-256 {self.sha256}"
        return DamagedError(problem, expected=expected, found=found, where=self._place(), remedy=self.remedy)


def digest(files: Iterable[tuple[str, bytes]]) -> str:
    """Return the SHA-256 of files: of a line each with its SHA-256 and its name."""
    lines = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files)
    return hashlib.sha256(lines.encode()).hexdigest()
