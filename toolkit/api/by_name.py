"""Studies by name: open them, decide their rules, explain why."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.api.cases import open_case, registration_of
from toolkit.errors import IncompleteError, UsageError
from toolkit.places import Home, find_home

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.api.study import Study
    from toolkit.decisions.case import Case, Explanation
    from toolkit.decisions.decision import Decision


PUBLISHED = "published"


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
    from toolkit.api.study import with_charts
    from toolkit.registers.study import open_registers

    say = logging.getLogger(__name__).warning
    return with_charts(open_registers(str(name), home, offline=offline, say=say))


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
    """Return the study that is meant where none is named: the published one, or the only one.

    Raises:
        UsageError: there are several others.
    """
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
    """Open studies with their registrations; every one here that has runs where none is named.

    The rest as `open_case`.

    Args:
        names: the studies.
        home: where studies and registrations are.
        rules: those that are asked for: where no study is named, only those are opened whose registration
            mentions one, if any does.
        trust_files: further authorities that the caller trusts.

    Raises:
        UsageError: a study has no runs.
        IncompleteError: there is no study at all, or its registration is missing.
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
    """Return which rules to look at in which study, study by study.

    Args:
        cases: the studies.
        rules: names of rules, in any case of letters where only one is meant; none for all.
        home: where the studies were looked for.
        everywhere: whether every study has to have every rule, as where the studies were named.

    Raises:
        UsageError: no study has a rule, or one that was named has not.
        IncompleteError: the study that has it does not come with the package.
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
    study: Study | str | Path | None = None,
    home: Home | None = None,
    *,
    trust_files: Sequence[Path] = (),
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
    """Decide rules of several studies; the rest as `decide`.

    Args:
        rules: names of rules, as `rules_asked`; none for all.
        names: studies; every one here that has runs where none is named.
        home: where studies and registrations are.
        trust_files: further authorities that the caller trusts.
        watch: told how many rules are decided, of how many, and which is next.

    Raises:
        UsageError: no study has a rule, or one that was named has not, or has no runs.
        IncompleteError: there is no study at all, or its registration is missing.
    """
    home = home or find_home()
    if not (rules or names):
        home.say_absent(logging.getLogger(__name__).warning)
    cases = load_cases(names, home, rules=rules, trust_files=trust_files)
    asked = rules_asked(cases, rules, home, everywhere=bool(names))
    decisions = []
    for at, (case, rule) in enumerate(asked):
        watch(at, len(asked), f"{rule} of {case.study.name}")
        decisions.append(case.decide(rule))
    return decisions


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
    from toolkit.files import read_text

    folder = registration_of(study, home)
    files = [folder / "rules.toml", *(folder / "amendments").glob("*.toml")]
    text = "".join(read_text(file) for file in files if file.is_file()).casefold()
    return any(rule.casefold() in text for rule in rules)
