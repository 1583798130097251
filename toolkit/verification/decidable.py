"""Whether the engine could decide a registration at all: it is run on studies that the matrix would fill.

Outcomes are made up; which rows there are is not. Runs of this toolkit leave what their specifications say:
evaluations on the sets of their battery, groups of every step, luck shares at the steps that are diagnosed,
checkpoints that are probed. Runs that are played elsewhere leave whatever an endpoint of theirs asks for.

Made-up outcomes may happen to have no value, such as a quotient over zero: what is refused has none in any of
several studies. Which tasks have an attribute is not registered, but how many have it is: refused, too, are
numbers that no tasks can have.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from toolkit.decisions.engine import Engine
from toolkit.decisions.evaluation import solver
from toolkit.decisions.measure import in_words
from toolkit.errors import DamagedError, RuleError
from toolkit.rules.endpoints import Endpoint
from toolkit.rules.rulebook import RuleBook
from toolkit.rules.values import Missing, Scalar, Series, Truth
from toolkit.verification.made_up import YES, MadeUpStudy

LEARNING = ((0.3, 0.6), (0.1, 1.0), (0.7, 0.2))
"""Success before training and at the end of it, study by study: all succeed at the end of one."""
RESAMPLES = 200
"""Whether an interval has ends does not depend on how exact they are."""
MOST_SAID = 8


def check_decidable(book: RuleBook, only: Collection[str] | None = None) -> None:
    """Check that all that is declared has a value on rows that the registered matrix gives."""
    few = {
        name: replace(spec, resamples=min(spec.resamples, RESAMPLES)) for name, spec in book.intervals.items()
    }
    cheap = replace(book, intervals=few, endpoints={n: _apart(e) for n, e in book.endpoints.items()})
    read = None if only is None else _read(book, only)
    lacking = [_undecided(cheap, MadeUpStudy(cheap, *success), read) for success in LEARNING]
    never = {name: why for name, why in lacking[0].items() if all(name in other for other in lacking)}
    never |= _of_no_tasks(book, read)
    if never:
        said = [f"{name}: {why}" for name, why in never.items()]
        more = [f"and {len(said) - MOST_SAID} more"] if len(said) > MOST_SAID else []
        raise RuleError(
            "what is registered could never be decided: the rows that its matrix gives do not have it",
            expected="all that is declared has a value on made-up rows of the registered runs",
            found="; ".join([*said[:MOST_SAID], *more]),
            where=next(iter(never)),
            remedy="correct it, or the matrix, before it is frozen; afterwards only an amendment can",
        )


def _apart(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint on some tasks as one on those with an attribute of its own.

    Which tasks have which attributes is not registered, but how many: the made-up ones need not overlap as
    the study's will.
    """
    if not endpoint.attributes:
        return endpoint
    name = ",".join(f"{key}={value}" for key, value in sorted(endpoint.attributes.items()))
    return replace(endpoint, attributes={name: YES})


def _read(book: RuleBook, only: Collection[str]) -> set[str]:
    """Return what some rules read, and these rules."""
    rules = [book.rule(name) for name in only]
    return book.read_by({name for r in rules for name in (*book.names_of(r), r.id, r.interval, r.estimate)})


def _of_no_tasks(book: RuleBook, read: Collection[str] | None) -> dict[str, str]:
    """Return endpoints on some tasks whose numbers no tasks can have, with all numbers of their evaluation.

    Whatever the tasks are, each has one word of every attribute: their numbers by word are whole, and none is
    negative. Words that no endpoint names are taken together.
    """
    places: dict[tuple[tuple[str, str], ...], list[Endpoint]] = {}
    for endpoint in book.endpoints.values():
        if endpoint.register == "evaluations" and endpoint.tasks and (read is None or endpoint.id in read):
            places.setdefault(tuple(sorted(endpoint.where.items())), []).append(endpoint)
    return {
        f"endpoints.{endpoint.id}": f"no tasks are as many: {_numbers(there)}"
        for there in places.values()
        if any(endpoint.attributes for endpoint in there) and not _can_be(there, book.terms.attributes)
        for endpoint in there
        if endpoint.attributes
    }


def _can_be(endpoints: Sequence[Endpoint], attributes: Mapping[str, Sequence[str]]) -> bool:
    """Return whether there can be tasks of which each endpoint has its number."""
    z3 = solver()
    named: dict[str, set[str]] = {}
    for key, word in (item for endpoint in endpoints for item in endpoint.attributes.items()):
        named.setdefault(key, set()).add(word)
    words = [[*sorted(of), *([""] if of < {*attributes[key]} else [])] for key, of in named.items()]
    kinds = [dict(zip(named, chosen, strict=True)) for chosen in product(*words)]
    question = z3.Solver()
    numbers = [z3.Int(str(index)) for index in range(len(kinds))]
    question.add(*(number >= 0 for number in numbers))
    for endpoint in endpoints:
        its = (
            n for n, kind in zip(numbers, kinds, strict=True) if endpoint.attributes.items() <= kind.items()
        )
        question.add(z3.Sum(*its) == endpoint.tasks)
    return bool(question.check() != z3.unsat)


def _numbers(endpoints: Sequence[Endpoint]) -> str:
    """Return how many tasks endpoints are on, in words."""
    said = (
        f"{e.tasks} with {', '.join(in_words(e))}" if e.attributes else f"{e.tasks} in all" for e in endpoints
    )
    return "; ".join(dict.fromkeys(said))


def _undecided(book: RuleBook, study: "MadeUpStudy", read: Collection[str] | None) -> dict[str, str]:
    """Return what has no value, with the reasons; of two for one reason, what comes first."""
    engine = Engine(book, (book.name, ""), study)
    asked: list[tuple[str, Callable[[], object]]] = [
        *((f"endpoints.{name}", partial(engine.value, name)) for name in book.endpoints),
        *((f"statistics.{name}", partial(engine.value, name)) for name in book.statistics),
        *((f"intervals.{name}", partial(engine.interval, name)) for name in book.intervals),
        *((f"tests.{name}", partial(_p, engine, name)) for name in book.tests),
        *((f"rules.{name}", partial(_holds, engine, name)) for name in book.rules),
    ]
    if read is not None:
        asked = [(name, value) for name, value in asked if name.partition(".")[2] in read]
    found: dict[str, str] = {}
    for name, value in asked:
        reasons = _reasons(value)
        if reasons:
            found[name] = "; ".join(reasons[:MOST_SAID])
    return found


def _p(engine: Engine, test: str) -> Scalar:
    return engine.test(test).p


def _holds(engine: Engine, rule: str) -> Truth:
    return engine.decide(rule).holds


def _reasons(value: Callable[[], object]) -> tuple[str, ...]:
    """Return why there is no value; made-up figures may lie outside a declared range, which says nothing."""
    try:
        given = value()
    except DamagedError as error:
        if isinstance(error, RuleError):
            raise
        return ()
    if isinstance(given, Series):
        given = given.present()
    return given.reasons if isinstance(given, Missing) else ()
