"""Where every series of a stream stands, in arrays: a block touches those of its series only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.data.series import within
from tempriv.errors import StateError, require
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import OpaqueRows
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.mechanisms.stream import MOST_STEPS
from tempriv.streaming._kernels import NEVER
from tempriv.streaming.text_buffer import NOTHING, TextBuffer, Waiting

Integers = npt.NDArray[np.int64]

SHARD = 256
"""Series whose standing is saved together."""

DAMAGED = "the state is damaged: it does not say where its series stand"


class SeriesStates:
    """Steps, times and memories of all series, and the cells that can still come out.

    ``rings`` hold the last ``reach`` cells of each series and column, at their step modulo
    ``reach``; their letters are in ``waiting``.
    """

    def __init__(self, mechanism: Mechanism, reach: int, columns: int):
        self.mechanism, self.reach = mechanism, reach
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        self.names_digest = ""
        self.step = np.zeros(0, dtype=np.int64)
        self.first = np.zeros(0, dtype=np.int64)
        self.last = np.zeros(0, dtype=np.int64)
        self.taken = np.zeros(0, dtype=np.int64)
        self.landmarks = np.zeros(0, dtype=np.int64)
        self.seen = np.zeros(0, dtype=np.uint64)
        self.memory = np.zeros((0, mechanism.memory_size), dtype=np.int64)
        self.waiting = Waiting()
        none = TextBuffer(np.zeros((0, reach), np.int64), np.zeros((0, reach), np.int32))
        self.rings = [none for _ in range(columns if reach else 0)]
        # of series that a saved state knew: how much they had consumed then, and its marks
        self.wanted = np.zeros(0, dtype=np.int64)
        self.wanted_seen = np.zeros(0, dtype=np.uint64)
        self.again = np.zeros(0, dtype=np.int64)
        self.again_last = np.zeros(0, dtype=np.int64)
        self.again_landmarks = np.zeros(0, dtype=np.int64)
        self.again_seen = np.zeros(0, dtype=np.uint64)

    ARRAYS = (
        "step",
        "first",
        "last",
        "taken",
        "landmarks",
        "seen",
        "memory",
        "wanted",
        "wanted_seen",
        "again",
        "again_last",
        "again_landmarks",
        "again_seen",
    )
    SAVED = ("step", "first", "last", "taken", "seen")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Places({len(self)} series)"

    def numbers_of(self, names: Sequence[str]) -> tuple[Integers, list[str]]:
        """The numbers of some series, and those of them that are new."""
        known, fresh = self.numbers, []
        found = list(map(known.get, names))
        if None in found:
            for name in names:
                if name in known:
                    continue
                fresh.append(name)
                known[name] = len(self.names)
                self.names.append(name)
                chained = self.names_digest.encode() + name.encode("utf-8", "surrogatepass")
                self.names_digest = hashlib.blake2b(chained, digest_size=16).hexdigest()
            if len(self.names) > len(self.step):
                self._grow(len(self.names))
            found = list(map(known.get, names))
        return np.array(found, dtype=np.int64), fresh

    def _grow(self, least: int) -> None:
        room = max(least, 2 * len(self.step), SHARD)
        old = len(self.step)
        for name in self.ARRAYS:
            array = getattr(self, name)
            larger = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
            larger[:old] = array
            setattr(self, name, larger)
        self.last[old:] = NEVER
        self.again[old:] = -1
        for i, ring in enumerate(self.rings):
            empty = TextBuffer.none(room * self.reach)
            wider = TextBuffer(empty.at.reshape(room, -1), empty.lengths.reshape(room, -1))
            wider.at[:old], wider.lengths[:old] = ring.at, ring.lengths
            self.rings[i] = wider

    def keep(
        self, numbers: Integers, counts: Integers, starts: Integers, columns: Sequence[TextBuffer]
    ) -> None:
        """Put the last cells of some series into their rings.

        Columns hold the rows of one series after the other, ``counts`` of each from ``starts`` on.
        """
        if not self.rings:
            return
        nth = within(counts)
        recent = np.flatnonzero(nth >= np.repeat(counts - self.reach, counts))
        slot = (nth + np.repeat(starts, counts))[recent] % self.reach
        place = np.repeat(numbers, counts)[recent] * self.reach + slot
        for ring, column in zip(self.rings, columns, strict=True):
            ring.at.reshape(-1)[place] = column.at[recent]
            ring.lengths.reshape(-1)[place] = column.lengths[recent]
        if self.waiting.is_untidy:
            self._tidy()

    def _tidy(self) -> None:
        """Forget the letters of cells that have left the rings."""
        every = TextBuffer(
            np.concatenate([ring.at.reshape(-1) for ring in self.rings]),
            np.concatenate([ring.lengths.reshape(-1) for ring in self.rings]),
        )
        at = self.waiting.keep_only(every).reshape(len(self.rings), -1, self.reach)
        for ring, now in zip(self.rings, at, strict=True):
            ring.at[:] = now

    def cells(self, column: int, numbers: Integers, steps: Integers) -> TextBuffer:
        """Cells of earlier blocks, by series and step."""
        place, ring = numbers * self.reach + steps % self.reach, self.rings[column]
        return TextBuffer(ring.at.reshape(-1)[place], ring.lengths.reshape(-1)[place])

    # saving

    def shards(self, numbers: Integers) -> Iterable[tuple[int, bytes]]:
        """Everything of the series that these stand together with, as bytes."""
        for shard in np.unique(numbers // SHARD).tolist():
            low = shard * SHARD
            high = min(low + SHARD, len(self.names))
            parts = [getattr(self, name)[low:high].tobytes() for name in self.SAVED]
            parts.append(self.memory[low:high].tobytes())
            parts += [part for ring in self.rings for part in self._packed(ring, low, high)]
            body = b"".join(parts)
            yield shard, hashlib.blake2b(body, digest_size=16).digest() + body

    def _packed(self, ring: TextBuffer, low: int, high: int) -> list[bytes]:
        """Lengths and letters of the cells in a ring."""
        cells = TextBuffer(ring.at[low:high].reshape(-1), ring.lengths[low:high].reshape(-1))
        return [cells.lengths.tobytes(), self.waiting.gathered(cells)[0].tobytes()]

    def load(self, names: Sequence[str], shards: Iterable[tuple[int, bytes]]) -> None:
        """Stand where the saved series stood; anything damaged is refused."""
        self.numbers_of(names)
        require(len(self.names) == len(names), DAMAGED, StateError)
        loaded = 0
        for shard, data in shards:
            low = shard * SHARD
            high = min(low + SHARD, len(self.names))
            require(0 <= low < high, DAMAGED, StateError)
            self._unpack(low, high, data)
            loaded += high - low
        require(loaded == len(names), DAMAGED, StateError)
        rows = slice(0, len(names))
        self._refuse_impossible()
        self.wanted[rows], self.wanted_seen[rows] = self.step[rows], self.seen[rows]

    def _unpack(self, low: int, high: int, data: bytes) -> None:
        body, at = data[16:], 0
        whole = hashlib.blake2b(body, digest_size=16).digest() == data[:16]
        require(whole, DAMAGED, StateError)
        for name in (*self.SAVED, "memory"):
            array = getattr(self, name)[low:high]
            size = array.nbytes
            require(at + size <= len(body), DAMAGED, StateError)
            array[:] = np.frombuffer(body, dtype=array.dtype, count=array.size, offset=at).reshape(
                array.shape
            )
            at += size
        for ring in self.rings:
            count = (high - low) * self.reach
            require(at + 4 * count <= len(body), DAMAGED, StateError)
            lengths = np.frombuffer(body, dtype=np.int32, count=count, offset=at)
            at += 4 * count
            size = int(np.maximum(lengths, 0).sum(dtype=np.int64))
            require(
                at + size <= len(body) and bool((lengths >= NOTHING).all()), DAMAGED, StateError
            )
            letters = np.frombuffer(body, dtype=np.uint8, count=size, offset=at)
            at += size
            cells = self.waiting.loaded(letters, lengths)
            ring.at[low:high] = cells.at.reshape(high - low, self.reach)
            ring.lengths[low:high] = lengths.reshape(high - low, self.reach)
        require(at == len(body), DAMAGED, StateError)

    def _refuse_impossible(self) -> None:
        """What no stream can have saved, and what a kernel could be led astray by."""
        count, form = len(self.names), self.mechanism.domain
        steps, taken = self.step[:count], self.taken[:count]
        sound = bool(
            ((steps >= 0) & (steps < MOST_STEPS) & (taken == steps)).all()
            and ((self.last >= self.first) | (self.last == NEVER))[:count].all()
        )
        require(sound, DAMAGED, StateError)
        if not isinstance(form, (OpaqueRows, WithLandmarks)):
            return
        could: Any = self.mechanism
        for number in np.flatnonzero(steps).tolist():
            memory, step = self.memory[number], int(steps[number])
            require(bool(could.could_remember(memory, step)), DAMAGED, StateError)
            self.landmarks[number] = self.mechanism.landmarks_so_far(self.memory[number][None])
