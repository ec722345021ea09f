"""Compiled loops of running sums (see ``kernels``)."""

from __future__ import annotations

from numba import njit

from tempriv.sampling._kernels import Array


@njit(cache=True, nogil=True)
def tree_sums(
    increments: Array,
    which: Array,
    steps: Array,
    branching: int,
    endless: bool,
    noise: Array,
    memory: Array,
    first: int,
    sums: Array,
) -> None:
    """Running sums from noisy sums of nodes; the draw of a row is the noise of one node.

    After n steps the nodes in use are those of the digits of n. The one that is new ends at n, and
    its level is the number of zeros that n ends in: what carries into a higher digit is never used.

    Slots from ``first``: 0 the exact sum so far; 1 (endless only) the noise of the totals of
    finished epochs; from 2 on, for each level, the noise in the sum at its last node's end.

    Parameters:
        increments: what is added up.
        which: the series of each.
        steps: the step of each in its series.
        branching: of the tree.
        endless: whether powers of the branching end an epoch.
        noise: of the node, or the total, that ends at each row.
        memory: of each series.
        first: the first slot.
        sums: are written.
    """
    for row in range(increments.size):
        own = memory[which[row]]
        own[first] += increments[row]
        level, rest = 0, steps[row] + 1
        while rest % branching == 0:
            rest //= branching
            level += 1
        if endless and rest == 1 and level > 0:
            # a power of the branching ends an epoch: its noisy total replaces its nodes
            error = own[first + 1] + noise[row]
            own[first + 1] = error
        else:
            error = own[first + 2 + level] + noise[row]
        for below in range(level + 1):
            own[first + 2 + below] = error
        sums[row] = own[first] + error


@njit(cache=True, nogil=True)
def factored_sums(
    increments: Array,
    noise: Array,
    begin: int,
    end: int,
    strategy: Array,
    back: Array,
    encoded: Array,
    decoded: Array,
    sums: Array,
) -> None:
    """Noisy strategy values and the sums made of them, within a block of steps.

    Every place gets its terms in order of time, so no cutting changes a bit.

    Parameters:
        increments: what is added up.
        noise: on the strategy value of each row.
        begin: the step of the first row.
        end: the step before which the block ends.
        strategy: the coefficients of C.
        back: those of B.
        encoded: in the place of each step what earlier increments add to its strategy value, until
            the step comes, and then its increment.
        decoded: the same with running sums and noisy strategy values.
        sums: are written.
    """
    for row in range(increments.size):
        step = begin + row
        increment = increments[row]
        value = float(encoded[step] + strategy[0] * increment + noise[row])
        sums[row] = decoded[step] + back[0] * value
        encoded[step] = increment
        decoded[step] = value
        for later in range(step + 1, end):
            encoded[later] += strategy[later - step] * increment
            decoded[later] += back[later - step] * value


@njit(cache=True, nogil=True)
def binned_sums(
    increments: Array,
    which: Array,
    steps: Array,
    coefficients: Array,
    table_bits: int,
    width: int,
    noise: Array,
    memory: Array,
    reals: Array,
    first: int,
    levels: int,
    sums: Array,
) -> None:
    """Running sums from noisy strategy values, with the past in bins that grow with age.

    Slots from ``first``: the sum of what is solved for so far, a real number; then for each level
    room for ``width`` + 2 sums of increments, the newest bin first; then as much for sums of what
    is solved for, as real numbers. How many bins of a level are in use follows from the step.

    Parameters:
        increments: what is added up.
        which: the series of each.
        steps: the step of each in its series.
        coefficients: of C, by place.
        table_bits: a place for each age below 2 to the power of this, and as many a doubling.
        width: bins of a level that are left when two of them become one of the next.
        noise: on the strategy value of each row.
        memory: of each series.
        reals: the same memory, as real numbers.
        first: the first slot.
        levels: how many there are.
        sums: are written.
    """
    size = 1 << table_bits
    room = width + 2
    for row in range(increments.size):
        own, real = memory[which[row]], reals[which[row]]
        counts, solved = first + 1, first + 1 + levels * room
        value, known = 0, 0.0
        age, shift = 0, 0
        arrived = steps[row]
        for level in range(levels):
            if arrived == 0:
                break
            merged = max(0, (arrived - width) // 2)
            for place in range(level * room, level * room + arrived - 2 * merged):
                age += 1 << level
                while age >> shift >= 2 * size:
                    shift += 1
                weight = coefficients[shift * size + (age >> shift)]
                value += weight * own[counts + place]
                known += weight * real[solved + place]
            arrived = merged
        noisy = float(value + coefficients[0] * increments[row] + noise[row])
        part = (noisy - known) / coefficients[0]
        real[first] += part
        sums[row] = real[first]
        # the new step is a bin; where a level is full, its two oldest bins become one
        new, new_solved = increments[row], part
        arrived = steps[row]
        for level in range(levels):
            merged = max(0, (arrived - width) // 2)
            used = arrived - 2 * merged
            begin = level * room
            for place in range(begin + used, begin, -1):
                own[counts + place] = own[counts + place - 1]
                real[solved + place] = real[solved + place - 1]
            own[counts + begin] = new
            real[solved + begin] = new_solved
            if used + 1 < room:
                break
            last = begin + used
            new = own[counts + last] + own[counts + last - 1]
            new_solved = real[solved + last] + real[solved + last - 1]
            own[counts + last] = own[counts + last - 1] = 0
            real[solved + last] = real[solved + last - 1] = 0.0
            arrived = merged
