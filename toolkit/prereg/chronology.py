"""Did the freeze come before the runs? Launch times against the freeze, exceptions by name.

A launch time is the word of the machine that ran; the freeze's is the word of the authorities, and counts
with the accuracy that they state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from toolkit.prereg.record import Amendment
from toolkit.prereg.registration import Registration

if TYPE_CHECKING:
    from toolkit.documents.verification import Order

SETTLED = timedelta(seconds=10)
"""Longer than the accuracy that time-stamping authorities state: within it, a launch counts as early."""


@dataclass(frozen=True)
class StudyRuns:
    """The runs of one study."""

    study: str  # its name
    runs: Sequence[Mapping[str, object]]  # rows of its `runs` register
    roles: Sequence[str]  # roles of the runs that enter decisions
    own_data: frozenset[str] = frozenset()  # amendments that only add rules, on data of their own
    # Whether the study says that these data were made with seeds that hold the amendment's tokens: then
    # they cannot have been there before it, however early the runs were
    is_anchored: bool = False


@dataclass(frozen=True)
class Freeze:
    """When a registration was frozen, and its later entries recorded."""

    by: datetime  # the latest moment that any authority's time can mean
    has_tokens: bool  # whether verified tokens say so; otherwise it is what the author's record says
    # Likewise for each amendment whose tokens are verified, by its id
    entries: Mapping[str, datetime] = field(default_factory=dict)
    is_demonstration: bool = False  # whether these tokens are of authorities made for the occasion
    # Amendments of a restatement that have no token, and for whose days somebody stands
    vouched: frozenset[str] = frozenset()

    @property
    def source(self) -> str:
        """Whose word the time is."""
        if not self.has_tokens:
            return "by the author's record, no token shows it"
        return "by a demonstration's tokens" if self.is_demonstration else "proven by the tokens"


@dataclass(frozen=True)
class Chronology:
    """The order of the freeze and the runs of one study."""

    study: str  # the study
    # `runs_after_freeze`; `run_before_freeze`, where one is not excepted or all are; or `incomplete`,
    # where a launch time is missing
    verdict: Order
    freeze: Freeze  # when the registration was frozen
    runs_after: tuple[str, ...]  # deciding runs launched after it
    disclosed_exceptions: tuple[str, ...]  # runs launched before it that the frozen document names
    undisclosed: tuple[str, ...]  # runs launched before it that it does not name
    unknown: tuple[str, ...]  # runs without a launch time, or with one that has not come yet
    # Amendments made after the first of `runs_after` was launched that do not say so: by the time of
    # their tokens or, where the registration has none, by the day that they name
    late_amendments: tuple[str, ...]
    # Amendments made after it, too, on data of their own whose seeds hold the amendment's tokens
    anchored_amendments: tuple[str, ...] = ()
    # Amendments of which a token is missing, or that cannot be ordered because the launch of a run is not
    # known
    unplaced_amendments: tuple[str, ...] = ()
    # Amendments that say of themselves that they were made after runs
    declared_amendments: tuple[str, ...] = ()

    @property
    def unbinding(self) -> frozenset[str]:
        """The amendments that nothing shows to have been made before the runs: they bind nothing."""
        return frozenset((*self.late_amendments, *self.unplaced_amendments, *self.declared_amendments))


def chronology(
    registration: Registration, study: StudyRuns, freeze: Freeze, now: datetime | None = None
) -> Chronology:
    """Compare the freeze with the launch of every run that enters a decision."""
    now = now or datetime.now(UTC)
    disclosed = {exception.run for exception in registration.exceptions}
    after: dict[str, datetime] = {}
    before: list[datetime] = []
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
        else:
            before.append(launched)
            (excepted if name in disclosed else undisclosed).append(name)
    incomplete = bool(unknown) or not (after or excepted)
    # A document that excepts every run there is was frozen after all of them.
    is_late = bool(undisclosed) or not (after or incomplete)
    first = min(after.values() or before, default=None)
    by_place = _places(registration, study, freeze, first, is_known=not unknown)
    return Chronology(
        study=study.study,
        verdict="run_before_freeze" if is_late else "incomplete" if incomplete else "runs_after_freeze",
        freeze=freeze,
        runs_after=tuple(after),
        disclosed_exceptions=tuple(excepted),
        undisclosed=tuple(undisclosed),
        unknown=tuple(unknown),
        late_amendments=by_place[_LATE],
        anchored_amendments=by_place[_ANCHORED],
        unplaced_amendments=by_place[_UNPLACED],
        declared_amendments=by_place[_DECLARED],
    )


_EARLY, _LATE, _ANCHORED, _UNPLACED, _DECLARED = "early", "late", "anchored", "unplaced", "declared"


def _places(
    registration: Registration, study: StudyRuns, freeze: Freeze, first: datetime | None, *, is_known: bool
) -> dict[str, tuple[str, ...]]:
    """Return the amendments by where they lie to the first launch; there may be none, or one not known."""
    launch = first if is_known else None
    places = {
        amendment.id: _EARLY
        if first is None and is_known and not amendment.after_runs
        else _place(amendment, study, freeze, launch)
        for amendment in registration.amendments
    }
    return {
        place: tuple(name for name, at in places.items() if at == place)
        for place in (_LATE, _ANCHORED, _UNPLACED, _DECLARED)
    }


def _place(amendment: Amendment, study: StudyRuns, freeze: Freeze, first: datetime | None) -> str:
    """Return where an amendment lies to the first launch; None where that is not known."""
    at, is_own = freeze.entries.get(amendment.id), amendment.id in study.own_data
    if amendment.after_runs:
        return _DECLARED
    if at is not None and is_own and study.is_anchored:
        return _EARLY if first is not None and at < first else _ANCHORED
    if first is None:
        return _UNPLACED
    if at is not None:
        return _LATE if at >= first else _EARLY
    if amendment.dated > first.date() and not is_own:
        return _LATE
    # An early day that the author names shows nothing where a token could, or where nobody stands for it.
    return _EARLY if amendment.id in freeze.vouched else _UNPLACED


def seconds_to_settle(registration: Registration, now: datetime) -> float:
    """Return how long a launch has to wait until the freeze is over by every authority's clock.

    Zero also where the record lies in the future: whose clock is wrong, waiting does not show.
    """
    last = max(authority.recorded_time for authority in registration.record.authorities)
    left = (last + SETTLED - now).total_seconds()
    return left if 0 < left <= SETTLED.total_seconds() else 0.0
