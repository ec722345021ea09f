"""Mechanisms whose outputs come some steps after their own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from tempriv.data.series import EMPTY, Block
from tempriv.mechanisms.base import KeyedNoise, Mechanism, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.reorder.carry import (
    PART,
    PendingRows,
    Pool,
    first_of,
    pool_of,
    said_of,
)
from tempriv.sampling.keys import EPOCH
from tempriv.sampling.keystream import StepRange


def perturb_late(
    mechanism: Mechanism,
    block: Block,
    runs: Sequence[StepRange],
    memory: Integers,
    readings: Integers,
    held: PendingRows,
    ending: bool,
) -> Block:
    """Outputs that come ``latency`` steps after their own; at the end, all that are left.

    Parameters:
        mechanism: what the block passes through.
        block: readings of one or many series.
        runs: the steps of each series, with its key.
        memory: a row for each series, brought up to date.
        readings: those of the block, on the grid.
        held: the earlier rows of each series that may still come out.
        ending: whether all that are left are to come out.
    """
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
