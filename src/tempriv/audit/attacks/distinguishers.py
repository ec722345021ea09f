"""Observers who have seen many outputs of two inputs, and say of a further one which it was from.

An observer gives every output a score, above zero where it speaks for the first input. Where the
law of the outputs is known the score is their log ratio, and nobody can do better. Otherwise it is
learned from runs: what to look at from some of them, what that says from others, and which of many
ways of looking is best from others again. None of these is judged by, so what is learned by heart
does not help.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit import exact
from tempriv.audit.binning import (
    FEW,
    FINE,
    BinEdges,
    Statistic,
    log_ratio,
    smooth_ratio,
    statistics,
)
from tempriv.data.series import Block
from tempriv.errors import extra_packages
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.mechanisms.value.gaussian import Gaussian
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.sampling.distributions import DiscreteLaplace, Distribution

Floats = npt.NDArray[np.float64]
Both = tuple[Floats, Floats]
"""Outputs of the first input and of the second, a row of numbers for each run."""

LAW = "the law of the noise"
NOTHING = "nothing: every output was the same"
EVERY_DRAW = "every draw of the noise, tried on both"
SEEN = 1e-6  # of the range of values: what is nearer is taken for equal
RARELY = 1e-6  # of the noise, what is not tried
MOST_DRAWS = 1 << 20
COPIES = 1 << 15  # of a series, tried at a time
CERTAIN = 700.0  # the score where the other input cannot have given the output

NEIGHBORS = 8  # simulated outputs that a surface is laid through
MOST_NEAR = 3_000  # simulated outputs of an input that distances are measured to
WIDEST = 64  # numbers of an output, where distances between outputs still say something
ROUNDING = 1e-12  # of the spread of a number: nearer than that is the same
FAR = 10.0  # spreads between a number and none


@dataclass(frozen=True)
class Observer:
    """What is looked at, and how much it speaks for the first input."""

    name: str
    score: Callable[[Floats], Floats]


# where the law is known


def by_law(mechanism: Any, inputs: tuple[Block, Block]) -> Observer | None:
    """The log ratio of the outputs' probabilities, where noise is added to each value by itself.

    Normalizing sums are the same for both inputs, so they are left out.
    """
    if any(block.missing.any() for block in inputs) or len(inputs[0]) != len(inputs[1]):
        return None
    if isinstance(mechanism, (Laplace, Gaussian)):
        laws, grids = list(mechanism.laws), list(mechanism.grid)
    elif isinstance(mechanism, RandomizedResponse):
        laws, grids = list(mechanism.laws), [1.0] * len(mechanism.laws)
    elif isinstance(mechanism, NoisyTimes):
        laws, grids = [mechanism.law], [mechanism.grid]
    else:
        return None
    readings = [mechanism.domain.to_grid(block.values).ravel() for block in inputs]
    laws, scale = laws * len(inputs[0]), np.tile(grids, len(inputs[0]))

    def score(outputs: Floats) -> Floats:
        shown = np.rint(outputs[:, 1:] / scale)  # the first number is how many rows there are
        total = np.zeros(len(outputs))
        for j in np.flatnonzero(readings[0] != readings[1]):
            one, other = (_log_weight(laws[j], shown[:, j], reading[j]) for reading in readings)
            total += one - other
        return total

    return Observer(LAW, score)


def _log_weight(law: Any, shown: Floats, reading: int) -> Floats:
    if hasattr(law, "choices"):
        weights = np.log([law.pmf(k) for k in range(law.choices)])
        return np.asarray(weights[(shown - reading).astype(np.int64) % law.choices])
    if isinstance(law, DiscreteLaplace):
        return np.asarray(-np.abs(shown - reading) / float(law.scale))
    return np.asarray(-((shown - reading) ** 2) / (2 * float(law.variance)))


def by_every_draw(mechanism: Any, inputs: tuple[Block, Block]) -> Observer | None:
    """What each window of an output says, where one draw makes all of its numbers.

    Every draw is tried on both inputs by the mechanism's own code. An output that no draw makes of
    an input was not made of it; if both can have made it, their draws' probabilities decide. Values
    are rounded to a millionth of their range, so that nothing hangs on their last bits.
    """
    if not isinstance(mechanism, SamplingPeriod) or mechanism.shift is not None:
        return None
    if any(block.missing.any() for block in inputs) or len(inputs[0]) != len(inputs[1]):
        return None
    reach = math.ceil(-math.log(RARELY) * float(mechanism.laws[0].scale))
    length, w = len(inputs[0]), mechanism.window
    windows = [range(low, min(low + w, length - 1)) for low in range(1, length - 1, w)]
    if 2 * reach >= MOST_DRAWS or not windows:
        return None
    width, columns = mechanism.domain.columns, mechanism.columns
    values = np.concatenate([block.values[:, :columns] for block in inputs])
    grain = SEEN * float(np.ptp(values)) or 1.0
    tables = [_every_draw(mechanism, block, windows, reach, grain) for block in inputs]

    def score(outputs: Floats) -> Floats:
        # a row of the output is its values and its status; the first number is how many there are
        shown = outputs[:, 1:].reshape(len(outputs), length, -1)[:, :, :width]
        total = np.zeros(len(outputs))
        for number, rows in enumerate(windows):
            seen = _bytes(shown[:, rows.start : rows.stop], columns, grain)
            one, other = ([table[number].get(each, 0.0) for each in seen] for table in tables)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.log(one) - np.log(other)
            total += np.clip(np.nan_to_num(ratio, nan=0.0), -CERTAIN, CERTAIN)
        return total

    return Observer(EVERY_DRAW, score)


@dataclass(frozen=True)
class _Given:
    """Hands a mechanism the noise that it is to add: the same for all windows of a series."""

    noise: Integers
    ahead: bool = False

    def __call__(self, law: Any, purpose: str, rows: Integers | None = None) -> Integers:
        assert rows is not None
        return np.repeat(self.noise, len(rows) // len(self.noise))

    def each(self, law: Distribution, purpose: str) -> Any:
        raise NotImplementedError("noise is asked for by window")

    def scalable(self, purpose: str) -> Any:
        raise NotImplementedError("noise is asked for by window")


def _every_draw(
    mechanism: SamplingPeriod, block: Block, windows: list[range], reach: int, grain: float
) -> list[dict[bytes, float]]:
    """For each window, the weight of all draws that give a certain output."""
    late, scale = mechanism.domain.latency, float(mechanism.laws[0].scale)
    total = len(block) + late
    found: list[dict[bytes, float]] = [{} for _ in windows]
    for low in range(-reach, reach + 1, COPIES):
        draws = np.arange(low, min(low + COPIES, reach + 1))
        readings, state = exact.to_the_end(mechanism, tuple(block.values), len(draws))
        made = mechanism.domain.from_grid(mechanism.perturb(readings, _Given(draws), state))
        shown = made.reshape(len(draws), total, -1)[:, late:]
        weights = np.exp(-np.abs(draws) / scale).tolist()
        for table, rows in zip(found, windows, strict=True):
            seen = _bytes(shown[:, rows.start : rows.stop], mechanism.columns, grain)
            for each, weight in zip(seen, weights, strict=True):
                table[each] = table.get(each, 0.0) + weight
    return found


def _bytes(shown: Floats, columns: int, grain: float) -> list[bytes]:
    """Each output as bytes, its values rounded, so that equal ones are found at once."""
    values = np.rint(shown[:, :, :columns] / grain) + 0.0  # -0.0 is 0.0
    rows = np.concatenate([values, shown[:, :, columns:]], axis=2)
    return [row.tobytes() for row in rows]


# where it is learned


def learn(fit: Both, count: Both, choose: Both, others: Sequence[Observer] = ()) -> Observer:
    """The best of many ways to tell two inputs apart; three sets of outputs that share no run.

    ``others`` are observers who have learned already, and are chosen from with the rest.
    """
    varies = np.array([len(np.unique(column)) > 1 for column in np.concatenate(fit).T], np.bool_)
    found = [*others]
    if varies.any():
        parts = [(one[:, varies], other[:, varies]) for one, other in (fit, count)]
        for statistic in _looked_at(parts[0], parts[1]):
            for ratio in _ratios(statistic, parts[1]):
                found.append(Observer(_plainly(statistic.name), _of_columns(ratio, varies)))
    if not found:
        return Observer(NOTHING, lambda outputs: np.zeros(len(outputs)))
    return found[int(np.argmax([success(one.score, choose) for one in found]))]


def _of_columns(
    score: Callable[[Floats], Floats], which: npt.NDArray[np.bool_]
) -> Callable[[Floats], Floats]:
    return lambda outputs: score(outputs[:, which])


def _plainly(name: str) -> str:
    """What is looked at; which of the numbers it is says little to anyone."""
    if name.startswith("output "):
        return "the difference of two outputs" if " - " in name else "one output by itself"
    return name


def success(score: Callable[[Floats], Floats], outputs: Both) -> float:
    """How often an observer is right, the inputs weighing the same; nothing seen is half right."""
    one, other = (np.sign(score(part)) for part in outputs)
    return float(0.5 + (one.mean() - other.mean()) / 4)


def _looked_at(fit: Both, count: Both) -> Iterator[Statistic]:
    yield from statistics(*fit)
    if fit[0].shape[1] <= WIDEST:
        for name, take in _distances(fit):
            # not from the outputs that distances are measured to: each is near to itself
            cuts = BinEdges.of(np.concatenate([take(part) for part in count]), FINE)
            yield Statistic(name, cuts.cells, _cell_of(cuts, take))


def _cell_of(cuts: BinEdges, take: Callable[[Floats], Floats]) -> Callable[[Floats], Any]:
    return lambda outputs: cuts(take(outputs))


def _ratios(statistic: Statistic, count: Both) -> Iterator[Callable[[Floats], Floats]]:
    """The log ratio of each cell as counted, and made to rise or fall throughout."""
    ones, others = (statistic.count(part) for part in count)
    ratios = [log_ratio(ones, others)]
    if statistic.ordered and statistic.cells > FEW:
        ratios.append(smooth_ratio(ones, others))
    for ratio in ratios:
        # cells that neither input was counted in say nothing
        yield _ratio_of(statistic, np.where(ones + others > 0, ratio, 0.0))


def _ratio_of(statistic: Statistic, ratio: Floats) -> Callable[[Floats], Floats]:
    return lambda outputs: ratio[statistic.cell_of(outputs)]


def _distances(fit: Both) -> Iterator[tuple[str, Callable[[Floats], Floats]]]:
    """How much nearer an output is to those of the first input: to one of them, or to a surface.

    Where many numbers are made of one or two draws, the outputs of an input lie on a curve or a
    surface, and other inputs have others. Between neighboring outputs it is all but straight.
    """
    with extra_packages("analysis", "attacks"):
        from scipy.spatial import KDTree

    scale = _Scale.of(np.concatenate(fit))
    clouds = [scale(part[:MOST_NEAR]) for part in fit]
    trees = [KDTree(cloud) for cloud in clouds]

    def nearer(flat: int | None) -> Callable[[Floats], Floats]:
        def take(outputs: Floats) -> Floats:
            points = scale(outputs)
            far = [
                _distance(points, cloud, tree, flat)
                for cloud, tree in zip(clouds, trees, strict=True)
            ]
            return np.asarray(np.log(far[1] + ROUNDING) - np.log(far[0] + ROUNDING))

        return take

    yield "the nearest simulated output", nearer(None)
    for dimensions, name in ((1, "curve"), (2, "surface")):
        if dimensions < min(clouds[0].shape[1], NEIGHBORS - 1, len(clouds[0]), len(clouds[1])):
            yield f"the {name} through simulated outputs", nearer(dimensions)


def _distance(points: Floats, cloud: Floats, tree: Any, flat: int | None) -> Floats:
    """To the nearest of a cloud; or to the line or plane through the nearest ones."""
    count = 1 if flat is None else min(NEIGHBORS, len(cloud))
    far, which = tree.query(points, k=count)
    if flat is None:
        return np.asarray(far)
    near = cloud[which.reshape(len(points), count)]
    middle = near.mean(axis=1)
    along = np.linalg.svd(near - middle[:, None, :], full_matrices=False)[2][:, :flat]
    off = points - middle
    off = off - np.einsum("rfd,rf->rd", along, np.einsum("rfd,rd->rf", along, off))
    return np.asarray(np.linalg.norm(off, axis=1))


@dataclass(frozen=True)
class _Scale:
    """Numbers in units of their spread; a missing one is far from any that is there."""

    middle: Floats
    spread: Floats
    gaps: npt.NDArray[np.bool_]  # which numbers are missing at times

    @classmethod
    def of(cls, outputs: Floats) -> _Scale:
        absent = np.isnan(outputs)
        there = np.maximum((~absent).sum(axis=0), 1)
        middle = np.nansum(outputs, axis=0) / there
        spread = np.sqrt(np.nansum((outputs - middle) ** 2, axis=0) / there)
        return cls(middle, np.where(spread > 0, spread, 1.0), np.asarray(absent.any(axis=0)))

    def __call__(self, outputs: Floats) -> Floats:
        absent = np.isnan(outputs)
        scaled = np.where(absent, 0.0, (outputs - self.middle) / self.spread)
        return np.concatenate([scaled, FAR * absent[:, self.gaps]], axis=1)
