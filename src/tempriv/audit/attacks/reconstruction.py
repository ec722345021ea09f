"""An attack on windows read at a noisy pace: a few known readings give the others away.

The w released values of a window are linear in its n = w + 2 readings once the pace is known, and
the pace is one number. Whoever knows four of the readings has w + 4 equations for n + 1 unknowns:
one pace after the other is tried, and the one that leaves no contradiction is it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit.attacks.distinguish import outward, percent
from tempriv.audit.attacks.value import Success
from tempriv.audit.statistical import Progress
from tempriv.errors import DataError, require
from tempriv.mechanisms.retime.interpolation import Basis, Interpolation, basis, points
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MAX_WINDOW_POINTS = 16  # where the pace has to be found: each one that is tried takes w^3 steps
NOISE_TAIL = 1e-6  # of the noise, what is not tried
RATIO_STEP = 0.05  # of the fastest wave at the last point, from one pace to the next that is tried
MAX_DIPS = 24  # dips of the contradiction that are looked into
MIN_SINGULAR_SHARE = (
    1e-6  # part of the largest singular value; what is below is as good as undetermined
)
ROUNDING = 1e-13  # residuals below this part of the values are rounding
WINDOWS = 200
RESTORED_RANGE_SHARE = 0.01  # of the range of a window: nearer than that, a reading is restored


@dataclass(frozen=True)
class RestoredWindow:
    """What an attacker makes of a released window.

    ``values`` are its n readings, known ones included (a row each, if there are several columns);
    ``ratio`` is the pace, in public periods; ``residual`` is the root mean square of what the
    released values are off, as a part of their range.
    """

    values: Floats = field(repr=False)
    ratio: float
    residual: float
    known: tuple[int, ...]

    def errors(self, truth: Any) -> Floats:
        """How far each reading that was not known is off the ``truth``, as a part of its range."""
        true = np.asarray(truth, dtype=np.float64).reshape(self.values.shape)
        reach = np.ptp(true, axis=0)
        off = np.abs(self.values - true) / np.where(reach > 0, reach, 1.0)
        hidden = np.setdiff1d(np.arange(len(true)), self.known)
        return np.asarray(off[hidden])

    def restored_share(self, truth: Any, within: float = RESTORED_RANGE_SHARE) -> float:
        """The share of readings that were not known and came out, within a part of the range.

        Parameters:
            truth: all readings of the window.
            within: a part of the window's range.
        """
        return float(np.mean(self.errors(truth) <= within))

    def is_restored(self, truth: Any, within: float = RESTORED_RANGE_SHARE) -> bool:
        """Whether all readings came ``within`` a part of the range of the ``truth``."""
        return bool((self.errors(truth) <= within).all())


def reconstruct_window(
    mechanism: SamplingPeriod, released: Any, known: Mapping[int, Any]
) -> RestoredWindow:
    """Restore a window from its w released values and a few of its n = w + 2 readings.

    ``released`` has a row for each point, as the mechanism gives them: values, and after them the
    noisy times where they are published. ``known`` has readings by their place in the window, from
    0 to n - 1; those at 0 and n - 1 are not released themselves. Nothing else of the data is used.

    >>> mechanism = SamplingPeriod(epsilon=1.0, window=8, tau=1.0, clamp=None, pace="public")
    >>> secret = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0])
    >>> stream = mechanism.start(Key.from_seed(5))
    >>> released = np.ma.concatenate([stream.push(secret), stream.finish().ravel()])[1:9]
    >>> found = reconstruct_window(mechanism, released, {0: 3.0, 3: 1.0, 4: 5.0, 8: 5.0})
    >>> bool(np.abs(found.values - secret).max() < 1e-6)
    True
    """
    require(
        isinstance(mechanism, SamplingPeriod),
        f"{type(mechanism).__name__}: draws no curve through a window; give a SamplingPeriod",
    )
    shown = _released(mechanism, released)
    n, columns = len(shown) + 2, mechanism.columns
    places, readings = _known(known, n, columns)
    public = mechanism.times > 0
    require(
        columns * (len(places) - 2) >= (0 if public else 2),
        f"{len(places)} known readings: must be {2 if public else 4 if columns == 1 else 3} or "
        "more, so that there are more equations than unknowns",
    )
    puzzle = _Puzzle(
        basis(mechanism.interpolation, n),
        shown[:, :columns],
        places,
        readings,
        float(shown[0, columns]) / mechanism.period if mechanism.shift is not None else 0.0,
    )
    ratio = float(shown[0, -1]) / mechanism.period if public else _find_ratio(mechanism, puzzle)
    values = puzzle.solved(ratio)
    residual = math.sqrt(float(puzzle.residuals(np.array([ratio]))[0])) / puzzle.reach
    flat = np.ndim(released) < 2
    return RestoredWindow(values[:, 0] if flat else values, ratio, residual, tuple(places.tolist()))


def _released(mechanism: SamplingPeriod, released: Any) -> Floats:
    shown = np.ma.asarray(released, dtype=np.float64)
    shown = shown[:, None] if shown.ndim == 1 else shown
    width = mechanism.columns + mechanism.times
    require(
        shown.ndim == 2 and shown.shape[1] == width and 1 <= len(shown) <= mechanism.window,
        f"released: must have a row of {width} for each of up to {mechanism.window} points",
    )
    require(
        not np.ma.getmaskarray(shown).any() and bool(np.isfinite(shown.data).all()),
        "released: a point is missing; take a window whose readings are all there",
        DataError,
    )
    require(
        mechanism.times > 0 or len(shown) <= MAX_WINDOW_POINTS,
        f"{len(shown)} points: must be {MAX_WINDOW_POINTS} at most, where the pace has to be found",
    )
    return np.asarray(shown.data)


def _known(known: Mapping[int, Any], n: int, columns: int) -> tuple[Integers, Floats]:
    for place in known:
        require(
            isinstance(place, (int, np.integer)) and 0 <= place < n,
            f"known reading {place}: must be a place in the window, from 0 to {n - 1}",
        )
    places = np.array(sorted(known), dtype=np.int64)
    rows = [np.asarray(known[place], dtype=np.float64).ravel() for place in places.tolist()]
    require(
        all(row.shape == (columns,) and np.isfinite(row).all() for row in rows),
        f"known: must have {columns} finite number{'s'[: columns != 1]} for each place",
    )
    return places, np.array(rows).reshape(len(places), columns)


@dataclass(frozen=True)
class TriedWindow:
    """One of the windows that were attacked."""

    truth: Floats = field(repr=False)
    released: Floats = field(repr=False)
    restored: RestoredWindow


@dataclass(frozen=True)
class Reconstruction:
    """How many windows came out whole, from some readings of each that the attacker knew.

    ``share`` is that of single readings, of those that were not known.
    """

    success: Success
    share: float
    known: int
    readings: int
    windows: tuple[TriedWindow, ...] = field(repr=False, compare=False)

    @property
    def sentence(self) -> str:
        low, high = outward(self.success.interval)
        return (
            f"Whoever knows {self.known} of the {self.readings} readings of a window restores all "
            f"others in {percent(self.success.rate)} % of windows ({low} to {high})."
        )


def try_windows(
    mechanism: SamplingPeriod,
    values: Any,
    *,
    known: int = 4,
    windows: int = WINDOWS,
    within: float = RESTORED_RANGE_SHARE,
    confidence: float = 0.999,
    key: Key | None = None,
    progress: Progress = lambda windows: None,
) -> Reconstruction:
    """Release a series as often as it takes, and attack so many of its windows.

    Of each window some readings are known to the attacker, drawn at random. A window came out
    whole if every other reading is within a part of the window's range. It is computed from private
    values, so the answer is private too.

    Parameters:
        mechanism: what reads the series at a noisy pace.
        values: a row for each reading.
        known: how many readings of each window are known.
        windows: how many.
        within: a part of the range: nearer than that, a reading is restored.
        confidence: that of the interval.
        key: of the noise.
        progress: called with the number of windows done.

    >>> mechanism = SamplingPeriod(epsilon=1.0, window=4, tau=1.0, pace="public")
    >>> found = try_windows(mechanism, np.sqrt(np.arange(30.0)), windows=20, key=Key.from_seed(2))
    >>> found.success.trials, found.success.rate > 0.5
    (20, True)
    """
    w, columns = mechanism.window, mechanism.columns
    require(isinstance(windows, int) and windows >= 1, f"windows={windows}: must be 1 or more")
    require(
        isinstance(known, int) and 0 < known < w + 2,
        f"known={known}: must be a number of readings from 1 to {w + 1}",
    )
    require(0 < within < 1, f"within={within}: must be a part of the range, between 0 and 1")
    require(0.5 < confidence < 1, f"confidence={confidence}: must be above 0.5 and below 1")
    rows = np.asarray(values, dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    whole = (len(rows) - 2) // w
    require(
        whole >= 1,
        f"{len(rows)} readings: must be {w + 2} or more, a window and one on either side of it",
        DataError,
    )
    source, tried = key or Key.generate(), []
    for number in range(windows):
        if number % whole == 0:
            released = _release(mechanism, rows, source, number // whole)
        start = number % whole * w
        truth = rows[start : start + w + 2, :columns]
        shown = released[start + 1 : start + 1 + w]
        places = _some(source, w + 2, known, number)
        restored = reconstruct_window(mechanism, shown, {place: truth[place] for place in places})
        tried.append(TriedWindow(truth, shown[:, :columns], restored))
        progress(1)
    right = sum(window.restored.is_restored(window.truth, within) for window in tried)
    shares = [window.restored.restored_share(window.truth, within) for window in tried]
    success = Success("restored windows", right, windows, confidence)
    return Reconstruction(success, float(np.mean(shares)), known, w + 2, tuple(tried))


def _release(mechanism: SamplingPeriod, rows: Floats, key: Key, number: int) -> Floats:
    stream = mechanism.start(key, f"release {number}")
    parts = [stream.push(rows), stream.finish()]
    return np.concatenate([np.ma.filled(part.astype(np.float64), np.nan) for part in parts])


def _some(key: Key, readings: int, known: int, number: int) -> list[int]:
    """Places drawn without returning any."""
    run = [StepRange(key.series("known readings", f"window {number}"), 0, readings)]
    drawn = distributions.draw(distributions.UniformChoice(1 << 40), run, "place")
    return [int(place) for place in np.argsort(drawn)[:known]]


@dataclass(frozen=True)
class _Puzzle:
    """The equations of a window: released = A(ratio) readings, some of the readings known."""

    curve: Basis
    shown: Floats
    places: Integers
    readings: Floats
    first: float

    @property
    def unknown(self) -> Integers:
        return np.setdiff1d(np.arange(len(self.shown) + 2), self.places)

    @property
    def reach(self) -> float:
        """The range of all numbers that are seen."""
        return float(np.ptp(np.concatenate([self.shown, self.readings]))) or 1.0

    def matrices(self, ratios: Floats) -> Floats:
        """A, for each of the ``ratios``: the weight of each reading in each released point."""
        slots, n = len(self.shown), len(self.shown) + 2
        times = self.first + np.outer(ratios, np.arange(1, slots + 1))
        return points(self.curve, np.eye(n), times.ravel()).reshape(len(ratios), slots, n)

    def _parts(self, ratios: Floats) -> tuple[Floats, Floats]:
        """The weights of unknown readings, and what known ones leave of the released values."""
        weights = self.matrices(ratios)
        return weights[:, :, self.unknown], self.shown - weights[:, :, self.places] @ self.readings

    def residuals(self, ratios: Floats) -> Floats:
        """The mean square that no unknown readings explain, for each of ``ratios``."""
        weights, left = self._parts(ratios)
        across = np.linalg.qr(weights)[0]
        left = left - across @ (np.swapaxes(across, 1, 2) @ left)
        return np.asarray((left**2).mean(axis=(1, 2)))

    def solved(self, ratio: float) -> Floats:
        """All readings, if that is the ``ratio``."""
        weights, left = self._parts(np.array([ratio]))
        readings = np.empty((len(self.shown) + 2, self.shown.shape[1]))
        readings[self.places] = self.readings
        readings[self.unknown] = np.linalg.lstsq(weights[0], left[0], rcond=None)[0]
        return readings


def _find_ratio(mechanism: SamplingPeriod, puzzle: _Puzzle) -> float:
    """The ratio that contradicts what is seen least; of those that do not, the likeliest.

    Noisy periods are whole multiples of a public unit, so each dip of the contradiction is rounded
    to one: that makes up for what cannot be resolved where the window is read slowly.
    """
    unit = mechanism.time_step / mechanism.window / mechanism.period
    low, high = _range(mechanism, puzzle.curve)
    tried = _tried(mechanism.interpolation, len(puzzle.shown), puzzle.first, low, high)
    off = tried.contradiction(puzzle)
    padded = np.concatenate([[np.inf], off, [np.inf]])
    low_points = np.flatnonzero((padded[1:-1] <= padded[:-2]) & (padded[1:-1] <= padded[2:]))
    dips = tried.ratios[low_points[np.argsort(off[low_points])][:MAX_DIPS]]
    step = tried.ratios[1] - tried.ratios[0]
    narrowed = _narrowed(puzzle.residuals, dips - step, dips + step, unit / 4)
    near = np.rint(narrowed / unit)[:, None] + np.array([-1, 0, 1])
    # a clamp is where many noisy periods end up
    clamped = mechanism.period_bounds is not None
    edges = [math.ceil(low / unit), math.floor(high / unit)] if clamped else []
    candidates = np.unique(np.concatenate([near.ravel(), edges])) * unit
    residuals = puzzle.residuals(candidates)
    equal = residuals <= max(float(residuals.min()), (ROUNDING * puzzle.reach) ** 2)
    return float(min(candidates[equal], key=lambda ratio: abs(ratio - 1)))


def _range(mechanism: SamplingPeriod, curve: Basis) -> tuple[float, float]:
    """Ratios that can be: within the clamp, or one turn of all waves, or what noise makes."""
    if mechanism.period_bounds is not None:
        low, high = mechanism.period_bounds
        return low / mechanism.period, high / mechanism.period
    scale = mechanism.tau / mechanism.epsilon / mechanism.period
    reach = min(-math.log(NOISE_TAIL) * scale, math.pi / curve.angle)
    return 1 - reach, 1 + reach


@dataclass(frozen=True)
class _Tried:
    """For each ratio the readings that released values lead to: inverse @ released + free @ any.

    What is released leaves two readings' worth of freedom, whatever it is and whoever knows what,
    so this is computed once.
    """

    ratios: Floats
    inverse: Floats
    free: Floats
    doubt: Floats  # inverse @ its transpose: what an error of released values makes of readings

    def contradiction(self, puzzle: _Puzzle) -> Floats:
        """What released values and known readings are at odds by, for each ratio, squared.

        Differences count by how well released values determine a reading: where the window is
        read slowly, hardly anything follows for its last ones.

        Parameters:
            puzzle: a window with its known readings.
        """
        places = puzzle.places
        left = puzzle.readings - self.inverse[:, places] @ puzzle.shown
        free = self.free[:, places]
        doubt = np.eye(len(places)) + self.doubt[:, places[:, None], places]
        both = np.linalg.solve(doubt, np.concatenate([left, free], axis=2))
        left_there, free_there = both[:, :, :-2], both[:, :, -2:]
        turned = np.swapaxes(free, 1, 2)
        normal = turned @ free_there + 1e-12 * np.eye(2)
        chosen = np.linalg.solve(normal, turned @ left_there)
        return np.asarray((left * (left_there - free_there @ chosen)).sum(axis=(1, 2)))


@functools.lru_cache(maxsize=4)
def _tried(
    interpolation: Interpolation, slots: int, first: float, low: float, high: float
) -> _Tried:
    curve = basis(interpolation, slots + 2)
    fastest = curve.angle * (len(curve.coefficients) - 1) * slots
    ratios = np.linspace(low, high, max(3, math.ceil((high - low) * fastest / RATIO_STEP)))
    nothing = np.zeros((slots, 1))
    puzzle = _Puzzle(curve, nothing, np.zeros(0, dtype=np.int64), nothing[:0], first)
    inverse = np.empty((len(ratios), slots + 2, slots))
    free = np.empty((len(ratios), slots + 2, 2))
    for start in range(0, len(ratios), 1024):
        part = slice(start, start + 1024)
        left, sizes, right = np.linalg.svd(puzzle.matrices(ratios[part]))
        sizes = np.maximum(sizes, MIN_SINGULAR_SHARE * sizes[:, :1])
        back = np.swapaxes(right, 1, 2)
        inverse[part] = back[:, :, :slots] / sizes[:, None] @ np.swapaxes(left, 1, 2)
        free[part] = back[:, :, slots:]
    return _Tried(ratios, inverse, free, inverse @ np.swapaxes(inverse, 1, 2))


def _narrowed(height: Callable[[Floats], Floats], low: Floats, high: Floats, to: float) -> Floats:
    """The lowest point between two edges each, by golden sections, all at once."""
    golden = (math.sqrt(5) - 1) / 2
    while (high - low).max() > to:
        left, right = high - golden * (high - low), low + golden * (high - low)
        lower = height(left) <= height(right)
        low, high = np.where(lower, low, left), np.where(lower, right, high)
    return np.asarray((low + high) / 2)
