"""Marks of what a stream has consumed: a replay with other readings is told apart by them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.data.arrow import nulls
from tempriv.mechanisms.reorder.carry import bits
from tempriv.sampling.keys import fingerprints
from tempriv.streaming._kernels import PRIME, text_fingerprints
from tempriv.streaming.batch import Batch, Integers

STEP_BITS = 40  # bits of a place that say the step; those above, the series


class Fingerprints:
    """Keyed marks of readings in their places; their sum over a series does not tell cuts."""

    def __init__(self, secret: bytes, columns: int):
        self._keys = [_derived(secret, f"column {i}") for i in range(columns)]
        points = _derived(secret, "text")
        self._one, self._other = (int.from_bytes(points[i : i + 8], "big") % PRIME for i in (0, 8))

    def of(
        self, batch: Batch, rows: Integers, numbers: Integers, steps: Integers
    ) -> npt.NDArray[np.uint64]:
        """A fingerprint for each of some readings.

        Parameters:
            batch: holds the readings.
            rows: which of them.
            numbers: the series of each.
            steps: the step of each.
        """
        places = (numbers << STEP_BITS | steps).astype(np.uint64)
        total = np.zeros(len(rows), dtype=np.uint64)
        for i, key in enumerate(self._keys):
            if batch.cells is None:
                words = bits(batch.values[rows, i : i + 1], batch.missing[rows, i : i + 1])[:, 0]
            else:
                words = self._of_text(batch.cells[i])[rows]
            total += fingerprints(key, places, words)
        return total

    def _of_text(self, column: Any) -> npt.NDArray[np.uint64]:
        marks = np.empty(len(column), dtype=np.uint64)
        _, ends, letters = column.buffers()
        first = column.offset
        offsets = np.frombuffer(ends, dtype=np.int32)[first : first + len(column) + 1]
        text = np.frombuffer(letters or b"", dtype=np.uint8)
        text_fingerprints(offsets, text, nulls(column), self._one, self._other, marks)
        return marks


def _derived(secret: bytes, purpose: str) -> bytes:
    return hashlib.blake2b(purpose.encode(), key=secret, digest_size=32).digest()
