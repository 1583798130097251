"""Importing counts what is in the table, in whatever order its rows stand."""

import random
from collections import Counter
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.registers.importing.test_tables import MAPPING
from toolkit.registers.importing.mapping import parse_mapping
from toolkit.registers.importing.source import ROW
from toolkit.registers.importing.tables import tables_of

NAMED = parse_mapping(
    MAPPING.replace('task = "problem"', 'task = "problem"\nschedule = "trial"\nstep = "at"').replace(
        "step = 0\n", ""
    )
)
KEY = st.tuples(
    st.sampled_from(["A-1", "two"]),
    st.integers(0, 2),
    st.sampled_from([0, 10, 200]),
    st.sampled_from(["a", "b", "ä", "10", "9"]),
    st.integers(0, 3),
)


def run_of(agent: str, rng: int) -> str:
    return f"main-{'one' if agent == 'A-1' else agent}-s{rng}"


def frame(episodes: list[tuple[tuple[Any, ...], bool]]) -> pl.DataFrame:
    names = ("agent", "rng", "at", "problem", "trial")
    rows = [{**dict(zip(names, map(str, key), strict=True)), "solved": str(won)} for key, won in episodes]
    return pl.DataFrame(rows).with_row_index(ROW, offset=1)


@given(st.dictionaries(KEY, st.booleans(), min_size=1), st.randoms(use_true_random=False))
def test_rows_are_counted_in_any_order(won: dict[tuple[Any, ...], bool], order: random.Random) -> None:
    episodes = list(won.items())
    made = tables_of(frame(episodes), NAMED)
    played, solved = Counter[Any](), Counter[Any]()
    for (agent, rng, at, _, _), success in episodes:
        played[run_of(agent, rng), at] += 1
        solved[run_of(agent, rng), at] += success
    counted = made["evaluations"].select("run_id", "step", "episodes", "successes").rows()
    assert counted == sorted((run, at, n, solved[run, at]) for (run, at), n in played.items())
    names = dict(made["task_pools"].select("index", "task_id").rows())
    columns = made["episodes"].select("run_id", "step", "task", "schedule", "true_success").rows()
    rows = {(run, step, names[task], schedule): success for run, step, task, schedule, success in columns}
    assert len(columns) == len(episodes)
    assert rows == {(run_of(agent, rng), *where): success for (agent, rng, *where), success in episodes}
    order.shuffle(episodes)
    again = tables_of(frame(episodes), NAMED)
    assert all(again[name].equals(table) for name, table in made.items())
