"""Registers: what is there, what it means, whether it is whole, and how it travels."""

from typing import Annotated, Literal, TypedDict

from toolkit.documents.verification import StandingDocument, Verdict

Verified = Annotated[Literal["verified"], "A command that finds otherwise prints an error."]
StudyEvidence = Literal["rows", "summary", "tasks"]
Written = Literal["written", "identical"]
"""`identical`: with --check, nothing was written, and the bytes are these."""


class OriginDocument(TypedDict):
    """The commit of a dataset repository on the Hub that a study was read from."""

    repository: Annotated[str, "As owner/name."]
    revision: Annotated[str, "The branch, tag or SHA that was asked for."]
    commit: Annotated[str, "SHA of the commit that it was."]


class ListedTableDocument(TypedDict):
    """A table of a study."""

    config: Annotated[str, "Its name."]
    rows: Annotated[int, "How many rows."]
    sha256: Annotated[str, "Its logical row hash."]


class ListedStudyDocument(TypedDict):
    """A study and its tables."""

    study: Annotated[str, "Name of the study."]
    folder: Annotated[str, "Where it lies."]
    evidence: Annotated[
        StudyEvidence,
        "`rows`: its own; `summary`: published figures only; `tasks`: no runs, but tasks that others run on.",
    ]
    registration: Annotated[str, "Name of the registration that it belongs to."]
    tables: list[ListedTableDocument]


class ColumnDocument(TypedDict):
    """A column."""

    name: Annotated[str, "Its name."]
    type: Annotated[str, "Its Arrow type."]
    unit: Annotated[str | None, "Null where it has none."]
    nullable: Annotated[bool, "Whether it may be null."]
    optional: Annotated[bool, "Whether a study may lack it."]
    choices: Annotated[list[str] | None, "The values that it may have, where they are closed."]
    meaning: Annotated[str, "In words."]


class TableSchemaDocument(TypedDict):
    """A table of the schema."""

    config: Annotated[str, "Its name."]
    meaning: Annotated[str, "What a row is."]
    key: Annotated[list[str], "The columns that identify a row."]
    columns: list[ColumnDocument]


class RegistersSchemaDocument(TypedDict):
    """The schema of registers."""

    schema_version: Annotated[str, "Another major version is not comparable."]
    tables: list[TableSchemaDocument]


class UnheldStudy(TypedDict, total=False):
    """What is said where a registration is not here."""

    missing: Annotated[str, "Why nothing could be held against it."]


class VerifiedStudyDocument(UnheldStudy):
    """What was verified of a study, from its bytes to what follows from them."""

    study: Annotated[str, "Name of the study."]
    verdict: Annotated[
        Verdict, "`not_verified`: its registration fails; `incomplete`: its registration is not here."
    ]
    registration: Annotated[StandingDocument | None, "Null where it belongs to none, or that is not here."]
    origin: Annotated[OriginDocument | None, "Null for a local study."]
    files: Annotated[int, "How many files."]
    rows: Annotated[dict[str, int], "Rows by table."]
    logical_sha256: Annotated[str, "Of what the rows say: the same wherever the same rows were made."]


class AuditDocument(TypedDict):
    """Random rows of a study, played again: all as registered."""

    study: Annotated[str, "Name of the study."]
    verdict: Verified
    rows: Annotated[int, "Rows that there are to draw from."]
    sample: Annotated[int, "Rows that were played again."]
    seed: Annotated[int, "Draws the same rows again."]
    tables: Annotated[dict[str, int], "Rows that were played again, by table."]
    derived: Annotated[dict[str, int], "Rows that were derived again, by table."]
    runs: Annotated[list[str], "Runs that the rows belong to."]


class BuiltRegistersDocument(TypedDict):
    """Registers that were built from their sources."""

    study: Annotated[str, "Name of the study."]
    folder: Annotated[str, "Where it lies."]
    files: Annotated[int, "How many."]
    outcome: Annotated[Written, "`identical`: with --check, nothing is written."]


class CardDocument(TypedDict):
    """The cards of a study, filled from its registers."""

    study: Annotated[str, "Name of the study."]
    folder: Annotated[str, "Where it lies."]
    files: Annotated[list[str], "Their names."]
    outcome: Annotated[Written, "`identical`: with --check, nothing is written."]


class SaidDocument(TypedDict):
    """Something that two studies say differently; null where one says nothing of it."""

    what: Annotated[str, "What it is about; of a document, its name."]
    first: Annotated[str | None, "What A says; of a document, its SHA-256."]
    second: Annotated[str | None, "What B says."]


class ChangedRowDocument(TypedDict):
    """A row that both studies have, and that is not the same in both."""

    key: Annotated[dict[str, object], "Value by column."]
    values: Annotated[dict[str, tuple[object, object]], "Values in A and in B by column, where they differ."]


class TableDifferenceDocument(TypedDict):
    """What differs in a table; counts of rows are null where only one study has it."""

    table: Annotated[str, "Name of the table."]
    rows: Annotated[tuple[int | None, int | None], "Rows in A and in B; null without the table."]
    key: Annotated[list[str], "The columns that identify a row."]
    added: Annotated[int | None, "Keys that B alone has."]
    removed: Annotated[int | None, "Keys that A alone has."]
    changed: Annotated[int | None, "Keys that both have with other values."]
    columns: Annotated[dict[str, int] | None, "Rows in which it differs, by column."]
    first_columns: Annotated[list[str], "Columns that A alone has."]
    second_columns: Annotated[list[str], "Columns that B alone has."]
    added_examples: Annotated[list[dict[str, object]], "Some of the keys."]
    removed_examples: Annotated[list[dict[str, object]], "Some of the keys."]
    changed_examples: list[ChangedRowDocument]


class DifferenceDocument(TypedDict):
    """What differs between two studies, A and B."""

    first: Annotated[str, "A, as it was named."]
    second: Annotated[str, "B, as it was named."]
    differs: Annotated[bool, "Whether anything does."]
    facts: Annotated[list[SaidDocument], "What the manifests say."]
    documents: Annotated[list[SaidDocument], "Files that belong to no table."]
    tables: Annotated[list[TableDifferenceDocument], "Tables that differ."]
    same_tables: Annotated[list[str], "Tables whose rows are the same."]


class RegisteredRunsDocument(TypedDict):
    """Registered runs that a log has and has not."""

    present: Annotated[list[str], "Names of the runs."]
    absent: Annotated[list[str], "Condition, arm and seed, in words."]


class ImportDocument(TypedDict):
    """A study that was made from its own log."""

    study: Annotated[str, "Name of the study."]
    folder: Annotated[str, "Where it lies."]
    outcome: Annotated[Written, "`identical`: with --check, nothing is written."]
    rows: Annotated[dict[str, int], "Rows by table."]
    logical_sha256: Annotated[str, "Of what the rows say."]
    registered_runs: RegisteredRunsDocument
    unregistered_runs: Annotated[list[str], "Runs of the log that are not registered, and not decided on."]
    notes: Annotated[list[str], "What was left out of the log, and what is missing in it."]
    verdicts: Annotated[dict[str, str], "Verdict by rule."]


class PushDocument(TypedDict):
    """What was pushed to the Hub, or would be."""

    repository: Annotated[str, "As owner/name."]
    outcome: Annotated[Literal["planned", "unchanged", "pushed"], "`planned`: with --dry-run."]
    parent: Annotated[str | None, "The commit that was compared; null where there is no repository."]
    commit: Annotated[str | None, "The commit that holds the study; null where nothing was sent."]
    tag: Annotated[str | None, "The tag that means this commit."]
    checked_files: Annotated[int, "Files that the Hub was seen to state as they are here."]
    added: Annotated[tuple[str, ...], "Paths."]
    changed: Annotated[tuple[str, ...], "Paths."]
    deleted: Annotated[tuple[str, ...], "Paths."]
    same: Annotated[int, "Files that were there already."]


class PullDocument(TypedDict):
    """A study that was pulled from the Hub, and verified."""

    study: Annotated[str, "Name of the study."]
    verdict: Verified
    origin: OriginDocument
    folder: Annotated[str, "Where it lies."]
    files: Annotated[int, "How many files."]
    logical_sha256: Annotated[str, "Of what the rows say."]


class ParquetDocument(TypedDict):
    """An answer that was written to a file: `sql --parquet`."""

    file: Annotated[str, "Its path."]
    rows: Annotated[int, "How many rows."]


AnswerRows = list[dict[str, object]]
"""The rows of an answer, value by column; what JSON has no word for is text."""


class PoolDocument(TypedDict):
    """A task pool."""

    pool: Annotated[str, "Its name."]
    tasks: Annotated[int, "How many tasks."]
    mean_calls: Annotated[float, "Calls a plan."]
    mean_writes: Annotated[float, "Writes a plan."]
    sha256: Annotated[str, "Of its tasks."]


class PlannedCallDocument(TypedDict):
    """A call of a plan."""

    tool: Annotated[str, "Name of the tool."]
    arguments: Annotated[dict[str, object], "Its arguments, by name."]


class TaskDocument(TypedDict):
    """Everything that makes a task of the back office."""

    task_id: Annotated[str, "As pool:index."]
    world_seed: Annotated[str, "A whole number, as text: it may be beyond 2^53."]
    prompt: Annotated[str, "What the agent is asked."]
    templates: Annotated[list[str], "What the prompt asks for, part by part."]
    forms: Annotated[list[str], "How each part is phrased."]
    writes: Annotated[int, "Planned writes."]
    budget: Annotated[int, "Most calls."]
    plan: list[PlannedCallDocument]
    expected: Annotated[
        dict[str, dict[str, object]], "Records as they have to be at the end, by identifier: their fields."
    ]
    world: Annotated[dict[str, dict[str, object]], "Records at the start, by identifier."]


class ShownTaskDocument(TaskDocument):
    """A task and its hash."""

    sha256: Annotated[str, "Of the task's canonical document."]


class BuiltPoolsDocument(TypedDict):
    """The dataset repository of the task pools, as it was built."""

    folder: Annotated[str, "Where it lies."]
    tasks: Annotated[int, "How many tasks."]
    files: Annotated[int, "How many files."]
    outcome: Annotated[Written, "`identical`: with --check, nothing is written."]


class VerifiedPoolsDocument(TypedDict):
    """Registered pools, each task generated anew and compared."""

    verdict: Verified
    study: Annotated[str, "Name of the study."]
    pools: Annotated[dict[str, str], "SHA-256 by pool."]
