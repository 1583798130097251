"""Measure the scripted agents under every regime: writes `agents.json`, and prints the table of the README.

Run as `python -m tests.golden.measure_agents`.
"""

import json
from pathlib import Path
from typing import Any

from tests.golden.stored import markdown
from toolkit.lab.episodes.agents import AGENTS
from toolkit.lab.episodes.episode import play
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


COUNTS: dict[str, Any] = {
    "episodes": lambda _: 1,
    "true_successes": lambda episode: episode.true_success,
    "observed_rewards": lambda episode: episode.observed_reward,
    "exposed": lambda episode: bool(episode.exposures),
    "with_outage": lambda episode: any(exposure.fault == "outage" for exposure in episode.exposures),
    "budget_exceeded": lambda episode: episode.budget_exceeded,
    "calls": lambda episode: episode.calls,
}


def table(measured: dict[str, dict[str, dict[str, int]]]) -> str:
    """Return the table of the README."""
    heads = ("regime", "reference succeeds", "calls", "over budget", "meets a fault", "careless succeeds")
    rows = [
        [
            regime,
            _percent(counts["true_successes"], counts),
            f"{counts['calls'] / counts['episodes']:.2f}",
            *(_percent(counts[name], counts) for name in ("budget_exceeded", "exposed")),
            _percent(measured["careless"][regime]["true_successes"], measured["careless"][regime]),
        ]
        for regime, counts in measured["reference"].items()
    ]
    return "\n".join(markdown(heads, rows))


def _percent(part: int, counts: dict[str, int]) -> str:
    return f"{100 * part / counts['episodes']:.1f}%"


def main() -> None:
    """Measure, write, print."""
    measured = {agent: {regime: measure(agent, regime) for regime in REGIMES} for agent in AGENTS}
    FILE.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    print(table(measured))


if __name__ == "__main__":
    main()
