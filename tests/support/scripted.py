"""Words of which a test has written some, to bring a sampler to the edges of its decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import Keystream, StepRange

ONES = (1 << 64) - 1

Path = tuple[int, ...]
Script = dict[tuple[Path, int], dict[int, int]]
"""``script[path, lane] = {row: word}``; a path lists the branches."""


def run(seed: int, count: int, start: int = 0) -> StepRange:
    return StepRange(Key.from_seed(seed).series("test of noise", "a series"), start, count)


class Scripted:
    """Stands for ``Keystream``: words that are not in the script are keyed.

    ``taken`` collects the places that words were taken from, of this source and all its branches.
    """

    def __init__(
        self,
        words: Keystream,
        script: Script,
        path: Path = (),
        rows: Any = None,
        taken: set[tuple[Path, int]] | None = None,
    ):
        self.words, self.script, self.path = words, script, path
        self.rows = np.arange(words.count) if rows is None else rows
        self.taken = set() if taken is None else taken
        self.count = words.count

    def _like(self, words: Keystream, path: Path, rows: Any) -> Scripted:
        return Scripted(words, self.script, path, rows, self.taken)

    def branch(self, number: int) -> Scripted:
        return self._like(self.words.branch(number), (*self.path, number), self.rows)

    def only(self, rows: Any) -> Scripted:
        return self._like(self.words.only(rows), self.path, self.rows[rows])

    def one(self, row: int, lane: int) -> int:
        return int(self.only(np.array([row])).take(lane)[0])

    def take_lanes(self, count: int) -> Any:
        return np.stack([self.take(lane) for lane in range(count)], axis=1)

    def take(self, lane: int = 0) -> Any:
        words = self.words.take(lane).copy()
        self.taken.add((self.path, lane))
        here = self.script.get((self.path, lane), {})
        for i, row in enumerate(self.rows.tolist()):
            if row in here:
                words[i] = here[row]
        return words

    def take_branches(self, rows: Any, numbers: Any, count: int) -> Any:
        words = self.words.take_branches(rows, numbers, count).copy()
        for i, (row, number) in enumerate(zip(self.rows[rows], numbers.tolist(), strict=True)):
            place = (*self.path, number), 0
            self.taken.add(place)
            words[i] = self.script.get(place, {}).get(int(row), words[i])
        return words


def scripted(count: int, script: Script) -> Scripted:
    return Scripted(Keystream([run(0, count)], "scripted"), script)


def write(script: Script, path: Path, lane: int, row: int, word: int) -> None:
    script.setdefault((path, lane), {})[row] = word


def write_number(script: Script, path: Path, row: int, words: list[int]) -> None:
    """The digits of a uniform number: a first word, and what is asked for on its edge."""
    write(script, path, 0, row, words[0])
    for lane, word in enumerate(words[1:]):
        write(script, (*path, 0), lane, row, word)


def split(digits: int, count: int) -> list[int]:
    """A number of 64 count bits as words, the leading one first."""
    return [digits >> 64 * (count - 1 - i) & ONES for i in range(count)]
