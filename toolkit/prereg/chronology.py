"""Did the freeze come before the runs? Launch times against the freeze, exceptions by name.

A launch time is the word of the machine that ran; the freeze's is the word of the authorities, and counts
with the accuracy that they state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from toolkit.prereg.registration import Registration

SETTLED = timedelta(seconds=10)
"""Longer than the accuracy that time-stamping authorities state: within it, a launch counts as early."""


@dataclass(frozen=True)
class StudyRuns:
    """The runs of one study.

    Args:
        study: its name.
        runs: rows of its `runs` register.
        roles: roles of the runs that enter decisions.
        own_data: amendments that only add rules, on data of their own.
        is_anchored: whether the study says that these data were made with seeds that hold the amendment's
            tokens: then they cannot have been there before it, however early the runs were.
    """

    study: str
    runs: Sequence[Mapping[str, object]]
    roles: Sequence[str]
    own_data: frozenset[str] = frozenset()
    is_anchored: bool = False


@dataclass(frozen=True)
class Freeze:
    """When a registration was frozen, and its later entries recorded.

    Args:
        by: the latest moment that any authority's time can mean.
        is_proven: whether tokens say so; otherwise it is what the record says.
        entries: likewise for each amendment that tokens prove, by its id.
    """

    by: datetime
    is_proven: bool
    entries: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True)
class Chronology:
    """The order of the freeze and the runs of one study.

    Args:
        study: the study.
        verdict: `runs_after_freeze`; `run_before_freeze`, where one is not excepted or all are; or
            `incomplete`, where a launch time is missing.
        freeze: when the registration was frozen.
        runs_after: deciding runs launched after it.
        disclosed_exceptions: runs launched before it that the frozen document names.
        undisclosed: runs launched before it that it does not name.
        unknown: runs without a launch time, or with one that has not come yet.
        late_amendments: amendments made after the first of `runs_after` was launched: proven ones by their
            time, others by the day that they name.
        anchored_amendments: amendments made after it, too, on data of their own whose seeds hold the
            amendment's tokens.
        unplaced_amendments: amendments on data of their own, of which a token is missing.
    """

    study: str
    verdict: str
    freeze: Freeze
    runs_after: tuple[str, ...]
    disclosed_exceptions: tuple[str, ...]
    undisclosed: tuple[str, ...]
    unknown: tuple[str, ...]
    late_amendments: tuple[str, ...]
    anchored_amendments: tuple[str, ...] = ()
    unplaced_amendments: tuple[str, ...] = ()


def chronology(
    registration: Registration, study: StudyRuns, freeze: Freeze, now: datetime | None = None
) -> Chronology:
    """Compare the freeze with the launch of every run that enters a decision.

    Args:
        registration: names the exceptions and the amendments.
        study: the runs.
        freeze: when it was frozen.
        now: a launch after this moment counts as unknown; the present if left out.
    """
    now = now or datetime.now(UTC)
    disclosed = {exception.run for exception in registration.exceptions}
    after: dict[str, datetime] = {}
    excepted: list[str] = []
    undisclosed: list[str] = []
    unknown: list[str] = []
    for run in study.runs:
        if run["role"] not in study.roles:
            continue
        name, launched = str(run["run_id"]), run["launched_at"]
        if not isinstance(launched, datetime) or launched > now:
            unknown.append(name)
        elif launched > freeze.by:
            after[name] = launched
        elif name in disclosed:
            excepted.append(name)
        else:
            undisclosed.append(name)
    incomplete = bool(unknown) or not (after or excepted)
    # A document that excepts every run there is was frozen after all of them.
    is_late = bool(undisclosed) or not (after or incomplete)
    after_runs = _late(registration, freeze, min(after.values(), default=None))
    own = [name for name in after_runs if name in study.own_data]
    anchored = tuple(name for name in own if study.is_anchored and name in freeze.entries)
    unplaced = tuple(name for name in own if name not in freeze.entries)
    return Chronology(
        study=study.study,
        verdict="run_before_freeze" if is_late else "incomplete" if incomplete else "runs_after_freeze",
        freeze=freeze,
        runs_after=tuple(after),
        disclosed_exceptions=tuple(excepted),
        undisclosed=tuple(undisclosed),
        unknown=tuple(unknown),
        late_amendments=tuple(name for name in after_runs if name not in {*anchored, *unplaced}),
        anchored_amendments=anchored,
        unplaced_amendments=unplaced,
    )


def _late(registration: Registration, freeze: Freeze, first: datetime | None) -> tuple[str, ...]:
    if first is None:
        return ()
    proven = freeze.entries
    return tuple(
        amendment.id
        for amendment in registration.amendments
        if (proven[amendment.id] >= first if amendment.id in proven else amendment.dated > first.date())
    )


def seconds_to_settle(registration: Registration, now: datetime) -> float:
    """Return how long a launch has to wait until the freeze is over by every authority's clock.

    Zero also where the record lies in the future: whose clock is wrong, waiting does not show.
    """
    last = max(authority.recorded_time for authority in registration.record.authorities)
    left = (last + SETTLED - now).total_seconds()
    return left if 0 < left <= SETTLED.total_seconds() else 0.0
