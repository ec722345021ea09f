"""How much is guaranteed: losses, and the guarantee (loss, unit, model) that is true.

Conversions here are the plain ones; ``implies`` never says yes without a proof:
group privacy for larger units, pure to zero-concentrated by epsilon^2/2 (Bun and Steinke 2016,
Proposition 1.4), zero-concentrated to approximate by its tail bound (Proposition 1.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from tempriv.errors import WEAK, UsageError, require
from tempriv.privacy import serialization, units

STRONG_EPSILON, MODERATE_EPSILON = 1.0, 4.0
WEAK_EPSILON = 10.0
"""Above it a guarantee protects practically nothing, and a release asks whether that is meant."""
SHOWN_DELTA = 1e-6
"""At which a guarantee of rho is told as an epsilon."""
PROTECTS_NOTHING = "protects practically nothing"


def shown(value: float) -> str:
    """Four digits, never less than the value: a guarantee must not be rounded into a better one.

    Parameters:
        value: a loss.

    >>> shown(1.00049), shown(0.5)
    ('1.001', '0.5')
    """
    text = f"{value:.4g}"
    if math.isfinite(value) and float(text) < value:
        text = f"{value + 10.0 ** (math.floor(math.log10(value)) - 3):.4g}"
    return text


@dataclass(frozen=True)
class Pure:
    """epsilon: any output is at most e^epsilon times likelier under one neighbor.

    Parameters:
        epsilon: the loss, a number >= 0.

    >>> print(Pure(1.0))
    epsilon = 1
    """

    epsilon: float

    def __post_init__(self) -> None:
        require(
            isinstance(self.epsilon, (int, float)) and 0 <= self.epsilon < math.inf,
            f"epsilon={self.epsilon}: must be a number >= 0",
        )

    def __str__(self) -> str:
        return f"epsilon = {shown(self.epsilon)}"

    def grouped(self, links: int) -> Pure:
        """The loss along a chain of so many neighbors, the ``links``."""
        return Pure(links * self.epsilon)

    def epsilon_at(self, delta: float) -> float:
        """The same epsilon at any ``delta``."""
        return self.epsilon


@dataclass(frozen=True)
class Approximate:
    """(epsilon, delta): as pure, except for an event of probability about delta.

    Parameters:
        epsilon: the loss, a number >= 0.
        delta: from 0 to 1.

    >>> print(Approximate(1.0, 1e-6))
    epsilon = 1, delta = 1e-06
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        Pure(self.epsilon)
        require(
            isinstance(self.delta, (int, float)) and 0 <= self.delta <= 1,
            f"delta={self.delta}: must be from 0 to 1",
        )

    def __str__(self) -> str:
        return f"epsilon = {shown(self.epsilon)}, delta = {shown(self.delta)}"

    def grouped(self, links: int) -> Approximate:
        """The loss along a chain of so many neighbors, the ``links``."""
        # past e^600 delta is 1 in any case, and e^710 is no float
        spread = sum(math.exp(min(i * self.epsilon, 600.0)) for i in range(links))
        return Approximate(links * self.epsilon, min(self.delta * spread, 1.0))

    def epsilon_at(self, delta: float) -> float:
        """The epsilon at a ``delta``; infinite below its own."""
        return self.epsilon if delta >= self.delta else math.inf


@dataclass(frozen=True)
class Concentrated:
    """rho: zero-concentrated privacy (zCDP), the natural measure of Gaussian noise.

    Parameters:
        rho: the loss, a number >= 0.

    >>> print(Concentrated(0.02))
    rho = 0.02 (so epsilon = 1.072 at delta = 1e-06)
    """

    rho: float

    def __post_init__(self) -> None:
        require(
            isinstance(self.rho, (int, float)) and 0 <= self.rho < math.inf,
            f"rho={self.rho}: must be a number >= 0",
        )

    def __str__(self) -> str:
        epsilon = shown(self.epsilon_at(1e-6))
        return f"rho = {shown(self.rho)} (so epsilon = {epsilon} at delta = 1e-06)"

    def grouped(self, links: int) -> Concentrated:
        """The loss along a chain of so many neighbors, the ``links``."""
        return Concentrated(links * links * self.rho)

    def epsilon_at(self, delta: float) -> float:
        """Pr[privacy loss > this] <= ``delta`` (Bun and Steinke 2016, behind Proposition 1.3)."""
        return self.rho + 2 * math.sqrt(self.rho * -math.log(delta)) if delta > 0 else math.inf


@dataclass(frozen=True)
class Calibrated(Concentrated):
    """rho and (epsilon, delta) of the same Gaussian noise: both hold.

    Noise that is calibrated to (epsilon, delta) keeps more than its rho says by itself. Several
    releases add up by rho.

    Parameters:
        rho: the loss, a number >= 0.
        epsilon: the loss at ``delta``.
        delta: from 0 to 1.

    >>> print(Calibrated(0.028, 1.0, 1e-6))
    epsilon = 1, delta = 1e-06 (rho = 0.028)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        Approximate(self.epsilon, self.delta)

    def __str__(self) -> str:
        return f"{Approximate(self.epsilon, self.delta)} (rho = {shown(self.rho)})"

    def grouped(self, links: int) -> Calibrated:
        """The loss along a chain of so many neighbors, the ``links``: of both statements."""
        group = Approximate(self.epsilon, self.delta).grouped(links)
        return Calibrated(super().grouped(links).rho, group.epsilon, group.delta)

    def epsilon_at(self, delta: float) -> float:
        """The epsilon at ``delta``: what the noise was calibrated to, or by rho if that is less."""
        by_rho = super().epsilon_at(delta)
        return min(self.epsilon, by_rho) if delta >= self.delta else by_rho


Loss = Pure | Approximate | Concentrated


def epsilon_and_delta(loss: Loss) -> tuple[float, float]:
    """A loss as epsilon and delta; a rho is told at ``SHOWN_DELTA``.

    Parameters:
        loss: of any kind.

    >>> epsilon_and_delta(Pure(1.0)), epsilon_and_delta(Approximate(1.0, 1e-9))
    ((1.0, 0.0), (1.0, 1e-09))
    """
    if isinstance(loss, Pure):
        return loss.epsilon, 0.0
    delta = loss.delta if isinstance(loss, (Approximate, Calibrated)) else SHOWN_DELTA
    return loss.epsilon_at(delta), delta


Model = Literal["local", "central"]


def rho_for(epsilon: float, delta: float) -> float:
    """The largest rho whose tail bound stays at (``epsilon``, ``delta``).

    >>> round(Concentrated(rho_for(1.0, 1e-6)).epsilon_at(1e-6), 12)
    1.0
    """
    require(0 < delta < 1, f"delta={delta}: Gaussian noise needs delta > 0 and < 1, such as 1e-6")
    Pure(epsilon)
    tail = math.sqrt(-math.log(delta))
    return (math.sqrt(epsilon + tail * tail) - tail) ** 2


# at which a concentrated loss is tried out for the least bound
TRIED_DELTAS = tuple(10 ** -(0.5 + 11.5 * i / 299) for i in range(300))


def guess_cap(loss: Loss, candidates: int = 2) -> float:
    """The largest probability of naming the right one of some equally likely candidates.

    Of k candidates whose outputs differ by (epsilon, delta) two by two, no guess is right more
    often than (e^epsilon + (k - 1) delta) / (e^epsilon + k - 1): the chance of guessing candidate i
    where it is true is at most e^epsilon times that where another is true, plus delta, on average
    over the others; and where one is true, the chances of all guesses add up to 1.

    Parameters:
        loss: between any two of the candidates.
        candidates: how many there are, at least 2.

    >>> round(guess_cap(Pure(1.0)), 4), round(guess_cap(Concentrated(0.02)), 4)
    (0.7311, 0.55)
    >>> round(guess_cap(Pure(1.0), candidates=100), 4), guess_cap(Pure(0.0), candidates=4)
    (0.0267, 0.25)
    """
    require(candidates >= 2, f"candidates={candidates}: must be >= 2")

    def cap(epsilon: float, delta: float) -> float:
        rest = (candidates - 1) * math.exp(-min(epsilon, 700.0))
        return (1 + rest * delta) / (1 + rest)

    if isinstance(loss, Pure):
        return cap(loss.epsilon, 0.0)
    if isinstance(loss, Approximate):
        return cap(loss.epsilon, loss.delta)
    # as the divergence of order 1 is at most rho, by Pinsker, and by Bretagnolle and Huber; of two
    # candidates, and then of more as well
    bound = min(math.sqrt(loss.rho / 2), math.sqrt(-math.expm1(-loss.rho)))
    tried = (cap(loss.epsilon_at(delta), delta) for delta in TRIED_DELTAS)
    return min((1 + bound) / 2, *tried)


def at_most(loss: Loss, bound: Loss) -> bool:
    """Whether a ``loss`` is known to be covered by another, the ``bound``.

    >>> at_most(Pure(1.0), Concentrated(0.5)), at_most(Concentrated(0.5), Pure(1.0))
    (True, False)
    """
    if isinstance(bound, Pure):
        return isinstance(loss, Pure) and loss.epsilon <= bound.epsilon
    if isinstance(bound, Approximate):
        return loss.epsilon_at(bound.delta) <= bound.epsilon
    if isinstance(bound, Calibrated) and loss.epsilon_at(bound.delta) > bound.epsilon:
        return False
    if isinstance(loss, Concentrated):
        return loss.rho <= bound.rho
    return isinstance(loss, Pure) and loss.epsilon**2 / 2 <= bound.rho


def odds_of(epsilon: float) -> str:
    """By how much odds may grow, in a few digits.

    Parameters:
        epsilon: the loss.

    >>> odds_of(1.0), odds_of(600.0)
    ('2.72', '3.8e+260')
    """
    factor = math.exp(min(epsilon, 700.0))
    return f"{factor:.3g}" if factor < 1e6 else f"{factor:.1e}"


@dataclass(frozen=True)
class Guarantee:
    """A true statement: neighbors by ``unit`` lose at most ``loss`` to who sees the output.

    Parameters:
        loss: how much: ``Pure``, ``Approximate`` or ``Concentrated``.
        unit: what is protected.
        model: "local" if nobody else is trusted with the data, "central" if their owner is.

    >>> daily = Guarantee(loss=Pure(1.0), unit=units.Window(24))
    >>> daily.implies(Guarantee(loss=Pure(1.0), unit=units.Event()))
    True
    >>> daily.for_unit(units.Window(48)).loss
    Pure(epsilon=2.0)
    """

    loss: Loss
    unit: units.Unit
    model: Model = "local"

    def for_unit(self, unit: units.Unit) -> Guarantee | NoGuarantee:
        """The same guarantee, restated for another ``unit`` by chaining neighbors."""
        links = units.conversion_factor(self.unit, unit)
        if links is None:
            return NoGuarantee(f"{self.unit!r} says nothing about {unit!r}")
        return Guarantee(self.loss.grouped(links), unit, self.model)

    def implies(self, other: Guarantee | NoGuarantee) -> bool:
        """Whether whoever needs the ``other`` guarantee is served by this."""
        if isinstance(other, NoGuarantee):
            return True
        # whoever trusts nobody (local) is also served towards a trusted owner (central)
        if other.model == "local" and self.model == "central":
            return False
        restated = self.for_unit(other.unit)
        return isinstance(restated, Guarantee) and at_most(restated.loss, other.loss)

    @property
    def sentence(self) -> str:
        """What is protected, how much, and against whom."""
        against = (
            "someone who sees the values of a single row of the output and nothing else of it"
            if self.unit.single_rows
            else "anyone who sees the output, whatever else they know"
            if self.model == "local"
            else "anyone but the data owner"
        )
        but = " It says nothing about values." if self.unit.about_times else ""
        return f"Protects {self.unit.sentence}: {self.loss}.{but} It holds against {against}."

    @property
    def protects_little(self) -> bool:
        """Whether its epsilon is above ``WEAK_EPSILON``: practically nothing is protected.

        >>> Guarantee(Pure(600.0), units.Window(24)).protects_little
        True
        """
        return epsilon_and_delta(self.loss)[0] > WEAK_EPSILON

    def strength(self, length: int | None = None) -> str:
        """How much that is; strong is only what covers a whole series.

        Parameters:
            length: readings of a series at most, where that is known.

        >>> Guarantee(Pure(1.0), units.WholeSeries(24)).strength()
        'a strong guarantee'
        >>> Guarantee(Pure(1.0), units.Event()).strength()
        'a guarantee about that alone, and a weaker one for a whole series'
        """
        epsilon, _ = epsilon_and_delta(self.loss)
        if epsilon > MODERATE_EPSILON:
            return f"a {'very ' * (epsilon > WEAK_EPSILON)}weak guarantee"
        if not self.unit.covers_series(length):
            less = "none" if self.unit.of_series(1) is None else "a weaker one"
            return f"a guarantee about that alone, and {less} for a whole series"
        return f"a {'strong' if epsilon <= STRONG_EPSILON else 'moderate'} guarantee"

    @property
    def plain(self) -> str:
        """For people who are no experts: odds instead of epsilon."""
        return self.plain_for(None)

    def plain_for(self, length: int | None) -> str:
        """As ``plain``, for series of a known length.

        Parameters:
            length: readings of a series at most; None: any number.
        """
        epsilon, delta = epsilon_and_delta(self.loss)
        but = f", except with probability {shown(delta)}" if delta else ""
        odds, strength = odds_of(epsilon), self.strength(length)
        about = self.unit.sentence
        bet = about if about.startswith(("whether ", "when ")) else f"what stands behind {about}"
        seen = "this release"
        if self.unit.single_rows:
            seen = "the values of that row and nothing else"
            strength = "far less than a guarantee about all rows, which together tell more"
        elif self.unit.about_times:
            strength += ", of times and not of values"
        return (
            f"Suppose someone bets on {bet}. Seeing {seen} "
            f"multiplies the odds of their bet by at most {odds}{but}. That is {strength}"
            + (f": it {PROTECTS_NOTHING}." if self.protects_little else ".")
        )


@dataclass(frozen=True)
class NoGuarantee:
    """Nothing is guaranteed, and why; whatever is combined with it guarantees nothing either.

    Parameters:
        reason: why, as the end of a sentence.

    >>> print(NoGuarantee("the key was made from a seed").sentence)
    Protects nothing: the key was made from a seed.
    """

    reason: str

    @property
    def protects_little(self) -> bool:
        """False: that there is none has to be asked for by other words."""
        return False

    def for_unit(self, unit: units.Unit) -> NoGuarantee:
        """Nothing, for any ``unit``."""
        return self

    def implies(self, other: Guarantee | NoGuarantee) -> bool:
        """Whether the ``other`` guarantees nothing either."""
        return isinstance(other, NoGuarantee)

    @property
    def sentence(self) -> str:
        """That nothing is protected, and why."""
        return f"Protects nothing: {self.reason}."

    @property
    def plain(self) -> str:
        """For people who are no experts: how to treat the output."""
        return f"This output must be treated like the private data themselves: {self.reason}."


def require_strength(guarantee: Guarantee | NoGuarantee, accept_weak: bool) -> None:
    """Refuse what protects practically nothing, unless it was said that this is meant.

    Parameters:
        guarantee: of a release.
        accept_weak: whether that was said.

    Raises:
        UsageError: the epsilon is above ``WEAK_EPSILON``.

    >>> require_strength(Guarantee(Pure(600.0), units.Window(24)), accept_weak=False)
    Traceback (most recent call last):
    tempriv.errors.UsageError: epsilon=600: protects practically nothing; whoever sees ...
    """
    if guarantee.protects_little and not accept_weak:
        raise UsageError(weakness_of(guarantee), code=WEAK)


def weakness_of(guarantee: Guarantee | NoGuarantee) -> str:
    """What an epsilon that protects practically nothing means, and what to do instead.

    Parameters:
        guarantee: of a release.
    """
    if isinstance(guarantee, NoGuarantee):
        return guarantee.sentence
    epsilon, _ = epsilon_and_delta(guarantee.loss)
    return (
        f"epsilon={shown(epsilon)}: {PROTECTS_NOTHING}; whoever sees the release may multiply the "
        f"odds of a bet on {guarantee.unit.sentence} by {odds_of(epsilon)}. Take an epsilon of at "
        f"most {WEAK_EPSILON:g}, which means larger errors, or protect less with another unit or "
        "mechanism; if this is what you want, say so with [[accept_weak=True]]"
    )


@dataclass(frozen=True)
class Published:
    """What the literature claims for a mechanism, where, and whether it holds here.

    Parameters:
        claim: the guarantee as it was published.
        source: the paper, and the place in it.
        holds: whether it is true of this mechanism.
        remark: why not, or under which conditions.

    >>> print(Published("1-DP", "Doe 2020, Theorem 1", True, "As it stands.").sentence)
    1-DP (Doe 2020, Theorem 1): holds. As it stands.
    """

    claim: str
    source: str
    holds: bool
    remark: str

    @property
    def sentence(self) -> str:
        """The claim, where it stands, and whether it holds."""
        return f"{self.claim} ({self.source}): {'holds' if self.holds else 'does not hold'}. " + (
            self.remark
        )


ALL: tuple[type, ...] = (
    *(Pure, Approximate, Concentrated, Calibrated),
    *(Guarantee, NoGuarantee, Published),
)


def decode(data: Any, *others: type) -> Any:
    """A guarantee, loss, unit or published claim from its JSON form.

    Parameters:
        data: what ``serialization.encode`` wrote.
        others: further classes that may be built.

    Raises:
        StateError: if a class is unknown, or its fields cannot be read.
    """
    known = units.units_named(serialization.spec_names(data))
    return serialization.decode(data, (*others, *ALL, *known))
