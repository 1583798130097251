"""`python -m tests.unit.lab.study.play_in_a_folder FOLDER RUNS PROCESSES [EXECUTOR]`: one to be killed."""

import sys
from pathlib import Path

from tests.unit.lab.study import fake_play
from toolkit.lab.executors.executor import Executor
from toolkit.lab.play.runner import play_runs
from toolkit.lab.play.workplace import Workplace


def main(folder: str, runs: str, processes: str, executor: str = "local") -> None:
    workplace = Workplace(Path(folder))
    specifications = [fake_play.specification(f"c2-paired-s{seed}", seed=seed) for seed in range(int(runs))]
    with workplace.held(specifications):
        play_runs(workplace, specifications, Executor(executor, int(processes)), play=fake_play.slowly)


if __name__ == "__main__":
    main(*sys.argv[1:])
