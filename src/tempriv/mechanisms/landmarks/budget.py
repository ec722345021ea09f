"""What the landmark schemes share: noise for a part of epsilon, drawn, added up and checked.

Parts are whole units of epsilon, so that sums of them are exact. A landmark and another reading may
have unlike parts, and a series may go through many; each has its own
distribution of noise.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tempriv.errors import DataError, UsageError, require
from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.domains import Integers, Numbers
from tempriv.mechanisms.landmarks._kernels import (
    CERTAIN,
    CHOICES,
    NUMBERS,
    PLACES,
    MarkedRows,
    MarkedSeries,
    PartNoise,
    Sampling,
    Spent,
    adaptive,
    add_scaled,
    count_spending,
    repeat_last,
)
from tempriv.mechanisms.numbers import LARGEST_SCALE
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.mechanisms.w_event.base import ScalableColumns
from tempriv.privacy.guarantees import Pure
from tempriv.privacy.units import Event, WithinDistance
from tempriv.sampling._kernels import Scalable, suited
from tempriv.sampling.distributions import (
    CategoryFlip,
    DiscreteLaplace,
    PlanarLattice,
    UniformChoice,
    Varying,
)

if TYPE_CHECKING:
    from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks

Over = Laplace | RandomizedResponse | PlanarLaplace

WHOLE = 1 << 40
"""Epsilon in units."""

PART_DIGITS = 6
"""Parts that are found as it goes are rounded down to so many binary digits where each part needs
a distribution of its own: few of them, and less than a 30th of a part is lost."""

FIRST_ROWS = 16  # drawn at first for a part that may hold for a long time, or not

NO_WORDS = Scalable(*(np.zeros(0, dtype=kind) for kind in (np.uint64, np.uint64, np.int64)))


def require_over(over: object) -> None:
    """Refuse all but a mechanism for single values, with all of epsilon for one reading.

    Parameters:
        over: what was given.
    """
    if not isinstance(over, Over):
        raise UsageError(
            f"over={type(over).__name__}: must be Laplace, RandomizedResponse or PlanarLaplace, "
            "with all of epsilon"
        )
    require(
        isinstance(over.unit, (Event, WithinDistance)),
        f"over: its unit is {over.unit!r}; must be Event(), one reading: the scheme itself shares "
        "epsilon over readings",
    )


def require_drawable(over: Over, units: int) -> None:
    """Refuse parts too small for any noise.

    Parameters:
        over: the mechanism for single values.
        units: the least part.
    """
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
        exact = [WHOLE / over.distribution.rate] * 2
    elif isinstance(over, RandomizedResponse):
        exact = [WHOLE / over.reading_share for _ in over.categories]
    else:
        exact = [WHOLE * width / over.reading_share for width in over.domain.widths]
    # rounded up by more than dividing by units can round down
    return tuple(float(top) * (1 + 2.0**-50) for top in exact)


@functools.lru_cache(maxsize=4096)
def _lattice(over: PlanarLaplace, units: int) -> PlanarLattice:
    return PlanarLattice(over.distribution.rate * Fraction(units, WHOLE))


@functools.lru_cache(maxsize=4096)
def _flips(over: RandomizedResponse, units: int) -> tuple[CategoryFlip, ...]:
    share = over.reading_share * Fraction(units, WHOLE)
    return tuple(CategoryFlip(share, len(names)) for names in over.categories)


def errors_at(over: Over, units: int) -> tuple[float, ...]:
    """The expected error in each column, as a mechanism for single values measures it.

    Parameters:
        over: that mechanism.
        units: the part of epsilon that a reading has.
    """
    if isinstance(over, PlanarLaplace):
        return (over.step * _lattice(over, units).mean_distance,) * 2
    if isinstance(over, RandomizedResponse):
        return tuple(1 - flip.keep for flip in _flips(over, units))
    share = over.reading_share * Fraction(units, WHOLE)
    return tuple(
        grid * DiscreteLaplace(width / share).mean_magnitude
        for grid, width in zip(over.grids, over.domain.widths, strict=True)
    )


def origin_of(over: Over) -> Integers:
    """What stands for a last release before there is one: a public constant.

    Parameters:
        over: the mechanism for single values.
    """
    form = over.domain
    if isinstance(form, Numbers):
        low, high = form.edges().T
        return np.asarray(np.clip(0, low, high))
    return np.zeros(form.columns, dtype=np.int64)


def _noisy(
    over: PlanarLaplace | RandomizedResponse,
    units: Integers,
    readings: Integers,
    rows: Integers,
    noise: NoiseSource,
) -> Integers:
    """Some rows with noise for the units that each has; for noise that is not simply scaled."""
    if not len(rows):
        return readings  # a block of landmarks only, or of nothing
    parts, which = np.unique(units, return_inverse=True)
    if isinstance(over, PlanarLaplace):
        lattices = [_lattice(over, part) for part in parts.tolist()]
        return np.asarray(readings + noise(Varying(lattices, which), "place", rows))
    flips = [_flips(over, part) for part in parts.tolist()]
    columns = [
        noise(Varying(of_column, which), f"column {j}", rows)
        for j, of_column in enumerate(zip(*flips, strict=True))
    ]
    return np.asarray((readings + np.stack(columns, axis=1)) % over.domain.sizes)


def _columns(noise: NoiseSource, values: Integers) -> ScalableColumns:
    """Laplace noise for each of the values."""
    purposes = [f"column {j}" for j in range(values.shape[1])]
    return ScalableColumns(noise, purposes, len(values))


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
    """Every row with noise for its units; where it has none, the last release again.

    Parameters:
        over: the mechanism for single values.
        readings: on the grid, with marks as the last column.
        units: the part of epsilon that each row has.
        marks: 1 at landmarks.
        noise: where randomness comes from.
        state: where the series of the block stand.
    """
    values = np.ascontiguousarray(readings[:, :-1])
    missing = over.domain.missing_after(state.missing[:, :-1])
    units = np.where(missing.all(axis=1), 0, units)  # nothing goes into a row without a reading
    _require_enough(over, units)
    outputs = np.zeros_like(values)
    if isinstance(over, Laplace):
        laplace = _columns(noise, values)
        kernel = suited(add_scaled, laplace.words)
        laplace.run(kernel, values, units, np.array(_tops(over)), outputs)
    else:
        chosen = np.flatnonzero(units)
        outputs[chosen] = _noisy(over, units[chosen], values[chosen], chosen, noise)
    repeat_last(units, missing, state.which, origin_of(over), state.memory, outputs, state.status)
    _finish(over, units, marks, state)
    return outputs


def sample_or_repeat(
    scheme: AdaptiveLandmarks,
    readings: Integers,
    marks: Integers,
    counts: Integers,
    later: Integers,
    others: Integers,
    noise: NoiseSource,
    state: SeriesState,
) -> Integers:
    """AdaptiveLandmarks: noise is drawn as far as a series' part is known, then a bit further.

    Parameters:
        scheme: the settings.
        readings: on the grid, with marks as the last column.
        marks: 1 at landmarks.
        counts: how many landmarks each series has, or may have.
        later: how many of them come after each row.
        others: 1 for series that have other readings.
        noise: where randomness comes from.
        state: where the series of the block stand.
    """
    over, rows = scheme.over, len(readings)
    _require_enough(over, WHOLE // (counts + others))
    values = np.ascontiguousarray(readings[:, :-1])
    missing = over.domain.missing_after(state.missing[:, :-1])
    ends = np.cumsum(state.counts)
    at = ends - state.counts
    asked, scales = np.full(len(at), -1, dtype=np.int64), np.zeros(len(at))
    laplace = _columns(noise, values) if isinstance(over, Laplace) else None
    coins = noise.each(UniformChoice(CERTAIN), "sampling")
    block = MarkedRows(values, missing, marks, later)
    series = MarkedSeries(at, ends, counts + others, others, state.memory, asked, scales)
    sampling = Sampling(
        kind=NUMBERS if laplace else PLACES if isinstance(over, PlanarLaplace) else CHOICES,
        tops=np.array(_tops(over)),
        kappa=float(scheme.kappa),
        increase=round(scheme.increase * (1 << 16)),
        decrease=round(scheme.decrease * (1 << 16)),
        least=round(scheme.least * CERTAIN),
        digits=63 if laplace else PART_DIGITS,
        whole=WHOLE,
        origin=origin_of(over),
    )
    words = NO_WORDS if laplace is None else laplace.words
    drawn = PartNoise(
        laplace is not None, words, np.zeros_like(values), np.full(rows, -1, dtype=np.int64)
    )
    outputs = np.zeros_like(values)
    spent = Spent(outputs, state.status, np.zeros(rows, dtype=np.int64))
    kernel = suited(adaptive, coins, words)
    spans = np.full(len(at), FIRST_ROWS if noise.ahead else 1, dtype=np.int64)
    before, since = np.zeros(len(at), dtype=np.int64), at.copy()
    while kernel(block, series, sampling, coins, drawn, spent):
        waiting = np.flatnonzero(asked >= 0)
        if isinstance(over, Laplace):
            assert laplace is not None
            for s in waiting.tolist():
                laplace.settle(int(asked[s]), float(scales[s]))
            continue
        if noise.ahead:
            # as far as the last part held; and further each time that noise ends before the part
            changed = asked[waiting] != before[waiting]
            held = np.maximum(FIRST_ROWS, (at - since)[waiting])
            spans[waiting] = np.where(changed, held, 4 * spans[waiting])
            since[waiting] = np.where(changed, at[waiting], since[waiting])
            before[waiting] = asked[waiting]
        lengths = np.minimum(spans[waiting], (ends - at)[waiting])
        first = np.repeat(at[waiting] - np.cumsum(lengths) + lengths, lengths)
        ahead = first + np.arange(len(first))
        drawn.ready[ahead] = np.repeat(asked[waiting], lengths)
        drawn.noisy[ahead] = _noisy(over, drawn.ready[ahead], values[ahead], ahead, noise)
    _finish(over, spent.units, marks, state)
    return outputs
