"""`python -m small_model FOLDER`: makes a small model of Qwen3.5's architecture, and teaches it the work."""

import argparse
import sys
from pathlib import Path

from small_model.teaching import Taught, warm_start
from toolkit.errors import ToolkitError
from toolkit.policies.language_model.opening import folder_sha256

BATCHES = 20_000
TOLD_EVERY = 100


def main() -> None:
    """Teach a model from its first batch, or from where it was cut off."""
    parser = argparse.ArgumentParser(prog="python -m small_model", description=__doc__)
    parser.add_argument("folder", type=Path, help="what was begun there is gone on with")
    parser.add_argument("--batches", type=int, default=BATCHES, help=f"of lessons (default: {BATCHES})")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the lessons (default: 0)")
    options = parser.parse_args()
    try:
        warm_start(options.folder, batches=options.batches, seed=options.seed, watch=_tell)
    except ToolkitError as error:
        sys.exit(f"error: {error}")
    print(f"{folder_sha256(options.folder)}  {options.folder}")


def _tell(taught: Taught) -> None:
    """Say how far it has come, now and then."""
    if taught.step % TOLD_EVERY == 0:
        print(f"batch {taught.step} of {taught.of}: loss {taught.loss:.3f}", file=sys.stderr)


if __name__ == "__main__":
    main()
