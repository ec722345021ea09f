"""Compiled loops of the order mechanisms: which row goes to which slot, and no value anywhere.

Each also runs as plain Python and gives the same result. ``counts`` has the rows of each series,
one after the other; ``memory`` a row of whole numbers for each series. Out comes the *age* of the
row in each slot: how many steps before the newest row it came in, or -1 for none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tempriv.sampling._kernels import Array, at, cells_per_digit


class Carriage(NamedTuple):
    """Rows of one column to carry to their slots; ``newest`` is the place of the first row."""

    rows: Array = None
    newest: Any = None
    out: Array = None
    status: Array = None


# What the first four kernels draw comes as halves (``kernels.Halves``), or as numbers, no floors;
# they return how many halves leave a cell in doubt. Where rows are given, each goes to its slot at
# once: the loops wait for their own last step, and all this is done in the meantime. It is written
# out in each, because a call with arrays inside such a loop costs ten times the loop. Rows and
# places are unsigned: an index that cannot be negative needs no test for it.


@njit(cache=True, nogil=True)
def backward(
    counts: Array,
    starts: Array,
    window: int,
    lags: Array,
    floors: Array,
    memory: Array,
    ages: Array,
    repeated: Array,
    rows: Array,
    newest: Any,
    out: Array,
    status: Array,
) -> int:
    """Each slot takes the row that is its lag back; memory says which of the last rows were out."""
    last, further = np.uint64(window - 1), np.uint64(1)
    rate = cells_per_digit(floors)
    unsure = 0
    row = np.uint64(0)
    for one in range(counts.size):
        own = memory[one]
        step = starts[one]
        here = np.uint64(step % window)
        for _ in range(counts[one]):
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
            if rows is not None:
                if age < 0:
                    status[row] = 2
                out[row] = rows[newest + row - np.uint64(max(age, 0))]
            row += further
            step += 1
            here = here + further if here < last else np.uint64(0)
    return unsure


@njit(cache=True, nogil=True)
def forward(
    counts: Array,
    window: int,
    lags: Array,
    floors: Array,
    memory: Array,
    ages: Array,
    rows: Array,
    newest: Any,
    out: Array,
    status: Array,
) -> int:
    """Each row goes to the slot that is its lag ahead, over whatever was there.

    ``ages`` has room for the slots after the last row; memory holds them as age + 1, 0 for none.
    """
    further = np.uint64(window - 1)
    rate = cells_per_digit(floors)
    unsure = 0
    row = np.uint64(0)
    for one in range(counts.size):
        own = memory[one]
        for ahead in range(window - 1):
            ages[row + np.uint64(ahead)] = own[ahead] - 1
        for _ in range(counts[one]):
            if floors is None:
                lag = np.uint64(at(lags, row))
            else:
                digits = np.int64(lags[row])
                lag = np.uint64(max(0, int((digits - floors[1]) * rate + 1.0)))
                if not (floors[lag] < digits and digits < floors[lag + np.uint64(1)]):
                    unsure += 1
            ages[row + further] = -1
            ages[row + lag] = np.int64(lag)
            if rows is not None:
                age = ages[row]
                status[row] = 2 if age < 0 else 0
                out[row] = rows[newest + row - np.uint64(max(age, 0))]
            row += np.uint64(1)
        for ahead in range(window - 1):
            own[ahead] = ages[row + np.uint64(ahead)] + 1
    return unsure


@njit(cache=True, nogil=True)
def threshold(
    counts: Array,
    window: int,
    free: int,
    choices: Array,
    floors: Array,
    keeps: Array,
    memory: Array,
    ages: Array,
    rows: Array,
    newest: Any,
    out: Array,
    status: Array,
) -> int:
    """Algorithm 1 once the number of free slots has come down to the threshold.

    The free slots stand in a list, in whatever order: each step takes one of them, the slot of its
    own time if that is free and else the one at the place that ``choices`` says, and the slot that
    opens next gets its place in the list. So no step has to search. Where ``keeps`` is given, a row
    that goes to its own slot is dropped where it says 0.

    ``ages`` has room for the slots after the last row, as memory has: an age, -1 for a row from
    before the series, or -2 - its place in the list for a slot that is free.
    """
    listed = np.empty(free, dtype=np.uint64)
    further = np.uint64(window - 1)
    rate = cells_per_digit(floors)
    unsure = 0
    row = np.uint64(0)
    for one in range(counts.size):
        own = memory[one]
        left = free * (free - 1) // 2
        for ahead in range(window - 1):
            ages[row + np.uint64(ahead)] = own[ahead]
            if own[ahead] < -1:
                listed[-2 - own[ahead]] = row + np.uint64(ahead)
                left += 2 + own[ahead]
        vacant = np.uint64(left)
        for _ in range(counts[one]):
            listed[vacant] = row + further
            ages[row + further] = -2 - np.int64(vacant)
            due = -2 - ages[row]
            if floors is None:
                vacant = np.uint64(due) if due >= 0 else np.uint64(at(choices, row))
            else:
                digits = np.int64(choices[row])
                cell = max(0, int((digits - floors[1]) * rate + 1.0))
                if not (floors[np.uint64(cell)] < digits and digits < floors[np.uint64(cell + 1)]):
                    unsure += 1
                vacant = np.uint64(due if due >= 0 else cell)
            slot = listed[vacant]
            ages[slot] = np.int64(slot - row)
            if keeps is not None:  # noqa: SIM102 - by itself, it is decided when compiled
                if due >= 0 and at(keeps, row) == 0:
                    ages[row] = -1
            if rows is not None:
                age = ages[row]
                status[row] = 2 if age < 0 else 0
                out[row] = rows[newest + row - np.uint64(max(age, 0))]
            row += np.uint64(1)
        for ahead in range(window - 1):
            own[ahead] = ages[row + np.uint64(ahead)]
    return unsure


@njit(cache=True, nogil=True)
def dual(
    counts: Array,
    starts: Array,
    window: int,
    free: int,
    choices: Array,
    floors: Array,
    keeps: Array,
    memory: Array,
    ages: Array,
    rows: Array,
    newest: Any,
    out: Array,
    status: Array,
) -> int:
    """Threshold with readings and slots exchanged: the list holds the steps of the pool.

    The oldest row comes out if it is there (or is dropped where ``keeps`` says 0), else the one at
    the place that ``choices`` says; the next row gets its place. Rows from before the series are
    none. Memory holds the pool by age: 1 + the place in the list, or 0.
    """
    ring = 1  # a power of two, so that places in it need no division
    while ring < window:
        ring *= 2
    around = np.uint64(ring - 1)
    where = np.empty(ring, dtype=np.int64)  # of a step in the list, -1 if it is out
    listed = np.empty(free, dtype=np.int64)
    rate = cells_per_digit(floors)
    unsure = 0
    row = np.uint64(0)
    for one in range(counts.size):
        own = memory[one]
        step = starts[one]
        where[:] = -1
        left = free * (free - 1) // 2
        for age in range(window - 1):
            if own[age]:
                left -= own[age] - 1
                listed[own[age] - 1] = step - 1 - age
                where[np.uint64(step - 1 - age) & around] = own[age] - 1
        vacant = np.uint64(left)
        for _ in range(counts[one]):
            listed[vacant] = step
            where[np.uint64(step) & around] = np.int64(vacant)
            due = where[np.uint64(step - window + 1) & around]
            if floors is None:
                vacant = np.uint64(due) if due >= 0 else np.uint64(at(choices, row))
            else:
                digits = np.int64(choices[row])
                cell = max(0, int((digits - floors[1]) * rate + 1.0))
                if not (floors[np.uint64(cell)] < digits and digits < floors[np.uint64(cell + 1)]):
                    unsure += 1
                vacant = np.uint64(due if due >= 0 else cell)
            source = listed[vacant]
            where[np.uint64(source) & around] = -1
            ages[row] = step - source if source >= 0 else -1
            if keeps is not None:  # noqa: SIM102 - by itself, it is decided when compiled
                if due >= 0 and at(keeps, row) == 0:
                    ages[row] = -1
            if rows is not None:
                age = ages[row]
                status[row] = 2 if age < 0 else 0
                out[row] = rows[newest + row - np.uint64(max(age, 0))]
            row += np.uint64(1)
            step += 1
        for age in range(window - 1):
            own[age] = 1 + where[np.uint64(step - 1 - age) & around]
    return unsure


@njit(cache=True, nogil=True)
def shuffle(
    counts: Array,
    starts: Array,
    absent: Array,
    block: int,
    offset: int,
    cycles: Array,
    memory: Array,
    ages: Array,
) -> None:
    """A random permutation of each block, by joining a cycle (cycles > 0) or opening one (0).

    Memory: the last finished permutation, and the one at hand. With each row comes out the slot of
    ``block`` - 1 steps before.
    """
    row = 0
    for one in range(counts.size):
        done, open_ = memory[one, :block], memory[one, block:]
        for step in range(starts[one], starts[one] + counts[one]):
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
            ages[row] = -1
            if slot >= 0:
                base = 0 if slot < offset else slot - (slot - offset) % block
                ages[row] = step - base - done[slot - base]
            row += 1


@njit(cache=True, nogil=True)
def by_key(
    counts: Array,
    starts: Array,
    absent: Array,
    latency: int,
    keys: Array,
    ties: Array,
    memory: Array,
    ages: Array,
) -> None:
    """Rows in order of noisy keys, ties by random words, ``latency`` steps after their slot.

    Memory: how many rows wait, then their keys, ties and steps, in order.
    """
    room = latency + 1
    row = 0
    for one in range(counts.size):
        own = memory[one]
        key, tie, source = own[1 : 1 + room], own[1 + room : 1 + 2 * room], own[1 + 2 * room :]
        for step in range(starts[one], starts[one] + counts[one]):
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
            ages[row] = -1
            if step >= latency:
                ages[row] = step - source[0]
                own[0] -= 1
                for place in range(own[0]):
                    key[place], tie[place] = key[place + 1], tie[place + 1]
                    source[place] = source[place + 1]
            row += 1
