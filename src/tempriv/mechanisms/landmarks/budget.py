"""What the landmark schemes share: noise for a part of epsilon, drawn, added up and checked.

Parts are whole units of epsilon, so that sums of them are exact. A landmark and another reading may
have unlike parts, and a series may go through many; each has its own law of noise.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import numpy as np

from tempriv.errors import DataError, require
from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.domains import Floats, Integers, Numbers
from tempriv.mechanisms.landmarks._kernels import (
    CERTAIN,
    CHOICES,
    NUMBERS,
    PLACES,
    adaptive,
    add_scaled,
    count_spending,
    repeat_last,
)
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.mechanisms.w_event.base import LARGEST_SCALE, SideBySide
from tempriv.privacy.guarantees import Pure
from tempriv.privacy.units import Event, WithinDistance
from tempriv.sampling import distributions
from tempriv.sampling._kernels import Scalable, suited
from tempriv.sampling.distributions import Varying

Over = Laplace | RandomizedResponse | PlanarLaplace

WHOLE = 1 << 40
"""Epsilon in units."""

DIGITS = 6
"""Parts that are found as it goes are rounded down to so many binary digits where each part needs
a law of its own: few laws, and less than a 30th of a part is lost."""

AHEAD = 16  # rows drawn at first for a part that may hold for a long time, or not

NO_WORDS = Scalable(*(np.zeros(0, dtype=kind) for kind in (np.uint64, np.uint64, np.int64)))


def require_over(over: Any) -> None:
    require(
        isinstance(over, Over),
        f"over={type(over).__name__}: must be Laplace, RandomizedResponse or PlanarLaplace, with "
        "all of epsilon",
    )
    require(
        isinstance(over.unit, (Event, WithinDistance)),
        f"over: its unit is {over.unit!r}; must be Event(), one reading: the scheme itself shares "
        "epsilon over readings",
    )


def require_drawable(over: Over, units: int) -> None:
    """Refuse parts too small for any noise."""
    most = max(_tops(over)) / max(units, 1)
    require(
        units >= 1 and most <= LARGEST_SCALE,
        f"a part of epsilon / {WHOLE / max(units, 1):.3g} for a reading: too little for this fine "
        "a grid; give a greater epsilon, a coarser grid, or fewer landmarks",
    )


def _require_enough(over: Over, units: Integers) -> None:
    """The same once landmarks have been counted; how many there are is not told."""
    least = int(units[units > 0].min(initial=WHOLE))
    require(
        max(_tops(over)) / least <= LARGEST_SCALE,
        "a series has too many landmarks for this fine a grid: what is left for each reading is "
        "too little to draw noise for; choose a coarser grid, or a greater epsilon",
        DataError,
    )


@functools.lru_cache(maxsize=256)
def _tops(over: Over) -> tuple[float, ...]:
    """For each column, how wide noise is for one unit: in grid steps, never less than it must be.

    Of categories, which have no width, the inverse of what one unit is worth.
    """
    if isinstance(over, PlanarLaplace):
        exact = [WHOLE / over.law.rate] * 2
    elif isinstance(over, RandomizedResponse):
        exact = [WHOLE / over.share for _ in over.categories]
    else:
        exact = [WHOLE * width / over.share for width in over.domain.widths]
    # rounded up by more than dividing by units can round down
    return tuple(float(top) * (1 + 2.0**-50) for top in exact)


@functools.lru_cache(maxsize=4096)
def _laws(over: Over, units: int) -> tuple[Any, ...]:
    """The noise of a reading that has so many units."""
    part = Fraction(units, WHOLE)
    if isinstance(over, PlanarLaplace):
        return (distributions.PlanarLattice(over.law.rate * part),)
    if isinstance(over, RandomizedResponse):
        return tuple(
            distributions.CategoryFlip(over.share * part, len(names)) for names in over.categories
        )
    return tuple(
        distributions.DiscreteLaplace(width / (over.share * part)) for width in over.domain.widths
    )


def errors_at(over: Over, units: int) -> tuple[float, ...]:
    """The expected error in each column, as ``over`` measures it, for so many units."""
    laws = _laws(over, units)
    if isinstance(over, PlanarLaplace):
        return (over.grid * laws[0].mean_distance,) * 2
    if isinstance(over, RandomizedResponse):
        return tuple(1 - law.keep for law in laws)
    return tuple(grid * law.mean_magnitude for grid, law in zip(over.grid, laws, strict=True))


def origin_of(over: Over) -> Integers:
    """What stands for a last release before there is one: a public constant."""
    form = over.domain
    if isinstance(form, Numbers):
        low, high = form.edges().T
        return np.asarray(np.clip(0, low, high))
    return np.zeros(form.columns, dtype=np.int64)


def _noisy(
    over: Over, units: Integers, readings: Integers, rows: Integers, noise: NoiseSource
) -> Integers:
    """Some rows with noise for the units that each has; for noise that is not simply scaled."""
    if not len(rows):
        return readings  # a block of landmarks only, or of nothing
    parts, which = np.unique(units, return_inverse=True)
    laws = [_laws(over, part) for part in parts.tolist()]
    if isinstance(over, PlanarLaplace):
        return np.asarray(readings + noise(Varying([law for (law,) in laws], which), "place", rows))
    columns = [
        noise(Varying([law[j] for law in laws], which), f"column {j}", rows)
        for j in range(readings.shape[1])
    ]
    return np.asarray((readings + np.stack(columns, axis=1)) % over.domain.sizes)


def _scaled(noise: NoiseSource, rows: int, columns: int) -> tuple[list[Any], Any]:
    sources = [noise.scalable(f"column {j}") for j in range(columns)]
    return sources, SideBySide([source.words for source in sources], rows).joined


def _settle(sources: list[Any], words: Any, rows: int, place: int, scale: float) -> None:
    source = sources[place // rows]
    source.settle(place % rows, scale)
    if isinstance(words, Scalable) and words is not source.words:
        words.settled[place] = source.words.settled[place % rows]


def _finish(over: Over, units: Integers, marks: Integers, state: SeriesState) -> None:
    """Note what was spent, and stop before anything is out if it were more than epsilon."""
    columns = over.domain.columns
    kept = count_spending(units, marks, state.which, WHOLE, columns, state.memory)
    if not kept:
        raise AssertionError("landmarks and another reading would have more than epsilon together")
    loss = over.guarantee.loss
    assert isinstance(loss, Pure)
    state.spent = np.asarray(units * (loss.epsilon / WHOLE), dtype=np.float64)


def spend(
    over: Over,
    readings: Integers,
    units: Integers,
    marks: Integers,
    noise: NoiseSource,
    state: SeriesState,
) -> Integers:
    """Every row with noise for its units; where it has none, the last release again."""
    rows, values = len(readings), np.ascontiguousarray(readings[:, :-1])
    missing = over.domain.missing_after(state.missing[:, :-1])
    units = np.where(missing.all(axis=1), 0, units)  # nothing goes into a row without a reading
    _require_enough(over, units)
    outputs = np.zeros_like(values)
    if isinstance(over, Laplace):
        sources, words = _scaled(noise, rows, values.shape[1])
        tops, at = np.array(_tops(over)), 0
        kernel = suited(add_scaled, words)
        while at < rows:
            at, place, scale = kernel(at, values, units, tops, words, outputs)
            if at < rows:
                _settle(sources, words, rows, place, scale)
    else:
        chosen = np.flatnonzero(units)
        outputs[chosen] = _noisy(over, units[chosen], values[chosen], chosen, noise)
    repeat_last(units, missing, state.which, origin_of(over), state.memory, outputs, state.status)
    _finish(over, units, marks, state)
    return outputs


def sample_or_repeat(
    scheme: Any,
    readings: Integers,
    marks: Integers,
    counts: Integers,
    later: Integers,
    others: Integers,
    noise: NoiseSource,
    state: SeriesState,
) -> Integers:
    """AdaptiveLandmarks: noise is drawn as far as a series' part is known, then a bit further."""
    over, rows = scheme.over, len(readings)
    _require_enough(over, WHOLE // (counts + others))
    values = np.ascontiguousarray(readings[:, :-1])
    missing = over.domain.missing_after(state.missing[:, :-1])
    outputs, units = np.zeros_like(values), np.zeros(rows, dtype=np.int64)
    ends = np.cumsum(state.counts)
    at = ends - state.counts
    asked = np.full(len(at), -1, dtype=np.int64)
    ready, noisy = np.full(rows, -1, dtype=np.int64), np.zeros_like(values)
    scales: Floats = np.zeros(len(at))
    scaled = isinstance(over, Laplace)
    sources, words = _scaled(noise, rows, values.shape[1]) if scaled else ([], NO_WORDS)
    coins = noise.each(distributions.UniformChoice(CERTAIN), "sampling")
    kind = NUMBERS if scaled else PLACES if isinstance(over, PlanarLaplace) else CHOICES
    tops, origin = np.array(_tops(over)), origin_of(over)
    rates = [round(x * (1 << 16)) for x in (scheme.increase, scheme.decrease)]
    kernel = suited(adaptive, coins, words)
    spans = np.full(len(at), AHEAD if noise.ahead else 1, dtype=np.int64)
    before, since = np.zeros(len(at), dtype=np.int64), at.copy()
    while kernel(
        at,
        ends,
        values,
        missing,
        marks,
        later,
        counts + others,
        others,
        WHOLE,
        kind,
        tops,
        float(scheme.kappa),
        rates[0],
        rates[1],
        round(scheme.least * CERTAIN),
        63 if scaled else DIGITS,
        coins,
        scaled,
        words,
        noisy,
        ready,
        origin,
        state.memory,
        outputs,
        state.status,
        units,
        asked,
        scales,
    ):
        waiting = np.flatnonzero(asked >= 0)
        if scaled:
            for s in waiting.tolist():
                _settle(sources, words, rows, int(asked[s]), float(scales[s]))
            continue
        if noise.ahead:
            # as far as the last part held; and further each time that noise ends before the part
            changed = asked[waiting] != before[waiting]
            held = np.maximum(AHEAD, (at - since)[waiting])
            spans[waiting] = np.where(changed, held, 4 * spans[waiting])
            since[waiting] = np.where(changed, at[waiting], since[waiting])
            before[waiting] = asked[waiting]
        lengths = np.minimum(spans[waiting], (ends - at)[waiting])
        first = np.repeat(at[waiting] - np.cumsum(lengths) + lengths, lengths)
        ahead = first + np.arange(len(first))
        ready[ahead] = np.repeat(asked[waiting], lengths)
        noisy[ahead] = _noisy(over, ready[ahead], values[ahead], ahead, noise)
    _finish(over, units, marks, state)
    return outputs
