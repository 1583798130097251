"""`toolkit probe drift` and `advise`: what pairing does to a training step, and whether to pair."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolkit import cases
from toolkit.cli import output
from toolkit.cli.options import (
    STUDY,
    argument,
    command,
    json_option,
    offer_runs,
    offer_studies,
    option,
    together,
)
from toolkit.errors import UsageError
from toolkit.lab.commands.options import executor_option, offer_regimes
from toolkit.structs import replace

if TYPE_CHECKING:
    from toolkit.estimators.taskwise import TaskUncertainty
    from toolkit.lab.executors.executor import Executor
    from toolkit.lab.probe.advice import Advice
    from toolkit.lab.probe.predicted import Cell, Prediction

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


RUN = option(
    "--run",
    metavar="RUN",
    shell_complete=offer_runs,
    help="Run of a log-linear policy; its settings are the defaults.",
)
STEP = option(type=click.IntRange(0), help="Step of the run's checkpoint.")
PLAYED_BY = option(
    "--study",
    metavar=STUDY,
    shell_complete=offer_studies,
    help="Study of the checkpoint, with --run and --step.",
)


@command("drift")
def drift(
    *,
    name: str | None = PLAYED_BY,
    run_id: str | None = RUN,
    step: int | None = STEP,
    regime: str | None = option(
        shell_complete=offer_regimes,
        help="Noise regime of training; default: faults_p025.",
        show_default=False,
    ),
    batch: tuple[int, ...] | None = option(
        type=Numbers(), help="Groups per step, B, separated by commas; default: 24."
    ),
    optimizers: tuple[str, ...] = option(
        "--optimizer",
        type=click.Choice(OPTIMIZERS),
        multiple=True,
        help="Optimizer; default: Adam; may be repeated.",
    ),
    settings: dict[str, Any] = together(
        dict,
        group_size=option(type=click.IntRange(2, 128), help="Rollouts per group, G; default: 8."),
        surface_tokens=option(type=click.IntRange(0, 1024), help="Surface tokens, V; default: 16."),
        scale_rewards=option(
            type=click.Choice(["group", "none"]), help="Scaling of rewards; default: group."
        ),
        constant_groups=option(
            type=click.Choice(["kept", "resampled"]), help="Groups with constant rewards; default: kept."
        ),
        loss_type=option(
            type=click.Choice(["dapo", "dr_grpo"]), help="Normalization of a step's sum; default: dapo."
        ),
    ),
    groups: int = option(type=click.IntRange(2, 1_000_000), default=6000, help="Groups to play per design."),
    seed: str = option(default="drift", help="Name from which every seed is derived."),
    workers: Executor = executor_option,
    as_json: bool = json_option,
) -> None:
    """Predict how fast training in either design will learn.

    It plays groups of both designs.

    The drift is the expected gain of an optimizer step: a ratio (paired over independent) below one means
    that pairing slows learning under these settings. Also shown: the share of groups with constant rewards,
    the covariance trace, and the variance along the signal. Intervals (95 %) are over tasks.

    The policy is untrained, or a checkpoint of a log-linear run. Both designs get the same tasks of the
    training pool. Gradients are assumed stationary, and Adam's averages longer than their noise. For rollouts
    of your own training use `toolkit probe advise`.

    \b
    Examples:
      toolkit probe drift --batch 1,2,24
      toolkit probe drift --regime flips_q010 --optimizer gradient --json
      toolkit probe drift --study embedded --run c2-paired-s100 --step 100
    """
    from toolkit.lab.probe.predicted import PlayingPolicy, PredictedDrift
    from toolkit.lab.probing.drift import predicted_drift

    cell, parameters = started(name, run_id, step)
    settings["regime"] = regime
    cell = replace(cell, **{key: value for key, value in settings.items() if value is not None})
    batches, rules = batch or (cell.prompts_per_step,), optimizers or (cell.optimizer,)
    cells = [replace(cell, prompts_per_step=b, optimizer=rule) for rule, b in product(rules, batches)]
    with output.counted("playing") as told:
        found = predicted_drift(
            cells, groups=groups, seed=seed, parameters=parameters, executor=workers.telling(*told)
        )
    if as_json:
        named = None if name is None or run_id is None or step is None else PlayingPolicy(name, run_id, step)
        output.print_json(PredictedDrift(named, seed, found))
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
    parameters, cell = checkpoint_parameters(cases.open_study(name), run_id, step)
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


LABELS = {
    "constant_paired": "constant groups, paired",
    "constant_independent": "constant groups, independent",
    "trace_ratio": "covariance trace, paired over independent",
    "along_ratio": "variance along the mean gradient, paired over independent",
    "drift_ratio": "drift, paired over independent",
    "drift_ratio_resampled": "drift, constant groups drawn again",
}


@command("advise")
def advise(
    *,
    source: Path | None = argument(required=False, type=click.Path(path_type=Path)),
    name: str | None = PLAYED_BY,
    run_id: str | None = RUN,
    step: int | None = STEP,
    tasks: int = option(
        type=click.IntRange(2, 2000), default=512, help="Tasks that are played with --study."
    ),
    optimizer: str = option(type=click.Choice(OPTIMIZERS), default="adam", help="That of the training."),
    batch: int = option(type=click.IntRange(1, MOST_PROMPTS), default=24, help="Groups a step, B."),
    scale_rewards: str = option(
        type=click.Choice(["group", "none"]),
        default="group",
        help="Whether advantages are divided by their group's standard deviation.",
    ),
    as_json: bool = json_option,
) -> None:
    """Say whether to pair, from rollouts of both designs.

    SOURCE is a folder, or the table in it.

    \b
    rollouts.parquet   a row a rollout, also .jsonl or .csv; its columns:
                       design   paired (a group has one schedule) or independent
                       task     its name; both designs need groups of every task
                       group    its name; groups have one size
                       reward   a number
    and beside it one of
    scores.npy         ∇ log π of each rollout, rows as in the table, (rows, P)
    gradients.npy      gradient of each group, advantages as in training, in the
                       order in which groups first appear, (groups, P)
    gram.npy           inner products of either: no drift but a plain gradient's

    Arrays may also be .npz or .safetensors. Tens of tasks are often enough; the coordinates may be any part
    of the parameters, such as those of one adapter. Rewards alone give the shares of constant groups.

    Intervals (95 %) are over tasks, and the advice says no more than they carry. What divides a step's
    gradient is taken to be the same for every step.

    \b
    Examples:
      toolkit probe advise my-rollouts
      toolkit probe advise my-rollouts/rollouts.jsonl --optimizer sign --json
      toolkit probe advise --study embedded --run c2-paired-s100 --step 100
    """
    from toolkit.lab.probe.advice import advise as advise_on
    from toolkit.lab.probing.drift import played_evidence
    from toolkit.lab.probing.rollout_files import read_rollouts

    if (source is None) == (name is None):
        problem = "rollouts come from one place"
        expected = "SOURCE, or --study with --run and --step"
        raise UsageError(problem, expected=expected, found="both" if source else "neither")
    if source is not None:
        if run_id is not None or step is not None:
            raise UsageError(
                "--run and --step name a checkpoint of a study", remedy="add --study, without SOURCE"
            )
        evidence = read_rollouts(source, scaled=scale_rewards == "group")
    else:
        cell, parameters = started(name, run_id, step)
        cell = replace(cell, scale_rewards=scale_rewards)
        with output.steps("playing") as progress:
            progress(f"{tasks} tasks")
            evidence = played_evidence(cell, tasks=tasks, seed="advice", parameters=parameters)
    with output.steps("advising") as progress:
        progress(f"{len(evidence.tasks)} groups")
        advice = advise_on(evidence, optimizer, batch)
    if as_json:
        output.print_json(advice)
        return
    _show_advice(advice, str(source or run_id))


def _show_advice(advice: Advice, title: str) -> None:
    numbers = f"{advice.groups['paired']} paired and {advice.groups['independent']} independent groups"
    output.say_line(output.bold(title), f": {numbers} of {advice.group_size}, {advice.tasks} tasks")
    rows = []
    for name, label in LABELS.items():
        figure = advice.figures.get(name)
        if figure is None or figure.best is None:
            continue
        ends = "–" if figure.low is None or figure.high is None else f"[{figure.low:.3f}, {figure.high:.3f}]"  # noqa: RUF001
        rows.append((label, f"{figure.best:.3f}", ends))
    output.print_table(("", "value", "95 % interval"), rows, numbers=True)
    for name, reason in advice.not_evaluable.items():
        output.say_line(f"not evaluable: {LABELS[name]}: {reason}")
    output.say_line("")
    for sentence in advice.sentences:
        output.say_line(sentence)
