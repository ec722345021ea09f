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
