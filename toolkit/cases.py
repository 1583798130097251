"""Studies with their registrations: opened, put together as cases, decided and explained.

Every function takes a `home`, the folder with registers and registrations, and finds it where none is given.
What a caller has to know and no result says, such as that the Hub was not asked, is a warning of `logging`.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.files import file_sha256, read_text
from toolkit.places import Home, find_home
from toolkit.prereg.record import FROZEN
from toolkit.prereg.registration import Registration, load_registration
from toolkit.registers import study as registers
from toolkit.registers.manifest import UNREGISTERED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import altair as alt
    import pandas as pd

    from toolkit.decisions.case import Case, Explanation
    from toolkit.decisions.decision import Decision
    from toolkit.exports.formats import Export
    from toolkit.verification.steps import Checked

PUBLISHED = "published"


@dataclass(frozen=True, repr=False)
class Study(registers.Study):
    """A study, opened for reading: `toolkit.open_study` returns one.

    `rows`, `arrow`, `polars`, `pandas` and `relation` give a table by name, `duckdb` all of them as views,
    `plot` the chart of a rule's estimate. `tables` says what there is. A notebook shows what the study holds.
    """

    def pandas(self, table: str) -> pd.DataFrame:
        """Return a table as a pandas data frame, its rows checked; IncompleteError without pandas.

        Its columns have Arrow's types: a missing number is missing, and the others of its column stay whole.
        """
        _need("pandas", "pip install pandas; `polars` gives a frame without it")
        import pandas as pd

        frame: pd.DataFrame = self.arrow(table).to_pandas(types_mapper=pd.ArrowDtype)
        return frame

    def plot(self, rule: str, home: Home | None = None) -> alt.LayerChart:
        """Draw a rule's estimate by seed, with its mean, its interval, zero and the registered threshold.

        It shows what the site's chart of the rule shows.

        Args:
            rule: name of the rule.
            home: where registrations are; found where it is left out.

        Returns:
            An Altair chart, which a notebook shows and `save` writes; in the unit of the estimate.

        Raises:
            UsageError: the registration has no such rule.
            IncompleteError: Altair is not installed, the rule has no estimate with members, or its
                registration is not here.
            DamagedError, VerificationError: as `toolkit.decide`.

        Examples:
            >>> toolkit.open_study("published").plot("H2a").save("H2a.html")  # doctest: +SKIP
        """
        _need("altair", "pip install 'paired-rollouts-toolkit[plot]'")
        from toolkit.rooms import site

        chart = site().plot(open_case(self, home), rule)
        if chart is None:
            raise IncompleteError(
                f"rule {rule!r} has no estimate to draw in study {self.name!r}",
                remedy=f"`toolkit.explain({rule!r}, {self.name!r})` says what it rests on and lacks",
            )
        return chart

    def _repr_html_(self) -> str:
        """Return the study as a notebook shows it: its tables with their rows."""
        from html import escape

        registered, is_of = self.manifest.registration, self.manifest.evidence
        rows = "".join(
            f"<tr><td>{escape(table.name)}</td><td>{self.manifest.tables[table.name].rows:,}</td>"
            f"<td style='text-align:left'>{escape(table.meaning)}</td></tr>"
            for table in self.tables
        )
        head = "<thead><tr><th>table</th><th>rows</th><th>what a row is</th></tr></thead>"
        return (
            f"<p>Study <b>{escape(self.name)}</b>, evidence: {escape(is_of)}. Registration "
            f"{escape(registered.name)} <code>{escape(registered.sha256)}</code>.</p>"
            f"<table>{head}<tbody>{rows}</tbody></table>"
        )


def _need(package: str, remedy: str) -> None:
    if find_spec(package) is None:
        raise IncompleteError(f"the package {package} is not installed", remedy=remedy)


def registration_of(study: registers.Study, home: Home | None = None) -> Path:
    """Return where a study's registration is: in the home, or else carried by the study itself.

    One of the same name in the home that was frozen as other files is another study's.
    """
    registered, registrations = study.manifest.registration, (home or find_home()).registrations
    carried, own = study.folder / "prereg" / registered.name, registrations / registered.name
    is_carried = (carried / "rules.toml").is_file()
    # A draft was not frozen as anything yet.
    is_own = (own / FROZEN).is_file() and file_sha256(own / FROZEN) == registered.sha256
    if is_carried and not is_own:
        return carried
    if own.is_dir():
        return own
    raise IncompleteError(
        f"the registration of study {study.name!r} is not here",
        expected=registered.name,
        where=registrations,
        remedy="put the registration's folder there",
    )


def registered_by(study: registers.Study, home: Home | None = None) -> Registration:
    """Return the registration that decides a study; errors as `open_case`."""
    from toolkit.decisions.case import open_book

    if not study.has("runs"):
        raise UsageError(
            f"{study.name!r} has no runs: it holds the tasks that studies run on", where=study.folder
        )
    registration = load_registration(registration_of(study, home))
    open_book(study, registration)  # refuses one that the study's manifest does not name
    return registration


def open_case(study: registers.Study, home: Home | None = None, *, trust_files: Sequence[Path] = ()) -> Case:
    """Put a study and its registration together, and verify the registration against the study's runs."""
    from toolkit.verification import registered

    registration = registered_by(study, home)
    registered.refuse_own(registration.folder, trust_files)
    return registered.open_case(study, registration, trust_files)


def export(study: registers.Study, wanted: Export, home: Home | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a study in another project's format, by path; nothing is written."""
    from toolkit.exports.formats import exported

    is_registered = study.manifest.registration.name != UNREGISTERED
    registration = registered_by(study, home) if is_registered else None
    return exported(wanted, study, registration, lambda: open_case(study, home))


def verify_registers(
    study: registers.Study, home: Home | None = None, progress: Callable[[str], None] = lambda _: None
) -> Checked:
    """Verify registers: files, rows, what follows from rows, and what the registration says of them."""
    from toolkit.verification.steps import Checked, check_study

    at = Checked(study, None, progress)
    attach_registration(at, home)
    return check_study(at)


def attach_registration(at: Checked, home: Home | None = None, *, trust_files: Sequence[Path] = ()) -> None:
    """Put a study that is to be checked and its registration together, where that is here."""
    if not at.study.has("runs") or at.study.manifest.registration.name == UNREGISTERED:
        return
    try:
        registration_of(at.study, home)
    except IncompleteError as missing:
        at.missing = missing.problem
    else:
        at.case = open_case(at.study, home, trust_files=trust_files)


def open_study(name: str | Path, home: Home | None = None, *, offline: bool = False) -> Study:
    """Open a study by name, path, or `owner/name@revision` on the Hub.

    A study of the Hub is pulled at the commit that the revision is, and checked file by file; what has to be
    known about that (such as that the Hub was not asked) is a warning of the module `logging`.

    Args:
        name: a study of the home, a folder that holds a manifest, or a dataset repository.
        home: where studies are; found where it is left out.
        offline: whether a study of the Hub is taken from the cache alone.

    Returns:
        The study: `rows`, `arrow`, `polars`, `pandas` and `relation` give its tables, `plot` a rule's chart,
        `origin` says which commit of the Hub it is.

    Raises:
        UsageError: there is no such study.
        IncompleteError: something of it cannot be read, or be had from the Hub.
        DamagedError: something of it is not what its manifest names.
        VerificationError: a tag on the Hub was moved.

    Examples:
        >>> toolkit.open_study("published").polars("evaluations").collect().height
        352
    """
    say = logging.getLogger(__name__).warning
    opened = open_registers(str(name), home, offline=offline, say=say)
    return Study(*(getattr(opened, part.name) for part in fields(opened)))


def open_registers(
    name: str, home: Home | None = None, *, offline: bool = False, say: Callable[[str], None] = lambda _: None
) -> registers.Study:
    """Open a study by name, path, or `owner/name@revision`; what is here wins over what is on the Hub."""
    home = home or find_home()
    if home.find_study(name) is None and _is_on_the_hub(name):
        from toolkit.registers.hub.client import parse_reference
        from toolkit.registers.hub.transfer import pull

        return pull(parse_reference(name), offline=offline, say=say)
    study = registers.open_study(home.study_folder(name))
    if study.folder.parent == home.registers and study.folder.name != study.name:
        raise DamagedError(
            "a study lies under another name than its own",
            expected=study.name,
            found=study.folder.name,
            where=study.folder,
        )
    return study


def _is_on_the_hub(name: str) -> bool:
    """Whether a name that is no study here is meant for the Hub: a path into a folder that is here is not."""
    from toolkit.registers.hub.client import SCHEME, looks_like_reference  # brings what asks the Hub

    if not looks_like_reference(name):
        return False
    return name.startswith(SCHEME) or "@" in name or not Path(name).parent.exists()


def studies(home: Home | None = None) -> tuple[str, ...]:
    """Return the names of the studies that are here, sorted.

    Args:
        home: where studies are; found where it is left out.

    Raises:
        IncompleteError: there is none.

    Examples:
        >>> "published" in toolkit.studies()
        True
    """
    return (home or find_home()).studies()


def studies_here(home: Home | None = None) -> list[Study]:
    """Open every study of a home that has runs; before its runs, a registration's home need not have one."""
    home = home or find_home()
    return _with_runs(home) if home.has_studies else []


def usual_study(home: Home | None = None) -> str:
    """Return the study that is meant where none is named: the published one, or the only one."""
    names = [study.name for study in studies_here(home)]
    if len(names) != 1 and PUBLISHED not in names:
        raise UsageError("say which study is meant", expected=f"--study {' or '.join(names) or 'NAME'}")
    return PUBLISHED if PUBLISHED in names else names[0]


def load_cases(
    names: Sequence[str] = (),
    home: Home | None = None,
    *,
    rules: Sequence[str] = (),
    trust_files: Sequence[Path] = (),
) -> list[Case]:
    """Open studies with their registrations; where none is named, every one here that has runs.

    Of these only those whose registration mentions one of the rules that are asked for, if any does.
    """
    home = home or find_home()
    studies = [open_study(name, home) for name in dict.fromkeys(names)]
    if not studies:
        here = _with_runs(home)
        studies = [study for study in here if _mentions(study, home, rules)] or here
    if not studies:
        raise IncompleteError(
            "no study here has runs", where=home.registers, remedy="put a study's folder there"
        )
    return [open_case(study, home, trust_files=trust_files) for study in studies]


def rules_asked(
    cases: Sequence[Case], rules: Sequence[str], home: Home | None = None, *, everywhere: bool
) -> list[tuple[Case, str]]:
    """Return which rules to look at in which study, study by study; all where none is named.

    `everywhere` says that every study has to have every rule, as where the studies were named.
    """
    from toolkit.verification.registered import refuse_absent

    for rule in rules:
        lacking = [case for case in cases if case.book.find(rule) is None]
        if lacking and (everywhere or len(lacking) == len(cases)):
            if not everywhere:
                refuse_absent(rule, home or find_home())
            others = () if everywhere else (name for case in cases for name in case.book.rules)
            raise lacking[0].book.refusal(rule, others)
    asked = [(case, case.book.find(rule)) for case in cases for rule in rules or case.book.rules]
    return [(case, rule.id) for case, rule in asked if rule is not None]


def decide(
    rule: str,
    study: Study | str | Path | None = None,
    home: Home | None = None,
    *,
    trust_files: Sequence[Path] = (),
) -> Decision:
    """Execute a rule, as it was registered, on the registers of a study.

    The decision carries what its registration stands on (`standing`); a registration that failed raises
    nothing here. `toolkit.prereg.verification.require` does.

    Args:
        rule: name of the rule, as `H2a`.
        study: the study, opened or as `open_study` takes it; `published`, or the only one, where left out.
        home: where studies and registrations are; found where it is left out.
        trust_files: trust files with further authorities that the caller knows.

    Returns:
        The verdict with every number it rests on: exact fractions in the units that the rules declare.

    Raises:
        UsageError: there is no such rule or study, or the study has no runs.
        IncompleteError: the study's registration is not here.
        DamagedError: rows contradict each other, or what was registered or stored.
        VerificationError: a file of the registration was changed after its hash was recorded.

    Source:
        The registration that the study names: no threshold stands in the code.

    Examples:
        >>> toolkit.decide("H2a").verdict
        'miss'
    """
    if not isinstance(rule, str):
        raise UsageError("one rule is decided", found=rule, remedy="toolkit.decide_all decides every rule")
    return _case_of(study, home, trust_files).decide(rule)


def decide_all(
    study: Study | str | Path | None = None, home: Home | None = None, *, trust_files: Sequence[Path] = ()
) -> tuple[Decision, ...]:
    """Execute every rule of a study's registration; the rest as `decide`.

    Args:
        study: the study, opened or as `open_study` takes it; `published`, or the only one, where left out.
        home: where studies and registrations are; found where it is left out.
        trust_files: trust files with further authorities that the caller knows.

    Returns:
        The decisions, in the order of the registration.

    Raises:
        UsageError, IncompleteError, DamagedError, VerificationError: as `decide`.

    Examples:
        >>> {decision.rule: decision.verdict for decision in toolkit.decide_all()}["P13"]
        'met'
    """
    return _case_of(study, home, trust_files).decide_all()


def explain(
    rule: str,
    study: Study | str | Path | None = None,
    home: Home | None = None,
    *,
    trust_files: Sequence[Path] = (),
) -> Explanation:
    """Decide a rule, and say what it rests on: its words, its criteria, and the rows of its endpoints.

    Args:
        rule: name of the rule, as `H2a`.
        study: the study, opened or as `open_study` takes it; `published`, or the only one, where left out.
        home: where studies and registrations are; found where it is left out.
        trust_files: trust files with further authorities that the caller knows.

    Returns:
        The decision, and beside it the queries that give the rows of every endpoint.

    Raises:
        UsageError, IncompleteError, DamagedError, VerificationError: as `decide`.

    Examples:
        >>> print(toolkit.explain("H2a").endpoints[0].title)
        C2 AUC on noisy validation, paired minus independent
    """
    from toolkit.decisions import case

    return case.explain(_case_of(study, home, trust_files), rule)


def decide_rules(
    rules: Sequence[str] = (),
    names: Sequence[str] = (),
    home: Home | None = None,
    *,
    trust_files: Sequence[Path] = (),
    watch: Callable[[int, int, str], None] = lambda *_: None,
) -> list[Decision]:
    """Decide rules of several studies, all where none is named; `watch` is told how many are, of how many."""
    home = home or find_home()
    if not (rules or names):
        home.say_absent(logging.getLogger(__name__).warning)
    cases = load_cases(names, home, rules=rules, trust_files=trust_files)
    if not rules and len(cases) > 1 and sys.platform == "linux":
        return _decide_beside(cases, watch)
    asked = rules_asked(cases, rules, home, everywhere=bool(names))
    decisions = []
    for at, (case, rule) in enumerate(asked):
        watch(at, len(asked), f"{rule} of {case.study.name}")
        decisions.append(case.decide(rule))
    return decisions


def _decide_beside(cases: Sequence[Case], watch: Callable[[int, int, str], None]) -> list[Decision]:
    """Decide every rule of several studies, a process a study, the largest first: they share nothing."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    left = sorted(range(len(cases)), key=lambda at: -len(cases[at].study.manifest.files))
    total = sum(len(case.book.rules) for case in cases)

    def show() -> None:
        names, rules = zip(*((cases[at].study.name, len(cases[at].book.rules)) for at in left), strict=True)
        watch(total - sum(rules), total, ", ".join(names))

    with ProcessPoolExecutor(os.cpu_count(), get_context("fork"), _begin, (cases,)) as pool:
        begun = {pool.submit(_decide_case, at): at for at in left}
        for decided in as_completed(begun):
            show()
            left.remove(begun[decided])
    made = {at: decided for decided, at in begun.items()}
    try:
        return [decision for at in sorted(made) for decision in made[at].result()]
    except BrokenProcessPool:
        remedy = "free memory, or decide one study at a time: --study NAME"
        raise IncompleteError("a process that decided a study was killed", remedy=remedy) from None


_CASES: list[Case] = []  # in a process that was forked to decide one of them


def _begin(cases: Sequence[Case]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # who interrupts the command wants no word of its helpers
    _CASES.extend(cases)


def _decide_case(at: int) -> tuple[Decision, ...]:
    return _CASES[at].decide_all()


def _case_of(study: Study | str | Path | None, home: Home | None, trust_files: Sequence[Path]) -> Case:
    if study is None or isinstance(study, str | Path):
        home = home or find_home()
        study = open_study(usual_study(home) if study is None else study, home)
    return open_case(study, home, trust_files=trust_files)


def _with_runs(home: Home) -> list[Study]:
    """Open every study that has runs, the paper's first."""
    studies = [open_study(name, home) for name in home.studies()]
    return sorted((study for study in studies if study.has("runs")), key=lambda s: s.name != PUBLISHED)


def _mentions(study: Study, home: Home, rules: Sequence[str]) -> bool:
    """Whether a study's registration has the name of a rule in it anywhere; verifying it takes far longer."""
    folder = registration_of(study, home)
    files = [folder / "rules.toml", *(folder / "amendments").glob("*.toml")]
    text = "".join(read_text(file) for file in files if file.is_file()).casefold()
    return any(rule.casefold() in text for rule in rules)


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
    from toolkit.drafting.importing import import_registers

    home = home or find_home()
    logger = logging.getLogger(__name__)
    given = [sources] if isinstance(sources, str | Path) else sources
    done = import_registers(study, given, home, mapping=mapping, reason=reason, progress=logger.info)
    for said in done.said:
        logger.warning("%s: %s", study, said)
    return open_study(study, home)
