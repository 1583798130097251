"""Whether a run's registers can hold what its sizes may come to: asked before anything of it is played."""

from collections.abc import Iterator
from typing import NamedTuple

from toolkit.errors import UsageError
from toolkit.files import LARGEST_ROWS
from toolkit.lab.evaluation import diagnostic
from toolkit.lab.play import segments
from toolkit.lab.tasks.pools import POOLS
from toolkit.lab.tasks.task import LARGEST_BUDGET
from toolkit.lab.training.recipe import recipe_of
from toolkit.lab.training.rows import MOST_DRAWS, RESAMPLED
from toolkit.registers import row_tables, schema
from toolkit.registers.columns import Column
from toolkit.specification import LanguageModelSpecification, Specification
from toolkit.verification.summaries import SUMMARIES

SYMBOLS_A_CALL = 4
"""Decisions and surface tokens of a log-linear policy for each call, at most: what is called, with which
token, how its answer is taken, and what is left out."""
BYTES_EACH = 4
"""PEFT keeps adapters in single precision."""
HEADER = 2**20
"""Bytes of a safetensors file's header, at most: names and places of some hundreds of tensors."""


class Most(NamedTuple):
    """The most that a column of a run's rows can come to, and what that is."""

    table: str
    column: Column
    value: int
    why: str


def check_capacity(run: Specification, coordinates: int | None = None) -> None:
    """Check that the registers can hold whatever a run's rows come to."""
    where = f"{run.run_id} of {run.study}"
    for most in largest(run, coordinates):
        holds = most.column.type.most
        if holds is not None and most.value > holds:
            raise UsageError(
                f"{most.table}.{most.column.name} cannot hold what {run.run_id} may come to",
                expected=f"{holds} at most ({most.column.type.value})",
                found=f"{most.value}: {most.why}",
                where=where,
                remedy="smaller sizes in the recipe or the matrix, or a wider column (toolkit/registers)",
            )
    size = (coordinates or 0) * BYTES_EACH + HEADER
    if size > LARGEST_ROWS:
        problem = f"the adapter of {run.run_id} is too large to be read"
        expected = f"{LARGEST_ROWS} bytes at most"
        found = f"{size} bytes: {coordinates} numbers"
        raise UsageError(problem, expected=expected, found=found, where=where, remedy="a smaller lora.rank")


def largest(run: Specification, coordinates: int | None = None) -> Iterator[Most]:
    """Yield the most of every whole number of a run's rows that is known before, table by table."""
    # What means the same in every table.
    place = {
        "seed": (run.seed, "the run's seed"),
        "step": (run.steps, "training steps"),
        "steps": (run.steps, "training steps"),
        "prompts_per_step": (run.prompts_per_step, "groups of a step"),
        "group_size": (run.group_size, "rollouts of a group"),
    }
    evaluated = [played for step in run.ends for played in segments.sets_of(run, step)]
    drawn = MOST_DRAWS if run.constant_groups == RESAMPLED else 1
    own = place | _sizes(run, drawn, max(each.schedules for each in evaluated))
    if coordinates is not None:
        own["coordinates"] = (coordinates, "the adapter")
    unknown = {"attempt", "processes"} | {"coordinates"} - set(own)
    # Columns of `groups` that such a run leaves out.
    unknown |= {"decisions"} if isinstance(run, LanguageModelSpecification) else {"tokens"}
    calls = (LARGEST_BUDGET, "calls of an episode, and their faults")
    # The most that anything counted over a run's episodes comes to: their calls are most.
    tables = len(run.diagnosed) * POOLS[diagnostic.POOL].size * diagnostic.SCHEDULES * diagnostic.SAMPLES
    episodes = drawn * run.groups * run.group_size + sum(each.tasks * each.schedules for each in evaluated)
    counted = ((episodes + tables) * LARGEST_BUDGET, f"calls of {episodes + tables} episodes")
    for name in (*segments.names_of(run), *SUMMARIES, row_tables.SCHEDULES.name, row_tables.LAUNCHES.name):
        known, rest = (place, counted) if name in SUMMARIES else (own, calls)
        others = unknown | {*row_tables.OF_IMPORTS} if name in {"episodes", "evaluations"} else unknown
        for column in schema.TABLES[name].columns:
            # Seeds of schedules have no most: they fill their type by their nature.
            if column.type.most is not None and column.name not in others:
                yield Most(name, column, *known.get(column.name, rest))


def _sizes(run: Specification, drawn: int, schedules: int) -> dict[str, tuple[int, str]]:
    rollouts, longest = run.group_size, (LARGEST_BUDGET + 1) * SYMBOLS_A_CALL
    sizes = {
        "from_step": (run.steps, "training steps"),
        "position": (run.prompts_per_step * drawn - 1, "groups of a step, from 0"),
        "exposed": (rollouts, "rollouts of a group"),
        "decisions": (rollouts * longest, f"{rollouts} rollouts of {longest} decisions and tokens at most"),
        "task": (max(pool.size for pool in POOLS.values()) - 1, "tasks of a pool, from 0"),
        "schedule": (max(schedules, diagnostic.SCHEDULES) - 1, "schedules of a task, from 0"),
    }
    if isinstance(run, LanguageModelSpecification):
        tokens = recipe_of(run).sampling.max_completion_tokens
        sizes["tokens"] = (tokens, "sampling.max_completion_tokens")
    return sizes
