"""A handful of recorded episodes of both designs under the same schedules, chosen by a rule and played again.

The rule, whose numbers the code repeats:

1. The pair: of the runs that can be played again here, those of the highest fault rate under which both
   designs trained with advantages scaled alike; of several, the first condition and seed in the register.
2. The episodes: those of the last step, of the periodic evaluation at training noise. Both runs met the same
   tasks under the same schedules.
3. Tasks and schedules are sorted by what came of them: both succeeded, only paired, only independent,
   neither. Of each sort, the two on which most faults landed, in both together; ties go to the first.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from toolkit.errors import DamagedError
from toolkit.lab.episodes.episode import Episode
from toolkit.lab.play.rows import keeps_checkpoints, table_of_run
from toolkit.lab.verification.replay import Replayer
from toolkit.noise import draws, regimes
from toolkit.registers import row_tables
from toolkit.registers.arrow import Row, to_rows
from toolkit.registers.study import Study, specification_document
from toolkit.specification import Specification

OF_EACH = 2
NEEDED = ("runs", "episodes", "checkpoints")
PHASE = "periodic"
CHOSEN = (
    "Chosen by a rule, not by hand: of the highest fault rate under which both designs trained, the first "
    "condition and seed; of these two runs, the episodes of the last step on the periodic evaluation at "
    "training noise; of each sort of outcome (both succeeded, only paired, only independent, neither), the "
    f"{OF_EACH} tasks and schedules on which most faults landed."
)


@dataclass(frozen=True)
class ReplayedEpisode:
    """A recorded episode, played again: it came out as its row says."""

    run: Row  # the run's row of `runs`
    row: Row  # its row of `episodes`
    episode: Episode  # the episode with every call kept


def choose_pairs(study: Study) -> tuple[ReplayedEpisode, ...]:
    """Recorded episodes in pairs, paired design first; nothing where the study cannot be played here."""
    runs = _pair(study)
    if runs is None:
        return ()
    replayers = [Replayer(study, run["run_id"]) for run in runs]
    tables = [_last_rows(replayer) for replayer in replayers]
    played = []
    for at in _most_exposed(*tables):
        for run, replayer, table in zip(runs, replayers, tables, strict=True):
            row = table[at]
            episode = replayer.played(row, traced=True)
            if isinstance(episode, Episode):  # as every playable run's is
                played.append(ReplayedEpisode(run, row, episode))
    return tuple(played)


def _pair(study: Study) -> tuple[Row, ...] | None:
    """Return the runs of both designs of the first condition and seed that has them."""  # 1
    if not all(study.has(table) for table in NEEDED):
        return None
    cells: dict[tuple[Any, ...], dict[str, Row]] = {}
    for run in study.rows("runs"):
        specification = playable(run)
        if specification is None or run["arm"] not in draws.DESIGNS:
            continue
        if regimes.REGIMES[specification.regime].mixture is None:
            continue
        cell = (run["condition"], specification.scale_rewards, specification.battery, run["seed"])
        cells.setdefault(cell, {})[run["arm"]] = run
    whole = [arms for arms in cells.values() if set(arms) == set(draws.DESIGNS)]
    if not whole:
        return None
    arms = max(whole, key=lambda arms: _fault_rate(arms[draws.DESIGNS[0]]))  # of several, the first
    return tuple(arms[design] for design in draws.DESIGNS)


def _fault_rate(run: Row) -> float:
    specification = playable(run)
    return regimes.REGIMES[specification.regime].fault_rate if specification else 0.0


def playable(run: Row) -> Specification | None:
    """Return the specification of a run that can be played here; None where other code made it."""
    try:
        document = json.loads(run.get("specification") or "")
        specification = Specification(**{**document, "diagnosed": tuple(document["diagnosed"])})
    except (ValueError, TypeError, KeyError):
        return None
    return (
        specification
        if specification.code == Specification.code
        and specification.regime in regimes.REGIMES
        and not specification.world
        else None
    )


def _last_rows(replayer: Replayer) -> dict[tuple[int, int], Row]:
    """Return the rows of the last step at training noise, by task and schedule."""  # 2
    specification = replayer.specification
    wanted = {"phase": PHASE, "regime": specification.at_noise, "step": specification.steps}
    rows = [
        row for row in replayer.rows("episodes") if all(row[name] == value for name, value in wanted.items())
    ]
    if not rows:
        raise DamagedError(
            f"{replayer.run_id} has no periodic episodes at training noise at its last step",
            expected=", ".join(f"{name} {value}" for name, value in wanted.items()),
            found="none",
            where="episodes",
        )
    return {(row["task"], row["schedule"]): row for row in rows}


def _most_exposed(
    paired: dict[tuple[int, int], Row], independent: dict[tuple[int, int], Row]
) -> Sequence[tuple[int, int]]:
    """Return the tasks and schedules chosen, by sort of outcome."""  # 3
    sorts: dict[tuple[bool, ...], list[tuple[int, int]]] = {
        sort: [] for sort in product((True, False), repeat=2)
    }
    for at in sorted(paired.keys() & independent.keys()):
        sorts[paired[at]["true_success"], independent[at]["true_success"]].append(at)

    def faults(at: tuple[int, int]) -> int:
        return sum(row_tables.faults_landed(rows[at]) for rows in (paired, independent))

    return [at for places in sorts.values() for at in sorted(places, key=faults, reverse=True)[:OF_EACH]]


SEEDS = 5
OF_ONE_RUN = (
    "of the run's last evaluation, at training noise, the first that succeeded, the first that failed and "
    "the first on which a fault landed"
)


def choose_of_runs(study: Study) -> dict[str, tuple[ReplayedEpisode, ...] | str]:
    """Return by run a few episodes, played again as `OF_ONE_RUN` says; or, in words, why there are none."""
    seeds: dict[tuple[str, str], set[int]] = {}
    for run in study.rows("runs"):
        seeds.setdefault((run["condition"], run["arm"]), set()).add(run["seed"])
    early = {cell: sorted(of_cell)[:SEEDS] for cell, of_cell in seeds.items()}
    chosen: dict[str, tuple[ReplayedEpisode, ...] | str] = {}
    for run in study.rows("runs"):
        is_early = run["seed"] in early[run["condition"], run["arm"]]
        chosen[run["run_id"]] = _why_none(study, run, is_early=is_early) or _of_run(study, run)
    return chosen


def _why_none(study: Study, run: Row, *, is_early: bool) -> str:
    specified = run.get("specification")
    if not study.has_rows("episodes", run["run_id"]):
        return "the registers hold no row of them"
    if not specified:
        return "the registers do not say what played them"
    if playable(run) is None:
        is_foreign = bool(specification_document(run).get("world"))
        return f"it takes the {'world' if is_foreign else 'model'} that they were played with"
    if not keeps_checkpoints(run) or not study.has_rows("checkpoints", run["run_id"]):
        return "the registers keep no checkpoint of this run, and to play one again is to train it again"
    return "" if is_early else f"those of the first {SEEDS} seeds of each condition and arm are"


def _of_run(study: Study, run: Row) -> tuple[ReplayedEpisode, ...]:
    replayer = Replayer(study, run["run_id"])
    table = table_of_run(study, "episodes", run["run_id"])
    phases, regimes, steps = (table[name].to_pylist() for name in ("phase", "regime", "step"))
    order = [(phase != PHASE, step) for phase, step in zip(phases, steps, strict=True)]
    last = max(set(order))
    at = [n for n, when in enumerate(order) if when == last]
    at = [n for n in at if regimes[n] == replayer.specification.at_noise] or at
    rows: list[Any] = to_rows(table.take(at))
    wanted = (
        next((row for row in rows if row["true_success"]), None),
        next((row for row in rows if not row["true_success"]), None),
        next((row for row in rows if row_tables.faults_landed(row)), None),
    )
    different = {(row["task"], row["schedule"]): row for row in wanted if row}.values()
    played = ((row, replayer.played(row, traced=True)) for row in different)
    return tuple(
        ReplayedEpisode(run, row, episode) for row, episode in played if isinstance(episode, Episode)
    )
