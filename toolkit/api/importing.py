"""Registers from somebody's own table of episodes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.api.by_name import open_study
from toolkit.errors import IncompleteError, UsageError
from toolkit.places import Home, find_home

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.api.study import Study
    from toolkit.drafting.importing import Import, Imported


def import_table(
    study: str,
    sources: str | Path | Sequence[str | Path],
    home: Home | None = None,
    *,
    mapping: Path | None = None,
    reason: str | None = None,
) -> Study:
    """Make the registers of a study from its own table of episodes, decide on them, and open the study.

    Rows are converted exactly or refused, with their number; the registers are verified and decided on before
    they are put in place. What the rows do not say, such as which columns no register takes, is a warning of
    the module `logging`.

    Args:
        study: name of the study, whose registration is frozen.
        sources: files, folders, patterns, or `hf://datasets/OWNER/NAME@REVISION/PATH`; a log with a row an
            episode, in any format that `toolkit registers import` reads.
        home: where studies, registrations and mappings are; found where it is left out.
        mapping: file that says which column is which; `mappings/STUDY.toml` where left out.
        reason: why registers that were decided on get other rows; it is recorded.

    Returns:
        The study, decided: `toolkit.decide` says the same of it.

    Raises:
        UsageError: the home came with the package, the mapping is another study's, or registers with other
            rows were decided on, and no reason is given.
        IncompleteError: the mapping, the card or a source is missing.
        DamagedError: the table, the mapping, the card or the rules do not fit each other.

    Examples:
        >>> toolkit.import_table("my-study", "episodes.csv").rows("runs")  # doctest: +SKIP
    """
    home = home or find_home()
    logger = logging.getLogger(__name__)
    given = [sources] if isinstance(sources, str | Path) else sources
    done = import_registers(study, given, home, mapping=mapping, reason=reason, progress=logger.info)
    for said in done.said:
        logger.warning("%s: %s", study, said)
    return open_study(study, home)


def import_registers(
    study: str,
    sources: Sequence[str | Path],
    home: Home | None = None,
    *,
    mapping: Path | None = None,
    reason: str | None = None,
    check: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Imported:
    """Import a study as `import_table` does, and say what came of it.

    Args:
        study: name of the study.
        sources: files, folders, patterns, or files of the Hub.
        home: where studies, registrations and mappings are.
        mapping: file that says which column is which; `mappings/STUDY.toml` where left out.
        reason: why registers that were decided on get other rows; it is recorded.
        check: whether nothing is written, and the registers are compared with what the table gives.
        progress: told what is being done.

    Raises:
        UsageError, IncompleteError, DamagedError: as `import_table`.
        VerificationError: on a check, a file differs.
    """
    from toolkit.drafting.importing import check_import, import_study
    from toolkit.files import hold
    from toolkit.line_ends import ADDED, protect

    home = home or find_home()
    named = [str(source) for source in sources]
    if not named:
        raise UsageError("no source is named", expected="a file, a folder or a pattern")
    if home.is_shipped:
        raise UsageError(
            "there is no project here to import into",
            where=Path.cwd(),
            remedy=f"start one in this folder: toolkit new-study {study} --table {named[0]}",
        )
    wanted = _wanted(home, study, named, mapping or home.mappings / f"{study}.toml")
    folder = home.registers / study
    if check:
        return check_import(wanted, folder, progress)
    home.registers.mkdir(parents=True, exist_ok=True)
    with hold(home.registers, f".{study}.lock", "study's registers"):
        done = import_study(wanted, folder, progress, reason)
    if protect(home.root):
        progress(ADDED)
    return done


def _wanted(home: Home, study: str, sources: list[str], mapping: Path) -> Import:
    from toolkit.drafting.importing import Import
    from toolkit.prereg.registration import load_registration
    from toolkit.registers.importing.mapping import read_mapping
    from toolkit.verification.registered import open_case

    if not mapping.is_file():
        raise IncompleteError(
            f"there is no mapping for {study}",
            where=mapping,
            remedy=f"toolkit new-study {study} --table {sources[0]} writes one to be looked over",
        )
    read = read_mapping(mapping)
    if read.study != study:
        raise UsageError("the mapping is of another study", expected=study, found=read.study, where=mapping)
    return Import(
        tuple(sources),
        mapping,
        home.cards / f"{study}.md",
        load_registration(home.registration_folder(read.registration)),
        open_case,
    )
