"""Series of numbers as short sequences of symbols: SAX (Lin, Keogh, Wei and Lonardi 2007).

A series is z-scored, cut into segments, and each segment's mean becomes the symbol of the cell it
lies in; the cells are equally likely under the normal distribution. Compressive SAX (Mao, Ye, Hu,
Wang and Huang 2024, section III-B) merges repeated symbols, so that only the order of rises and
falls is left and not how fast they came. A device does this by itself, with its own series only.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.local.shapes._sax_kernels import NONE_REFUSED, put_codes
from tempriv.local.shapes.sequences import (
    LETTERS,
    Codes,
    Sequences,
    bits_of,
    check_symbols,
    longest_of,
)
from tempriv.sampling.exact_compare import decimal_of

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Line = Literal["step", "smooth"]

DIGITS = 60
PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899863"
)
LONGEST_SEGMENT = 1 << 31
FARTHEST_EDGE = 1e6
BATCH_VALUES = 1 << 20  # numbers that are worked on at a time

# Section V-J of the shapes paper: unit intervals of 0.33 from 0 to 0.99 and -0.99, eight cells
EIGHT_CELLS = (-0.99, -0.66, -0.33, 0.0, 0.33, 0.66, 0.99)


# the normal distribution


def _half_normal(x: Decimal) -> Decimal:
    """The probability between 0 and x > 0, by a series whose terms are all positive."""
    term, total, k = x, x, 1
    while term > total.scaleb(-DIGITS - 10):
        k += 2
        term = term * x * x / k
        total += term
    return total * _density(x)


def _density(x: Decimal) -> Decimal:
    return (-x * x / 2).exp() / (2 * PI).sqrt()


@functools.cache
def normal_quantile(probability: Fraction) -> float:
    """The floating-point number next to the normal quantile of a ``probability``.

    Newton's method on sixty digits, from the usual approximation; rounded once, at the end.
    """
    if probability < Fraction(1, 2):
        return -normal_quantile(1 - probability)
    if probability == Fraction(1, 2):
        return 0.0
    with localcontext() as context:
        context.prec = DIGITS + 15
        wanted = decimal_of(probability - Fraction(1, 2))
        x = Decimal(NormalDist().inv_cdf(float(probability)))
        for _ in range(4):  # 16 digits, then about twice as many each time
            x -= (_half_normal(x) - wanted) / _density(x)
        return float(x)


def breakpoints(symbols: int) -> tuple[float, ...]:
    """The edges of ``symbols`` cells that are equally likely under the normal distribution.

    Each is the floating-point number next to the true one.

    >>> [round(edge, 4) for edge in breakpoints(4)]
    [-0.6745, 0.0, 0.6745]
    """
    check_symbols(symbols)
    return tuple(normal_quantile(Fraction(i, symbols)) for i in range(1, symbols))


def _median(low: float, high: float) -> float:
    """The median of the normal distribution between two edges; the nearer edge far out."""
    if low + high > 0:
        return -_median(-high, -low)  # the lower tail keeps its digits
    normal = NormalDist()
    middle = (normal.cdf(low) + normal.cdf(high)) / 2
    return min(max(normal.inv_cdf(middle), low), high) if middle > 0 else high


# series to sequences


@dataclass(frozen=True, kw_only=True)
class Sax:
    """How a series becomes a sequence of symbols.

    Means of segments are compared with the breakpoints of the normal distribution. A mean on an
    edge belongs to the cell above; a constant series rests at its mean, in the middle.

    Parameters:
        symbols: letters of the alphabet, from 2 to 26.
        segment: values whose mean becomes a symbol; with 1 every value does.
        compressed: whether a symbol that repeats the one before is left out.
        partial: whether a last segment that is cut short counts ("keep": by the mean of what is
            there) or not ("drop").
        longest: how many of the first symbols are kept.
        values: edges of your own, in standard deviations from the mean of a series.

    >>> wave = np.sin(np.arange(128) * 2 * np.pi / 128)
    >>> Sax(symbols=3, segment=8).sequences([wave, -wave, np.ones(5)]).texts()
    ['bcbab', 'babcb', 'b']
    >>> Sax(symbols=3, segment=8, compressed=False, longest=16).sequences([wave]).texts()
    ['bccccccbbaaaaaab']
    """

    symbols: int = 4
    segment: int = 10
    compressed: bool = True
    partial: Literal["keep", "drop"] = "keep"
    longest: int = 15
    values: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_symbols(self.symbols)
        require(
            type(self.segment) is int and 1 <= self.segment <= LONGEST_SEGMENT,
            f"segment={self.segment!r}: must be a whole number of values, from 1 to "
            f"{LONGEST_SEGMENT}",
        )
        require(
            isinstance(self.compressed, bool),
            f"compressed={self.compressed!r}: must be True or False",
        )
        require(
            self.partial in ("keep", "drop"), f"partial={self.partial!r}: must be 'keep' or 'drop'"
        )
        longest = longest_of(self.symbols)
        require(
            type(self.longest) is int and 1 <= self.longest <= longest,
            f"longest={self.longest!r}: must be from 1 to {longest}, if there are {self.symbols} "
            "symbols; a longer sequence has no room in 64 bits",
        )
        if self.values is not None:
            require(
                isinstance(self.values, (tuple, list))
                and all(type(edge) in (int, float) for edge in self.values)
                and all(abs(edge) <= FARTHEST_EDGE for edge in self.values)
                and all(a < b for a, b in itertools.pairwise(self.values)),
                f"values={self.values!r}: must be numbers in ascending order, from "
                f"{-FARTHEST_EDGE} to {FARTHEST_EDGE} standard deviations",
            )
            object.__setattr__(self, "values", tuple(map(float, self.values)))
            require(
                len(self.values) == self.symbols - 1,
                f"values: must be {self.symbols - 1} edges for symbols={self.symbols}, not "
                f"{len(self.values)}",
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        fields = dataclasses.asdict(self)
        return fields | {"values": None if self.values is None else list(self.values)}

    @classmethod
    def from_dict(cls, fields: Any) -> Sax:
        """The ``Sax`` whose ``to_dict`` gave these ``fields``; anything else is refused.

        >>> Sax.from_dict(Sax(symbols=6, segment=25).to_dict()) == Sax(symbols=6, segment=25)
        True
        """
        names = {field.name for field in dataclasses.fields(cls)}
        require(
            isinstance(fields, dict) and fields.keys() == names,
            f"sax: must be an object with {', '.join(sorted(names))}, and nothing else",
            DataError,
        )
        return cls(**fields)

    @property
    def alphabet(self) -> str:
        """The letters of its sequences, from the lowest cell up."""
        return LETTERS[: self.symbols]

    @property
    def edges(self) -> tuple[float, ...]:
        """Between the cells, in standard deviations from the mean of a series."""
        return breakpoints(self.symbols) if self.values is None else self.values

    @property
    def levels(self) -> tuple[float, ...]:
        """The median of the normal distribution within the cell of each symbol, for drawing."""
        if self.values is None:
            halves = (Fraction(2 * i + 1, 2 * self.symbols) for i in range(self.symbols))
            return tuple(map(normal_quantile, halves))
        ends = (-math.inf, *self.values, math.inf)
        return tuple(_median(low, high) for low, high in itertools.pairwise(ends))

    def sequences(self, series: Any) -> Sequences:
        """The sequence of each series.

        Parameters:
            series: rows of a matrix, a list of series of any lengths, or chunks of either: these
                come from an iterator, and only codes are kept of them.
        """
        codes: list[Codes] = []
        done = 0
        for chunk in _chunks(series):
            for values, offsets in _runs(chunk, done):
                codes.append(self._codes(values, offsets, done))
                done += codes[-1].size
        if len(codes) != 1:
            codes = [np.concatenate([np.empty(0, dtype=np.uint64), *codes])]
        return Sequences(symbols=self.symbols, codes=codes[0])

    def _codes(self, values: Floats, offsets: Integers, done: int) -> Codes:
        lengths = np.diff(offsets)
        least = self.segment if self.partial == "drop" else 1
        if int(lengths.min()) < least:
            which = int(np.argmax(lengths < least))
            reason = (
                f"its {lengths[which]} values are fewer than segment={self.segment}; "
                "partial='keep' takes the mean of what is there"
            )
            raise DataError(f"series {done + which}: {reason if lengths[which] else 'is empty'}")
        codes = np.empty(lengths.size, dtype=np.uint64)
        edges = np.array(self.edges)
        sums = np.empty(-(-int(lengths.max()) // self.segment))
        with np.errstate(all="ignore"):  # plain Python would warn of what is put right there
            refused = put_codes(
                values,
                offsets,
                edges,
                self.segment,
                self.partial == "keep",
                self.compressed,
                bits_of(self.symbols),
                self.longest,
                sums,
                np.empty_like(edges),
                codes,
            )
        require(
            refused == NONE_REFUSED,
            f"series {done + refused}: holds a missing or infinite value; fill it in, or leave it "
            "out (series of different lengths go in a list)",
            DataError,
        )
        return codes


def without_segments(*, compressed: bool = True, longest: int = 15) -> Sax:
    """The paper's "without SAX" (section V-J): every z-scored value goes into one of eight cells.

    Parameters:
        compressed, longest: as for ``Sax``.

    >>> without_segments().sequences([[0.0, 1.0, 2.0, 3.0]]).texts()
    ['acfh']
    """
    return Sax(
        symbols=len(EIGHT_CELLS) + 1,
        segment=1,
        compressed=compressed,
        longest=longest,
        values=EIGHT_CELLS,
    )


def _chunks(series: Any) -> Iterator[Any]:
    """A matrix or a list is one chunk; of a list of matrices, or an iterator, each part is one."""
    if hasattr(series, "__array__"):
        yield series
    elif isinstance(series, (list, tuple)):
        if series and all(getattr(part, "ndim", 1) == 2 for part in series):
            yield from series
        else:
            yield series
    else:
        require(
            isinstance(series, Iterable) and not isinstance(series, (str, bytes, dict)),
            f"{type(series).__name__}: give a matrix, a list of series or an iterator of those",
            DataError,
        )
        for chunk in series:
            require(
                isinstance(chunk, (list, tuple)) or np.ndim(chunk) == 2,
                "a chunk must be a matrix or a list of series",
                DataError,
            )
            yield chunk


def numbers_of(values: Any, subject: str) -> Any:
    """Values as an array; refused if there is anything but ``values`` that are numbers.

    Parameters:
        subject: names them in the refusal.
    """
    require(
        not np.ma.is_masked(values),
        f"{subject}: holds a missing value; fill it in, or leave it out (series of different "
        "lengths go in a list)",
        DataError,
    )
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=object)
    require(array.dtype.kind in "buif", f"{subject}: must be numbers in a row", DataError)
    return array


def _runs(chunk: Any, done: int) -> Iterator[tuple[Floats, Integers]]:
    """Series end to end, with where each begins: a few at a time, as numbers are copied."""
    if hasattr(chunk, "__array__"):
        matrix = numbers_of(chunk, "the matrix")
        require(
            matrix.ndim == 2,
            "give a row for each series; a single series goes in a list: [series]",
            DataError,
        )
        people, length = matrix.shape
        rows = max(1, BATCH_VALUES // max(length, 1))
        for begin in range(0, people, rows):
            part = np.ascontiguousarray(matrix[begin : begin + rows], dtype=np.float64)
            yield part.reshape(-1), np.arange(len(part) + 1, dtype=np.int64) * length
        return
    parts: list[Any] = []
    value_count = 0
    for i, values in enumerate(chunk):
        row = numbers_of(values, f"series {done + i}")
        require(row.ndim == 1, f"series {done + i}: must be numbers in a row", DataError)
        parts.append(row)
        value_count += row.size
        if value_count >= BATCH_VALUES:
            yield _joined(parts)
            parts, value_count = [], 0
    if parts:
        yield _joined(parts)


def _joined(parts: Sequence[Any]) -> tuple[Floats, Integers]:
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([part.size for part in parts], out=offsets[1:])
    return np.concatenate(parts).astype(np.float64, copy=False), offsets


# sequences to curves


def curve(sequence: str | Sequence[int], sax: Sax, length: int, *, line: Line = "step") -> Floats:
    """A line over ``length`` moments for a sequence, in standard deviations from its mean.

    A compressed sequence has forgotten how long each symbol lasted: each gets an equal share. One
    that is not has ``sax.segment`` moments for each, and stays at its last. ``smooth`` goes from
    the middle of one symbol to that of the next in half a cosine wave, and never beyond them.

    Parameters:
        sequence: in letters or numbers.
        sax: that made it.
        line: ``step`` or ``smooth``.

    >>> curve("acb", Sax(symbols=3), 6).round(2).tolist()
    [-0.97, -0.97, 0.97, 0.97, 0.0, 0.0]
    """
    require(type(length) is int and length >= 1, f"length={length!r}: must be a whole number >= 1")
    require(line in ("step", "smooth"), f"line={line!r}: must be 'step' or 'smooth'")
    symbols = Sequences.of([sequence], symbols=sax.symbols).matrix()[0]
    require(symbols.size > 0, "the sequence is empty: there is nothing to draw", DataError)
    heights = np.array(sax.levels)[symbols]
    each = length / symbols.size if sax.compressed else sax.segment
    at = (np.arange(length) + 0.5) / each  # in symbols; the middle of the first is at 0.5
    if line == "step":
        return np.asarray(heights[np.minimum(at.astype(np.int64), symbols.size - 1)])
    at = np.clip(at - 0.5, 0, symbols.size - 1)
    symbol_before = at.astype(np.int64)
    symbol_after = np.minimum(symbol_before + 1, symbols.size - 1)
    part = (1 - np.cos(np.pi * (at - symbol_before))) / 2
    line_heights: Floats = heights[symbol_before] + part * (
        heights[symbol_after] - heights[symbol_before]
    )
    return line_heights
