"""What the site is made of: all of it comes in here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.decisions.case import Case
from toolkit.episodes.episode import Episode
from toolkit.findings import Finding
from toolkit.prereg.registration import Registration
from toolkit.prereg.verification import Verification
from toolkit.registers.row_types import ProbeIntervalRow
from toolkit.registers.study import Study
from toolkit.website.front import Front
from toolkit.website.frozen import Version
from toolkit.website.paper import Paper


@dataclass(frozen=True)
class Recorded:
    """An episode of a register, played again call by call; it came out as recorded.

    Args:
        study: name of the study.
        run: the run's row of `runs`.
        row: its row of `episodes`.
        episode: the episode with every call kept.
    """

    study: str
    run: Mapping[str, object]
    row: Mapping[str, object]
    episode: Episode


@dataclass(frozen=True)
class Material:
    """Everything that a site is made of.

    Args:
        cases: the studies with runs, decided by their registrations.
        studies: every study, those that hold tasks alone included.
        verifications: what can be said of the registrations.
        recorded: episodes to step through, those of both designs under one schedule side by side.
        front: the head of the front page.
        findings: what the studies found, in sentences.
        probe_figures: study → how certain its probe's figures are, in the rows of `probe_intervals`; computed
            where single tasks' figures allow it and the study holds none.
        paper: the tables and figures of the paper that the studies come from.
        versions: frozen versions that lie beside the current site.
        registrations: every frozen registration, those without a study included.
        recorded_how: by which rule the recorded episodes were chosen, in words.
        played: study → run → documents of a few of its episodes, played again; or why there are none.
        played_how: by which rule these were chosen, in words.
        wait: waits until the studies are checked whole, which goes on beside; raises what was found.
    """

    cases: tuple[Case, ...]
    studies: tuple[Study, ...] = ()
    verifications: tuple[Verification, ...] = ()
    recorded: tuple[Recorded, ...] = ()
    front: Front | None = None
    findings: tuple[Finding, ...] = ()
    probe_figures: Mapping[str, Sequence[ProbeIntervalRow]] = field(default_factory=dict)
    paper: Paper | None = None
    versions: tuple[Version, ...] = ()
    registrations: tuple[Registration, ...] = ()
    recorded_how: str = ""
    played: Mapping[str, Mapping[str, Sequence[Mapping[str, object]] | str]] = field(default_factory=dict)
    played_how: str = ""
    wait: Callable[[], object] = lambda: None

    def verifications_of(self, case: Case) -> Sequence[Verification]:
        """Return what can be said of a study's registration."""
        return [v for v in self.verifications if v.registration == case.registration.name]
