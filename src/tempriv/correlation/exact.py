"""The largest loss that any mechanisms with given budgets can have, by enumeration.

For one output at every step let f_t(x) be its likelihood at step t if the state is x; epsilon_t
bounds its ratios. The probability of all outputs given the values at S is linear in each f_t, so
the ratio of two of them is largest, in each f_t by itself, at an extreme ray of the cone of allowed
f_t: where f_t(x) is 1 or e^epsilon_t for every x. All of these are tried in each gap between
protected steps. At a protected step the best f_t tells its two values apart, if they differ. What
is then left, the best values at S, is a longest path over pairs of values.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from tempriv.correlation.chain import MIN_PROBABILITY, Chain, Flags, Floats, Integers, followers
from tempriv.errors import require

MAX_OUTPUTS = 1 << 16
ROUND_UP = 1 + 2.0**-44


def extremes(epsilon: float, states: int) -> Floats:
    """Likelihoods of so many ``states`` that are 1 or e^-``epsilon``, not all alike."""
    if epsilon == 0 or states == 1:
        return np.ones((1, states))
    choices = np.array(list(itertools.product((1.0, math.exp(-epsilon)), repeat=states)))
    return choices[1:-1]


def _check(spent: Floats, states: int) -> None:
    digits = math.log2(2**states - 2) * np.count_nonzero(spent) if states > 1 else 0.0
    require(
        digits <= math.log2(MAX_OUTPUTS),
        f"method=exact: {len(spent)} steps in a row, {states} states: more than {MAX_OUTPUTS} "
        "outputs to try; use bridge",
    )


def _require_likely(chances: Floats) -> None:
    require(
        bool(np.all(chances >= MIN_PROBABILITY)),
        "method=exact: some values of the chain are too unlikely to compute with; use bridge",
    )


def _largest(logarithms: Floats) -> Floats:
    """Over all outputs, the largest difference of each two entries; -inf where one is impossible.

    Rows are outputs, columns what the outputs are conditioned on.
    """
    columns = logarithms.shape[1]
    largest = np.full((columns, columns), -np.inf)
    possible = np.flatnonzero(np.isfinite(logarithms[0]))
    for row in possible:
        largest[row, possible] = np.max(logarithms[:, [row]] - logarithms[:, possible], axis=0)
    return largest


def _gap(matrix: Floats, spent: Floats) -> Floats:
    """log g(x, y) / g(x', y') at its largest, for the budgets strictly between, as (x x', y y')."""
    n = len(matrix)
    _check(spent, n)
    products = matrix[None]
    plain, reach = matrix, matrix > 0
    for epsilon in spent:
        weighted = products[:, None] * extremes(epsilon, n)[None, :, None, :]
        products = weighted.reshape(-1, n, n) @ matrix
        plain = plain @ matrix
        reach = followers(reach, matrix)
    _require_likely(plain[reach])
    with np.errstate(divide="ignore"):
        logs = np.where(
            plain > 0, np.log(products) - np.log(np.where(plain > 0, plain, 1)), -np.inf
        )
    pairs = _largest(logs.reshape(-1, n * n)).reshape(n, n, n, n)
    return pairs.transpose(0, 2, 1, 3).reshape(n * n, n * n)


def _end(matrices: list[Floats], spent: Floats) -> Floats:
    """The same for one end of the series, seen through ``matrices``, the nearest step last."""
    n = matrices[0].shape[1] if matrices else 0
    _check(spent, n)
    vectors = np.ones((1, n))
    for matrix, epsilon in zip(matrices, spent, strict=True):
        weighted = (vectors[:, None] * extremes(epsilon, n)[None]).reshape(-1, n)
        vectors = weighted @ matrix.T
    with np.errstate(divide="ignore"):
        return _largest(np.log(vectors)).ravel()


class _Cases:
    """The pieces of one series, each found once."""

    def __init__(self, chain: Chain, spent: Floats):
        self.chain, self.spent, self.n = chain, spent, chain.states
        self.gaps: dict[tuple[int, int], Floats] = {}
        self.reversals: list[tuple[Floats, Flags]] = []
        shares = chain.shares if chain.start_is_known else np.ones(self.n)
        self.possible: list[Flags] = []
        reached: Flags = shares > 0
        for _ in spent:
            _require_likely(shares[reached])
            self.possible.append(reached)
            reached = followers(reached, chain.matrix)
            self.reversals.append(chain.reversed_at(1, shares if chain.backward is None else None))
            shares = shares @ chain.matrix

    def head(self, step: int) -> Floats:
        """(x, x') at the first protected step, with what comes before it."""
        possible = np.outer(self.possible[step], self.possible[step]).ravel()
        largest = np.zeros(self.n**2)
        if step:
            largest = _end([matrix for matrix, _ in self.reversals[:step]], self.spent[:step])
        return np.where(possible, largest, -np.inf)

    def tail(self, step: int) -> Floats:
        """The largest loss by releases after ``step``, for each pair of values at it."""
        later = self.spent[:step:-1]
        return _end([self.chain.matrix] * len(later), later) if len(later) else np.zeros(self.n**2)

    def gap(self, first: int, last: int) -> Floats:
        """The largest loss by releases between ``first`` and ``last``, for pairs of values."""
        if (first, last) not in self.gaps:
            self.gaps[first, last] = _gap(self.chain.matrix, self.spent[first + 1 : last])
        return self.gaps[first, last]

    def loss(self, protected: list[int]) -> float:
        """The longest path over pairs of values at the protected steps."""
        apart = (~np.eye(self.n, dtype=np.bool_)).ravel()
        best = self.head(protected[0]) + apart * self.spent[protected[0]]
        for first, last in itertools.pairwise(protected):
            best = np.max(best[:, None] + self.gap(first, last), axis=0) + apart * self.spent[last]
        return float(np.max(best + self.tail(protected[-1])))


def exact_losses(chain: Chain, spent: Floats, marks: Integers) -> Floats:
    """The largest loss of the ``marks`` and any one step, for a ``chain`` and what is ``spent``."""
    cases = _Cases(chain, spent)
    chosen = marks.tolist()
    losses = [cases.loss(sorted({*chosen, step})) for step in range(len(spent))]
    # no mechanisms tell more than their budgets together
    return np.asarray(ROUND_UP * np.minimum(losses, spent.sum()))
