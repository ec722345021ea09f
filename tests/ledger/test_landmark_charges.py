"""Landmark releases in a ledger, against brute force on raw readings: never below the true loss.

Schemes run as they are; what they spent on each reading, on the path that they took, is what a
reading really loses. A limit on landmarks covers all that accepted releases have named.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

import tempriv as tp
from tempriv.data.series import Block
from tempriv.errors import BudgetError
from tempriv.ledger.landmark_totals import LandmarkTotals
from tempriv.ledger.scope import Scope, ScopedCost
from tempriv.ledger.spending import LandmarkSpending, SeriesSpending
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.budget import WHOLE
from tempriv.mechanisms.perturb import perturb_block
from tempriv.privacy import serialization
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units import (
    Event,
    Landmarks,
    Person,
    Unit,
    WholeSeries,
    Window,
)
from tempriv.releases.spending import SpendingRecord, stated_spending
from tempriv.sampling.keystream import StepRange
from tests.ledger.test_extents import EPSILONS, LONG_CHARGES, Machine, Steps, run, slack

TICKS = 6


class Released(NamedTuple):
    """What a release spent on each step of each series, and the steps that it named landmarks."""

    steps: Steps
    spent: dict[str, list[float]]
    named: dict[str, list[int]]

    def loss(self, changed: Iterable[tuple[str, frozenset[int]]]) -> float:
        return sum(
            self.spent[name][step]
            for name, ticks in changed
            if name in self.spent
            for step in range(self.steps.count)
            if ticks & set(self.ticks_of(step))
        )

    def ticks_of(self, step: int) -> range:
        first = self.steps.first + step * self.steps.length
        return range(first, first + self.steps.length)


SCHEMES = ("uniform", "split", "skip", "adaptive", "bound", "stream", "skip stream")


def scheme_of(name: str, epsilon: float, most: int) -> Any:
    over = tp.Laplace(epsilon=epsilon, bounds=(0, 1), grid=0.25)
    return {
        "uniform": lambda: tp.UniformLandmarks(over=over),
        "split": lambda: tp.SplitLandmarks(over=over),
        "skip": lambda: tp.SkipLandmarks(over=over),
        "adaptive": lambda: tp.AdaptiveLandmarks(over=over, decrease=0.5, least=0.3),
        "bound": lambda: tp.CountBoundLandmarks(over=over, count=most),
        "stream": lambda: tp.AdaptiveLandmarks(over=over, count=most, decrease=0.5, least=0.3),
        "skip stream": lambda: tp.SkipLandmarks(over=over),
    }[name]()


class Marked(Machine):
    """Landmark releases beside others, at the same steps or not, of two series."""

    ticks = TICKS
    limits = (
        Event(),
        Window(2),
        WholeSeries(TICKS),
        Landmarks(),
        Person(2, Event()),
    )

    def __init__(self) -> None:
        super().__init__()
        self.accepted: list[list[Released]] = [[] for _ in self.limits]

    def pairs(self, unit: Unit, base: Steps) -> Iterable[Any]:
        number = self.limits.index(unit)
        windows = base.windows(unit.per_series.covered_steps, self.ticks)
        if isinstance(unit, Landmarks):
            windows = base.windows(1, self.ticks)
        alone = [(name, frozenset(window)) for name in "ab" for window in windows]
        if isinstance(unit, Landmarks):
            named: dict[str, frozenset[int]] = {name: frozenset() for name in "ab"}
            for released in self.accepted[number]:
                for name, steps in released.named.items():
                    named[name] |= {t for step in steps for t in released.ticks_of(step)}
            alone = [(name, named[name] | ticks) for name, ticks in alone]
        if unit.positions_per_person == 1:
            return [(one,) for one in alone]
        return [(one, other) for one in alone for other in alone if one[0] < other[0]]

    def take(
        self,
        guarantee: Guarantee,
        where: Scope,
        released: Released,
        spending: LandmarkSpending | None = None,
    ) -> None:
        """Charge every limit, and note what was really spent where it is accepted."""
        self.charges += 1
        for number, unit in enumerate(self.limits):
            name = f"{number} {self.charges}"
            try:
                self.ledger.charge(str(number), guarantee, where, name, spending=spending)
            except BudgetError as refusal:
                reasons = ("says nothing", "set a limit for series", "other time steps")
                unknown = isinstance(unit, Landmarks) and "unbounded" in str(refusal)
                assert unknown or any(reason in str(refusal) for reason in reasons), refusal
                continue
            self.bases[number] = self.bases[number] or released.steps
            self.accepted[number].append(released)
            self.losses[number] = {
                pair: sum(one.loss(pair) for one in self.accepted[number])
                for pair in self.pairs(unit, self.bases[number])
            }

    @rule(
        first=st.integers(0, 3),
        count=st.integers(1, TICKS),
        length=st.sampled_from([1, 1, 1, 1, 2]),
        members=st.sampled_from([("a",), ("b",), ("a", "b"), ("a", "b"), None]),
        scheme=st.sampled_from(SCHEMES),
        marks=st.lists(st.booleans(), min_size=2 * TICKS, max_size=2 * TICKS),
        usual=st.sampled_from([False, True, True]),
        missing=st.sampled_from([None, None, 0, 3]),
        epsilon=st.sampled_from(EPSILONS),
        seed=st.integers(0, 50),
    )
    def release_landmarks(
        self,
        first: int,
        count: int,
        length: int,
        members: tuple[str, ...] | None,
        scheme: str,
        marks: list[bool],
        usual: bool,
        missing: int | None,
        epsilon: float,
        seed: int,
    ) -> None:
        """A table with marks, or a stream that says how many there are at most."""
        steps = Steps(first, length, max(1, min(count, (TICKS - first) // length)))
        names = ("a", "b") if scheme.endswith("stream") else members or ("b",)
        # the same landmarks as other releases, or some of their own
        flags = {
            name: np.array(
                [
                    bool(tick % 3 == 1) if usual else marks[tick + TICKS * (name == "b")]
                    for tick in range(first, first + steps.count * length, length)
                ]
            )
            for name in names
        }
        most = max(int(own.sum()) for own in flags.values())
        mechanism = scheme_of(scheme, epsilon, most)
        values = np.random.default_rng(seed).integers(0, 2, (steps.count * len(names), 1))
        is_missing = np.zeros((len(values), 2), dtype=np.bool_)
        if missing is not None:
            is_missing[missing % len(values), 0] = True
        where = steps.scope(members, False, scheme.endswith("stream"))
        if scheme.endswith("stream"):
            where = Scope(start=where.start, step=where.step, clock=where.clock)
        block = Block(
            values=np.hstack([values * 1.0, np.concatenate([*flags.values()])[:, None] * 1.0]),
            missing=is_missing,
            # a table without ids is of one series, whichever it is
            ids=names if where.members is not None else tuple(f"one {n}" for n in names),
            counts=np.full(len(names), steps.count),
            starts=np.zeros(len(names), dtype=np.int64),
            times=np.tile(where.start + where.step * np.arange(steps.count), len(names)),
        )
        key, digest = tp.Key.from_seed(self.charges), serialization.digest(mechanism)
        runs = [StepRange(key.series(digest, name), 0, steps.count) for name in block.ids]
        done = perturb_block(mechanism, block, runs)
        if scheme.endswith("stream"):
            spending = stated_spending(mechanism)
        else:
            record = SpendingRecord(mechanism)
            record.see(block, done)
            spending = record.spending({})
        spent = dict(zip(names, done.spent.reshape(len(names), -1).tolist(), strict=True))
        there = ~is_missing[:, 0].reshape(len(names), -1)
        named = {
            name: np.flatnonzero(own & there[i]).tolist()
            for i, (name, own) in enumerate(flags.items())
        }
        if scheme == "bound":
            named = {}  # it protects any so many readings, whichever are called landmarks
        self.take(mechanism.guarantee, where, Released(steps, spent, named), spending)

    @rule(
        first=st.integers(0, 3),
        count=st.integers(1, TICKS),
        members=st.sampled_from([("a",), ("b",), ("a", "b"), None]),
        unit=st.sampled_from([Event(), Event(), Window(2), WholeSeries(TICKS)]),
        epsilon=st.sampled_from(EPSILONS),
        phase=st.integers(0, 1),
    )
    def release_others(
        self,
        first: int,
        count: int,
        members: tuple[str, ...] | None,
        unit: Unit,
        epsilon: float,
        phase: int,
    ) -> None:
        """Without landmarks; what it guarantees is spent as unevenly as it may be."""
        steps = Steps(first, 1, min(count, TICKS - first))
        width = min(unit.readings, steps.count)
        each = [epsilon * (step % width == phase % width) for step in range(steps.count)]
        spent = dict.fromkeys(members or ("a", "b"), each)
        where = steps.scope(members, False, False)
        self.take(Guarantee(Pure(epsilon), unit), where, Released(steps, spent, {}))

    @invariant()
    def receipts_tell_nothing(self) -> None:
        """Once there were landmarks, no receipt says how a limit stands."""
        for number, accepted in enumerate(self.accepted):
            if any(released.named for released in accepted):
                query = "SELECT totals FROM charges WHERE dataset = ? ORDER BY id DESC LIMIT 1"
                assert self.ledger._file.value(query, number + 1) == "[]"


def too_little_for_later(self, landmarks, others, units):
    return (WHOLE // (landmarks + 1),) * 2


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "parts that are handed on are not counted": (
        AdaptiveLandmarks,
        "most_units",
        too_little_for_later,
    ),
    "landmarks of other releases cost nothing": (
        LandmarkTotals,
        "_further_landmarks",
        lambda self, spender: 0.0,
    ),
    "others spend as little as landmarks": (
        SeriesSpending,
        "reading",
        property(lambda self: self.landmark),
    ),
    "sets of landmarks go by any name": (
        ScopedCost,
        "named_set",
        property(lambda self: ("", "", False, self.marks or b"")),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_counting_too_little_is_found(name, monkeypatch):
    monkeypatch.setattr(*MUTANTS[name])
    with pytest.raises(AssertionError):
        run(Marked, 8_000, (Phase.generate,))


def test_the_ledger_is_never_below_the_true_loss():
    run(Marked, 150, (Phase.generate,))


@pytest.mark.long
def test_the_ledger_is_never_below_the_true_loss_in_many_steps(capsys):
    slack.clear()
    run(Marked, LONG_CHARGES, (Phase.generate,))
    with capsys.disabled():
        for limit, ratios in slack.items():
            ordered = sorted(ratios)
            print(
                f"\n{limit}: {len(ordered):,} totals, {ordered[len(ordered) // 2]:.2f} times the "
                f"true loss in the median, {ordered[-1]:.1f} at most",
                end="",
            )
