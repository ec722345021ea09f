"""Categories kept or exchanged at random."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from tempriv.data.series import Categories
from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, SeriesState
from tempriv.mechanisms.domains import Categorical, Integers, positive
from tempriv.mechanisms.numbers import independent_noise, share_of, total_of
from tempriv.mechanisms.options import CATEGORIES, PER_COLUMN, shared
from tempriv.privacy.guarantees import Guarantee, Published, Pure
from tempriv.privacy.units import Event, Unit
from tempriv.sampling.distributions import CategoryFlip


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Mechanism):
    """Keeps a category with some probability, else gives one of the others.

    Parameters:
        epsilon: the loss for the unit.
        categories: all there are, for all columns or for each; what is none of them counts as the
            last.
        unit: what is protected.
        per_column: whether every column has the whole of epsilon.

    Guarantees:
        - pure epsilon for the unit, whatever the categories read;
        - columns share epsilon, or with ``per_column`` each has it whole and the total is stated.

    >>> import math
    >>> answer = RandomizedResponse(epsilon=math.log(3), categories=("no", "yes"))
    >>> [round(error, 6) for error in answer.errors]
    [0.25]
    """

    epsilon: float
    categories: Categories = shared(CATEGORIES)
    unit: Unit = field(default_factory=Event)
    per_column: bool = shared(PER_COLUMN, default=False)

    command = CommandLine(
        name="randomized-response",
        hides="answers",
        purpose="categories, such as yes and no, or a room",
        example="--epsilon 1 --categories home,away --value presence",
        rank=2,
    )

    error_name: ClassVar[str] = "probability of another category"

    published: ClassVar[Published] = Published(
        claim="Keeping the truth with probability e^epsilon / (e^epsilon + k - 1) is epsilon-"
        "differentially private, locally",
        source="Kairouz, Oh and Viswanath 2016, k-ary randomized response",
        holds=True,
        remark="For one answer; the budget is shared over the answers that the unit covers.",
    )

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        object.__setattr__(self, "categories", categories_of(self.categories))
        _ = self.distributions

    @property
    def reading_share(self) -> Fraction:
        """The part of epsilon that falls to one reading in one column."""
        return share_of(self.epsilon, self.unit, len(self.categories), self.per_column)

    @property
    def domain(self) -> Categorical:
        return Categorical(self.categories)

    @property
    def distributions(self) -> list[CategoryFlip]:
        """How the answers of each column are shifted."""
        return [CategoryFlip(self.reading_share, len(names)) for names in self.categories]

    @property
    def guarantee(self) -> Guarantee:
        epsilon = total_of(self.epsilon, len(self.categories), self.per_column)
        return Guarantee(Pure(epsilon), self.unit)

    def reading_epsilon(self) -> float:
        return float(self.reading_share * self.domain.columns)

    @property
    def errors(self) -> tuple[float, ...]:
        return tuple(1 - flip.keep for flip in self.distributions)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """Each of the ``readings`` shifted by ``noise``, whatever the ``state``."""
        return (readings + independent_noise(self.distributions, noise)) % self.domain.sizes


def categories_of(given: object) -> Categories:
    """A list of categories, or one for each column, as a tuple of tuples of text.

    Parameters:
        given: what was given for them.
    """
    require(
        isinstance(given, (list, tuple)) and len(given) > 0,
        f"categories={given!r}: must be a list of names, or such a list for each column",
    )
    assert isinstance(given, (list, tuple))
    lists = given if isinstance(given[0], (list, tuple)) else (given,)
    columns = tuple(tuple(str(name) for name in names) for names in lists)
    for names in columns:
        require(len(names) >= 2, f"categories={list(names)}: at least two are needed")
        require(len(set(names)) == len(names), f"categories={list(names)}: name each only once")
    return columns
