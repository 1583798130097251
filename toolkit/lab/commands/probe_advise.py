"""`toolkit probe advise`: whether to pair, from rollouts of anybody's training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli import output
from toolkit.errors import UsageError
from toolkit.lab.commands.probe_drift import MOST_PROMPTS, OPTIMIZERS, checkpoint_options, started

if TYPE_CHECKING:
    from toolkit.lab.probe.advice import Advice

LABELS = {
    "constant_paired": "constant groups, paired",
    "constant_independent": "constant groups, independent",
    "trace_ratio": "covariance trace, paired over independent",
    "along_ratio": "variance along the mean gradient, paired over independent",
    "drift_ratio": "drift, paired over independent",
    "drift_ratio_resampled": "drift, constant groups drawn again",
}


@click.command("advise")
@click.argument("source", required=False, type=click.Path(path_type=Path))
@checkpoint_options
@click.option(
    "--tasks", type=click.IntRange(2, 2000), default=512, help="Tasks that are played with --study."
)
@click.option("--optimizer", type=click.Choice(OPTIMIZERS), default="adam", help="That of the training.")
@click.option("--batch", type=click.IntRange(1, MOST_PROMPTS), default=24, help="Groups a step, B.")
@click.option(
    "--scale-rewards",
    type=click.Choice(["group", "none"]),
    default="group",
    help="Whether advantages are divided by their group's standard deviation.",
)
@output.json_option
def advise(
    *,
    source: Path | None,
    name: str | None,
    run_id: str | None,
    step: int | None,
    tasks: int,
    optimizer: str,
    batch: int,
    scale_rewards: str,
    as_json: bool,
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
        raise UsageError(
            "rollouts come from one place",
            expected="SOURCE, or --study with --run and --step",
            found="both" if source else "neither",
        )
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
        output.print_json(advice.document())
        return
    _show(advice, str(source or run_id))


def _show(advice: Advice, title: str) -> None:
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
