"""Every outcome of an order mechanism, by its own compiled code: each is a series of its own.

All series of a block stand at the same step. A row is pushed for each outcome of what is drawn for
it, and series that remember the same and have shown the same are joined. So the law of the output
is found a row at a time, through the memory that a stream keeps.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.data.series import EMPTY
from tempriv.mechanisms.base import SeriesState

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NONE = -1


@dataclass
class Asked:
    """A draw that notes which laws it is asked for, and gives the first outcome of each."""

    laws: dict[str, Any]
    tail: float

    def __call__(self, law: Any, purpose: str, rows: Any = None) -> Any:
        if rows is not None and not len(rows):
            return np.zeros(0, dtype=np.int64)
        assert purpose not in self.laws, f"{purpose!r}: drawn again from the same words"
        self.laws[purpose] = law
        return np.array([law.outcomes(self.tail)[0][0]])

    each = __call__


@dataclass
class Given:
    """A draw that gives each series its outcome."""

    values: dict[str, Any]

    def __call__(self, law: Any, purpose: str, rows: Any = None) -> Any:
        return self.values[purpose] if rows is None or len(rows) else np.zeros(0, dtype=np.int64)

    each = __call__


@dataclass
class Law:
    """Where rows went: ``shown[i, s]`` is the step of the row in slot s, -1 none, in case i.

    ``began`` numbers the states that the series may have been in before, which are told apart.
    """

    shown: Integers
    status: Integers
    began: Integers
    mass: Floats

    def codes(self, shown: Integers, most: int) -> Integers:
        """Equal for equal outputs from equal beginnings."""
        base = most + 3
        assert (int(self.began.max()) + 1) * base ** shown.shape[1] < 2**63
        code = self.began.astype(np.int64)
        for column in shown.T:
            code = code * base + column + 1
        return code

    def swapped(self, one: int, other: int) -> tuple[Floats, Floats]:
        """The mass of every output, and under the other order of two rows."""
        most = int(self.shown.max())
        other_way = np.where(
            self.shown == one, other, np.where(self.shown == other, one, self.shown)
        )
        codes, at = np.unique(self.codes(self.shown, most), return_inverse=True)
        mass = np.bincount(at, weights=self.mass)
        first = np.full(len(codes), len(self.mass), dtype=np.int64)
        np.minimum.at(first, at, np.arange(len(at)))
        turned = self.codes(other_way, most)[first]
        place = np.minimum(np.searchsorted(codes, turned), len(codes) - 1)
        return mass, np.where(codes[place] == turned, mass[place], 0.0)

    def told(self, one: int, other: int) -> tuple[float, float]:
        """The largest log-ratio on outputs of both orders, and the mass of those of one only."""
        mass, turned = self.swapped(one, other)
        both = turned > 0
        ratios = np.abs(np.log(mass[both] / turned[both]))
        return float(ratios.max(initial=0.0)), float(mass[~both].sum())

    def hockey_stick(self, one: int, other: int, epsilon: float) -> float:
        mass, turned = self.swapped(one, other)
        return float(np.maximum(mass - math.exp(epsilon) * turned, 0.0).sum())

    def slot(self, slot: int) -> dict[int, float]:
        """The law of the row in one slot."""
        steps, at = np.unique(self.shown[:, slot], return_inverse=True)
        return dict(zip(steps.tolist(), np.bincount(at, weights=self.mass).tolist(), strict=True))


@dataclass
class Cases:
    """Series that stand at the same step."""

    memory: Integers
    shown: Integers
    status: Integers
    began: Integers
    mass: Floats

    def joined(self) -> Cases:
        whole = np.concatenate(
            [self.memory, self.shown, self.status, self.began[:, None]], axis=1
        ).astype(np.int16 if self.memory.max(initial=0) < 2**15 else np.int64)
        rows = np.ascontiguousarray(whole).view([("", whole.dtype)] * whole.shape[1])[:, 0]
        _, first, at = np.unique(rows, return_index=True, return_inverse=True)
        mass = np.bincount(at, weights=self.mass)
        return Cases(
            self.memory[first], self.shown[first], self.status[first], self.began[first], mass
        )


def law_of(
    mechanism: Any, rows: int, *, under_way: bool = False, tail: float = 1e-12, absent: int = 0
) -> Law:
    """The law of a series of so many rows, from its first step.

    ``under_way`` starts it one row and many windows later instead, so that rows from before are
    rows like any other; their steps are negative, less one. ``absent`` steps follow the last row.
    """
    latency = mechanism.domain.latency
    nothing = np.zeros((1, 0), dtype=np.int64)
    cases = Cases(
        np.zeros((1, mechanism.memory_size), dtype=np.int64),
        nothing,
        nothing,
        np.zeros(1, dtype=np.int64),
        np.ones(1),
    )
    before = 0
    if under_way:
        cases = _pushed(mechanism, cases, 0, False, tail)
        states, at = np.unique(cases.memory, axis=0, return_inverse=True)
        before = 20 * mechanism.window + 1
        none = np.zeros((len(states), 0), dtype=np.int64)
        mass = np.bincount(at.ravel(), weights=cases.mass)
        cases = Cases(states, none, none, np.arange(len(states)), mass)
    for step in range(rows + absent):
        cases = _pushed(mechanism, cases, before + step, step >= rows, tail).joined()
    shown = cases.shown[:, latency:]
    if under_way:
        earlier = np.where(shown >= 0, shown - before, NONE)
        # -1 is none, so rows of the past move down by one
        shown = np.where((shown >= 0) & (earlier < 0), earlier - 1, earlier)
        shown = np.where(shown < NONE, rows - shown, shown)  # codes are not negative
    return Law(shown, cases.status[:, latency:], cases.began, cases.mass)


def _pushed(mechanism: Any, cases: Cases, step: int, is_absent: bool, tail: float) -> Cases:
    """One more row into every series, once for each outcome."""
    asked = Asked({}, tail)
    mechanism.perturb(_rows(1), asked, _track(cases.memory[:1].copy(), step, is_absent))
    purposes = list(asked.laws)
    found = [asked.laws[purpose].outcomes(tail) for purpose in purposes]
    outcomes = list(itertools.product(*found))
    chances = np.array([math.prod(p for _, p in one) for one in outcomes])
    size = len(cases.mass)
    each = np.repeat(np.arange(size), len(outcomes))
    values = {
        purpose: np.tile(
            np.array([one[i][0] for one in outcomes], dtype=np.int64),
            (size, 1) if np.ndim(outcomes[0][i][0]) else size,
        )
        for i, purpose in enumerate(purposes)
    }
    state = _track(cases.memory[each], step, is_absent)
    ages = mechanism.perturb(_rows(len(each)), Given(values), state)[:, 0]
    status = np.where(ages < 0, EMPTY, state.status).astype(np.int64)
    return Cases(
        state.memory,
        np.concatenate([cases.shown[each], np.where(ages < 0, NONE, step - ages)[:, None]], axis=1),
        np.concatenate([cases.status[each], status[:, None]], axis=1),
        cases.began[each],
        cases.mass[each] * np.tile(chances, size),
    )


def _rows(count: int) -> Integers:
    return np.zeros((count, 0), dtype=np.int64)


def _track(memory: Integers, step: int, is_absent: bool) -> SeriesState:
    count = len(memory)
    return SeriesState(
        counts=np.ones(count, dtype=np.int64),
        starts=np.full(count, step, dtype=np.int64),
        missing=np.full((count, 1), is_absent),
        memory=memory,
    )
