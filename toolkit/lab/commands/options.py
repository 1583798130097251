"""Options of commands that play runs: which runs, where, and who does the work."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from toolkit.cli.options import FOLDER, offer, offer_rules, offer_runs, option, together
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from toolkit.lab.executors.executor import Executor
    from toolkit.lab.play.matrix import Selection

MOST_PROCESSES = 4096


def _workers(here: int | None, *, executor: str, processes: int | None, address: str | None) -> Executor:
    """Return who is to do the work; `here`: how many processes of this machine where nothing is said."""
    from toolkit.lab.executors.executor import RAY, Executor

    if address is not None and executor != RAY:
        raise UsageError(
            "--address is a Ray cluster's", remedy="add --executor ray, or leave the address out"
        )
    return Executor(executor, processes or (None if executor == RAY else here), address)


def _executor_option(here: int | None, default: str) -> Any:
    return together(
        partial(_workers, here),
        executor=option(
            type=click.Choice(["local", "ray"]),
            default="local",
            help="Where the work runs: in local processes or on Ray; the results are the same.",
        ),
        processes=option(
            type=click.IntRange(1, MOST_PROCESSES), help=f"Number of workers; default: {default}."
        ),
        address=option(
            metavar="HOST:PORT",
            help="Address of the Ray cluster, or `auto`; default: start Ray on this machine.",
        ),
    )


executor_option = _executor_option(None, "one per processor")
"""Of a command that uses all processors."""

placed_option = _executor_option(1, "one, or with Ray one per processor")
"""Of a command that works alone unless it is asked not to: each process opens a model."""


def _selection(tiers: tuple[int, ...], rules: tuple[str, ...], runs: tuple[str, ...]) -> Selection:
    from toolkit.lab.play.matrix import Selection

    return Selection(tiers, rules, runs)


selection_option = together(
    _selection,
    tiers=option("--tier", type=int, multiple=True, help="Only runs of this tier; may be repeated."),
    rules=option(
        "--rule",
        multiple=True,
        shell_complete=offer_rules,
        help="Only runs that serve this rule; may be repeated.",
    ),
    runs=option(
        "--run",
        multiple=True,
        metavar="GLOB",
        shell_complete=offer_runs,
        help="Only runs of this name; may be repeated.",
    ),
)


folder_option = option(type=FOLDER, help="Folder of the runs; default: `runs/STUDY` of the project.")


def _regimes(_home: object, _ctx: object) -> Iterable[tuple[str, str]]:
    from toolkit.noise.regimes import REGIMES

    return ((regime.name, regime.about) for regime in REGIMES.values())


def _recipes(_home: object, _ctx: object) -> Iterable[tuple[str, str]]:
    from toolkit.lab.training.recipe import shipped

    return ((name, "") for name in shipped())


offer_regimes = offer(_regimes, paths=False)
offer_recipes = offer(_recipes, paths=True)
