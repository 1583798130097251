"""`toolkit warm-start`: a small language model that knows the back office's work, made on a processor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.output import json_option, print_json, say_line
from toolkit.cli.progress import counted
from toolkit.errors import IncompleteError

if TYPE_CHECKING:
    from toolkit.cli.progress import Say, Watch
    from toolkit.training.language_model.warm_start import Taught

BATCHES = 20_000
SEEDS = 2**32 - 1


@click.command("warm-start")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--batches",
    type=click.IntRange(1, 1_000_000),
    default=BATCHES,
    show_default=True,
    help="Batches of lessons.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, SEEDS),
    default=0,
    show_default=True,
    help="Of the weights and the lessons.",
)
@json_option
def warm_start(*, folder: Path, batches: int, seed: int, as_json: bool) -> None:
    """Make a small model of Qwen3.5's architecture in FOLDER, and teach it the reference agent's work.

    It knows the back office's words and nothing else. A hundred batches take about half a minute on
    two cores. What was cut off goes on from where it was with the same command; a model that is not good
    enough yet is given more batches.

    \b
    Examples:
      toolkit warm-start my-model
      toolkit warm-start my-model --batches 30000
      toolkit warm-start another --batches 3000 --seed 1
    """
    from toolkit.policies.language_model.opening import folder_sha256

    try:
        from toolkit.training.language_model.warm_start import warm_start as make

        with counted("teaching") as (watch, say):
            make(folder, batches=batches, seed=seed, watch=lambda taught: _tell(taught, watch, say))
    except ImportError as error:
        raise IncompleteError(
            "making a model needs packages that are not installed",
            found=error,
            remedy='pip install "paired-rollouts-toolkit[language-model]"',
        ) from None
    sha256 = folder_sha256(folder)
    if as_json:
        print_json({"folder": str(folder), "batches": batches, "seed": seed, "sha256": sha256})
        return
    say_line(f"model with SHA-256 {sha256} in {folder}; measure it: toolkit evaluate --model {folder}")


def _tell(taught: Taught, watch: Watch, say: Say) -> None:
    """Show how far it has come, and say it in a line now and then."""
    watch(taught.step, taught.of, f"loss {taught.loss:.2f}")
    if taught.step % 100 == 0:
        say(f"batch {taught.step} of {taught.of}: loss {taught.loss:.3f}")
