"""What stays with the data owner of a release, in files that only its owner can read.

Budgets tell which moments are landmarks, so landmarks and what each reading spent go into a file
that names the release and is put in place with it. What an attack reaches on the private table is
measured on private data, so it goes into another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.data.csv import csv_line, csv_rows
from tempriv.data.files import private_file, sync_directory, write_durably
from tempriv.data.series import Block
from tempriv.releases.description import owner_evidence_path, owner_path

Floats = npt.NDArray[np.floating[Any]]
Integers = npt.NDArray[np.int64]
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
    owner_evidence_path(output).unlink(missing_ok=True)
    sync_directory(output.parent)


MAX_SERIES, MAX_CELLS, MAX_ATTACKED = 1000, 512, 100
"""Series that are told apart, cells of each that are compared, and series that are looked for."""
FEW = 10
MEASURED = "measured on the private table: for its owner alone, not to be handed out"


class LinkageTrial:
    """An attack on the private table: somebody who knows a series whole looks for its rows.

    The first series of the table are kept, with their first readings, before and after. Some known
    ones are compared with all released ones; the nearest by mean absolute difference (by the part
    of categories that differ) is the attacker's guess. Nothing of it is random.

    Parameters:
        scales: by which differences in each column are divided; None for categories, of which it
            counts whether they are the same.
    """

    def __init__(self, scales: Sequence[float] | None):
        self.scales = scales
        self._parts: dict[str, list[tuple[int, Floats, Floats]]] = {}
        self._steps = 1

    def watch(self, private: Block, released: Block) -> None:
        """Keep of a block what is compared.

        Parameters:
            private: its readings.
            released: what came of them, row by row.
        """
        if len(self) >= MAX_SERIES and private.ids and private.ids[0] not in self._parts:
            return  # rows come series by series
        self._steps = max(1, MAX_CELLS // private.values.shape[1])
        first = 0
        for name, start, count in zip(
            private.ids, private.starts.tolist(), private.counts.tolist(), strict=True
        ):
            rows, first = slice(first, first + min(count, self._steps - start)), first + count
            if start >= self._steps or (name not in self._parts and len(self) >= MAX_SERIES):
                continue
            both = [np.where(b.missing[rows], np.nan, b.values[rows]) for b in (private, released)]
            self._parts.setdefault(name, []).append((start, both[0], both[1]))

    def __len__(self) -> int:
        """How many series are kept."""
        return len(self._parts)

    def found(self) -> dict[str, Any] | None:
        """How often the attacker was right; None with fewer than two series.

        Returns:
            Plain values for JSON, all of them private.
        """
        count = len(self)
        if count < 2:
            return None
        known, released = self._matrices()
        width = next(iter(self._parts.values()))[0][1].shape[1]
        attacked = np.unique(np.linspace(0, count - 1, min(count, MAX_ATTACKED)).astype(np.int64))
        ranks = self._ranks(known, released, attacked)
        found = {
            "question": "Which released series is one that somebody knows whole?",
            "method": "the released series nearest to the known one, by "
            + ("categories that differ" if self.scales is None else "mean absolute difference"),
            "series": count,
            "readings": int(known.shape[1]) // width,
            "looked_for": len(attacked),
            "found_first": float(np.mean(ranks < 1)),
            "chance_first": 1 / count,
        }
        if count > FEW:
            found["found_among_ten"] = float(np.mean(ranks < FEW))
            found["chance_among_ten"] = FEW / count
        return found

    def _matrices(self) -> tuple[Floats, Floats]:
        """Known and released cells, a row for each series; NaN where there is none.

        Differences are divided by the scales, so the cells are.
        """
        parts = list(self._parts.values())
        length = max(start + len(values) for one in parts for start, values, _ in one)
        width = parts[0][0][1].shape[1]
        both = np.full((2, len(parts), length, width), np.nan, dtype=np.float32)
        scales = np.ones(width) if self.scales is None else np.array(self.scales)
        for i, one in enumerate(parts):
            for start, before, after in one:
                both[0, i, start : start + len(before)] = before / scales
                both[1, i, start : start + len(after)] = after / scales
        known, released = both.reshape(2, len(parts), length * width)
        return known, released

    def _ranks(self, known: Floats, released: Floats, attacked: Integers) -> Floats:
        """How many released series are nearer to known ones than their own; half of equal ones."""
        there = ~np.isnan(released)
        complete = bool(there.all())
        ranks = np.empty(len(attacked))
        for i, one in enumerate(attacked):
            off = np.abs(released - known[one])
            if self.scales is None:
                off = (off > 0).astype(np.float32) + 0 * off
            if complete and not np.isnan(known[one]).any():
                far = off.sum(axis=1)
            else:
                compared = there & ~np.isnan(known[one])
                counts = compared.sum(axis=1)
                far = np.where(compared, off, 0).sum(axis=1) / np.maximum(counts, 1)
                far[counts == 0] = np.inf
            ranks[i] = (far < far[one]).sum() + ((far == far[one]).sum() - 1) / 2
        return ranks


def write_owner_evidence(output: Path, release_id: str, linkage: dict[str, Any]) -> None:
    """Write what was measured for the owner, beside a release; only its owner can read it.

    Parameters:
        output: the released file.
        release_id: of the release.
        linkage: what ``LinkageTrial.found`` gave.
    """
    kept = {"private": MEASURED, "release": release_id, "linkage": linkage}
    write_durably(owner_evidence_path(output), (json.dumps(kept, indent=2) + "\n").encode())
