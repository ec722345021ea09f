"""What stays with the data owner of a release: its landmarks, and what each reading spent.

Budgets tell which moments are landmarks, so they go into a file of their own that only its owner
can read. It is in place before the release is.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from tempriv.csv_cells import csv_line, csv_rows
from tempriv.files import private_file, sync_directory

OWNER = ".owner.csv"
LANDMARK, SPENT = "landmark", "epsilon"
"""Its columns after those that name a reading: 1 at landmarks, and the part of epsilon spent."""


def owner_path(output: Path) -> Path:
    return output.with_name(output.name + OWNER)


class OwnerFile:
    """Rows as they come, aside; put in place at once. As a context it leaves nothing half done."""

    def __init__(self, output: Path, release_id: str):
        self.path = owner_path(output)
        self.partial = output.with_name(f".{output.name}.{os.getpid()}.{release_id}.owner.partial")
        self._file: Any = None
        self._in_place = self.kept = False

    def __enter__(self) -> OwnerFile:
        return self

    def __exit__(self, *problem: Any) -> None:
        if self._file is not None:
            self._file.close()
            self.partial.unlink(missing_ok=True)
        if self._in_place and not self.kept:
            self.path.unlink(missing_ok=True)

    def add(self, batch: pa.RecordBatch) -> None:
        if self._file is None:
            self._file = private_file(self.partial)
            self._file.write(csv_line(batch.schema.names))
        self._file.write(csv_rows(batch))

    def put_in_place(self) -> None:
        """Before the release is paid for, so that whoever has the one has the other."""
        if self._file is None:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self.partial.replace(self.path)
        sync_directory(self.path.parent)
        self._file, self._in_place = None, True
