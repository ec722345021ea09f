"""Can an observer who knows two inputs tell from the output which of them it was?

This is the question that every guarantee of differential privacy is about, asked of one pair and of
an observer who is as strong as can be made. The answer is a share of runs in which the observer is
right, beside the most that the guarantee allows, if it speaks of the pair at all: half is a guess,
all is no protection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit.attacks import distinguishers
from tempriv.audit.attacks.distinguishers import Observer
from tempriv.audit.attacks.value import Success, most_success
from tempriv.audit.statistical import (
    BATCH_NUMBERS,
    CONFIDENCE,
    Progress,
    Runner,
    output_rows,
)
from tempriv.data.series import Block
from tempriv.errors import DataError, require
from tempriv.mechanisms import registry
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import Locations, OpaqueRows, numbers_of
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.reorder.carry import finite, rows_of, with_none
from tempriv.privacy.guarantees import Concentrated, Guarantee, Loss, NoGuarantee, Pure
from tempriv.privacy.units import Example, SlotOrigin, WithinDistance
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key, SeriesKey
from tempriv.sampling.keystream import StepRange

Floats = npt.NDArray[np.float64]
Blocks = tuple[Block, ...]
"""An input: one series, or all series of a person."""

RUNS = 20_000
MIN_RUNS = 600
MAX_TEACHING_RUNS = 60_000
MAX_INPUT_NUMBERS = 2_000
MAX_FOLLOWED_READINGS = 12  # readings of moved rows that are looked for in the output


@dataclass(frozen=True)
class TwoCandidates:
    """How often an observer was right about which of two inputs went in, a fair coin deciding.

    ``loss`` is what is guaranteed about the two, or was ``claimed``; without one there is no cap
    and ``why_not`` says why. ``yardstick`` is the budget of the mechanism, for comparison with a
    guarantee that there is not, and ``secret`` how the two differ. ``scores`` are those of the
    first input's runs and of the second's, above zero where the observer named the first.
    """

    success: Success
    loss: Loss | None
    why_not: str
    yardstick: Loss | None
    secret: str
    claimed: bool
    scores: tuple[Floats, Floats] = field(repr=False, compare=False)

    @property
    def rate(self) -> float:
        return self.success.rate

    @property
    def interval(self) -> tuple[float, float]:
        """Exact (Clopper and Pearson's), at the confidence of ``success``."""
        return self.success.interval

    @property
    def observer(self) -> str:
        """What the observer looked at."""
        return self.success.name

    @property
    def cap(self) -> float | None:
        """The most that the guarantee allows anyone to be right; None if it says nothing here."""
        return None if self.loss is None else most_success(self.loss)

    @property
    def advantage(self) -> float:
        """Over a guess, from 0 to 1: what was measured, which can be below 0 by chance."""
        return 2 * self.rate - 1

    @property
    def most_advantage(self) -> float | None:
        return None if self.cap is None else 2 * self.cap - 1

    @property
    def holds(self) -> bool:
        """Whether nothing contradicts the guarantee; with none there is nothing to contradict."""
        return self.cap is None or self.interval[0] <= self.cap

    @property
    def broken(self) -> bool:
        """Whether the cap is passed beyond doubt."""
        return not self.holds

    @property
    def sentence(self) -> str:
        low, high = outward(self.interval)
        shown = f"An observer is right {percent(self.rate)} % of the time ({low} to {high})"
        if self.loss is not None and self.cap is not None:
            name = "claim" if self.claimed else "guarantee"
            most = f"the {name} ({self.loss}) keeps them at {percent(self.cap)} % or below"
            if self.broken:
                return f"{shown}; {most}. THE {name.upper()} IS BROKEN."
            return f"{shown}; {most}. Nothing here contradicts it."
        if self.yardstick is None:
            return f"{shown}. Nothing is guaranteed about {self.secret}."
        could = most_success(self.yardstick)
        would = f"a guarantee of {self.yardstick} would keep them below {percent(could)} %"
        hides = "does not hide" if self.interval[0] > could else "guarantees nothing about"
        return f"{shown}; {would}. This release {hides} {self.secret}."


def percent(share: float) -> str:
    """A share in percent, never rounded to certainty.

    >>> percent(0.7311), percent(1.0), percent(0.99997)
    ('73.1', '100.0', '99.997')
    """
    for digits in range(1, 12):
        shown = f"{100 * share:.{digits}f}"
        if share in (0.0, 1.0) or 0 < float(shown) < 100:
            return shown
    return f"{100 * share:.1f}"


def outward(interval: tuple[float, float]) -> tuple[str, str]:
    """The ends of an interval in percent, rounded away from each other.

    >>> outward((0.68412, 0.70499)), outward((0.99965, 1.0))
    (('68.4', '70.5'), ('99.9', '100.0'))
    """
    low, high = interval
    return f"{math.floor(1000 * low) / 10:.1f}", f"{math.ceil(1000 * high) / 10:.1f}"


def two_candidates(
    mechanism: Mechanism | Runner,
    first: Any,
    second: Any,
    *,
    runs: int = RUNS,
    confidence: float = CONFIDENCE,
    claim: Loss | None = None,
    row: int | None = None,
    secret: str = "which of the two it was",
    key: Key | None = None,
    progress: Progress = lambda runs: None,
) -> TwoCandidates:
    """Run the mechanism on two inputs that the observer knows, and see how often they tell which.

    Inputs are what ``mechanism.start(key).push`` takes (for a ``Person``, a list of series), or
    anything where the mechanism is a function (input, runs, key) that gives a row of numbers for
    each run. The observer sees values, gaps, statuses and lengths, or of one output ``row`` alone.
    Where the distribution of the noise is known the observer goes by it and all runs are counted;
    otherwise half of the runs (60,000 at most) teach and the others, never seen, are counted.

    Parameters:
        mechanism: what is attacked, or a function (input, runs, key).
        first: an input.
        second: another.
        runs: how many, taught ones included.
        confidence: that of the interval.
        claim: a loss to test in place of the guarantee.
        row: the one output row that is seen.
        secret: how the two differ, in words.
        key: of the noise.
        progress: called with the number of runs done.

    Guarantees:
        - ``interval`` holds the chance that this observer is right, with that confidence;
        - a guarantee that holds is called broken with probability (1 - confidence) / 2 at most.
          Nothing is proved of a guarantee that is not: another observer may be better.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> found = two_candidates(Laplace(epsilon=1.0, bounds=(0, 5)), [0.0], [5.0],
    ...                        key=Key.from_seed(1))
    >>> found.observer, round(found.rate, 2), round(found.cap, 4), found.holds
    ('the distribution of the noise', 0.7, 0.7311, True)
    """
    require(0.5 < confidence < 1, f"confidence={confidence}: must be above 0.5 and below 1")
    require(
        isinstance(runs, int) and runs >= MIN_RUNS,
        f"runs={runs}: must be a whole number, {MIN_RUNS} or more",
    )
    trial = _trial(mechanism, first, second, row, key or Key.generate(), progress)
    observer = trial.informed
    if observer is None or type(mechanism) not in registry.classes():
        # of a mechanism that somebody made of another, what it draws may not be all that it does
        teaching = min(runs // 2, MAX_TEACHING_RUNS)
        observer = trial.taught(teaching)
        runs -= teaching
    success, scores = trial.judged(observer, runs, confidence)
    known: Any = mechanism
    loss, why_not = claim, ""
    if claim is None:
        loss, why_not = _guaranteed_loss(known, trial, row)
    return TwoCandidates(
        success, loss, why_not, loss or _budget(known), secret, claim is not None, scores
    )


# what is guaranteed


def _guaranteed_loss(mechanism: Any, trial: _Trial, row: int | None) -> tuple[Loss | None, str]:
    """The loss that the mechanism's guarantee allows for these two inputs, or why there is none."""
    guarantee = getattr(mechanism, "guarantee", None)
    if guarantee is None:
        return None, "a function guarantees nothing"
    if isinstance(guarantee, NoGuarantee):
        return None, f"the mechanism guarantees nothing: {guarantee.reason}"
    assert isinstance(guarantee, Guarantee)
    unit = guarantee.unit
    first, second = (_example(mechanism, blocks, unit) for blocks in trial.inputs)
    slots = unit.slots(first, second)
    if slots is not None:
        if row is None:
            return None, "the guarantee is about one output row seen by itself, and all were seen"
        if row not in slots:
            return None, f"the guarantee does not speak of output row {row} for these two inputs"
    near = (
        replace(unit, meters=unit.meters * (1 + 1e-9)) if isinstance(unit, WithinDistance) else unit
    )
    if not near.are_neighbors(first, second):
        return None, f"the two inputs are no neighbors: the guarantee protects {unit.sentence}"
    return guarantee.loss, ""


def _example(mechanism: Any, blocks: Blocks, unit: Any) -> Example:
    """An input as units take it."""
    series = tuple(_readings(mechanism, block) for block in blocks)
    example: Example = unit.example_of(series)
    return example


def _readings(mechanism: Any, block: Block) -> Example:
    values = block.values
    if isinstance(mechanism.domain, Locations):
        origin = np.array(mechanism.domain.origin)
        values = (values - origin) / (mechanism.domain.degrees(np.ones((1, 2))) - origin)
    rows = with_none(values.astype(object), block.missing).tolist()
    return tuple(row[0] if len(row) == 1 else tuple(row) for row in rows)


def _budget(mechanism: Any) -> Loss | None:
    guarantee = getattr(mechanism, "guarantee", None)
    if isinstance(guarantee, Guarantee):
        return guarantee.loss
    epsilon, rho = (getattr(mechanism, name, None) for name in ("epsilon", "rho"))
    if epsilon is not None:
        return Pure(epsilon)
    return None if rho is None else Concentrated(rho)


# how it is tried


def _trial(
    mechanism: Any, first: Any, second: Any, row: int | None, key: Key, progress: Progress
) -> _Trial:
    if getattr(mechanism, "guarantee", None) is None:
        require(callable(mechanism), "mechanism: must be a mechanism, or (input, runs, key)")
        require(row is None, f"row={row}: goes with a mechanism, not with a function")
        functions = [
            lambda runs, at, taken=taken: mechanism(taken, runs, at) for taken in (first, second)
        ]
        return _Trial((), None, functions, key, progress)
    inputs = (_blocks(mechanism, first), _blocks(mechanism, second))
    widths = {block.values.shape[1] for blocks in inputs for block in blocks}
    require(
        len(widths) == 1,
        f"inputs of {' and '.join(map(str, sorted(widths)))} columns: must have the same",
        DataError,
    )
    lengths = [sum(len(block) for block in blocks) for blocks in inputs]
    require(min(lengths) >= 1, "an input has no reading: give at least one", DataError)
    longest = max(lengths) * widths.pop()
    require(
        longest <= MAX_INPUT_NUMBERS,
        f"an input of {longest:,} numbers: must have {MAX_INPUT_NUMBERS:,} at most; give the part "
        "of the series about the difference",
        DataError,
    )
    require(
        row is None or (isinstance(row, int) and 0 <= row < min(lengths)),
        f"row={row}: must be from 0 to {min(lengths) - 1}, the output row to look at",
    )
    look = _Look.at(mechanism, inputs, row)
    functions = [
        lambda runs, at, blocks=blocks: look.released(blocks, runs, at) for blocks in inputs
    ]
    informed = None
    if row is None and all(len(blocks) == 1 for blocks in inputs):
        pair = inputs[0][0], inputs[1][0]
        informed = distinguishers.by_distribution(mechanism, pair) or distinguishers.by_every_draw(
            mechanism, pair
        )
    return _Trial(inputs, informed, functions, key, progress, longest)


@dataclass
class _Trial:
    """Two inputs and how to run each of them, every run with noise of its own."""

    inputs: tuple[Blocks, ...]
    informed: Observer | None
    functions: Sequence[Callable[[int, SeriesKey], npt.NDArray[Any]]]
    key: Key
    progress: Progress
    longest: int = 1  # numbers in an input
    used: int = 0

    def fresh_key(self) -> SeriesKey:
        self.used += 1
        return self.key.series("two candidates", f"part {self.used}")

    def take(self, which: int, runs: int) -> Floats:
        """Outputs of so many runs on one of the inputs, a row of numbers each.

        Parameters:
            which: 0 for the first, 1 for the second.
            runs: how many.
        """
        rows = output_rows(self.functions[which](runs, self.fresh_key()), runs)
        self.progress(runs)
        return rows

    def taught(self, runs: int) -> Observer:
        """Whoever tells the outputs apart best, of all that learn from so many runs."""
        taken = [[self.take(which, runs // 6) for which in (0, 1)] for _ in range(3)]
        width = max(part.shape[1] for both in taken for part in both)
        fit, count, choose = ((_padded(a, width), _padded(b, width)) for a, b in taken)
        others = [] if self.informed is None else [self.informed]
        observer = distinguishers.learn(fit, count, choose, others)
        return Observer(observer.name, lambda outputs: observer.score(_padded(outputs, width)))

    def judged(
        self, observer: Observer, runs: int, confidence: float
    ) -> tuple[Success, tuple[Floats, Floats]]:
        """How often the observer is right about which input a fair coin sent in.

        Parameters:
            observer: who has seen none of these runs.
            runs: how many.
            confidence: that of the interval.
        """
        part = max(1, BATCH_NUMBERS // self.longest)
        scores: tuple[list[Floats], list[Floats]] = ([], [])
        right = 0
        for start in range(0, runs, part):
            coins = self._coins(min(part, runs - start))
            ones = int(coins.sum())
            for which, share in enumerate((ones, len(coins) - ones)):
                if share:
                    score = observer.score(self.take(which, share))
                    # whoever sees nothing tosses a coin
                    named = np.where(score == 0, self._coins(share) == 1, score > 0)
                    right += int((named == (which == 0)).sum())
                    scores[which].append(score)
        success = Success(observer.name, right, runs, confidence)
        first, second = (np.concatenate([*each, np.zeros(0)]) for each in scores)
        return success, (first, second)

    def _coins(self, count: int) -> npt.NDArray[np.int64]:
        fair = distributions.Bernoulli(Fraction(1, 2))
        return distributions.draw(fair, [StepRange(self.fresh_key(), 0, count)], "coin")


def _padded(outputs: Floats, width: int) -> Floats:
    """Outputs shorter, or longer, than those learned from: what is not there is missing."""
    more = np.full((len(outputs), max(width - outputs.shape[1], 0)), np.nan)
    return np.concatenate([outputs[:, :width], more], axis=1)


def _blocks(mechanism: Any, input_: Any) -> Blocks:
    """An input as ``push`` would take it; a person's as a list of series."""
    guarantee = mechanism.guarantee
    unit = guarantee.unit if isinstance(guarantee, Guarantee) else mechanism.unit
    return tuple(_block(mechanism, series) for series in unit.series_of(input_))


def _block(mechanism: Any, values: Any) -> Block:
    if isinstance(mechanism.domain, OpaqueRows):
        block = rows_of(values, "candidate", 0)
    else:
        if mechanism.domain.categories is not None:
            values = numbers_of(values, mechanism.domain.categories)
        block = Block.of(np.atleast_1d(np.ma.asarray(values)), "candidate", 0)
    require(finite(block), "a reading is NaN or infinite: mask missing ones", DataError)
    return block


@dataclass(frozen=True)
class _Look:
    """What is seen of an output: everything, or one row of it."""

    mechanism: Any
    row: int | None
    codes: dict[Any, float] | None
    followed: Floats

    @classmethod
    def at(cls, mechanism: Any, inputs: Sequence[Blocks], row: int | None) -> _Look:
        """What is seen of outputs of ``mechanism`` on ``inputs``, or of one ``row``."""
        codes = _codes(inputs)
        look = cls(mechanism, row, codes, np.zeros((0, 0)))
        if not isinstance(mechanism.domain, OpaqueRows) or row is not None:
            return look
        # where rows are moved, where those went that the inputs hold at different steps says most
        first, second = (look._numbers(blocks[0]) for blocks in inputs)
        length = min(len(first), len(second))
        changed = (first[:length] != second[:length]).any(axis=1)
        followed = np.unique(
            np.concatenate([first[:length][changed], second[:length][changed]]), axis=0
        )
        return replace(look, followed=followed[:MAX_FOLLOWED_READINGS])

    def _numbers(self, block: Block) -> Floats:
        """Values as numbers, NaN where nothing is."""
        values = block.values
        if self.codes is not None:
            known: Any = self.codes
            numbers = [known.get((type(value).__name__, value), np.nan) for value in values.flat]
            values = np.array(numbers, dtype=np.float64).reshape(values.shape)
        return np.where(block.missing, np.nan, values.astype(np.float64))

    def released(self, blocks: Blocks, runs: int, key: SeriesKey) -> Floats:
        """For each of so many runs how many rows there are, their values and their statuses.

        Parameters:
            blocks: an input.
            runs: how many.
            key: of the noise.
        """
        parts = []
        for i, block in enumerate(blocks):
            out = _run(self.mechanism, block, runs, SeriesKey(key.cipher_key(f"series {i}"), 0))
            parts.append(self._seen(out))
        return np.concatenate(parts, axis=1)

    def _seen(self, out: Block) -> Floats:
        shown = self._numbers(out)
        counts, longest, width = out.counts, int(out.counts.max(initial=0)), shown.shape[1]
        unit = getattr(self.mechanism.guarantee, "unit", None)
        # a guarantee about one row does not speak of its status
        if out.status is not None and not (self.row is not None and isinstance(unit, SlotOrigin)):
            shown = np.concatenate([shown, out.status[:, None]], axis=1)
        table = np.full((len(counts), longest, shown.shape[1]), np.nan)
        steps = np.arange(len(shown)) - np.repeat(np.cumsum(counts) - counts, counts)
        table[np.repeat(np.arange(len(counts)), counts), steps] = shown
        if self.row is not None:
            return np.asarray(table[:, self.row])
        seen = [counts[:, None], table.reshape(len(counts), -1)]
        for reading in self.followed:
            matches = (table[:, :, :width] == reading).all(axis=2)
            seen.append(np.where(matches.any(axis=1), matches.argmax(axis=1), np.nan)[:, None])
        return np.concatenate(seen, axis=1)


def _codes(inputs: Sequence[Blocks]) -> dict[Any, float] | None:
    """Numbers for readings that are none: rows that are moved may hold anything."""
    blocks = [block for each in inputs for block in each]
    if all(block.values.dtype.kind in "iufb" for block in blocks):
        return None
    values = {
        (type(value).__name__, value)
        for block in blocks
        for value in block.values[~block.missing].flat
    }
    return {value: float(number) for number, value in enumerate(sorted(values, key=repr))}


def copies(block: Block, count: int) -> Block:
    """So many series that all hold what a ``block`` of one series holds; ``count`` of them."""
    return Block(
        values=np.tile(block.values, (count, 1)),
        missing=np.tile(block.missing, (count, 1)),
        ids=tuple(map(str, range(count))),
        counts=np.full(count, len(block), dtype=np.int64),
        starts=np.zeros(count, dtype=np.int64),
    )


def _run(mechanism: Any, block: Block, runs: int, key: SeriesKey) -> Block:
    """A block of so many series that all hold the same readings, through the mechanism."""
    length, late = len(block), mechanism.domain.latency
    # each row has words of its own, so one long run serves where nothing comes after the end
    total = length + late
    each = [StepRange(key, i * total, length) for i in range(runs)] if late else None
    many = copies(block, runs)
    return perturb_block(mechanism, many, each or [StepRange(key, 0, runs * length)], ending=True)
