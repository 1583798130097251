"""A study made by hand, to be measured and decided in tests."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from tests.conftest import CHECKOUT
from toolkit.registers.episode_counts import Counts
from toolkit.registers.manifest import Origin

RULES = (CHECKOUT / "tests/fixtures/rules/small.toml").read_text(encoding="utf-8")


def rule(name: str, *tests: str, kind: str = "hypothesis", more: str = "") -> str:
    """Return a rule as TOML; a test may be written `reading: test`."""
    lines = [f"[rules.{name}]", f'kind = "{kind}"', 'title = "A rule"', 'text = "Words."', more]
    for number, test in enumerate(tests):
        reading, _, text = test.rpartition(": ")
        lines += [f"[[rules.{name}.criteria]]", f'id = "c{number}"', 'text = "Words."', f'test = "{text}"']
        lines += [f'reading = "{reading}"'] if reading else []
    return "\n".join(lines) + "\n"


def amendment(label: str, relations: str, *parts: str) -> str:
    """Return an amendment as TOML: its lists of rules, and what follows its head."""
    head = f'id = "{label}"\ndated = "2026-01-01"\ntitle = "t"\nseen = "s"\nreason = "r"\nchanges = ["c"]\n'
    return f"[amendment]\n{head}{relations}\n\n{''.join(parts)}"


def run_row(condition: str, arm: str, seed: int, **facts: Any) -> dict[str, Any]:
    """Return a row of `runs`, as far as the engine reads it."""
    cell = {"run_id": f"{condition}-{arm}-{seed}", "condition": condition, "arm": arm, "seed": seed}
    return cell | {"role": "primary", "scale_rewards": "group", "status": "COMPLETE"} | facts


def evaluation_row(run_id: str, step: int, successes: int, **facts: Any) -> dict[str, Any]:
    """Return a row of `evaluations`, as far as the engine reads it."""
    where = {"run_id": run_id, "phase": "periodic", "pool": "validation", "regime": "clean", "step": step}
    return where | {"successes": successes, "episodes": 10} | facts


@dataclass
class SmallStudy:
    """Registers held in memory."""

    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    name: str = "small"
    is_summary: bool = False
    origin: Origin | None = None

    def has(self, table: str) -> bool:
        return table in self.tables

    def rows(self, table: str) -> list[dict[str, Any]]:
        return self.tables[table]

    def hashed_rows(self, table: str) -> str:
        return f"hash of {table}"

    def hashed(self, table: str) -> dict[str, str]:
        return {f"{table}/all.parquet": f"hash of the file of {table}"}

    def derive(self, table: str, names: Collection[str]) -> None:
        """The small study holds nothing but its summaries."""

    def success_counts(self, *_: object) -> Counts:
        raise AssertionError("the small study has no episodes")


def small_study() -> SmallStudy:
    """Return condition X in full: paired AUC 0.6 and 0.5, independent 0.5 and 0.6."""
    runs = [run_row("X", arm, seed) for arm in ("paired", "independent") for seed in (0, 1)]
    levels = {"X-paired-0": 6, "X-paired-1": 5, "X-independent-0": 5, "X-independent-1": 6}
    evaluations = [evaluation_row(run, step, won) for run, won in levels.items() for step in (0, 20)]
    groups = [
        {"run_id": "X-paired-0", "spurious": 1, "all_correct": 10},
        {"run_id": "X-paired-1", "spurious": 2, "all_correct": 20},
    ]
    return SmallStudy({"runs": runs, "evaluations": evaluations, "groups_summary": groups})
