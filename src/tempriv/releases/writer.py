"""Released files: written aside, hashed, and put in place whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from tempriv.data.csv import csv_line, csv_rows
from tempriv.data.files import follow_umask, is_dead, private_file, sync_directory, write_durably
from tempriv.errors import DataError, TemprivError, UsageError, require
from tempriv.releases.description import (
    METADATA_KEY,
    as_json,
    sidecar_path,
    without_file,
)


def require_new_output(path: Path, force: bool) -> None:
    """Refuse a ``path`` that exists, unless ``force``, or is no CSV or Parquet file."""
    require(
        force or not path.exists(),
        f"{path}: exists already; choose another name, or replace it with [[force=True]]",
        TemprivError,
    )
    require(
        path.suffix.lower() in (".csv", ".parquet"),
        f"{path}: the output must end in .csv or .parquet",
        UsageError,
    )
    require(path.parent.is_dir(), f"{path.parent}: no such directory", UsageError)


class _HashedFile:
    """A file that is hashed while it is written."""

    def __init__(self, file: IO[bytes]):
        self.file = file
        self.digest = hashlib.blake2b(digest_size=32)
        self.size = 0
        self.closed = False

    def write(self, data: Any) -> int:
        """Write the bytes of ``data``, and hash them."""
        self.file.write(data)
        self.digest.update(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self.file.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


class ReleaseWriter:
    """An output under way: written aside, then put in place in one step.

    Used as a context: on any failure before ``publish`` the partial file is removed.
    """

    def __init__(self, path: Path, release_id: str):
        self.path = path
        self.partial = partial_path(path, release_id)
        self.rows = 0
        self._parquet: Any = None
        self._file: Any = None
        self._hashed: _HashedFile | None = None
        self.kept = False

    def __enter__(self) -> ReleaseWriter:
        self._file = private_file(self.partial)
        self._hashed = _HashedFile(self._file)
        return self

    def __exit__(self, *problem: Any) -> None:
        self._file.close()
        if not self.kept:
            self.partial.unlink(missing_ok=True)
            sidecar_path(self.partial).unlink(missing_ok=True)

    def add(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a ``batch``."""
        assert self._hashed is not None
        first = self.rows == 0
        self.rows += batch.num_rows
        if self.path.suffix.lower() == ".csv":
            if first:
                self._hashed.write(csv_line(batch.schema.names))
            self._hashed.write(csv_rows(batch))
            return
        if self._parquet is None:
            named = [f.name for f in batch.schema if pa.types.is_string(f.type)]
            # no Arrow schema inside: ids are plain text to whoever reads the file
            self._parquet = pa.parquet.ParquetWriter(
                self._hashed, batch.schema, use_dictionary=named, store_schema=False
            )
        self._parquet.write(batch)

    def close(self, about: dict[str, Any]) -> dict[str, Any]:
        """Finish the partial file; returns ``about`` with the file's checksum in it."""
        assert self._hashed is not None
        require(self.rows > 0, "there are no rows to write", DataError)
        # a release that was read back still describes the file it came from
        about = without_file(about)
        if self._parquet is not None:
            self._parquet.add_key_value_metadata({METADATA_KEY: json.dumps(about).encode()})
            self._parquet.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        output = {
            "file": self.path.name,
            "bytes": self._hashed.size,
            "blake2b": self._hashed.digest.hexdigest(),
        }
        about = {**about, "output": output}
        write_durably(sidecar_path(self.partial), as_json(about))
        return about

    def publish(self, about: dict[str, Any]) -> None:
        """Put the finished file in place, its description ``about`` first."""
        self.kept = True
        publish(self.path, self.partial, about)


def publish(path: Path, partial: Path, about: dict[str, Any]) -> None:
    """Move ``partial`` to ``path`` beside ``about``, also for a run that was interrupted before."""
    final = sidecar_path(path)
    if partial.exists():
        # an older file must never stand beside the new description
        path.unlink(missing_ok=True)
    write_durably(final, as_json(about))
    follow_umask(final)
    if partial.exists():
        partial.replace(path)
        follow_umask(path)
    sidecar_path(partial).unlink(missing_ok=True)
    sync_directory(path.parent)


def partial_path(path: Path, release_id: str) -> Path:
    """Where the output of a ``release_id`` for ``path`` is while it is written."""
    return path.with_name(f".{path.name}.{os.getpid()}.{release_id}.partial")


def remove_stale_partials(path: Path, keep: Sequence[Path] = ()) -> None:
    """Remove what killed runs left of outputs at ``path``, but for those to ``keep``."""
    for file in path.parent.iterdir():
        beginning, _, rest = file.name.partition(f".{path.name}.")
        if beginning not in ("", ".") or ".partial" not in rest:
            continue
        owner = next((part for part in rest.split(".") if part.isdigit() and len(part) < 12), "")
        if is_dead(owner) and not any(file.name.startswith(partial.name) for partial in keep):
            file.unlink(missing_ok=True)
