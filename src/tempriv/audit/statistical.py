"""A lower bound on the privacy loss, with stated confidence, by running the mechanism many times.

A guesser sees the output of one of two neighboring inputs and names the one that went in. What it
looks at is learned from some of the runs; how often it is right is counted on the others, which it
has never seen. A good guesser proves that the loss is at least so large. A bad one proves nothing:
the mechanism may lose more than this guesser, or these inputs, can show.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit import cases, exact
from tempriv.audit import confidence as bounds
from tempriv.audit.binning import Statistic, log_ratio, smooth_ratio, statistics
from tempriv.audit.confidence import Counts, Floats, Score
from tempriv.data.series import EMPTY
from tempriv.errors import require
from tempriv.mechanisms.base import KeyedNoise, Mechanism, SeriesState
from tempriv.mechanisms.domains import Integers, OpaqueRows
from tempriv.privacy.guarantees import Approximate, Concentrated, Guarantee, Loss
from tempriv.privacy.units import Example
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key, SeriesKey
from tempriv.sampling.keystream import StepRange

RUNS = 1_000_000
CONFIDENCE = 0.999
MIN_RUNS = 1_000
BATCH_NUMBERS = 1 << 20  # numbers held at a time while runs are counted
CHOOSING_ALPHAS = (1e-10, 1e-3)
"""Alpha of bounds that only choose an event. Of many events some look better than they are, rare
ones above all. A small alpha asks for large counts and seldom errs, a larger one finds rare events;
one event is chosen by each."""

CHOOSING_SCORE_ALPHA = 0.01
MAX_TEACHING_RUNS = 500_000
CLIPS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)

Pair = tuple[Example, Example]
Both = tuple[Counts, Counts]
"""How often each cell came up for x and for y."""
Runner = Callable[[Example, int, SeriesKey], npt.NDArray[Any]]
"""Gives the outputs of so many independent runs on an example, one a row, from a key of its own."""

Progress = Callable[[int], None]
Numbers = npt.NDArray[Any]


def outputs(mechanism: Mechanism, example: Example, runs: int, key: SeriesKey) -> Numbers:
    """The grid outputs of ``runs`` series that all hold the example: (runs, rows, columns).

    A mechanism that says which rows are released, repeated or empty gives that away too, so it is
    one more column. A person's series come one after the other. Of rows that are moved, readings
    are numbers and an empty slot is NaN; where the guarantee is about one slot seen by itself, the
    last slot is all there is, without its status.

    Parameters:
        mechanism: what is audited.
        example: an input.
        runs: how many.
        key: of the noise.
    """
    if isinstance(mechanism.domain, OpaqueRows):
        return _moved(mechanism, example, runs, key)
    many = mechanism.unit.series_of(example)
    parts = [
        _outputs(mechanism, series, runs, SeriesKey(key.cipher_key(f"series {i}"), 0))
        for i, series in enumerate(many)
    ]
    return np.concatenate(parts, axis=1)


def _moved(mechanism: Mechanism, example: Example, runs: int, key: SeriesKey) -> Floats:
    domain, length = mechanism.domain, len(example)
    assert isinstance(domain, OpaqueRows)
    total = length + domain.latency
    readings = np.array([*example, np.nan], dtype=np.float64)  # the last stands for none
    part = max(1, BATCH_NUMBERS // max(total, mechanism.memory_size))
    parts = []
    for start in range(0, runs, part):
        count = min(part, runs - start)
        draw = KeyedNoise([StepRange(key, start * total, count * total)])
        state = SeriesState.fresh(mechanism, count, total)
        state.missing.reshape(count, total)[:, length:] = True
        ages = mechanism.perturb(np.zeros((count * total, 0), dtype=np.int64), draw, state)
        ages = ages.reshape(count, total)
        newest = length - 1 if mechanism.takes_whole else np.arange(total)
        shown = readings[np.where(ages < 0, length, newest - ages)][:, domain.latency :]
        status = np.where(ages < 0, EMPTY, state.status.reshape(count, total))[:, domain.latency :]
        if cases.claimed_unit(mechanism).single_rows:
            parts.append(shown[:, -1:, None])
        else:
            parts.append(np.stack([shown, status], axis=2))
    return np.concatenate(parts)


def _outputs(mechanism: Mechanism, example: Example, runs: int, key: SeriesKey) -> Integers:
    latency = mechanism.domain.latency
    total = len(example) + latency
    taken, state = exact.to_the_end(mechanism, example, runs)
    # one long run of steps: each row has words of its own, so the series are independent
    out = mechanism.perturb(taken, KeyedNoise([StepRange(key, 0, runs * total)]), state)
    if mechanism.has_status:
        out = np.where((state.status == EMPTY)[:, None], 0, out)
        out = np.concatenate([out, state.status[:, None].astype(np.int64)], axis=1)
    return np.asarray(out.reshape(runs, total, -1)[:, latency:])


@dataclass(frozen=True)
class Guess:
    """What the guesser names in each cell of a statistic: x (1), y (-1) or nothing (0)."""

    statistic: Statistic
    names: Integers

    def is_like(self, other: Guess | Scored) -> bool:
        """Whether it always names the same as the ``other``."""
        return (
            isinstance(other, Guess)
            and other.statistic is self.statistic
            and np.array_equal(other.names, self.names)
        )

    def bound(self, loss: Loss, counts: Both, alpha: float) -> float:
        """What the hits and misses show, each out of its runs.

        Parameters:
            loss: what is guaranteed.
            counts: how often each cell came up for x and for y.
            alpha: the probability that the bound is wrong.
        """
        ones, others = counts
        x, y = self.names > 0, self.names < 0
        hits = int(ones[x].sum() + others[y].sum())
        misses = int(others[x].sum() + ones[y].sum())
        sizes = int(ones.sum()), int(others.sum())
        if x.any() and y.any():
            sizes = sum(sizes), sum(sizes)
        elif y.any():
            sizes = sizes[::-1]
        return float(_bound(loss, hits, misses, sizes, alpha))


@dataclass(frozen=True)
class Scored:
    """A score for each cell of a statistic, of x against y or the other way round."""

    statistic: Statistic
    score: Score
    turned: bool

    def bound(self, loss: Loss, counts: Both, alpha: float) -> float:
        """What the means show of the ``loss`` by ``counts``, but for a probability of ``alpha``."""
        ones, others = counts[::-1] if self.turned else counts
        return bounds.rho_of_score(self.score, ones, others, alpha)


@dataclass(frozen=True)
class Evidence:
    """What the counted runs say about a pair; ``at_least`` is wrong with probability alpha."""

    loss: Loss
    pair: Pair
    ways: tuple[Guess | Scored, ...]
    counted: tuple[Both, ...]

    def at_least(self, alpha: float) -> float:
        """The loss (epsilon at the guaranteed delta, or rho) that any true guarantee must allow.

        Parameters:
            alpha: the probability that the bound is wrong.
        """
        # whichever way shows most is believed, so each has its part of alpha
        part = alpha / len(self.ways)
        return max(
            way.bound(self.loss, counts, part)
            for way, counts in zip(self.ways, self.counted, strict=True)
        )

    @property
    def telling(self) -> str:
        """The name of the statistic that showed most."""
        shown = zip(self.ways, self.counted, strict=True)
        best = max(shown, key=lambda way: way[0].bound(self.loss, way[1], 0.05))
        return best[0].statistic.name

    def p_value(self, claimed: float) -> float:
        """The smallest alpha at which the bound would be above the claim, 1e-15 at the least.

        Parameters:
            claimed: the loss of the guarantee.
        """
        low, high = -15.0, 0.0  # decimal logarithms
        if self.at_least(10**low) > claimed:
            return 10**low
        while high - low > 1e-3:
            middle = (low + high) / 2
            low, high = (low, middle) if self.at_least(10**middle) > claimed else (middle, high)
        return float(10**high)


def _bound(loss: Loss, hits: Any, misses: Any, trials: tuple[Any, Any], alpha: float) -> Floats:
    if isinstance(loss, Concentrated):
        return bounds.rho_of_event(hits, misses, trials, alpha)
    delta = loss.delta if isinstance(loss, Approximate) else 0.0
    return bounds.epsilon_at_least(hits, misses, trials, delta, alpha)


def most(loss: Loss, runs: int, confidence: float = CONFIDENCE) -> float:
    """The largest loss that so many runs could show, if every guess were right.

    Parameters:
        loss: what is guaranteed.
        runs: how many.
        confidence: that of the answer.
    """
    counted, part = runs // 2, (1 - confidence) / (len(CHOOSING_ALPHAS) + 1)
    if isinstance(loss, Concentrated):
        counted //= 2  # of each input
    return float(_bound(loss, counted, 0, (counted, counted), part))


@dataclass(frozen=True)
class Candidate:
    """A statistic of a pair's outputs, with what it gave on the runs that teach and that choose."""

    statistic: Statistic
    learned: Both
    tried: Both

    def best_guess(self, loss: Loss, alpha: float) -> tuple[float, Guess]:
        """The best event among those where the ratio, or the number itself, is beyond a value.

        Parameters:
            loss: what is guaranteed.
            alpha: the probability that the bound is wrong.
        """
        cells = self.statistic.cells
        orders = [np.argsort(-log_ratio(*self.learned), kind="stable")]
        if self.statistic.ordered:
            orders += [np.arange(cells), np.arange(cells)[::-1]]
        choices = [(0.0, np.zeros(cells, dtype=np.int64))]
        for order in orders:
            named_x = self._best_start(loss, order, self.tried, alpha)
            named_y = self._best_start(loss, order[::-1], self.tried[::-1], alpha)
            choices += [named_x, (named_y[0], -named_y[1])]
            if not isinstance(loss, Concentrated) and not (named_x[1] * named_y[1]).any():
                both = Guess(self.statistic, named_x[1] - named_y[1])
                choices.append((both.bound(loss, self.tried, alpha), both.names))
        value, names = max(choices, key=lambda choice: choice[0])
        return value, Guess(self.statistic, names)

    def _best_start(
        self, loss: Loss, order: Integers, tried: Both, alpha: float
    ) -> tuple[float, Integers]:
        """The first cells of an order, up to the one where their bound is best."""
        hits, misses = (np.cumsum(counts[order]) for counts in tried)
        bound = _bound(loss, hits, misses, (hits[-1], misses[-1]), alpha)
        names = np.zeros(len(order), dtype=np.int64)
        names[order[: int(bound.argmax()) + 1]] = 1
        return float(bound.max()), names

    def best_score(self, loss: Concentrated) -> tuple[float, Scored]:
        """The log ratio, cut off where its size costs more than it shows.

        Parameters:
            loss: what is guaranteed.
        """
        choices = []
        estimates = [log_ratio, smooth_ratio] if self.statistic.ordered else [log_ratio]
        for turned, estimate in itertools.product((False, True), estimates):
            ones, others = self.learned[::-1] if turned else self.learned
            ratio = estimate(ones, others)
            for clip in CLIPS:
                score = Score.of(np.clip(ratio, -clip, clip), ones, others)
                scored = Scored(self.statistic, score, turned)
                choices.append((scored.bound(loss, self.tried, CHOOSING_SCORE_ALPHA), scored))
        return max(choices, key=lambda choice: choice[0])


def _best_ways(loss: Loss, candidates: Sequence[Candidate]) -> list[tuple[float, Guess | Scored]]:
    """A cautious guess, a bold one, and a score for rho; with what each would show."""
    ways: list[tuple[float, Guess | Scored]] = []
    for alpha in CHOOSING_ALPHAS:
        guesses = [candidate.best_guess(loss, alpha) for candidate in candidates]
        value, guess = max(guesses, key=lambda choice: choice[0])
        if not any(guess.is_like(way) for _, way in ways):
            ways.append((value, guess))
    if isinstance(loss, Concentrated):
        scores = [candidate.best_score(loss) for candidate in candidates]
        ways.append(max(scores, key=lambda choice: choice[0]))
    return ways


def output_rows(outputs: Any, runs: int) -> Floats:
    """The ``outputs`` of so many ``runs`` as a row of numbers each."""
    made = np.asarray(outputs)
    require(
        made.shape[:1] == (runs,),
        f"outputs of shape {made.shape} for {runs} runs: must have one row for each run",
    )
    return np.ascontiguousarray(made.reshape(runs, -1), dtype=np.float64)


class _Runs:
    """Runs of a mechanism on the inputs of pairs, each with noise of its own."""

    def __init__(self, run: Runner, key: Key, progress: Progress):
        self._run, self._key, self._progress = run, key, progress
        self._used, self._width = 0, 1

    def fresh_key(self) -> SeriesKey:
        self._used += 1
        return self._key.series("statistical audit", f"part {self._used}")

    def take(self, example: Example, runs: int) -> Floats:
        """The outputs of so many runs, a row of numbers each.

        Parameters:
            example: an input.
            runs: how many.
        """
        rows = output_rows(self._run(example, runs, self.fresh_key()), runs)
        self._progress(runs)
        self._width = max(rows.shape[1], 1)
        return rows

    def candidates(self, pair: Pair, runs: int) -> list[Candidate]:
        """What to look at, half of the runs to teach and half to choose by.

        Parameters:
            pair: of neighboring inputs.
            runs: how many.
        """
        taught, tried = ([self.take(example, runs // 4) for example in pair] for _ in range(2))
        return [
            Candidate(
                statistic, *((statistic.count(x), statistic.count(y)) for x, y in (taught, tried))
            )
            for statistic in statistics(*taught)
        ]

    def count(self, pair: Pair, runs: int, looked_at: Sequence[Statistic]) -> list[Both]:
        """How often each cell came up for either input, a fair coin saying which goes in.

        Parameters:
            pair: of neighboring inputs.
            runs: how many.
            looked_at: what is counted.
        """
        part = max(1, BATCH_NUMBERS // self._width)
        totals = [
            [np.zeros(statistic.cells, dtype=np.int64) for _ in pair] for statistic in looked_at
        ]
        for start in range(0, runs, part):
            size = min(part, runs - start)
            coins = distributions.draw(
                distributions.Bernoulli(Fraction(1, 2)),
                [StepRange(self.fresh_key(), 0, size)],
                "coin",
            )
            ones = int(coins.sum())
            for side, share in enumerate((ones, size - ones)):
                if share > 0:
                    made = self.take(pair[side], share)
                    for statistic, total in zip(looked_at, totals, strict=True):
                        total[side] += statistic.count(made)
        return [(ones, others) for ones, others in totals]


def _gather(
    run: Runner,
    pairs: Sequence[Pair],
    loss: Loss,
    runs: int,
    key: Key | None,
    progress: Progress = lambda runs: None,
) -> Evidence:
    """Run the pairs and count, ``runs`` runs in all.

    Some runs teach what to look at, as many choose the statistic and the event by the bound that
    they would give: an eighth of all each. If there are several pairs, another eighth chooses the
    one to go on with. The other runs are counted, once.
    """
    source = _Runs(run, key or Key.generate(), progress)
    eighth, used = min(runs // 8, MAX_TEACHING_RUNS), 0
    pair = pairs[0]
    if len(pairs) > 1:
        scouts = eighth // (4 * len(pairs)) * 4
        worth = [_best_ways(loss, source.candidates(tried_pair, scouts)) for tried_pair in pairs]
        pair = pairs[int(np.argmax([max(value for value, _ in ways) for ways in worth]))]
        used = scouts * len(pairs)
    candidates = source.candidates(pair, eighth // 2 * 4)
    ways = tuple(way for _, way in _best_ways(loss, candidates))
    left = runs - used - eighth // 2 * 4
    counted = source.count(pair, left, [way.statistic for way in ways])
    return Evidence(loss, pair, ways, tuple(counted))


@dataclass(frozen=True)
class StatisticalVerdict:
    """A lower bound on the loss beside the guarantee, and whether the two can both be true."""

    measure: str
    claimed: float
    delta: float
    found: float
    confidence: float
    p_value: float
    runs: int
    pairs: int
    worst: Pair
    statistic: str
    holds: bool

    @property
    def sentence(self) -> str:
        at = f" at delta = {self.delta:g}" if self.delta else ""
        sure = f"{100 * self.confidence:.6g} %"
        shown = (
            f"claimed {self.measure} = {self.claimed:.6g}{at}, at least {self.found:.4g} with "
            f"confidence {sure} ({self.runs:,} runs)"
        )
        if not self.holds:
            least = "below " if self.p_value <= 1e-15 else ""
            return f"{shown}: CLAIM BROKEN (p-value {least}{self.p_value:.2g})"
        return f"{shown}: consistent with the claim"


def audit(
    mechanism: Mechanism | Runner,
    loss: Loss | None = None,
    pairs: Iterable[Pair] | None = None,
    *,
    runs: int = RUNS,
    confidence: float = CONFIDENCE,
    key: Key | None = None,
    progress: Progress = lambda runs: None,
) -> StatisticalVerdict:
    """Test a guarantee: a mechanism's own, or ``loss`` for any function (example, runs, key).

    Parameters:
        mechanism: what is audited, or a function (example, runs, key).
        loss: in place of the mechanism's own.
        pairs: of neighboring inputs; those that are farthest apart by default.
        runs: how many.
        confidence: that of the answer.
        key: of the noise.
        progress: called with the number of runs done.

    Guarantees:
        - a true guarantee is called broken with probability at most 1 - confidence;
        - nothing is said for a guarantee that is not: a loss that was not found may be there.

    >>> from tempriv.mechanisms.value.randomized_response import RandomizedResponse
    >>> answer = RandomizedResponse(epsilon=1.0, categories=("no", "yes"))
    >>> verdict = audit(answer, runs=20_000, key=Key.from_seed(1))
    >>> verdict.holds, 0.9 < verdict.found <= 1
    (True, True)
    """
    run, tested, tried = _taken(mechanism, loss, pairs, runs, confidence)
    claimed = tested.rho if isinstance(tested, Concentrated) else tested.epsilon
    reach = most(tested, runs, confidence)
    require(
        claimed < reach,
        f"{tested}: {runs:,} runs cannot show a loss above {reach:.4g}, so they could not break "
        "this claim; use more of them",
    )
    evidence = _gather(run, tried, tested, runs, key, progress)
    alpha = 1 - confidence
    shown = evidence.at_least(alpha)
    return StatisticalVerdict(
        measure="rho" if isinstance(tested, Concentrated) else "epsilon",
        claimed=claimed,
        delta=tested.delta if isinstance(tested, Approximate) else 0.0,
        found=shown,
        confidence=confidence,
        p_value=evidence.p_value(claimed),
        runs=runs,
        pairs=len(tried),
        worst=evidence.pair,
        statistic=evidence.telling,
        holds=not shown > claimed,
    )


def epsilon_at_least(
    mechanism: Mechanism | Runner,
    pair: Pair,
    *,
    delta: float = 0.0,
    runs: int = RUNS,
    confidence: float = CONFIDENCE,
    key: Key | None = None,
) -> float:
    """With that confidence, any (epsilon, delta) that is true for the pair has at least this.

    Parameters:
        mechanism: what is audited, or a function (example, runs, key).
        pair: of neighboring inputs.
        delta: of the guarantee.
        runs: how many.
        confidence: that of the answer.
        key: of the noise.
    """
    run, loss, pairs = _taken(mechanism, Approximate(0.0, delta), [pair], runs, confidence)
    evidence = _gather(run, pairs, loss, runs, key)
    return evidence.at_least(1 - confidence)


def _taken(
    mechanism: Mechanism | Runner,
    loss: Loss | None,
    pairs: Iterable[Pair] | None,
    runs: int,
    confidence: float,
) -> tuple[Runner, Loss, list[Pair]]:
    """How to run it, what is guaranteed, and which pairs to try."""
    require(0.5 < confidence < 1, f"confidence={confidence}: must be above 0.5 and below 1")
    run, tested, tried = _known(mechanism, loss, pairs)
    require(bool(tried), "pairs: at least one pair of neighboring inputs is needed")
    least = MIN_RUNS * len(tried)
    require(runs >= least, f"runs={runs}: must be at least {least} for {len(tried)} pairs")
    return run, tested, tried


def _known(
    mechanism: Mechanism | Runner, loss: Loss | None, pairs: Iterable[Pair] | None
) -> tuple[Runner, Loss, list[Pair]]:
    guarantee = getattr(mechanism, "guarantee", None)
    if guarantee is None:
        require(callable(mechanism), "mechanism: must be a mechanism, or (example, runs, key)")
        require(loss is not None and pairs is not None, "a function needs its loss and its pairs")
        assert loss is not None and pairs is not None
        return mechanism, loss, list(pairs)  # type: ignore[return-value]
    known: Any = mechanism
    if loss is None:
        require(
            isinstance(guarantee, Guarantee), "nothing is guaranteed, so there is nothing to audit"
        )
        loss = guarantee.loss
    tried = cases.worst_pairs(known) if pairs is None else list(pairs)
    return lambda example, runs, key: outputs(known, example, runs, key), loss, tried
