"""Answers that are reported again and again, each from a permanent answer that was drawn once."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tempriv.data.series import Categories
from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import Categorical, Integers, positive
from tempriv.mechanisms.options import CATEGORIES, option, shared
from tempriv.mechanisms.value.randomized_response import categories_of
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Published, Pure
from tempriv.privacy.units import Answers, Event, Unit, WholeSeries, Window
from tempriv.sampling._kernels import at
from tempriv.sampling.distributions import CategoryFlip

HARDLY_HIDDEN = 700.0  # e^709 is no float


@dataclass(frozen=True, kw_only=True)
class MemoizedResponse(Mechanism):
    """One permanent answer for each truth, drawn once, and reported through a second response.

    Parameters:
        epsilon_forever: the loss over all reports of an answer that stays the same.
        epsilon_instant: the loss of a change, for each report that differs; without it the
            permanent answer itself is reported.
        categories: all there are; what is none of them counts as the last.
        unit: what is protected.

    Guarantees:
        - an answer that stays the same loses at most ``epsilon_forever``, in any number of reports;
        - so do d different answers, d times that, if when they change may be known;
        - a change itself is hidden by the second response alone: ``epsilon_instant`` for each
          reading that differs, whatever else was reported. Without it nothing hides a change;
        - answers are the categories: what is none of them counts as the last, here too.

    >>> weekly = MemoizedResponse(
    ...     epsilon_forever=2.0, epsilon_instant=1.0, categories=("no", "yes")
    ... )
    >>> print(weekly.guarantee.sentence)
    Protects an answer that stays the same, over any number of reports: epsilon = 2. \
It holds against anyone who sees the output, whatever else they know.
    >>> round(weekly.epsilon_once, 4)
    0.7353
    """

    epsilon_forever: float
    epsilon_instant: float | None = option(
        "--epsilon-instant",
        "What a single report may tell of a change; --epsilon is for all reports "
        "of an answer that stays.",
        default=None,
    )
    categories: Categories = shared(CATEGORIES)
    unit: Unit = field(default_factory=Answers)

    command = CommandLine(
        name="memoized-response",
        hides="answers",
        purpose="categories that are asked for again and again, from answers that stay",
        example="--epsilon 2 --epsilon-instant 1 --categories home,away --value presence",
        budget="epsilon_forever",
        rank=3,
    )
    texts = ReportTexts(
        done="for each answer another or the same was drawn at random, once, and that "
        "one is reported from then on",
        besides="Count one report of each series: further ones go back to the same permanent "
        "answer, so they add little to a share, or nothing.",
        counted="series",
    )

    error_name: ClassVar[str] = "probability of another category"

    published: ClassVar[Published] = Published(
        claim="Permanent answers bound what any number of reports of a value gives away",
        source="Erlingsson, Pihur and Korolova 2014 (RAPPOR), permanent randomized response",
        holds=True,
        remark="For a value that stays the same. Values that change add up, one permanent "
        "answer each, and the change itself is hidden only by the second response.",
    )

    def __post_init__(self) -> None:
        positive("epsilon_forever", self.epsilon_forever)
        if self.epsilon_instant is not None:
            positive("epsilon_instant", self.epsilon_instant)
        object.__setattr__(self, "categories", categories_of(self.categories))
        require(
            len(self.categories) == 1,
            f"categories={self.categories}: must be one list of names, for one column",
        )
        require(
            isinstance(self.unit, (Answers, Event, Window, WholeSeries)),
            f"unit={self.unit!r}: must be Answers, Event, Window or WholeSeries",
        )
        _ = self.guarantee

    @property
    def done(self) -> str:
        again = "" if self.epsilon_instant is None else ", each time with some chance of another"
        return self.texts.done + (again and f"{again} instead")

    @property
    def choices(self) -> int:
        """How many categories there are."""
        return len(self.categories[0])

    @property
    def memory_size(self) -> int:
        """The permanent answer to each truth: past keys are erased, so it must be remembered.

        Counted from 1, as 0 says that it was not drawn yet.
        """
        return self.choices

    @property
    def domain(self) -> Categorical:
        return Categorical(self.categories)

    @property
    def errors(self) -> tuple[float, ...]:
        return (1 - self.keep,)

    @property
    def permanent_distribution(self) -> CategoryFlip:
        """How the permanent answer to a truth is shifted, once."""
        return CategoryFlip(Fraction(self.epsilon_forever), self.choices)

    @property
    def instant_distribution(self) -> CategoryFlip | None:
        """How a report is shifted from the permanent answer, each time."""
        if self.epsilon_instant is None:
            return None
        return CategoryFlip(Fraction(self.epsilon_instant), self.choices)

    @property
    def keep(self) -> float:
        """The chance that one report is the truth, both stages together."""
        first, second = self.permanent_distribution.keep, self.instant_distribution
        if second is None:
            return first
        # by way of the truth, or of one of the others that is taken back
        return first * second.keep + (1 - first) * (1 - second.keep) / (self.choices - 1)

    @property
    def epsilon_once(self) -> float:
        """What a single report alone gives away; less than either stage would."""
        if self.epsilon_instant is None:
            return float(self.epsilon_forever)
        low, high = sorted((self.epsilon_forever, self.epsilon_instant))
        if low > HARDLY_HIDDEN:
            return float(low)
        # with r and s the odds that either stage keeps: (r s + k - 1) / (r + s + k - 2)
        others = (math.exp(low) + self.choices - 2) * math.exp(-high)
        return math.log1p(math.expm1(low) * -math.expm1(-high) / (1 + others))

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        return self.guarantee_for(self.unit)

    def guarantee_for(self, unit: Unit) -> Guarantee | NoGuarantee:
        """What is true for another unit.

        Parameters:
            unit: what is to be protected.

        >>> yearly = MemoizedResponse(epsilon_forever=1.0, categories=("home", "work", "away"))
        >>> yearly.guarantee_for(Answers(3)).loss, yearly.guarantee_for(Event()).sentence
        (Pure(epsilon=3.0), 'Protects nothing: a permanent answer reported as it is can show \
that the truth changed.')
        """
        require(
            isinstance(unit, (Answers, Event, Window, WholeSeries)),
            f"unit={unit!r}: must be Answers, Event, Window or WholeSeries",
        )
        if isinstance(unit, Answers):
            # each truth has an answer of its own, and there are no more truths than categories
            different = min(unit.distinct, self.choices)
            return Guarantee(_times(self.epsilon_forever, different, unit), unit)
        if self.epsilon_instant is None:
            return NoGuarantee(
                "a permanent answer reported as it is can show that the truth changed"
            )
        # given all permanent answers, only the second responses to changed readings differ
        return Guarantee(_times(self.epsilon_instant, unit.readings, unit), unit)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """Permanent answers to ``readings``, from ``noise`` or the ``state``, shifted again."""
        memory, permanent = state.memory, self.permanent_distribution
        instant = self.instant_distribution
        fresh = np.flatnonzero((memory[:, 0] == 0) & (state.counts > 0))
        if len(fresh):
            rows = (np.cumsum(state.counts) - state.counts)[fresh].tolist()
            for truth in range(self.choices):
                # one row is asked for each series, the others would only make audits long
                drawn = noise.each(permanent, f"permanent {truth}")
                memory[fresh, truth] = [1 + (truth + at(drawn, row)) % self.choices for row in rows]
        answers = memory[state.which, readings[:, 0]] - 1
        if instant is not None:
            answers = (answers + noise(instant, "instant")) % self.choices
        return np.asarray(answers)[:, None]


def _times(epsilon: float, count: int, unit: Unit) -> Pure:
    """So many times epsilon, never rounded down."""
    exact = Fraction(epsilon) * count
    require(
        exact < sys.float_info.max,
        f"unit={unit!r}: must cover less, or epsilon be smaller; the loss is beyond all numbers",
    )
    total = float(exact)
    return Pure(math.nextafter(total, math.inf) if Fraction(total) < exact else total)
