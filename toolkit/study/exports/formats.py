"""From what is asked for to the files of a format, and into a folder."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

from toolkit.decisions.case import Case
from toolkit.errors import UsageError, did_you_mean
from toolkit.files import replacing
from toolkit.prereg.registration import Registration
from toolkit.registers.arrow import Row
from toolkit.registers.hub.revision import parse_reference
from toolkit.registers.study import Study
from toolkit.study.exports import (
    EVERY_EVAL_EVER,
    FORMATS,
    IN_TOTO,
    RO_CRATE,
    every_eval_ever,
    hub_results,
    in_toto,
    ro_crate,
)

Files = Iterator[tuple[str, bytes]]


@dataclass(frozen=True)
class Wanted:
    """What is to be exported.

    Args:
        form: one of `FORMATS`.
        runs: a pattern that names runs; empty for all.
        rules: names of rules; none for all.
        episodes: whether episodes are told, one by one.
        dataset: where the registers are on the Hub, as OWNER/NAME@COMMIT; empty where the study says it.
        date: when the study was made, where nothing in it says so.
    """

    form: str
    runs: str = ""
    rules: tuple[str, ...] = ()
    episodes: bool = False
    dataset: str = ""
    date: datetime | None = None

    def check(self) -> None:
        """Check that the format is one, and takes what is asked of it.

        Raises:
            UsageError: it is none, or does not.
        """
        if self.form not in FORMATS:
            raise UsageError(
                f"there is no format {self.form!r}", expected=", ".join(FORMATS), found=self.form
            )
        for name in ("runs", "rules", "episodes", "dataset", "date"):
            if getattr(self, name) and name not in FORMATS[self.form]:
                takers = " and ".join(form for form, takes in FORMATS.items() if name in takes)
                raise UsageError(f"{self.form} has no choice of {name}", expected=f"only with {takers}")


def exported(
    wanted: Wanted, study: Study, registration: Registration | None, open_case: Callable[[], Case]
) -> Files:
    """Yield the files of a study in a format, by path; nothing is written.

    Args:
        wanted: what.
        study: the study.
        registration: the study's; None where it has none.
        open_case: gives what decides the study.

    Raises:
        UsageError: the format does not take what is asked, no run or rule has the name, or nothing says
            where on the Hub the registers are.
        IncompleteError, DamagedError: as the format's module.
    """
    wanted.check()
    if wanted.form == IN_TOTO:
        yield from in_toto.statements(open_case(), wanted.rules)
    elif wanted.form == RO_CRATE:
        yield from ro_crate.crate(study, registration)
    elif wanted.form == EVERY_EVAL_EVER:
        runs = chosen_runs(study, wanted.runs)
        yield from every_eval_ever.records(
            study, runs, registration, episodes=wanted.episodes, date=wanted.date
        )
    else:
        repository, commit = on_the_hub(study, wanted.dataset)
        runs = chosen_runs(study, wanted.runs)
        yield from hub_results.model_repositories(study, runs, repository, commit)


def chosen_runs(study: Study, pattern: str) -> list[Row]:
    """Return the rows of the runs that a pattern names; of all where it is empty.

    Raises:
        UsageError: it names none.
    """
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


def on_the_hub(study: Study, dataset: str) -> tuple[str, str | None]:
    """Return the repository of a study's registers on the Hub, and their commit if it is known.

    Raises:
        UsageError: nothing says it.
    """
    if dataset:
        reference = parse_reference(dataset)
        if "@" in dataset and not reference.is_commit:
            raise UsageError(
                "a tag or a branch can come to mean other rows",
                expected="the SHA of a commit, 40 hexadecimal digits",
                found=reference.revision,
            )
        return reference.repository, reference.revision if reference.is_commit else None
    if study.origin is None:
        raise UsageError(
            "results on the Hub name the dataset that they are from, and this study was not read from one",
            remedy="say where its registers are: --dataset OWNER/NAME, or OWNER/NAME@COMMIT",
        )
    return study.origin.repository, study.origin.commit


def write_new(folder: Path, files: Iterable[tuple[str, bytes]]) -> dict[str, int]:
    """Write files into a new folder, all or none, and return how many bytes each has.

    Raises:
        UsageError: something is in the folder already.
        IncompleteError: it cannot be written.
    """
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
