"""Registers: what is there, what it means, whether it is whole, and how it travels."""

from typing import Annotated, Literal, TypedDict

from toolkit.prereg.token.verdict import Verdict
from toolkit.prereg.verification import Standing
from toolkit.registers.manifest import Evidence, Origin
from toolkit.structs import UNSET, Document, UnsetType, about

Verified = Annotated[Literal["verified"], about("A command that finds otherwise prints an error.")]
Written = Literal["written", "identical"]
"""`identical`: with --check, nothing was written, and the bytes are these."""


class ListedTable(Document, frozen=True):
    """A table of a study."""

    config: Annotated[str, about("Its name.")]
    rows: Annotated[int, about("How many rows.")]
    sha256: Annotated[str, about("Its logical row hash.")]


class ListedStudy(Document, frozen=True):
    """A study and its tables."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where it lies.")]
    evidence: Annotated[
        Evidence,
        about("`rows`: its own; `summary`: published figures only; `tasks`: tasks that others run on."),
    ]
    registration: Annotated[str, about("Name of the registration that it belongs to.")]
    tables: list[ListedTable]


class ColumnSchema(Document, frozen=True):
    """A column."""

    name: Annotated[str, about("Its name.")]
    type: Annotated[str, about("Its Arrow type.")]
    unit: Annotated[str | None, about("Null where it has none.")]
    nullable: Annotated[bool, about("Whether it may be null.")]
    optional: Annotated[bool, about("Whether a study may lack it.")]
    choices: Annotated[tuple[str, ...] | None, about("The values that it may have, where they are closed.")]
    meaning: Annotated[str, about("In words.")]


class TableSchema(Document, frozen=True):
    """A table of the schema."""

    config: Annotated[str, about("Its name.")]
    meaning: Annotated[str, about("What a row is.")]
    key: Annotated[tuple[str, ...], about("The columns that identify a row.")]
    columns: list[ColumnSchema]


class RegistersSchema(Document, frozen=True):
    """The schema of registers."""

    schema_version: Annotated[str, about("Another major version is not comparable.")]
    tables: list[TableSchema]


class VerifiedRegisters(Document, frozen=True, kw_only=True):
    """What was verified of a study, from its bytes to what follows from them."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Annotated[
        Verdict, about("`not_verified`: its registration fails; `incomplete`: its registration is not here.")
    ]
    missing: Annotated[str | UnsetType, about("Why its registration could not be compared.")] = UNSET
    registration: Annotated[Standing | None, about("Null where it belongs to none, or that is not here.")]
    origin: Annotated[Origin | None, about("Null for a local study.")]
    files: Annotated[int, about("How many files.")]
    rows: Annotated[dict[str, int], about("Rows by table.")]
    logical_sha256: Annotated[str, about("Of what the rows say: the same wherever the same rows were made.")]


class Audited(Document, frozen=True):
    """Random rows of a study, played again: all as registered."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Verified
    rows: Annotated[int, about("Rows that there are to draw from.")]
    sample: Annotated[int, about("Rows that were played again.")]
    seed: Annotated[int, about("Draws the same rows again.")]
    tables: Annotated[dict[str, int], about("Rows that were played again, by table.")]
    derived: Annotated[dict[str, int], about("Rows that were derived again, by table.")]
    runs: Annotated[tuple[str, ...], about("Runs that the rows belong to.")]


class BuiltRegisters(Document, frozen=True):
    """Registers that were built from their sources."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[int, about("How many.")]
    outcome: Annotated[Written, about("`identical`: with --check, nothing is written.")]


class FilledCard(Document, frozen=True):
    """The cards of a study, filled from its registers."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[list[str], about("Their names.")]
    outcome: Annotated[Written, about("`identical`: with --check, nothing is written.")]


class RegisteredRuns(Document, frozen=True):
    """Registered runs that a log has and has not."""

    present: Annotated[tuple[str, ...], about("Names of the runs.")]
    absent: Annotated[tuple[str, ...], about("Condition, arm and seed, in words.")]


class ImportedRegisters(Document, frozen=True):
    """A study that was made from its own log."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where it lies.")]
    outcome: Annotated[Written, about("`identical`: with --check, nothing is written.")]
    rows: Annotated[dict[str, int], about("Rows by table.")]
    logical_sha256: Annotated[str, about("Of what the rows say.")]
    registered_runs: RegisteredRuns
    unregistered_runs: Annotated[
        tuple[str, ...], about("Runs of the log that are not registered, and not decided on.")
    ]
    notes: Annotated[tuple[str, ...], about("What was left out of the log, and what is missing in it.")]
    verdicts: Annotated[dict[str, str], about("Verdict by rule.")]


class Pulled(Document, frozen=True):
    """A study that was pulled from the Hub, and verified."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Verified
    origin: Origin
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[int, about("How many files.")]
    logical_sha256: Annotated[str, about("Of what the rows say.")]


class WrittenAnswer(Document, frozen=True):
    """An answer that was written to a file: `sql --parquet`."""

    file: Annotated[str, about("Its path.")]
    rows: Annotated[int, about("How many rows.")]


AnswerRows = list[dict[str, object]]
"""The rows of an answer, value by column; what JSON has no word for is text."""


class PoolSummary(Document, frozen=True):
    """What a pool consists of."""

    pool: Annotated[str, about("Its name.")]
    tasks: Annotated[int, about("How many tasks.")]
    mean_calls: Annotated[float, about("Calls a plan.")]
    mean_writes: Annotated[float, about("Writes a plan.")]
    sha256: Annotated[str, about("Of its tasks.")]


class PlannedCallDocument(TypedDict):
    """A call of a plan."""

    tool: Annotated[str, about("Name of the tool.")]
    arguments: Annotated[dict[str, object], about("Its arguments, by name.")]


class TaskDocument(TypedDict):
    """Everything that makes a task of the back office."""

    task_id: Annotated[str, about("As pool:index.")]
    world_seed: Annotated[str, about("A whole number, as text: it may be beyond 2^53.")]
    prompt: Annotated[str, about("What the agent is asked.")]
    templates: Annotated[list[str], about("What the prompt asks for, part by part.")]
    forms: Annotated[list[str], about("How each part is phrased.")]
    writes: Annotated[int, about("Planned writes.")]
    budget: Annotated[int, about("Most calls.")]
    plan: list[PlannedCallDocument]
    expected: Annotated[
        dict[str, dict[str, object]],
        about("Records as they have to be at the end, by identifier: their fields."),
    ]
    world: Annotated[dict[str, dict[str, object]], about("Records at the start, by identifier.")]


class ShownTaskDocument(TaskDocument):
    """A task and its hash."""

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
