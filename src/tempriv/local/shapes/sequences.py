"""Sequences of a few symbols, many of them, each as one whole number.

A code is a 1 followed by the symbols, first symbol first, each in as many bits as the alphabet
needs. So a code says all of its sequence, its length too; a prefix is a shift; and codes in
ascending order are sequences by length, then by their letters.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require

Codes = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

LETTERS = string.ascii_lowercase
CODE_BITS = 63  # of symbols: the 1 before them takes the last of 64
BATCH_SEQUENCES = 1 << 14  # sequences that are spelt out at a time
AFTER_END = np.int8(-1)  # in a matrix, after the end of a sequence


def check_symbols(symbols: int) -> None:
    """Refuse a number of ``symbols`` that no alphabet has."""
    require(
        type(symbols) is int and 2 <= symbols <= len(LETTERS),
        f"symbols={symbols!r}: must be a whole number from 2 to {len(LETTERS)}",
    )


def bits_of(symbols: int) -> int:
    """How many bits of a code one of ``symbols`` symbols takes.

    >>> [bits_of(symbols) for symbols in (2, 3, 4, 5, 8, 26)]
    [1, 2, 2, 3, 3, 5]
    """
    return (symbols - 1).bit_length()


def longest_of(symbols: int) -> int:
    """How many of ``symbols`` symbols a code has room for.

    >>> [longest_of(symbols) for symbols in (3, 4, 8, 26)]
    [31, 31, 21, 12]
    """
    return CODE_BITS // bits_of(symbols)


@functools.cache
def _digits(symbols: int) -> dict[str | int, str]:
    """The bits of each symbol, by its letter and by its number."""
    bits = bits_of(symbols)
    return {name: f"{i:0{bits}b}" for i in range(symbols) for name in (i, LETTERS[i])}


class Alphabet(Protocol):
    """Anything that has so many symbols."""

    @property
    def symbols(self) -> int: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Sequences:
    """Many sequences over one alphabet of so many symbols, as codes.

    >>> some = Sequences.of(["acba", "ab", "acba"], symbols=3)
    >>> some.lengths.tolist(), some.prefix(2).texts()
    ([4, 2, 4], ['ac', 'ab', 'ac'])
    >>> different, counts = some.distinct()
    >>> different.texts(), counts.tolist()
    (['ab', 'acba'], [1, 2])
    """

    symbols: int
    codes: Codes

    def __post_init__(self) -> None:
        check_symbols(self.symbols)
        require(
            isinstance(self.codes, np.ndarray)
            and self.codes.dtype == np.uint64
            and self.codes.ndim == 1,
            "codes: must be a row of 64-bit whole numbers (numpy.uint64)",
            DataError,
        )

    @classmethod
    def of(cls, sequences: Iterable[str | Sequence[int]], *, symbols: int) -> Sequences:
        """Many ``sequences``: texts such as "acba", or rows of numbers below ``symbols``."""
        check_symbols(symbols)
        digits, longest, codes = _digits(symbols), longest_of(symbols), []
        for sequence in sequences:
            if len(sequence) > longest:
                raise DataError(
                    f"a sequence of {len(sequence)} symbols: must have at most {longest}, if there "
                    f"are {symbols} to choose from"
                )
            try:
                codes.append(int("1" + "".join([digits[symbol] for symbol in sequence]), 2))
            except (KeyError, TypeError):
                raise DataError(
                    f"a sequence holds something that is none of {symbols} symbols: use the "
                    f"letters {LETTERS[0]} to {LETTERS[symbols - 1]}, or whole numbers from 0"
                ) from None
        return cls(symbols=symbols, codes=np.array(codes, dtype=np.uint64))

    @classmethod
    def of_texts(cls, texts: Iterable[str], sax: Alphabet) -> Sequences:
        """From ``texts`` over the alphabet of a ``sax``, or of other sequences."""
        return cls.of(texts, symbols=sax.symbols)

    def __len__(self) -> int:
        return int(self.codes.size)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequences)
            and self.symbols == other.symbols
            and np.array_equal(self.codes, other.codes)
        )

    __hash__ = None  # type: ignore[assignment]

    @functools.cached_property
    def lengths(self) -> Integers:
        """How many symbols each sequence has."""
        places = np.arange(longest_of(self.symbols) + 1)
        starts = np.uint64(1) << self._shift(places)
        return np.searchsorted(starts, self.codes, side="right") - 1

    def _shift(self, symbols: Integers) -> Codes:
        return (symbols * bits_of(self.symbols)).astype(np.uint64)

    def matrix(self) -> npt.NDArray[np.int8]:
        """A row of symbols for each sequence, with -1 after its end."""
        longest = int(self.lengths.max(initial=0))
        symbol_rows = np.empty((len(self), longest), dtype=np.int8)
        mask = np.uint64((1 << bits_of(self.symbols)) - 1)
        for begin in range(0, len(self), BATCH_SEQUENCES):
            part = slice(begin, begin + BATCH_SEQUENCES)
            after = self.lengths[part, None] - np.arange(1, longest + 1)  # symbols that follow
            symbols = self.codes[part, None] >> self._shift(np.maximum(after, 0)) & mask
            symbol_rows[part] = np.where(after >= 0, symbols.astype(np.int8), AFTER_END)
        return symbol_rows

    def texts(self) -> list[str]:
        """Each sequence in letters: a, b, c and so on from the lowest cell up."""
        alphabet = np.frombuffer(LETTERS.encode() + b"\0", dtype=np.uint8)
        letters = alphabet[self.matrix()]  # -1 is the last, which ends a text
        if letters.shape[1] == 0:
            return [""] * len(self)
        rows = np.ascontiguousarray(letters).view(f"S{letters.shape[1]}").ravel()
        return [row.decode() for row in rows.tolist()]

    def take(self, selection: Any) -> Sequences:
        """Some sequences, by a ``selection``: numbers, a mask or a slice."""
        return Sequences(symbols=self.symbols, codes=self.codes[selection])

    def prefix(self, length: int) -> Sequences:
        """The first ``length`` symbols of each, or all if there are fewer."""
        require(length >= 0, f"length={length}: must be >= 0")
        return Sequences(
            symbols=self.symbols,
            codes=self.codes >> self._shift(np.maximum(self.lengths - length, 0)),
        )

    def distinct(self) -> tuple[Sequences, Integers]:
        """Those that differ, by length and then by letters, and how many there are of each."""
        codes, counts = np.unique(self.codes, return_counts=True)
        return Sequences(symbols=self.symbols, codes=codes), counts

    def grouped(self) -> tuple[Sequences, Integers]:
        """Those that differ, and which of them each sequence is.

        >>> some = Sequences.of(["b", "a", "b"], symbols=2)
        >>> different, which = some.grouped()
        >>> which.tolist(), different.take(which) == some
        ([1, 0, 1], True)
        """
        codes, which = np.unique(self.codes, return_inverse=True)
        return Sequences(symbols=self.symbols, codes=codes), which
