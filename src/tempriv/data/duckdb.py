"""Private tables through DuckDB: column types, and rows sorted by series and time, out of core.

Nothing of a table's content may reach an error message. What does not fit in memory is spilled to a
directory of its own, which a guard process removes however the run ends, kill -9 included. Spilled
data are encrypted too, in case the machine itself goes down; that is a second line only, since the
key comes from DuckDB's built-in generator, which is not made for keys.
"""

from __future__ import annotations

import atexit
import contextlib
import csv
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from tempriv.data.files import is_dead
from tempriv.data.series import require_columns
from tempriv.errors import DataError, require

MEMORY_LIMIT = "400MB"
BATCH_ROWS = 500_000
SPILL_PREFIX = "tempriv-sort-"
# remove the directory named last once the input has ended; the shell starts faster than Python
SHELL_GUARD = ("/bin/sh", "-c", 'cat > /dev/null; rm -rf -- "$0"')
REMOVE = "import shutil, sys; sys.stdin.read(); shutil.rmtree(sys.argv[1], ignore_errors=True)"
PYTHON_GUARD = (sys.executable, "-I", "-c", REMOVE)
ROW_NUMBER = "file_row_number"  # a column that DuckDB adds to Parquet files

INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
NUMBERS = INTEGERS | {"UBIGINT", "HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN"}


def quoted(name: str) -> str:
    """A ``name`` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A ``text`` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


@contextlib.contextmanager
def _reading(source: str) -> Iterator[None]:
    """DuckDB's messages quote the rows they stumble on; keep only where they stumbled."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException) as problem:
        if "No space left" in str(problem):
            raise DataError(
                f"{source}: no space is left for sorting in {tempfile.gettempdir()}; "
                "free some or set TMPDIR to a larger disk"
            ) from None
        line = re.search(r"[Ll]ine:? (\d+)", str(problem))
        where = f" at line {line[1]}" if line else ""
        raise DataError(
            f"{source}: cannot be read as a table{where}; it must be a CSV file with a header, or "
            "a Parquet file, with the same columns in every row"
        ) from None


def remove_stale_spills() -> None:
    """Clear what was left when a machine went down."""
    for left in Path(tempfile.gettempdir()).glob(SPILL_PREFIX + "*"):
        owner = left.name.removeprefix(SPILL_PREFIX).split("-")[0]
        if is_dead(owner):
            shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def spill_directory() -> Iterator[str]:
    """A private directory that is gone afterwards, whatever happens to this process."""
    remove_stale_spills()
    path = tempfile.mkdtemp(prefix=f"{SPILL_PREFIX}{os.getpid()}-")
    # the guard's input ends when this process does; in a session of its own no signal reaches it
    guard = subprocess.Popen(
        [*(SHELL_GUARD if Path(SHELL_GUARD[0]).exists() else PYTHON_GUARD), path],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield path
    finally:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait()


class _Database:
    """One DuckDB that the tables of a process share, since opening one takes as long as a query.

    Its memory is bounded and what it spills is encrypted. Each table has a connection of its own,
    with tables and views that no other connection sees.
    """

    def __init__(self) -> None:
        self.users = 0
        self._held = contextlib.ExitStack()
        self._spill = Path(self._held.enter_context(spill_directory()))
        settings: dict[str, Any] = {
            "threads": _processors(),
            "memory_limit": MEMORY_LIMIT,
            "temp_directory": str(self._spill),
            "force_mbedtls_unsafe": True,
            "temp_file_encryption": True,
            "autoinstall_known_extensions": False,
        }
        self._first = self._held.enter_context(duckdb.connect(config=settings))

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own."""
        return self._first.cursor()

    @property
    def has_spilled(self) -> bool:
        """Whether something was written to disk."""
        return any(self._spill.iterdir())

    def close(self) -> None:
        """Free memory and remove what was spilled."""
        self._held.close()


# by process, since a database does not survive a fork, and by what its settings were made from
_databases: dict[tuple[Any, ...], _Database] = {}
_opening = threading.Lock()


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the DuckDB of this process."""
    key = (os.getpid(), tempfile.gettempdir(), MEMORY_LIMIT, _processors())
    with _opening:
        database = _databases.get(key)
        if database is None:
            database = _databases[key] = _Database()
        database.users += 1
    try:
        with database.connect() as con:
            con.execute("SET enable_progress_bar = false")
            # a time zone needs an extension that some builds lack; times are then left alone
            with contextlib.suppress(duckdb.Error):
                con.execute("SET TimeZone = 'UTC'")
            yield con
    finally:
        with _opening:
            database.users -= 1
            # nothing private stays on disk for as long as the process may run
            if not database.users and database.has_spilled:
                del _databases[key]
                database.close()


@atexit.register
def _close_databases() -> None:
    """Remove the spill directories before the process ends, not only soon after."""
    for key in [key for key in _databases if key[0] == os.getpid()]:
        _databases.pop(key).close()


def is_csv(source: Any) -> bool:
    """Whether a ``source`` is a file of cells without types, by its ending."""
    return isinstance(source, Path) and source.suffix.lower() in (".csv", ".tsv", ".txt", ".gz")


def _scan(path: Path, texts: Sequence[str] = (), empty_texts: bool = False) -> str:
    """The SQL that reads a file, by its ending; some columns of a CSV file as text."""
    require(path.exists(), f"{path}: no such file", DataError)
    require(path.is_file(), f"{path}: not a file", DataError)
    require(path.stat().st_size > 0, f"{path}: the file is empty", DataError)
    kind = path.suffix.lower()
    if kind in (".parquet", ".pq"):
        return f"read_parquet({literal(str(path))}, file_row_number = true)"
    if is_csv(path):
        types = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in texts)
        as_text = f", types = {{{types}}}" if types else ""
        as_text += ", allow_quoted_nulls = false" if empty_texts else ""
        options = f"header = true, skip = 0, sample_size = 100000{as_text}"
        return f"read_csv({literal(str(path))}, {options})"
    raise DataError(f"{path}: tables are read from .csv or .parquet files")


def header(path: Path) -> list[str]:
    """The column names of the file at ``path``; of a CSV file only the first line is read."""
    scan = _scan(path)
    if scan.startswith("read_csv"):
        opener = gzip.open if path.suffix.lower() == ".gz" else open
        with opener(path, "rt", newline="", encoding="utf-8-sig", errors="replace") as file:
            line = file.readline(1 << 20)
        try:
            dialect: Any = csv.Sniffer().sniff(line, delimiters=",;\t|")
        except csv.Error:
            dialect = csv.excel
        return [name.strip() for name in next(csv.reader([line], dialect), [])]
    with connection() as con, _reading(str(path)):
        rows = con.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
    return [row[0] for row in rows if row[0] != ROW_NUMBER]


@dataclass
class Table:
    """A table open for reading: where DuckDB finds it and what types its columns have.

    ``guessed`` are the types that they would have if none were taken as text.
    """

    con: duckdb.DuckDBPyConnection
    name: str
    scan: str
    types: Mapping[str, str]
    guessed: Mapping[str, str]

    def require_columns(self, names: Sequence[str]) -> None:
        """Say which columns exist when one of the ``names`` does not."""
        require_columns([name for name in self.types if name != ROW_NUMBER], names, self.name)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The result of a ``query`` as tuples."""
        with _reading(self.name):
            return self.con.execute(query).fetchall()

    def run(self, statement: str) -> None:
        """Carry out a ``statement`` that has no result."""
        with _reading(self.name):
            self.con.execute(statement)

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """The result of a ``query`` in Arrow batches; never materialized whole."""
        with _reading(self.name):
            reader = self.con.sql(query).to_arrow_reader(BATCH_ROWS)
        while True:
            with _reading(self.name):
                batch = next(reader, None)
            if batch is None:
                return
            yield batch


@contextlib.contextmanager
def open_table(
    source: Path | pa.Table, texts: Sequence[str] = (), empty_texts: bool = False
) -> Iterator[Table]:
    """Open a file or an Arrow table.

    Columns of ``texts`` are taken as they stand in a CSV file, which has no types: what looks like
    truth values, numbers or dates to DuckDB would come back in another spelling. With
    ``empty_texts`` an empty cell in quotes is a text without letters, and only one without quotes
    is missing.

    Parameters:
        source: a CSV or Parquet file, or an Arrow table.
        texts: columns to read as text.
        empty_texts: keep empty cells of text columns as empty text.
    """
    with connection() as con:
        if isinstance(source, Path):
            name, scan = str(source), _scan(source)
        else:
            name, scan = "the table", "private_table"
            con.register("private_table", source)
        with _reading(name):
            described = con.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
        guessed = _types(described)
        if scan.startswith("read_csv") and isinstance(source, Path):
            others = [name for name, kind in guessed.items() if name in texts and kind != "VARCHAR"]
            if others or empty_texts:
                scan = _scan(source, others, empty_texts)
                with _reading(name):
                    described = con.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
            # a guess that takes some other line for the header would show data as column names
            first = header(source)
            require(
                [row[0] for row in described] == first or len(set(first) - {""}) < len(first),
                f"{name}: the first line is not a header that fits the rows below it, or a name in "
                "it stands twice",
                DataError,
            )
        yield Table(con, name, scan, _types(described), guessed)


def _types(described: Sequence[tuple[Any, ...]]) -> dict[str, str]:
    return {row[0]: str(row[1]).split("(")[0] for row in described}
