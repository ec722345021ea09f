"""Hiding which moments are landmarks: dummies as published, and an answer that keeps a guarantee.

``DummyLandmarks`` is Section 3.4 of Katsomallos, Tzompanaki and Kotzinos, "Landmark Privacy"
(CODASPY 2022). It protects nothing: every option contains all landmarks, so a moment that is left
out is certainly none. ``RandomizedMarks`` answers for each moment by itself, and does protect.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.landmarks.dummy_sets import (
    Distance,
    Flags,
    Options,
    Score,
    heuristic,
    marks_of,
    optimal,
    partitioned,
)
from tempriv.privacy import serialization
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Published, Pure
from tempriv.privacy.units import Event
from tempriv.sampling.distributions import UniformChoice
from tempriv.sampling.exact_compare import ExactReal, Thresholds, cells_of, decimal_of
from tempriv.sampling.exponential import ExponentialChoice
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import Keystream, StepRange

GENERATORS = {"optimal": optimal, "heuristic": heuristic, "partitioned": partitioned}


def _require_positive(name: str, value: float) -> None:
    require(
        isinstance(value, (int, float)) and 0 < value < math.inf,
        f"{name}={value}: must be a number > 0",
    )


@dataclass(frozen=True, eq=False)
class Hidden:
    """Marks to go on with in place of the landmarks, and what is true of them.

    Parameters:
        marks: one for each moment.
        guarantee: what is guaranteed for the landmarks.
    """

    marks: Flags
    guarantee: Guarantee | NoGuarantee

    def __repr__(self) -> str:
        return f"Hidden({np.count_nonzero(self.marks)} marks of {len(self.marks)} moments)"


class LandmarkHiding(ABC):
    """Draws marks in place of landmarks."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee | NoGuarantee:
        """What is guaranteed for the landmarks."""

    def guarantee_under(self, key: Key) -> Guarantee | NoGuarantee:
        """What is guaranteed under a ``key``."""
        if key.seed is None:
            return self.guarantee
        return NoGuarantee(f"the marks come from seed {key.seed}, so anyone can draw them again")

    def select(self, marks: npt.ArrayLike, key: Key, series: str) -> Hidden:
        """Marks to go on with in place of the landmarks.

        Parameters:
            marks: one for each moment, 1 at landmarks.
            key: it serves one set of landmarks of a series.
            series: the id of the series.
        """
        flags = marks_of(marks)
        runs = [StepRange(key.series(serialization.digest(self), series), 0, len(flags))]
        return Hidden(self._drawn(flags, runs), self.guarantee_under(key))

    @abstractmethod
    def _drawn(self, marks: Flags, runs: list[StepRange]) -> Flags:
        """Marks in place of the landmarks, from the words of a key."""


@dataclass(frozen=True, kw_only=True)
class DummyLandmarks(LandmarkHiding):
    """Dummies added to the landmarks, as published; it does not hide which those are.

    Parameters:
        epsilon: the budget of the selection.
        options: how the sets to choose from are made: partitioned, optimal or heuristic.
        distance: euclidean or wasserstein for partitioned; wasserstein or temporal for others.
        score: what makes a set likely (Section 3.4.2): temporal, count, or distance.
        sensitivity: of the score; the paper takes it as 1 (Section 4.1.2).

    Guarantees:
        - none about landmarks: ``exposed`` says how much they show;
        - every landmark is marked, so budgets over the marks cover all of them.

    >>> hiding = DummyLandmarks(epsilon=0.01)
    >>> hidden = hiding.select([0, 1, 0, 0, 1, 0, 0, 0, 1, 0], Key.from_seed(7), "ann")
    >>> bool(hidden.marks[[1, 4, 8]].all())
    True
    >>> print(hiding.guarantee.sentence.split(":")[0])
    Protects nothing
    """

    epsilon: float
    options: str = "partitioned"
    distance: Distance = "euclidean"
    score: Score = "temporal"
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        _require_positive("epsilon", self.epsilon)
        _require_positive("sensitivity", self.sensitivity)
        require(
            self.options in GENERATORS,
            f"options={self.options!r}: must be optimal, heuristic or partitioned",
        )
        # a pair that cannot be meant is refused here rather than with the data
        self.generate([True, False])
        require(
            self.score in ("temporal", "count", "distance"),
            f"score={self.score!r}: must be temporal, count or distance",
        )

    @property
    def guarantee(self) -> NoGuarantee:
        return NoGuarantee(
            "every set to choose from contains all landmarks, so a moment outside the chosen set "
            "is certainly none; and the sets themselves, with the bins of partitioned, are made "
            "from the landmarks, so the exponential mechanism's guarantee does not apply"
        )

    @property
    def published(self) -> Published:
        """What the paper claims, and whether that holds."""
        return Published(
            claim="selecting dummies by the exponential mechanism costs its epsilon, which adds to "
            "that of the scheme by sequential composition, and protects the landmark timestamps",
            source="Katsomallos, Tzompanaki and Kotzinos 2022, Section 3.4",
            holds=False,
            remark="A moment that is not in the chosen set is no landmark, which is certain at any "
            "epsilon; a larger epsilon chooses fewer dummies and shows more.",
        )

    def generate(self, marks: npt.ArrayLike) -> Options:
        """The sets to choose from for these ``marks``; they are private."""
        return GENERATORS[self.options](marks, self.distance)

    def selection(self, options: Options) -> ExponentialChoice:
        """Which of the ``options`` is chosen, and how likely."""
        return ExponentialChoice(options.utilities(self.score), self.epsilon, self.sensitivity)

    def exposed(self, marks: npt.ArrayLike) -> float:
        """The chance that a regular moment, any of them, is shown to be no landmark.

        If that moment were a landmark, this could not happen: so no (epsilon, delta) guarantee for
        one landmark more or less holds with a smaller delta, whatever its epsilon.

        >>> every_fifth = np.arange(100) % 5 == 0
        >>> cheap, dear = (
        ...     DummyLandmarks(epsilon=epsilon, score="distance") for epsilon in (0.01, 0.5)
        ... )
        >>> round(cheap.exposed(every_fifth), 2), round(dear.exposed(every_fifth), 2)
        (0.51, 0.91)
        """
        options = self.generate(marks)
        if len(options) == 0:
            return 0.0
        dummies = np.arange(1, len(options) + 1)
        return 1 - float(self.selection(options).probabilities @ dummies) / len(options)

    def _drawn(self, marks: Flags, runs: list[StepRange]) -> Flags:
        """Landmarks and dummies together."""
        options = self.generate(marks)
        if len(options) == 0:  # every moment is a landmark already
            return options.marks.copy()
        first = Keystream(runs, "option").rows(np.array([0]))
        chosen = int(self.selection(options).sample(first)[0])
        if options.sets is not None:
            return np.array(options.sets[chosen])
        added: Flags = options.marks | sample_from(options, chosen, Keystream(runs, "dummies"))
        return added


def sample_from(options: Options, chosen: int, keystream: Keystream) -> Flags:
    """Dummies without replacement by a histogram that was chosen.

    The last part of Section 3.4.2: each draw takes one of the moments left, with probability
    proportional to the density of its bin. So the bins need not come out with the counts chosen.

    Parameters:
        options: the histograms.
        chosen: which of them.
        keystream: the words to draw from.
    """
    bins = options.bins
    assert bins is not None
    # densities count / capacity as whole numbers; two capacities at most differ
    whole = math.lcm(int(bins.capacity[0]), int(bins.capacity[-1]))
    density = options.counts(chosen) * (whole // bins.capacity)
    marks = np.zeros(len(options.marks), dtype=np.bool_)
    left, attempt = np.flatnonzero(~options.marks), 0
    wanted = chosen + 1
    while wanted:
        # draws with replacement, those of moments already taken passed over: the same distribution
        weights = np.cumsum(density[left // bins.width])
        some = keystream.rows(np.arange(wanted)).substream(attempt)
        drawn = UniformChoice(int(weights[-1])).sample(some)
        places = np.searchsorted(weights, drawn, side="right")
        _, first = np.unique(places, return_index=True)
        taken = places[np.sort(first)]
        marks[left[taken]] = True
        left = np.delete(left, taken)
        wanted, attempt = wanted - len(taken), attempt + 1
    return marks


@dataclass(frozen=True, kw_only=True)
class RandomizedMarks(LandmarkHiding):
    """For each moment by itself: a landmark is marked with probability ``recall``, others less.

    Others are marked at the least ``rate`` for which no answer is more than e^epsilon times as
    likely for a landmark as for another moment, or the reverse. A landmark that is not marked is
    an ordinary moment from then on: it is not protected as a landmark.

    Parameters:
        epsilon: the budget for whether one moment is a landmark.
        recall: the chance that a landmark is marked.
        union: mark all landmarks, and have no guarantee.

    Guarantees:
        - whether any one moment is a landmark: epsilon, against anyone who sees the marks;
        - k moments at once: k epsilon;
        - each landmark is missed with probability 1 - recall.

    >>> marking = RandomizedMarks(epsilon=1.0, recall=0.95)
    >>> round(marking.rate, 3)
    0.864
    """

    epsilon: float
    recall: float
    union: bool = False

    def __post_init__(self) -> None:
        _require_positive("epsilon", self.epsilon)
        require(
            isinstance(self.recall, (int, float)) and 0 < self.recall < 1,
            f"recall={self.recall}: must be > 0 and < 1; a landmark that is always marked makes "
            "every unmarked moment certainly none",
        )

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        if self.union:
            return NoGuarantee(
                "with union every landmark is marked, so a moment without a mark is certainly none"
            )
        return Guarantee(Pure(float(self.epsilon)), Event())

    @property
    def rate(self) -> float:
        """How often a moment that is no landmark is marked."""
        few = self.recall * math.exp(-self.epsilon)
        return max(few, 1 - math.exp(min(self.epsilon, 700.0)) * (1 - self.recall))

    def _reals(self) -> tuple[ExactReal, ExactReal]:
        """The chances of a mark, for a moment that is no landmark and for a landmark."""
        recall, epsilon = Fraction(self.recall), Fraction(self.epsilon)

        def rate() -> Decimal:
            few = decimal_of(recall) * (-decimal_of(epsilon)).exp()
            return max(few, 1 - decimal_of(epsilon).exp() * decimal_of(1 - recall))

        return ExactReal(rate), ExactReal(lambda: decimal_of(recall))

    def _drawn(self, marks: Flags, runs: list[StepRange]) -> Flags:
        return self.answer(marks, Keystream(runs, "marks"))

    def answer(self, marks: Flags, keystream: Keystream) -> Flags:
        """One answer for each of the ``marks``, from words of a ``keystream``."""
        cuts = [Thresholds([real]) for real in self._reals()]
        cells = cells_of(
            cuts, marks.astype(np.int64), keystream.read(), keystream.substream(0).read_one
        )
        marked: Flags = cells == 0
        return marked | marks if self.union else marked
