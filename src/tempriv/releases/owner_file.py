"""What stays with the data owner of a release: its landmarks, and what each reading spent.

Budgets tell which moments are landmarks, so they go into a file of their own that only its owner
can read. It names the release that it belongs to, and is put in place with it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from tempriv.data.csv import csv_line, csv_rows
from tempriv.data.files import private_file, sync_directory
from tempriv.releases.description import owner_path

LANDMARK, SPENT, RELEASE = "landmark", "epsilon", "release"
"""Its columns after those that name a reading: 1 at landmarks, the part of epsilon that was spent,
and the release that it was spent for."""


def partial_owner_path(partial: Path) -> Path:
    """Where the owner's file is while the output waits in ``partial``."""
    return partial.with_name(partial.name + ".owner")


class OwnerFile:
    """Rows as they come, aside. As a context it leaves nothing half done."""

    def __init__(self, partial: Path):
        self.partial = partial_owner_path(partial)
        self._file: Any = None
        self.kept = False

    def __enter__(self) -> OwnerFile:
        return self

    def __exit__(self, *problem: Any) -> None:
        if self._file is not None:
            self._file.close()
        if not self.kept:
            self.partial.unlink(missing_ok=True)

    def add(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a ``batch``."""
        if self._file is None:
            self._file = private_file(self.partial)
            self._file.write(csv_line(batch.schema.names))
        self._file.write(csv_rows(batch))

    def close(self) -> None:
        """All of it is on the disk."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


def put_in_place(output: Path, partial: Path) -> None:
    """Move the owner's file of ``partial`` to that of ``output``, whose earlier one is removed."""
    final = owner_path(output)
    if partial_owner_path(partial).exists():
        partial_owner_path(partial).replace(final)
    else:
        final.unlink(missing_ok=True)
    sync_directory(output.parent)
