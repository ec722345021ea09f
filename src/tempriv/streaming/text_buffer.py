"""Text that waits to come out, in one buffer: no object is made for any cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.data.arrow import nulls
from tempriv.streaming._kernels import copy_texts

Integers = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.int32]
Letters = npt.NDArray[np.uint8]

MISSING_LENGTH = -1  # the length of a cell without anything
FIRST_BYTES = 1 << 20  # letters that are not worth tidying up


@dataclass(frozen=True)
class TextSpans:
    """Some cells: where each begins among all letters, and how long it is."""

    at: Integers
    lengths: Lengths

    def __len__(self) -> int:
        return len(self.at)

    def take(self, rows: Any) -> TextSpans:
        """The spans in some ``rows``."""
        return TextSpans(self.at[rows], self.lengths[rows])

    @classmethod
    def none(cls, count: int) -> TextSpans:
        """So many spans without anything, ``count``."""
        return cls(np.zeros(count, np.int64), np.full(count, MISSING_LENGTH, np.int32))


class TextBuffer:
    """The letters of all cells."""

    def __init__(self) -> None:
        self._letters: Letters = np.empty(FIRST_BYTES, dtype=np.uint8)
        self.size = 0
        self._enough = FIRST_BYTES

    def add(self, column: Any) -> TextSpans:
        """Add the cells of a ``column`` of text; they stay until the next tidying up."""
        if not len(column):
            return TextSpans.none(0)
        _, ends, letters = column.buffers()
        offsets = np.frombuffer(ends, dtype=np.int32)[column.offset :][: len(column) + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        text = np.frombuffer(letters or b"", dtype=np.uint8)[first:last]
        at = offsets[:-1].astype(np.int64) + (self.size - first)
        lengths = np.diff(offsets)
        if column.null_count:
            lengths[nulls(column)] = MISSING_LENGTH
        self._put(text)
        return TextSpans(at, lengths)

    def _put(self, text: Letters) -> None:
        if self.size + len(text) > len(self._letters):
            larger = np.empty(max(2 * len(self._letters), self.size + len(text)), dtype=np.uint8)
            larger[: self.size] = self._letters[: self.size]
            self._letters = larger
        self._letters[self.size : self.size + len(text)] = text
        self.size += len(text)

    def texts(self, cells: TextSpans) -> Any:
        """The ``cells`` as a column of text."""
        letters, ends = self.gathered(cells)
        gone = cells.lengths == MISSING_LENGTH
        bitmap = pa.py_buffer(np.packbits(~gone, bitorder="little")) if gone.any() else None
        buffers = [bitmap, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(letters)]
        return pa.Array.from_buffers(pa.string(), len(cells), buffers)

    def gathered(self, cells: TextSpans) -> tuple[Letters, Integers]:
        """Letters of the cells one after the other, and where each ends."""
        ends = np.zeros(len(cells) + 1, dtype=np.int64)
        np.cumsum(np.maximum(cells.lengths, 0), out=ends[1:])
        letters: Letters = np.empty(int(ends[-1]), dtype=np.uint8)
        copy_texts(self._letters, cells.at, cells.lengths, ends, letters)
        return letters, ends

    def loaded(self, letters: Letters, lengths: Lengths) -> TextSpans:
        """Add cells from their ``letters`` one after the other, and their ``lengths``."""
        at = self.size + np.cumsum(np.maximum(lengths, 0)) - np.maximum(lengths, 0)
        self._put(letters)
        return TextSpans(at.astype(np.int64), lengths)

    @property
    def is_untidy(self) -> bool:
        return self.size > self._enough

    def keep_only(self, cells: TextSpans) -> Integers:
        """Forget all other letters; gives where the cells begin now."""
        letters, ends = self.gathered(cells)
        self._letters, self.size = letters, len(letters)
        self._enough = max(FIRST_BYTES, 2 * self.size)
        return ends[:-1]
