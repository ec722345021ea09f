"""A series passing through a mechanism, a block at a time, and going on where it stood."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.data.boundary import public_array
from tempriv.data.series import Block, joined
from tempriv.errors import DataError, StateError, require
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import Integers, OpaqueRows, names_of, numbers_of
from tempriv.mechanisms.perturb import on_grid, pending_rows, perturb_block
from tempriv.mechanisms.reorder.carry import (
    bits,
    finite,
    from_state,
    is_flat,
    is_single,
    rows_of,
    to_state,
    with_none,
)
from tempriv.privacy import serialization
from tempriv.sampling.keys import EPOCH, Key, SeriesKey, fingerprint
from tempriv.sampling.keystream import StepRange

Array = npt.NDArray[Any]
"""Numbers, or objects such as names."""

MAGIC = b"tempriv state 2\n"
MOST_STEPS = 2**40  # more than any clock ticks; a state that says so is damaged
_NONE = np.zeros(1, dtype=np.int64)


class Stream:
    """One series passing through a mechanism, a block at a time.

    Made by ``mechanism.start(key, series)`` or ``resume(mechanism, state, key)``.

    Parameters:
        mechanism: what readings pass through.
        key: the link of the key chain that belongs to this series.
        series: its id.
        seen: the keyed sum of the readings so far.
        step: how many readings there were.
        progress: how far the key has come with this series.
        memory: what the mechanism remembers of it.
        held: earlier rows that may still come out.

    Guarantees:
        - any cutting of the readings into blocks gives the same outputs;
        - the state holds what is needed to go on, and never the key.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> stream = Laplace(epsilon=1.0, bounds=(0, 5)).start(Key.generate(), "home")
    >>> stream.push(0.5).shape, stream.push([0.4, 3.1]).shape, stream.step
    ((1,), (2,), 3)
    """

    def __init__(
        self,
        mechanism: Mechanism,
        key: SeriesKey,
        series: str,
        seen: Seen,
        step: int = 0,
        progress: Progress | None = None,
        memory: Integers | None = None,
        held: Block | None = None,
    ):
        self.mechanism = mechanism
        self.series = series
        self.step = step
        self.seen = seen
        fresh = np.zeros((1, mechanism.memory_size), dtype=np.int64)
        self._memory = fresh if memory is None else memory
        # what a mechanism that takes whole series has to wait for, or the rows that may still come
        # out of one that moves them
        self._held = [] if held is None else [held]
        self._finished = False
        self._key = key
        self._progress = progress

    def __repr__(self) -> str:
        name = type(self.mechanism).__name__
        return f"Stream({name}, series={self.series!r}, step={self.step})"

    def push(self, values: npt.ArrayLike) -> Array:
        """Release the next readings; values outside the bounds count as the nearest bound.

        Parameters:
            values: one value or one row of values for each step. Missing numbers are masked
                (numpy.ma); categories go by their names, a missing one is None.

        Returns:
            An array of the same form.

        Raises:
            DataError: NaN, other columns than before, or a stream that was finished.
        """
        categories = self.mechanism.domain.categories
        if isinstance(self.mechanism.domain, OpaqueRows):
            rows = [values] if is_single(values) else values
            block = rows_of(rows, self.series, self.step)
            return self._shaped(self.push_block(block), is_flat(values))
        flat = np.ndim(values) < 2
        if categories is not None:
            values = numbers_of(values, categories)
        block = Block.of(np.atleast_1d(np.ma.asarray(values)), self.series, self.step)
        return self._shaped(self.push_block(block), flat)

    def _shaped(self, out: Block, flat: bool) -> Array:
        categories = self.mechanism.domain.released.categories
        if categories is not None:
            names = names_of(out, categories)
            return names[:, 0] if flat else names
        missing = out.missing[:, 0] if flat else out.missing
        shaped = public_array(out.values[:, 0] if flat else out.values, missing)
        if shaped.dtype == object:
            return with_none(shaped, missing)
        return np.ma.array(shaped, mask=missing.copy()) if out.missing.any() else shaped

    def push_block(self, block: Block) -> Block:
        """The same for a ``block`` of this series."""
        require(
            block.starts.tolist() == [self.step],
            f"the block does not start at step {self.step}, where this series stands: push every "
            "reading once, in order",
            DataError,
        )
        require(not self._finished, "this stream was finished: it takes no more", DataError)
        require(
            finite(block),
            "a reading is NaN or infinite: mask missing readings instead (numpy.ma)",
            DataError,
        )
        width = block.values.shape[1]
        began = self._held[0].values.shape[1] if self._held else width
        require(
            width == began,
            f"{width} value columns, but the series began with {began}: a row has the same columns "
            "at every step",
            DataError,
        )
        readings = on_grid(self.mechanism, block)
        if not self.mechanism.takes_whole:
            self.mechanism.require_room(block, self._memory)
        # noted before memory moves and before anything is out: whatever fails, these steps are gone
        self._take(self.step, self.step + len(block))
        if self.mechanism.takes_whole:
            self._held.append(block)
            none = self._told(block.part(0, 0))
            out = replace(none, ids=block.ids, counts=_NONE, starts=block.starts)
        else:
            runs = [StepRange(self._key, self.step, len(block))]
            held = self._held[0] if self._held else None
            out = perturb_block(self.mechanism, block, runs, self._memory, readings, held)
            rows = pending_rows(self.mechanism, held, block)
            self._held = [] if rows is None else [rows]
        self.seen = self.seen.with_block(block)
        self.step += len(block)
        return out

    def _told(self, block: Block) -> Block:
        """The columns that come out."""
        if not self.mechanism.domain.marked:
            return block
        return replace(block, values=block.values[:, :-1], missing=block.missing[:, :-1])

    def _take(self, step: int, stop: int) -> None:
        """Make these steps ours; refused if another stream has them already."""
        if self._progress is not None:
            self._progress.ask(step)
            self._progress.note(stop)

    def finish(self) -> Array:
        """What is left to release at the end: nothing, for mechanisms that hold nothing back."""
        return self._shaped(self.finish_block(), flat=False)

    def finish_block(self) -> Block:
        """The same as a block."""
        mechanism, domain = self.mechanism, self.mechanism.domain
        held = joined(self._held, self.series, domain.columns)
        waits = not mechanism.takes_whole
        if self._finished or self.step == 0 or (waits and not domain.latency):
            return self._told(held.part(0, 0))
        # past any step, so that no state of this stream can be gone on with
        self._take(self.step, MOST_STEPS)
        block, earlier = held, None
        if waits:
            none = held.part(0, 0)
            starts = np.array([self.step], dtype=np.int64)
            block = replace(none, ids=held.ids, counts=_NONE, starts=starts)
            earlier = held
        runs = [StepRange(self._key, int(block.starts[0]), len(block))]
        out = perturb_block(mechanism, block, runs, self._memory, held=earlier, ending=True)
        self._held, self._finished = [], True
        return out

    def state(self) -> bytes:
        """Everything needed to go on, but the key; keep it as private as the data."""
        require(not self._finished, "this stream was finished: it cannot go on", StateError)
        body = {
            "mechanism": serialization.encode(self.mechanism),
            "series": self.series,
            "step": self.step,
            "seen": self.seen.total,
            "key_check": self._key.at_epoch(self.step // EPOCH).check(),
            "memory": packed(self._memory),
            "held": self._held_back(),
        }
        data = json.dumps(body, sort_keys=True).encode()
        return MAGIC + hashlib.blake2b(data, digest_size=16).digest() + data

    def _held_back(self) -> list[str]:
        if isinstance(self.mechanism.domain, OpaqueRows):
            return to_state(joined(self._held, self.series, None) if self._held else None)
        held = joined(self._held, self.series, self.mechanism.domain.columns)
        return [packed(held.values), packed(held.missing.astype(np.int8))] if len(held) else []


def packed(array: Array) -> str:
    """An ``array`` as text, for a state; what is still zero takes little room."""
    return base64.b64encode(zlib.compress(array.tobytes(), 1)).decode()


def unpacked(text: str, shape: tuple[int, int], kind: type) -> Array:
    """The array again, of ``kind`` and ``shape``; a ``text`` of any other is refused."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    try:
        opener = zlib.decompressobj()
        data = opener.decompress(base64.b64decode(text, validate=True), size + 1)
        whole = opener.eof and not opener.unused_data
    except (ValueError, TypeError, zlib.error):
        data, whole = b"", False
    require(
        whole and len(data) == size,
        "the stream state is damaged: what it remembers is not whole",
        StateError,
    )
    return np.frombuffer(data, dtype=kind).reshape(shape).copy()


@dataclass(frozen=True)
class Seen:
    """A keyed sum over the readings consumed: the same for any cutting, another for others.

    It lets a replay be compared with what was consumed before, without keeping the readings.

    Parameters:
        mark: a secret, kept with the keys.
        total: the sum.
    """

    mark: bytes
    total: int = 0

    @classmethod
    def by(cls, key: SeriesKey, total: int = 0) -> Seen:
        """By the first link of a chain; the mark is a secret and is kept with the keys.

        Parameters:
            key: of the series.
            total: of what was consumed before.
        """
        return cls(key.cipher_key("fingerprint"), total)

    def with_block(self, block: Block) -> Seen:
        """With the readings of a ``block`` too."""
        first = int(block.starts[0]) * block.values.shape[1]
        places = np.arange(first, first + block.values.size, dtype=np.uint64)
        seen = bits(block.values, block.missing)
        return Seen(self.mark, (self.total + fingerprint(self.mark, places, seen)) % 2**64)


@dataclass(frozen=True)
class SavedState:
    """A state as read back, checked for damage but not yet against a mechanism and a key."""

    mechanism: object
    series: str
    step: int
    seen: int
    key_check: str
    memory: str
    held: list[str]


def read_state(state: bytes) -> SavedState:
    """Decode a ``state``; anything but a whole, undamaged one is refused."""
    head = len(MAGIC)
    require(
        isinstance(state, (bytes, bytearray)) and state[:head] == MAGIC,
        "not a stream state of this version of tempriv",
        StateError,
    )
    check, data = state[head : head + 16], state[head + 16 :]
    require(
        hashlib.blake2b(data, digest_size=16).digest() == check,
        "the stream state is damaged: it was cut short or changed",
        StateError,
    )
    try:
        saved = SavedState(**json.loads(data))
        sound = (
            isinstance(saved.series, str)
            and isinstance(saved.step, int)
            and 0 <= saved.step < MOST_STEPS
            and isinstance(saved.seen, int)
            and 0 <= saved.seen < 2**64
            and isinstance(saved.held, list)
            and len(saved.held) in (0, 2)
        )
    except (ValueError, TypeError, RecursionError):
        sound = False
    require(sound, "the stream state is damaged: it does not say where it stands", StateError)
    return saved


def start(mechanism: Mechanism, key: Key, series: str = "series") -> Stream:
    """Open a stream; a ``key`` opens each (``mechanism``, ``series``) once."""
    require(isinstance(series, str), f"series={series!r}: must be a name, such as 'series'")
    digest = serialization.digest(mechanism)
    chain = key.series(digest, series)
    return Stream(mechanism, chain, series, Seen.by(chain), progress=Progress(key, digest, series))


@dataclass(frozen=True)
class Progress:
    """How far a stream has come; of two that stand at one step only one can go on.

    Parameters:
        key: that of the stream.
        digest: of its mechanism.
        series: its id.
    """

    key: Key
    digest: str
    series: str

    def ask(self, step: int) -> None:
        """Refuse to go on from a ``step`` that was passed already."""
        self.key.again(self.digest, self.series, step)

    def note(self, step: int) -> None:
        """Note that the stream stands at a ``step`` now."""
        self.key.note(self.digest, self.series, step)


def resume(mechanism: Mechanism, state: bytes, key: Key) -> Stream:
    """Go on with a stream where its state was taken.

    A state that the stream has left behind in this process is refused: other readings in the place
    of those already released would get the same noise.

    Parameters:
        mechanism: the same as before.
        state: what ``Stream.state`` gave.
        key: the same as before.

    Returns:
        The stream, at the step where it stood.

    Raises:
        StateError: the state is damaged, or of another mechanism or key.
        KeyReuseError: the stream went on after this state.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> laplace, key = Laplace(epsilon=1.0, bounds=(0, 5)), Key.generate()
    >>> stream = laplace.start(key, "home")
    >>> _ = stream.push([0.5, 0.4])
    >>> resume(laplace, stream.state(), key)
    Stream(Laplace, series='home', step=2)
    """
    saved = read_state(state)
    require(
        saved.mechanism == serialization.encode(mechanism),
        "the stream state was made by another mechanism, or with other settings",
        StateError,
    )
    digest = serialization.digest(mechanism)
    chain = key.again(digest, saved.series, saved.step)
    require(
        chain.at_epoch(saved.step // EPOCH).check() == saved.key_check,
        "the key is not the one that the stream was started with",
        StateError,
    )
    return Stream(
        mechanism,
        chain,
        saved.series,
        Seen.by(chain, saved.seen),
        saved.step,
        progress=Progress(key, digest, saved.series),
        memory=remembered(mechanism, saved.memory, saved.step),
        held=_held(mechanism, saved),
    )


def remembered(mechanism: Mechanism, text: str, step: int) -> Integers:
    """What a series is remembered by; refused where a kernel could be led astray.

    Parameters:
        mechanism: what the series goes through.
        text: the memory, as ``packed`` gave it.
        step: where the series stands.
    """
    memory = unpacked(text, (1, mechanism.memory_size), np.int64)
    require(
        step == 0 or mechanism.could_remember(memory[0], step),
        "the stream state is damaged: it remembers what cannot be",
        StateError,
    )
    return memory


def held_rows(mechanism: Mechanism, saved: list[str], series: str, step: int) -> Block | None:
    """The rows that may still come out: no more of them, and no fewer.

    Parameters:
        mechanism: what the series goes through.
        saved: these rows, as a state has them.
        series: its id.
        step: where it stands.
    """
    assert isinstance(mechanism.domain, OpaqueRows)
    count = step if mechanism.takes_whole else min(step, mechanism.domain.reach)
    return from_state(saved, series, count)


def _held(mechanism: Mechanism, saved: SavedState) -> Block | None:
    if isinstance(mechanism.domain, OpaqueRows):
        return held_rows(mechanism, saved.held, saved.series, saved.step)
    if not saved.held:
        return None
    assert mechanism.domain.columns is not None
    shape = (saved.step, mechanism.domain.columns)
    values, missing = (
        unpacked(text, shape, kind)
        for text, kind in zip(saved.held, (np.float64, np.int8), strict=True)
    )
    return Block.of(np.ma.array(values, mask=missing.astype(np.bool_)), saved.series, 0)
