"""What a mechanism is, and the one way that private readings pass through one.

A mechanism is a frozen spec that owns its guarantee. A stream carries its readings: the same code
takes one reading, a block, or a file of ten thousand series, and gives the same bits.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tempriv import noise
from tempriv.errors import DataRefusal, UsageRefusal, require
from tempriv.guarantees import Guarantee, NoGuarantee, Published
from tempriv.kernels_order import Carriage
from tempriv.keyed_words import Run, Words
from tempriv.mechanisms.forms import Floats, Form, Integers, Rows
from tempriv.mechanisms.forms_marked import Marked
from tempriv.mechanisms.moving import PART, Held, Pool, first_of, move_block, pool_of, said_of
from tempriv.noise import Law
from tempriv.noise_varying import Varying
from tempriv.order_laws import Lag, Place
from tempriv.randomness import EPOCH, Key
from tempriv.series import EMPTY, Block, Flags
from tempriv.units import Contribution, Person, Unit, WholeSeries

if TYPE_CHECKING:
    from tempriv.mechanisms.stream import Stream


class Draw(Protocol):
    """Where a mechanism gets its randomness: keyed noise, or every outcome in an audit."""

    @property
    def ahead(self) -> bool:
        """Whether rows may be drawn that turn out not to be needed."""

    def __call__(self, law: Law | Varying, purpose: str, rows: Integers | None = None) -> Integers:
        """One draw of the law for every row of the block at hand, for the named purpose.

        Or for some of the rows, given by rising position.
        """

    def each(self, law: Law, purpose: str) -> Any:
        """The same for a kernel that asks row by row, by ``kernels.at`` or ``kernels.above``.

        See ``order.decided`` for ``kernels.Halves``, which may be unsure of a row.
        """

    def scalable(self, purpose: str) -> Any:
        """As ``noise.ScalableLaplace``: Laplace noise whose scale a kernel finds as it goes."""


class KeyedDraw:
    """Noise from the keys of some runs of series."""

    ahead: ClassVar[bool] = True

    def __init__(self, runs: Sequence[Run]):
        self.runs = runs
        self._words: dict[str, Words] = {}  # of purposes drawn for a few rows at a time

    def __call__(self, law: Law | Varying, purpose: str, rows: Integers | None = None) -> Integers:
        if rows is None:
            assert not isinstance(law, Varying)
            return noise.draw(law, self.runs, purpose)
        if not len(rows):
            return law.sample(Words([], purpose))
        # whoever asks for the second time may ask for a thousandth
        words = self._words.get(purpose)
        self._words[purpose] = Words(self.runs, purpose) if words is None else words.remembered()
        return law.sample(self._words[purpose].only(rows))

    def each(self, law: Law, purpose: str) -> Any:
        if isinstance(law, (Lag, Place)):
            return law.halves(Words(self.runs, purpose))
        return self(law, purpose)

    def scalable(self, purpose: str) -> noise.ScalableLaplace:
        return noise.ScalableLaplace(self.runs, purpose)


@dataclass
class Track:
    """Where the series of a block stand, and what the mechanism remembers of each.

    Where whole rows are moved, ``missing`` says in one column which of them are none: steps after
    the end of a series, while its last rows come out. A ``carriage`` takes rows to their slots
    while a kernel decides on them, which costs next to nothing then.

    Where outputs come late, ``further`` steps after the end of each series bring out the last ones.

    ``memory`` has a row of whole numbers for each series, zeros at its start, and is changed in
    place. ``status`` is filled in by mechanisms that have statuses, ``spent`` by those that give
    each row a part of epsilon of its own: its owner may want to know.
    """

    counts: Integers
    starts: Integers
    missing: Flags
    memory: Integers
    further: int = 0
    spent: Floats | None = None
    status: npt.NDArray[np.int8] = field(init=False)
    carriage: Carriage = field(default_factory=Carriage)

    def __post_init__(self) -> None:
        self.status = np.zeros(len(self.missing), dtype=np.int8)

    @classmethod
    def fresh(cls, mechanism: Mechanism, series: int, rows: int, further: int = 0) -> Track:
        """So many series of so many rows each, from their first step, nothing missing.

        The last ``further`` of the rows are none, but bring out what comes late.
        """
        return cls(
            counts=np.full(series, rows, dtype=np.int64),
            starts=np.zeros(series, dtype=np.int64),
            missing=np.zeros((series * rows, mechanism.form.columns or 1), dtype=np.bool_),
            memory=np.zeros((series, mechanism.slots), dtype=np.int64),
            further=further,
        )

    @functools.cached_property
    def which(self) -> Integers:
        """The series of each row."""
        return np.asarray(np.repeat(np.arange(len(self.counts)), self.counts), dtype=np.int64)

    @functools.cached_property
    def steps(self) -> Integers:
        """The step of each row in its series."""
        before = np.cumsum(self.counts) - self.counts
        rows: Integers = np.arange(len(self.missing)) + np.repeat(self.starts - before, self.counts)
        return rows


class Mechanism(Protocol):
    """A frozen, keyword-only dataclass of simple types, with the promise that it keeps."""

    accepts_null: ClassVar[bool]  # missing readings stay missing and others are unaffected
    has_status: ClassVar[bool]  # outputs may repeat earlier ones or be empty, and say so

    @property
    def causal(self) -> bool:
        """Whether an output never depends on later readings."""

    @property
    def bounded_memory(self) -> bool:
        """Whether a stream holds no more however long it runs."""

    @property
    def takes_whole(self) -> bool:
        """Whether nothing comes out before the last reading is in."""

    @property
    def slots(self) -> int:
        """How many whole numbers it remembers of each series; none, if rows are independent."""

    @property
    def horizon(self) -> int | None:
        """The most readings of a series that it can take, if there is a limit."""

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

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        """The mechanism itself: grid readings to grid outputs. All randomness is in ``draw``."""

    def start(self, key: Key, series: str = "series") -> Stream: ...


def errors_of(mechanism: Mechanism, columns: int) -> tuple[float, ...]:
    """Its expected error for each of so many columns; rows moved whole have one for all."""
    errors = mechanism.errors
    return errors * columns if isinstance(mechanism.form, Rows) else errors


def limit_of(mechanism: Mechanism) -> int | None:
    """The most readings of a series that the mechanism takes and its promise covers."""
    unit = mechanism.unit
    each = unit.each if isinstance(unit, (Person, Contribution)) else unit
    limits = [each.length] if isinstance(each, WholeSeries) else []
    limits += [] if mechanism.horizon is None else [mechanism.horizon]
    return min(limits, default=None)


def on_grid(mechanism: Mechanism, block: Block) -> Integers:
    """The readings as the mechanism takes them; a block it is not set up for is refused."""
    width = block.values.shape[1]
    require(
        mechanism.form.columns in (None, width),
        f"{width} value column{'s'[: width != 1]}, but the mechanism is set up for "
        f"{mechanism.form.columns}: give bounds (or categories) for each column",
        UsageRefusal,
    )
    most = limit_of(mechanism)
    longest = int((block.starts + block.counts).max(initial=0))
    require(
        most is None or longest <= most,
        f"a series has more than {most} readings, the most that the promise covers; give the unit "
        "a greater length, or the mechanism a greater horizon",
        DataRefusal,
    )
    if isinstance(mechanism.form, Rows):
        return mechanism.form.to_grid(block.values)
    if isinstance(mechanism.form, Marked):
        mechanism.form.require_marks(block)
    if not block.missing.any():
        return mechanism.form.to_grid(block.values)
    return mechanism.form.to_grid(np.where(block.missing, 0.0, block.values))


def perturb_block(
    mechanism: Mechanism,
    block: Block,
    runs: Sequence[Run],
    memory: Integers | None = None,
    readings: Integers | None = None,
    held: Held = None,
    ending: bool = False,
) -> Block:
    """Pass a block of one or many series through a mechanism.

    ``memory`` has a row for each series of the block and is brought up to date; ``readings`` are
    those of ``on_grid``, where they have been asked for already. Where rows are moved or come
    late, ``held`` has the earlier rows of each series that may still come out, and ``ending`` asks
    for all that do.

    Guarantees:
        - the output of a row depends on readings and keyed noise of its own series only, and on
          its own row only where the mechanism remembers nothing;
        - missing readings stay missing, and what stood in their place is never looked at;
        - a refused block changes nothing.
    """
    if readings is None:
        readings = on_grid(mechanism, block)
    if memory is None:
        memory = np.zeros((len(block.ids), mechanism.slots), dtype=np.int64)
    if isinstance(mechanism.form, Rows):
        return move_block(mechanism, block, runs, memory, held, ending)
    if mechanism.form.latency:
        return _come_late(mechanism, block, runs, memory, readings, held, ending)
    track = Track(block.counts, block.starts, block.missing, memory)
    outputs = mechanism.perturb(readings, KeyedDraw(runs), track)
    empty = (track.status == EMPTY)[:, None]
    return Block(
        values=mechanism.form.from_grid(outputs),
        missing=mechanism.form.missing_after(block.missing) | empty,
        ids=block.ids,
        counts=block.counts,
        starts=block.starts,
        times=block.times,
        status=track.status if mechanism.has_status else None,
        spent=track.spent,
    )


def _come_late(
    mechanism: Mechanism,
    block: Block,
    runs: Sequence[Run],
    memory: Integers,
    readings: Integers,
    held: Held,
    ending: bool,
) -> Block:
    """Outputs that come ``form.latency`` steps after their own; at the end, all that are left."""
    further = mechanism.form.latency if ending else 0
    counts, missing = block.counts + further, block.missing
    if further:
        # steps after the last of each series, at which nothing came in
        ends = np.repeat(np.cumsum(block.counts), further)
        readings = np.insert(readings, ends, 0, axis=0)
        missing = np.insert(missing, ends, True, axis=0)
        runs = [Run(run.key, run.start, run.count + further) for run in runs]
    out = Block(
        values=np.empty(missing.shape),
        missing=np.empty(missing.shape, dtype=np.bool_),
        ids=block.ids,
        counts=counts,
        starts=block.starts,
        status=np.empty(len(missing), dtype=np.int8),
    )
    assert out.status is not None
    # a long series in parts, so that what is worked on stays near; larger ones than where rows are
    # moved, for to begin with draws for each window costs more than to go on with them
    size = 8 * PART // missing.shape[1] if len(counts) == 1 else len(block)
    cuts = [*range(0, len(block), max(size, 1)), len(missing)]
    for low, high in itertools.pairwise(cuts if len(block) else [0, len(missing)]):
        part, last = slice(low, high), high == len(missing)
        if len(cuts) > 2:
            first = int(block.starts[0]) + low
            runs = [Run(runs[0].key.at_epoch(first // EPOCH), first, high - low)]
            counts = np.array([high - low])
        track = Track(counts, block.starts + low, missing[part], memory, further if last else 0)
        values = mechanism.form.from_grid(mechanism.perturb(readings[part], KeyedDraw(runs), track))
        gone, out.status[part] = out.missing[part], track.status
        np.isnan(values, out=gone)
        gone |= (track.status == EMPTY)[:, None]
        out.values[part] = values
        np.copyto(out.values[part], 0.0, where=gone)
    assert not isinstance(held, Pool), "only rows that are moved have one"
    return said_of(mechanism.form.latency, out, pool_of(block, held), first_of(block, held))


def promise(mechanism: Mechanism, key: Key) -> Guarantee | NoGuarantee:
    """The mechanism's guarantee, if the key is a secret."""
    if key.seed is not None:
        return NoGuarantee(f"the noise comes from seed {key.seed}, so anyone can take it off again")
    return mechanism.guarantee
