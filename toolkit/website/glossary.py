"""Words that a rule's page uses, a line each, from the registration and the schema where they say it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision
from toolkit.decisions.endpoints import Endpoint, Figure
from toolkit.noise.regimes import REGIMES
from toolkit.registers.schema import TABLES
from toolkit.website.formulas import listed

# The toolkit's own arms. A registration with other arms explains them itself.
ARMS = {
    "clean": "trained without noise, as a reference",
    "paired": "all rollouts of a training group play under one schedule of the noise",
    "independent": "each rollout of a training group has a schedule of its own",
    "blocking": "each task has a clean group and a noisy, independent one, each normalized within "
    "itself, at the same number of rollouts",
    "blocking_paired": "as blocking, and the noisy group is paired",
}
LUCK = (
    "λ, the part of the variance of rewards that the schedule of the noise explains: 0 where only the "
    "policy's choices count, 1 where the schedule alone decides"
)
# What rows of the probe are told apart by.
OF_PROBE = ("noise", "estimator", "scored")
OVER_STEPS = {
    "auc": ("AUC", "area under the curve of success over training, by the trapezoidal rule, as a mean over"),
    "auc_gain": ("gain in AUC", "the AUC less the success at the first of these steps, what training added:"),
    "mean": ("mean over steps", "the plain mean over"),
    "steps_to_threshold": ("steps to threshold", "the first step of training that reaches a success, of"),
}


@dataclass(frozen=True)
class Term:
    """A word and what it means."""

    word: str
    meaning: str


def glossary(case: Case, decision: Decision) -> tuple[Term, ...]:
    """Return the words that a rule's endpoints use, in the order of reading, each once."""
    endpoints = [case.book.endpoints[name] for name in decision.endpoints]
    terms = [
        *_over_steps(endpoints),
        *_conditions(case, endpoints),
        *_arms(case, endpoints),
        *_tiers(case, decision),
        *_sets(case, endpoints),
        *_figures(endpoints),
        *_intervals(case, endpoints),
    ]
    once: dict[str, Term] = {}
    for term in terms:
        once.setdefault(term.word, term)
    return tuple(once.values())


def _over_steps(endpoints: Iterable[Endpoint]) -> Iterator[Term]:
    for endpoint in endpoints:
        if endpoint.over_steps:
            word, meaning = OVER_STEPS[endpoint.over_steps]
            yield Term(word, f"{meaning} {listed('step', endpoint.steps)}")


def _conditions(case: Case, endpoints: Iterable[Endpoint]) -> Iterator[Term]:
    for condition in _each(endpoint.condition for endpoint in endpoints):
        noises = _each(cell.noise for cell in case.book.plan.cells if cell.condition == condition)
        if noises:
            yield Term(f"condition {condition}", f"runs that train under: {'; or '.join(noises)}")


def _arms(case: Case, endpoints: Iterable[Endpoint]) -> Iterator[Term]:
    its_own = "arm" in case.book.terms.words
    for arm in _each(arm for endpoint in endpoints for arm in endpoint.arms):
        if its_own:
            yield Term(f"arm {arm}", f"one of the arms of this study: {', '.join(case.book.terms.arms)}")
        elif arm in ARMS:
            yield Term(f"arm {arm.replace('_', ' ')}", ARMS[arm])


def _tiers(case: Case, decision: Decision) -> Iterator[Term]:
    tiers = sorted({cell.tier for cell in case.book.plan.cells if decision.rule in cell.serves})
    if tiers:
        meaning = "the order in which runs were to be made, lowest first; runs for this rule are of"
        yield Term("tier", f"{meaning} {listed('tier', tiers)}")


def _sets(case: Case, endpoints: Iterable[Endpoint]) -> Iterator[Term]:
    for regime in _each(endpoint.where.get("regime", "") for endpoint in endpoints):
        if "regime" in case.book.terms.words or regime not in REGIMES:
            yield Term(f"regime {regime}", "noise of the evaluation, in this study's own words")
        else:
            yield Term(f"regime {regime}", f"noise of the evaluation: {REGIMES[regime].about}")


def _figures(endpoints: Sequence[Endpoint]) -> Iterator[Term]:
    if any(endpoint.register.startswith("luck_share") for endpoint in endpoints):
        yield Term("luck share", LUCK)
    for endpoint in endpoints:
        for name in endpoint.outcome.columns if isinstance(endpoint.outcome, Figure) else ():
            column = TABLES[endpoint.register].column(name)
            if column is not None and name != "luck_share":
                yield Term(name.replace("_", " "), column.meaning)
    for name in OF_PROBE:
        held = [endpoint for endpoint in endpoints if name in endpoint.where]
        column = TABLES[held[0].register].column(name) if held else None
        if column is not None:
            values = _each(endpoint.where[name] for endpoint in held)
            yield Term(f"{name} ({', '.join(values)})", column.meaning)


def _intervals(case: Case, endpoints: Iterable[Endpoint]) -> Iterator[Term]:
    names = {endpoint.id for endpoint in endpoints}
    for spec in case.book.intervals.values():
        if spec.endpoint in names:
            yield Term(f"{100 * float(spec.level):g}% interval", spec.made)


def _each(names: Iterable[str]) -> tuple[str, ...]:
    """Return names once each, in order, without the empty one."""
    return tuple(dict.fromkeys(name for name in names if name))
