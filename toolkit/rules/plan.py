"""The matrix of runs and the probe's plan that a rules file registers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from toolkit.errors import DamagedError, RuleError
from toolkit.registers.columns import BATTERIES, POOLS, REGIMES, ROLES, Type
from toolkit.registers.row_tables import SCORED
from toolkit.registers.schema import RUNS
from toolkit.rules.endpoints import SCALINGS, Endpoint
from toolkit.rules.sections import OPTIONAL, SPANS, Key, Section, Value, exact_number, keys
from toolkit.rules.terms import OF_TOOLKIT, Terms
from toolkit.rules.values import Missing, exact

Row = Mapping[str, Any]
Fixed = str | Fraction

FIXED = keys(
    *(
        Key(column.name, Value.NUMBER if column.type.is_number else Value.SCALAR, column.meaning, OPTIONAL)
        for column in RUNS.columns
        if column.type is Type.STRING or column.type.is_number
    )
)
"""Columns of `runs` that the matrix can fix."""
CELL = keys(
    Key("tier", Value.WHOLE, "order in which the budget is spent"),
    Key("condition", Value.TEXT, "what its runs work under, by name"),
    Key("noise", Value.TEXT, "what they train under, in words"),
    Key("arms", Value.TEXTS, "their arms: words of `[words]`, or the toolkit's"),
    Key("seeds", Value.WHOLES, "their seeds; a run for each arm and seed"),
    Key("scale_rewards", Value.TEXT, "how rewards are scaled, if the study does so", OPTIONAL, SCALINGS),
    Key("fixed", FIXED, "columns of `runs`, and what a run must have there to count", OPTIONAL),
    Key("for", Value.TEXTS, "the rules and curves that its runs are for"),
    Key("regime", Value.TEXT, "noise of training, for runs that are played here", OPTIONAL, REGIMES),
    Key("at_noise", Value.TEXT, "noise of periodic evaluation; else that of `regime`", OPTIONAL, REGIMES),
    Key("battery", Value.TEXT, "which evaluation sets its runs are played on", BATTERIES[0], BATTERIES),
    Key("role", Value.TEXT, "role of its runs; the arm says it where left out", OPTIONAL, ROLES),
    Key("settings", Value.TABLE, "how its runs are played, where not as usual", OPTIONAL),
    SPANS,
)


@dataclass(frozen=True)
class Cell:
    """One line of the registered run matrix: the keys of `CELL`."""

    tier: int
    condition: str
    noise: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    scale_rewards: str
    fixed: dict[str, Fixed]  # what `[training]` fixes for every run included
    serves: tuple[str, ...]  # the rules and curves that the runs are for
    regime: str = ""
    at_noise: str = ""
    battery: str = BATTERIES[0]
    role: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)  # who plays the runs knows the names
    spans: tuple[str, ...] = ()

    def holds(self, condition: str, scale_rewards: str, arm: str, seed: int) -> bool:
        """Whether a run belongs to the cell."""
        is_group = (self.condition, self.scale_rewards) == (condition, scale_rewards)
        return is_group and arm in self.arms and seed in self.seeds


@dataclass(frozen=True)
class Plan:
    """The registered runs, and the roles of those that enter decisions."""

    roles: tuple[str, ...]  # of the runs that enter decisions
    cells: tuple[Cell, ...]  # the lines of the matrix
    recipe: Mapping[str, Any] = field(default_factory=dict)  # settings of language models' training

    def cell(self, condition: str, scale_rewards: str, arm: str, seed: int) -> Cell | None:
        """Return the cell that a run belongs to, or None where it was not registered."""
        return next((cell for cell in self.cells if cell.holds(condition, scale_rewards, arm, seed)), None)

    def begun(self, cell: Cell, runs: Sequence[Row]) -> bool:
        """Whether any deciding run of a cell exists."""
        return any(run["role"] in self.roles and cell.holds(*place_of(run)) for run in runs)

    def deciding_runs(self, endpoint: Endpoint, runs: Sequence[Row]) -> dict[tuple[str, int], str | Missing]:
        """Find the one deciding run of every arm and seed that an endpoint reads.

        A cell of which no run exists was not run; a single missing run is a gap in the evidence.
        """
        of_condition = [run for run in runs if run["condition"] == endpoint.condition]
        by_place: dict[tuple[str, str, str, int], list[Row]] = {}
        for run in of_condition:
            if run["role"] in self.roles:
                by_place.setdefault(place_of(run), []).append(run)
        return {
            (arm, seed): self._deciding_run(endpoint, arm, seed, of_condition, by_place)
            for arm in endpoint.arms
            for seed in endpoint.seeds
        }

    def _deciding_run(
        self,
        endpoint: Endpoint,
        arm: str,
        seed: int,
        runs: Sequence[Row],
        by_place: Mapping[tuple[str, str, str, int], Sequence[Row]],
    ) -> str | Missing:
        key = (endpoint.condition, endpoint.scale_rewards, arm, seed)
        matching = by_place.get(key, ())
        name = described(endpoint, arm, seed)
        if len(matching) > 1:
            raise DamagedError(
                "two deciding runs stand in one place of the matrix",
                expected=f"one run for {name}",
                found=", ".join(run["run_id"] for run in matching),
                where="runs",
            )
        cell = self.cell(*key)
        if not matching:
            begun = cell is not None and self.begun(cell, runs)
            return Missing(not_run=not begun, reasons=(f"{name} was not run",))
        return _counts(matching[0], cell.fixed if cell else {})


def place_of(run: Row) -> tuple[str, str, str, int]:
    """Return a run's condition, reward scaling, arm and seed; no scaling where its study recorded none."""
    return run["condition"], run.get("scale_rewards") or "", run["arm"], run["seed"]


def described(endpoint: Endpoint, arm: str, seed: int) -> str:
    """Return the place of a run in words."""
    how = "" if endpoint.scale_rewards in {"", "group"} else f" with scale_rewards {endpoint.scale_rewards}"
    return f"{endpoint.condition} {arm} seed {seed}{how}"


def read_plan(
    roles: tuple[str, ...],
    training: dict[str, Any],
    cells: list[Any],
    terms: Terms = OF_TOOLKIT,
    recipe: Mapping[str, Any] | None = None,
) -> Plan:
    """Read the registered matrix."""
    if not roles or not set(roles) <= set(ROLES):
        raise RuleError(
            "deciding roles are roles of runs, at least one",
            expected=", ".join(ROLES),
            found=", ".join(roles) or "none",
            where="deciding_roles",
        )
    plan = Plan(roles, tuple(_cell(content, training, terms) for content in cells), recipe or {})
    places = Counter(
        (c.condition, c.scale_rewards, arm, s) for c in plan.cells for arm in c.arms for s in c.seeds
    )
    twice = {key for key, number in places.items() if number > 1}
    if twice:
        raise RuleError("the matrix has a run twice", found=min(twice), where="matrix")
    return plan


def _counts(run: Row, fixed: Mapping[str, Fixed]) -> str | Missing:
    """Return a run's name if it counts: its evidence complete, its fixed values the registered ones."""
    name = str(run["run_id"])
    if run["status"] != "COMPLETE":
        return Missing(not_run=False, reasons=(f"{name} is not complete",))
    wrong = [
        f"{name} has {column} {run.get(column)}, and {expected} is registered"
        for column, expected in fixed.items()
        if not _is_fixed(run.get(column), expected)
    ]
    return Missing(not_run=False, reasons=tuple(wrong)) if wrong else name


def _is_fixed(value: Any, expected: Fixed) -> bool:
    if isinstance(expected, Fraction) and value is not None:
        return exact(value) == expected
    return bool(value == expected)


def _cell(content: object, training: dict[str, Any], terms: Terms) -> Cell:
    section = Section(content, "matrix", CELL)
    fixed = _fixed({**training, **section.table("fixed")})
    cell = Cell(fixed=fixed, serves=section.texts("for"), **section.rest())
    if cell.at_noise and not cell.regime:
        problem = "a line of the matrix names a regime of evaluation, and none of training"
        raise section.wrong(problem, expected="regime", found=f"at_noise = {cell.at_noise}")
    if cell.regime and not cell.scale_rewards:
        raise section.wrong("runs that are played here say how rewards are scaled", expected="scale_rewards")
    unknown = [arm for arm in cell.arms if arm not in terms.arms]
    if unknown:
        raise RuleError(
            "the matrix has an unknown arm",
            expected=", ".join(terms.arms),
            found=", ".join(unknown),
            remedy="a study with arms of its own declares them: [words] arm = [...]",
        )
    return cell


def _fixed(content: dict[str, Any]) -> dict[str, Fixed]:
    fixed: dict[str, Fixed] = {}
    for name, value in content.items():
        column = RUNS.column(name)
        if column is None:
            problem = f"register 'runs' has no column {name!r}"
            raise RuleError(problem, expected=", ".join(RUNS.column_names), where="matrix")
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise RuleError(f"{name!r} has the wrong type", expected="str", found=repr(value), where="matrix")
        if column.type is Type.STRING:
            fixed[name] = str(value)
        elif column.type.is_number:
            fixed[name] = exact_number(str(value), f"matrix.fixed.{name}")
        else:
            problem = f"column {name!r} of 'runs' cannot be fixed"
            raise RuleError(problem, found=column.type.value, where="matrix")
    return fixed


_SMALLEST_GROUP = 2  # one rollout has nothing to be compared with
_FEWEST_TASKS = 2  # tasks are resampled

_PLAYED = (
    Key("pool", Value.TEXT, "task pool; its first tasks are played", choices=POOLS),
    Key("regime", Value.TEXT, "noise that they are played under", choices=REGIMES),
    Key("tasks", Value.WHOLE, "how many tasks", least=_FEWEST_TASKS),
)
OUTCOME = keys(
    *_PLAYED,
    Key(
        "rollouts",
        Value.WHOLE,
        "rollouts a task; else as many as a group has",
        OPTIONAL,
        least=_SMALLEST_GROUP,
    ),
)
TRANSITION = keys(
    *_PLAYED,
    Key("schedules", Value.WHOLE, "schedules a task, at least `group_size`: one for each rollout"),
    Key("groups", Value.WHOLE, "groups resampled for each task and design", least=1),
)
PROBE = keys(
    Key("tiers", Value.WHOLES, "every run of these tiers is probed; the untrained policy once"),
    Key("scored", Value.TEXTS, "coordinates of scores: all, or those of actions alone", choices=SCORED),
    Key("group_size", Value.WHOLE, "rollouts a group, G", least=_SMALLEST_GROUP),
    Key("flip_rate", Value.DECIMAL, "flip rate of the grader, q, between 0 and 1"),
    Key("outcome", OUTCOME, "episodes over whose successes the grader's flips are enumerated"),
    Key("transition", TRANSITION, "episodes under tool faults"),
    Key("level", Value.DECIMAL, "confidence level of the intervals, between 0 and 1"),
    Key("resamples", Value.WHOLE, "bootstrap resamples of tasks", least=1),
    Key("rng_seed", Value.WHOLE, "seed of the bootstrap", least=0),
    Key("steps", Value.WHOLES, "checkpoints that are probed, in training steps; else all", OPTIONAL),
    Key("runs", Value.TEXTS, "the only runs of `tiers` that are probed; else all", OPTIONAL),
)


@dataclass(frozen=True)
class ProbeSet:
    """Episodes that the probe scores at every checkpoint."""

    pool: str  # task pool; its first tasks are played
    regime: str  # noise that they are played under
    tasks: int  # how many tasks
    schedules: int = 1  # schedules a task; the stratified design takes one rollout under each of some of them
    groups: int = 0  # groups resampled for each task and design; 0 where nothing is resampled
    rollouts: int | None = None  # rollouts under each schedule; None for as many as a group has


@dataclass(frozen=True)
class ProbePlan:
    """The design of the probe: the keys of `PROBE`; what it plays and regroups derives from its anchor."""

    tiers: tuple[int, ...]
    scored: tuple[str, ...]
    group_size: int
    flip_rate: Fraction
    outcome: ProbeSet
    transition: ProbeSet
    level: Fraction
    resamples: int
    rng_seed: int
    steps: tuple[int, ...] = ()
    runs: tuple[str, ...] = ()


def read_probe(content: object, plan: Plan, where: str = "probe") -> ProbePlan:
    """Read the table `[probe]`."""
    section = Section(content, where, PROBE)
    tiers = section.wholes("tiers")
    _check_listed(section, "tiers", tiers, sorted({cell.tier for cell in plan.cells}))
    scored = section.texts("scored")
    _check_listed(section, "scored", scored, SCORED)
    if plan.recipe and scored != SCORED[:1]:  # of a language model, no coordinates are the actions' alone
        raise section.wrong(
            "a language model has no coordinates of actions alone",
            expected=f"scored = {SCORED[0]}",
            found=", ".join(scored),
        )
    group_size = _size(section, "group_size")
    return ProbePlan(
        tiers=tiers,
        scored=scored,
        group_size=group_size,
        flip_rate=_inside(section, "flip_rate"),
        outcome=_set(Section(section.table("outcome"), f"{where}.outcome", OUTCOME)),
        transition=_set(Section(section.table("transition"), f"{where}.transition", TRANSITION), group_size),
        level=_inside(section, "level"),
        steps=_steps(section, tiers, plan),
        runs=_runs(section),
        **section.rest(),
    )


def _set(section: Section, group_size: int | None = None) -> ProbeSet:
    """Read the episodes of a kind of noise; those under tool faults are put into groups of a size."""
    played = section.text("pool"), section.text("regime"), section.whole("tasks")
    if group_size is None:
        read = ProbeSet(*played, rollouts=_size(section, "rollouts") if section.has("rollouts") else None)
    else:
        read = ProbeSet(*played, schedules=section.whole("schedules"), groups=section.whole("groups"))
    section.done()
    # A stratified group has its rollouts under as many schedules: one under each.
    if group_size is not None and read.schedules < group_size:
        problem = "'schedules' is too small"
        raise section.wrong(problem, expected=f"at least {group_size}", found=read.schedules)
    return read


def _steps(section: Section, tiers: tuple[int, ...], plan: Plan) -> tuple[int, ...]:
    if not section.has("steps"):
        return ()
    steps = section.wholes("steps")
    if not steps or min(steps) < 1 or len(set(steps)) < len(steps):
        raise section.wrong(
            "'steps' names a step twice, one before 1, or none",
            expected="steps of checkpoints; the untrained policy is probed in any case",
            found=", ".join(map(str, steps)) or "nothing",
        )
    trained = [cell.fixed["steps"] for cell in plan.cells if cell.tier in tiers and "steps" in cell.fixed]
    last = min((steps_of for steps_of in trained if not isinstance(steps_of, str)), default=None)
    if last is not None and max(steps) > last:
        raise section.wrong(
            "'steps' names a step after the end of a run that is probed",
            expected=f"at most {last}",
            found=max(steps),
        )
    return steps


def _runs(section: Section) -> tuple[str, ...]:
    """Read which runs alone are probed; whoever specifies the runs knows their names."""
    if not section.has("runs"):
        return ()
    runs = section.texts("runs")
    if not runs or len(set(runs)) < len(runs):
        raise section.wrong(
            "'runs' names a run twice, or none",
            expected="names of runs; every run of the tiers where it is left out",
            found=", ".join(runs) or "nothing",
        )
    return runs


def _size(section: Section, key: str) -> int:
    """Read how many rollouts a group has."""
    from toolkit.estimators.moments import LARGEST_GROUP  # where a probe is registered alone

    size = section.whole(key)
    if size > LARGEST_GROUP:
        raise section.wrong(f"{key!r} is too large", expected=f"at most {LARGEST_GROUP}", found=size)
    return size


def _inside(section: Section, key: str) -> Fraction:
    value = section.exact(key)
    if value is None or not 0 < value < 1:
        raise section.wrong(f"{key!r} lies between 0 and 1, ends excluded", found=value)
    return value


def _check_listed(section: Section, key: str, names: tuple[object, ...], allowed: Sequence[object]) -> None:
    if not names or len(set(names)) != len(names) or not set(names) <= set(allowed):
        raise section.wrong(
            f"{key!r} names something twice, something unknown, or nothing",
            expected=", ".join(map(str, allowed)),
            found=", ".join(map(str, names)) or "nothing",
        )


def run_name(condition: str, arm: str, scale_rewards: str, seed: int) -> str:
    """Return the name of a run: its place in the matrix; advantages that are not scaled are marked."""
    scaling = () if scale_rewards == "group" else (scale_rewards,)
    return "-".join((condition.lower(), arm, *scaling, f"s{seed}"))
