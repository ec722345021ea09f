"""Categories kept or exchanged at random."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from tempriv.data.series import Categories
from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, SeriesState
from tempriv.mechanisms.domains import (
    Categorical,
    Integers,
    positive,
)
from tempriv.mechanisms.options import CATEGORIES, PER_COLUMN, shared
from tempriv.mechanisms.value._shared import (
    _add_noise,
    _share,
    _total,
)
from tempriv.privacy.guarantees import Guarantee, Published, Pure
from tempriv.privacy.units import (
    Event,
    Unit,
)
from tempriv.sampling import distributions


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Mechanism):
    """Keeps a category with some probability, else gives one of the others.

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

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        object.__setattr__(self, "categories", categories_of(self.categories))
        _ = self.laws

    @property
    def share(self) -> Fraction:
        return _share(self.epsilon, self.unit, len(self.categories), self.per_column)

    @property
    def domain(self) -> Categorical:
        return Categorical(self.categories)

    @property
    def laws(self) -> list[distributions.CategoryFlip]:
        return [distributions.CategoryFlip(self.share, len(names)) for names in self.categories]

    @property
    def guarantee(self) -> Guarantee:
        epsilon = _total(self.epsilon, len(self.categories), self.per_column)
        return Guarantee(Pure(epsilon), self.unit)

    def reading_epsilon(self) -> float:
        return float(self.share * self.domain.columns)

    @property
    def published(self) -> Published:
        return Published(
            claim="Keeping the truth with probability e^epsilon / (e^epsilon + k - 1) is epsilon-"
            "differentially private, locally",
            source="Kairouz, Oh and Viswanath 2016, k-ary randomized response",
            holds=True,
            remark="For one answer; the budget is shared over the answers that the unit covers.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return tuple(1 - law.keep for law in self.laws)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        return _add_noise(self, readings, noise, state) % self.domain.sizes


def categories_of(given: Any) -> Categories:
    """A list of categories, or one for each column, as a tuple of tuples of text."""
    require(
        isinstance(given, (list, tuple)) and len(given) > 0,
        f"categories={given!r}: must be a list of names, or such a list for each column",
    )
    if not isinstance(given[0], (list, tuple)):
        given = (given,)
    columns = tuple(tuple(str(name) for name in names) for names in given)
    for names in columns:
        require(len(names) >= 2, f"categories={list(names)}: at least two are needed")
        require(len(set(names)) == len(names), f"categories={list(names)}: name each only once")
    return columns
