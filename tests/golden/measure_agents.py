"""Measure the scripted agents under every regime: writes `agents.json`, and prints the table of the README.

Run as `python -m tests.golden.measure_agents`.
"""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from toolkit.lab.episodes.agents import AGENTS
from toolkit.lab.episodes.episode import Episode, play
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed

TASKS = 300
SCHEDULES = 4
FILE = Path(__file__).with_name("agents.json")


def measure(agent: str, regime: str) -> dict[str, int]:
    """Return counts over the validation pool."""
    episodes = [
        play(task, REGIMES[regime], evaluation_seed(task.task_id, schedule), AGENTS[agent])
        for task in (load_task(f"validation:{number}") for number in range(TASKS))
        for schedule in range(SCHEDULES)
    ]
    return {name: sum(map(count, episodes)) for name, count in COUNTS.items()}


def _has_outage(episode: Episode) -> bool:
    return any(exposure.fault == "outage" for exposure in episode.exposures)


COUNTS: dict[str, Any] = {
    "episodes": lambda _: 1,
    "true_successes": lambda episode: episode.true_success,
    "observed_rewards": lambda episode: episode.observed_reward,
    "exposed": lambda episode: bool(episode.exposures),
    "with_outage": _has_outage,
    "budget_exceeded": lambda episode: episode.budget_exceeded,
    "calls": lambda episode: episode.calls,
}


def table(measured: dict[str, dict[str, dict[str, int]]]) -> str:
    """Return the table of the README."""
    lines = [
        "| regime | reference succeeds | calls | over budget | meets a fault | careless succeeds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for regime, counts in measured["reference"].items():
        careless = measured["careless"][regime]
        cells = [
            regime,
            _percent(counts["true_successes"], counts),
            f"{Fraction(counts['calls'], counts['episodes']).__float__():.2f}",
            _percent(counts["budget_exceeded"], counts),
            _percent(counts["exposed"], counts),
            _percent(careless["true_successes"], careless),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _percent(part: int, counts: dict[str, int]) -> str:
    return f"{100 * part / counts['episodes']:.1f}%"


def main() -> None:
    """Measure, write, print."""
    measured = {agent: {regime: measure(agent, regime) for regime in REGIMES} for agent in AGENTS}
    FILE.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    print(table(measured))


if __name__ == "__main__":
    main()
