"""Endpoints in words: the formula beside a number, and what the words on a rule's page mean."""

from collections.abc import Iterable, Iterator, Sequence

from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision
from toolkit.decisions.measure import in_words
from toolkit.noise.regimes import REGIMES
from toolkit.registers.schema import TABLES
from toolkit.rules.endpoints import Endpoint, Figure
from toolkit.site.environment import WORDS

# What rows of the probe are told apart by.
OF_PROBE = ("noise", "estimator", "scored")
FEW = 8


def formula(endpoint: Endpoint) -> str:
    """Return how an endpoint's value follows from the rows of its register, as declared in the rules."""
    steps = ", ".join(map(str, endpoint.steps))
    at = f"at step {steps}" if steps else ""
    if endpoint.over_steps:
        made = str(WORDS["over_steps"][endpoint.over_steps]["formula"])
        at = made.format(steps=steps, threshold=float(endpoint.threshold or 0))
    parts = [" / ".join(endpoint.outcome.columns), at, _units(endpoint), _set(endpoint)]
    return "; ".join(part for part in parts if part) + "."


def _units(endpoint: Endpoint) -> str:
    seeds, arms = listed("seed", endpoint.seeds), endpoint.arms
    match endpoint.by:
        case "seed":
            return f"{endpoint.condition} {' minus '.join(arms)}, {seeds} one by one"
        case "run":
            return f"each run of {endpoint.condition}, {' and '.join(arms)}, {seeds}"
        case "pooled":
            return f"counts of {endpoint.condition} {arms[0]} added up over {seeds}, then divided"
        case "checkpoint":
            return listed("checkpoint", [f"{name}@{step}" for name, step in endpoint.checkpoints])
    return ""


def _set(endpoint: Endpoint) -> str:
    where = [f"{name} {value}" for name, value in sorted(endpoint.where.items())]
    schedules = "1 schedule" if endpoint.schedules == 1 else f"{endpoint.schedules} schedules"
    size = [f"{endpoint.tasks} tasks × {schedules}"] if endpoint.tasks else []
    return ", ".join([*where, *in_words(endpoint), *size])


def listed(noun: str, members: Iterable[object]) -> str:
    """Return a noun with its members; first, last and how many where they are more than a few."""
    texts = [str(member) for member in members]
    if len(texts) == 1:
        return f"{noun} {texts[0]}"
    if len(texts) > FEW:
        return f"{noun}s {texts[0]} to {texts[-1]} ({len(texts)})"
    return f"{noun}s {', '.join(texts)}"


def glossary(case: Case, decision: Decision) -> dict[str, str]:
    """Return what the words mean that a rule's endpoints use, in the order of reading.

    The registration and the schema say it, where they do.
    """
    meanings: dict[str, str] = {}
    for word, meaning in _terms(case, decision, [case.book.endpoints[name] for name in decision.endpoints]):
        meanings.setdefault(word, meaning)
    return meanings


def _terms(case: Case, decision: Decision, endpoints: Sequence[Endpoint]) -> Iterator[tuple[str, str]]:
    for endpoint in endpoints:
        if endpoint.over_steps:
            told = WORDS["over_steps"][endpoint.over_steps]
            yield told["word"], f"{told['meaning']} {listed('step', endpoint.steps)}"
    yield from _registered(case, decision, endpoints)
    yield from _figures(endpoints)
    for spec in case.book.intervals.values():
        if spec.endpoint in {endpoint.id for endpoint in endpoints}:
            yield f"{100 * float(spec.level):g}% interval", spec.made


def _registered(case: Case, decision: Decision, endpoints: Sequence[Endpoint]) -> Iterator[tuple[str, str]]:
    cells, own = case.book.plan.cells, case.book.terms
    for condition in _each(endpoint.condition for endpoint in endpoints):
        if noises := _each(cell.noise for cell in cells if cell.condition == condition):
            yield f"condition {condition}", f"runs that train under: {'; or '.join(noises)}"
    for arm in _each(arm for endpoint in endpoints for arm in endpoint.arms):
        if "arm" in own.words:
            yield f"arm {arm}", f"one of the arms of this study: {', '.join(own.arms)}"
        elif arm in WORDS["arms"]:
            yield f"arm {arm.replace('_', ' ')}", WORDS["arms"][arm]
    if tiers := sorted({cell.tier for cell in cells if decision.rule in cell.serves}):
        meaning = "the order in which runs were to be made, lowest first; runs for this rule are of"
        yield "tier", f"{meaning} {listed('tier', tiers)}"
    for regime in _each(endpoint.where.get("regime", "") for endpoint in endpoints):
        is_own = "regime" in own.words or regime not in REGIMES
        about = ", in this study's own words" if is_own else f": {REGIMES[regime].about}"
        yield f"regime {regime}", f"noise of the evaluation{about}"


def _figures(endpoints: Sequence[Endpoint]) -> Iterator[tuple[str, str]]:
    if any(endpoint.register.startswith("luck_share") for endpoint in endpoints):
        yield "luck share", WORDS["luck"]["share"]
    for endpoint in endpoints:
        for name in endpoint.outcome.columns if isinstance(endpoint.outcome, Figure) else ():
            column = TABLES[endpoint.register].column(name)
            if column is not None and name != "luck_share":
                yield name.replace("_", " "), column.meaning
    for name in OF_PROBE:
        held = [endpoint for endpoint in endpoints if name in endpoint.where]
        column = TABLES[held[0].register].column(name) if held else None
        if column is not None:
            values = _each(endpoint.where[name] for endpoint in held)
            yield f"{name} ({', '.join(values)})", column.meaning


def _each(names: Iterable[str]) -> tuple[str, ...]:
    """Return names once each, in order, without the empty one."""
    return tuple(dict.fromkeys(name for name in names if name))
