"""Where registers, registrations and cards are found."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import IncompleteError, UsageError, did_you_mean

HOME_VARIABLE = "TOOLKIT_HOME"

SEPARATE = ("bfcl", "coupled", "embedded", "map", "small-lm", "task-pools", "tiny-lm", "worlds")
"""Studies that do not come with the package: distributions of their own put them beside what it shipped."""

GET_STUDIES = (
    "install them with the package: pip install 'paired-rollouts-toolkit[studies]'; "
    f"or set {HOME_VARIABLE} to a checkout"
)


@dataclass(frozen=True)
class Home:
    """A folder that holds `registers/` and `prereg/`: a checkout, a reader's own project, or what shipped.

    Args:
        root: absolute path of the folder.
        is_shipped: whether it is the copy that came with the package: read, never written.
    """

    root: Path
    is_shipped: bool = False

    @property
    def registers(self) -> Path:
        """The folder with one dataset repository a study."""
        return self.root / "registers"

    @property
    def registrations(self) -> Path:
        """The folder with one folder a registration."""
        return self.root / "prereg"

    @property
    def cards(self) -> Path:
        """The folder with the sources of the cards."""
        return self.root / "cards"

    @property
    def mappings(self) -> Path:
        """The folder that says, study by study, how somebody's own table becomes registers."""
        return self.root / "mappings"

    @property
    def site(self) -> Path:
        """The folder of the generated site."""
        return Path("site") if self.is_shipped else self.root / "site"

    @property
    def runs(self) -> Path:
        """The folder in which runs are played, unless another is named."""
        return (Path.cwd() if self.is_shipped else self.root) / "runs"

    def check_own(self, option: str) -> None:
        """Check that the registers here may be written."""
        if self.is_shipped:
            joint = "" if option.endswith("=") else " "
            raise UsageError(
                "the registers that came with the package are not written",
                remedy=f"give a folder to write: {option}{joint}FOLDER",
            )

    @property
    def has_studies(self) -> bool:
        """Whether there is any study."""
        return bool(_names(self.registers))

    def studies(self) -> tuple[str, ...]:
        """Names of the studies, sorted: every folder, so that one without its manifest is missed."""
        return _folders(self.registers, "study")

    @property
    def absent_studies(self) -> tuple[str, ...]:
        """Names of the studies that the package leaves to other distributions, none of which brought them."""
        there = _names(self.registers)
        return tuple(name for name in SEPARATE if name not in there) if self.is_shipped else ()

    def say_absent(self, say: Callable[[str], None]) -> None:
        """Say which studies are absent, where any is, and how to have them."""
        if self.absent_studies:
            say(f"not with the package: {', '.join(self.absent_studies)}. To get them, {GET_STUDIES}")

    def absent(self, study: str, problem: str = "") -> IncompleteError:
        """Return what to raise where a study of `absent_studies` is asked for."""
        return IncompleteError(
            problem or f"study {study!r} does not come with the package",
            expected=f"{study}, with its MANIFEST.json",
            where=self.registers,
            remedy=f"{GET_STUDIES}; or name OWNER/{study}@REVISION, where somebody pushed it to the Hub",
        )

    def registration_names(self) -> tuple[str, ...]:
        """Names of the registrations, sorted."""
        return _folders(self.registrations, "registration")

    def find_study(self, study: str) -> Path | None:
        """Return the folder of a study that is here, by name or path; None where there is none."""
        if study in _names(self.registers):
            return self.registers / study
        folder = Path(study)
        try:
            return folder.resolve() if study and (folder / "MANIFEST.json").is_file() else None
        except OSError:
            return None  # a name that is too long is no folder's

    def study_folder(self, study: str) -> Path:
        """Return the folder of a study given by name or path."""
        folder = self.find_study(study)
        if folder is None and study in self.absent_studies:
            raise self.absent(study)
        if folder is None:
            raise UsageError(
                f"there is no study {study!r}",
                expected=f"one of {', '.join(_names(self.registers)) or 'none here'}, "
                "a folder that holds a MANIFEST.json, or OWNER/NAME@REVISION on the Hub",
                where=self.registers,
                remedy=did_you_mean(
                    study, _names(self.registers), "`toolkit registers list` names the studies that are here"
                ),
            )
        return folder

    def registration_folder(self, registration: str) -> Path:
        """Return the folder of a registration given by name or path."""
        if registration in _names(self.registrations):
            return self.registrations / registration
        folder = Path(registration)
        if registration and (folder / "rules.toml").is_file():
            return folder.resolve()
        raise UsageError(
            f"there is no registration {registration!r}",
            expected=f"one of {', '.join(_names(self.registrations)) or 'none here'}, "
            "or a folder that holds a rules.toml",
            where=self.registrations,
            remedy=did_you_mean(registration, _names(self.registrations)),
        )


def find_home() -> Home:
    """Find the home: TOOLKIT_HOME, else the nearest folder upwards, else what came with the package."""
    named = os.environ.get(HOME_VARIABLE)
    if named:
        if _is_home(Path(named)):
            return Home(Path(named).resolve())
        raise UsageError(
            f"{HOME_VARIABLE} does not name a folder with registers/ and prereg/",
            found=named,
            remedy=f"unset {HOME_VARIABLE} or point it at a checkout",
        )
    here = Path.cwd()
    package = Path(__file__).parent
    for folder in (here, *here.parents, package.parent):
        if _is_home(folder) and folder != package:
            return Home(folder)
    if _is_home(package / "_shipped"):
        return Home(package / "_shipped", is_shipped=True)
    raise IncompleteError(
        "no registers/ and prereg/ were found",
        where=here,
        remedy=f"change into a checkout, or set {HOME_VARIABLE} to one",
    )


def _names(folder: Path) -> tuple[str, ...]:
    """Return the visible folders of a folder, broken links included."""
    if not folder.is_dir():
        return ()
    entries = (path for path in folder.iterdir() if not path.name.startswith("."))
    return tuple(sorted(path.name for path in entries if path.is_dir() or path.is_symlink()))


def _folders(folder: Path, what: str) -> tuple[str, ...]:
    names = _names(folder)
    if not names:
        raise IncompleteError(
            f"there is no {what}",
            expected=f"a folder for each {what}",
            where=folder,
            remedy=f"toolkit registers import makes one of a log; or set {HOME_VARIABLE} to a checkout"
            if what == "study"
            else f"change into a checkout, or set {HOME_VARIABLE} to one",
        )
    return names


def _is_home(folder: Path) -> bool:
    return (folder / "registers").is_dir() and (folder / "prereg").is_dir()
