"""What a release by a landmark scheme shows of which moments are landmarks, or how many.

The schemes protect values at landmarks, and not which moments those are. Here observers who know
the scheme, its epsilon and even how many landmarks there are, but no reading, look at released rows
and name some of them:

- ``repeats``: rows that repeat the release before them;
- ``size of noise``: rows that are farthest from their surroundings;
- ``falling noise``, for AdaptiveLandmarks: rows after which releases differ less than before;
- ``budgets``, which are not published, to show why: rows that spent less than others; or, where
  later ones spend more, rows that were passed over before.

A guess says little by itself, so beside it stands what naming as many rows blindly would give.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit.attacks.distinguish import copies
from tempriv.data.series import Block, Flags
from tempriv.errors import DataError, require
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.sampling.distributions import UniformChoice, draw
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange

Floats = npt.NDArray[np.float64]
Scheme = UniformLandmarks | SkipLandmarks | AdaptiveLandmarks | SplitLandmarks | CountBoundLandmarks

NEIGHBOR_ROWS = 5  # rows on each side that a row is compared with
COMPARED_ROWS = 20  # fresh rows on each side, to see whether noise falls
PLANAR_STEP = 15 * math.pi / 16  # the mean distance of two planar Laplace draws of rate 1


@dataclass(frozen=True)
class LandmarkGuess:
    """Rows that an observer named as landmarks, over all runs; and how many of them are some."""

    attack: str
    named: int
    right: int
    landmarks: int
    readings: int

    @property
    def precision(self) -> float:
        """The part of the named rows that are landmarks; not a number if none was named."""
        return self.right / self.named if self.named else math.nan

    @property
    def recall(self) -> float:
        """The part of the landmarks that were named."""
        return self.right / self.landmarks if self.landmarks else math.nan

    @property
    def blind_precision(self) -> float:
        """The same for someone who names as many rows without looking."""
        return self.landmarks / self.readings

    @property
    def blind_recall(self) -> float:
        return self.named / self.readings

    @property
    def sentence(self) -> str:
        if not self.named:
            return f"{self.attack}: names nothing"
        return (
            f"{self.attack}: finds {100 * self.recall:.0f} % of landmarks (blindly "
            f"{100 * self.blind_recall:.0f} %), and {100 * self.precision:.0f} % of what it names "
            f"are some (blindly {100 * self.blind_precision:.0f} %)"
        )


@dataclass(frozen=True)
class Shown:
    """What the observers made of so many runs.

    ``count`` is how many landmarks the size of noise suggests, a mean over runs with its spread;
    None where that was not tried, since not all readings have the same noise.
    """

    guesses: tuple[LandmarkGuess, ...]
    count: tuple[float, float] | None

    def __getitem__(self, attack: str) -> LandmarkGuess:
        return next(guess for guess in self.guesses if guess.attack == attack)


def landmarks_shown(
    scheme: Scheme, rows: Any, *, runs: int = 20, seed: int = 0, period: int | None = None
) -> Shown:
    """Release the same rows many times, and let observers name the landmarks of each release.

    ``rows`` are those of one series as the scheme takes them, marks in the last column and nothing
    missing; the marks are used for releasing and for judging the guesses. ``period`` is for an
    observer who expects landmarks at the same step of each period, such as an hour of the week (168
    steps), and compares rows by how large their noise was on average at such a step.

    Parameters:
        scheme: what releases the rows.
        rows: readings with the mark of each in the last column.
        runs: how many releases.
        seed: of their noise.
        period: in steps, of an observer who expects landmarks at the same step of each.

    >>> steps = np.arange(60)
    >>> rows = np.column_stack([np.ones(60), steps % 6 == 0])
    >>> print(landmarks_shown(SkipLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5))), rows)
    ...     ["repeats"].sentence)
    repeats: finds 100 % of landmarks (blindly 17 %), and 100 % of what it names are some (blindly \
17 %)
    """
    require(
        isinstance(getattr(scheme, "domain", None), WithLandmarks),
        f"scheme={type(scheme).__name__}: must be one of the landmark schemes",
    )
    require(isinstance(runs, int) and runs >= 1, f"runs={runs}: must be a whole number >= 1")
    block = Block.of(rows, "", 0)
    length = len(block)
    require(
        length > 1 and not block.missing.any(),
        "rows: give two rows at least, and no missing readings",
        DataError,
    )
    require(
        period is None or (isinstance(period, int) and 1 <= period <= length),
        f"period={period}: must be a whole number of rows, and no more than there are",
    )
    many = copies(block, runs)
    key = Key.from_seed(seed)
    chains = [StepRange(key.series("reveal", name), 0, length) for name in many.ids]
    made = perturb_block(scheme, many, chains)
    released = _on_a_scale(scheme.over, made.values).reshape(runs, length, -1)
    assert made.spent is not None
    spent = made.spent.reshape(runs, length)
    again = (
        np.zeros((runs, length), dtype=np.bool_)
        if made.status is None
        else made.status.reshape(runs, length) == 1
    )
    marks = block.values[:, -1] != 0
    most = int(marks.sum())
    noise = np.stack([_off(scheme.over, run) for run in released])
    if period is not None:
        noise = np.stack([_by_step(run, period) for run in noise])
    drawn = [StepRange(key.series("reveal", "ties"), 0, runs * length)]
    ties = draw(UniformChoice(1 << 40), drawn, "tie").reshape(runs, length).astype(np.float64)
    named = {
        "repeats": again,
        "size of noise": _largest(noise, most, ties),
        "falling noise": np.zeros_like(again),
        "budgets": np.stack([_spent_less(run) for run in spent]),
    }
    if isinstance(scheme, AdaptiveLandmarks):
        falls = np.stack([_falls(scheme.over, *run) for run in zip(released, again, strict=True)])
        named["falling noise"] = _largest(falls, most, ties) & (falls > 0)
    guesses = tuple(
        LandmarkGuess(
            attack, int(rows.sum()), int(rows[:, marks].sum()), runs * most, runs * length
        )
        for attack, rows in named.items()
    )
    return Shown(guesses, _count(scheme, released, again))


def _on_a_scale(over: Any, values: Floats) -> Floats:
    """Numbers in units of their range, so that columns compare; places in meters."""
    if isinstance(over, PlanarLaplace):
        return np.asarray(over.domain.to_grid(values) * over.step, dtype=np.float64)
    if isinstance(over, Laplace):
        low, high = np.array(over.bounds, dtype=np.float64).T
        return np.asarray((values - low) / (high - low))
    return values


def _apart(over: Any, first: Floats, second: Floats) -> Floats:
    """How far rows are from each other: meters, or a mean over columns."""
    if isinstance(over, PlanarLaplace):
        return np.asarray(np.hypot(*(first - second).T))
    if isinstance(over, RandomizedResponse):
        return np.asarray((first != second).mean(axis=1))
    return np.asarray(np.abs(first - second).mean(axis=1))


def _off(over: Any, released: Floats) -> Floats:
    """How far each row is from what most rows around it say."""
    length = len(released)
    width = min(2 * NEIGHBOR_ROWS + 1, length)
    first = np.clip(np.arange(length) - NEIGHBOR_ROWS, 0, length - width)
    around = released[first[:, None] + np.arange(width)]
    if not isinstance(over, RandomizedResponse):
        return _apart(over, released, np.median(around, axis=1))
    sizes = range(max(map(len, over.categories)))
    counts = np.stack([(around == category).sum(axis=1) for category in sizes])
    return _apart(over, released, counts.argmax(axis=0).astype(np.float64))


def _by_step(noise: Floats, period: int) -> Floats:
    steps = np.arange(len(noise)) % period
    means = np.bincount(steps, noise, period) / np.bincount(steps, minlength=period)
    return np.asarray(means[steps])


def _falls(over: Any, released: Floats, again: Flags) -> Floats:
    """By how much fresh releases after a row that repeats differ less than those before it did.

    A landmark that AdaptiveLandmarks passes over leaves more of epsilon to all later rows. Rows
    with too little on one side tell nothing.
    """
    falls, fresh = np.zeros(len(released)), np.flatnonzero(~again)
    steps = _apart(over, released[fresh[1:]], released[fresh[:-1]])
    sums = np.concatenate([[0.0], np.cumsum(steps)])
    for t in np.flatnonzero(again):
        at = int(np.searchsorted(fresh, t))  # fresh rows before this one
        if at > COMPARED_ROWS and at + COMPARED_ROWS < len(fresh):
            after = sums[at + COMPARED_ROWS] - sums[at]
            before = sums[at - 1] - sums[at - 1 - COMPARED_ROWS]
            falls[t] = math.log(before / after) if before > 0 and after > 0 else 0.0
    return falls


def _largest(scores: Floats, count: int, ties: Floats) -> Flags:
    """The rows of each run with so many of the greatest scores; a draw decides between equals."""
    order = np.lexsort((ties, -scores), axis=1)[:, :count]
    chosen = np.zeros(scores.shape, dtype=np.bool_)
    np.put_along_axis(chosen, order, True, axis=1)
    return chosen


def _spent_less(spent: Floats) -> Flags:
    """Rows that spent nothing before one that spent more than the last; or less than most did."""
    low, fresh = np.zeros(len(spent), dtype=np.bool_), np.flatnonzero(spent)
    if len(fresh) == len(spent):
        return np.asarray(spent < spent.max() * (1 - 1e-9))
    if len(fresh) and spent[fresh].min() == spent[fresh].max():
        return np.asarray(spent == 0)
    for before, after in itertools.pairwise(fresh):
        if spent[after] > spent[before] * (1 + 1e-9):
            low[before + 1 : after] = True
    return low


def _count(scheme: Scheme, released: Floats, again: Flags) -> tuple[float, float] | None:
    """How many landmarks there seem to be, from how much consecutive releases differ.

    Readings that change by themselves make it too many.
    """
    if isinstance(scheme, (SplitLandmarks, AdaptiveLandmarks)):
        return None
    if isinstance(scheme, SkipLandmarks):
        counts = again.sum(axis=1).astype(np.float64)
    else:
        steps = [_apart(scheme.over, run[1:], run[:-1]).mean() for run in released]
        counts = np.array([1 / _part_for(scheme.over, step) - 1 for step in steps])
        counts = np.minimum(counts, released.shape[1])  # all there are
    return float(counts.mean()), float(counts.std())


def _step_at(over: Any, part: float) -> float:
    """How far two releases of the same reading are from each other on average."""
    if isinstance(over, PlanarLaplace):
        return float(PLANAR_STEP * over.step / (float(over.distribution.rate) * part))
    share = float(over.reading_share) * part
    if isinstance(over, Laplace):
        return 1.5 / share
    differ = []
    for names in over.categories:
        keep = 1 / (1 + (len(names) - 1) * math.exp(-share))
        differ.append(1 - keep**2 - (1 - keep) ** 2 / (len(names) - 1))
    return math.fsum(differ) / len(differ)


def _part_for(over: Any, step: float) -> float:
    """The part of epsilon at which releases differ so much: all of it at most."""
    low, high = 1e-9, 1.0
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _step_at(over, middle) > step else (low, middle)
    return high
