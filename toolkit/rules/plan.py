"""The matrix of runs and the probe's plan that a rules file registers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from toolkit.errors import DamagedError, RuleError
from toolkit.registers.columns import BATTERIES, POOLS, REGIMES, ROLES, Type
from toolkit.registers.row_tables import SCORED
from toolkit.registers.schema import RUNS
from toolkit.rules.endpoints import SCALINGS, Endpoint
from toolkit.rules.sections import Exact, Sha256, Spans, Text, Texts, Wholes, exact_number
from toolkit.rules.terms import OF_TOOLKIT, Terms
from toolkit.rules.values import Missing, exact
from toolkit.structs import Document, about, as_builtins, one_of, replace

WORLDS = ("bfcl_turns", "bfcl_scenarios", "published")
Row = Mapping[str, Any]
Fixed = str | Fraction


class Columns(dict[str, Fixed]):
    """Columns of `runs`, and what a run must have there to count."""

    @classmethod
    def decoded(cls, content: Any) -> "Columns":
        """Parse a table of columns."""
        if not isinstance(content, dict):
            raise TypeError(f"Expected `object`, got {content!r}")
        return cls({name: _fixed(name, value) for name, value in content.items()})


class Checkpoints(Document, frozen=True):
    """Checkpoints of another study that runs evaluate; they train nothing."""

    study: Annotated[Text, about("the study that trained them")]
    condition: Annotated[Text, about("their condition there")]
    sha256: Annotated[
        dict[str, tuple[Sha256, ...]], about("by arm, SHA-256 of what the run of each seed left")
    ]


class Settings(Document, frozen=True, kw_only=True):
    """What a line of a matrix may set of its runs."""

    sampling: Annotated[str, one_of(("own", "shared"), "whether arms share policy samples")] = ""
    optimizer: Annotated[str, one_of(("adam", "gradient", "sign"), "how a gradient becomes a step")] = ""
    learning_rate: Annotated[Exact, about("step size, above 0")] = ""
    square_decay: Annotated[Exact, about("decay of Adam's mean of squares, from 0, below 1")] = ""
    loss_type: Annotated[str, one_of(("dapo", "dr_grpo"), "aggregation of token losses")] = ""
    constant_groups: Annotated[str, one_of(("kept", "resampled"), "what becomes of groups of one reward")] = (
        ""
    )
    surface_tokens: Annotated[int, about("tokens that change no action, a call", ge=0)] | None = None
    checkpoint_every: Annotated[int, about("training steps between checkpoints", ge=1)] | None = None
    registers: Annotated[str, one_of(("all", "no_checkpoints", "evaluations"), "rows that are kept")] = ""
    checkpoints: Annotated[
        Checkpoints | None, about("checkpoints of another study to evaluate; its runs train nothing")
    ] = None
    sub_requests: Annotated[int, about("requests in one task", ge=1)] | None = None
    world: Annotated[str, one_of(WORLDS, "where tasks come from, if not from the back office")] = ""
    pools: Annotated[dict[str, str] | None, about("the SHA-256 of the tasks of each pool")] = None

    def __post_init__(self) -> None:
        if self.learning_rate and Fraction(self.learning_rate) <= 0:
            raise ValueError(f"`learning_rate` is above 0, and not {self.learning_rate}")
        if self.square_decay and not 0 <= Fraction(self.square_decay) < 1:
            raise ValueError(f"`square_decay` is from 0, below 1, and not {self.square_decay}")

    def given(self) -> dict[str, Any]:
        """Return what is set, by name."""
        return {name: value for name, value in as_builtins(self).items() if value not in ("", None)}


class Cell(Document, frozen=True, kw_only=True):
    """One line of the registered run matrix."""

    tier: Annotated[int, about("order in which the budget is spent")]
    condition: Annotated[Text, about("what its runs work under, by name")]
    noise: Annotated[Text, about("what they train under, in words")]
    arms: Annotated[Texts, about("their arms: words of `[words]`, or the toolkit's")]
    seeds: Annotated[Wholes, about("their seeds; a run for each arm and seed")]
    scale_rewards: Annotated[str, one_of(SCALINGS, "how rewards are scaled, if the study does so")] = ""
    fixed: Annotated[Columns, about("columns of `runs`, and what a run must have there to count")] = (
        msgspec.field(default_factory=Columns)
    )
    serves: Annotated[Texts, about("the rules and curves that its runs are for")] = msgspec.field(name="for")
    regime: Annotated[str, one_of(REGIMES, "noise of training, for runs that are played here")] = ""
    at_noise: Annotated[str, one_of(REGIMES, "noise of periodic evaluation; else that of `regime`")] = ""
    battery: Annotated[str, one_of(BATTERIES, "which evaluation sets its runs are played on")] = BATTERIES[0]
    role: Annotated[str, one_of(ROLES, "role of its runs; the arm says it where left out")] = ""
    settings: Annotated[Settings, about("how its runs are played, where not as usual")] = Settings()
    spans: Spans = ()

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
    training: Mapping[str, Fixed],
    cells: Sequence[Cell],
    terms: Terms = OF_TOOLKIT,
    recipe: Mapping[str, Any] | None = None,
) -> Plan:
    """Return the registered matrix, with what is fixed for every run alike."""
    if not roles:
        raise RuleError(
            "deciding roles are roles of runs, at least one",
            expected=", ".join(ROLES),
            found="none",
            where="deciding_roles",
        )
    whole = (replace(cell, fixed=Columns({**training, **cell.fixed})) for cell in cells)
    plan = Plan(roles, tuple(whole), recipe or {})
    for cell in cells:
        _check_cell(cell, terms)
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


def _check_cell(cell: Cell, terms: Terms) -> None:
    if cell.at_noise and not cell.regime:
        problem = "a line of the matrix names a regime of evaluation, and none of training"
        raise RuleError(problem, expected="regime", found=f"at_noise = {cell.at_noise}", where="matrix")
    if cell.regime and not cell.scale_rewards:
        problem = "runs that are played here say how rewards are scaled"
        raise RuleError(problem, expected="scale_rewards", where="matrix")
    unknown = [arm for arm in cell.arms if arm not in terms.arms]
    if unknown:
        raise RuleError(
            "the matrix has an unknown arm",
            expected=", ".join(terms.arms),
            found=", ".join(unknown),
            remedy="a study with arms of its own declares them: [words] arm = [...]",
        )


def _fixed(name: str, value: object) -> Fixed:
    column = RUNS.column(name)
    if column is None:
        problem = f"register 'runs' has no column {name!r}"
        raise RuleError(problem, expected=", ".join(RUNS.column_names), where="matrix")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"Expected `str` or a number of {name!r}, got {value!r}")
    if column.type is Type.STRING:
        return str(value)
    if column.type.is_number:
        return exact_number(str(value))
    problem = f"column {name!r} of 'runs' cannot be fixed"
    raise RuleError(problem, found=column.type.value, where="matrix")


_SMALLEST_GROUP = 2  # one rollout has nothing to be compared with
_FEWEST_TASKS = 2  # tasks are resampled


class ProbeSet(Document, frozen=True, kw_only=True):
    """Episodes that the probe scores at every checkpoint."""

    pool: Annotated[str, one_of(POOLS, "task pool; its first tasks are played")]
    regime: Annotated[str, one_of(REGIMES, "noise that they are played under")]
    tasks: Annotated[int, about("how many tasks", ge=_FEWEST_TASKS)]


class OutcomeSet(ProbeSet, frozen=True, kw_only=True):
    """Those over whose successes the grader's flips are enumerated."""

    rollouts: Annotated[
        Annotated[int, Meta(ge=_SMALLEST_GROUP)] | None,
        about("rollouts a task; else as many as a group has"),
    ] = None


class TransitionSet(ProbeSet, frozen=True, kw_only=True):
    """Those under tool faults; a stratified group takes one rollout under each of some of the schedules."""

    schedules: Annotated[int, about("schedules a task, at least `group_size`: one for each rollout")]
    groups: Annotated[int, about("groups resampled for each task and design", ge=1)]


class ProbePlan(Document, frozen=True, kw_only=True):
    """The design of the probe; what it plays and regroups derives from its anchor."""

    tiers: Annotated[Wholes, about("every run of these tiers is probed; the untrained policy once")]
    scored: Annotated[
        tuple[Annotated[str, one_of(SCORED)], ...],
        about("coordinates of scores: all, or those of actions alone"),
    ]
    group_size: Annotated[int, about("rollouts a group, G", ge=_SMALLEST_GROUP)]
    flip_rate: Annotated[Fraction, about("flip rate of the grader, q, between 0 and 1")]
    outcome: Annotated[OutcomeSet, about("episodes over whose successes the grader's flips are enumerated")]
    transition: Annotated[TransitionSet, about("episodes under tool faults")]
    level: Annotated[Fraction, about("confidence level of the intervals, between 0 and 1")]
    resamples: Annotated[int, about("bootstrap resamples of tasks", ge=1)]
    rng_seed: Annotated[int, about("seed of the bootstrap", ge=0)]
    steps: Annotated[
        Wholes, about("checkpoints that are probed, in training steps; else all", min_length=1)
    ] = ()
    runs: Annotated[Texts, about("the only runs of `tiers` that are probed; else all", min_length=1)] = ()


def check_probe(probe: ProbePlan, plan: Plan, where: str = "probe") -> None:
    """Check a registered probe: its numbers, and that it is of runs of the matrix."""
    from toolkit.estimators.moments import LARGEST_GROUP  # where a probe is registered alone

    size, schedules, tiers = probe.group_size, probe.transition.schedules, {c.tier for c in plan.cells}
    probed = [cell.fixed.get("steps") for cell in plan.cells if cell.tier in probe.tiers]
    last = min((steps for steps in probed if isinstance(steps, Fraction)), default=None)
    steps, runs = probe.steps, probe.runs
    of_actions = bool(plan.recipe) and probe.scored != SCORED[:1]
    problems: tuple[tuple[bool, str, object, object], ...] = (
        *(
            (
                not named or len(set(named)) != len(named) or not set(named) <= set(allowed),
                f"{key!r} names something twice, something unknown, or nothing",
                ", ".join(map(str, allowed)),
                named,
            )
            for key, named, allowed in (
                ("tiers", probe.tiers, sorted(tiers)),
                ("scored", probe.scored, SCORED),
            )
        ),
        (
            of_actions,  # of a language model, no coordinates are the actions' alone
            "a language model has no coordinates of actions alone",
            f"scored = {SCORED[0]}",
            probe.scored,
        ),
        *(
            (number > LARGEST_GROUP, f"{key!r} is too large", f"at most {LARGEST_GROUP}", number)
            for key, number in (("group_size", size), ("rollouts", probe.outcome.rollouts or size))
        ),
        *(
            (not 0 < number < 1, f"{key!r} lies between 0 and 1, ends excluded", None, number)
            for key, number in (("flip_rate", probe.flip_rate), ("level", probe.level))
        ),
        # A stratified group has its rollouts under as many schedules: one under each.
        (schedules < size, "'schedules' is too small", f"at least {size}", schedules),
        (
            min(steps, default=1) < 1 or len(set(steps)) < len(steps),
            "'steps' names a step twice, one before 1, or none",
            "steps of checkpoints; the untrained policy is probed in any case",
            steps,
        ),
        (
            last is not None and max(steps, default=0) > last,
            "'steps' names a step after the end of a run that is probed",
            f"at most {last}",
            steps,
        ),
        (
            len(set(runs)) < len(runs),
            "'runs' names a run twice, or none",
            "names of runs; every run of the tiers where it is left out",
            runs,
        ),
    )
    for wrong, problem, expected, found in problems:
        if wrong:
            named = ", ".join(map(str, found)) or "nothing" if isinstance(found, tuple) else found
            raise RuleError(problem, expected=expected, found=named, where=where)


def run_name(condition: str, arm: str, scale_rewards: str, seed: int) -> str:
    """Return the name of a run: its place in the matrix; advantages that are not scaled are marked."""
    scaling = () if scale_rewards == "group" else (scale_rewards,)
    return "-".join((condition.lower(), arm, *scaling, f"s{seed}"))
