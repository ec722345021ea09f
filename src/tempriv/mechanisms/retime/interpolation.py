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

DIRECT = 160
"""The most readings of a window whose points are added up term by term; beyond, by chirp-z.

Adding up is the faster way to about four times as many, but loses digits there that chirps keep.
"""


class Basis(NamedTuple):
    """The coefficients of a curve through n readings as a matrix, and where it is at what time."""

    coefficients: Complexes  # terms x readings; real for cosines
    angle: float
    origin: float

    def waves(self, times: Floats) -> Complexes:
        """What each coefficient counts for, a row for each time."""
        terms = np.arange(len(self.coefficients))
        return np.asarray(np.exp(1j * self.angle * np.outer(times + self.origin, terms)))


@functools.lru_cache(maxsize=256)
def basis(interpolation: Interpolation, n: int, waves: int | None = None) -> Basis:
    """The curve through n readings; only its slowest waves, if so many are asked for.

    >>> found = basis("cosine", 5)
    >>> readings = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    >>> np.round(points(found, readings, np.array([0.0, 2.0, 4.0])), 12)
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


def points(found: Basis, readings: Floats, times: Floats) -> Floats:
    """The curve at some times, by its definition."""
    return np.asarray((found.waves(times) @ (found.coefficients @ readings)).real)


def chirp_points(found: Basis, readings: Floats, first: float, ratio: float) -> Floats:
    """The curve at first + ratio, first + 2 ratio, ... by three Fourier transforms (chirp-z).

    Since i k = (i^2 + k^2 - (i - k)^2) / 2, the sum over k is a convolution (Bluestein 1970).
    """
    n = len(readings)
    p = _coefficients(found, readings)
    into, kernel, outof = _chirps(found.angle, first + found.origin, ratio, len(p), n)
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


def _coefficients(found: Basis, readings: Floats) -> Complexes:
    """What the matrix says, by a Fourier transform."""
    n, terms = len(readings), len(found.coefficients)
    if found.origin:
        mirrored = np.fft.rfft(np.concatenate([readings, readings[::-1]]))[:n]
        cosines = (mirrored * _half_a_reading(n)).real / n
        cosines[0] /= 2
        return np.asarray(cosines[:terms].astype(np.complex128))
    shares = np.abs(found.coefficients[:, 0])
    return np.asarray(np.fft.fft(readings)[:terms] * shares)


@functools.lru_cache(maxsize=4)
def _half_a_reading(n: int) -> Complexes:
    """By what half a reading turns each wave of a mirrored window."""
    return np.asarray(np.exp(-0.5j * math.pi * np.arange(n) / n))


class Windows:
    """The windows of a block of series, and where their points go.

    ``sums`` holds the sum of each time over the points of a window, ``ends`` the row of the block
    with which the first of them comes out.
    """

    def __init__(self, values: Floats, times: Integers, state: SeriesState, window: int):
        n, (rows, width), clocks = window + 2, values.shape, times.shape[1]
        self.window, self.state, self.rows = window, state, rows
        self.offset = n * (width + clocks)
        self._kept = state.memory.view(np.float64)
        self._values = np.ascontiguousarray(values)
        self._points = np.empty((rows, width))
        self._told = np.empty((rows, clocks), dtype=np.int64)
        state.status[:] = EMPTY
        bring_out(
            state.counts,
            state.starts,
            window,
            self.offset,
            width,
            clocks,
            state.memory,
            self._kept,
            self._points,
            self._told,
            state.status,
        )
        series = len(state.counts)
        most = rows // window + 2 * series
        self._heads = np.empty((min(rows + n * series, (n + window) * series), width))
        self.begins, self.sizes, self.ends, self.owners = np.zeros((4, most), dtype=np.int64)
        self.sums = np.zeros((most, clocks), dtype=np.int64)
        found, self._gaps = lay_out(
            self._values,
            times,
            state.counts,
            state.starts,
            state.further,
            window,
            state.memory,
            self._kept,
            self._heads,
            self.begins,
            self.sizes,
            self.ends,
            self.owners,
            self.sums,
        )
        for name in ("begins", "sizes", "ends", "owners", "sums"):
            setattr(self, name, getattr(self, name)[:found])
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
        """Points at first + i ratio of each window, as bits, and the times chosen for it."""
        width = self._points.shape[1]
        whole = self.window + 2
        for size in (whole, *sorted(set(self.sizes[self.sizes < whole].tolist()))):
            some = np.flatnonzero(self.sizes == size)
            found = basis(interpolation, size, waves)
            if size > DIRECT:
                self._by_chirps(found, some, firsts, ratios)
            else:
                self._term_by_term(found, some, firsts + found.origin, ratios)
        put_times(
            self.ends,
            self.owners,
            self.sizes,
            self._stops,
            self.window,
            self.offset + self.window * width,
            chosen,
            self.state.memory,
            self._told,
            self.state.status,
        )
        nothing = np.flatnonzero(self.state.status == EMPTY)
        self._points[nothing], self._told[nothing] = np.nan, NOTHING
        bits = as_bits(self._points)
        return np.concatenate([bits, self._told], axis=1) if self._told.shape[1] else bits

    def _term_by_term(self, found: Basis, some: Integers, firsts: Floats, ratios: Floats) -> None:
        if len(some) < len(self):
            begins, ends, owners = self.begins[some], self.ends[some], self.owners[some]
            firsts, ratios = firsts[some], ratios[some]
        else:
            begins, ends, owners = self.begins, self.ends, self.owners
        where = self._values, self._heads, begins, ends, owners, self._stops, firsts, ratios
        kept = found.angle, self._gaps, self.offset, self._kept, self._points
        real = np.ascontiguousarray(found.coefficients.real)
        if found.origin:
            draw_cosines(*where, real, *kept)
        else:
            draw_waves(*where, real, np.ascontiguousarray(found.coefficients.imag), *kept)

    def _by_chirps(self, found: Basis, some: Integers, firsts: Floats, ratios: Floats) -> None:
        """One window after the other, so that no bit depends on which are worked on together."""
        width = self._points.shape[1]
        for k in some.tolist():
            size, owner, row = int(self.sizes[k]), int(self.owners[k]), int(self.ends[k])
            begin = int(self.begins[k])
            rows, at = (self._values, begin) if begin >= 0 else (self._heads, -1 - begin)
            data = rows[at : at + size].copy()
            absent = np.isnan(data[1:-1]) if self._gaps else None
            here = min(size - 2, max(int(self._stops[owner]) - row, 0))
            later = self.offset + here * width, self.offset + (size - 2) * width
            for column in range(width):
                if absent is not None:
                    bridge(data, column)
                made = chirp_points(found, data[:, column], float(firsts[k]), float(ratios[k]))
                if absent is not None:
                    made[absent[:, column]] = np.nan
                self._points[row : row + here, column] = made[:here]
                self._kept[owner, later[0] + column : later[1] : width] = made[here:]
