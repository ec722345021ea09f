"""Attacks as demonstrations: how often an observer is right, and the most a guarantee allows.

By a guarantee (epsilon, delta), whoever wavers between two inputs with even odds is right with
probability at most (1 + advantage) / 2, where the advantage is (e^epsilon - 1 + 2 delta) /
(e^epsilon + 1), a bound on the total variation distance of the outputs. No attack passes that;
these show what passes instead: a bound that was meant for less data than was released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.data.series import Block
from tempriv.errors import extra_packages, require
from tempriv.local.frequency.longitudinal import collect, other_probability, response_of
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import FINENESS
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.value.gaussian import Gaussian
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.memoized_response import MemoizedResponse
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.guarantees import Concentrated, Loss, Pure, guess_cap
from tempriv.privacy.units import WholeSeries
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key, SeriesKey
from tempriv.sampling.keystream import StepRange

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MIN_MASS = 1e-25  # of a mass of 1


@dataclass(frozen=True)
class Success:
    """How often an observer was right, with an interval that holds at the stated confidence."""

    name: str
    right: int
    trials: int
    confidence: float

    @property
    def rate(self) -> float:
        return self.right / self.trials

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's, so its confidence is at least the stated one."""
        with extra_packages("analysis", "attacks"):
            from scipy.stats import beta

        alpha, right, wrong = 1 - self.confidence, self.right, self.trials - self.right
        low = 0.0 if right == 0 else float(beta.ppf(alpha / 2, right, wrong + 1))
        high = 1.0 if wrong == 0 else float(beta.isf(alpha / 2, right + 1, wrong))
        return low, high

    @property
    def sentence(self) -> str:
        low, high = self.interval
        return (
            f"{self.name}: right in {100 * self.rate:.1f} % of {self.trials:,} trials "
            f"({100 * self.confidence:g} % interval {100 * low:.1f} to {100 * high:.1f} %)"
        )


def most_success(loss: Loss) -> float:
    """The most that an observer who wavers between two neighbors can be right.

    Parameters:
        loss: what is guaranteed.

    >>> round(most_success(Pure(1.0)), 4), round(most_success(Concentrated(0.02)), 4)
    (0.7311, 0.55)
    """
    return guess_cap(loss)


# one answer, reported again and again


@dataclass(frozen=True)
class Longitudinal:
    """How often the commonest of so many reports is the true answer, and the most it could be.

    ``cap`` follows from the loss of all reports together: with k answers equally likely before,
    no guess is right more often than e^epsilon / (e^epsilon + k - 1).
    """

    reports: tuple[int, ...]
    success: tuple[float, ...]
    cap: tuple[float, ...]
    measured: tuple[Success, ...] = ()


def longitudinal(
    mechanism: RandomizedResponse | MemoizedResponse,
    reports: Sequence[int],
    *,
    people: int = 0,
    seed: int = 0,
    confidence: float = 0.99,
) -> Longitudinal:
    """An observer of an answer that does not change guesses it from more and more reports.

    The observer takes the answer reported most often, which is the best that can be done where all
    are equally likely before; success is exact, and measured on ``people`` simulated ones too.

    Parameters:
        mechanism: that answers.
        reports: numbers of reports.
        people: how many are simulated.
        seed: of the simulation.
        confidence: that of its intervals.

    >>> fresh = RandomizedResponse(epsilon=1.0, categories=("no", "yes"))
    >>> [round(chance, 3) for chance in longitudinal(fresh, (1, 5, 25)).success]
    [0.731, 0.876, 0.993]
    >>> memo = MemoizedResponse(epsilon_forever=1.0, epsilon_instant=2.0, categories=("no", "yes"))
    >>> [round(chance, 3) for chance in longitudinal(memo, (1, 5, 25)).success]
    [0.676, 0.725, 0.731]
    """
    for count in reports:
        require(
            isinstance(count, (int, np.integer)) and count >= 1,
            f"reports={count}: must be a whole number >= 1",
        )
    response, choices = response_of(mechanism), response_of(mechanism).choices
    exact, caps = [], []
    for count in reports:
        if isinstance(mechanism, MemoizedResponse):
            instant, memo = mechanism.instant_distribution, mechanism.permanent_distribution
            chance = 1.0 if instant is None else commonest_is_true(instant.keep, choices, count)
            # a wrong guess of the permanent answer is right by chance, if that one was wrong
            exact.append(chance * memo.keep + (1 - chance) * other_probability(memo))
            total = float(mechanism.epsilon_forever)
        else:
            exact.append(commonest_is_true(response.keep, choices, count))
            total = count * float(mechanism.reading_share)
        caps.append(1 / (1 + (choices - 1) * math.exp(-total)))
    measured: list[Success] = []
    if people:
        truth, seen = _simulate(mechanism, people, max(reports), seed)
        for count in reports:
            right = _guess(seen[:, :count], choices, seed) == truth
            name = f"{count} report{'s'[: count != 1]}"
            measured.append(Success(name, int(right.sum()), people, confidence))
    return Longitudinal(tuple(reports), tuple(exact), tuple(caps), tuple(measured))


def commonest_is_true(keep: float, choices: int, reports: int) -> float:
    """P(the truth is reported most often), ties broken by chance.

    For two answers this is a binomial tail. For more, the reports of the others are as independent
    Poisson counts that add up to what is left.

    Parameters:
        keep: the probability of a true report.
        choices: how many answers there are.
        reports: how many.

    >>> round(commonest_is_true(0.75, 2, 3), 6)
    0.84375
    """
    with extra_packages("analysis", "attacks"):
        from scipy.stats import binom, poisson

    others, probability = choices - 1, 0.0
    weights = binom.pmf(np.arange(reports + 1), reports, keep)
    for true in range(1, reports + 1):
        if weights[true] < MIN_MASS:
            continue
        left = reports - true
        mean = left / others
        # fewer reports of one of the others than of the truth
        below = poisson.pmf(np.arange(min(true, left + 1)), mean)
        below = below[: 1 + int(np.flatnonzero(below > MIN_MASS).max(initial=0))]
        tie = float(poisson.pmf(true, mean))
        powers = [np.ones(1)]
        for _ in range(others):
            powers.append(np.convolve(powers[-1], below)[: left + 1])
        chance = 0.0
        for tied in range(others + 1):
            at, rest = left - tied * true, powers[others - tied]
            if 0 <= at < len(rest):
                chance += math.comb(others, tied) / (1 + tied) * tie**tied * float(rest[at])
        probability += float(weights[true]) * chance / float(poisson.pmf(left, left))
    return min(probability, 1.0)


def _chain(key: Key, purpose: str) -> SeriesKey:
    return key.series("attack", purpose)


def _choices(key: Key, purpose: str, choices: int, count: int) -> Integers:
    steps = [StepRange(_chain(key, purpose), 0, count)]
    return distributions.draw(distributions.UniformChoice(choices), steps, purpose)


def _simulate(mechanism: Any, people: int, steps: int, seed: int) -> tuple[Integers, Integers]:
    """Answers that do not change, and the reports of each person."""
    key = Key.from_seed(seed)
    choices = response_of(mechanism).choices
    truth = _choices(key, "truth", choices, people)
    return truth, collect(mechanism, np.repeat(truth[:, None], steps, axis=1), key)


def _guess(seen: Integers, choices: int, seed: int) -> Integers:
    """The commonest of each row's reports; a draw decides between equals."""
    counts = np.stack([(seen == answer).sum(axis=1) for answer in range(choices)], axis=1)
    run = [StepRange(_chain(Key.from_seed(seed), f"ties of {seen.shape[1]}"), 0, counts.size)]
    parts = distributions.draw(distributions.UniformChoice(1 << 40), run, "tie").reshape(
        counts.shape
    )
    return np.asarray(np.argmax(counts + parts / 2.0**40, axis=1))


# readings that go together


@dataclass(frozen=True)
class Autoregression:
    """Each reading is ``persistence`` times the one before, about a mean, plus Gaussian change."""

    mean: float
    persistence: float
    spread: float

    def __post_init__(self) -> None:
        require(abs(self.persistence) <= 1, f"persistence={self.persistence}: must be from -1 to 1")
        require(self.spread > 0, f"spread={self.spread}: must be > 0")

    def paths(self, first: Floats, length: int, key: SeriesKey) -> Floats:
        """A path from each first reading, a row each.

        Parameters:
            first: the first reading of each path.
            length: of each path.
            key: of the changes.
        """
        noise = distributions.DiscreteGaussian(Fraction(FINENESS**2))
        drawn = distributions.draw(noise, [StepRange(key, 0, len(first) * length)], "change")
        changes = self.spread / FINENESS * drawn.reshape(len(first), length)
        path = np.empty((len(first), length))
        path[:, 0] = first
        for t in range(1, length):
            before = path[:, t - 1] - self.mean
            path[:, t] = self.mean + self.persistence * before + changes[:, t]
        return path


@dataclass(frozen=True)
class Denoising:
    """Observers who tell two first readings apart, and the most that each guarantee would allow.

    ``cap_reading`` is for a single reading alone, ``cap_series`` for all of them together: only
    the second is a bound where readings go together. The errors are root mean squares, of released
    values and of what the Kalman filter makes of them.
    """

    observers: tuple[Success, ...]
    cap_reading: float
    cap_series: float
    error_released: float
    error_denoised: float

    @property
    def holds(self) -> bool:
        """Whether nothing measured contradicts the guarantee for the whole series."""
        return all(observer.interval[0] <= self.cap_series for observer in self.observers)


def denoise(
    mechanism: Laplace | Gaussian,
    model: Autoregression,
    candidates: tuple[float, float],
    *,
    trials: int = 20_000,
    seed: int = 0,
    confidence: float = 0.99,
) -> Denoising:
    """Was the first reading this or that? The readings after it follow an autoregressive model.

    The mechanism protects whole series (``WholeSeries(length)``) of one column. Three observers see
    ``length`` released values and know the mechanism and the model:

    - one looks at the first value alone;
    - one runs a Kalman filter from either candidate, and takes the likelier;
    - one knows even what drove the series, so that two whole inputs are left, and takes the
      likelier of the outputs: nobody can do better.

    Parameters:
        mechanism: for whole series of one column.
        model: that readings follow.
        candidates: two first readings.
        trials: how many.
        seed: of all randomness.
        confidence: that of the intervals.
    """
    require(
        isinstance(mechanism, (Laplace, Gaussian))
        and isinstance(mechanism.unit, WholeSeries)
        and mechanism.domain.columns == 1,
        "the mechanism must be Laplace or Gaussian for WholeSeries(length), of one column",
    )
    require(trials >= 1, f"trials={trials}: must be >= 1")
    assert isinstance(mechanism.unit, WholeSeries)
    length, key = mechanism.unit.length, Key.from_seed(seed)
    which = _choices(key, "which", 2, trials)
    driven = _chain(key, "change")
    inputs = [model.paths(np.full(trials, candidate), length, driven) for candidate in candidates]
    private = np.where(which[:, None] == 1, inputs[1], inputs[0])
    released = _release(mechanism, private, _chain(key, "noise"))
    noise, grid = mechanism.distributions[0], mechanism.grids[0]
    variance = grid**2 * _variance(noise)
    first_alone = _log_ratio(mechanism, released[:, :1], [series[:, :1] for series in inputs])
    everything = _log_ratio(mechanism, released, inputs)
    filtered = [_kalman(released, model, start, variance) for start in candidates]
    likelier = filtered[1][0] - filtered[0][0]
    coins = _choices(key, "coin", 2, trials)
    observers = []
    for name, ratio in (
        ("the first value alone", first_alone),
        ("Kalman filter", likelier),
        ("all else known", everything),
    ):
        guess = np.where(ratio == 0, coins, ratio > 0)
        observers.append(Success(name, int((guess == which).sum()), trials, confidence))
    best = np.where((likelier > 0)[:, None], filtered[1][1], filtered[0][1])
    return Denoising(
        observers=tuple(observers),
        cap_reading=most_success(_of_one_reading(mechanism)),
        cap_series=most_success(mechanism.guarantee.loss),
        error_released=float(np.sqrt(np.mean((released - private) ** 2))),
        error_denoised=float(np.sqrt(np.mean((best - private) ** 2))),
    )


def _of_one_reading(mechanism: Laplace | Gaussian) -> Loss:
    share = float(mechanism.reading_share)
    return Pure(share) if isinstance(mechanism, Laplace) else Concentrated(share)


def _release(mechanism: Mechanism, private: Floats, key: SeriesKey) -> Floats:
    """Every row as a series of its own through the mechanism."""
    trials, length = private.shape
    block = Block(
        values=private.reshape(-1, 1),
        missing=np.zeros((private.size, 1), dtype=np.bool_),
        ids=tuple(map(str, range(trials))),
        counts=np.full(trials, length, dtype=np.int64),
        starts=np.zeros(trials, dtype=np.int64),
    )
    # one chain serves all rows, each at steps of its own
    runs = [StepRange(key, i * length, length) for i in range(trials)]
    return perturb_block(mechanism, block, runs).values.reshape(trials, length)


def _variance(noise: distributions.DiscreteLaplace | distributions.DiscreteGaussian) -> float:
    if isinstance(noise, distributions.DiscreteGaussian):
        return float(noise.variance)
    return 0.5 / math.sinh(float(1 / noise.scale) / 2) ** 2


def _log_ratio(mechanism: Laplace | Gaussian, released: Floats, inputs: Sequence[Floats]) -> Floats:
    """Of the outputs' likelihood under the second input and the first, row by row."""
    noise, grid = mechanism.distributions[0], mechanism.grids[0]
    weights = []
    for series in inputs:
        readings = mechanism.domain.to_grid(series.reshape(-1, 1)).reshape(series.shape)
        off = np.rint(released / grid) - readings
        if isinstance(noise, distributions.DiscreteLaplace):
            weights.append(-np.abs(off).sum(axis=1) / float(noise.scale))
        else:
            weights.append(-(off**2).sum(axis=1) / (2 * float(noise.variance)))
    return np.asarray(weights[1] - weights[0])


def _kalman(
    released: Floats, model: Autoregression, start: float, variance: float
) -> tuple[Floats, Floats]:
    """The log likelihood of each row from a known first reading, and the filtered values."""
    mean = np.full(len(released), start)
    doubt, total = 0.0, np.zeros(len(released))
    filtered = np.empty_like(released)
    for t in range(released.shape[1]):
        if t:
            mean = model.mean + model.persistence * (mean - model.mean)
            doubt = model.persistence**2 * doubt + model.spread**2
        surprise = released[:, t] - mean
        spread = doubt + variance
        total -= (surprise**2 / spread + math.log(spread)) / 2
        mean = mean + doubt / spread * surprise
        doubt *= variance / spread
        filtered[:, t] = mean
    return total, filtered
