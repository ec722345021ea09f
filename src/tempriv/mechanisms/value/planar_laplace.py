"""Locations moved at random on a lattice."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, SeriesState
from tempriv.mechanisms.domains import (
    FINENESS,
    Integers,
    Locations,
    positive,
    power_of_two,
    power_of_two_below,
)
from tempriv.mechanisms.numbers import LEAST_SHARE
from tempriv.mechanisms.options import METERS, ORIGIN, RESOLUTION, Settings, shared
from tempriv.privacy.guarantees import Guarantee, Published, Pure
from tempriv.privacy.units import Unit, WithinDistance
from tempriv.sampling.distributions import PlanarLattice

COARSEST = 512.0
FINEST = 2.0**-14
"""The finest lattice, in meters: floating point misplaces degrees by less than 2e-8 meters."""

ROUNDING = Fraction(1415, 1000)
"""What rounding to the lattice adds to a distance, in steps: sqrt(2), and floating point's part."""


@dataclass(frozen=True, kw_only=True)
class PlanarLaplace(Mechanism):
    """Moves a location at random: P(displacement) falls as e^(-rate * distance), on a lattice.

    Parameters:
        epsilon: the loss between any two locations within the unit's distance.
        unit: which locations are hard to tell apart, with their distance in meters.
        origin: a public place in the area, its latitude and longitude in degrees.
        grid: of the lattice, in meters, a power of two; fine beside the noise by default.

    Guarantees:
        - pure epsilon between any two locations within ``unit.meters`` of each other in the public
          projection, and in proportion to the distance beyond (geo-indistinguishability);
        - what rounding to the lattice costs is counted in.

    >>> taxi = PlanarLaplace(epsilon=1.0, unit=WithinDistance(200), origin=(39.9, 116.4))
    >>> round(taxi.errors[0])
    400
    """

    epsilon: float
    unit: WithinDistance
    origin: tuple[float, float] = shared(ORIGIN)
    grid: float | None = shared(RESOLUTION, default=None)

    extra_options = (replace(METERS, required=True),)
    command = CommandLine(
        name="planar-laplace",
        hides="values",
        purpose="locations, each hidden among those nearby",
        example="--epsilon 1 --meters 200 --origin 39.9 116.4 --value latitude --value longitude",
        units=("event",),
        rank=4,
    )

    error_name: ClassVar[str] = "mean distance moved in meters"

    published: ClassVar[Published] = Published(
        claim="Planar Laplace noise gives geo-indistinguishability in proportion to distance",
        source="Andrés, Bordenabe, Chatzikokolakis and Palamidessi 2013",
        holds=True,
        remark="It holds in the plane; the published remapping to a grid needs a correction, "
        "here the distribution is drawn on the lattice itself.",
    )

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        require(
            isinstance(self.unit, WithinDistance),
            f"unit={self.unit!r}: locations are protected against others nearby, Near(meters)",
        )
        require(
            isinstance(self.origin, (list, tuple))
            and len(self.origin) == 2
            and all(isinstance(degree, (int, float)) for degree in self.origin)
            and abs(self.origin[0]) <= 85
            and abs(self.origin[1]) <= 180,
            f"origin={self.origin}: must be a latitude (-85 to 85) and a longitude (-180 to 180)",
        )
        object.__setattr__(self, "origin", tuple(float(degree) for degree in self.origin))
        if self.grid is None:
            reach = self.unit.meters * min(1.0, 1 / self.epsilon)
            grid = min(max(FINEST, power_of_two_below(reach / FINENESS)), COARSEST)
            object.__setattr__(self, "grid", grid)
        power_of_two(self.step)
        require(
            FINEST <= self.step <= COARSEST,
            f"grid={self.step:g}: must be from {FINEST:g} to {COARSEST:g} meters",
        )
        require(
            self.distribution.rate > LEAST_SHARE,
            f"epsilon={self.epsilon:g}: must be greater, or {self.unit!r} nearer",
        )

    @property
    def step(self) -> float:
        """The grid of the lattice, in meters."""
        assert self.grid is not None, "as __post_init__ leaves it"
        return self.grid

    @property
    def distribution(self) -> PlanarLattice:
        """How places are moved, in steps of the lattice.

        Places within reach of each other end up at most ``ROUNDING`` steps further apart.
        """
        reach = Fraction(self.unit.meters) / Fraction(self.step) + ROUNDING
        return PlanarLattice(Fraction(self.epsilon) / reach)

    @property
    def domain(self) -> Locations:
        return Locations(self.origin, self.step)

    @classmethod
    def unit_from(cls, given: Settings) -> Unit | None:
        """Places within the meters that are ``given``."""
        return WithinDistance(given["meters"]) if "meters" in given else None

    @classmethod
    def settings_from(cls, given: Settings, columns: int) -> dict[str, Any]:
        """The fields that ``given`` options fill, for two value ``columns``."""
        cls.require_two_columns(given, columns)
        return super().settings_from(given, columns)

    @classmethod
    def require_two_columns(cls, given: Settings, columns: int) -> None:
        """Refuse another number of value columns where places are given.

        Parameters:
            given: the options by their names, parsed.
            columns: how many value columns there are.
        """
        require(
            "origin" not in given or columns == 2,
            f"[[mechanism={cls.command.name}]] takes two value columns: [[value=LATITUDE]] "
            "[[value=LONGITUDE]]",
        )

    @property
    def averaging_factor(self) -> float | None:
        """A mean of moves has a Rayleigh distribution: its mean is sqrt(pi / 2) of a deviation."""
        return math.sqrt(3 * math.pi / 8)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.epsilon), self.unit)

    def reading_epsilon(self) -> float:
        return self.epsilon

    @property
    def errors(self) -> tuple[float, ...]:
        distance = self.step * self.distribution.mean_distance
        return (distance, distance)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The ``readings`` moved by ``noise``, whatever the ``state``."""
        return readings + noise(self.distribution, "place")
