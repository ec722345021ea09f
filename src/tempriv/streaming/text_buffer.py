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

NOTHING = -1  # the length of a cell without anything
ROOM = 1 << 20  # letters that are not worth tidying up


@dataclass(frozen=True)
class TextBuffer:
    """Some cells: where each begins among all letters, and how long it is."""

    at: Integers
    lengths: Lengths

    def __len__(self) -> int:
        return len(self.at)

    def take(self, rows: Any) -> TextBuffer:
        return TextBuffer(self.at[rows], self.lengths[rows])

    @classmethod
    def none(cls, count: int) -> TextBuffer:
        return cls(np.zeros(count, np.int64), np.full(count, NOTHING, np.int32))


class Waiting:
    """The letters of all cells."""

    def __init__(self) -> None:
        self._letters: Letters = np.empty(ROOM, dtype=np.uint8)
        self.size = 0
        self._enough = ROOM

    def add(self, column: Any) -> TextBuffer:
        """Cells of a column of text; they stay until the next tidying up."""
        if not len(column):
            return TextBuffer.none(0)
        _, ends, letters = column.buffers()
        offsets = np.frombuffer(ends, dtype=np.int32)[column.offset :][: len(column) + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        text = np.frombuffer(letters or b"", dtype=np.uint8)[first:last]
        at = offsets[:-1].astype(np.int64) + (self.size - first)
        lengths = np.diff(offsets)
        if column.null_count:
            lengths[nulls(column)] = NOTHING
        self._put(text)
        return TextBuffer(at, lengths)

    def _put(self, text: Letters) -> None:
        if self.size + len(text) > len(self._letters):
            larger = np.empty(max(2 * len(self._letters), self.size + len(text)), dtype=np.uint8)
            larger[: self.size] = self._letters[: self.size]
            self._letters = larger
        self._letters[self.size : self.size + len(text)] = text
        self.size += len(text)

    def texts(self, cells: TextBuffer) -> Any:
        """The cells as a column of text."""
        letters, ends = self.gathered(cells)
        gone = cells.lengths == NOTHING
        bitmap = pa.py_buffer(np.packbits(~gone, bitorder="little")) if gone.any() else None
        buffers = [bitmap, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(letters)]
        return pa.Array.from_buffers(pa.string(), len(cells), buffers)

    def gathered(self, cells: TextBuffer) -> tuple[Letters, Integers]:
        """Letters of the cells one after the other, and where each ends."""
        ends = np.zeros(len(cells) + 1, dtype=np.int64)
        np.cumsum(np.maximum(cells.lengths, 0), out=ends[1:])
        letters: Letters = np.empty(int(ends[-1]), dtype=np.uint8)
        copy_texts(self._letters, cells.at, cells.lengths, ends, letters)
        return letters, ends

    def loaded(self, letters: Letters, lengths: Lengths) -> TextBuffer:
        """Cells whose letters are given one after the other."""
        at = self.size + np.cumsum(np.maximum(lengths, 0)) - np.maximum(lengths, 0)
        self._put(letters)
        return TextBuffer(at.astype(np.int64), lengths)

    @property
    def is_untidy(self) -> bool:
        return self.size > self._enough

    def keep_only(self, cells: TextBuffer) -> Integers:
        """Forget all other letters; gives where the cells begin now."""
        letters, ends = self.gathered(cells)
        self._letters, self.size = letters, len(letters)
        self._enough = max(ROOM, 2 * self.size)
        return ends[:-1]
