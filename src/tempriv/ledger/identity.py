"""Whether two sketches are of the same rows: surely, likely, or as chance would have it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tempriv.ledger.sketches import SMALLEST, WIDTHS, FreshSketch, Sketch, Words

SURE, LIKELY = math.log(1e-6), math.log(1e-3)
"""How improbable matches must be by chance, as logarithms."""

BY_CHANCE = 0.02
"""The part of hashes that is taken to match by chance at least."""

MOST_AGREEMENT = 0.4
"""Columns in which more rows than this have one value tell no tables apart."""

RECURRING, ENOUGH = 0.25, 32
"""From which part of repeated sequences on values follow a pattern, and of how many at least."""


@dataclass(frozen=True)
class Match:
    """How the rows of a table go together with those of a dataset.

    Parameters:
        certain: whether they are surely the same, in part at least.
        spelled_alike: whether ids and times are written as in the dataset, or in another unit of
            time.
        share: about how much of the table is in the dataset.
        reason: what is the same, as a phrase.
    """

    certain: bool
    spelled_alike: bool
    share: float
    reason: str


def chance_of(draws: int, rate: float, hits: int) -> float:
    """The logarithm of how probable it is that so many of so many draws hit, or more.

    A bound (Chernoff's), and 0 where it says nothing.

    Parameters:
        draws: how many there are.
        rate: the part of them that hits by chance.
        hits: how many did.

    >>> chance_of(100, 0.5, 40), round(chance_of(4, 0.02, 4), 1)
    (0.0, -15.6)
    """
    if draws == 0 or rate >= 1 or hits <= rate * draws:
        return 0.0
    part = hits / draws
    rest = 0.0 if hits == draws else (1 - part) * math.log((1 - part) / (1 - rate))
    return -draws * (part * math.log(part / rate) + rest)


def _found(words: Words, among: Words) -> np.typing.NDArray[np.bool_]:
    """Which ``words`` are ``among`` others, which are sorted."""
    if not len(among):
        return np.zeros(words.shape, dtype=np.bool_)
    place = np.minimum(np.searchsorted(among, words), len(among) - 1)
    return np.asarray(among[place] == words, dtype=np.bool_)


@dataclass(frozen=True)
class _RowAgreement:
    """What series and times, and values beside them, say."""

    share: float
    common: int
    sure: bool


def _compare_rows(fresh: FreshSketch, known: Sketch) -> _RowAgreement:
    level = max(fresh.samples["rows"].level, known.samples["rows"].level)
    chosen = fresh.row_levels >= level
    rows, readings = fresh.row_hashes[chosen], fresh.reading_hashes[chosen]
    among = _found(rows, known.samples["rows"].from_level(level))
    common, whole = int(among.sum()), len(rows)
    sure = False
    if not common or _recurs(fresh):
        return _RowAgreement(common / whole if whole else 0.0, common, False)
    same = known.samples["readings"].from_level(level)
    for column, agreement in enumerate(fresh.agreement):
        present = readings[among, column]
        present = present[present != 0]
        rate = max(0.05, 1.5 * agreement)
        hits = int(_found(present, same).sum())
        alike = hits >= 0.95 * len(present) and agreement <= MOST_AGREEMENT
        sure |= alike and chance_of(len(present), rate, hits) < SURE
    return _RowAgreement(common / whole, common, sure)


def _recurs(sketch: Sketch) -> bool:
    """Whether values follow a pattern, such as that of a day, which other tables may follow too."""
    told = [
        repeated
        for repeated, width in zip(sketch.repeated, WIDTHS, strict=True)
        if len(sketch.samples[f"runs{width}"].hashes) >= ENOUGH
    ]
    return min(told or sketch.repeated[:1]) > RECURRING


def _compare_values(fresh: Sketch, known: Sketch) -> tuple[float, float]:
    """The least logarithm of chance over all sequences, and the largest share of the table."""
    least, share = 0.0, 0.0
    for number, width in enumerate(WIDTHS):
        # sequences that recur within a table occur by chance in others of its kind as well
        rate = max(BY_CHANCE, 4 * max(fresh.repeated[number], known.repeated[number]))
        if rate >= 0.5:
            continue
        for kind in ("runs", "series"):
            mine, other = fresh.samples[f"{kind}{width}"], known.samples[f"{kind}{width}"]
            level = max(mine.level, other.level)
            here, there = mine.from_level(level), other.from_level(level)
            fewer, more = sorted((here, there), key=len)
            hits = int(_found(fewer, more).sum()) if len(fewer) >= SMALLEST else 0
            if hits < SMALLEST:
                continue
            chance = min(chance_of(len(some), rate, hits) for some in (here, there))
            least, share = min(least, chance), max(share, hits / len(here))
    return least, share


def match(fresh: FreshSketch, known: Sketch) -> Match | None:
    """How a table goes together with a dataset; None if only as chance would have it.

    Series and times alone never make it certain: two columns of one table have the same.

    Parameters:
        fresh: the sketch of the table.
        known: the sketch of the dataset.
    """
    rows = _compare_rows(fresh, known)
    chance, share = _compare_values(fresh, known)
    if rows.sure or chance < SURE:
        # readings under other ids, or at other times, must not hide behind those that are alike
        alike = rows.sure and rows.share >= share - 0.2
        same = "the same values of the same series at the same times"
        reason = same if alike else "the same values in the same order, under other ids or times"
        return Match(True, alike, max(rows.share, share), reason)
    if chance < LIKELY:
        return Match(False, False, share, "many of the same values in the same order")
    both = fresh.named and known.named
    if both and rows.common >= 20 and rows.share >= 0.5:
        return Match(False, True, rows.share, "the same series at the same times, other values")
    return None
