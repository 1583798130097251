"""A small study of registered runs, and what stands for the registration that specifies them."""

from collections.abc import Sequence
from pathlib import Path

from tests.described import SOURCE
from tests.unit.lab.study.fake_play import specification, wholly
from toolkit.errors import DamagedError
from toolkit.lab.evidence import RegisteredRuns
from toolkit.lab.play.assemble import assemble, seal
from toolkit.lab.play.runner import Play, play_runs
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.task_pools import summarize
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.study import Study, open_study
from toolkit.specification import Specification


class Specified(RegisteredRuns):
    """Specifications that runs have, as a registration gives them."""

    def __init__(self, runs: Sequence[Specification]) -> None:
        self._runs = {run.run_id: run for run in runs}

    def place(self, run: str) -> dict[str, str]:
        """Return what a run's row says of its place."""
        return {"run_id": run, "arm": self._runs[run].arm} if run in self._runs else {}

    def specification(self, run: str, _: str | None) -> Specification:
        """Return a run's."""
        if run not in self._runs:
            raise DamagedError(f"{run} is no run of the registered matrix", where="runs")
        return self._runs[run]


def small_runs() -> tuple[Specification, ...]:
    """Return a paired run and an independent one."""
    pools = {"diagnostic": summarize("diagnostic").sha256}
    arms = ("paired", "independent")
    return tuple(specification(f"c2-{arm}-s0", arm=arm, pools=pools) for arm in arms)


def small_study(folder: Path, runs: Sequence[Specification], play: Play = wholly) -> Study:
    """Play runs, quickly unless it is said otherwise, and write their study."""
    workplace = Workplace(folder / "runs")
    with workplace.held(runs):
        play_runs(workplace, runs, play=play)
    assembled = assemble(workplace, tuple(runs), lambda _: None)
    seal(folder / "small", "small", RegistrationRef("small", "f" * 64, {}), assembled, SOURCE)
    return open_study(folder / "small")
