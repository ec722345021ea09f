"""An attack on release orders: where values tell their own order, sorting undoes any reordering.

A mechanism that moves values in time and keeps them exact hides when a value was read only from
those who cannot tell from the value itself. A counter, a cumulative meter or a steady trend tells:
sorted, the released values stand in their true order again, and what is left to guess is which
readings are missing.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any

import numpy as np

from tempriv.audit.attacks.order_posterior import (
    Integers,
    Known,
    SlotChain,
    Statuses,
    items_of,
    numbers_of,
    spread,
)
from tempriv.data.series import EMPTY, RELEASED, REPEATED
from tempriv.errors import DataError, require
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder, key_distribution, masses
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.sampling.keys import Key

NOISE_TAIL = 1e-5  # of the noise of NoisyOrder, what an attacker does not reckon with
MAX_LAG_STEPS = 500
MAX_EARLY_SHARE = 0.001  # the share of values that may seem released before they were read


def monotone_share(values: Any, window: int = 2) -> float:
    """How near to monotone a column is: the share of pairs of readings that stand in order.

    Pairs are those at most ``window - 1`` steps apart, so 2 looks at single steps; they are in
    order if they go the way that most pairs go. 1 is a counter that always moves: sorting restores
    its order. About 0.5 is no order at all. Equal pairs are not in order, since sorting cannot
    tell them apart, so a constant column has 0. Missing readings are left out.

    Parameters:
        values: a column.
        window: in time steps.

    >>> monotone_share([1, 2, 3, 3, 5]), monotone_share([4, 4, 4]), monotone_share([5, 1, 4, 2])
    (0.75, 0.0, 0.6666666666666666)
    """
    require(
        isinstance(window, int) and window >= 2,
        f"window={window}: must be a whole number of steps >= 2",
    )
    numbers, present = numbers_of(values)
    up = down = pairs = 0
    for apart in range(1, min(window, len(numbers))):
        both = present[apart:] & present[:-apart]
        steps = (numbers[apart:] - numbers[:-apart])[both]
        up, down, pairs = (
            up + int((steps > 0).sum()),
            down + int((steps < 0).sum()),
            pairs + int(both.sum()),
        )
    return max(up, down) / pairs if pairs else 0.0


def known_of(mechanism: Any) -> Known:
    """What the parameters of an order mechanism say about lags and gaps.

    >>> from tempriv.mechanisms.reorder.threshold import Threshold
    >>> known = known_of(Threshold(epsilon=1.0, window=4))
    >>> known.drop_lag, known.past, len(known.probabilities)
    (0, 3, 4)
    """
    if isinstance(mechanism, BlockShuffle):
        length, stays = mechanism.block, mechanism.stays
        # a row that moves is as likely in any other slot of its block
        apart = np.abs(np.arange(1 - length, length))
        chances = (length - apart) * (1 - stays) / (length * (length - 1))
        chances[length - 1] = stays
        blocks = (length, mechanism.offset)
        return Known(probabilities=_floats(chances), least=1 - length, blocks=blocks)
    if isinstance(mechanism, NoisyOrder):
        # about the noise on the row's own time: that of the others evens out
        reach = MAX_LAG_STEPS if mechanism.latency is None else mechanism.latency
        side = masses(key_distribution(mechanism.epsilon, mechanism.window, mechanism.noise), reach)
        beyond = 2 * np.cumsum(side[::-1])[::-1]
        side = side[: max(2, int((beyond > NOISE_TAIL).sum()))]
        chances = np.concatenate([side[:0:-1], side])
        return Known(probabilities=_floats(chances), least=1 - len(side))
    require(
        isinstance(mechanism, (Backward, Forward, Threshold, DualThreshold)),
        f"{type(mechanism).__name__}: does not move readings in time, so there is no order to "
        "restore",
    )
    past, drop_lag, dropped = mechanism.window - 1, None, 0.0
    if isinstance(mechanism, (Threshold, DualThreshold)) and mechanism.extended:
        drop_lag = 0 if isinstance(mechanism, Threshold) else past
        dropped = 1 - mechanism.keep
    return Known(
        probabilities=_floats(mechanism.probabilities),
        repeats=isinstance(mechanism, Backward),
        overwrites=isinstance(mechanism, Forward),
        drop_lag=drop_lag,
        dropped=dropped,
        past=past,
    )


def _floats(chances: Any) -> tuple[float, ...]:
    return tuple(float(chance) for chance in chances)


@dataclass(frozen=True)
class Restored:
    """Of the slots that hold a value, the share whose step of origin was named exactly.

    ``before``: the slot's own step is taken for it. ``sorted``: values are sorted, by somebody who
    does not know the parameters. ``informed``: by somebody who does, and who takes the better of
    sorting and of the likeliest origins (which reckon with noise up to 500 steps).
    """

    slots: int
    before: float
    sorted: float
    informed: float

    @property
    def sentence(self) -> str:
        return (
            f"{100 * self.before:.1f} % of released values still stand at their own step; sorting "
            f"restores {100 * self.sorted:.1f} %, and {100 * self.informed:.1f} % where window and "
            "epsilon are known"
        )


def restore_order(
    released: Any, origins: Any, mechanism: Any, *, status: Statuses | None = None
) -> Restored:
    """Sort released values and see how many origins that gives away.

    ``released`` has a value or a masked entry for each slot; ``origins`` are the true steps of the
    rows in them, to score the guesses and for nothing else. ``status`` tells repeated slots. What
    is ``Known`` of the mechanism can be given in its place.

    >>> pairs = Known(probabilities=(0.2, 0.6, 0.2), least=-1)
    >>> restore_order([20, 10, 30, 40, 60, 50], [1, 0, 2, 3, 5, 4], pairs)
    Restored(slots=6, before=0.3333333333333333, sorted=1.0, informed=1.0)
    """
    known = mechanism if isinstance(mechanism, Known) else known_of(mechanism)
    numbers, present = numbers_of(released)
    origins = np.asarray(origins, dtype=np.int64)
    require(
        origins.shape == numbers.shape,
        f"{len(origins)} origins for {len(numbers)} slots: give one for each",
    )
    require(bool(present.any()), "every slot is empty: nothing was released", DataError)
    slots = np.flatnonzero(present)

    def share(guessed: Integers) -> float:
        """The share of slots whose origin is ``guessed``."""
        return float(np.mean(guessed[slots] == origins[slots]))

    by_sorting = share(guess_by_sorting(released, known, status=status))
    return Restored(
        slots=len(slots),
        before=share(np.arange(len(numbers))),
        sorted=by_sorting,
        informed=max(by_sorting, share(guess_origins(released, known, status=status))),
    )


def try_order(mechanism: Any, values: Any, *, seed: int = 0) -> Restored:
    """Release values by a seed, and attack: how much of their order they would give away.

    It is computed from private values, so the answer is private too.

    >>> from tempriv.mechanisms.reorder.threshold import Threshold
    >>> found = try_order(Threshold(epsilon=5.0, window=10), np.arange(500.0))
    >>> found.before < 0.6, found.informed > 0.95
    (True, True)
    """
    numbers, present = numbers_of(values)
    stream = mechanism.start(Key.from_seed(seed), "attack")
    steps = np.arange(len(numbers))
    parts = [np.ma.filled(part, -1).ravel() for part in (stream.push(steps), stream.finish())]
    origins = np.concatenate(parts).astype(np.int64)
    # rows without a value are moved too, and give nothing to sort
    gone = (origins < 0) | ~present[origins]
    first = np.unique(origins, return_index=True)[1]
    status = np.where(np.isin(steps, first), RELEASED, REPEATED)
    return restore_order(
        np.ma.array(numbers[origins], mask=gone),
        origins,
        mechanism,
        status=np.where(gone, EMPTY, status).astype(np.int8),
    )


def guess_by_sorting(
    released: Any, known: Known, *, status: Statuses | None = None, rising: bool | None = None
) -> Integers:
    """Origins by sorting alone, by somebody who knows the kind of mechanism and no number of it.

    Where every slot without a value is a row that was dropped, the i-th smallest value was read at
    the i-th step with a value; as many of the first empty slots are left to the past as it takes
    for no value to be released before it was read, but for a thousandth of them. Where rows repeat
    or are overwritten, each value is taken for as late as it can be. Where rows may stand at
    earlier steps than their own, the i-th smallest value was read at the i-th step. Whether values
    rise or fall is seen from them, unless said.

    Parameters:
        released: a value or a masked entry for each slot.
        known: what is known of the mechanism.
        status: of each slot.
        rising: whether values rise; seen from them by default.

    >>> threshold = Known(probabilities=(0.5, 0.5), past=1)
    >>> guess_by_sorting(np.ma.array([0, 1, 3, 2], mask=[1, 0, 0, 0]), threshold).tolist()
    [-1, 0, 2, 1]
    """
    items = items_of(released, known.repeats, status, rising)
    first = items.first
    if known.repeats or known.overwrites:
        lags = np.arange(len(first))
        # o_i = min(first_i, o_(i+1) - 1), all at once
        latest = np.minimum.accumulate((first - lags)[::-1])[::-1] + lags
        return spread(items, latest)
    if known.least < 0:
        return spread(items, np.sort(first))
    empty = np.setdiff1d(np.arange(items.length), first)

    def laid(past: int) -> Integers:
        """Slots in order if the first ``past`` empty ones hold rows of the past."""
        return np.sort(np.concatenate([first, empty[:past]]))[: len(first)]

    past = bisect.bisect_left(
        range(len(empty)),
        True,
        key=lambda past: float(np.mean(laid(past) > first)) <= MAX_EARLY_SHARE,
    )
    return spread(items, laid(past))


def guess_origins(
    released: Any, known: Known, *, status: Statuses | None = None, rising: bool | None = None
) -> Integers:
    """The likeliest origin of each slot, for values in true order and known parameters.

    Every increasing assignment of steps to the sorted values is weighed by its probability under
    the mechanism, which is a product over neighbors in that order, and summed up forward and
    backward as in a hidden Markov model. For Backward and Forward that is the exact posterior; for
    Threshold and its kin the distribution of a single lag stands in for the joint one, which
    matters only near the ends: in between every row is accounted for. Where values are out of
    order further than lags allow, the order that lags demand is taken.

    Parameters:
        released: a value or a masked entry for each slot.
        known: what is known of the mechanism.
        status: of each slot.
        rising: whether values rise; seen from them by default.

    >>> guess_origins([20, 10, 40, 30], Known(probabilities=(0.1, 0.8, 0.1), least=-1)).tolist()
    [1, 0, 3, 2]
    """
    items = items_of(released, known.repeats, status, rising)
    chain = SlotChain(items, known)
    return spread(items, chain.likeliest())
