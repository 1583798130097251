"""Endpoints: what a rule measures, and how its intervals are made."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from msgspec import field

from toolkit.errors import RuleError
from toolkit.registers.columns import EXCLUDED, FAILURE, TREATMENTS
from toolkit.registers.schema import TABLES
from toolkit.rules.sections import Range, Spans, Table, Text, Texts, Wholes, applies
from toolkit.rules.terms import OF_TOOLKIT, EvaluationSet, Terms, check_columns, check_conditions
from toolkit.structs import Document, about, one_of, replace

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

FORMS = (("count", "of"), ("sum", "of"), ("figure",), ("figure", "over"))
"""Keys that an outcome can have."""


class Outcome(Document, frozen=True):
    """How a row becomes a number: a rate of two counts, a sum over a count, a figure, or a ratio of two."""

    count: Annotated[Text, about("a column of counts")] = ""
    sum: Annotated[Text, about("a column of sums, such as `score` or `tokens`")] = ""
    of: Annotated[Text, about("the column of counts that it is a share of, or a mean over")] = ""
    figure: Annotated[Text, about("a column of numbers")] = ""
    over: Annotated[Text, about("the column that it is divided by")] = ""

    def __post_init__(self) -> None:
        if (given := tuple(key for key in self.__struct_fields__ if getattr(self, key))) not in FORMS:
            forms = "; ".join(map(" and ".join, FORMS))
            raise ValueError(f"an outcome has the keys {forms}, and not {' and '.join(given)}")

    @property
    def is_rate(self) -> bool:
        """Whether it is over a count."""
        return bool(self.of)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return tuple(filter(None, (self.count, self.sum, self.figure, self.of, self.over)))


class Checkpoint(tuple[str, int]):
    """A trajectory and a step, written `trajectory@step`."""

    __slots__ = ()

    @classmethod
    def decoded(cls, text: Any) -> "Checkpoint":
        """Parse a checkpoint."""
        trajectory, at, step = str(text).partition("@")
        if not (trajectory and at and step.isascii() and step.isdigit() and len(step) <= LONGEST_STEP):
            raise RuleError("a checkpoint is written trajectory@step", found=text)
        return cls((trajectory, int(step)))


class Endpoint(Table, frozen=True, kw_only=True):
    """One endpoint, with the size and the tasks of its evaluation set."""

    title: Annotated[Text, about("what it is, in words")]
    register: Annotated[str, one_of(tuple(TABLES), "the table that holds its rows")]
    outcome: Annotated[
        Outcome,
        about(
            "how a row becomes a number",
            extra_json_schema={"oneOf": [{"required": list(keys)} for keys in FORMS[:-1]]},
        ),
    ]
    set: Annotated[Text, about("the evaluation set whose rows it reads, of `evaluations` alone")] = ""
    where: Annotated[
        dict[str, str], about("text columns that its rows must match, beside those of `set`")
    ] = {}
    expect: Annotated[dict[str, int], about("counts of a complete row, by column; others are missing")] = {}
    condition: Annotated[Text, about("condition of its runs, where it reads runs")] = ""
    arms: Annotated[Texts, about("arms of its runs: one, or two, the first minus the second")] = ()
    seeds: Annotated[Wholes, about("seeds of its runs, from 0")] = ()
    scale_rewards: Annotated[str, one_of(SCALINGS, "scaling of rewards; `group` where runs say it")] = ""
    by: Annotated[str, one_of(UNITS_OF_ANALYSIS, "what each value is of; one alone if pooled or row")]
    steps: Annotated[Wholes, about("training steps that are read, rising")] = ()
    over_steps: Annotated[str, one_of(OVER_STEPS_SAY, "what several steps are made into")] = ""
    threshold: Annotated[
        Fraction | None, about("what `steps_to_threshold` waits for, in the unit of a row")
    ] = None
    checkpoints: Annotated[tuple[Checkpoint, ...], about("`trajectory@step`, of a series by checkpoint")] = ()
    unit: Annotated[Text, about("unit of its values, which is that of its outcome")]
    range: Annotated[Range, about("the smallest and the largest value that it can take, in `unit`")]
    counts_as: Annotated[str, one_of(TREATMENTS, "as `counts_as` of [missing], for this endpoint")] = field(
        default="", name="missing"
    )
    spans: Spans = ()
    tasks: int = 0  # tasks, schedules: size of the evaluation set; 0 where none was registered
    schedules: int = 0
    attributes: Mapping[str, str] = {}  # of the tasks that it is on; empty for all
    most_missing: Fraction = field(default_factory=Fraction)  # share of episodes without an outcome

    derived = ("id", "tasks", "schedules", "attributes", "most_missing")

    @property
    def low(self) -> Fraction:
        """The smallest value that it can take."""
        return self.range[0]

    @property
    def high(self) -> Fraction:
        """The largest value that it can take."""
        return self.range[1]

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


class IntervalSpec(Table, frozen=True, kw_only=True):
    """A registered interval of an endpoint's mean, or of a statistic."""

    endpoint: Annotated[Text, about("the endpoint whose mean it is of, or the statistic")]
    level: Annotated[Fraction, about("confidence level, between 0 and 1")]
    method: Annotated[str, one_of(METHODS_SAY, "how it is made")]
    resamples: Annotated[int, about("how many resamples are drawn", ge=1)] = 0
    resampled: Annotated[Texts, about("what is drawn, in words")] = ()
    crossing: Annotated[
        str,
        one_of(("crossed", "nested"), "whether tasks are drawn once for all seeds (crossed) or for each"),
    ] = ""
    rng_seed: Annotated[int, about("seed of the draws", ge=0)] = 0
    rng: Annotated[str, one_of(GENERATORS, "generator of the draws")] = GENERATORS[0]
    spans: Spans = ()

    only: ClassVar = {
        **dict.fromkeys(("resamples", "rng_seed", "rng"), ("method", DRAWN)),
        **dict.fromkeys(("resampled", "crossing"), ("method", (PERCENTILE,))),
    }
    optional = ("rng",)

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
    declared: Endpoint, sets: Mapping[str, EvaluationSet], terms: Terms = OF_TOOLKIT
) -> Endpoint:
    """Return an endpoint with what its evaluation set and the registration's words add to it."""
    at, register, chosen = f"endpoints.{declared.id}", declared.register, sets.get(declared.set)
    if declared.set and (chosen is None or register != "evaluations"):
        raise RuleError(
            f"evaluation set {declared.set!r} is not declared, or not of this register",
            expected=", ".join(sets),
            where=at,
        )
    chosen = chosen or EvaluationSet()
    check_columns(register, (*declared.outcome.columns, *declared.expect), at, numbers=True)
    where = {**chosen.where, **declared.where}
    check_conditions(register, where, at, terms)
    endpoint = replace(
        declared,
        where=where,
        expect={**chosen.expect, **declared.expect},
        scale_rewards=declared.scale_rewards or terms.scaling,
        counts_as=declared.counts_as or (terms.missing.counts_as if terms.missing else FAILURE),
        tasks=chosen.tasks,
        schedules=chosen.schedules,
        attributes=chosen.attributes,
        most_missing=terms.missing.most if terms.missing else Fraction(0),
    )
    _check_fit(endpoint, terms)
    return endpoint


def common_to(interval: object, method: Mapping[str, object]) -> object:
    """Return an interval with what its registration says of all intervals and that applies to it."""
    if not isinstance(interval, dict):
        return interval
    whole = {**method, **interval}
    return {
        key: value for key, value in whole.items() if key in interval or applies(IntervalSpec, key, whole)
    }


def _check_fit(endpoint: Endpoint, terms: Terms) -> None:
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
        (endpoint.by == "pooled" and not endpoint.outcome.is_rate, "can only pool counts"),
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
            raise RuleError(f"an endpoint by {endpoint.by} {problem}", where=f"endpoints.{endpoint.id}")


def is_counted_by_task(endpoint: Endpoint) -> bool:
    """Whether its rows can be counted from the episodes of some tasks."""
    counted = endpoint.outcome.of == "episodes" and endpoint.outcome.columns[0] in COUNTED_BY_TASK
    return counted and endpoint.by in ("seed", "run", "pooled") and [*endpoint.expect] == ["episodes"]


def _is_score(endpoint: Endpoint) -> bool:
    return endpoint.outcome.is_rate and endpoint.outcome.columns[0] == "score"


def _leaves_scores(endpoint: Endpoint, terms: Terms) -> bool:
    if not _is_score(endpoint) or terms.scores is None or endpoint.threshold is not None:
        return False
    low, high = terms.scores
    if endpoint.over_steps == "auc_gain":  # an area less a point
        low, high = low - high, high - low
    if endpoint.by == "seed" and len(endpoint.arms) > 1:  # first minus second
        low, high = low - high, high - low
    return endpoint.low < low or endpoint.high > high
