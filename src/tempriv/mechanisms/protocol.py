"""What a mechanism is, and the one way that private readings pass through one.

A mechanism is a frozen spec that owns its guarantee. A stream carries its readings: the same code
takes one reading, a block, or a file of ten thousand series, and gives the same bits.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tempriv import noise, spec
from tempriv.errors import DataRefusal, StateRefusal, UsageRefusal, require
from tempriv.guarantees import Guarantee, NoGuarantee, Published
from tempriv.mechanisms.forms import Form, Integers, names_of, numbers_of
from tempriv.noise import Law
from tempriv.randomness import EPOCH, Key, Run, SeriesKey, fingerprint
from tempriv.series import Block
from tempriv.units import Person, Unit, WholeSeries

Draw = Callable[[Law, str], Integers]
"""Gives one draw of a law to every row of the block at hand, for the named purpose."""


class Mechanism(Protocol):
    """A frozen, keyword-only dataclass of simple types, with the promise that it keeps."""

    causal: ClassVar[bool]  # an output never depends on later readings
    bounded_memory: ClassVar[bool]  # a stream holds no more however long it runs
    accepts_null: ClassVar[bool]  # missing readings stay missing and others are unaffected

    @property
    def unit(self) -> Unit: ...

    @property
    def form(self) -> Form:
        """What its readings are, and how they become whole numbers on a public grid."""

    @property
    def guarantee(self) -> Guarantee | NoGuarantee: ...

    @property
    def published(self) -> Published: ...

    @property
    def errors(self) -> tuple[float, ...]:
        """The expected error of one released value, for each column, as ``error_name`` says."""

    @property
    def error_name(self) -> str: ...

    def perturb(self, readings: Integers, draw: Draw) -> Integers:
        """The mechanism itself: grid readings to grid outputs. All randomness is in ``draw``."""

    def start(self, key: Key, series: str = "series") -> Stream: ...


def limit_of(unit: Unit) -> int | None:
    """The most readings of a series that the unit's promise covers, if it has a limit."""
    each = unit.each if isinstance(unit, Person) else unit
    return each.length if isinstance(each, WholeSeries) else None


def perturb_block(mechanism: Mechanism, block: Block, runs: Sequence[Run]) -> Block:
    """Pass a block of one or many series through a mechanism.

    Guarantees:
        - the output of a row depends on its own reading and its own keyed noise only;
        - missing readings stay missing, and what stood in their place is never looked at.
    """
    width = block.values.shape[1]
    require(
        width == mechanism.form.columns,
        f"{width} value column{'s'[: width != 1]}, but the mechanism is set up for "
        f"{mechanism.form.columns}: give bounds (or categories) for each column",
        UsageRefusal,
    )
    most = limit_of(mechanism.unit)
    longest = int((block.starts + block.counts).max(initial=0))
    require(
        most is None or longest <= most,
        f"a series has more than {most} readings, the length that the unit promises to cover; "
        "give the unit a greater length",
        DataRefusal,
    )
    readings = mechanism.form.to_grid(np.where(block.missing, 0.0, block.values))
    outputs = mechanism.perturb(readings, lambda law, purpose: noise.draw(law, runs, purpose))
    return Block(
        values=mechanism.form.from_grid(outputs),
        missing=mechanism.form.missing_after(block.missing),
        ids=block.ids,
        counts=block.counts,
        starts=block.starts,
        times=block.times,
    )


MAGIC = b"tempriv state 1\n"
MOST_STEPS = 2**40  # more than any clock ticks; a state that says so is damaged


class Stream:
    """One series passing through a mechanism, a block at a time.

    Guarantees:
        - any cutting of the readings into blocks gives the same outputs;
        - the state holds what is needed to go on, and never the key.

    Made by ``mechanism.start(key, series)`` or ``resume(mechanism, state, key)``.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        key: SeriesKey,
        series: str,
        seen: Seen,
        step: int = 0,
        note: Callable[[int, int], None] = lambda start, stop: None,
    ):
        self.mechanism = mechanism
        self.series = series
        self.step = step
        self.seen = seen
        self._key = key
        self._note = note

    def __repr__(self) -> str:
        name = type(self.mechanism).__name__
        return f"Stream({name}, series={self.series!r}, step={self.step})"

    def push(self, values: Any) -> npt.NDArray[Any]:
        """Release the next readings; values outside the bounds count as the nearest bound.

        Takes one value or one row of values per step, and gives an array of the same form. Missing
        numbers are masked (numpy.ma); categories go by their names, a missing one is None.
        """
        categories = self.mechanism.form.categories
        flat = np.ndim(values) < 2
        if categories is not None:
            values = numbers_of(values, categories)
        block = Block.of(np.atleast_1d(np.ma.asarray(values)), self.series, self.step)
        out = self.push_block(block)
        if categories is not None:
            names = names_of(out, categories)
            return names[:, 0] if flat else names
        shaped = out.values[:, 0] if flat else out.values
        if out.missing.any():
            return np.ma.array(shaped, mask=out.missing[:, 0] if flat else out.missing)
        return shaped

    def push_block(self, block: Block) -> Block:
        """The same for a block of this series."""
        require(
            block.starts.tolist() == [self.step],
            f"the block does not start at step {self.step}, where this series stands: push every "
            "reading once, in order",
            DataRefusal,
        )
        require(
            bool((np.isfinite(block.values) | block.missing).all()),
            "a reading is NaN or infinite: mask missing readings instead (numpy.ma)",
            DataRefusal,
        )
        out = perturb_block(self.mechanism, block, [Run(self._key, self.step, len(block))])
        self._note(self.step, self.step + len(block))
        self.seen = self.seen.with_block(block)
        self.step += len(block)
        return out

    def finish(self) -> npt.NDArray[np.float64]:
        """What is left to release at the end: nothing, for mechanisms that hold nothing back."""
        return np.zeros((0, self.mechanism.form.columns))

    def state(self) -> bytes:
        """Everything needed to go on, but the key; keep it as private as the data."""
        body = {
            "mechanism": spec.encode(self.mechanism),
            "series": self.series,
            "step": self.step,
            "seen": self.seen.total,
            "key_check": self._key.at_epoch(self.step // EPOCH).check(),
        }
        data = json.dumps(body, sort_keys=True).encode()
        return MAGIC + hashlib.blake2b(data, digest_size=16).digest() + data


@dataclass(frozen=True)
class Seen:
    """A keyed sum over the readings consumed: the same for any cutting, another for others.

    It lets a replay be compared with what was consumed before, without keeping the readings.
    """

    mark: bytes
    total: int = 0

    @classmethod
    def by(cls, key: SeriesKey, total: int = 0) -> Seen:
        """By the first link of a chain; the mark is a secret and is kept with the keys."""
        return cls(key.cipher_key("fingerprint"), total)

    def with_block(self, block: Block) -> Seen:
        width = block.values.shape[1]
        rows = np.arange(block.starts[0], block.starts[0] + len(block)).astype(np.uint64)
        places = np.add.outer(rows * np.uint64(width), np.arange(width, dtype=np.uint64))
        # -0.0 and 0.0 are one reading
        values = np.where(block.missing, np.nan, block.values + 0.0)
        bits = np.ascontiguousarray(values).view(np.uint64)
        return Seen(self.mark, (self.total + fingerprint(self.mark, places, bits)) % 2**64)


@dataclass(frozen=True)
class SavedState:
    """A state as read back, checked for damage but not yet against a mechanism and a key."""

    mechanism: Any
    series: str
    step: int
    seen: int
    key_check: str


def read_state(state: bytes) -> SavedState:
    """Decode a state; anything but a whole, undamaged one is refused."""
    head = len(MAGIC)
    require(
        isinstance(state, (bytes, bytearray)) and state[:head] == MAGIC,
        "not a stream state of this version of tempriv",
        StateRefusal,
    )
    check, data = state[head : head + 16], state[head + 16 :]
    require(
        hashlib.blake2b(data, digest_size=16).digest() == check,
        "the stream state is damaged: it was cut short or changed",
        StateRefusal,
    )
    try:
        saved = SavedState(**json.loads(data))
        sound = (
            isinstance(saved.series, str)
            and isinstance(saved.step, int)
            and 0 <= saved.step < MOST_STEPS
            and isinstance(saved.seen, int)
            and 0 <= saved.seen < 2**64
        )
    except (ValueError, TypeError, RecursionError):
        sound = False
    require(sound, "the stream state is damaged: it does not say where it stands", StateRefusal)
    return saved


def start(mechanism: Mechanism, key: Key, series: str = "series") -> Stream:
    """Open a stream; a key opens each (mechanism, series) once."""
    require(isinstance(series, str), f"series={series!r}: must be a name, such as 'series'")
    digest = spec.digest(mechanism)
    chain = key.series(digest, series)
    note = functools.partial(_note, key, digest, series)
    return Stream(mechanism, chain, series, Seen.by(chain), note=note)


def _note(key: Key, digest: str, series: str, start: int, stop: int) -> None:
    """Remember how far a stream has come; of two that stand at one step only one can go on."""
    key.again(digest, series, start)
    key.note(digest, series, stop)


def resume(mechanism: Mechanism, state: bytes, key: Key) -> Stream:
    """Go on with a stream where ``state`` was taken, with the same mechanism and key.

    A state that the stream has left behind in this process is refused: other readings in the place
    of those already released would get the same noise.
    """
    saved = read_state(state)
    require(
        saved.mechanism == spec.encode(mechanism),
        "the stream state was made by another mechanism, or with other settings",
        StateRefusal,
    )
    digest = spec.digest(mechanism)
    chain = key.again(digest, saved.series, saved.step)
    require(
        chain.at_epoch(saved.step // EPOCH).check() == saved.key_check,
        "the key is not the one that the stream was started with",
        StateRefusal,
    )
    return Stream(
        mechanism,
        chain,
        saved.series,
        Seen.by(chain, saved.seen),
        saved.step,
        note=functools.partial(_note, key, digest, saved.series),
    )


def promise(mechanism: Mechanism, key: Key) -> Guarantee | NoGuarantee:
    """The mechanism's guarantee, if the key is a secret."""
    if key.seed is not None:
        return NoGuarantee(f"the noise comes from seed {key.seed}, so anyone can take it off again")
    return mechanism.guarantee
