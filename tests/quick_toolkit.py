"""`python -m tests.quick_toolkit …`: the command line in a process of its own, with a play that is quick."""

from __future__ import annotations

from tests.unit.study import fake_play
from toolkit.cli import main, study
from toolkit.study.play import segments as runs

if __name__ == "__main__":
    runs.play_segment = fake_play.wholly
    study.POOLS = ("diagnostic",)
    main.main()
