"""`toolkit pools`: the task pools, generated, registered and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from toolkit import cases
from toolkit.cli.options import FILE, STUDY, argument, check_option, group, json_option, offer_studies, option
from toolkit.cli.output import print_json, print_table, say_line, say_lines, stepped, tell
from toolkit.errors import IncompleteError, UsageError
from toolkit.places import find_home
from toolkit.structs import Document, Verified, Written, about
from toolkit.verification.registered import published_reference

NAME = "task-pools"


class PlannedCall(Document, frozen=True):
    """A call of a plan."""

    tool: Annotated[str, about("Name of the tool.")]
    arguments: Annotated[dict[str, object], about("Its arguments, by name.")]


class ShownTask(Document, frozen=True):
    """Everything that makes a task of the back office, and its hash."""

    task_id: Annotated[str, about("As pool:index.")]
    world_seed: Annotated[str, about("A whole number, as text: it may be beyond 2^53.")]
    prompt: Annotated[str, about("What the agent is asked.")]
    templates: Annotated[list[str], about("What the prompt asks for, part by part.")]
    forms: Annotated[list[str], about("How each part is phrased.")]
    writes: Annotated[int, about("Planned writes.")]
    budget: Annotated[int, about("Most calls.")]
    plan: list[PlannedCall]
    expected: Annotated[
        dict[str, dict[str, object]],
        about("Records as they have to be at the end, by identifier: their fields."),
    ]
    world: Annotated[dict[str, dict[str, object]], about("Records at the start, by identifier.")]
    sha256: Annotated[str, about("Of the task's canonical document.")]


class BuiltPools(Document, frozen=True):
    """The dataset repository of the task pools, as it was built."""

    folder: Annotated[str, about("Where it lies.")]
    tasks: Annotated[int, about("How many tasks.")]
    files: Annotated[int, about("How many files.")]
    outcome: Annotated[Written, about("`identical`: with --check, nothing is written.")]


class VerifiedPools(Document, frozen=True):
    """Registered pools, each task generated anew and compared."""

    verdict: Verified
    study: Annotated[str, about("Name of the study.")]
    pools: Annotated[dict[str, str], about("SHA-256 by pool.")]


@group()
def pools() -> None:
    """List, show, build and verify the task pools."""


@pools.command("list")
def list_pools(*, as_json: bool = json_option) -> None:
    """List the pools.

    Each with its number of tasks, the lengths of their plans, and its SHA-256.

    \b
    Examples:
      toolkit pools list
      toolkit pools list --json
    """
    from toolkit.lab.task_pools import summarize
    from toolkit.lab.tasks.pools import POOLS

    summaries = []
    with stepped("pools", len(POOLS)) as progress:
        for name in POOLS:
            progress(f"generating {name}")
            summaries.append(summarize(name))
    if as_json:
        print_json(summaries)
        return
    print_table(
        ("pool", "tasks", "calls a plan", "writes a plan", "SHA-256"),
        [(s.pool, str(s.tasks), f"{s.mean_calls:.2f}", f"{s.mean_writes:.2f}", s.sha256) for s in summaries],
        numbers=True,
    )


@pools.command()
def show(*, task: str = argument(), as_json: bool = json_option) -> None:
    """Show TASK, called pool:index.

    Shown are its prompt, its plan and the end state that is expected.

    \b
    Examples:
      toolkit pools show validation:0
      toolkit pools show diagnostic:3 --json
    """
    from toolkit.lab.tasks.pools import load_task
    from toolkit.lab.tasks.task import task_document, task_sha256

    loaded = load_task(task)
    document = {**task_document(loaded), "sha256": task_sha256(loaded)}
    if as_json:
        print_json(document)
        return
    say_line(f"{loaded.task_id}   {', '.join(loaded.templates)}   budget {loaded.budget} calls")
    say_lines(f"\n{loaded.prompt}\n\nplan")
    for number, call in enumerate(loaded.plan, 1):
        arguments = ", ".join(f"{name}={value}" for name, value in call.arguments.items())
        say_line(f"{number:3}  {call.tool}({arguments})")
    say_lines(f"\nrecords that the plan changes: {', '.join(sorted(loaded.expected))}")
    say_line(f"SHA-256 {document['sha256']}")


@pools.command()
def build(
    *,
    out: Path | None = option(type=FILE, help="Folder to write; default: the project's own."),
    check: bool = check_option,
    as_json: bool = json_option,
) -> None:
    """Build the dataset repository of the task pools.

    The same generator gives the same bytes.

    \b
    Examples:
      toolkit pools build
      toolkit pools build --check
    """
    from toolkit.files import read_text
    from toolkit.lab import task_pools
    from toolkit.lab.tasks.pools import POOLS

    home = find_home()
    if out is None and not check:
        home.check_own("--out")
    folder = out or home.registers / NAME
    card = read_text(home.cards / f"{NAME}.md")
    with stepped("pools", len(POOLS) + 1) as progress:
        action = task_pools.check if check else task_pools.build
        manifest = action(folder, card, published_reference(home), progress)
    done: Written = "identical" if check else "written"
    rows = manifest.tables[task_pools.TABLE].rows
    files = len(manifest.files)
    document = BuiltPools(str(folder), rows, files, done)
    tell(document, f"{NAME}: {rows} tasks, {files} files {done} in {folder}", as_json=as_json)


@pools.command()
def verify(
    *,
    study: str = option(
        default=NAME, metavar=STUDY, shell_complete=offer_studies, help="Where the pools are."
    ),
    as_json: bool = json_option,
) -> None:
    """Verify registered pools.

    Each task is generated anew from its seed, and every field compared.

    \b
    Examples:
      toolkit pools verify
      toolkit pools verify --json
    """
    from toolkit.lab import task_pools
    from toolkit.lab.tasks.pools import POOLS

    home = find_home()
    if study == NAME and not (home.registers / NAME).is_dir():
        elsewhere = " --out FOLDER, and name it: --study FOLDER" if home.is_shipped else ""
        problem = "the task pools are not here"
        raise IncompleteError(problem, where=home.registers / NAME, remedy=f"toolkit pools build{elsewhere}")
    opened = cases.open_study(study, home)
    if not opened.has(task_pools.TABLE):
        raise UsageError(f"{opened.name!r} has no task pools", where=opened.folder)
    with stepped("pools", len(POOLS)) as progress:
        digests = task_pools.verify(opened, progress)
    document = VerifiedPools("verified", opened.name, digests)
    tell(
        document,
        *(line for name, sha256 in digests.items() for line in (f"{name}: verified", f"  SHA-256 {sha256}")),
        as_json=as_json,
    )


pools.fold("show", "list", "--task", "Show one task, such as validation:0.")
pools.fold("verify", "list", "--verify", "Generate the registered tasks again, and compare.")
