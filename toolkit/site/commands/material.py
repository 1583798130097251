"""What the site is made of, put together from everything that a home holds."""

import atexit
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from typing import Any

from toolkit import registrations
from toolkit.cases import load_cases, open_case, open_study, registered_by
from toolkit.cli.output import remark
from toolkit.decisions.case import Case
from toolkit.findings import read_findings
from toolkit.places import Home
from toolkit.prereg.verification import Verification
from toolkit.registers.row_tables import PROBE
from toolkit.registers.study import Study
from toolkit.rooms import laboratory
from toolkit.site.exhibits import load_exhibits
from toolkit.site.material import Material, read_citation, read_front
from toolkit.verification import registered
from toolkit.verification.steps import Checked, check_study


def material(
    home: Home,
    verifications: Sequence[Verification] | None = None,
    cases: Sequence[Case] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Material:
    """Return what the site is made of."""
    home.say_absent(remark)
    # Each is opened once: what was read and hashed of it for one page is kept for the others.
    opened = {case.study.name: case.study for case in cases}
    studies = tuple(opened.get(name) or open_study(name, home) for name in home.studies())
    decidable = [study for study in studies if study.has("runs")]
    wait: Callable[[], object] = lambda: None  # noqa: E731 - nothing to wait for
    if not cases:
        # Where none has runs, this refuses in the words of every other command.
        cases = [_opened(study, home) for study in decidable] or load_cases((), home)
        wait = _checked_beside(home, [case.study for case in cases], progress)
    if verifications is None:
        verifications = registrations.verify_frozen(home, decidable)
    front = read_front(home.cards)
    if front:
        cases = sorted(cases, key=lambda case: front.place(case.study.name))
    return Material(
        tuple(cases),
        studies,
        tuple(verifications),
        front,
        read_findings(home.cards, cases),
        registrations=tuple(registrations.frozen_registrations(home)),
        citation=read_citation(home.root),
        probe_figures=_probe_figures(cases),
        played={case.study.name: laboratory().played_of_runs(case.study) for case in cases},
        played_how=laboratory().played_how,
        exhibits=load_exhibits(front.exhibits) if front else (),
        cards=home.cards,
        wait=wait,
    )


def _opened(study: Study, home: Home) -> Case:
    """Open a study that is checked beside: to derive its summaries here, too, would double the time."""
    return registered.open_case(study, registered_by(study, home), is_checked=True)


def _checked_beside(
    home: Home, studies: Sequence[Study], progress: Callable[[str], None]
) -> Callable[[], object]:
    """Begin to check studies beside, the largest first; return what waits, and checks from the smallest."""
    pool = get_context("spawn").Pool(1)
    atexit.register(pool.terminate)  # it ends with this process, whatever stops that
    left = deque(study.name for study in sorted(studies, key=lambda study: -len(study.manifest.files)))
    begun = []

    def begin(_: object = None) -> None:
        if name := _taken(left.popleft):
            begun.append(pool.apply_async(_check, (home, name), callback=begin, error_callback=end))
        else:
            end()

    def end(_: object = None) -> None:
        pool.close()

    def wait() -> None:
        progress("what is checked beside: files, rows and what follows from them")
        for name in iter(lambda: _taken(left.pop), ""):
            _check(home, name)
        for checked in begun:
            checked.get()

    begin()
    return wait


def _taken(take: Callable[[], str]) -> str:
    """Take a name; empty where none is left, for two threads take them."""
    try:
        return take()
    except IndexError:
        return ""


def _check(home: Home, name: str) -> None:
    study = open_study(name, home)
    check_study(Checked(study, open_case(study, home), decides=False))


def _probe_figures(cases: Sequence[Case]) -> dict[str, list[Any]]:
    probed = [case.study for case in cases if case.study.has(PROBE.name)]
    return {study.name: laboratory().probe_figures(study) for study in probed}
