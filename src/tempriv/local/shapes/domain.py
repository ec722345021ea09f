"""Numbers for sequences of symbols: all of them up to a length, or two symbols in a row.

Where sequences are compressed no symbol follows itself, so there are as many fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

from tempriv.local.shapes.sequences import LETTERS


def _step(symbols: int, compressed: bool) -> int:
    return symbols - 1 if compressed else symbols


@dataclass(frozen=True)
class WholeSequences:
    """Sequences that end within ``longest`` symbols, and the first ``longest`` of any longer ones.

    >>> few = WholeSequences(symbols=3, longest=2, compressed=True)
    >>> few.size, [few.text(i) for i in (0, 3, 9)]
    (15, ['a.', 'ab.', 'ab'])
    >>> few.index("ab"), few.index("abc"), few.index("a")
    (3, 9, 0)
    """

    symbols: int
    longest: int
    compressed: bool

    def _count(self, length: int) -> int:
        return int(self.symbols * _step(self.symbols, self.compressed) ** (length - 1))

    @property
    def ended(self) -> int:
        return sum(self._count(length) for length in range(1, self.longest + 1))

    @property
    def size(self) -> int:
        return self.ended + self._count(self.longest)

    def index(self, text: str) -> int:
        """The number of the sequence ``text`` of a device; of a longer one its beginning counts."""
        open_end = len(text) > self.longest
        body = text[: self.longest]
        if open_end:
            first = self.ended
        else:
            first = sum(self._count(length) for length in range(1, len(body)))
        return first + self._place(body)

    def _place(self, body: str) -> int:
        number, before = 0, -1
        for letter in body:
            symbol = LETTERS.index(letter)
            if before < 0:
                number = symbol
            else:
                digit = symbol - (self.compressed and symbol > before)
                number = number * _step(self.symbols, self.compressed) + digit
            before = symbol
        return number

    def text(self, index: int) -> str:
        """The sequence of number ``index``, with a full stop behind it if it ends there."""
        length, end = 1, "."
        if index >= self.ended:
            index, length, end = index - self.ended, self.longest, ""
        else:
            while index >= self._count(length):
                index -= self._count(length)
                length += 1
        digits = []
        for _ in range(length - 1):
            index, digit = divmod(index, _step(self.symbols, self.compressed))
            digits.append(digit)
        symbols = [index]
        for digit in reversed(digits):
            symbols.append(digit + (self.compressed and digit >= symbols[-1]))
        return "".join(LETTERS[symbol] for symbol in symbols) + end


@dataclass(frozen=True)
class Bigrams:
    """Two symbols in a row; with ``ends`` also a symbol that is the last, and nothing at all.

    >>> pairs = Bigrams(symbols=3, compressed=True, ends=True)
    >>> pairs.size, pairs.text(0), pairs.text(6), pairs.text(9)
    (10, 'ab', 'a.', '')
    >>> pairs.index("abc", 0), pairs.index("abc", 2), pairs.index("abc", 3)
    (0, 8, 9)
    """

    symbols: int
    compressed: bool
    ends: bool

    @property
    def pairs(self) -> int:
        return self.symbols * _step(self.symbols, self.compressed)

    @property
    def size(self) -> int:
        return self.pairs + (self.symbols + 1 if self.ends else 0)

    def index(self, text: str, level: int) -> int | None:
        """The number of the two symbols of ``text`` at a ``level`` from 0; None without a cell."""
        if level + 1 < len(text):
            first, second = (LETTERS.index(letter) for letter in text[level : level + 2])
            digit = second - (self.compressed and second > first)
            return first * _step(self.symbols, self.compressed) + digit
        if not self.ends:
            return None
        if level < len(text):
            return self.pairs + LETTERS.index(text[level])
        return self.size - 1

    def text(self, index: int) -> str:
        """The two symbols of number ``index``."""
        if index < self.pairs:
            first, digit = divmod(index, _step(self.symbols, self.compressed))
            second = digit + (self.compressed and digit >= first)
            return LETTERS[first] + LETTERS[second]
        return "" if index == self.size - 1 else LETTERS[index - self.pairs] + "."
