"""`toolkit costs`: what the registered study costs, from what was measured of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from toolkit.cli.load import load_study
from toolkit.cli.output import console, headline, json_option, print_json, say_line
from toolkit.cli.power import Finite
from toolkit.cli.progress import steps
from toolkit.cli.training_plan import NOT_EVALUABLE, range_document, said_range
from toolkit.errors import IncompleteError
from toolkit.places import find_home

if TYPE_CHECKING:
    from toolkit.places import Home
    from toolkit.training.costs import Costs, Policy
    from toolkit.training.plan import Schedule

GIGA = 10**9
MOST_GPUS = 100_000
ABOVE_ZERO = Finite(0, 1e6, min_open=True)


@click.command()
@click.option("--gpus", type=click.IntRange(1, MOST_GPUS), multiple=True, help="GPUs; may be repeated.")
@click.option("--price", type=ABOVE_ZERO, help="What a GPU costs an hour; without it, hours alone are said.")
@json_option
def costs(*, gpus: tuple[int, ...], price: float | None, as_json: bool) -> None:
    """Say what the registered study costs on some numbers of GPUs, and with a policy of 70B parameters.

    Durations are those of runs in registers; a price is yours to give. A run is not divided among GPUs unless
    its memory has to be: nothing was measured of that.

    \b
    Examples:
      toolkit costs
      toolkit costs --gpus 4 --gpus 16
      toolkit costs --price 2.50 --json
    """
    with steps("costs"):
        found = home_costs(find_home(), gpus)
    document = costs_document(found, price)
    if as_json:
        print_json(document)
    else:
        _show(found, document, price)


def home_costs(home: Home, gpus: tuple[int, ...] = ()) -> Costs:
    """Return the costs of a home's registered study.

    Raises:
        IncompleteError: the home lists no costs.
    """
    from dataclasses import replace

    from toolkit.prereg.registration import load_registration
    from toolkit.study.plan.costing import FILE, count_costs, read_cost_list

    listed = read_cost_list(home.cards)
    if listed is None:
        raise IncompleteError(
            "nothing says what was measured", expected=FILE, where=home.cards, remedy="write such a list"
        )
    named = {entry["study"] for entry in listed.measured} & set(home.studies())
    listed = replace(listed, numbers=gpus or listed.numbers)
    registration = load_registration(home.registration_folder(listed.registration))
    return count_costs(listed, registration, {name: load_study(name, home) for name in named})


def costs_document(found: Costs, price: float | None) -> dict[str, Any]:
    """Return costs as JSON values.

    Args:
        found: the costs.
        price: of a GPU-hour; None where it is not known.
    """
    trained, evaluated = found.tokens
    return {
        "registration": found.registration,
        "tier": found.tier,
        "recipe": found.recipe,
        "runs": len(found.runs),
        "episodes": sum(run.episodes for run in found.runs),
        "accelerator": asdict(found.accelerator),
        "measured": [
            {
                **{name: getattr(m, name) for name in ("id", "title", "study", "hardware", "date", "query")},
                "runs": len(m.runs),
                "hours": round(m.seconds / 3600, 4) if m.runs else None,
            }
            for m in found.measured
        ],
        "policies": [_policy(policy, price) for policy in found.policies],
        "processors": [{"processors": n, "hours": round(hours, 6)} for n, hours in found.processors],
        "at_most": {
            "tokens_trained": trained,
            "tokens_evaluated": evaluated,
            "operations": found.operations,
            "share_of_peak": found.share_of_peak,
        },
        "assumed": [{"tokens_per_second": n, "hours_a_run_at_most": round(h, 4)} for n, h in found.at_most],
    }


def _policy(policy: Policy, price: float | None) -> dict[str, Any]:
    return {
        "model": policy.name,
        "parameters": policy.parameters,
        "sizes_from": policy.source,
        "gpus_a_run": policy.gpus,
        "verdict": NOT_EVALUABLE if policy.rate is None else "estimated",
        "from": policy.rate.source if policy.rate else None,
        "hours_a_run": range_document(policy.run),
        "schedules": [_schedule(schedule, price) for schedule in policy.schedules],
    }


def _schedule(schedule: Schedule, price: float | None) -> dict[str, Any]:
    busy = schedule.gpu_hours
    return {
        "gpus": schedule.gpus,
        "runs_at_once": schedule.slots,
        "hours": range_document(schedule.hours),
        "gpu_hours": range_document(schedule.gpu_hours),
        "gpu_hours_kept": range_document(schedule.kept_hours),
        "cost": None if busy is None or price is None else range_document(busy.times(price)),
    }


def _show(found: Costs, document: dict[str, Any], price: float | None) -> None:
    from rich.table import Table

    about = f"   {len(found.runs)} runs of tier {found.tier}, {document['episodes']:,} episodes"
    console().print(headline(found.registration, about))
    table = Table()
    table.add_column("measured", max_width=46)
    for heading in ("study", "runs", "hours"):
        table.add_column(heading, justify="left" if heading == "study" else "right")
    for m in document["measured"]:
        took = NOT_EVALUABLE if m["hours"] is None else f"{m['hours']:,.2f}"
        table.add_row(m["title"], m["study"], str(m["runs"]), took)
    console().print(table)
    for policy in found.policies:
        _show_policy(policy, price, found.accelerator.name)
    for n, hours in found.processors:
        number = "1 processor" if n == 1 else f"{n} processors"
        say_line(f"the same runs with the policy of {found.registration}, on {number}: {3600 * hours:.0f} s")
    trained, evaluated = found.tokens
    say_line(f"at most {trained:.3g} tokens of training and {evaluated:.3g} of evaluation, by the maxima")
    if found.share_of_peak is not None:
        say_line(
            f"computed once, they are at most {found.share_of_peak:.0%} of what an {found.accelerator.name} "
            "could do in the time measured"
        )


def _show_policy(policy: Policy, price: float | None, accelerator: str) -> None:
    from rich.table import Table

    needed = "1 GPU" if policy.gpus == 1 else f"{policy.gpus} GPUs"
    say_line(f"{policy.name}, {policy.parameters / GIGA:.1f}B parameters, {needed} a run ({accelerator})")
    if policy.rate is None:
        say_line(f"  {NOT_EVALUABLE}: no measured run is here")
        return
    say_line(f"  one run: {said_range(policy.run)} hours")
    table = Table()
    for heading in ("GPUs", "runs at once", "hours", "GPU-hours", *(("cost",) if price else ())):
        table.add_column(heading, justify="right")
    for schedule in policy.schedules:
        if schedule.gpu_hours is None:
            table.add_row(str(schedule.gpus), "0", "a run does not fit", "")
            continue
        cost = (said_range(schedule.gpu_hours.times(price), 0),) if price else ()
        cells = (said_range(schedule.hours), said_range(schedule.gpu_hours, 0), *cost)
        table.add_row(str(schedule.gpus), str(schedule.slots), *cells)
    console().print(table)
