"""What the core asks of the laboratory (entry point `lab`) and of the site, without importing them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Protocol, cast

from toolkit.structs import Document, about

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    import altair as alt

    from toolkit.decisions.case import Case
    from toolkit.decisions.measure import Registers
    from toolkit.errors import ToolkitError
    from toolkit.places import Home
    from toolkit.prereg.adoption import Folder
    from toolkit.prereg.registration import Registration
    from toolkit.prereg.verification import Verification
    from toolkit.registers.arrow import Row
    from toolkit.registers.episode_counts import CountedRun
    from toolkit.registers.study import Study
    from toolkit.rules.rulebook import RuleBook
    from toolkit.specification import Specification

GROUP, NAME = "toolkit.evidence", "lab"
LABORATORY = "toolkit.lab.evidence:Laboratory"
"""Where the laboratory is in a source tree that was never installed."""
SITE = "toolkit.site.room"


@dataclass(frozen=True)
class ExpectedRun:
    """What a run of a matrix will leave, as far as its registration says it."""

    role: str
    steps: int
    # Of each its phase, pool and regime, its step, the positions of its tasks, and its schedules
    evaluations: tuple[tuple[Row, int, Sequence[int], int], ...]
    groups: int | None  # training groups in the registers; None where they keep none
    diagnosed: tuple[Row, tuple[int, ...]]  # pool and regime of the luck-share tables, and their steps
    probed: tuple[int, ...]  # steps of its checkpoints that the registered probe may score


@dataclass(frozen=True)
class Audited:
    """What an audit played again, and derived again."""

    rows: int  # rows there are to draw from
    sampled: dict[str, int]  # table → rows that were drawn and played again
    runs: tuple[str, ...]
    derived: dict[str, int]  # table → rows that were drawn and derived again


class Regenerated(Document, frozen=True):
    """What came of generating a study's tasks anew with the words of a checkout."""

    tasks: Annotated[int, about("How many were generated.")]
    differences: Annotated[tuple[str, ...], about("In words: of each file the first.")]
    not_compared: Annotated[tuple[str, ...], about("What the checkout does not have.")]


@dataclass(frozen=True)
class Built:
    """What a build of the site wrote: all files, and those whose bytes changed."""

    folder: Path
    files: tuple[str, ...]
    changed: tuple[str, ...]


class RegisteredRuns(Protocol):
    """The runs of a matrix as its registration specifies them."""

    def place(self, run: str) -> Row:
        """Return what a run's row says of its place in the matrix; nothing of one that is not registered."""

    def specification(self, run: str, stored: str | None) -> Specification | None:
        """Return a run's specification; what the registration leaves open is as it is stored."""

    def policy(self, specification: Specification) -> str:
        """Return what a run trains, in a word."""

    def row(
        self,
        study: Study,
        specification: Specification,
        counted: CountedRun | None,
        tables: Mapping[str, Any],
        *,
        is_mixed: bool,
    ) -> Row:
        """Return a run's row of `runs` as its specification and its rows give it."""

    def check(
        self, study: Study, specified: Mapping[str, Specification], progress: Callable[[str], None]
    ) -> None:
        """Check a study's launches, tasks, checkpoints, groups and probe against its registered runs."""


class Laboratory(Protocol):
    """Who specifies the runs of a matrix, and derives and replays their rows."""

    def runs(self, registration: Registration, book: RuleBook) -> RegisteredRuns:
        """Return the registered runs."""

    def expected(self, book: RuleBook) -> Mapping[str, ExpectedRun]:
        """Return what the runs of a matrix will leave, by name; a matrix that cannot be played is refused."""

    def check_probe(
        self, study: Study, registration: Registration, book: RuleBook, table: str, names: Collection[str]
    ) -> None:
        """Check a table of the probe, as far as it follows from the evidence, at checkpoints by name."""

    def has_registered_probe(self, study: Study, registration: Registration, book: RuleBook) -> bool:
        """Whether the registered probe measured all that a study holds of one."""

    def is_playable(self, study: Study) -> bool:
        """Whether rows of a study can be played again."""

    def check_playable(self, study: Study) -> None:
        """Check that a study holds rows that can be played again."""

    def lack(self, study: Study) -> ToolkitError | None:
        """Return why rows of such a study cannot be played again here, or nothing."""

    def audit(
        self,
        study: Study,
        registration: Registration,
        sample: int,
        seed: int,
        progress: Callable[[int, str], None],
        *,
        registers: Registers | None = None,
    ) -> Audited:
        """Play random rows of a study again; derive as many that follow, where its registers are given."""

    def hold_against_draws(self, study: Study, progress: Callable[[str], None]) -> str:
        """Hold the published figures against what the published seeds draw, and say what came of it."""

    def play_published(self, study: Study, sample: int, seed: int, progress: Callable[[str], None]) -> str:
        """Generate the published tasks, play random figures of the published agents, and say so."""

    @property
    def not_public(self) -> str:
        """What of the published study cannot be played by anybody else."""

    def played_of_runs(self, study: Study) -> dict[str, Sequence[Mapping[str, object]] | str]:
        """Return a few episodes of every run, played again; or, in words, why there are none."""

    @property
    def played_how(self) -> str:
        """How these are chosen."""

    def regenerate(
        self, checkout: Folder, pools: Mapping[str, str], progress: Callable[[str], None]
    ) -> tuple[Regenerated, dict[str, bytes]]:
        """Generate the published tasks with a checkout's words; what holds these is returned too, by name."""

    def probe_figures(self, study: Study) -> list[Any]:
        """Return how certain a study's probe figures are."""


class Site(Protocol):
    """Who draws."""

    def plot(self, case: Case, rule: str) -> alt.LayerChart | None:
        """Return a rule's estimate as an Altair chart; nothing where there is none to draw."""

    def rehearsal_page(self, done: Any, **said: object) -> str:
        """Return the page of a rehearsal."""

    def lack(self, target: Path) -> ToolkitError | None:
        """Return which package is missing, or nothing; a folder that is no site is refused."""

    def build(
        self,
        home: Home,
        target: Path,
        verifications: Sequence[Verification],
        cases: Sequence[Case],
        progress: Callable[[str], None],
    ) -> Built:
        """Write the site of a home."""


def is_played_here(book: RuleBook) -> bool:
    """Whether a matrix says all that playing its runs takes."""
    return any(cell.regime for cell in book.plan.cells)


@cache
def laboratory() -> Laboratory:
    """Return the laboratory, loaded."""
    from importlib.metadata import entry_points

    declared = [each.value for each in entry_points(group=GROUP, name=NAME)]
    module, _, name = (declared or [LABORATORY])[0].partition(":")
    return cast("Laboratory", getattr(import_module(module), name)())


def site() -> Site:
    """Return the site, loaded."""
    return cast("Site", import_module(SITE))
