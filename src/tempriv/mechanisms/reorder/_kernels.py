"""Compiled loops of the order mechanisms: which row goes to which slot, and no value anywhere.

Each also runs as plain Python and gives the same result. Out comes the *age* of the row in each
slot: how many steps before the newest row it came in, or -1 for none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from tempriv.sampling._kernels import Array, at, cells_per_digit

EMPTY = 2  # the status of a slot without a row


class Carriage(NamedTuple):
    """Rows of one column to carry to their slots.

    Parameters:
        rows: where they come from.
        newest: the place among them of the first row of the block.
        out: where they go.
        status: of each slot.
    """

    rows: Array
    newest: Array
    out: Array
    status: Array


class Slots(NamedTuple):
    """The slots of the series of a block, one series after the other.

    Parameters:
        counts: the rows of each series.
        starts: the step of the first row of each.
        memory: a row of whole numbers for each series; what they mean, each kernel says.
        ages: what a kernel finds; longer than the block where rows go to later slots.
    """

    counts: Array
    starts: Array
    memory: Array
    ages: Array


# What the first four kernels draw comes as halves (``sampling._kernels.Halves``), or as numbers and
# no floors; they return how many halves leave a cell in doubt. Where there is a carriage, each row
# goes to its slot at once: the loops wait for their own last step, and all this is done in the
# meantime. Both are written out in each kernel: a call with arrays inside such a loop, inlined or
# not, makes it one and a half to four times slower. Rows and places are unsigned: an index that
# cannot be negative needs no test for it.


@njit(cache=True, nogil=True)
def backward(
    slots: Slots,
    lags: Array,
    floors: Array,
    window: int,
    repeated: Array,
    carriage: Carriage | None,
) -> int:
    """Each slot takes the row that is its lag back; memory says which of the last rows were out.

    Parameters:
        slots: where the series stand, and the ages that are found.
        lags: the draws, one for each row.
        floors: of the draws, where these are halves.
        window: one more than the greatest lag.
        repeated: 1 where a row was out before.
        carriage: rows to carry, if any.
    """
    counts, starts, memory, ages = slots
    last, further = np.uint64(window - 1), np.uint64(1)
    if carriage is not None:
        rows, newest, out, status = carriage
    rate = cells_per_digit(floors)
    unsure = 0
    row = np.uint64(0)
    for series in range(counts.size):
        own = memory[series]
        step = starts[series]
        here = np.uint64(step % window)
        for _ in range(counts[series]):
            if floors is None:
                lag = np.uint64(at(lags, row))
            else:
                digits = np.int64(lags[row])
                lag = np.uint64(max(0, int((digits - floors[1]) * rate + 1.0)))
                if not (floors[lag] < digits and digits < floors[lag + np.uint64(1)]):
                    unsure += 1
            own[here] = 0
            source = here - lag if lag <= here else here + last + further - lag
            age = np.int64(lag) if np.int64(lag) <= step else -1
            ages[row] = age
            repeated[row] = own[source]
            own[source] = 1
            if carriage is not None:
                if age < 0:
                    status[row] = EMPTY
                out[row] = rows[newest + row - np.uint64(max(age, 0))]
            row += further
            step += 1
            here = here + further if here < last else np.uint64(0)
    return unsure


@njit(cache=True, nogil=True)
def forward(
    slots: Slots, lags: Array, floors: Array, window: int, carriage: Carriage | None
) -> int:
    """Each row goes to the slot that is its lag ahead, over whatever was there.

    Memory holds the ages of the slots after the last row as age + 1, 0 for none.

    Parameters:
        slots: where the series stand, and the ages that are found.
        lags: the draws, one for each row.
        floors: of the draws, where these are halves.
        window: one more than the greatest lag.
        carriage: rows to carry, if any.
    """
    counts, _, memory, ages = slots
    further = np.uint64(window - 1)
    if carriage is not None:
        rows, newest, out, status = carriage
    rate = cells_per_digit(floors)
    unsure = 0
    row = np.uint64(0)
    for series in range(counts.size):
        own = memory[series]
        for ahead in range(window - 1):
            ages[row + np.uint64(ahead)] = own[ahead] - 1
        for _ in range(counts[series]):
            if floors is None:
                lag = np.uint64(at(lags, row))
            else:
                digits = np.int64(lags[row])
                lag = np.uint64(max(0, int((digits - floors[1]) * rate + 1.0)))
                if not (floors[lag] < digits and digits < floors[lag + np.uint64(1)]):
                    unsure += 1
            ages[row + further] = -1
            ages[row + lag] = np.int64(lag)
            if carriage is not None:
                age = ages[row]
                status[row] = EMPTY if age < 0 else 0
                out[row] = rows[newest + row - np.uint64(max(age, 0))]
            row += np.uint64(1)
        for ahead in range(window - 1):
            own[ahead] = ages[row + np.uint64(ahead)] + 1
    return unsure


@njit(cache=True, nogil=True)
def threshold(
    slots: Slots,
    choices: Array,
    floors: Array,
    window: int,
    free: int,
    keeps: Array,
    carriage: Carriage | None,
) -> int:
    """Algorithm 1 once the number of free slots has come down to the threshold.

    The free slots stand in a list, in whatever order: each step takes one of them, the slot of its
    own time if that is free and else the one at the place that is drawn, and the slot that opens
    next gets its place in the list. So no step has to search.

    Memory holds, for the slots after the last row, an age, -1 for a row from before the series, or
    -2 - its place in the list for a slot that is free.

    Parameters:
        slots: where the series stand, and the ages that are found.
        choices: the draws, one for each row.
        floors: of the draws, where these are halves.
        window: how many slots a row can go to.
        free: how many of them are free.
        keeps: 0 where a row that goes to its own slot is dropped; None drops none.
        carriage: rows to carry, if any.
    """
    listed = np.empty(free, dtype=np.uint64)
    counts, _, memory, ages = slots
    further = np.uint64(window - 1)
    if carriage is not None:
        rows, newest, out, status = carriage
    rate = cells_per_digit(floors)
    unsure = 0
    row = np.uint64(0)
    for series in range(counts.size):
        own = memory[series]
        left = free * (free - 1) // 2
        for ahead in range(window - 1):
            ages[row + np.uint64(ahead)] = own[ahead]
            if own[ahead] < -1:
                listed[-2 - own[ahead]] = row + np.uint64(ahead)
                left += 2 + own[ahead]
        vacant = np.uint64(left)
        for _ in range(counts[series]):
            listed[vacant] = row + further
            ages[row + further] = -2 - np.int64(vacant)
            due = -2 - ages[row]
            if floors is None:
                vacant = np.uint64(due) if due >= 0 else np.uint64(at(choices, row))
            else:
                digits = np.int64(choices[row])
                cell = np.uint64(max(0, int((digits - floors[1]) * rate + 1.0)))
                if not (floors[cell] < digits and digits < floors[cell + np.uint64(1)]):
                    unsure += 1
                vacant = np.uint64(due) if due >= 0 else cell
            slot = listed[vacant]
            ages[slot] = np.int64(slot - row)
            if keeps is not None:  # noqa: SIM102 - by itself, it is decided when compiled
                if due >= 0 and at(keeps, row) == 0:
                    ages[row] = -1
            if carriage is not None:
                age = ages[row]
                status[row] = EMPTY if age < 0 else 0
                out[row] = rows[newest + row - np.uint64(max(age, 0))]
            row += np.uint64(1)
        for ahead in range(window - 1):
            own[ahead] = ages[row + np.uint64(ahead)]
    return unsure


@njit(cache=True, nogil=True)
def dual(
    slots: Slots,
    choices: Array,
    floors: Array,
    window: int,
    free: int,
    keeps: Array,
    carriage: Carriage | None,
) -> int:
    """Threshold with readings and slots exchanged: the list holds the steps of the pool.

    The oldest row comes out if it is there, else the one at the place that is drawn; the next row
    gets its place. Rows from before the series are none. Memory holds the pool by age: 1 + the
    place in the list, or 0.

    Parameters:
        slots: where the series stand, and the ages that are found.
        choices: the draws, one for each row.
        floors: of the draws, where these are halves.
        window: one more than the greatest age.
        free: how many rows the pool has.
        keeps: 0 where the oldest row is dropped; None drops none.
        carriage: rows to carry, if any.
    """
    counts, starts, memory, ages = slots
    ring = 1  # a power of two, so that places in it need no division
    while ring < window:
        ring *= 2
    around = np.uint64(ring - 1)
    where = np.empty(ring, dtype=np.int64)  # of a step in the list, -1 if it is out
    listed = np.empty(free, dtype=np.int64)
    if carriage is not None:
        rows, newest, out, status = carriage
    rate = cells_per_digit(floors)
    unsure = 0
    row = np.uint64(0)
    for series in range(counts.size):
        own = memory[series]
        step = starts[series]
        where[:] = -1
        left = free * (free - 1) // 2
        for age in range(window - 1):
            if own[age]:
                left -= own[age] - 1
                listed[own[age] - 1] = step - 1 - age
                where[np.uint64(step - 1 - age) & around] = own[age] - 1
        vacant = np.uint64(left)
        for _ in range(counts[series]):
            listed[vacant] = step
            where[np.uint64(step) & around] = np.int64(vacant)
            due = where[np.uint64(step - window + 1) & around]
            if floors is None:
                vacant = np.uint64(due) if due >= 0 else np.uint64(at(choices, row))
            else:
                digits = np.int64(choices[row])
                cell = np.uint64(max(0, int((digits - floors[1]) * rate + 1.0)))
                if not (floors[cell] < digits and digits < floors[cell + np.uint64(1)]):
                    unsure += 1
                vacant = np.uint64(due) if due >= 0 else cell
            source = listed[vacant]
            where[np.uint64(source) & around] = -1
            age = step - source if source >= 0 else -1
            if keeps is not None:  # noqa: SIM102 - by itself, it is decided when compiled
                if due >= 0 and at(keeps, row) == 0:
                    age = -1
            ages[row] = age
            if carriage is not None:
                status[row] = EMPTY if age < 0 else 0
                out[row] = rows[newest + row - np.uint64(max(age, 0))]
            row += np.uint64(1)
            step += 1
        for age in range(window - 1):
            own[age] = 1 + where[np.uint64(step - 1 - age) & around]
    return unsure


@njit(cache=True, nogil=True)
def shuffle(slots: Slots, absent: Array, block: int, offset: int, cycles: Array) -> None:
    """A random permutation of each block, by joining a cycle or opening one.

    Memory: the last finished permutation, and the one at hand. With each row comes out the slot of
    ``block`` - 1 steps before.

    Parameters:
        slots: where the series stand, and the ages that are found.
        absent: steps after the end of a series, at which no row comes in.
        block: the rows of a block.
        offset: the step at which the first whole block begins.
        cycles: the draws, one for each row: which earlier row of the block it joins, from 1 on, or
            0 for a cycle of its own.
    """
    row = 0
    for series in range(slots.counts.size):
        start = slots.starts[series]
        done, open_ = slots.memory[series, :block], slots.memory[series, block:]
        for step in range(start, start + slots.counts[series]):
            number = step if step < offset else (step - offset) % block
            if not absent[row]:
                joined = at(cycles, row)
                if joined:
                    open_[number] = open_[joined - 1]
                    open_[joined - 1] = number
                else:
                    open_[number] = number
            if step + 1 == offset or (step >= offset and number + 1 == block):
                done[:] = open_
            slot = step - block + 1
            slots.ages[row] = -1
            if slot >= 0:
                base = 0 if slot < offset else slot - (slot - offset) % block
                slots.ages[row] = step - base - done[slot - base]
            row += 1


@njit(cache=True, nogil=True)
def by_key(slots: Slots, absent: Array, latency: int, keys: Array, ties: Array) -> None:
    """Rows in order of noisy keys, ties by random words, ``latency`` steps after their slot.

    Memory: how many rows wait, then their keys, ties and steps, in order.

    Parameters:
        slots: where the series stand, and the ages that are found.
        absent: steps after the end of a series, at which no row comes in.
        latency: how many steps after its own a slot comes out.
        keys: the noise on the time of each row.
        ties: random words, for rows of equal noisy times.
    """
    room = latency + 1
    row = 0
    for series in range(slots.counts.size):
        own, start = slots.memory[series], slots.starts[series]
        key, tie, source = own[1 : 1 + room], own[1 + room : 1 + 2 * room], own[1 + 2 * room :]
        for step in range(start, start + slots.counts[series]):
            if not absent[row]:
                new, word = step + at(keys, row), at(ties, row)
                place = own[0]
                while place > 0 and (
                    new < key[place - 1] or (new == key[place - 1] and word < tie[place - 1])
                ):
                    key[place], tie[place] = key[place - 1], tie[place - 1]
                    source[place] = source[place - 1]
                    place -= 1
                key[place], tie[place], source[place] = new, word, step
                own[0] += 1
            slots.ages[row] = -1
            if step >= latency:
                slots.ages[row] = step - source[0]
                own[0] -= 1
                for place in range(own[0]):
                    key[place], tie[place] = key[place + 1], tie[place + 1]
                    source[place] = source[place + 1]
            row += 1
