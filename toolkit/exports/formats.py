"""From what is asked for to the files of a format, and into a folder."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

from toolkit.decisions.case import Case
from toolkit.errors import UsageError, did_you_mean
from toolkit.exports import FORMATS, IN_TOTO, every_eval_ever, in_toto
from toolkit.files import replacing
from toolkit.prereg.registration import Registration
from toolkit.registers.arrow import Row
from toolkit.registers.study import Study

Files = Iterator[tuple[str, bytes]]


@dataclass(frozen=True)
class Export:
    """What is to be exported."""

    form: str  # one of `FORMATS`
    runs: str = ""  # a pattern that names runs; empty for all
    rules: tuple[str, ...] = ()  # names of rules; none for all
    episodes: bool = False  # whether episodes are told, one by one
    date: datetime | None = None  # when the study was made, where nothing in it says so

    def check(self) -> None:
        """Check that the format is one, and takes what is asked of it."""
        if self.form not in FORMATS:
            raise UsageError(
                f"there is no format {self.form!r}", expected=", ".join(FORMATS), found=self.form
            )
        for name in ("runs", "rules", "episodes", "date"):
            if getattr(self, name) and name not in FORMATS[self.form]:
                takers = " and ".join(form for form, takes in FORMATS.items() if name in takes)
                raise UsageError(f"{self.form} has no choice of {name}", expected=f"only with {takers}")


def exported(
    wanted: Export, study: Study, registration: Registration | None, open_case: Callable[[], Case]
) -> Files:
    """Yield the files of a study in a format, by path; nothing is written."""
    wanted.check()
    if wanted.form == IN_TOTO:
        yield from in_toto.statements(open_case(), wanted.rules)
    else:
        runs = chosen_runs(study, wanted.runs)
        yield from every_eval_ever.records(
            study, runs, registration, episodes=wanted.episodes, date=wanted.date
        )


def chosen_runs(study: Study, pattern: str) -> list[Row]:
    """Return the rows of the runs that a pattern names; of all where it is empty."""
    rows = study.rows("runs")
    runs: list[Row] = [dict(row) for row in rows if fnmatchcase(row["run_id"], pattern or "*")]
    if not runs:
        raise UsageError(
            f"study {study.name!r} has no run {pattern!r}",
            expected=f"{len(rows)} runs, the first of them {rows[0]['run_id']}",
            where=study.folder,
            remedy=did_you_mean(pattern, [row["run_id"] for row in rows]),
        )
    return runs


def write_new(folder: Path, files: Iterable[tuple[str, bytes]]) -> dict[str, int]:
    """Write files into a new folder, all or none, and return how many bytes each has."""
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise UsageError(
            "there is something already, and nothing is overwritten",
            where=folder,
            remedy="name a new folder: --into FOLDER",
        )
    sizes = {}
    with replacing(folder) as new:
        for name, content in files:
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            sizes[name] = len(content)
    return sizes
