"""`toolkit probe drift`: what pairing does to a training step, measured before training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from toolkit import api
from toolkit.cli import offers, output
from toolkit.errors import UsageError
from toolkit.lab.commands import offers as lab_offers
from toolkit.lab.commands.executing import chosen, executor_options

if TYPE_CHECKING:
    from toolkit.documents.probe import PlayingPolicyDocument, PredictedDriftDocument
    from toolkit.estimators.taskwise import TaskUncertainty
    from toolkit.lab.probe.predicted import Cell, Prediction

Command = TypeVar("Command", bound=Callable[..., Any])
OPTIMIZERS = ("adam", "gradient", "sign")


class Numbers(click.ParamType[tuple[int, ...]]):
    """Whole numbers from 1, separated by commas."""

    name = "numbers"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return the numbers."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(map(int, str(value).split(",")))
        except ValueError:
            self.fail(f"{value!r} is no list of whole numbers such as 1,2,24", param, ctx)
        if min(numbers) < 1 or max(numbers) > MOST_PROMPTS:
            self.fail(f"a step has from 1 to {MOST_PROMPTS} groups, not {value}", param, ctx)
        return numbers


MOST_PROMPTS = 1000


def checkpoint_options(command: Command) -> Command:
    """Take the options that name a checkpoint."""
    step = click.option("--step", type=click.IntRange(0), help="Step of the run's checkpoint.")
    run = click.option(
        *("--run", "run_id"),
        metavar="RUN",
        shell_complete=offers.runs,
        help="Its run of a log-linear policy, whose settings stand where none are given.",
    )
    study = click.option(
        *("--study", "name"),
        metavar=output.STUDY,
        shell_complete=offers.studies,
        help="Study whose checkpoint plays, with --run and --step.",
    )
    return study(run(step(command)))


@click.command("drift")
@checkpoint_options
@click.option(
    "--regime",
    shell_complete=lab_offers.regimes,
    help="Noise of training; faults_p025 if left out.",
    show_default=False,
)
@click.option("--batch", type=Numbers(), help="Groups a step, B, separated by commas; 24 if left out.")
@click.option(
    "--optimizer",
    "optimizers",
    type=click.Choice(OPTIMIZERS),
    multiple=True,
    help="Adam if left out; may be repeated.",
)
@click.option("--group-size", type=click.IntRange(2, 128), help="Rollouts a group, G; 8 if left out.")
@click.option("--surface-tokens", type=click.IntRange(0, 1024), help="V; 16 if left out.")
@click.option("--scale-rewards", type=click.Choice(["group", "none"]), help="group if left out.")
@click.option("--constant-groups", type=click.Choice(["kept", "resampled"]), help="kept if left out.")
@click.option(
    "--loss-type", type=click.Choice(["dapo", "dr_grpo"]), help="What divides a step's sum; dapo if left out."
)
@click.option(
    "--groups", type=click.IntRange(2, 1_000_000), default=6000, help="Groups that are played a design."
)
@click.option("--seed", default="drift", help="A name, from which every seed is derived.")
@executor_options
@output.json_option
def drift(
    *,
    name: str | None,
    run_id: str | None,
    step: int | None,
    batch: tuple[int, ...] | None,
    optimizers: tuple[str, ...],
    groups: int,
    seed: str,
    executor: str,
    processes: int | None,
    address: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Predict how fast training in either design will learn.

    Groups of both designs are played for it.

    The drift is what a step of the optimizer is expected to gain: a ratio (paired over independent) below
    one says that pairing slows learning under these settings. Beside it: the share of groups with constant
    rewards, the covariance trace, and the variance where the signal is. Intervals (95 %) are over tasks.

    The untrained policy plays, or a checkpoint of a run of the log-linear policy. Both designs meet the same
    tasks of the training pool. Gradients are taken to be stationary, and Adam's averages to be longer than
    their noise. Rollouts of any other training are for `toolkit probe advise`.

    \b
    Examples:
      toolkit probe drift --batch 1,2,24
      toolkit probe drift --regime flips_q010 --optimizer gradient --json
      toolkit probe drift --study embedded --run c2-paired-s100 --step 100
    """
    from toolkit.lab.probing.drift import predicted_drift

    cell, parameters = started(name, run_id, step)
    cell = replace(cell, **{key: value for key, value in settings.items() if value is not None})
    batches, rules = batch or (cell.prompts_per_step,), optimizers or (cell.optimizer,)
    cells = [replace(cell, prompts_per_step=b, optimizer=rule) for rule, b in product(rules, batches)]
    workers = chosen(executor, processes, address)
    with output.counted("playing") as told:
        found = predicted_drift(
            cells, groups=groups, seed=seed, parameters=parameters, executor=workers.telling(*told)
        )
    if as_json:
        played = {"study": name, "run": run_id, "step": step}
        document: PredictedDriftDocument = {
            "policy": None if parameters is None else cast("PlayingPolicyDocument", played),
            "seed": seed,
            "predictions": [prediction.document() for prediction in found],
        }
        output.print_json(document)
        return
    _show(found, cell)


def started(name: str | None, run_id: str | None, step: int | None) -> tuple[Cell, tuple[float, ...] | None]:
    """Return the settings that stand where none are given, and the parameters of the named checkpoint."""
    from toolkit.lab.probe.predicted import Cell
    from toolkit.lab.probing.drift import checkpoint_parameters

    if name is None and run_id is None and step is None:
        return Cell(), None
    if name is None or run_id is None or step is None:
        raise UsageError(
            "a checkpoint is named by --study, --run and --step", remedy="give all three, or none of them"
        )
    parameters, cell = checkpoint_parameters(api.open_study(name), run_id, step)
    return cell, parameters


def _show(found: list[Prediction], cell: Cell) -> None:
    first = found[0]
    output.say_line(
        output.bold(cell.regime),
        f": G = {cell.group_size}, V = {cell.surface_tokens}, advantages scaled: {cell.scale_rewards}, "
        f"constant groups {cell.constant_groups}, {cell.loss_type}",
    )
    paired, independent = first.designs["paired"], first.designs["independent"]
    spread = [("constant groups", f"{paired.constant:.3f}", f"{independent.constant:.3f}", "")]
    if cell.constant_groups == "resampled":
        spread.append(("draws a group", f"{paired.draws:.2f}", f"{independent.draws:.2f}", ""))
    for figure, label in SPREAD.items():
        one, other = (f"{getattr(of, figure):.4g}" for of in (paired, independent))
        spread.append((label, one, other, _ratio(first.ratios[figure])))
    output.print_table(("", "paired", "independent", "ratio"), spread, numbers=True)
    output.print_table(
        ("optimizer", "groups a step", "drift, paired over independent"),
        [(one.cell.optimizer, str(one.cell.prompts_per_step), _ratio(one.ratios["drift"])) for one in found],
        numbers=True,
    )
    output.say_line(f"{paired.groups:,} groups a design; 95 % intervals over {first.blocks} blocks of tasks")


SPREAD = {
    "trace": "covariance trace",
    "along": "variance along the mean gradient",
    "strongest": "variance, 20 coordinates with most signal",
}


def _ratio(figure: TaskUncertainty) -> str:
    if figure.value is None:
        return "not defined"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
