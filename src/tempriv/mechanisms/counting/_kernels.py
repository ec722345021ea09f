"""Compiled loops of running sums (see ``kernels``)."""

from __future__ import annotations

from typing import Any

from numba import njit

Array = Any  # numba takes its types from the calls


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
    asked: Array,
    told: Array,
    sums: Array,
) -> None:
    """Noisy strategy values and the sums made of them, within the block that ends before ``end``.

    A place of ``asked`` holds what earlier increments add to the strategy value of its step until
    the step comes, and then the step's increment; ``told`` the same with noisy strategy values and
    running sums. Every place gets its terms in order of time, so no cutting changes a bit.
    """
    for row in range(increments.size):
        step = begin + row
        increment = increments[row]
        value = float(asked[step] + strategy[0] * increment + noise[row])
        sums[row] = told[step] + back[0] * value
        asked[step] = increment
        told[step] = value
        for later in range(step + 1, end):
            asked[later] += strategy[later - step] * increment
            told[later] += back[later - step] * value
