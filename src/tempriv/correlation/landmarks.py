"""The loss of several moments together, under correlation: the landmarks and any one other step.

S = L + {t} are protected. What an observer can gain is the largest of

    log Pr(all outputs | values at S) / Pr(all outputs | other values at S).

Given the values at S the steps between two neighbors in S depend on those two only, so the
probability is a product: a factor for each step of S (its ratio is at most e^epsilon of that step),
one for each gap between neighbors, one for what comes before the first and one for what comes
after the last. ``definition5`` adds up bounds of the landmark paper for those; they are too small.
``bridge`` adds up bounds that hold. ``exact`` finds the largest over every mechanism.

**Why the bridge bound holds.** For a gap from a to b let g(x, y) be the expected product of the
outputs' likelihoods strictly between, given x at a and y at b. Then

    log g(x, y) / g(x', y') = log g(x, y) / g(x', y) + log g(x', y) / g(x', y'),

and the first part changes the value at a only, with y at b fixed. Given y the chain from a on is
again a Markov chain, with K_j(x, m | y) = P(x, m) P^(b-j-1)(m, y) / P^(b-j)(x, y). So, with g_j the
same expectation from step j on, g_j(x, y) = sum over m of K_j(x, m | y) f_{j+1}(m) g_{j+1}(m, y).
If ratios of g_{j+1}(., y) are at most e^a, those of f g are at most e^(a + epsilon), and ratios of
g_j at most e^(L(a + epsilon)), with L of the rows of K_j(. | y): the recursion of Cao et al. The
largest over y holds for any y. The second part is the same from the other end, with x' fixed. It
goes over (x', y), or as well over (x, y'), so one of these must be possible; if for some pair
neither is, only the next bound is left. Any ratio of g is at most e to the sum of the budgets
between, as g is a mean of products of likelihoods. The smaller of the two bounds is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tempriv.correlation._kernels import between, bridge_gap, bridge_tables
from tempriv.correlation.chain import MIN_PROBABILITY, Chain, Flags, Floats, followers
from tempriv.correlation.exact import exact_losses
from tempriv.correlation.growth import ROUNDING, Growth, as_budgets, growths, shown
from tempriv.errors import require

Method = Literal["definition5", "bridge", "exact"]
Reading = Literal["inclusive", "exclusive"]

MAX_PASSES = 3e8
MAX_BRIDGES = 1e9
ROUND_UP = 1 + 2.0**-40


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class LandmarkLoss:
    """Per step t: the loss of the landmarks and t together. Private where the chain is.

    The landmarks, and what shows them, belong to the owner of the data as well.
    """

    total: Floats
    method: str
    private: bool

    @property
    def maximum(self) -> float:
        """What is lost at most, whichever other step is meant."""
        return float(self.total.max())

    def __repr__(self) -> str:
        if self.private:
            return "LandmarkLoss(private=True)"
        return f"LandmarkLoss(method={self.method!r}, maximum={shown(self.maximum)})"


def landmark_loss(
    chain: Chain,
    budgets: npt.ArrayLike,
    landmarks: Iterable[int],
    method: Method = "bridge",
    reading: Reading = "inclusive",
) -> LandmarkLoss:
    """What the releases tell of the landmarks and any one other step together.

    - ``"bridge"``: never less than the truth, for every mechanism with these budgets.
    - ``"exact"``: the largest over all such mechanisms, by enumeration; for small cases.
    - ``"definition5"``: the sum in the landmark paper, which can be too small. It does not say
      whether the interval from i- to i has the output at i-; as printed, closed, it has, which is
      ``reading="inclusive"``; ``"exclusive"`` leaves it out, and is smaller.

    Parameters:
        chain: how readings follow each other.
        budgets: the epsilon that each step spends.
        landmarks: the numbers of their steps, from 0 on.
        method: as above.
        reading: of ``definition5``, as above.

    >>> chain = Chain(forward=[[0.99, 0.01], [0.95, 0.05]])
    >>> for method in ("definition5", "exact", "bridge"):
    ...     print(round(landmark_loss(chain, [0.001, 2, 0.001], [0, 2], method).total[0], 4))
    0.4326
    0.7888
    1.1589
    """
    spent = as_budgets(budgets)
    listed = list(landmarks)
    require(
        not any(isinstance(mark, (bool, np.bool_)) for mark in listed),
        "landmarks: must be the numbers of their steps; of flags numpy.flatnonzero gives them",
    )
    marks = np.unique(np.array([int(mark) for mark in listed], dtype=np.int64))
    inside = len(marks) == 0 or (marks[0] >= 0 and marks[-1] < len(spent))
    require(bool(inside), f"landmarks: must be steps from 0 to {len(spent) - 1}")
    require(
        method in ("definition5", "bridge", "exact"),
        f"method={method}: must be definition5, bridge or exact",
    )
    require(
        reading in ("inclusive", "exclusive"),
        f"reading={reading}: must be inclusive or exclusive",
    )
    if method == "exact":
        total = exact_losses(chain, spent, marks)
    else:
        gaps = np.diff(np.concatenate([[0], marks, [len(spent) - 1]]))
        passes = float(np.sum(gaps.astype(float) ** 2))
        width = chain.states if method == "bridge" else 1
        require(
            len(marks) == 0 or passes * width <= MAX_PASSES,
            f"landmarks: the longest stretch without one has {gaps.max()} steps, which would take "
            "too long; cut the series, or join states of the chain",
        )
        before, after = growths(chain, len(spent))
        if method == "definition5":
            parts = _definition5(before, after, spent, reading == "inclusive")
        else:
            parts = _bridge(chain, spent, int(gaps.max()) if len(marks) else 0)
        total = _added(before, after, spent, marks, parts) * ROUND_UP
    return LandmarkLoss(total=total, method=method, private=chain.private)


Parts = Callable[[int, int], tuple[Floats, Floats]]
"""Of the steps first .. last: what lies between the first and each, and between each and the last.
"""


def _added(
    before: Growth, after: Growth, spent: Floats, marks: npt.NDArray[np.int64], parts: Parts
) -> Floats:
    """Sums over S = L + {t} for every t: only the gap that t lies in is another one."""
    length = len(spent)
    # what comes before, or after, all of S; the step itself not counted
    head = before.losses(spent) - spent
    tail = after.losses(spent[::-1].copy())[::-1] - spent
    if len(marks) == 0:
        return np.asarray(head + spent + tail)
    inside = np.zeros(length)
    whole = head[marks[0]] + tail[marks[-1]] + spent[marks].sum()
    changes = np.zeros(length)  # of the sum, if t is added
    edges = [0, *marks.tolist(), length - 1]
    for number, (first, last) in enumerate(itertools.pairwise(edges)):
        from_first, to_last = parts(first, last)
        steps = slice(first, last + 1)
        if number == 0:
            added, replaced = head[steps] + to_last, head[last]
        elif number == len(marks):
            added, replaced = from_first + tail[steps], tail[first]
        else:
            added, replaced = from_first + to_last, from_first[-1]
            inside[last] = from_first[-1]
        changes[steps] = added + spent[steps] - replaced
    changes[marks] = 0
    return np.asarray(whole + inside.sum() + changes)


def _definition5(before: Growth, after: Growth, spent: Floats, closed: bool) -> Parts:
    """Equation 3 of the landmark paper without epsilon_i, the parts of one gap together.

    Between neighbors i < j of S: the backward part of j and the forward part of i.
    """

    tables = before.at(len(spent))

    def parts(first: int, last: int) -> tuple[Floats, Floats]:
        """What lies between ``first`` and each step up to ``last``, and between each and that."""
        steps = slice(first, last + 1)
        both = []
        for growth, budgets, which in (
            (before, spent[steps].copy(), tables[steps]),
            (after, spent[steps][::-1].copy(), after.at(last + 1 - first)),
        ):
            from_first, to_last = np.zeros(len(budgets)), np.zeros(len(budgets))
            between(
                growth.highs,
                growth.lows,
                growth.bounds,
                which,
                budgets,
                closed,
                from_first,
                to_last,
            )
            both.append((from_first, to_last))
        (back_first, back_last), (ahead_last, ahead_first) = both
        return back_first + ahead_first[::-1], back_last + ahead_last[::-1]

    return parts


def _bridge(chain: Chain, spent: Floats, longest: int) -> Parts:
    """Both halves of a gap's change of values (see above), for every cut of it."""
    n = chain.states
    require(
        longest < 2 or float(n) ** 4 * longest <= MAX_BRIDGES,
        f"landmarks: a stretch of {longest} steps without one takes too long with {n} states; join "
        "states of the chain",
    )
    powers = np.empty((longest + 1, n, n))
    nested = np.ones(longest + 1, dtype=np.bool_)
    powers[0] = np.eye(n)
    reach: Flags = np.eye(n, dtype=np.bool_)
    trusted = longest
    for r in range(1, longest + 1):
        powers[r] = powers[r - 1] @ chain.matrix
        reach = followers(reach, chain.matrix)
        nested[r] = _is_nested(reach)
        if trusted == longest and np.any(powers[r][reach] < MIN_PROBABILITY):
            trusted = r - 1
    slack = 4 * n * (longest + 2) * ROUNDING
    limit = max(1, trusted)
    ahead = bridge_tables(chain.matrix, powers, min(limit, longest), slack)
    flipped = np.ascontiguousarray(powers.transpose(0, 2, 1))
    back = bridge_tables(np.ascontiguousarray(chain.matrix.T), flipped, min(limit, longest), slack)

    def parts(first: int, last: int) -> tuple[Floats, Floats]:
        """What lies between ``first`` and each step up to ``last``, and between each and that."""
        budgets = spent[first : last + 1].copy()
        size = len(budgets)
        ways = []
        for tables, line in ((ahead, budgets), (back, budgets[::-1].copy())):
            start, others = np.zeros(size), np.zeros(size)
            bridge_gap(*tables, n, trusted, line, start, others)
            ways.append((start, others))
        (start, others), (back_start, back_others) = ways
        every = np.arange(size)
        left, right = _strictly_between(budgets), _strictly_between(budgets[::-1])[::-1]
        from_first = np.minimum(
            left * ROUND_UP, np.where(nested[every], start + back_others[::-1], np.inf)
        )
        to_last = np.minimum(
            right * ROUND_UP, np.where(nested[every[::-1]], others + back_start[::-1], np.inf)
        )
        return from_first, to_last

    return parts


def _strictly_between(budgets: Floats) -> Floats:
    """Sums of what lies between the first and each."""
    return np.concatenate([[0.0, 0.0], np.cumsum(budgets[1:-1])])[: len(budgets)]


def _is_nested(reach: Flags) -> bool:
    """Whether of the states that two can reach, always one set holds the other.

    Otherwise there are x -> y and x' -> y' with neither x -> y' nor x' -> y.
    """
    if bool(np.all(reach)):
        return True
    more = (reach.astype(np.float32) @ (~reach).T.astype(np.float32)) > 0
    return not bool(np.any(more & more.T))
