"""An endpoint by seed: its value, the runs behind it, how many episodes each has, and where to see them."""

from dataclasses import dataclass
from fractions import Fraction
from urllib.parse import urlencode

from toolkit.decisions.case import Case
from toolkit.decisions.endpoints import Endpoint
from toolkit.decisions.subgroup import rows_of
from toolkit.decisions.values import Missing, Series
from toolkit.website.page import counts_of, run_page
from toolkit.website.registers import carried, rows_by_run

EVALUATIONS = "evaluations"
# What an endpoint says of its evaluation set and what the list of a run's episodes can be filtered by.
FILTERS = ("phase", "pool", "regime", "step")
# Where a run's page counts its episodes.
COUNTS = "counts"


@dataclass(frozen=True)
class ArmOfSeed:
    """One arm of a seed.

    Args:
        arm: the arm.
        run: its deciding run; empty where there is none.
        missing: why there is none; empty where there is one.
        episodes: how many episodes of the run the endpoint reads; None where it reads none.
        target: name of the run's page with the filters that show them, or, where the page lists no episodes,
            with the place of their counts; from the root of the site; empty where there is no run.
    """

    arm: str
    run: str
    missing: str
    episodes: int | None
    target: str


@dataclass(frozen=True)
class SeedRow:
    """One seed of an endpoint: its value, None where it has none, and its arms."""

    seed: int
    value: Fraction | None
    arms: tuple[ArmOfSeed, ...]


def seed_rows(case: Case, endpoint: Endpoint) -> tuple[SeedRow, ...]:
    """Return an endpoint by seed.

    Args:
        case: the study and what decides it.
        endpoint: an endpoint of its rule book.

    Returns:
        A row for every seed that was registered, in order; nothing for an endpoint that is not by seed.
    """
    if endpoint.by != "seed":
        return ()
    value = case.engine.value(endpoint.id)
    values = dict(value.items) if isinstance(value, Series) else {}
    runs = case.book.plan.deciding_runs(endpoint, case.study.rows("runs"))
    rows = []
    for seed in endpoint.seeds:
        arms = tuple(_arm(case, endpoint, arm, runs[arm, seed]) for arm in endpoint.arms)
        member = values.get(str(seed))
        rows.append(SeedRow(seed, None if member is None or isinstance(member, Missing) else member, arms))
    return tuple(rows)


def _arm(case: Case, endpoint: Endpoint, arm: str, run: str | Missing) -> ArmOfSeed:
    if isinstance(run, Missing):
        return ArmOfSeed(arm, "", "; ".join(run.reasons), None, "")
    page = run_page(case.study.name, run)
    fragment = fragment_of(endpoint) if _lists_episodes(case) else counts_fragment(endpoint)
    return ArmOfSeed(arm, run, "", _episodes(case, endpoint, run), f"{page}#{fragment}" if fragment else page)


def fragment_of(endpoint: Endpoint) -> str:
    """Return the part of an address that filters a run's episodes to those that an endpoint reads."""
    if endpoint.register != EVALUATIONS:
        return ""
    filters = {name: endpoint.where[name] for name in FILTERS if name in endpoint.where}
    if len(endpoint.steps) == 1:
        filters["step"] = str(endpoint.steps[0])
    return urlencode(filters)


def counts_fragment(endpoint: Endpoint) -> str:
    """Return the part of an address that leads to a run's counts on the set that an endpoint reads."""
    if endpoint.register != EVALUATIONS:
        return ""
    names = [endpoint.where.get(name, "") for name in FILTERS[:3]]
    return counts_of(*names) if all(names) else COUNTS


def _lists_episodes(case: Case) -> bool:
    return case.study.has("episodes") and carried(case.study, "episodes")


def _episodes(case: Case, endpoint: Endpoint, run: str) -> int | None:
    if endpoint.register != EVALUATIONS or not case.study.has(EVALUATIONS):
        return None
    rows = rows_by_run(case.study, EVALUATIONS).get(run, [])
    if endpoint.attributes:
        made = rows_of(endpoint, case.study)
        rows = [] if isinstance(made, Missing) else [row for row in made if row["run_id"] == run]
    counted = [
        row["episodes"]
        for row in rows
        if row["step"] in endpoint.steps
        and all(row.get(name) == value for name, value in endpoint.where.items())
    ]
    return sum(counted) if counted else None
