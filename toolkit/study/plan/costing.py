"""The costs of a registered study, from a list of what was measured and the registers that hold it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError
from toolkit.files import read_text
from toolkit.registers.query import ask
from toolkit.study.play.counting import count_run, runs_of
from toolkit.study.play.matrix import Selection
from toolkit.training.costs import Accelerator, Costs, Measured, MeasuredRun, Policy
from toolkit.training.memory import GIGA, gpus_needed
from toolkit.training.models import find_model
from toolkit.training.plan import (
    HOUR,
    Range,
    makespan,
    measured_rate,
    most_operations,
    most_tokens,
    rate_of_tokens,
    rescaled,
    run_hours,
    schedule,
)
from toolkit.training.recipe import load_recipe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from toolkit.prereg.registration import Registration
    from toolkit.registers.study import Study
    from toolkit.training.models import Model
    from toolkit.training.plan import Rate, RunCounts
    from toolkit.training.recipe import Recipe

FILE = "costs.toml"
TERA = 10**12


@dataclass(frozen=True)
class CostList:
    """What a project says of its costs: whose matrix, with which recipe, and what was measured.

    Args:
        registration: whose matrix is counted.
        tier: the tier of it.
        recipe: name of the recipe.
        larger: name of the larger model that is compared.
        numbers: of GPUs, and of processors.
        rate: id of the measurement that gives the rate.
        processors: id of the measurement on processors.
        tokens_per_second: assumptions.
        accelerator: the GPU of the rate.
        measured: entries of what was measured, as in the file.
    """

    registration: str
    tier: int
    recipe: str
    larger: str
    numbers: tuple[int, ...]
    rate: str
    processors: str
    tokens_per_second: tuple[int, ...]
    accelerator: Accelerator
    measured: tuple[Mapping[str, str], ...]


def read_cost_list(cards: Path) -> CostList | None:
    """Read what a project says of its costs; None where it says nothing.

    Raises:
        DamagedError: malformed.
    """
    path = cards / FILE
    if not path.is_file():
        return None
    try:
        listed = _cost_list(tomllib.loads(read_text(path)))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise DamagedError(
            "the list of costs cannot be read",
            expected="registration, tier, recipe, larger, numbers, rate, processors, tokens_per_second; "
            "[accelerator]; [[measured]] with id, title, study, hardware, date, query",
            found=str(error),
            where=path,
        ) from None
    ids = [entry["id"] for entry in listed.measured]
    for name in (listed.rate, listed.processors):
        if ids.count(name) != 1:
            raise DamagedError(
                "the list of costs names no single measurement",
                expected="one of " + ", ".join(ids),
                found=name,
                where=path,
            )
    return listed


def count_costs(listed: CostList, registration: Registration, studies: Mapping[str, Study]) -> Costs:
    """Return the costs of the registered study.

    Args:
        listed: what the project says of them.
        registration: the one that it names.
        studies: the studies that are here, by name.
    """
    recipe = load_recipe(listed.recipe)
    runs = tuple(map(count_run, runs_of(registration, Selection(tiers=(listed.tier,)))))
    measured = tuple(_measured(entry, studies) for entry in listed.measured)
    by_id = {entry.id: entry for entry in measured}
    rate = rate_from(by_id[listed.rate])
    own, larger = find_model(recipe.model, recipe.revision), find_model(listed.larger)
    return Costs(
        registration=listed.registration,
        tier=listed.tier,
        recipe=recipe.name,
        runs=runs,
        accelerator=listed.accelerator,
        measured=measured,
        policies=(
            _policy(own, recipe, rate, runs, listed),
            _policy(larger, recipe, _rescaled(rate, own, larger, recipe, listed), runs, listed),
        ),
        processors=_processors(by_id[listed.processors], runs, listed.numbers),
        tokens=most_tokens(runs, recipe),
        operations=most_operations(runs, recipe, own.architecture),
        at_most=tuple(
            (number, max(run_hours(run, rate_of_tokens(recipe, number)).high for run in runs))
            for number in listed.tokens_per_second
        ),
    )


def measured_runs(listed: CostList, name: str, studies: Mapping[str, Study]) -> Measured:
    """Return what was measured under a name."""
    return _measured(next(entry for entry in listed.measured if entry["id"] == name), studies)


def rate_from(measured: Measured) -> Rate | None:
    """Return the rate of measured runs; None where there is none."""
    if not measured.runs:
        return None
    pairs = [(run.seconds, run.episodes) for run in measured.runs]
    return measured_rate(pairs, f"{len(pairs)} measured runs, {measured.hardware}")


def _measured(entry: Mapping[str, str], studies: Mapping[str, Study]) -> Measured:
    texts = {name: entry[name].strip() for name in ("id", "title", "study", "hardware", "date", "query")}
    study = studies.get(entry["study"])
    rows = ask(study, texts["query"]).rows if study is not None else ()
    return Measured(**texts, runs=tuple(_measured_run(row, texts["id"]) for row in rows))


def _measured_run(row: tuple[Any, ...], name: str) -> MeasuredRun:
    try:
        run, seconds, episodes = row
        measured = MeasuredRun(str(run), float(seconds), int(episodes))
    except (TypeError, ValueError):
        measured = None
    if measured is None or measured.seconds <= 0 or measured.episodes <= 0:
        raise DamagedError(
            "a measurement's query gives something else than measured runs",
            expected="the name of a run, its seconds and its episodes, both above zero",
            found=row,
            where=f"{FILE}, measured {name}",
        )
    return measured


def _rescaled(rate: Rate | None, own: Model, other: Model, recipe: Recipe, listed: CostList) -> Rate | None:
    if rate is None:
        return None
    gpus = gpus_needed(recipe, other.architecture, listed.accelerator.memory)
    return rescaled(rate, own.architecture, other.architecture, gpus)


def _policy(
    model: Model, recipe: Recipe, rate: Rate | None, runs: Sequence[RunCounts], listed: CostList
) -> Policy:
    gpus = gpus_needed(recipe, model.architecture, listed.accelerator.memory)
    return Policy(
        name=model.name,
        parameters=model.architecture.parameters,
        operations=model.architecture.forward_operations(),
        source=model.source,
        gpus=gpus,
        rate=rate,
        run=None if rate is None else run_range(runs, rate),
        schedules=() if rate is None else tuple(schedule(runs, rate, number) for number in listed.numbers),
    )


def run_range(runs: Iterable[RunCounts], rate: Rate) -> Range:
    """Return how long one run takes, over the shortest and the longest of some, in hours."""
    hours = [run_hours(run, rate) for run in runs]
    lows, means = [h.low for h in hours], [h.mean for h in hours]
    return Range(
        None if None in lows else min(low for low in lows if low is not None),
        None if None in means else sum(mean for mean in means if mean is not None) / len(means),
        max(h.high for h in hours),
    )


def _processors(
    measured: Measured, runs: Iterable[RunCounts], numbers: Iterable[int]
) -> tuple[tuple[int, float], ...]:
    """Return the hours that the runs take on processors, where each of them was measured."""
    seconds = {run.run_id: run.seconds for run in measured.runs}
    names = [run.run_id for run in runs]
    if not set(names) <= set(seconds):
        return ()
    return tuple((n, makespan([seconds[name] for name in names], n) / HOUR) for n in numbers)


def _cost_list(document: Mapping[str, Any]) -> CostList:
    gpu = document["accelerator"]
    return CostList(
        registration=str(document["registration"]),
        tier=int(document["tier"]),
        recipe=str(document["recipe"]),
        larger=str(document["larger"]),
        numbers=tuple(map(int, document["numbers"])),
        rate=str(document["rate"]),
        processors=str(document["processors"]),
        tokens_per_second=tuple(map(int, document["tokens_per_second"])),
        accelerator=Accelerator(
            str(gpu["name"]),
            round(gpu["memory_gb"] * GIGA),
            gpu["peak_tflops"] * TERA,
            str(gpu["source"]).strip(),
        ),
        measured=tuple(
            {name: str(entry[name]) for name in ("id", "title", "study", "hardware", "date", "query")}
            for entry in document["measured"]
        ),
    )
