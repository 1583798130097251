"""`python -m tests.quick_toolkit …`: the command line in a process of its own, with a play that is quick."""

from tests.unit.lab.study import fake_play
from toolkit.cli import main
from toolkit.lab import task_pools
from toolkit.lab.play import segments

if __name__ == "__main__":
    segments.play_segment = fake_play.wholly
    task_pools.STUDY_POOLS = ("diagnostic",)
    main.main()
