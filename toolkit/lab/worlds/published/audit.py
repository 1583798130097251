"""Published figures held against what the published seeds draw: flips, faults, tasks and scripted agents.

A flip makes a success count as a failure. Of n episodes with s successes, of which f are drawn to be flipped,
at least max(0, s - (n - f)) and at most min(s, f) are lost: anything else is impossible under these draws.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import StatisticsError, correlation
from typing import NamedTuple, TypeVar

from toolkit.errors import DamagedError, VerificationError
from toolkit.lab.worlds.published.episodes import (
    AGENTS,
    CONDITIONS,
    SCHEDULES,
    Stage,
    counts,
    play,
    stage,
)
from toolkit.lab.worlds.published.faults import (
    Condition,
    Schedule,
    evaluation_seed,
    independent_seed,
    training_seed,
)
from toolkit.lab.worlds.published.tasks import SEED, check_structure, pools, training_order
from toolkit.lab.worlds.published.words import placeholders
from toolkit.registers.arrow import Row
from toolkit.registers.validation import compare

CONTROLS = 3
"""Seeds that a run is held against: its own, and those that it would have as another run."""
POOLS = {"validation": ("heldout", SCHEDULES[:2]), "test": ("test", SCHEDULES)}
"""Pool of an evaluation → its name in tasks, and the schedules that each of its tasks meets."""
TABLES = ("runs", "training_steps", "evaluations", "reference_steps")
PLAYED = ("runs", "reference_agents", "reference_steps")
NOT_PUBLIC = (
    "episodes, training groups, the probe's Gram evidence and weights are not public: what depends on them "
    "is quoted, and nobody but the authors can play it again"
)
Rows = Mapping[str, Sequence[Row]]
Say = Callable[[str], None]
T = TypeVar("T")


class Held(NamedTuple):
    """Steps of a run beside what a way of drawing gives."""

    drawn: tuple[int, ...]  # flips, by step
    impossible: tuple[int, ...]  # steps that lost what cannot be lost to these flips
    correlation: float  # of lost successes with drawn flips


class HeldRun(NamedTuple):
    """A run's steps beside its own draws and others."""

    run: Row
    lost: tuple[int, ...]  # successes that counted as failures, by step
    own: Held
    others: tuple[Held, ...]  # under the seeds of other runs
    by_slot: Held | None  # by the place in the group alone, where each rollout draws for itself
    bounds: tuple[tuple[int, int], ...]  # the least and the most that each step can lose to its draws

    def noticed(self, by: int) -> int:
        """Return how many changes of one step's observed successes, up or down by so many, are impossible."""
        changed = (
            (lost + sign * by, ends)
            for lost, ends in zip(self.lost, self.bounds, strict=True)
            for sign in (1, -1)
        )
        return sum(not least <= lost <= most for lost, (least, most) in changed)


class Followed(NamedTuple):
    """How far a run's success goes, from step to step, with that of the scripted agent on the same tasks."""

    run: Row
    own: float  # correlation of the changes, under the schedules that the run's seed draws
    others: float  # under those of another seed


class Audit(NamedTuple):
    """What can be held against draws."""

    runs: tuple[HeldRun, ...]
    followed: tuple[Followed, ...]  # runs under faults
    evaluations: tuple[tuple[Row, int], ...]  # each with the flips that are drawn for its episodes
    unflipped: int  # training steps and evaluations in which nothing is flipped, and nothing was lost

    @property
    def steps(self) -> int:
        """Training steps that were held against draws."""
        return sum(len(each.lost) for each in self.runs)

    @property
    def whole(self) -> int:
        """Evaluations that lost every flip that is drawn: all of these met a success."""
        return sum(row["flipped"] == drawn for row, drawn in self.evaluations)

    @property
    def sentence(self) -> str:
        """What was found."""
        others = [held for each in self.runs for held in each.others]
        paired = [each for each in self.followed if each.run["arm"] == "paired"]
        return (
            f"{self.steps} training steps of {len(self.runs)} runs lost what the published seeds flip, none "
            f"impossibly (correlation {_span(each.own.correlation for each in self.runs)}); under another "
            f"seed {_span((len(held.impossible) for held in others), 0)} of a run's are impossible "
            f"(correlation at most {max(held.correlation for held in others):.2f}); {len(self.evaluations)} "
            f"evaluations lost no more than is drawn, {self.whole} of them all of it; {self.unflipped} steps "
            "and evaluations without flips lost nothing; under faults, changes of success in paired "
            "runs and of a scripted agent's on the same tasks have the correlation "
            f"{_span(each.own for each in paired)} under the schedules that the seeds draw, and "
            f"{_span(each.others for each in paired)} under another seed's"
        )


def _span(values: Iterable[float], decimals: int = 2) -> str:
    if not (found := sorted(values)):
        raise DamagedError("the published study has no runs with flips, or no paired ones under faults")
    return f"{found[0]:.{decimals}f} to {found[-1]:.{decimals}f}"


def audit(tables: Rows, progress: Say = lambda _: None) -> Audit:
    """Hold training steps and evaluations against the draws.

    Raises:
        VerificationError: a figure is impossible under the published seeds.
    """
    runs = {run["run_id"]: run for run in tables["runs"]}
    held, followed, evaluations, unflipped = [], [], [], 0
    for name, run in runs.items():
        curve = _steps(run, "training_steps", tables)
        if run["flip_rate"]:
            progress(f"draws of {name}")
            held.append(_held_run(run, curve))
        else:
            unflipped += sum(_check(row, row["rollouts"], 0) for row in curve)
        if run["fault_rate"]:
            followed.append(_followed(run, curve, _steps(run, "reference_steps", tables)))
    for row in tables["evaluations"]:
        if row["regime"].startswith("flips"):
            drawn = _drawn_in_evaluation(row, float(runs[row["run_id"]]["flip_rate"]))
            _check(row, row["episodes"], drawn)
            evaluations.append((row, drawn))
        else:
            unflipped += _check(row, row["episodes"], 0)
    return Audit(tuple(held), tuple(followed), tuple(evaluations), unflipped)


def _steps(run: Row, table: str, tables: Rows) -> list[Row]:
    """Return a run's rows of a table, which has one a training step."""
    found = [row for row in tables[table] if row["run_id"] == run["run_id"]]
    if len(found) != run["steps"] or any(row["step"] != at for at, row in enumerate(found)):
        raise DamagedError(
            f"{table} does not have every training step of a run once",
            expected=f"steps 0 to {run['steps'] - 1}",
            found=f"{len(found)} rows",
            where=run["run_id"],
        )
    return found


def _followed(run: Row, curve: Sequence[Row], played: Sequence[Row]) -> Followed:
    trained = _changes([row["successes"] for row in curve])
    own, others = (
        _correlation(run, trained, _changes([row[column] for row in played]))
        for column in ("successes", "other_successes")
    )
    return Followed(run, own, others)


def _correlation(run: Row, some: Sequence[int], others: Sequence[int]) -> float:
    try:
        return correlation(some, others)
    except StatisticsError as error:
        problem = "figures of a run's training steps are too few, or all the same"
        raise DamagedError(problem, found=error, where=run["run_id"]) from None


def _changes(values: Sequence[int]) -> list[int]:
    """Return the changes from step to step, which know no trend."""
    return [after - before for before, after in pairwise(values)]


class Reference:
    """The published scripted agents, who play what the registers say of them; their tasks have no words."""

    def __init__(self, runs: Sequence[Row], progress: Say = lambda _: None) -> None:
        self._words, self._runs = placeholders(), {run["run_id"]: run for run in runs}
        self._made = pools(self._words, progress)
        self.tasks = check_structure(self._made)
        self._stages: dict[str, list[Stage]] = {}
        self._orders = {seed: training_order(seed) for seed in {run["seed"] for run in runs}}

    def agent(self, row: Row) -> Row:
        """Return a row of `reference_agents` as it comes out."""
        condition, recovers = _known(CONDITIONS, row, "regime"), AGENTS[row["agent"]]
        pool, _ = _known(POOLS, row, "pool")
        if pool not in self._stages:
            self._stages[pool] = [stage(task, self._words) for task in self._made[pool]]
        return {**row, **counts(self._stages[pool], condition, recovers=recovers)}

    def step(self, row: Row) -> Row:
        """Return a row of `reference_steps` as it comes out."""
        run = self._runs[row["run_id"]]
        order, condition = self._orders[run["seed"]], Condition(float(run["fault_rate"]))
        prompts = run["prompts_per_step"]
        rows = range(row["step"] * prompts, (row["step"] + 1) * prompts)
        tasks = {at: self._made["train"][order[at % len(order)]] for at in rows}
        stages = {at: stage(task, self._words) for at, task in tasks.items()}
        found = {name: row[name] for name in ("run_id", "condition", "arm", "seed", "step")}
        for kind, seed in (("", run["seed"]), ("other_", (run["seed"] + 1) % CONTROLS)):
            schedules = _schedules(run, seed, row["step"])
            played = [play(stages[at], condition, own, recovers=True) for at, own in schedules]
            found["episodes"] = len(played)
            found[f"{kind}successes"] = sum(each.success for each in played)
            found[f"{kind}calls"] = sum(each.calls for each in played)
        return found


def play_again(tables: Rows, sample: int, seed: int, progress: Say = lambda _: None) -> str:
    """Generate the published tasks without their words, play random rows of the agents, and say so.

    Raises:
        VerificationError: the tasks come out otherwise.
        DamagedError: a row does.
    """
    reference = Reference(tables["runs"], progress)
    makes = {"reference_agents": reference.agent, "reference_steps": reference.step}
    rows = [(name, row) for name in makes for row in tables[name]]
    chosen = random.Random(seed).sample(rows, min(sample, len(rows)))  # noqa: S311 - no secret
    for done, (name, row) in enumerate(chosen, 1):
        progress(f"row {done} of {len(chosen)}: {name}")
        compare(name, [makes[name](row)], [row])
    return (
        f"{reference.tasks} tasks come out of seed {SEED} as published, but for their words; {len(chosen)} "
        f"of {len(rows)} rows of the published agents played again, all as registered (seed {seed})"
    )


def bounds(successes: int, episodes: int, drawn: int) -> tuple[int, int]:
    """Return the least and the most successes that can be lost to so many flips."""
    return max(0, successes - (episodes - drawn)), min(successes, drawn)


def _known(known: Mapping[str, T], row: Row, column: str) -> T:
    """Return what a word of a row means here."""
    if row[column] not in known:
        raise DamagedError(
            f"the authors published nothing of this {column}",
            expected=" or ".join(known),
            found=row[column],
            where=_place(row),
        )
    return known[row[column]]


def is_possible(lost: int, successes: int, episodes: int, drawn: int) -> bool:
    """Whether so many successes can be lost to so many flips."""
    least, most = bounds(successes, episodes, drawn)
    return least <= lost <= most


def _check(row: Row, episodes: int, drawn: int) -> bool:
    """Refuse a row whose loss its draws exclude, or whose flips are not what it lost."""
    lost = row["successes"] - row["observed_successes"]
    if is_possible(lost, row["successes"], episodes, drawn) and row.get("flipped", lost) == lost:
        return True
    raise VerificationError(
        "lost successes are impossible under the published seeds",
        expected=f"what {drawn} flips in {episodes} episodes can take from {row['successes']} successes",
        found=f"{lost} lost, {row.get('flipped', lost)} flipped",
        where=_place(row),
    )


def _place(row: Row) -> str:
    names = ("run_id", "phase", "pool", "regime", "agent", "step")
    return ", ".join(f"{name}={row[name]}" for name in names if name in row)


def _held_run(run: Row, curve: Sequence[Row]) -> HeldRun:
    lost = tuple(row["successes"] - row["observed_successes"] for row in curve)
    rate, share = float(run["flip_rate"]), run["group_size"] if run["arm"] == "paired" else 1

    def held(seed: int, *, by_slot: bool = False) -> Held:
        drawn = tuple(
            share
            * sum(_is_flipped(own, rate) for _, own in _schedules(run, seed, row["step"], by_slot=by_slot))
            for row in curve
        )
        impossible = tuple(
            row["step"]
            for row, n, flips in zip(curve, lost, drawn, strict=True)
            if not is_possible(n, row["successes"], row["rollouts"], flips)
        )
        return Held(drawn, impossible, _correlation(run, lost, drawn))

    own = held(run["seed"])
    for row, drawn in zip(curve, own.drawn, strict=True):
        _check(row, row["rollouts"], drawn)
    others = tuple(held(seed) for seed in range(CONTROLS) if seed != run["seed"])
    by_slot = None if run["arm"] == "paired" else held(run["seed"], by_slot=True)
    ends = (bounds(row["successes"], row["rollouts"], f) for row, f in zip(curve, own.drawn, strict=True))
    return HeldRun(run, lost, own, others, by_slot, tuple(ends))


def _schedules(run: Row, seed: int, step: int, *, by_slot: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the row and the seed of each schedule of a step.

    In the authors' code a rollout of the independent design draws by its environment's instance and by how
    many episodes that has played; in the paper's words by its slot.
    """
    prompts, size = run["prompts_per_step"], run["group_size"]
    for group in range(prompts):
        row = step * prompts + group
        shared = training_seed(seed, run["condition"], row)
        if run["arm"] == "paired":
            yield row, shared
            continue
        for slot in range(size):
            yield row, independent_seed(shared, *((slot, 0) if by_slot else (group * size + slot, step)))


def _drawn_in_evaluation(row: Row, rate: float) -> int:
    pool, schedules = _known(POOLS, row, "pool")
    tasks = range(row["episodes"] // len(schedules))
    seeds = (evaluation_seed(f"{pool}-{task:05d}", index) for task in tasks for index in schedules)
    return sum(_is_flipped(seed, rate) for seed in seeds)


def _is_flipped(seed: int, rate: float) -> bool:
    return Schedule(seed, Condition(q=rate)).flips()
