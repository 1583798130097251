"""Registered tests of significance, and families of them, as declared in the rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from toolkit.decisions.endpoints import Endpoint
from toolkit.decisions.expressions import Binary, Call, Expression, Name
from toolkit.decisions.keys import SPANS, Key, Value, keys
from toolkit.decisions.section import Section, identifier
from toolkit.errors import RuleError

SIGN_FLIP, WILCOXON, MCNEMAR = METHODS = ("sign flip", "wilcoxon", "mcnemar")
SEEDS, TASKS = OVER = ("seeds", "tasks")
ALTERNATIVES = ("two-sided", "greater", "less")
# What the signed-rank test does with differences of zero.
ZEROS_SAY = {
    "dropped": "zeros left out before ranking",
    "ranked": "zeros ranked along, their ranks then left out",
}
HOLM, BENJAMINI_HOCHBERG = ADJUSTMENTS = ("holm", "benjamini-hochberg")
ADJUSTED_BY = {
    HOLM: "Holm's step-down, which bounds the chance of any false rejection",
    BENJAMINI_HOCHBERG: "Benjamini and Hochberg's step-up, which bounds the expected share of false ones",
}
BINARY = ("successes", "observed_successes")  # what an episode has or has not
ARMS = FEWEST = 2  # a contrast; a single seed or task has one sign

TEST = keys(
    Key("method", Value.TEXT, "how it is made; each is exact", choices=METHODS),
    Key("endpoint", Value.TEXT, "an endpoint by seed"),
    Key(
        "over",
        Value.TEXT,
        "what the differences are of, and whose signs are by chance alike",
        choices=OVER,
        only=("method", (SIGN_FLIP, WILCOXON)),
    ),
    Key("alternative", Value.TEXT, "where the mean is said to lie", choices=ALTERNATIVES),
    Key(
        "zeros",
        Value.TEXT,
        "what becomes of differences of zero",
        choices=ZEROS_SAY,
        only=("method", (WILCOXON,)),
    ),
    SPANS,
)
FAMILY = keys(
    Key("tests", Value.TEXTS, "its tests, each once"),
    Key("method", Value.TEXT, "how they are adjusted for each other", choices=ADJUSTED_BY),
    SPANS,
)


@dataclass(frozen=True)
class Significance:
    """A registered test that the differences of an endpoint lie about zero, exact: the keys of `TEST`.

    Args:
        id: its name in tests of criteria.
        over: `tasks` of McNemar's test, which does not say it.
        zeros: empty of every test but `wilcoxon`.
    """

    id: str
    endpoint: str
    method: str
    over: str
    alternative: str
    zeros: str = ""
    spans: tuple[str, ...] = ()

    @property
    def made(self) -> str:
        """How it is made, in words."""
        if self.method == MCNEMAR:
            how = "McNemar's test, exact binomial on the discordant tasks"
        elif self.method == WILCOXON:
            how = f"Wilcoxon's signed-rank test over {self.over}, exact, midranks, {ZEROS_SAY[self.zeros]}"
        else:
            how = f"sign-flip test over {self.over}, exact over all signs"
        return f"{how}, {self.alternative}"

    def smallest(self, endpoint: Endpoint) -> Fraction:
        """Return the smallest p that it can give on an endpoint: that of differences with one sign."""
        units = len(endpoint.seeds) if self.over == SEEDS else endpoint.tasks
        return Fraction(2 if self.alternative == ALTERNATIVES[0] else 1, 2**units)


@dataclass(frozen=True)
class Family:
    """Tests that are adjusted for each other, by name: the keys of `FAMILY`."""

    id: str
    tests: tuple[str, ...]
    method: str
    spans: tuple[str, ...] = ()

    @property
    def made(self) -> str:
        """How its tests are adjusted, in words."""
        return f"adjusted among the {len(self.tests)} tests of {self.id} by {ADJUSTED_BY[self.method]}"


def read_test(name: str, content: object) -> Significance:
    """Read one test."""
    section = Section(content, f"tests.{identifier(name, 'tests')}", TEST)
    test = Significance(
        id=name,
        method=section.text("method"),
        endpoint=section.text("endpoint"),
        over=section.text("over") or TASKS,
        alternative=section.text("alternative"),
        zeros=section.text("zeros"),
        spans=section.texts("spans"),
    )
    section.done()
    return test


def read_family(name: str, content: object) -> Family:
    """Read one family."""
    section = Section(content, f"families.{identifier(name, 'families')}", FAMILY)
    tests = section.texts("tests")
    family = Family(name, tests, section.text("method"), section.texts("spans"))
    section.done()
    if not tests or len(set(tests)) != len(tests):
        raise section.wrong("a family names its tests, each once", found=", ".join(tests) or "none")
    return family


def check_tests(
    tests: Mapping[str, Significance], families: Mapping[str, Family], endpoints: Mapping[str, Endpoint]
) -> None:
    """Check that every test is of an endpoint that it can test, and in one family at most."""
    for test in tests.values():
        where = f"tests.{test.id}"
        if test.endpoint not in endpoints:
            raise RuleError(
                f"{test.endpoint!r} is not declared", expected="an endpoint", found=test.endpoint, where=where
            )
        problem = _problem(test, endpoints[test.endpoint])
        if problem:
            raise RuleError(problem, found=f"{test.made}, of {test.endpoint}", where=where)
    first: dict[str, str] = {}
    for family in families.values():
        for name in family.tests:
            where = f"families.{family.id}"
            if name not in tests:
                raise RuleError(
                    f"{name!r} is not declared",
                    expected=", ".join(tests) or "a test",
                    found=name,
                    where=where,
                )
            if name in first:
                raise RuleError(
                    "a test is in one family at most", found=f"{name}, in {first[name]}", where=where
                )
            first[name] = family.id


def check_adjusted(expression: Expression, families: Mapping[str, Family], where: str) -> None:
    """Check that an adjusted p-value is that of a test in a family."""
    match expression:
        case Call("adjusted", (Name(name),)):
            if not any(name in family.tests for family in families.values()):
                raise RuleError(
                    f"{name!r} is in no family, and its p-value not adjusted",
                    expected=f"p({name}), or a family with {name}",
                    where=where,
                )
        case Call(_, arguments):
            for argument in arguments:
                check_adjusted(argument, families, where)
        case Binary(_, left, right):
            check_adjusted(left, families, where)
            check_adjusted(right, families, where)


def _problem(test: Significance, endpoint: Endpoint) -> str:
    """Return why a test cannot be made of an endpoint, or nothing."""
    seeds, tasks = len(endpoint.seeds), endpoint.tasks
    units = seeds if test.over == SEEDS else tasks
    paired = (len(endpoint.arms), seeds, len(endpoint.steps), endpoint.schedules) == (ARMS, 1, 1, 1)
    problems = (
        (endpoint.by != "seed", "a test is of an endpoint by seed"),
        (
            test.method == MCNEMAR and not paired,
            "McNemar's test is of two arms, one seed, one step and one schedule",
        ),
        (
            test.method == MCNEMAR and endpoint.outcome.columns[0] not in BINARY,
            "McNemar's test is of successes",
        ),
        (not endpoint.low < 0 < endpoint.high, "a test is of what can lie on both sides of zero"),
        (test.over == TASKS and not tasks, "a test over tasks is of an evaluation set of registered size"),
        (units < FEWEST, f"a test over {test.over} takes two of them: the sign of one says nothing"),
    )
    return next((problem for wrong, problem in problems if wrong), "")
