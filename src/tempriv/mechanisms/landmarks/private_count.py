"""A private bound on how many landmarks a series has: never too small, mostly not much too large.

K = |L| + max(0, Z + margin), with Z two-sided geometric (discrete Laplace of scale 1 / epsilon). So
K >= |L| always, and budgets that share by K + 1 cover every landmark. What K tells about one
landmark more or less is ``epsilon``, but for the event that Z + margin fell to 0 or below: then K
is |L| itself, which a series with one landmark more cannot show. That event is the delta.

This is for landmarks fixed without looking at the protected values: where those decide, a neighbor
that differs in k readings may have k landmarks more, and the count costs k times its epsilon.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tempriv.errors import DataError, require
from tempriv.sampling.distributions import DiscreteLaplace
from tempriv.sampling.keystream import Keystream


def noise_of_count(epsilon: float) -> DiscreteLaplace:
    """The noise of the count: one landmark more or less multiplies its odds by e^``epsilon``."""
    require(
        isinstance(epsilon, (int, float)) and 0 < epsilon < math.inf,
        f"count_epsilon={epsilon}: must be a number > 0",
    )
    return DiscreteLaplace(1 / Fraction(epsilon))


def _at_most(epsilon: float, k: int) -> float:
    """Pr[Z <= -k] for k >= 0: a^k / (1 + a), a = e^-epsilon."""
    return math.exp(-epsilon * k) / (1 + math.exp(-epsilon))


def margin(epsilon: float, miss: float) -> int:
    """The least s for which noise alone leaves |L| + Z + s below |L| with probability <= miss.

    Parameters:
        epsilon: the budget of the count.
        miss: that probability.

    >>> margin(0.1, 1e-3)
    62
    """
    noise_of_count(epsilon)
    require(
        isinstance(miss, (int, float)) and 0 < miss < 1,
        f"miss={miss}: must be a probability > 0 and < 1, such as 1e-6",
    )
    # a^(s + 1) / (1 + a) <= miss, for s
    least = -(math.log(miss) + math.log1p(math.exp(-epsilon))) / epsilon - 1
    return max(0, math.ceil(least))


def delta(epsilon: float, margin: int) -> float:
    """What one landmark more or less adds to epsilon: Pr[Z <= -margin], and this is exact.

    That is e^epsilon times the probability that ``margin(epsilon, miss)`` keeps below miss. The set
    {K = |L|} attains it; a public cap of K (the length of the series) can only make it less.

    Parameters:
        epsilon: the budget of the count.
        margin: what is added beside noise.

    >>> f"{delta(0.1, 62):.3e}", f"{delta(0.1, 63):.3e}"
    ('1.065e-03', '9.640e-04')
    """
    noise_of_count(epsilon)
    require(margin >= 0, f"margin={margin}: must be a whole number >= 0")
    return _at_most(epsilon, margin)


def bound(count: int, drawn: int, margin: int, length: int | None = None) -> int:
    """K for a count and a drawn Z.

    Parameters:
        count: how many landmarks there are.
        drawn: the noise, Z.
        margin: what is added beside it.
        length: of the series, if that is public: no bound need pass it.

    >>> bound(20, -70, 62), bound(20, 5, 62), bound(20, 5, 62, length=80)
    (20, 87, 80)
    """
    require(
        count >= 0 and (length is None or count <= length),
        "landmarks: there are more of them than steps; give the length of the whole series",
        DataError,
    )
    raised = count + max(0, drawn + margin)
    return raised if length is None else min(raised, length)


def private_count(
    count: int, *, epsilon: float, miss: float, keystream: Keystream, length: int | None = None
) -> int:
    """A bound K >= count, drawn from keyed words of one row.

    Parameters:
        count: how many landmarks there are.
        epsilon: the budget of the count.
        miss: the chance, at most, that noise and margin alone fall below zero.
        keystream: the words.
        length: of the series, if that is public.

    Guarantees:
        - (epsilon, delta(epsilon, margin(epsilon, miss))) for one landmark more or less;
        - K is never below the count, and never above ``length`` if that is given.
    """
    drawn = noise_of_count(epsilon).sample(keystream)
    require(len(drawn) == 1, f"{len(drawn)} rows of words: a series has one count")
    return bound(count, int(drawn[0]), margin(epsilon, miss), length)
