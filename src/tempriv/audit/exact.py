"""The exact privacy loss on small cases, by running the mechanism's own code on every outcome.

The samplers are replaced by a source that walks through all outcomes of their distributions with
their probabilities. Nothing describes the mechanism a second time: what is enumerated is what runs.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.data.series import EMPTY
from tempriv.errors import DataError, require
from tempriv.mechanisms.base import Mechanism, SeriesState
from tempriv.mechanisms.domains import Locations, OpaqueRows
from tempriv.mechanisms.landmarks.domain import without_landmarks
from tempriv.mechanisms.reorder.distributions import TieDistribution
from tempriv.privacy.guarantees import (
    Approximate,
    Calibrated,
    Concentrated,
    Guarantee,
    NoGuarantee,
    rho_for,
)
from tempriv.privacy.units import Example, Unit
from tempriv.sampling.distributions import (
    DiscreteGaussian,
    DiscreteLaplace,
    Distribution,
    UniformChoice,
    Varying,
)

OutcomeProbabilities = dict[Hashable, float]

TAIL = 1e-12
"""The mass of each distribution that may be left out of the enumeration."""

REFUSED = "refused"
ROUNDING = 1e-12
MASS_ROUNDING = 1e-15  # of a mass of 1, when probabilities are added up
ORDERS = (1.01, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32)


class Outcomes:
    """A source that takes one path through the outcomes of every draw, and knows its probability.

    ``paths`` runs a function once for each combination of outcomes.
    """

    ahead = False  # whatever is drawn is listed, needed or not

    def __init__(self, choices: Sequence[int], tail: float):
        self._choices = list(choices)
        self._tail = tail
        self._used = 0
        self.sizes: list[int] = []
        self.probability = 1.0
        self.begin(0)

    def begin(self, rows: int) -> None:
        """A new series of so many readings, with noise of its own.

        Parameters:
            rows: how many readings it has.
        """
        self.rows = rows
        self._drawn: dict[str, tuple[Distribution, npt.NDArray[np.int64]]] = {}
        self._rows: dict[str, RowByRow] = {}
        self._some: dict[str, set[int]] = {}

    def draw(
        self,
        distribution: Distribution | Varying,
        purpose: str,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> npt.NDArray[np.int64]:
        """As the keyed source: one draw for each row, here the outcome that the path says.

        Equal purposes have equal words, so a second draw for one purpose is the first again.

        Parameters:
            distribution: the one to draw from.
            purpose: what the draw is for.
            rows: which of the rows draw; all by default.
        """
        assert purpose not in self._rows, f"{purpose!r}: drawn again from the same words"
        if rows is not None:
            return self._for_some(distribution, purpose, rows)
        assert not isinstance(distribution, Varying)
        if purpose in self._drawn:
            before, values = self._drawn[purpose]
            assert before is distribution or before == distribution, (
                f"{purpose!r}: two distributions drawn from the same words"
            )
            return values
        drawn = [self.pick(_outcomes(distribution, self._tail)) for _ in range(self.rows)]
        self._drawn[purpose] = distribution, np.array(drawn, dtype=np.int64)
        return self._drawn[purpose][1]

    __call__ = draw

    def _for_some(
        self, distribution: Distribution | Varying, purpose: str, rows: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        asked = self._some.setdefault(purpose, set())
        assert asked.isdisjoint(rows.tolist()), f"{purpose!r}: drawn again from the same words"
        asked.update(rows.tolist())
        if isinstance(distribution, TieDistribution):
            # every order of these rows, by the place of each
            orders = list(itertools.permutations(range(len(rows))))
            return np.array(
                self.pick([(order, 1 / len(orders)) for order in orders]), dtype=np.int64
            )
        distributions: list[Distribution] = []
        if isinstance(distribution, Varying):
            distributions += [distribution.distributions[number] for number in distribution.which]
        else:
            distributions += [distribution] * len(rows)
        drawn = [self.pick(_outcomes(distribution, self._tail)) for distribution in distributions]
        return np.array(drawn, dtype=np.int64)

    def each(self, distribution: Distribution, purpose: str) -> RowByRow:
        """Outcomes are listed for the rows that ask, and no more of them than they ask about.

        Parameters:
            distribution: the one to draw from.
            purpose: what the draw is for.
        """
        return self._once(purpose, RowByRow(self, self._tail, distribution))

    def scalable(self, purpose: str) -> RowByRow:
        """Laplace noise for a ``purpose``, whose scale comes with the question."""
        return self._once(purpose, RowByRow(self, self._tail))

    def _once(self, purpose: str, rows: RowByRow) -> RowByRow:
        assert purpose not in self._drawn, f"{purpose!r}: drawn again from the same words"
        known = self._rows.setdefault(purpose, rows)
        assert known.distribution == rows.distribution, (
            f"{purpose!r}: two distributions drawn from the same words"
        )
        return known

    def pick(self, outcomes: Sequence[tuple[Any, float]]) -> Any:
        """The one of ``outcomes`` that the path says, its probability taken into the path's."""
        at = self._choices[self._used] if self._used < len(self._choices) else 0
        self.sizes.append(len(outcomes))
        self._used += 1
        value, probability = outcomes[at]
        self.probability *= probability
        return value


class RowByRow:
    """Draws that a kernel asks for one by one, each row once.

    As ``noise.ScalableLaplace`` where the scale comes with the question.
    """

    def __init__(self, source: Outcomes, tail: float, distribution: Distribution | None = None):
        self._source, self._tail, self.distribution = source, tail, distribution
        self._asked: set[int] = set()

    @property
    def words(self) -> RowByRow:
        return self

    def _ask(self, row: int) -> None:
        assert row not in self._asked, f"the noise of row {row} is used twice"
        self._asked.add(row)

    def at(self, row: int) -> int:
        """The draw of a ``row``."""
        assert self.distribution is not None
        self._ask(row)
        return int(self._source.pick(_outcomes(self.distribution, self._tail)))

    def laplace(self, row: int, scale: float) -> int:
        """The draw of a ``row`` from Laplace noise of a ``scale``."""
        self._ask(row)
        return int(self._source.pick(_outcomes(DiscreteLaplace(Fraction(scale)), self._tail)))

    def above(self, row: int, cut: int) -> bool:
        """Whether the draw of a ``row`` is above a ``cut``: two outcomes, whatever the cut."""
        assert self.distribution is not None
        self._ask(row)
        masses: tuple[float, float]
        if isinstance(self.distribution, UniformChoice):
            over = (self.distribution.choices - 1 - int(cut)) / self.distribution.choices
            masses = 1 - over, over
        else:
            # each side by itself: one minus the other would lose a small one
            masses = (
                mass_above(self.distribution, -int(cut) - 1),
                mass_above(self.distribution, int(cut)),
            )
        sides = [(side, mass) for side, mass in zip((False, True), masses, strict=True) if mass > 0]
        return bool(self._source.pick(sides))


def mass_above(distribution: Distribution, cut: int) -> float:
    """P(draw > cut) for a distribution that is symmetric about zero.

    Parameters:
        distribution: symmetric about zero.
        cut: an integer.

    >>> distribution = DiscreteLaplace(Fraction(1))
    >>> round(mass_above(distribution, 0) + mass_above(distribution, -1) - 1, 12)
    0.0
    """
    assert isinstance(distribution, (DiscreteLaplace, DiscreteGaussian))
    if cut < 0:
        return 1.0 - mass_above(distribution, -cut - 1)
    if isinstance(distribution, DiscreteLaplace):
        rate = float(1 / distribution.scale)
        return math.exp(-rate * (cut + 1)) / (1 + math.exp(-rate))
    terms, k = [distribution.pmf(cut + 1)], cut + 2
    while terms[-1] > 1e-17 * terms[0]:
        terms.append(distribution.pmf(k))
        k += 1
    return math.fsum(terms)


_KNOWN: dict[tuple[Distribution, float], list[tuple[Any, float]]] = {}


def _outcomes(distribution: Distribution, tail: float) -> list[tuple[Any, float]]:
    if (distribution, tail) not in _KNOWN:
        _KNOWN[distribution, tail] = distribution.outcomes(tail)
    return _KNOWN[distribution, tail]


def walk_outcomes(run: Any, tail: float) -> Iterator[tuple[Hashable, float]]:
    """Every output with its probability: an odometer over the choices that the run asks for.

    Parameters:
        run: gives an output from a source of outcomes.
        tail: the mass of each draw that may be left out.
    """
    choices: list[int] = []
    while True:
        source = Outcomes(choices, tail)
        output = run(source)
        yield output, source.probability
        choices = (choices + [0] * len(source.sizes))[: len(source.sizes)]
        while choices and choices[-1] + 1 == source.sizes[len(choices) - 1]:
            choices.pop()
        if not choices:
            return
        choices[-1] += 1


def distribution(
    mechanism: Mechanism, example: Example, tail: float = TAIL, unit: Unit | None = None
) -> OutcomeProbabilities:
    """The distribution of the output for one input: readings as they come in, within bounds or not.

    The example is one of the unit's, the mechanism's own unless another is given.

    Parameters:
        mechanism: what is audited.
        example: an input of the unit.
        tail: the mass of each draw that may be left out.
        unit: another than the mechanism's own.
    """

    if isinstance(mechanism.domain, OpaqueRows):
        moved: OutcomeProbabilities = defaultdict(float)
        mover: Any = mechanism  # frozen, so hashable
        for slots, probability in slot_distribution(mover, len(example), tail).items():
            moved[_moved(example, *slots)] += probability
        return dict(moved)

    def run(source: Outcomes) -> Hashable:
        """The output of one path through the outcomes of ``source``."""
        many = (unit or mechanism.unit).series_of(example)
        return tuple(_run_series(mechanism, series, source) for series in many)

    probabilities: OutcomeProbabilities = defaultdict(float)
    for output, probability in walk_outcomes(run, tail):
        probabilities[output] += probability
    return dict(probabilities)


def _run_series(mechanism: Mechanism, readings: Example, source: Outcomes) -> Hashable:
    if isinstance(mechanism.domain, OpaqueRows):
        return _moved(readings, *_slots(mechanism, len(readings), source))
    latency = mechanism.domain.latency
    source.begin(len(readings) + latency)
    taken, state = to_the_end(mechanism, readings, 1)
    outputs = mechanism.perturb(taken, source, state)[latency:]
    rows = tuple(map(tuple, np.asarray(outputs).tolist()))
    return (rows, tuple(state.status[latency:].tolist())) if mechanism.has_status else rows


def to_the_end(
    mechanism: Mechanism, example: Example, series: int
) -> tuple[npt.NDArray[np.int64], SeriesState]:
    """So many series that all hold the example, until nothing is left to come out.

    Parameters:
        mechanism: what is audited.
        example: an input of the unit.
        series: how many.
    """
    length, latency, columns = len(example), mechanism.domain.latency, mechanism.domain.columns
    assert columns is not None
    values = np.array(example, dtype=np.float64).reshape(length, columns)
    places = without_landmarks(mechanism.domain)
    if isinstance(places, Locations):
        values[:, :2] = places.degrees(values[:, :2])
    taken = np.zeros((length + latency, columns), dtype=np.int64)
    taken[:length] = mechanism.domain.to_grid(values)
    state = SeriesState.fresh(mechanism, series, length + latency, latency)
    state.missing.reshape(series, length + latency, -1)[:, length:] = True
    return np.tile(taken, (series, 1)), state


Slots = tuple[tuple[int, ...], tuple[int, ...]]
"""Which step the row in each slot came from (-1: none), and the statuses."""


def _slots(mechanism: Mechanism, length: int, source: Outcomes) -> Slots:
    """Where the rows of a series go, to its very end; what is in them does not matter."""
    domain = mechanism.domain
    assert isinstance(domain, OpaqueRows)
    total = length + domain.latency
    source.begin(total)
    state = SeriesState.fresh(mechanism, 1, total)
    state.missing[length:] = True
    ages = mechanism.perturb(np.zeros((total, 0), dtype=np.int64), source, state)[:, 0]
    newest = np.full(total, total - 1) if mechanism.takes_whole else np.arange(total)
    sources, status = newest - ages, state.status
    sources[ages < 0], status[ages < 0] = -1, EMPTY
    return tuple(sources[domain.latency :].tolist()), tuple(status[domain.latency :].tolist())


def _moved(readings: Example, sources: tuple[int, ...], status: tuple[int, ...]) -> Hashable:
    rows = tuple(None if source < 0 else readings[source] for source in sources)
    return rows, status


@functools.lru_cache(maxsize=64)
def slot_distribution(mechanism: Any, length: int, tail: float = TAIL) -> dict[Slots, float]:
    """The distribution of where the rows of a series go, for mechanisms that move rows.

    Parameters:
        mechanism: what is audited.
        length: of a series.
        tail: the mass of each draw that may be left out.
    """
    probabilities: dict[Slots, float] = defaultdict(float)
    slots: Any
    for slots, probability in walk_outcomes(lambda source: _slots(mechanism, length, source), tail):
        probabilities[slots] += probability
    return dict(probabilities)


@dataclass(frozen=True)
class Comparison:
    """Two distributions side by side; each may have left out a small mass in its tails."""

    both: list[tuple[float, float]]
    alone: float
    unseen: float

    @classmethod
    def of(cls, first: OutcomeProbabilities, second: OutcomeProbabilities) -> Comparison:
        """The probabilities of ``first`` and ``second`` side by side."""
        both = [(p, second[o]) for o, p in first.items() if o in second]
        alone = math.fsum(p for o, p in first.items() if o not in second)
        return cls(both, alone, max(0.0, 1.0 - math.fsum(second.values())))

    def hockey_stick(self, epsilon: float) -> float:
        """The delta that is certainly needed for (epsilon, delta) from the first to the second.

        Outputs that the second did not list can have at most the mass it left out, so the first
        may give them e^epsilon times that and no more.

        Parameters:
            epsilon: of the guarantee.
        """
        factor = math.exp(epsilon)
        seen = math.fsum(max(0.0, p - factor * q) for p, q in self.both)
        return seen + max(0.0, self.alone - factor * self.unseen - ROUNDING)

    @property
    def _odds(self) -> float:
        """How much likelier the first makes what the second did not list, at the least."""
        return self.alone / (self.unseen + MASS_ROUNDING)

    def _infinite(self, bound: float, claimed: float) -> float:
        """What only the first gives has no finite bound, if not even e^20 would explain it."""
        hopeless = self.alone > 1e-3 and self._odds > math.exp(20)
        return math.inf if hopeless and bound > claimed else bound

    def pure_loss(self, claimed: float) -> float:
        """The largest log ratio; infinite when the second cannot give what the first does.

        Parameters:
            claimed: the loss of the guarantee.
        """
        seen = max((math.log(p / q) for p, q in self.both), default=0.0)
        unlisted = math.log(self._odds) if self.alone > ROUNDING else 0.0
        return max(seen, self._infinite(unlisted, claimed))

    def concentrated_loss(self, claimed: float) -> float:
        """The largest Renyi divergence of order a, divided by a, over the orders tried.

        Parameters:
            claimed: the loss of the guarantee.
        """
        # rho keeps (epsilon, delta) by its tail bound, so the first gives its outputs alone at
        # most e^epsilon times what the second does, and delta: this much rho it takes at least
        shares = [2.0**-i for i in range(1, 40)]
        pairs = [((1 - share) * self._odds, share * self.alone) for share in shares]
        least = max((rho_for(math.log(x), d) for x, d in pairs if x > 1), default=0.0)
        worst = self._infinite(least, claimed)
        if not self.both:
            return worst
        logs = np.log(self.both)
        for order in ORDERS:
            terms = order * logs[:, 0] + (1 - order) * logs[:, 1]
            top = float(terms.max())
            divergence = (top + math.log(np.exp(terms - top).sum())) / (order - 1)
            worst = max(worst, divergence / order)
        return worst


def _glimpses(
    first: OutcomeProbabilities, second: OutcomeProbabilities, slots: Sequence[int]
) -> Comparison:
    """Two distributions as whoever looks at the values in a single slot sees them, the worst one.

    The guarantee is about values: of Backward, a status that says "repeated" tells more.
    """
    both = []
    for slot in slots:
        seen: list[OutcomeProbabilities] = []
        for distribution in (first, second):
            glimpse: OutcomeProbabilities = defaultdict(float)
            for output, probability in distribution.items():
                rows: Any = output
                glimpse[rows[0][slot]] += probability
            seen.append(glimpse)
        slot_view = Comparison.of(*seen)
        if slot_view.alone > ROUNDING:
            return slot_view
        both += slot_view.both
    return Comparison(both, 0.0, 0.0)


@dataclass(frozen=True)
class ExactVerdict:
    """What enumeration found: the worst loss over all neighbors, beside the guarantee."""

    claimed: float
    found: float
    measure: str
    delta: float
    pairs: int
    worst: tuple[Example, Example] | None
    holds: bool

    @property
    def sentence(self) -> str:
        return (
            f"claimed {self.measure} = {self.claimed:.6g}, exact worst case {self.found:.6g} over "
            f"{self.pairs} neighboring pairs: {'holds' if self.holds else 'DOES NOT HOLD'}"
        )


def audit(
    mechanism: Mechanism,
    alphabet: Sequence[Hashable],
    length: int,
    tail: float = TAIL,
    guarantee: Guarantee | NoGuarantee | None = None,
) -> ExactVerdict:
    """The worst exact loss over every input of that length and each of its neighbors.

    ``alphabet`` holds readings as they come in (tuples where there are several columns, meters
    north and east of the origin for places). A person has ``length`` readings in each series.

    Parameters:
        mechanism: what is audited.
        alphabet: readings as they come in.
        length: of a series.
        tail: the mass of each draw that may be left out.
        guarantee: another than the mechanism's own.

    >>> from tempriv.mechanisms.value.randomized_response import RandomizedResponse
    >>> verdict = audit(RandomizedResponse(epsilon=1.0, categories=("a", "b", "c")), (0, 1, 2), 2)
    >>> verdict.holds, round(verdict.found, 9)
    (True, 1.0)
    """
    claim = mechanism.guarantee if guarantee is None else guarantee
    assert isinstance(claim, Guarantee), "nothing is guaranteed, so there is nothing to audit"
    unit = claim.unit
    series = itertools.product(alphabet, repeat=length)
    many = itertools.product(series, repeat=unit.positions_per_person)
    examples = list(map(unit.example_of, many))
    if isinstance(mechanism.domain, OpaqueRows):
        # readings that all differ show the most: any others are made of them by renaming
        examples = [tuple(range(length))]

    @functools.cache
    def outcomes(example: Example) -> OutcomeProbabilities:
        """The outputs of an ``example`` with their probabilities."""
        try:
            return distribution(mechanism, example, tail, unit)
        except DataError:
            return {REFUSED: 1.0}  # which shows

    concentrated = isinstance(claim.loss, Concentrated)
    claimed = claim.loss.rho if isinstance(claim.loss, Concentrated) else claim.loss.epsilon
    has_delta = isinstance(claim.loss, (Approximate, Calibrated))
    allowed = claim.loss.delta if isinstance(claim.loss, (Approximate, Calibrated)) else 0.0
    worst, pairs, delta = 0.0, 0, 0.0
    where: tuple[Example, Example] | None = None
    for example in examples:
        for other in unit.neighbors(example, alphabet):
            first_outcomes, second_outcomes = outcomes(example), outcomes(other)
            if REFUSED in first_outcomes and REFUSED in second_outcomes:
                continue
            pairs += 1
            slots = unit.slots(example, other)
            compared = (
                Comparison.of(first_outcomes, second_outcomes)
                if slots is None
                else _glimpses(first_outcomes, second_outcomes, slots)
            )
            loss = compared.concentrated_loss if concentrated else compared.pure_loss
            shown = loss(claimed)
            if shown > worst:
                worst, where = shown, (example, other)
            if has_delta or not concentrated:
                delta = max(delta, compared.hockey_stick(claim.loss.epsilon_at(allowed)))
    require(pairs > 0, "no two of these inputs are neighbors, so there is nothing to audit")
    within = worst <= claimed * (1 + 1e-9) + ROUNDING
    # an approximate guarantee lets single outputs exceed epsilon, within its delta
    holds = delta <= allowed + ROUNDING and (within or (allowed > 0 and not concentrated))
    return ExactVerdict(
        claimed, worst, "rho" if concentrated else "epsilon", delta, pairs, where, holds
    )
