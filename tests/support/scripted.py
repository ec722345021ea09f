"""Words of which a test has written some, to bring a sampler to the edges of its decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import Keystream, StepRange

ONES = (1 << 64) - 1

Path = tuple[int, ...]
Script = dict[tuple[Path, int], dict[int, int]]
"""``script[path, stream_index] = {row: word}``; a path lists the substreams."""


def run(seed: int, count: int, start: int = 0) -> StepRange:
    return StepRange(Key.from_seed(seed).series("test of noise", "a series"), start, count)


class Scripted:
    """Stands for ``Keystream``: words that are not in the script are keyed.

    ``taken`` collects the places that words were taken from, of this source and all its substreams.
    """

    def __init__(
        self,
        keystream: Keystream,
        script: Script,
        path: Path = (),
        rows: Any = None,
        taken: set[tuple[Path, int]] | None = None,
    ):
        self.words, self.script, self.path = keystream, script, path
        self.places = np.arange(keystream.count) if rows is None else rows
        self.taken = set() if taken is None else taken
        self.count = keystream.count

    def _like(self, keystream: Keystream, path: Path, rows: Any) -> Scripted:
        return Scripted(keystream, self.script, path, rows, self.taken)

    def substream(self, number: int) -> Scripted:
        return self._like(self.words.substream(number), (*self.path, number), self.places)

    def rows(self, rows: Any) -> Scripted:
        return self._like(self.words.rows(rows), self.path, self.places[rows])

    def read_one(self, row: int, stream_index: int) -> int:
        return int(self.rows(np.array([row])).read(stream_index)[0])

    def read_streams(self, count: int) -> Any:
        return np.stack([self.read(stream_index) for stream_index in range(count)], axis=1)

    def read(self, stream_index: int = 0) -> Any:
        words = self.words.read(stream_index).copy()
        self.taken.add((self.path, stream_index))
        here = self.script.get((self.path, stream_index), {})
        for i, row in enumerate(self.places.tolist()):
            if row in here:
                words[i] = here[row]
        return words

    def read_substreams(self, rows: Any, numbers: Any, count: int) -> Any:
        words = self.words.read_substreams(rows, numbers, count).copy()
        for i, (row, number) in enumerate(zip(self.places[rows], numbers.tolist(), strict=True)):
            place = (*self.path, number), 0
            self.taken.add(place)
            words[i] = self.script.get(place, {}).get(int(row), words[i])
        return words


def scripted(count: int, script: Script) -> Scripted:
    return Scripted(Keystream([run(0, count)], "scripted"), script)


def write(script: Script, path: Path, stream_index: int, row: int, word: int) -> None:
    script.setdefault((path, stream_index), {})[row] = word


def write_number(script: Script, path: Path, row: int, words: list[int]) -> None:
    """The digits of a uniform number: a first word, and what is asked for on its edge."""
    write(script, path, 0, row, words[0])
    for stream_index, word in enumerate(words[1:]):
        write(script, (*path, 0), stream_index, row, word)


def split(digits: int, count: int) -> list[int]:
    """A number of 64 count bits as words, the leading one first."""
    return [digits >> 64 * (count - 1 - i) & ONES for i in range(count)]
