"""Registers: what is there, what it means, whether it is whole, and how it travels."""

from typing import Annotated, Literal, TypedDict

from toolkit.documents.verification import StandingDocument, Verdict
from toolkit.registers.manifest import Origin
from toolkit.structs import about

Verified = Annotated[Literal["verified"], about("A command that finds otherwise prints an error.")]
StudyEvidence = Literal["rows", "summary", "tasks"]
Written = Literal["written", "identical"]
"""`identical`: with --check, nothing was written, and the bytes are these."""


class ListedTableDocument(TypedDict):
    """A table of a study."""

    config: Annotated[str, about("Its name.")]
    rows: Annotated[int, about("How many rows.")]
    sha256: Annotated[str, about("Its logical row hash.")]


class ListedStudyDocument(TypedDict):
    """A study and its tables."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where it lies.")]
    evidence: Annotated[
        StudyEvidence,
        about("`rows`: its own; `summary`: published figures only; `tasks`: tasks that others run on."),
    ]
    registration: Annotated[str, about("Name of the registration that it belongs to.")]
    tables: list[ListedTableDocument]


class ColumnDocument(TypedDict):
    """A column."""

    name: Annotated[str, about("Its name.")]
    type: Annotated[str, about("Its Arrow type.")]
    unit: Annotated[str | None, about("Null where it has none.")]
    nullable: Annotated[bool, about("Whether it may be null.")]
    optional: Annotated[bool, about("Whether a study may lack it.")]
    choices: Annotated[list[str] | None, about("The values that it may have, where they are closed.")]
    meaning: Annotated[str, about("In words.")]


class TableSchemaDocument(TypedDict):
    """A table of the schema."""

    config: Annotated[str, about("Its name.")]
    meaning: Annotated[str, about("What a row is.")]
    key: Annotated[list[str], about("The columns that identify a row.")]
    columns: list[ColumnDocument]


class RegistersSchemaDocument(TypedDict):
    """The schema of registers."""

    schema_version: Annotated[str, about("Another major version is not comparable.")]
    tables: list[TableSchemaDocument]


class UnheldStudy(TypedDict, total=False):
    """What is said where a registration is not here."""

    missing: Annotated[str, about("Why nothing could be held against it.")]


class VerifiedStudyDocument(UnheldStudy):
    """What was verified of a study, from its bytes to what follows from them."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Annotated[
        Verdict, about("`not_verified`: its registration fails; `incomplete`: its registration is not here.")
    ]
    registration: Annotated[
        StandingDocument | None, about("Null where it belongs to none, or that is not here.")
    ]
    origin: Annotated[Origin | None, about("Null for a local study.")]
    files: Annotated[int, about("How many files.")]
    rows: Annotated[dict[str, int], about("Rows by table.")]
    logical_sha256: Annotated[str, about("Of what the rows say: the same wherever the same rows were made.")]


class AuditDocument(TypedDict):
    """Random rows of a study, played again: all as registered."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Verified
    rows: Annotated[int, about("Rows that there are to draw from.")]
    sample: Annotated[int, about("Rows that were played again.")]
    seed: Annotated[int, about("Draws the same rows again.")]
    tables: Annotated[dict[str, int], about("Rows that were played again, by table.")]
    derived: Annotated[dict[str, int], about("Rows that were derived again, by table.")]
    runs: Annotated[list[str], about("Runs that the rows belong to.")]


class BuiltRegistersDocument(TypedDict):
    """Registers that were built from their sources."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[int, about("How many.")]
    outcome: Annotated[Written, about("`identical`: with --check, nothing is written.")]


class CardDocument(TypedDict):
    """The cards of a study, filled from its registers."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[list[str], about("Their names.")]
    outcome: Annotated[Written, about("`identical`: with --check, nothing is written.")]


class SaidDocument(TypedDict):
    """Something that two studies say differently; null where one says nothing of it."""

    what: Annotated[str, about("What it is about; of a document, its name.")]
    first: Annotated[str | None, about("What A says; of a document, its SHA-256.")]
    second: Annotated[str | None, about("What B says.")]


class ChangedRowDocument(TypedDict):
    """A row that both studies have, and that is not the same in both."""

    key: Annotated[dict[str, object], about("Value by column.")]
    values: Annotated[
        dict[str, tuple[object, object]], about("Values in A and in B by column, where they differ.")
    ]


class TableDifferenceDocument(TypedDict):
    """What differs in a table; counts of rows are null where only one study has it."""

    table: Annotated[str, about("Name of the table.")]
    rows: Annotated[tuple[int | None, int | None], about("Rows in A and in B; null without the table.")]
    key: Annotated[list[str], about("The columns that identify a row.")]
    added: Annotated[int | None, about("Keys that B alone has.")]
    removed: Annotated[int | None, about("Keys that A alone has.")]
    changed: Annotated[int | None, about("Keys that both have with other values.")]
    columns: Annotated[dict[str, int] | None, about("Rows in which it differs, by column.")]
    first_columns: Annotated[list[str], about("Columns that A alone has.")]
    second_columns: Annotated[list[str], about("Columns that B alone has.")]
    added_examples: Annotated[list[dict[str, object]], about("Some of the keys.")]
    removed_examples: Annotated[list[dict[str, object]], about("Some of the keys.")]
    changed_examples: list[ChangedRowDocument]


class DifferenceDocument(TypedDict):
    """What differs between two studies, A and B."""

    first: Annotated[str, about("A, as it was named.")]
    second: Annotated[str, about("B, as it was named.")]
    differs: Annotated[bool, about("Whether anything does.")]
    facts: Annotated[list[SaidDocument], about("What the manifests say.")]
    documents: Annotated[list[SaidDocument], about("Files that belong to no table.")]
    tables: Annotated[list[TableDifferenceDocument], about("Tables that differ.")]
    same_tables: Annotated[list[str], about("Tables whose rows are the same.")]


class RegisteredRunsDocument(TypedDict):
    """Registered runs that a log has and has not."""

    present: Annotated[list[str], about("Names of the runs.")]
    absent: Annotated[list[str], about("Condition, arm and seed, in words.")]


class ImportDocument(TypedDict):
    """A study that was made from its own log."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where it lies.")]
    outcome: Annotated[Written, about("`identical`: with --check, nothing is written.")]
    rows: Annotated[dict[str, int], about("Rows by table.")]
    logical_sha256: Annotated[str, about("Of what the rows say.")]
    registered_runs: RegisteredRunsDocument
    unregistered_runs: Annotated[
        list[str], about("Runs of the log that are not registered, and not decided on.")
    ]
    notes: Annotated[list[str], about("What was left out of the log, and what is missing in it.")]
    verdicts: Annotated[dict[str, str], about("Verdict by rule.")]


class PushDocument(TypedDict):
    """What was pushed to the Hub, or would be."""

    repository: Annotated[str, about("As owner/name.")]
    outcome: Annotated[Literal["planned", "unchanged", "pushed"], about("`planned`: with --dry-run.")]
    parent: Annotated[str | None, about("The commit that was compared; null where there is no repository.")]
    commit: Annotated[str | None, about("The commit that holds the study; null where nothing was sent.")]
    tag: Annotated[str | None, about("The tag that means this commit.")]
    checked_files: Annotated[int, about("Files that the Hub was seen to state as they are here.")]
    added: Annotated[tuple[str, ...], about("Paths.")]
    changed: Annotated[tuple[str, ...], about("Paths.")]
    deleted: Annotated[tuple[str, ...], about("Paths.")]
    same: Annotated[int, about("Files that were there already.")]


class PullDocument(TypedDict):
    """A study that was pulled from the Hub, and verified."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Verified
    origin: Origin
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[int, about("How many files.")]
    logical_sha256: Annotated[str, about("Of what the rows say.")]


class ParquetDocument(TypedDict):
    """An answer that was written to a file: `sql --parquet`."""

    file: Annotated[str, about("Its path.")]
    rows: Annotated[int, about("How many rows.")]


AnswerRows = list[dict[str, object]]
"""The rows of an answer, value by column; what JSON has no word for is text."""


class PoolDocument(TypedDict):
    """A task pool."""

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


class BuiltPoolsDocument(TypedDict):
    """The dataset repository of the task pools, as it was built."""

    folder: Annotated[str, about("Where it lies.")]
    tasks: Annotated[int, about("How many tasks.")]
    files: Annotated[int, about("How many files.")]
    outcome: Annotated[Written, about("`identical`: with --check, nothing is written.")]


class VerifiedPoolsDocument(TypedDict):
    """Registered pools, each task generated anew and compared."""

    verdict: Verified
    study: Annotated[str, about("Name of the study.")]
    pools: Annotated[dict[str, str], about("SHA-256 by pool.")]
