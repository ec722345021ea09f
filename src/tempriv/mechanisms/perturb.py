"""The one way that private readings pass through a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tempriv.data.series import EMPTY, Block
from tempriv.errors import DataError, UsageError, require
from tempriv.mechanisms.base import KeyedNoise, Mechanism, SeriesState
from tempriv.mechanisms.domains import Integers, OpaqueRows
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange

if TYPE_CHECKING:
    from tempriv.mechanisms.reorder.carry import PendingRows


def errors_of(mechanism: Mechanism, columns: int) -> tuple[float, ...]:
    """The expected error for each column; rows moved whole have one for all.

    Parameters:
        mechanism: whose errors are asked for.
        columns: how many value columns there are.
    """
    errors = mechanism.errors
    return errors * columns if isinstance(mechanism.domain, OpaqueRows) else errors


def limit_of(mechanism: Mechanism) -> int | None:
    """The most readings of a series that a ``mechanism`` takes and its guarantee covers."""
    unit = mechanism.unit
    limits = [] if unit.max_length is None else [unit.max_length]
    limits += [] if mechanism.horizon is None else [mechanism.horizon]
    return min(limits, default=None)


def on_grid(mechanism: Mechanism, block: Block) -> Integers:
    """The readings of a ``block`` as a ``mechanism`` takes them; any other block is refused."""
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

    Parameters:
        mechanism: what it passes through.
        block: readings of one or many series.
        runs: the steps of each series, with its key.
        memory: a row for each series, brought up to date; none, if they begin here.
        readings: those of ``on_grid``, where they have been asked for already.
        held: where rows are moved or come late, the earlier ones of each series that may still
            come out.
        ending: whether all that are left are to come out.

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
    # loaded where rows wait: most mechanisms need nothing of it
    if isinstance(mechanism.domain, OpaqueRows):
        from tempriv.mechanisms.reorder.carry import move_block

        return move_block(mechanism, block, runs, memory, held, ending)
    if mechanism.domain.latency:
        from tempriv.mechanisms.late import perturb_late

        return perturb_late(mechanism, block, runs, memory, readings, held, ending)
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


def held_of_first(block: Block, held: Block | None) -> Block | None:
    """The rows ``held`` of the first series of a ``block``, if it goes on with that one."""
    if held is None or not len(block.starts) or not block.starts[0]:
        return None
    counts = np.zeros(len(block.ids), dtype=np.int64)
    counts[0] = len(held)
    return replace(held, ids=block.ids, counts=counts, starts=np.zeros_like(counts))


def pending_rows(mechanism: Mechanism, held: Block | None, block: Block) -> Block | None:
    """The rows of the last series of a block that can still come out.

    Parameters:
        mechanism: what it passed through.
        held: those that could before.
        block: what came in.
    """
    if not (isinstance(mechanism.domain, OpaqueRows) or mechanism.domain.latency):
        return None
    from tempriv.mechanisms.reorder.carry import kept

    return kept(mechanism, held, block)


def guarantee_of_run(mechanism: Mechanism, key: Key) -> Guarantee | NoGuarantee:
    """The guarantee of a ``mechanism``, if the ``key`` is a secret."""
    if key.seed is not None:
        return NoGuarantee(f"the noise comes from seed {key.seed}, so anyone can take it off again")
    return mechanism.guarantee
