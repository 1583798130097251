"""The task pools as a dataset repository: one row a task, one split a pool."""

import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

from toolkit.canonical import canonical, document_sha256
from toolkit.cases import open_registers
from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.lab.tasks.pools import POOLS, digests_sha256, pool_sha256, tasks
from toolkit.lab.tasks.task import Task, task_document
from toolkit.lab.worlds.world import foreign_rows
from toolkit.places import Home
from toolkit.registers import arrow, writer
from toolkit.registers.cards import CARD, repository_documents
from toolkit.registers.manifest import Manifest, RegistrationRef
from toolkit.registers.study import Study
from toolkit.structs import Document, about

STUDY = "task-pools"
TABLE = "task_pools"
STUDY_POOLS = ("train", "validation", "test", "diagnostic")
"""The pools that a study's runs meet."""


class PoolSummary(Document, frozen=True):
    """What a pool consists of."""

    pool: Annotated[str, about("Its name.")]
    tasks: Annotated[int, about("How many tasks.")]
    mean_calls: Annotated[float, about("Calls a plan.")]
    mean_writes: Annotated[float, about("Writes a plan.")]
    sha256: Annotated[str, about("Of its tasks.")]


PoolSummaries = list[PoolSummary]


def summarize(name: str) -> PoolSummary:
    """Generate a pool and return what it consists of."""
    pool = list(tasks(name))
    return PoolSummary(
        name,
        len(pool),
        sum(len(task.plan) for task in pool) / len(pool),
        sum(task.writes for task in pool) / len(pool),
        pool_sha256(pool),
    )


def digests(
    names: Iterable[str], registered: Study | None, progress: Callable[[str], None]
) -> dict[str, str]:
    """Return the SHA-256 of pools: as registered where their register is here, or by the generator."""
    if registered is None:
        made = {}
        for name in names:
            progress(f"generating {name}")
            made[name] = pool_sha256(tasks(name))
        return made
    by_pool: dict[str, list[str]] = {}
    columns = registered.columns(TABLE, ("pool", "sha256"))
    for pool, sha256 in zip(columns["pool"].to_pylist(), columns["sha256"].to_pylist(), strict=True):
        by_pool.setdefault(pool, []).append(sha256)
    absent = [name for name in names if name not in by_pool]
    if absent:
        problem = f"the register of the task pools lacks {', '.join(absent)}"
        raise IncompleteError(problem, where=registered.folder, remedy="toolkit pools build")
    return {name: digests_sha256(by_pool[name]) for name in names}


def pool_digests(home: Home, names: Iterable[str], progress: Callable[[str], None]) -> dict[str, str]:
    """Return the SHA-256 of pools, by a home's register of them where it has one; the rest as `digests`."""
    registered = open_registers(STUDY, home) if (home.registers / STUDY).is_dir() else None
    return digests(names, registered, progress)


def specified(name: str, sha256: str, world: str = "") -> list[arrow.Row]:
    """Return the tasks of a pool as rows, checked to be those that a run was specified for."""
    rows = foreign_rows(world, name) if world else [task_row(task) for task in tasks(name)]
    check_specified(name, digests_sha256([row["sha256"] for row in rows]), sha256)
    return rows


def check_specified(name: str, generated: str, sha256: str) -> None:
    """Check that a pool is the one that a run was specified for."""
    if generated != sha256:
        problem = f"pool {name} is not the one that the runs were specified for"
        expected = f"SHA-256 {sha256}"
        remedy = "use the version of this package that the runs were specified with"
        raise VerificationError(problem, expected=expected, found=f"SHA-256 {generated}", remedy=remedy)


def row_document(row: arrow.Row) -> dict[str, Any]:
    """Return the document of a row's task, of which `sha256` is the digest."""
    try:
        parts = {name: json.loads(row[name]) for name in ("plan", "expected", "world")}
    except (ValueError, RecursionError) as error:
        where = f"{TABLE} row pool={row['pool']}, index={row['index']}"
        raise DamagedError("a task is no JSON", found=error, where=where) from None
    words = {name: row[name].split() for name in ("templates", "forms")}
    return (
        {name: row[name] for name in ("task_id", "world_seed", "prompt", "writes", "budget")} | parts | words
    )


def task_row(task: Task) -> arrow.Row:
    """Return a task as a row of the register."""
    document = task_document(task)
    return {
        "pool": task.pool,
        "index": task.index,
        "task_id": task.task_id,
        "world_seed": document["world_seed"],
        "prompt": task.prompt,
        "templates": " ".join(task.templates),
        "forms": " ".join(task.forms),
        "sub_requests": len(task.templates),
        "reads": task.reads,
        "writes": task.writes,
        "budget": task.budget,
        "plan": canonical(document["plan"]),
        "expected": canonical(document["expected"]),
        "world": canonical(document["world"]),
        "sha256": document_sha256(document),
    }


def build(
    folder: Path, card: str, registration: RegistrationRef, progress: Callable[[str], None]
) -> Manifest:
    """Write the repository of the task pools; the same generator gives the same bytes."""
    writer.check_place(folder, STUDY, [CARD, *(writer.parquet_name(TABLE, name) for name in POOLS)])
    rows: list[arrow.Row] = []
    for name in POOLS:
        progress(f"generating {name}")
        rows += [task_row(task) for task in tasks(name)]
    progress("writing")
    files = writer.rows_files({TABLE: rows})
    return writer.write_study(
        folder,
        study=STUDY,
        evidence="tasks",
        registration=registration,
        files=files,
        documents=repository_documents(card, files, registration=registration),
    )


def check(
    folder: Path, card: str, registration: RegistrationRef, progress: Callable[[str], None]
) -> Manifest:
    """Check that a repository is, byte for byte, what the generator gives; arguments as `build`."""
    with tempfile.TemporaryDirectory() as scratch:
        manifest = build(Path(scratch), card, registration, progress)
        writer.compare_built(folder, Path(scratch), manifest, "toolkit pools build")
    return manifest


def verify(study: Study, progress: Callable[[str], None]) -> dict[str, str]:
    """Check registered pools against the generator: every task made anew, every field compared."""
    registered = {(row["pool"], row["index"]): row for row in study.rows(TABLE)}
    digests: dict[str, str] = {}
    for name in POOLS:
        progress(f"verifying {name}")
        made = list(tasks(name))
        for task in made:
            stored = registered.pop((name, task.index), None)
            if stored is None:
                raise DamagedError(f"task {task.task_id} is missing", where=study.folder)
            for column, value in task_row(task).items():
                if value != stored[column]:
                    problem = f"{column} of task {task.task_id} is not what the generator gives"
                    expected = str(value)[:200]
                    found = str(stored[column])[:200]
                    raise VerificationError(problem, expected=expected, found=found, where=study.folder)
        digests[name] = pool_sha256(made)
    if registered:
        found = ", ".join(f"{pool}:{index}" for pool, index in list(registered)[:5])
        raise DamagedError("the register has tasks that no pool has", found=found, where=study.folder)
    return digests
