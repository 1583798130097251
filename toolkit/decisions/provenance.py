"""Where the rows of an endpoint are: the SQL that lists exactly what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.decisions.endpoints import Endpoint
    from toolkit.decisions.plan import Plan


def rows_query(endpoint: Endpoint, plan: Plan) -> str:
    """Return a SELECT over a study's registers that lists the rows an endpoint reads.

    Args:
        endpoint: the endpoint.
        plan: the registered runs.
    """
    conditions = [f"{name} = {_text(value)}" for name, value in sorted(endpoint.where.items())]
    if endpoint.steps:
        conditions.append(f"step IN ({_list(map(str, endpoint.steps))})")
    if endpoint.by == "checkpoint":
        columns = ["trajectory", "step"]
        places = [f"(trajectory = {_text(t)} AND step = {s})" for t, s in endpoint.checkpoints]
        conditions.append(f"({' OR '.join(places)})")
    elif endpoint.by == "row":
        columns = ["run_id", "step"]
    else:
        columns = ["arm", "seed", "run_id", *(["step"] if endpoint.steps else [])]
        runs = [
            f"condition = {_text(endpoint.condition)}",
            f"arm IN ({_list(map(_text, endpoint.arms))})",
            f"seed IN ({_list(map(str, endpoint.seeds))})",
            *([f"scale_rewards = {_text(endpoint.scale_rewards)}"] if endpoint.scale_rewards else []),
            f"role IN ({_list(map(_text, plan.roles))})",
            "status = 'COMPLETE'",
        ]
        conditions.append(f"run_id IN (SELECT run_id FROM runs WHERE {' AND '.join(runs)})")
    selected = _list([*columns, *endpoint.outcome.columns])
    return f"SELECT {selected} FROM {endpoint.register} WHERE {' AND '.join(conditions)} ORDER BY ALL"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _list(values: Iterable[str]) -> str:
    return ", ".join(values)
