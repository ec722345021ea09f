"""The exact privacy loss of a summary of people, by running its own code on neighboring tables.

Two ways. ``audit_parts`` fixes what was released before, and compares what comes next with one
person more or less: the law of each part, and everything that is computed from released numbers,
which must then be the same. It takes any size. ``joint_distribution`` walks through all outcomes of
a tiny table, for the guarantee as a whole.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np

from tempriv.accounting.gaussian_privacy import delta_of
from tempriv.audit.exact import OutcomeProbabilities, Outcomes, walk_outcomes
from tempriv.sampling.distributions import DiscreteGaussian, Distribution
from tempriv.sampling.exponential import ExponentialChoice
from tempriv.sampling.keys import Key
from tempriv.summaries.from_table import Strata
from tempriv.summaries.measure import Draws, Measured, Measurement, PersonVectors, Wanted
from tempriv.summaries.run import KeyedDraws
from tempriv.summaries.vectors import Floats, Integers

Released = dict[str, tuple[int, ...]]
"""What was released, by purpose."""

EPSILONS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
ROUNDING = 1e-9


class Replay(Measurement):
    """A measurement that releases what was released before, and notes the law of each part."""

    def __init__(self, people: PersonVectors, wanted: Wanted, released: Released):
        super().__init__(people, wanted, self._nothing)
        self.released = released
        self.laws: dict[str, tuple[Distribution, tuple[int, ...]]] = {}
        self._distribution: Distribution | None = None

    def _nothing(self, distribution: Distribution, purpose: str, count: int, /) -> Integers:
        self._distribution = distribution
        return np.zeros(count, dtype=np.int64)

    def noisy(self, whole: Integers, share: float, purpose: str) -> tuple[Integers, float]:
        """As it is done, but with what was released before.

        Parameters:
            whole: the exact sum.
            share: of the budget.
            purpose: of the part.
        """
        exact, sigma = super().noisy(whole, share, purpose)
        assert self._distribution is not None
        self.laws[purpose] = self._distribution, tuple(exact.ravel().tolist())
        out = np.array(self.released[purpose], dtype=np.int64).reshape(whole.shape)
        self.observed[-1] = self.released[purpose]
        return out, sigma

    def chosen(self, utilities: Floats, share: float, purpose: str) -> int:
        """As it is done, but with what was released before.

        Parameters:
            utilities: of the options.
            share: of the budget.
            purpose: of the part.
        """
        at = super().chosen(utilities, share, purpose)
        assert self._distribution is not None
        # all options are drawn as the first; what comes out must be what was drawn
        if at == 0:
            self.laws[purpose] = self._distribution, ()
        self.observed[-1] = self.released[purpose]
        return self.released[purpose][0]


@dataclass(frozen=True)
class PartsVerdict:
    """What was found over pairs of neighboring tables.

    Parameters:
        claimed: the square of the budget in units of Gaussian privacy.
        found: the largest sum of what the parts cost.
        problems: what does not hold, in sentences; none if all does.
    """

    claimed: float
    found: float
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether no pair showed more than is claimed."""
        return not self.problems and self.found <= self.claimed * (1 + ROUNDING)


def audit_parts(
    tables: Sequence[tuple[PersonVectors, PersonVectors]],
    wanted: Wanted,
    seeds: Sequence[int] = (1, 2, 3),
    measurement: type[Measurement] = Measurement,
) -> PartsVerdict:
    """The cost of every part, given any of some histories, over pairs of neighboring tables.

    Parameters:
        tables: pairs, one with one record more than the other.
        wanted: what is measured.
        seeds: of the histories.
        measurement: the class that is audited.
    """
    replay: Any = type("AuditedReplay", (Replay, measurement), {})
    problems: list[str] = []
    found = 0.0
    for number, (one, other) in enumerate(tables):
        for seed in seeds:
            draws = KeyedDraws(Key.from_seed(seed), "audit", f"pair {number}")
            first = measurement(one, wanted, draws)
            first.run()
            purposes = [part.purpose for part in first.parts]
            released = dict(zip(purposes, first.observed, strict=True))
            runs = [replay(people, wanted, released) for people in (one, other)]
            try:
                results = [run.run() for run in runs]
            except (KeyError, ValueError):
                problems.append("which parts there are, or their size, depends on the table")
                continue
            problems += differing(*results)
            spent = 0.0
            for part in results[0].parts:
                cost, claimed = part_cost(*(run.laws.get(part.purpose) for run in runs)), part.mu**2
                spent += cost
                if cost > claimed * (1 + ROUNDING):
                    problems.append(f"{part.purpose}: costs {cost:.4g}, claimed {claimed:.4g}")
            found = max(found, spent)
    return PartsVerdict(wanted.mu**2, found, tuple(dict.fromkeys(problems)))


def differing(one: Measured, other: Measured) -> list[str]:
    """What is computed unlike for two tables though the same was released of them.

    Parameters:
        one: what was measured of a table.
        other: what was measured of its neighbor.
    """
    return [
        f"{each.name}: is not computed from released numbers alone"
        for each in fields(Measured)
        if not _same(getattr(one, each.name), getattr(other, each.name))
    ]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if hasattr(one, "steps"):
        return hasattr(other, "steps") and _same(one.steps, other.steps)
    return bool(one == other)


def part_cost(one: Any, other: Any) -> float:
    """The square of the mu between two laws of one part, ``one`` and ``other``.

    Infinite for laws that are not of one form.
    """
    if one is None or other is None:
        return math.inf
    (law, exact), (other_law, other_exact) = one, other
    if isinstance(law, DiscreteGaussian):
        if law != other_law or len(exact) != len(other_exact):
            return math.inf
        shift = sum((a - b) ** 2 for a, b in zip(exact, other_exact, strict=True))
        return float(Fraction(shift) / law.variance)
    assert isinstance(law, ExponentialChoice) and isinstance(other_law, ExponentialChoice)
    if len(law.utilities) != len(other_law.utilities) or law.epsilon != other_law.epsilon:
        return math.inf
    return choice_mu(law.probabilities, other_law.probabilities) ** 2


def choice_mu(one: Floats, other: Floats) -> float:
    """The least mu whose divergences are at least those between two choices, either way.

    Parameters:
        one: the probabilities of the options.
        other: the same for a neighbor.
    """
    low, high = 0.0, 1.0

    def covered(mu: float) -> bool:
        return all(
            float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) <= delta_of(mu, epsilon) + 1e-13
            for epsilon in EPSILONS
            for p, q in ((one, other), (other, one))
        )

    while not covered(high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if covered(middle) else (middle, high)
    return high


def joint_distribution(people: PersonVectors, wanted: Wanted, tail: float) -> OutcomeProbabilities:
    """All outcomes of a measurement of a tiny table, with their probabilities.

    Parameters:
        people: of the table.
        wanted: what is measured.
        tail: the mass of each draw that may be left out.
    """

    def run(source: Outcomes) -> Hashable:
        """What is released on one path through the outcomes of ``source``."""
        measured = Measurement(people, wanted, _enumerating(source, tail)).run()
        return tuple(measured.observed)

    probabilities: OutcomeProbabilities = defaultdict(float)
    for output, probability in walk_outcomes(run, tail):
        probabilities[output] += probability
    return dict(probabilities)


def _enumerating(source: Outcomes, tail: float) -> Draws:
    def draws(distribution: Distribution, purpose: str, count: int, /) -> Integers:
        outcomes = distribution.outcomes(tail)
        return np.array([source.pick(outcomes) for _ in range(count)], dtype=np.int64)

    return draws


def one_record_apart(more: Strata, less: Strata) -> list[str]:
    """What is wrong with the vectors of two tables, one of which has one record more.

    Parameters:
        more: of the table with the record.
        less: of the other.
    """
    public = ("labels", "names", "clock", "span", "step", "how")
    problems = [
        f"{name}: depends on the table"
        for name in public
        if getattr(more, name) != getattr(less, name)
    ]
    if problems:
        return problems
    added = 0
    for one, other in zip(more.people, less.people, strict=True):
        have, had = (Counter(_records(people)) for people in (one, other))
        added += (have - had).total()
        if had - have:
            problems.append("vectors: those of others change with a record")
    if added > 1:
        problems.append(f"vectors: one record is in {added} of them")
    return problems


def _records(people: PersonVectors) -> list[tuple[tuple[int, ...], ...]]:
    matrices = [matrix.tolist() for matrix in (people.vectors, *people.shares)]
    return [tuple(map(tuple, record)) for record in zip(*matrices, strict=True)]
