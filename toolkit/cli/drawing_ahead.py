"""A first build draws hundreds of charts: a second process draws those that the first comes to last.

What it draws is kept where the first looks before it draws; nothing else passes between them. Without a
second processor, or where drawings are kept already, there is none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolkit.places import HOME_VARIABLE, find_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.places import Home


@contextmanager
def drawing_ahead(home: Home) -> Iterator[None]:
    """Let a second process draw the last pages' charts while the first pages are made."""
    if (os.cpu_count() or 1) < 2 or not _has_drawn_nothing():  # noqa: PLR2004 - one for each
        yield
        return
    command = [sys.executable, "-m", __spec__.name]
    environment = {**os.environ, HOME_VARIABLE: str(home.root)}
    silent = subprocess.DEVNULL  # what fails there fails here, too, and says so
    with subprocess.Popen(command, env=environment, stdin=silent, stdout=silent, stderr=silent) as ahead:  # noqa: S603 - this program
        try:
            yield
        finally:
            ahead.terminate()


def _has_drawn_nothing() -> bool:
    """Whether no drawing of this code is kept; without the packages that draw, there is nothing to draw."""
    try:
        from toolkit.website.charts.drawing import drawings

        return drawings().is_empty
    except ModuleNotFoundError:
        return False


def main() -> None:
    """Draw the charts of the pages that are made last."""
    from toolkit.cli.load import case_of, load_study
    from toolkit.website.material import Material
    from toolkit.website.render import MAKERS

    home = find_home()
    studies = [load_study(name, home) for name in home.studies()]
    cases = tuple(case_of(study, home) for study in studies if study.has("runs"))
    for _ in MAKERS[-1].pages(Material(cases)):
        pass


if __name__ == "__main__":
    main()
