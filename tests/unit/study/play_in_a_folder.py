"""`python -m tests.unit.study.play_in_a_folder FOLDER RUNS PROCESSES [EXECUTOR]`: a runner to be killed."""

import sys
from pathlib import Path

from tests.unit.study import fake_play
from toolkit.study.executors.executor import Executor
from toolkit.study.play.runner import play_runs
from toolkit.study.play.workplace import Workplace


def main(folder: str, runs: str, processes: str, executor: str = "local") -> None:
    workplace = Workplace(Path(folder))
    specifications = [fake_play.specification(f"c2-paired-s{seed}", seed=seed) for seed in range(int(runs))]
    with workplace.held(specifications):
        play_runs(workplace, specifications, Executor(executor, int(processes)), play=fake_play.slowly)


if __name__ == "__main__":
    main(*sys.argv[1:])
