"""The published figures against the authors' run registers, number by number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Protocol

from toolkit.registers.published.source import Record, Source

if TYPE_CHECKING:
    from toolkit.documents.registrations import FigureDifferenceDocument

# Column of runs.csv → where a run's register has it.
_OF_RUN = {
    **{name: (name,) for name in ("condition", "arm", "seed", "p", "q", "provider", "git_commit", "status")},
    **{name: (name,) for name in ("episodes", "wall_time_s", "steps_to_threshold", "threshold", "steps")},
    **{name: (name,) for name in ("scale_rewards", "loss_type", "num_generations", "prompts_per_step")},
    **{name: (name,) for name in ("estimated_cost_usd", "peak_mem_gb")},
    **{f"auc_{name}": ("auc", name) for name in ("clean", "noisy", "challenge")},
    **{name: ("completeness", name) for name in ("training_groups_found", "training_rollouts_found")},
    **{name: ("versions", name) for name in ("torch", "vllm")},
}
_OF_EVALUATION = (
    *("true_success", "observed_reward", "exposed_frac", "finished_frac", "budget_exceeded_frac"),
    *("flipped_frac", "mean_calls", "recovery_success"),
)
_OF_LUCK = ("lam", "lam_pooled", "sigma2_env_mean", "sigma2_pol_mean", "tasks", "tasks_defined")
# Counted by the authors' decision script, and not in a run's register.
_ELSEWHERE = ("groups_sharing_one_seed", "groups_with_several_seeds")
NOT_IN_RUNS = (
    "runs: accelerator, launch time, role, registration, attempts and the model's commit",
    "luck shares: intervals",
    "training groups: who shares a seed",
    "calibrations, decisions, intervals, probe and events: not in the registers of runs",
)


class Files(Protocol):
    """What a checkout of the authors' repository gives."""

    def has(self, name: str) -> bool:
        """Whether there is something under a name."""

    def json(self, name: str) -> Any:
        """Return a JSON document, its numbers as `Decimal`."""


@dataclass(frozen=True)
class Difference:
    """A figure that differs: where it stands, as published here, and as the checkout has it."""

    figure: str
    published: str
    found: str

    def as_dict(self) -> FigureDifferenceDocument:
        """Return the figure as it is printed with `--json`."""
        return {"figure": self.figure, "published": self.published, "found": self.found}


@dataclass(frozen=True)
class Comparison:
    """What came of comparing the figures."""

    runs: int  # how many runs have a register in the checkout
    compared: int  # how many figures were compared
    differences: tuple[Difference, ...]  # those that differ
    not_compared: tuple[str, ...]  # what could not be, in words


def compare_runs(source: Source, checkout: Files, folder: str) -> Comparison:
    """Compare every transcribed figure that a run's register holds with that register."""
    compared, runs = 0, 0
    differences: list[Difference] = []
    absent: list[str] = []
    for run in (record["run_id"] for record in source.records["runs"]):
        name = f"{folder}/{run}.json"
        if not checkout.has(name):
            absent.append(f"every figure of {run}: the checkout has no {name}")
            continue
        runs += 1
        register = checkout.json(name)
        for figure, published, path in _figures(source, run):
            found = _at(register, path)
            if found is _ABSENT:
                absent.append(f"{run}, {figure}: {name} does not have it")
                continue
            compared += 1
            if not _same(published, found):
                differences.append(Difference(f"{run}, {figure}", published or "nothing", _told(found)))
    return Comparison(runs, compared, tuple(differences), (*absent, *NOT_IN_RUNS))


def _figures(source: Source, run: str) -> Iterator[tuple[str, str, tuple[object, ...]]]:
    """Yield each figure of a run: its name, its text as published, and the way to it in the register."""
    of_run = next(record for record in source.records["runs"] if record["run_id"] == run)
    yield "run_id", run, ("run_id",)
    yield from ((column, of_run[column], path) for column, path in _OF_RUN.items())
    for record in _of(source, "evaluations", run):
        periodic = record["phase"] == "periodic"
        step = Decimal(record["step"])
        way: tuple[object, ...] = (
            ("curves", record["regime"], step) if periodic else ("final", record["regime"])
        )
        named = f"{record['phase']} {record['regime']} at step {record['step']}"
        yield f"{named}, episodes", record["episodes"], (*way, "n" if periodic else "episodes")
        yield from ((f"{named}, {column}", record[column], (*way, column)) for column in _OF_EVALUATION)
    for record in _of(source, "luck_share", run):
        way = ("luck_share", f"diag:step{record['step']}")
        named = f"luck share at step {record['step']}"
        yield from ((f"{named}, {column}", record[column], (*way, column)) for column in _OF_LUCK)
    for record in _of(source, "training_groups", run):
        if record["figure"] not in _ELSEWHERE:
            way = ("training_groups", of_run["condition"], record["figure"])
            yield f"training groups, {record['figure']}", record["value"], way


def _of(source: Source, name: str, run: str) -> Iterator[Record]:
    return (record for record in source.records[name] if record["run_id"] == run)


_ABSENT = object()


def _at(content: object, path: tuple[object, ...]) -> object:
    """Return what stands at a place of a register; a number in the way is the step of a curve."""
    for key in path:
        if isinstance(key, Decimal) and isinstance(content, list):
            steps = (point for point in content if isinstance(point, Mapping) and point.get("step") == key)
            content = next(steps, _ABSENT)
        elif isinstance(content, Mapping):
            content = content.get(key, _ABSENT)
        else:
            return _ABSENT
    return content


def _same(published: str, found: object) -> bool:
    """Whether a printed figure is what a register says: numbers as numbers, an empty cell as null."""
    if found is None or published == "":
        return found is None and published == ""
    if isinstance(found, Decimal):
        try:
            return Decimal(published) == found
        except InvalidOperation:
            return False
    return isinstance(found, str) and found == published


def _told(found: object) -> str:
    return "nothing" if found is None else str(found)[:80]
