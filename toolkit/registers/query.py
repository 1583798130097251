"""SQL over a study's registers, here or in place on the Hub: read-only, nothing else within reach."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.deadline import within
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.files import writing
from toolkit.registers import manifest as manifests
from toolkit.registers.hub import client as hub
from toolkit.registers.hub.client import Reference
from toolkit.registers.hub.transfer import list_register, read_file
from toolkit.registers.manifest import LARGEST_MANIFEST, MANIFEST_NAME, Manifest, Origin
from toolkit.registers.study import Study, create_view, literals

if TYPE_CHECKING:
    import duckdb


T = TypeVar("T")

_BATCH = 100_000
"""Rows that are fetched at once."""

TIMEOUT_S = 60.0
"""Seconds that DuckDB may work on an answer: the registers here answer within one."""
GRACE_S = 1.0
"""Seconds in which DuckDB stops: within one value, such as a list of a billion numbers, it does not look."""
MOST_KEPT = 5_000_000
"""Rows of an answer that is held at once: as Python's values they take some gigabytes."""


@dataclass(frozen=True)
class RemoteStudy:
    """A study on the Hub, its files stated to be the manifest's; the ranges that are read are not hashed."""

    origin: Origin
    manifest: Manifest
    failures: list[Exception] = field(default_factory=list, compare=False)  # why ranges could not be read

    @property
    def place(self) -> str:
        """Repository and commit, as an error names them."""
        return self.origin.pinned

    def datasets(self) -> Mapping[str, Any]:
        """Return an Arrow dataset a table, by name; it reads what a query needs when the query runs."""
        files = self._filesystem()
        return {name: self._dataset(entry.files, files) for name, entry in self.manifest.tables.items()}

    def tell_failure(self) -> None:
        """Raise why the Hub could not be read: DuckDB passes on the words of an error alone."""
        with hub.telling(self.place, "reading the study in place"):
            for failure in self.failures:
                raise failure

    def _dataset(self, names: Sequence[str], files: Any) -> Any:
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        doing = "reading the study in place"
        # One file says what the columns are: all of them have those of the table.
        schema = hub.ask(self.place, doing, lambda: pq.read_schema(names[0], filesystem=files))
        return ds.FileSystemDataset.from_paths(
            list(names), schema=schema, format=ds.ParquetFileFormat(), filesystem=files
        )

    def _filesystem(self) -> Any:
        """Return the files of the commit as a file system of Arrow's, which reads nothing ahead."""
        import pyarrow as pa
        import pyarrow.fs
        from huggingface_hub import HfFileSystem

        files = HfFileSystem(endpoint=hub.endpoint(), skip_instance_cache=True)
        failures, root = self.failures, f"datasets/{self.origin.pinned}"

        class Handler(pa.fs.FSSpecHandler):  # type: ignore[misc]
            def open_input_file(self, path: str) -> Any:
                with _noted(failures):
                    opened = files.open(f"{root}/{path}", "rb", cache_type="none")
                return pa.PythonFile(_Ranges(opened, failures), mode="r")

            def open_input_stream(self, path: str) -> Any:
                return self.open_input_file(path)

        return pa.fs.PyFileSystem(Handler(files))


@contextmanager
def _noted(failures: list[Exception]) -> Iterator[None]:
    """Note an error, of which DuckDB passes on the words alone."""
    try:
        yield
    except Exception as error:
        failures.append(error)
        raise


class _Ranges:
    """A file of the Hub whose ranges are whole, or fail."""

    def __init__(self, opened: Any, failures: list[Exception]) -> None:
        self._opened, self._failures = opened, failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, all of those asked for."""
        left = max(0, self._opened.size - self._opened.tell())
        wanted = left if size < 0 else min(size, left)
        if not wanted:
            return b""
        with _noted(self._failures):
            content = bytes(self._opened.read(wanted))
            if len(content) != wanted:
                raise IncompleteError(f"{len(content)} bytes of a file came where {wanted} were asked for")
        return content


def open_remote(reference: Reference, *, say: Callable[[str], None] = lambda _: None) -> RemoteStudy:
    """Open a study on the Hub without fetching it; what the Hub states of its files is the manifest's."""
    origin, is_online = hub.resolve(reference, offline=False, accept_moved=False, say=say)
    if not is_online:
        raise IncompleteError(
            "a study is read in place only where the Hub can be asked",
            where=origin.pinned,
            remedy="leave out --remote",
        )
    listing = list_register(origin)
    where = f"{origin.pinned}/{MANIFEST_NAME}"
    manifest = manifests.parse_manifest(read_file(origin, MANIFEST_NAME, listing, LARGEST_MANIFEST), where)
    manifests.check_known(manifest, where)
    for name in (file for table in manifest.tables.values() for file in table.files):
        stated, entry = listing.get(name), manifest.files[name]
        if stated is None:
            problem = f"{name} is not on the Hub"
            raise hub.NoFileError(problem, expected="the manifest's file", where=origin.pinned)
        if stated.sha256 is None:
            raise IncompleteError(
                f"the Hub states no SHA-256 for {name}",
                expected="a Parquet file that was uploaded as a large file",
                where=origin.pinned,
                remedy="fetch the study: toolkit registers pull",
            )
        if (stated.sha256, stated.bytes) != (entry.sha256, entry.bytes):
            raise DamagedError(
                f"{name} on the Hub is not the file that the manifest names",
                expected=f"SHA-256 {entry.sha256}, {entry.bytes} bytes",
                found=f"SHA-256 {stated.sha256}, {stated.bytes} bytes",
                where=origin.pinned,
                remedy="ask for another revision, or tell the study's authors",
            )
    return RemoteStudy(origin, manifest)


@dataclass(frozen=True)
class Answer:
    """The result of a query: column names and rows of Python values."""

    columns: tuple[str, ...]  # their names
    rows: tuple[tuple[Any, ...], ...]  # the rows; the first ones where not all were asked for
    total: int  # how many rows there are


@dataclass(frozen=True)
class Asking:
    """A study opened for queries; it is called with a query and returns the answer."""

    _connection: duckdb.DuckDBPyConnection
    _remote: RemoteStudy | None = None
    _timeout_s: float = TIMEOUT_S
    _stuck: list[threading.Event] = field(default_factory=list)

    def __call__(self, sql: str, most: int | None = None) -> Answer:
        """Return the answer to a query."""
        kept: list[tuple[Any, ...]] = []
        total = 0
        columns: tuple[str, ...] = ()
        for names, rows in self.batches(sql):
            columns = names
            total += len(rows)
            kept += rows if most is None else rows[: max(0, most - len(kept))]
            if len(kept) > MOST_KEPT:
                raise UsageError(
                    "the answer is too long to be held at once",
                    expected=f"{MOST_KEPT} rows at most",
                    remedy="take it as it comes: --csv or --parquet",
                )
        return Answer(columns, tuple(kept), total)

    def batches(self, sql: str) -> Iterator[tuple[tuple[str, ...], list[tuple[Any, ...]]]]:
        """Yield column names and rows, as many at a time as fit anywhere, the first time perhaps none."""
        patience = _Patience(self._connection, self._timeout_s, self._stuck)
        with self._refusals():
            statement = patience.wait(lambda: reading_statement(self._connection, sql))
            cursor = patience.wait(lambda: self._connection.execute(statement))
            columns = tuple(entry[0] for entry in cursor.description or ())
            yield columns, []
            while rows := patience.wait(lambda: cursor.fetchmany(_BATCH)):
                yield columns, rows

    def write_parquet(self, sql: str, path: Path) -> int:
        """Write the answer to a query as a Parquet file of DuckDB's types; return the number of its rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if path.exists():
            raise UsageError(
                "an answer replaces no file", found=path, remedy="give another name, or remove the file"
            )
        with self._refusals(), writing(path) as beside:
            patience = _Patience(self._connection, self._timeout_s, self._stuck)
            statement = patience.wait(lambda: reading_statement(self._connection, sql))
            reader = patience.wait(lambda: self._connection.sql(statement.query).to_arrow_reader(_BATCH))
            try:
                with pq.ParquetWriter(beside, reader.schema, compression="zstd") as writer:
                    return patience.wait(lambda: _pour(reader, writer))
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise UsageError(
                    "the answer has no form in Parquet",
                    found=str(error).splitlines()[0],
                    remedy="cast the column, as in CAST(… AS VARCHAR)",
                ) from None

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Say what DuckDB refuses as an error of this toolkit."""
        import duckdb

        try:
            yield
        except duckdb.OutOfMemoryException as error:
            raise UsageError(
                "the query needs more memory than it may use",
                found=str(error).splitlines()[0],
                remedy="ask for fewer rows or columns at once",
            ) from None
        except (duckdb.Error, UnicodeError) as error:
            if self._remote is not None and self._remote.failures:
                self._remote.tell_failure()
            raise UsageError(
                "DuckDB refused the query",
                found=" ".join(_LOCATION.split(str(error).strip())[0].split()),
                remedy="`toolkit registers schema` lists tables and columns",
            ) from None


# Where in its own form of the query DuckDB stopped, and tables of its own that are spelt alike.
_LOCATION = re.compile(r"\s*\n(?:\n?LINE \d+:|Did you mean \"pg_)")


class _Patience:
    """The time that is left for an answer."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, seconds: float, stuck: list[threading.Event]
    ) -> None:
        self._connection, self._seconds, self._stuck = connection, seconds, stuck
        self._left = seconds

    def wait(self, work: Callable[[], T]) -> T:
        """Do something so that the end of the time stops it, and Ctrl-C, at which DuckDB does not look."""
        begin, ended = time.monotonic(), threading.Event()

        def answer() -> T:
            try:
                return work()
            finally:
                ended.set()

        try:
            return within(max(self._left, 0), answer)
        except TimeoutError:
            self._stop(ended)
            raise UsageError(
                "the query takes too long",
                expected=f"an answer within {self._seconds:g} s",
                remedy=f"ask for less, or give it more time: --timeout {max(10, self._seconds * 10):g}",
            ) from None
        except KeyboardInterrupt:
            self._stop(ended)
            raise
        finally:
            self._left -= time.monotonic() - begin

    def _stop(self, ended: threading.Event) -> None:
        """Stop DuckDB; what does not stop is left behind, and with it the connection."""
        begin = time.monotonic()
        while not ended.is_set() and time.monotonic() - begin < GRACE_S:
            self._connection.interrupt()  # DuckDB forgets one that comes before it has begun
            ended.wait(0.05)
        if not ended.is_set():
            self._stuck.append(ended)


@contextmanager
def asking(study: Study | RemoteStudy, timeout_s: float = TIMEOUT_S) -> Iterator[Asking]:
    """Open a study for several queries."""
    if isinstance(study, RemoteStudy):
        connection, remote = open_sandbox(study.datasets(), study.place), study
    else:
        remote = None
        files = {table.name: study.paths(table.name) for table in study.tables}
        connection = open_sandbox(files, study.folder)
    stuck: list[threading.Event] = []
    try:
        yield Asking(connection, remote, timeout_s, stuck)
    finally:
        if not stuck:  # it would be waited for
            connection.close()


def ask(study: Study | RemoteStudy, sql: str) -> Answer:
    """Run one SELECT (or FROM, DESCRIBE, SUMMARIZE) on a study."""
    with asking(study) as run:
        return run(sql)


def _pour(reader: Any, writer: Any) -> int:
    rows = 0
    for batch in reader:
        writer.write_batch(batch)
        rows += batch.num_rows
    return rows


MEMORY = "4GiB"
"""What DuckDB may hold of a query's rows; it spills nothing to disk, and stops a query that needs more."""

_SETTINGS = (
    "SET temp_directory = ''",  # its files would be within reach
    "SET python_enable_replacements = false",  # or a query could read this program's variables
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET enable_external_access = false",
    "SET TimeZone = 'UTC'",
)

# Table functions that change what a connection does. DuckDB 1.5 runs them although the configuration is
# locked: with one, every query prints on stdout; another ends the process.
_CHANGING = ("ENABLE_", "DISABLE_")


def open_sandbox(tables: Mapping[str, Any], where: object) -> duckdb.DuckDBPyConnection:
    """Return a connection with one view a table, locked to what the tables are read from."""
    import duckdb

    connection = duckdb.connect()
    files = {name: literals(source) for name, source in tables.items() if not hasattr(source, "schema")}
    connection.execute(f"SET allowed_paths = [{', '.join(files.values())}]")
    for setting in (f"SET memory_limit = '{MEMORY}'", *_SETTINGS):
        connection.execute(setting)
    for name, source in tables.items():
        try:
            if name in files:
                create_view(connection, name, source)
            else:
                connection.register(name, source)
        except duckdb.Error as error:
            connection.close()
            raise DamagedError(
                f"the files of {name} are not readable Parquet files", found=error, where=where
            ) from None
    connection.execute("SET lock_configuration = true")
    return connection


def reading_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Return the one statement of a text, checked to do nothing but read."""
    import duckdb

    statements = connection.extract_statements(sql)
    # EXPLAIN is no reader: EXPLAIN ANALYZE runs whatever it explains.
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError(
            "a query is one statement that reads",
            expected="one SELECT, FROM, DESCRIBE or SUMMARIZE",
            found=", ".join(s.type.name for s in statements) or "nothing",
        )
    planned = connection.execute(f"EXPLAIN (FORMAT json) {statements[0].query}").fetchall()
    changing = [
        name for _, plan in planned for name in _operators(json.loads(plan)) if name.startswith(_CHANGING)
    ]
    if changing:
        raise UsageError(
            "a query reads, and changes no settings", found=", ".join(sorted(set(changing))).lower()
        )
    return statements[0]


def _operators(plan: Any) -> Iterator[str]:
    """Yield the names of a plan's operators; a table function is called as it is."""
    for step in plan:
        yield step["name"].strip()
        yield from _operators(step["children"])
