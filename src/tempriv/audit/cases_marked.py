"""Inputs that audits of landmark schemes run on: rows with marks, and pairs that keep them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.landmarks.budget import most_landmarks
from tempriv.privacy.units.landmarks import Landmarks
from tempriv.privacy.units.order import Example


def over_of(mechanism: Any) -> Any:
    """The mechanism for single values of a scheme; any other is its own."""
    return getattr(mechanism, "over", mechanism)


def marked_rows(readings: Sequence[Any]) -> tuple[Hashable, ...]:
    """Every reading without a mark, and then with one."""
    rows = [one if isinstance(one, tuple) else (one,) for one in readings]
    return tuple((*row, mark) for mark in (0, 1) for row in rows)


def marked_pairs(
    mechanism: Mechanism, alphabet: Sequence[Any], length: int
) -> list[tuple[Example, Example]]:
    """All landmarks and one other reading changed: landmarks first, last, in between and none."""
    half = len(alphabet) // 2
    low, high = alphabet[0][:-1], alphabet[half - 1 if half == 2 else 1][:-1]
    most = most_landmarks(mechanism)
    few = length // 2 if most is None else min(most, length // 2)
    unit: Any = mechanism.guarantee.unit  # type: ignore[union-attr]
    pairs = []
    for marks in (
        [1] * few + [0] * (length - few),
        [0] * (length - few) + [1] * few,
        [int(i % 2 == 1 and i // 2 < few) for i in range(length)],
        [0] * length,
    ):
        changed = [i for i, mark in enumerate(marks) if mark]
        changed += [i for i, mark in enumerate(marks) if not mark][:1]
        if not isinstance(unit, Landmarks):
            changed = list(range(min(unit.readings, length)))
        one = tuple((*low, mark) for mark in marks)
        other = tuple((*(high if i in changed else low), mark) for i, mark in enumerate(marks))
        if (one, other) not in pairs:
            pairs.append((one, other))
    return pairs
