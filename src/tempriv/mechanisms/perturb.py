"""The one way that private readings pass through a mechanism."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tempriv.data.series import EMPTY, Block
from tempriv.errors import DataError, UsageError, require
from tempriv.mechanisms.domains import Integers, OpaqueRows
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.mechanisms.reorder.carry import (
    PART,
    PendingRows,
    Pool,
    first_of,
    move_block,
    pool_of,
    said_of,
)
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.sampling.keys import EPOCH, Key
from tempriv.sampling.keystream import StepRange

if TYPE_CHECKING:
    pass
from tempriv.mechanisms.base import (
    KeyedNoise,
    Mechanism,
    SeriesState,
)


def errors_of(mechanism: Mechanism, columns: int) -> tuple[float, ...]:
    """Its expected error for each of so many columns; rows moved whole have one for all."""
    errors = mechanism.errors
    return errors * columns if isinstance(mechanism.domain, OpaqueRows) else errors


def limit_of(mechanism: Mechanism) -> int | None:
    """The most readings of a series that the mechanism takes and its guarantee covers."""
    unit = mechanism.unit
    limits = [] if unit.max_length is None else [unit.max_length]
    limits += [] if mechanism.horizon is None else [mechanism.horizon]
    return min(limits, default=None)


def on_grid(mechanism: Mechanism, block: Block) -> Integers:
    """The readings as the mechanism takes them; a block it is not set up for is refused."""
    width = block.values.shape[1]
    require(
        mechanism.domain.columns in (None, width),
        f"{width} value column{'s'[: width != 1]}, but the mechanism is set up for "
        f"{mechanism.domain.columns}: give bounds (or categories) for each column",
        UsageError,
    )
    most = limit_of(mechanism)
    longest = int((block.starts + block.counts).max(initial=0))
    require(
        most is None or longest <= most,
        f"a series has more than {most} readings, the most that the guarantee covers; give the "
        "unit a greater length, or the mechanism a greater horizon",
        DataError,
    )
    if isinstance(mechanism.domain, OpaqueRows):
        return mechanism.domain.to_grid(block.values)
    if isinstance(mechanism.domain, WithLandmarks):
        mechanism.domain.require_marks(block)
    if not block.missing.any():
        return mechanism.domain.to_grid(block.values)
    return mechanism.domain.to_grid(np.where(block.missing, 0.0, block.values))


def perturb_block(
    mechanism: Mechanism,
    block: Block,
    runs: Sequence[StepRange],
    memory: Integers | None = None,
    readings: Integers | None = None,
    held: PendingRows = None,
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
        memory = np.zeros((len(block.ids), mechanism.memory_size), dtype=np.int64)
    if isinstance(mechanism.domain, OpaqueRows):
        return move_block(mechanism, block, runs, memory, held, ending)
    if mechanism.domain.latency:
        return _come_late(mechanism, block, runs, memory, readings, held, ending)
    state = SeriesState(block.counts, block.starts, block.missing, memory)
    outputs = mechanism.perturb(readings, KeyedNoise(runs), state)
    empty = (state.status == EMPTY)[:, None]
    return Block(
        values=mechanism.domain.from_grid(outputs),
        missing=mechanism.domain.missing_after(block.missing) | empty,
        ids=block.ids,
        counts=block.counts,
        starts=block.starts,
        times=block.times,
        status=state.status if mechanism.has_status else None,
        spent=state.spent,
    )


def _come_late(
    mechanism: Mechanism,
    block: Block,
    runs: Sequence[StepRange],
    memory: Integers,
    readings: Integers,
    held: PendingRows,
    ending: bool,
) -> Block:
    """Outputs that come ``form.latency`` steps after their own; at the end, all that are left."""
    further = mechanism.domain.latency if ending else 0
    counts, missing = block.counts + further, block.missing
    if further:
        # steps after the last of each series, at which nothing came in
        ends = np.repeat(np.cumsum(block.counts), further)
        readings = np.insert(readings, ends, 0, axis=0)
        missing = np.insert(missing, ends, True, axis=0)
        runs = [StepRange(run.key, run.start, run.count + further) for run in runs]
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
            runs = [StepRange(runs[0].key.at_epoch(first // EPOCH), first, high - low)]
            counts = np.array([high - low])
        state = SeriesState(
            counts, block.starts + low, missing[part], memory, further if last else 0
        )
        values = mechanism.domain.from_grid(
            mechanism.perturb(readings[part], KeyedNoise(runs), state)
        )
        gone, out.status[part] = out.missing[part], state.status
        np.isnan(values, out=gone)
        gone |= (state.status == EMPTY)[:, None]
        out.values[part] = values
        np.copyto(out.values[part], 0.0, where=gone)
    assert not isinstance(held, Pool), "only rows that are moved have one"
    return said_of(mechanism.domain.latency, out, pool_of(block, held), first_of(block, held))


def guarantee_of_run(mechanism: Mechanism, key: Key) -> Guarantee | NoGuarantee:
    """The mechanism's guarantee, if the key is a secret."""
    if key.seed is not None:
        return NoGuarantee(f"the noise comes from seed {key.seed}, so anyone can take it off again")
    return mechanism.guarantee
