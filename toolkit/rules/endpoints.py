"""Endpoints: what a rule measures, and how its intervals are made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from toolkit.errors import RuleError
from toolkit.registers.columns import EXCLUDED, FAILURE, TREATMENTS
from toolkit.registers.schema import TABLES
from toolkit.rules.sections import OPTIONAL, SPANS, Key, Named, Section, Value, alike, identifier, keys
from toolkit.rules.terms import OF_TOOLKIT, EvaluationSet, Terms, check_columns, check_conditions

PERCENTILE = "percentile bootstrap"
# Intervals made of the differences of tasks alone, averaged over seeds.
T_OVER_TASKS = "t over tasks"
BCA = "bca bootstrap"
OVER_TASKS = (T_OVER_TASKS, BCA)
# Intervals made of the values of seeds alone: no task is resampled, and nothing is crossed.
SEED_BOOTSTRAP = "seed bootstrap"
T_OVER_SEEDS = "t over seeds"
BY_SEED = (SEED_BOOTSTRAP, T_OVER_SEEDS)
METHODS_SAY = {
    PERCENTILE: "seed pairs and tasks are drawn with replacement, `crossed` or `nested`: both are samples, "
    "two of each at least; crossed is far too wide where seeds differ by their episodes alone",
    T_OVER_TASKS: "Student's t of the tasks' differences, averaged over seeds, schedules and steps: tasks "
    "are the sample, policies are fixed and seeds play them again; one seed will do; too narrow where each "
    "seed is a training run of its own",
    BCA: "tasks are drawn with replacement, and the ends corrected for bias and skewness: as `t over tasks`, "
    "for differences that are skewed; a little narrower with few tasks",
    T_OVER_SEEDS: "Student's t of the seeds' differences: training runs are the sample, tasks are fixed; two "
    "seeds at least; too narrow for other tasks where many seeds meet tasks on which the effect differs",
    SEED_BOOTSTRAP: "seeds are drawn with replacement, once for all that a formula reads: the only method "
    "for a statistic; too narrow with fewer than some twenty seeds",
}
"""Method of an interval → what it does, and when its level holds."""
DRAWN = (PERCENTILE, SEED_BOOTSTRAP, BCA)
"""Methods that draw at random."""


UNITS_OF_ANALYSIS = ("seed", "run", "checkpoint", "pooled", "row")
LONGEST_STEP = 9
OVER_STEPS_SAY = {
    "auc": "trapezoidal mean over the steps",
    "auc_gain": "the trapezoidal mean less the value at the first step: what training gained",
    "mean": "plain mean over the steps",
    "steps_to_threshold": "the first step that reaches `threshold`, interpolated; missing where none does",
}
COUNTED_BY_TASK = {
    "successes": "true_success",
    "observed_successes": "observed_reward",
    **{name: name for name in ("score", "calls", "tokens", "cost")},
}
"""What a count of `evaluations` counts, as a column of `episodes`."""
MEANS = f"one of {', '.join(COUNTED_BY_TASK)} of episodes, by seed or run or pooled"
# Seeded by numpy's SeedSequence, one stream for seed pairs and one for tasks.
GENERATORS = ("PCG64",)
SCALINGS = ("group", "none")

COUNTED = keys(
    Key("count", Value.TEXT, "a column of counts"),
    Key("of", Value.TEXT, "the column of counts that it is a share of"),
)
ADDED = keys(
    Key("sum", Value.TEXT, "a column of sums, such as `score` or `tokens`"),
    Key("of", Value.TEXT, "the column of counts that it is a mean over"),
)
FIGURE = keys(
    Key("figure", Value.TEXT, "a column of numbers"),
    Key("over", Value.TEXT, "the column that it is divided by", OPTIONAL),
)
ENDPOINT = keys(
    Key("title", Value.TEXT, "what it is, in words"),
    Key("register", Value.TEXT, "the table that holds its rows", choices=tuple(TABLES)),
    Key("outcome", (COUNTED, ADDED, FIGURE), "how a row becomes a number"),
    Key("set", Value.TEXT, "the evaluation set whose rows it reads, of `evaluations` alone", OPTIONAL),
    Key("where", Named(Value.TEXT), "text columns that its rows must match, beside those of `set`", OPTIONAL),
    Key("expect", Named(Value.WHOLE), "counts of a complete row, by column; others are missing", OPTIONAL),
    Key("condition", Value.TEXT, "condition of its runs, where it reads runs", OPTIONAL),
    Key("arms", Value.TEXTS, "arms of its runs: one, or two, the first minus the second", OPTIONAL),
    Key("seeds", Value.WHOLES, "seeds of its runs, from 0", OPTIONAL),
    Key("scale_rewards", Value.TEXT, "scaling of rewards; `group` where runs say it", OPTIONAL, SCALINGS),
    Key("by", Value.TEXT, "what each value is of; one alone if pooled or row", choices=UNITS_OF_ANALYSIS),
    Key("steps", Value.WHOLES, "training steps that are read, rising", OPTIONAL),
    Key("over_steps", Value.TEXT, "what several steps are made into", OPTIONAL, OVER_STEPS_SAY),
    Key("threshold", Value.DECIMAL, "what `steps_to_threshold` waits for, in the unit of a row", OPTIONAL),
    Key("checkpoints", Value.TEXTS, "`trajectory@step`, of a series by checkpoint", OPTIONAL),
    Key("unit", Value.TEXT, "unit of its values, which is that of its outcome"),
    Key("range", Value.RANGE, "the smallest and the largest value that it can take, in `unit`"),
    Key("missing", Value.TEXT, "as `counts_as` of [missing], for this endpoint", OPTIONAL, TREATMENTS),
    SPANS,
)
INTERVAL = keys(
    Key("endpoint", Value.TEXT, "the endpoint whose mean it is of, or the statistic"),
    Key("level", Value.DECIMAL, "confidence level, between 0 and 1"),
    Key("method", Value.TEXT, "how it is made", choices=METHODS_SAY),
    Key("resamples", Value.WHOLE, "how many resamples are drawn", least=1, only=("method", DRAWN)),
    Key("resampled", Value.TEXTS, "what is drawn, in words", only=("method", (PERCENTILE,))),
    Key(
        "crossing",
        Value.TEXT,
        "whether tasks are drawn once for all seeds (crossed) or for each",
        choices=("crossed", "nested"),
        only=("method", (PERCENTILE,)),
    ),
    Key("rng_seed", Value.WHOLE, "seed of the draws", least=0, only=("method", DRAWN)),
    Key("rng", Value.TEXT, "generator of the draws", GENERATORS[0], GENERATORS, only=("method", DRAWN)),
    SPANS,
)


@dataclass(frozen=True)
class Rate:
    """A rate of two counts, or of what was added up over a count."""

    count: str
    of: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return (self.count, self.of)


@dataclass(frozen=True)
class Figure:
    """A figure of the register, or its ratio over another."""

    figure: str
    over: str | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return (self.figure, self.over) if self.over else (self.figure,)


@dataclass(frozen=True)
class Endpoint:
    """One endpoint: the keys of `ENDPOINT`, and of its evaluation set."""

    id: str  # its name in tests
    title: str
    register: str
    outcome: Rate | Figure
    where: dict[str, str]  # text columns that the rows must match, the evaluation set's included
    expect: dict[str, int]
    condition: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    scale_rewards: str
    by: str
    steps: tuple[int, ...]
    over_steps: str  # empty for a single step
    threshold: Fraction | None
    checkpoints: tuple[tuple[str, int], ...]  # trajectory and step
    unit: str
    low: Fraction  # low, high: its range
    high: Fraction
    tasks: int = 0  # tasks, schedules: size of the evaluation set; 0 where none was registered
    schedules: int = 0
    attributes: Mapping[str, str] = field(default_factory=dict)  # of the tasks that it is on; empty for all
    most_missing: Fraction = Fraction(0)  # share of an evaluation's episodes that may be without an outcome
    counts_as: str = FAILURE  # what such episodes count as: one of `TREATMENTS`
    spans: tuple[str, ...] = ()

    def covers(self, other: "Endpoint") -> bool:
        """Whether it reads every row that another endpoint reads."""
        same = ("register", "where", "attributes", "condition", "scale_rewards", "checkpoints")
        parts = ("arms", "seeds", "steps")
        return all(getattr(self, name) == getattr(other, name) for name in same) and all(
            set(getattr(other, name)) <= set(getattr(self, name)) for name in parts
        )

    @property
    def is_series(self) -> bool:
        """Whether the endpoint is a series rather than one number."""
        return self.by in ("seed", "run", "checkpoint")


@dataclass(frozen=True)
class IntervalSpec:
    """A registered interval of an endpoint's mean, or of a statistic: the keys of `INTERVAL`."""

    id: str  # its name in tests
    endpoint: str
    level: Fraction
    method: str
    # resamples, resampled, crossing, rng_seed, rng: 0 or empty where the method has no such thing
    resamples: int
    resampled: tuple[str, ...]
    crossing: str
    rng_seed: int
    rng: str = GENERATORS[0]
    spans: tuple[str, ...] = ()

    @property
    def made(self) -> str:
        """How it is made, in words."""
        if self.method == T_OVER_SEEDS:
            return "Student's t over seeds, one degree of freedom fewer than seeds"
        if self.method == T_OVER_TASKS:
            return "Student's t over tasks, averaged over seeds; one degree of freedom fewer than tasks"
        if self.method == BCA:
            return f"{self.method}, {self.resamples} resamples of tasks, averaged over seeds"
        if self.method == SEED_BOOTSTRAP:
            return f"{self.method}, {self.resamples} resamples of seeds"
        return f"{self.method}, {self.resamples} resamples of {'; '.join(self.resampled)}, {self.crossing}"


def read_endpoint(
    name: str, content: object, sets: dict[str, EvaluationSet], terms: Terms = OF_TOOLKIT
) -> Endpoint:
    """Read one endpoint."""
    section = Section(content, f"endpoints.{identifier(name, 'endpoints')}", ENDPOINT)
    register, named_set = section.text("register"), section.text("set")
    if named_set and (named_set not in sets or register != "evaluations"):
        raise section.wrong(
            f"evaluation set {named_set!r} is not declared, or not of this register", expected=", ".join(sets)
        )
    chosen = sets[named_set] if named_set else EvaluationSet("", {}, 0, 0)
    outcome = _outcome(section, register)
    where = {**chosen.where, **section.strings("where")}
    check_conditions(register, where, section, terms)
    low, high = section.range("range")
    endpoint = Endpoint(
        name,
        register=register,
        outcome=outcome,
        where=where,
        expect={**chosen.expect, **_expect(section, register)},
        scale_rewards=section.text("scale_rewards") or terms.scaling,
        checkpoints=tuple(_checkpoint(text, section.where) for text in section.texts("checkpoints")),
        low=low,
        high=high,
        tasks=chosen.tasks,
        schedules=chosen.schedules,
        attributes=chosen.attributes,
        most_missing=terms.missing.most if terms.missing else Fraction(0),
        counts_as=section.text("missing") or (terms.missing.counts_as if terms.missing else FAILURE),
        **section.rest(),
    )
    _check_fit(endpoint, section, terms)
    return endpoint


def read_interval(name: str, content: object, method: dict[str, object]) -> IntervalSpec:
    """Read one interval; what it does not say itself stands in `interval_method`."""
    if not isinstance(content, dict):
        raise RuleError("a section is not a table", found=content, where=f"intervals.{name}")
    kind = str({**method, **content}.get("method"))
    # Of the common method, what means something to this one.
    other = {name for name, key in INTERVAL.items() if not key.applies({"method": kind})}
    common = {key: value for key, value in method.items() if key not in other}
    section = Section({**common, **content}, f"intervals.{identifier(name, 'intervals')}", INTERVAL)
    spec = IntervalSpec(name, **section.rest())
    if not 0 < spec.level < 1:
        raise section.wrong("a level lies between 0 and 1", found=spec.level)
    return spec


def _expect(section: Section, register: str) -> dict[str, int]:
    content = section.table("expect")
    inner = Section(content, f"{section.where}.expect", alike(content, Value.WHOLE))
    expect = {name: inner.whole(name) for name in content}
    check_columns(register, tuple(expect), section, numbers=True)
    return expect


def _outcome(section: Section, register: str) -> Rate | Figure:
    content = section.table("outcome")
    said = COUNTED if "count" in content else ADDED if "sum" in content else FIGURE
    first, second = Section(content, f"{section.where}.outcome", said).rest().values()
    outcome = Figure(first, second or None) if said is FIGURE else Rate(first, second)
    check_columns(register, outcome.columns, section, numbers=True)
    return outcome


def _checkpoint(text: str, where: str) -> tuple[str, int]:
    trajectory, at, step = text.partition("@")
    if not (trajectory and at and step.isascii() and step.isdigit() and len(step) <= LONGEST_STEP):
        raise RuleError("a checkpoint is written trajectory@step", found=text, where=where)
    return trajectory, int(step)


def _check_fit(endpoint: Endpoint, section: Section, terms: Terms) -> None:
    """Check that the parts of an endpoint fit each other and the columns of its register."""
    columns = TABLES[endpoint.register].column_names
    by_run = endpoint.by in ("seed", "run", "pooled")
    runs = bool(endpoint.condition and endpoint.arms and endpoint.seeds)
    checkpoints = endpoint.by == "checkpoint"
    several = len(endpoint.steps) > 1
    lists = (endpoint.arms, endpoint.seeds, endpoint.steps, endpoint.checkpoints)
    timed = endpoint.over_steps == "steps_to_threshold"
    treated = terms.missing.counts_as if terms.missing else FAILURE
    problems = (
        (by_run != runs, "names runs exactly if it reads them"),
        (by_run and "run_id" not in columns, "reads a register without runs"),
        (checkpoints != bool(endpoint.checkpoints), "names checkpoints exactly if it reads them"),
        (checkpoints and "trajectory" not in columns, "reads a register without checkpoints"),
        (checkpoints and bool(endpoint.steps), "has steps beside its checkpoints"),
        (endpoint.by == "row" and not endpoint.where, "does not say which row"),
        (endpoint.by == "seed" and len(endpoint.arms) not in (1, 2), "has one arm, or two to subtract"),
        (endpoint.by == "pooled" and not isinstance(endpoint.outcome, Rate), "can only pool counts"),
        (endpoint.by == "pooled" and (several or len(endpoint.arms) != 1), "pools one arm at one step"),
        (bool(endpoint.steps) and "step" not in columns, "reads steps of a register without them"),
        (by_run and "step" in columns and not endpoint.steps, "does not say which steps"),
        (several != bool(endpoint.over_steps), "needs over_steps exactly if it reads several steps"),
        (several and endpoint.by not in ("seed", "run"), "reads several steps"),
        (timed != (endpoint.threshold is not None), "has a threshold exactly for steps_to_threshold"),
        (list(endpoint.steps) != sorted(endpoint.steps), "has steps that do not increase"),
        (any(number < 0 for number in (*endpoint.steps, *endpoint.seeds)), "has a negative step or seed"),
        (not {*endpoint.arms} <= {*terms.arms}, f"has arms other than {', '.join(terms.arms)}"),
        (any(len(set(names)) != len(names) for names in lists), "names something twice"),
        (_is_score(endpoint) and terms.scores is None, "reads scores, and [scores] does not say their range"),
        (_leaves_scores(endpoint, terms), "has a range that its scores cannot have"),
        (bool(endpoint.attributes) and not is_counted_by_task(endpoint), f"on some tasks is a mean: {MEANS}"),
        (
            treated != EXCLUDED == endpoint.counts_as and not is_counted_by_task(endpoint),
            f"leaves out: {MEANS}",
        ),
        (
            terms.missing is None and endpoint.counts_as != FAILURE,
            "says `missing`, and there is no [missing]",
        ),
    )
    for wrong, problem in problems:
        if wrong:
            raise section.wrong(f"an endpoint by {endpoint.by} {problem}")


def is_counted_by_task(endpoint: Endpoint) -> bool:
    """Whether its rows can be counted from the episodes of some tasks."""
    outcome = endpoint.outcome
    counted = isinstance(outcome, Rate) and outcome.count in COUNTED_BY_TASK and outcome.of == "episodes"
    return counted and endpoint.by in ("seed", "run", "pooled") and [*endpoint.expect] == ["episodes"]


def _is_score(endpoint: Endpoint) -> bool:
    return isinstance(endpoint.outcome, Rate) and endpoint.outcome.count == "score"


def _leaves_scores(endpoint: Endpoint, terms: Terms) -> bool:
    if not _is_score(endpoint) or terms.scores is None or endpoint.threshold is not None:
        return False
    low, high = terms.scores
    if endpoint.over_steps == "auc_gain":  # an area less a point
        low, high = low - high, high - low
    if endpoint.by == "seed" and len(endpoint.arms) > 1:  # first minus second
        low, high = low - high, high - low
    return endpoint.low < low or endpoint.high > high
