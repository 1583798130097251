"""The SQL that lists the rows of an endpoint."""

from collections.abc import Iterable

from toolkit.decisions.endpoints import COUNTED_BY_TASK, Endpoint
from toolkit.decisions.plan import Plan
from toolkit.decisions.sets import PLACE
from toolkit.decisions.subgroup import EPISODES
from toolkit.registers.study import Study


def rows_query(endpoint: Endpoint, plan: Plan, study: Study) -> str:
    """Return a SELECT over a study's registers that lists the rows an endpoint reads."""
    if endpoint.attributes:
        return _counted(endpoint, plan, study)
    conditions = [f"{name} = {quoted(value)}" for name, value in sorted(endpoint.where.items())]
    if endpoint.steps:
        conditions.append(f"step IN ({_list(map(str, endpoint.steps))})")
    if endpoint.by == "checkpoint":
        columns = ["trajectory", "step"]
        places = [f"(trajectory = {quoted(t)} AND step = {s})" for t, s in endpoint.checkpoints]
        conditions.append(f"({' OR '.join(places)})")
    elif endpoint.by == "row":
        columns = ["run_id", "step"]
    else:
        columns = ["arm", "seed", "run_id", *(["step"] if endpoint.steps else [])]
        conditions.append(f"run_id IN ({_runs(endpoint, plan)})")
    selected = _list([*columns, *endpoint.outcome.columns])
    return f"SELECT {selected} FROM {endpoint.register} WHERE {' AND '.join(conditions)} ORDER BY ALL"


def _counted(endpoint: Endpoint, plan: Plan, study: Study) -> str:
    """Return a SELECT that counts the episodes of an endpoint on some tasks: a row an evaluation."""
    conditions = [
        *(
            f"episodes.{name} = {quoted(value)}"
            for name, value in sorted(endpoint.where.items())
            if name in PLACE
        ),
        *(
            f"attributes ->> {quoted(name)} = {quoted(value)}"
            for name, value in sorted(endpoint.attributes.items())
        ),
        f"episodes.step IN ({_list(map(str, endpoint.steps))})",
        f"run_id IN ({_runs(endpoint, plan)})",
        *(
            ["NOT excluded"]
            if study.has(EPISODES) and "excluded" in study.table(EPISODES).column_names
            else []
        ),
    ]
    count, of = endpoint.outcome.columns
    sums = f"sum({COUNTED_BY_TASK[count]}) AS {count}, count(*) AS {of}"
    return (
        f"SELECT arm, seed, run_id, episodes.step, {sums} "
        "FROM episodes JOIN runs USING (run_id) "
        'JOIN task_pools ON task_pools.pool = episodes.pool AND task_pools."index" = episodes.task '
        f"WHERE {' AND '.join(conditions)} GROUP BY ALL ORDER BY ALL"
    )


def _runs(endpoint: Endpoint, plan: Plan) -> str:
    conditions = [
        f"condition = {quoted(endpoint.condition)}",
        f"arm IN ({_list(map(quoted, endpoint.arms))})",
        f"seed IN ({_list(map(str, endpoint.seeds))})",
        *([f"scale_rewards = {quoted(endpoint.scale_rewards)}"] if endpoint.scale_rewards else []),
        f"role IN ({_list(map(quoted, plan.roles))})",
        "status = 'COMPLETE'",
    ]
    return f"SELECT run_id FROM runs WHERE {' AND '.join(conditions)}"


def quoted(value: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def _list(values: Iterable[str]) -> str:
    return ", ".join(values)
