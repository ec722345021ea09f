"""Curves through the readings of a window, read at another pace.

A curve is Re sum_k p_k z^k at z = e^(j angle (t + origin)), t counted in readings from the first;
its coefficients p are linear in the readings. ``printed`` has the frequencies as the paper prints
them, of which only the real part can be released; it meets every reading and is no interpolation
between them. ``hermitian`` takes the lower of each pair of equal frequencies, ``cosine`` repeats
the window mirrored, so that its end does not jump back to its beginning.
"""

from __future__ import annotations

import functools
import math
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tempriv.data.series import EMPTY
from tempriv.mechanisms.base import SeriesState
from tempriv.mechanisms.domains import Floats, Integers
from tempriv.mechanisms.retime._kernels import (
    CurvePoints,
    Curves,
    SeriesRows,
    WindowRows,
    bridge,
    bring_out,
    draw_cosines,
    draw_waves,
    lay_out,
    put_times,
)
from tempriv.mechanisms.retime.domains import NOTHING, as_bits

Complexes = npt.NDArray[np.complex128]
Interpolation = Literal["cosine", "hermitian", "printed"]
INTERPOLATIONS: tuple[Interpolation, ...] = ("cosine", "hermitian", "printed")

MAX_DIRECT_READINGS = 160
"""The most readings of a window whose points are added up term by term; beyond, by chirp-z.

Adding up is the faster way to about four times as many, but loses digits there that chirps keep.
"""


class Basis(NamedTuple):
    """The coefficients of a curve through n readings as a matrix, and where it is at what time.

    Parameters:
        coefficients: a row for each term, a column for each reading; real for cosines.
        angle: that of the slowest wave, for a step from one reading to the next.
        origin: what is added to times, in such steps.
    """

    coefficients: Complexes
    angle: float
    origin: float

    def waves(self, times: Floats) -> Complexes:
        """What each coefficient counts for, a row for each time.

        Parameters:
            times: in steps from one reading to the next.
        """
        terms = np.arange(len(self.coefficients))
        return np.asarray(np.exp(1j * self.angle * np.outer(times + self.origin, terms)))


@functools.lru_cache(maxsize=256)
def basis(interpolation: Interpolation, n: int, waves: int | None = None) -> Basis:
    """The curve through n readings.

    Parameters:
        interpolation: which curve.
        n: how many readings.
        waves: how many of its waves, the slowest; all of them if left out.

    >>> curve = basis("cosine", 5)
    >>> readings = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    >>> np.round(points(curve, readings, np.array([0.0, 2.0, 4.0])), 12)
    array([3., 4., 5.])
    """
    k, readings = np.arange(n)[:, None], np.arange(n)[None, :]
    if interpolation == "cosine":
        shares = np.where(k == 0, 1.0, 2.0) / n
        cosines = shares * np.cos(math.pi * (k * (2 * readings + 1) % (4 * n)) / (2 * n))
        return Basis(cosines[:waves].astype(np.complex128), math.pi / n, 0.5)
    coefficients = np.exp(-2j * math.pi * (k * readings % n) / n) / n
    if interpolation == "hermitian":
        terms = n // 2 + 1
        paired = (np.arange(terms) > 0) & (2 * np.arange(terms) < n)
        coefficients = coefficients[:terms] * np.where(paired, 2.0, 1.0)[:, None]
    return Basis(coefficients[:waves], 2 * math.pi / n, 0.0)


def points(curve: Basis, readings: Floats, times: Floats) -> Floats:
    """The curve at some times, by its definition.

    Parameters:
        curve: which curve it is.
        readings: what it is drawn through.
        times: in steps from one reading to the next.
    """
    return np.asarray((curve.waves(times) @ (curve.coefficients @ readings)).real)


def chirp_points(curve: Basis, readings: Floats, first: float, ratio: float) -> Floats:
    """The curve at first + ratio, first + 2 ratio, ... by three Fourier transforms (chirp-z).

    Since i k = (i^2 + k^2 - (i - k)^2) / 2, the sum over k is a convolution (Bluestein 1970).

    Parameters:
        curve: which curve it is.
        readings: what it is drawn through.
        first: where the times begin, less a step.
        ratio: how far it is from one to the next.
    """
    n = len(readings)
    p = _coefficients(curve, readings)
    into, kernel, outof = _chirps(curve.angle, first + curve.origin, ratio, len(p), n)
    sums = np.fft.fft(p * into, len(kernel))
    np.multiply(sums, kernel, out=sums)
    np.fft.ifft(sums, out=sums)
    return np.asarray((outof * sums[1 : n - 1]).real)


@functools.lru_cache(maxsize=4)
def _chirps(
    angle: float, start: float, ratio: float, terms: int, n: int
) -> tuple[Complexes, Complexes, Complexes]:
    """What coefficients, their transform and its inverse are multiplied by.

    With little budget most paces lie on one of the two ends of their clamp, and so these recur.
    """
    turn, numbers = angle * ratio, np.arange(terms)
    into = np.exp(1j * (angle * start * numbers + 0.5 * turn * numbers**2))
    chirp = np.exp(0.5j * turn * np.arange(max(terms, n - 1)) ** 2)
    kernel = np.zeros(1 << (terms + n - 2).bit_length(), dtype=np.complex128)
    kernel[: n - 1] = chirp[: n - 1].conj()
    kernel[len(kernel) - terms + 1 :] = chirp[terms - 1 : 0 : -1].conj()
    return into, np.fft.fft(kernel), chirp[1 : n - 1]


def _coefficients(curve: Basis, readings: Floats) -> Complexes:
    """What the matrix says, by a Fourier transform."""
    n, terms = len(readings), len(curve.coefficients)
    if curve.origin:
        mirrored = np.fft.rfft(np.concatenate([readings, readings[::-1]]))[:n]
        cosines = (mirrored * _half_a_reading(n)).real / n
        cosines[0] /= 2
        return np.asarray(cosines[:terms].astype(np.complex128))
    shares = np.abs(curve.coefficients[:, 0])
    return np.asarray(np.fft.fft(readings)[:terms] * shares)


@functools.lru_cache(maxsize=4)
def _half_a_reading(n: int) -> Complexes:
    """By what half a reading turns each wave of a mirrored window."""
    return np.asarray(np.exp(-0.5j * math.pi * np.arange(n) / n))


class Windows:
    """The windows of a block of series, and where their points go.

    ``sums`` holds the sum of each time over the points of a window, ``ends`` the row of the block
    with which the first of them comes out.

    Parameters:
        values: of each row, NaN where missing.
        times: of each row, on their grid.
        state: where the series of the block stand.
        window: how many points a window has.
    """

    def __init__(self, values: Floats, times: Integers, state: SeriesState, window: int):
        n, (rows, width), clocks = window + 2, values.shape, times.shape[1]
        self.window, self.state = window, state
        self.offset = n * (width + clocks)
        self._values = np.ascontiguousarray(values)
        kept = state.memory.view(np.float64)
        self._series = SeriesRows(state.counts, state.starts, state.memory, kept)
        chosen = np.empty((rows, clocks), dtype=np.int64)
        self._points = CurvePoints(np.empty((rows, width)), chosen, state.status)
        state.status[:] = EMPTY
        bring_out(self._series, window, self.offset, self._points)
        series = len(state.counts)
        most = rows // window + 2 * series
        heads = np.empty((min(rows + n * series, (n + window) * series), width))
        places, sums = np.zeros((4, most), dtype=np.int64), np.zeros((most, clocks), dtype=np.int64)
        found = WindowRows._make((*places, sums, heads))
        count, self._gaps = lay_out(self._values, times, self._series, state.further, window, found)
        self._found = WindowRows._make((*(array[:count] for array in found[:-1]), heads))
        self.begins, self.sizes, self.ends, self.owners, self.sums, _ = self._found
        self._stops = np.cumsum(state.counts)

    def __len__(self) -> int:
        return len(self.begins)

    def read(
        self,
        interpolation: Interpolation,
        firsts: Floats,
        ratios: Floats,
        chosen: Integers,
        waves: int | None = None,
    ) -> Integers:
        """Points at first + i ratio of each window, as bits, and the times chosen for it.

        Parameters:
            interpolation: which curve.
            firsts: where the points of each window begin, less a step.
            ratios: how far it is from one to the next.
            chosen: the times of each window.
            waves: how many waves of the curve, the slowest; all of them if left out.
        """
        values, times, status = self._points
        whole = self.window + 2
        for size in (whole, *sorted(set(self.sizes[self.sizes < whole].tolist()))):
            some = np.flatnonzero(self.sizes == size)
            curve = basis(interpolation, size, waves)
            if size > MAX_DIRECT_READINGS:
                self._by_chirps(curve, some, firsts, ratios)
            else:
                self._term_by_term(curve, some, firsts + curve.origin, ratios)
        offset = self.offset + self.window * values.shape[1]
        put_times(self._found, self._stops, chosen, self.state.memory, offset, self._points)
        nothing = np.flatnonzero(status == EMPTY)
        values[nothing], times[nothing] = np.nan, NOTHING
        bits = as_bits(values)
        return np.concatenate([bits, times], axis=1) if times.shape[1] else bits

    def _term_by_term(self, curve: Basis, some: Integers, firsts: Floats, ratios: Floats) -> None:
        which: Integers | slice = some if len(some) < len(self) else slice(None)
        curves = Curves(
            values=self._values,
            heads=self._found.heads,
            begins=self.begins[which],
            ends=self.ends[which],
            owners=self.owners[which],
            stops=self._stops,
            firsts=firsts[which],
            ratios=ratios[which],
            gaps=self._gaps,
            offset=self.offset,
            kept_values=self._series.kept_values,
            points=self._points.values,
        )
        real = np.ascontiguousarray(curve.coefficients.real)
        if curve.origin:
            draw_cosines(curves, real, curve.angle)
        else:
            imaginary = np.ascontiguousarray(curve.coefficients.imag)
            draw_waves(curves, real, imaginary, curve.angle)

    def _by_chirps(self, curve: Basis, some: Integers, firsts: Floats, ratios: Floats) -> None:
        """One window after the other, so that no bit depends on which are worked on together."""
        values, kept = self._points.values, self._series.kept_values
        width = values.shape[1]
        for k in some.tolist():
            size, owner, row = int(self.sizes[k]), int(self.owners[k]), int(self.ends[k])
            begin = int(self.begins[k])
            rows, at = (self._values, begin) if begin >= 0 else (self._found.heads, -1 - begin)
            data = rows[at : at + size].copy()
            absent = np.isnan(data[1:-1]) if self._gaps else None
            here = min(size - 2, max(int(self._stops[owner]) - row, 0))
            later = self.offset + here * width, self.offset + (size - 2) * width
            for column in range(width):
                if absent is not None:
                    bridge(data, column)
                made = chirp_points(curve, data[:, column], float(firsts[k]), float(ratios[k]))
                if absent is not None:
                    made[absent[:, column]] = np.nan
                values[row : row + here, column] = made[:here]
                kept[owner, later[0] + column : later[1] : width] = made[here:]
