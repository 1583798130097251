"""The command line of whatever teaches a model: a folder, how many batches, a seed."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from small_model.teaching import Taught
from toolkit.errors import ToolkitError
from toolkit.lab.policies.language_model.opening import folder_sha256

TOLD = 100
"""How often it is said how far a model has come, at most."""


def teach(prog: str, description: str | None, taught: Callable[..., None], batches: int) -> None:
    """Teach a model as the command line says, and print the hash of what comes of it."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("folder", type=Path, help="where the model goes")
    parser.add_argument("--batches", type=int, default=batches, help=f"(default: {batches})")
    parser.add_argument("--seed", type=int, default=0, help="of what it is taught (default: 0)")
    options = parser.parse_args()
    try:
        taught(options.folder, batches=options.batches, seed=options.seed, watch=_tell)
    except ToolkitError as error:
        sys.exit(f"error: {error}")
    print(f"{folder_sha256(options.folder)}  {options.folder}")


def _tell(taught: Taught) -> None:
    if taught.step % max(1, taught.of // TOLD) == 0:
        print(f"batch {taught.step} of {taught.of}: loss {taught.loss:.3f}", file=sys.stderr)
