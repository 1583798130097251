"""`python -m toolkit.cli.unchanged`: the hook of pre-commit that holds frozen registrations as they are."""

import sys
from pathlib import Path

from toolkit.cli.output import print_error
from toolkit.errors import ToolkitError
from toolkit.prereg.git import check_unchanged


def main() -> int:
    """Check the registrations below `prereg/` of the folder that this runs in, and return the exit code."""
    try:
        frozen = check_unchanged(Path("prereg"))
    except ToolkitError as error:
        print_error(error)
        return error.exit_code
    print("unchanged:", ", ".join(frozen) or "nothing is frozen here")  # noqa: T201 - its one line
    return 0


if __name__ == "__main__":
    sys.exit(main())
