"""The plan of a training, for people."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from toolkit.cli.output import console, headline, say_line
from toolkit.study.plan.training_plan import NOT_COUNTED, NOT_EVALUABLE
from toolkit.training.plan import run_hours

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.study.plan.training_plan import TrainingPlan
    from toolkit.training.plan import Range

GIGA = 10**9
WIDEST = 17


def _range(hours: Range | None, digits: int = 1) -> str:
    """Return a range as people read it."""
    if hours is None:
        return NOT_EVALUABLE
    if hours.low is None:
        return f"at most {hours.high:,.{digits}f}"
    ends = f"{hours.low:,.{digits}f} to {hours.high:,.{digits}f}"
    return ends if hours.mean is None else f"{hours.mean:,.{digits}f} ({ends})"


def show_plan(plan: TrainingPlan, sources: Mapping[str, str]) -> None:
    """Print a plan for people."""
    recipe = plan.recipe
    about = f"   {recipe.model}, planned on the runs of {plan.study}; nothing is trained"
    console().print(headline(recipe.name, about))
    say_line(f"recipe {recipe.sha256()}")
    _show_settings(plan, sources)
    _show_runs(plan)
    _show_memory(plan)
    _show_time(plan)
    for lack in plan.lacks:
        subject, _, reason = lack.partition(": ")
        say_line(f"{subject}: {NOT_EVALUABLE}: {reason}")


def _show_settings(plan: TrainingPlan, sources: Mapping[str, str]) -> None:
    table = _table("setting", "value", "where from")
    for name, value in plan.recipe.settings().items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        table.add_row(name, text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…", sources[name])
    console().print(table)


def _show_runs(plan: TrainingPlan) -> None:
    table = _table("tier", "condition", "arm", "seeds", "-rollouts", "-evaluated", "-hours a run")
    # A line for the runs of an arm that differ in their seeds alone; of the first seed more is diagnosed.
    for (tier, condition, arm), group in groupby(plan.runs, lambda run: (run.tier, run.condition, run.arm)):
        runs = list(group)
        evaluated = sorted({run.evaluated for run in runs})
        hours = None if plan.rate is None else run_hours(max(runs, key=lambda r: r.episodes), plan.rate)
        table.add_row(
            *(str(tier), condition, arm, _seeds([run.seed for run in runs])),
            _one(run.rollouts for run in runs),
            " to ".join(f"{number:,}" for number in (evaluated[0], *evaluated[1:][-1:])),
            _range(hours),
        )
    console().print(table)
    total = plan.total
    checkpoints = ", ".join(map(str, plan.runs[0].checkpoints))
    say_line(
        f"{_number(total['runs'], 'run')}, each with checkpoints at {checkpoints}: "
        f"{total['groups']:,} groups, {total['rollouts']:,} rollouts,"
    )
    say_line(
        f"{total['evaluated']:,} episodes of evaluation ({total['periodic']:,} periodic, {total['final']:,} "
        f"final, {total['diagnostic']:,} diagnostic)"
    )
    bounds = plan.bounds
    operations = bounds["operations"]
    say_line(
        f"at most {bounds['tokens_trained']:.3g} tokens of training and {bounds['tokens_evaluated']:.3g} of "
        "evaluation" + (f": {operations:.3g} operations" if operations else "")
    )


def _show_memory(plan: TrainingPlan) -> None:
    memory = plan.memory
    if memory is None:
        return
    table = _table("one GPU", "-GB", "how")
    for part in memory.parts:
        table.add_row(part.name, _gigabytes(part.low, part.high), part.how)
    table.add_row("together", _gigabytes(memory.low, memory.high), f"of {memory.accelerator / GIGA:g} GB")
    console().print(table)
    say_line(f"memory: {memory.verdict.replace('_', ' ')}, as an estimate; {NOT_COUNTED}")
    if plan.gpus_a_run and plan.gpus_a_run > 1:
        say_line(f"a run needs {plan.gpus_a_run} such GPUs, everything divided evenly among them")


def _show_time(plan: TrainingPlan) -> None:
    schedule = plan.schedule
    if plan.rate is None or schedule is None:
        return
    say_line(f"time from {plan.rate.source}")
    if schedule.hours is None:
        say_line(
            f"{_number(schedule.gpus, 'GPU')} can hold no run, which needs {plan.rate.gpus}: {NOT_EVALUABLE}"
        )
        return
    say_line(
        f"{_number(len(plan.runs), 'run')} on {_number(schedule.gpus, 'GPU')}, {schedule.slots} at once, "
        f"each whole: {_range(schedule.hours)} hours"
    )
    say_line(f"GPU-hours: {_range(schedule.gpu_hours)}")


def _table(*headings: str) -> Any:
    """Return a table; a heading that begins with a minus stands over numbers."""
    from rich.table import Table

    table = Table()
    for heading in headings:
        right = heading.startswith("-")
        table.add_column(heading.removeprefix("-"), justify="right" if right else "left")
    return table


def _number(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _seeds(seeds: list[int]) -> str:
    """Return seeds as text; many that follow each other by their ends."""
    if len(seeds) > 3 and seeds == list(range(seeds[0], seeds[-1] + 1)):  # noqa: PLR2004 - more than fit
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _one(numbers: Iterable[int]) -> str:
    return " or ".join(f"{number:,}" for number in sorted(set(numbers)))


def _gigabytes(low: int, high: int) -> str:
    if low == high:
        return f"{low / GIGA:.1f}"
    return f"{low / GIGA:.1f} to {high / GIGA:.1f}"
