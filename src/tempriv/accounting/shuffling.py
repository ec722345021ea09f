"""What shuffling adds to answers that are private by themselves: amplification by shuffling.

Each of n people draws one answer that keeps epsilon0. Whoever sees only the unordered answers
learns less about a person than from that person's answer alone: it hides among the others.

The reduction (Feldman, McMillan and Talwar 2021). Let R(x) be the distribution of an answer to
value x, a and b two values of one person, and p = 1 / (1 + e^-epsilon0). As R keeps epsilon0,

    U = (p R(a) - (1 - p) R(b)) / (2p - 1)  and  V = (p R(b) - (1 - p) R(a)) / (2p - 1)

are distributions too; R(a) = p U + (1 - p) V, R(b) = (1 - p) U + p V, and for every x

    R(x) >= e^-epsilon0 (R(a) + R(b)) / 2 = e^-epsilon0 (U + V) / 2.

So with probability e^-epsilon0 anyone else is a clone: their answer comes from U or V by a fair
coin, whatever their value. Tell the attacker who is no clone and what those answered. What is left
to see are C ~ Bin(n - 1, e^-epsilon0) clones and one person: how many answers came from U and V,

    P = (A + D, C - A + 1 - D),  Q = (A + 1 - D, C - A + D),  A ~ Bin(C, 1/2),  D ~ Bernoulli(p).

What is computed. Count U as +1, V as -1, and let M = C + 1. A state with mean sign s has under P
and Q the probability of M fair signs times 1 + t s and 1 - t s, t = tanh(epsilon0 / 2). So the
hockey-stick divergence, the same in both directions, is

    delta(epsilon) = (1 + e^epsilon) t E[(S - r)+],  r = tanh(epsilon / 2) / t,

with S the mean of M fair signs. Let k be the least number of +1 at which the mean reaches r. One
more sign takes half of the smaller of the two terms at k and k - 1 off the expectation. So it falls
as M grows, and is that of the largest M plus positive terms: nothing cancels.

A later theorem of the same authors (2023, "Stronger privacy amplification by shuffling for Renyi
and approximate differential privacy") has clones of probability 2 / (e^epsilon0 + 1). It is not
used: by its errata the proof fails for answers in general, and holds for a restricted class.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tempriv.accounting.loss_distribution import MAX_EPSILON, require_count, require_positive
from tempriv.errors import require
from tempriv.privacy.guarantees import Approximate, Pure

SOURCE = (
    "Feldman, McMillan and Talwar 2021, Hiding among the clones: a simple and nearly optimal "
    "analysis of privacy amplification by shuffling (FOCS), the reduction behind Theorem 3.1"
)
MAX_PEOPLE = 10**9
MIN_DELTA = 1e-30
# each of three tails that are left out has at most this probability, and is added to delta
TAIL_EXPONENT = 97.0
TAIL = math.exp(-TAIL_EXPONENT)
# what rounding may take off delta, as a part of it; measured against 60 digits, up to a billion
# people: less than a thousandth of this
ROUNDING_LOSS, ROUNDING_LOSS_PER_SIGN = 1e-9, 1e-14
# epsilon is at most this part of itself too large
RELATIVE_STEP = 2.0**-20

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Shuffled:
    """What ``people`` honest answers of ``epsilon0`` each keep, once they are shuffled.

    Parameters:
        epsilon0: of each answer.
        people: how many answer honestly.
        delta: of the shuffled answers.

    >>> survey = Shuffled(epsilon0=1.0, people=10_000, delta=1e-6)
    >>> round(survey.epsilon, 4)
    0.053
    >>> print(survey.sentence)  # doctest: +NORMALIZE_WHITESPACE
    Protects the value behind any one of 10,000 honest answers to the same question, once they are
    shuffled: epsilon = 0.05301, delta = 1e-06. It holds only against someone who sees nothing but
    the answers without order and sender, or a result computed from them. Against whoever received
    them one by one, such as the server, an answer keeps its own epsilon = 1 and no more.
    """

    epsilon0: float
    people: int
    delta: float

    def __post_init__(self) -> None:
        _check(self.epsilon0, self.people)
        _check_delta(self.delta)

    @property
    def epsilon(self) -> float:
        return shuffled_epsilon(self.epsilon0, self.people, self.delta)

    @property
    def loss(self) -> Approximate:
        return Approximate(self.epsilon, self.delta)

    @property
    def sentence(self) -> str:
        return (
            f"Protects the value behind any one of {self.people:,} honest answers to the same "
            f"question, once they are shuffled: {self.loss}. It holds only against someone who "
            "sees nothing but the answers without order and sender, or a result computed from "
            "them. Against whoever received them one by one, such as the server, an answer keeps "
            f"its own {Pure(self.epsilon0)} and no more."
        )

    @property
    def source(self) -> str:
        return SOURCE

    @property
    def conditions(self) -> tuple[str, ...]:
        """What must be true for the sentence to be."""
        return (
            "Whoever it holds against has not seen the answers in an order, at their times, or "
            "with anything that tells senders apart, and does not work with someone who has.",
            f"Every answer keeps {Pure(self.epsilon0)} by itself, with no delta.",
            "All were asked the same question and draw their answer by the same recipe, each "
            "with randomness of their own.",
            f"At least {self.people:,} honest answers are in what is seen: drawn by the recipe, "
            "and not known to the attacker. Lost, rejected, invented and betrayed answers do not "
            "count.",
            "It is about one answer. Whoever answers several questions adds up what each costs.",
            "It hides which value a person has, not that they answered.",
        )


def closed_form(epsilon0: float, people: int, delta: float) -> float:
    """The epsilon of Theorem 3.1: a formula, and several times that of ``shuffled_epsilon``.

    It asks for epsilon0 <= ln(people / (16 ln(2 / delta))).

    Parameters:
        epsilon0: of each answer.
        people: how many answer honestly.
        delta: of the shuffled answers.

    >>> round(closed_form(1.0, 10_000, 1e-6), 4)
    0.214
    """
    _check(epsilon0, people)
    _check_delta(delta)
    least = _least_people(epsilon0, delta)
    needed = f"{math.ceil(least):,}" if least < MAX_PEOPLE else f"{least:.1e}"
    require(
        people >= least,
        f"people={people}: the formula needs at least {needed} answers of "
        f"epsilon0={epsilon0:g} at delta={delta:g}; use shuffled_epsilon",
    )
    odds = math.exp(epsilon0)
    spread = 8 * math.sqrt(odds * math.log(4 / delta) / people) + 8 * odds / people
    epsilon = math.log1p(math.tanh(epsilon0 / 2) * spread)
    return min(epsilon * (1 + 1e-14), epsilon0)


def _least_people(epsilon0: float, delta: float) -> float:
    return 16 * math.log(2 / delta) * math.exp(epsilon0)


def shuffled_delta(epsilon0: float, people: int, epsilon: float) -> float:
    """The delta at epsilon of so many shuffled answers, by the reduction; never below it.

    Parameters:
        epsilon0: of each answer.
        people: how many answer honestly.
        epsilon: of the shuffled answers.

    >>> f"{shuffled_delta(1.0, 10_000, epsilon=0.05):.3e}"
    '2.141e-06'
    """
    _check(epsilon0, people)
    require(0 <= epsilon < math.inf, f"epsilon={epsilon}: must be a number >= 0")
    if epsilon >= epsilon0:
        return 0.0
    return min(_delta(epsilon, epsilon0, *_clones(epsilon0, people)), 1.0)


def shuffled_epsilon(epsilon0: float, people: int, delta: float) -> float:
    """The least epsilon at delta of so many shuffled answers, by the reduction; never below it.

    Parameters:
        epsilon0: of each answer.
        people: how many answer honestly.
        delta: of the shuffled answers.

    >>> round(shuffled_epsilon(4.0, 100_000, 1e-6), 4)
    0.1698
    >>> shuffled_epsilon(1.0, 1, 1e-6) <= 1.0
    True
    """
    _check(epsilon0, people)
    _check_delta(delta)
    return _epsilon(float(epsilon0), people, float(delta))


@functools.lru_cache(maxsize=1024)
def _epsilon(epsilon0: float, people: int, delta: float) -> float:
    signs, at_most = _clones(epsilon0, people)
    # one answer alone has total variation tanh(epsilon0 / 2)
    if math.tanh(epsilon0 / 2) <= delta or _delta(0.0, epsilon0, signs, at_most) <= delta:
        return 0.0
    low, high = 0.0, epsilon0
    if people >= _least_people(epsilon0, delta):
        formula = closed_form(epsilon0, people, delta)
        if _delta(formula, epsilon0, signs, at_most) <= delta:
            high = formula
    while high - low > RELATIVE_STEP * high:
        middle = (low + high) / 2
        if _delta(middle, epsilon0, signs, at_most) <= delta:
            high = middle
        else:
            low = middle
    return high


def _check(epsilon0: float, people: int) -> None:
    require_positive("epsilon0", epsilon0)
    require(
        epsilon0 <= MAX_EPSILON,
        f"epsilon0={epsilon0:g}: must be at most {MAX_EPSILON}; more protects nothing",
    )
    require_count("people", people)
    require(people <= MAX_PEOPLE, f"people={people}: must be at most {MAX_PEOPLE:,}")


def _check_delta(delta: float) -> None:
    require(
        isinstance(delta, (int, float)) and MIN_DELTA <= delta < 1,
        f"delta={delta}: must be at least {MIN_DELTA:g} and < 1, such as 1e-6",
    )


def _clones(epsilon0: float, people: int) -> tuple[Numbers, Numbers]:
    """How many signs there can be, clones and the one person, and Pr[at most so many].

    By Bernstein's inequality either tail that is left out has probability TAIL at most; the rest is
    scaled to 1, which only adds.
    """
    others = people - 1
    mean = others * math.exp(-epsilon0)
    variance = mean * -math.expm1(-epsilon0)
    third = TAIL_EXPONENT / 3
    reach = third + math.sqrt(third**2 + 2 * TAIL_EXPONENT * variance)
    low, high = max(math.floor(mean - reach), 0), min(math.ceil(mean + reach), others)
    clones = np.arange(low, high + 1, dtype=np.float64)
    steps = np.log((others - clones[:-1]) / clones[1:]) - math.log(math.expm1(epsilon0))
    logarithms = np.concatenate([[0.0], np.cumsum(steps)])
    chances = np.exp(logarithms - logarithms.max())
    return clones + 1, np.cumsum(chances / chances.sum())


def _delta(epsilon: float, epsilon0: float, signs: Numbers, at_most: Numbers) -> float:
    """The hockey-stick divergence of P and Q, or a little more."""
    # 1 - r, exact where epsilon comes close to epsilon0
    gap = math.sinh((epsilon0 - epsilon) / 2) / (math.cosh(epsilon / 2) * math.sinh(epsilon0 / 2))
    # the mean sign is r or more with at most so many -1
    minus = np.floor(signs * gap / 2)
    above = signs * gap - 2 * minus
    at = _heads(signs, signs - minus)
    before = at * (signs - minus) / (minus + 1)
    drops = np.maximum(np.minimum(at * above, before * (2 - above)), 0.0) / (2 * signs)
    # the largest number of signs, up to where a mean has probability TAIL (Hoeffding)
    most = signs[-1]
    furthest = min(math.ceil((most + math.sqrt(2 * TAIL_EXPONENT * most)) / 2), int(most))
    plus = np.arange(most - minus[-1], furthest + 1)
    last = np.sum(_heads(np.full_like(plus, most), plus) * (most * gap - 2 * (most - plus))) / most
    expected = float(last + np.dot(drops[:-1], at_most[:-1]))
    margin = 1 + ROUNDING_LOSS + ROUNDING_LOSS_PER_SIGN * float(most)
    return (1 + math.exp(epsilon)) * math.tanh(epsilon0 / 2) * expected * margin + 3 * TAIL


def _heads(flips: Numbers, heads: Numbers) -> Numbers:
    """The probability of so many heads in so many fair flips (as in Loader 2000)."""
    tails = flips - heads
    lean = (heads - tails) / flips
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(tails > 0, (1 - lean) * np.log1p(-lean), 0.0)
    away = flips / 2 * ((1 + lean) * np.log1p(lean) + rest)
    probability: Numbers = np.exp(_stirling(flips) - _stirling(heads) - _stirling(tails) - away)
    return probability


def _stirling(x: Numbers) -> Numbers:
    """ln x! - (x ln x - x)."""
    large = np.maximum(x, float(len(_SMALL_FACTORIALS)))
    square = large * large
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / large
    correction: Numbers = np.log(2 * math.pi * large) / 2 + series
    small = x < len(_SMALL_FACTORIALS)
    correction[small] = _SMALL_FACTORIALS[x[small].astype(np.intp)]
    return correction


_SMALL_FACTORIALS = np.array(
    [0.0, *(math.lgamma(x + 1) - x * math.log(x) + x for x in range(1, 64))], dtype=np.float64
)
