"""How an endpoint is made from its rows, in words: the formula that stands beside its number."""

from collections.abc import Iterable

from toolkit.decisions.endpoints import Endpoint, Rate
from toolkit.decisions.subgroup import in_words

FEW = 8


def formula(endpoint: Endpoint) -> str:
    """Return how an endpoint's value follows from the rows of its register, as declared in the rules."""
    parts = [_outcome(endpoint), _steps(endpoint), _units(endpoint), _set(endpoint)]
    return "; ".join(part for part in parts if part) + "."


def _outcome(endpoint: Endpoint) -> str:
    outcome = endpoint.outcome
    if isinstance(outcome, Rate):
        return f"{outcome.count} / {outcome.of}"
    return f"{outcome.figure} / {outcome.over}" if outcome.over else outcome.figure


def _steps(endpoint: Endpoint) -> str:
    steps = ", ".join(map(str, endpoint.steps))
    match endpoint.over_steps:
        case "auc":
            return f"averaged over steps {steps} by the trapezoidal rule (AUC)"
        case "auc_gain":
            return f"averaged over steps {steps} by the trapezoidal rule, less the first (gain in AUC)"
        case "mean":
            return f"averaged over steps {steps}"
        case "steps_to_threshold":
            return (
                f"the first of steps {steps} that reaches {float(endpoint.threshold or 0):g}, interpolated "
                "linearly; censored where none does"
            )
    return f"at step {steps}" if steps else ""


def _units(endpoint: Endpoint) -> str:
    seeds = listed("seed", endpoint.seeds)
    match endpoint.by:
        case "seed" if len(endpoint.arms) > 1:
            first, second = endpoint.arms
            return f"{endpoint.condition} {first} minus {second}, {seeds} one by one"
        case "seed":
            return f"{endpoint.condition} {endpoint.arms[0]}, {seeds} one by one"
        case "run":
            return f"each run of {endpoint.condition}, {' and '.join(endpoint.arms)}, {seeds}"
        case "pooled":
            return f"counts of {endpoint.condition} {endpoint.arms[0]} added up over {seeds}, then divided"
        case "checkpoint":
            return listed("checkpoint", [f"{name}@{step}" for name, step in endpoint.checkpoints])
    return ""


def _set(endpoint: Endpoint) -> str:
    where = ", ".join(f"{name} {value}" for name, value in sorted(endpoint.where.items()))
    schedules = "1 schedule" if endpoint.schedules == 1 else f"{endpoint.schedules} schedules"
    size = f"{endpoint.tasks} tasks × {schedules}" if endpoint.tasks else ""
    return ", ".join(part for part in (where, *in_words(endpoint), size) if part)


def listed(noun: str, members: Iterable[object]) -> str:
    """Return a noun with its members; first, last and how many where they are more than a few."""
    texts = [str(member) for member in members]
    if len(texts) == 1:
        return f"{noun} {texts[0]}"
    if len(texts) > FEW:
        return f"{noun}s {texts[0]} to {texts[-1]} ({len(texts)})"
    return f"{noun}s {', '.join(texts)}"
