"""Observers who have seen many outputs of two inputs, and say of a further one which it was from.

An observer gives every output a score, above zero where it speaks for the first input. Where the
distribution of the outputs is known the score is their log ratio, and nobody can do better.
Otherwise it is learned from runs: what to look at from some of them, what that says from others,
and which of many ways of looking is best from others again. None of these is judged
by, so what is learned by heart does not help.
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
    MAX_DISTINCT_VALUES,
    SINGLE_CELLS,
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

KNOWN_NOISE = "the distribution of the noise"
NOTHING = "nothing: every output was the same"
EVERY_DRAW = "every draw of the noise, tried on both"
ROUNDED_SHARE = 1e-6  # of the range of values: what is nearer is taken for equal
NOISE_TAIL = 1e-6  # of the noise, what is not tried
MAX_DRAWS = 1 << 20
BATCH_SERIES = 1 << 15  # of a series, tried at a time
MAX_SCORE = 700.0  # the score where the other input cannot have given the output

SURFACE_NEIGHBORS = 8  # simulated outputs that a surface is laid through
MAX_CLOUD_OUTPUTS = 3_000  # simulated outputs of an input that distances are measured to
MAX_DISTANCE_NUMBERS = (
    64  # numbers of an output, where distances between outputs still say something
)
ROUNDING = 1e-12  # of the spread of a number: nearer than that is the same
GAP_SPREADS = 10.0  # spreads between a number and none


@dataclass(frozen=True)
class Observer:
    """What is looked at, and how much it speaks for the first input."""

    name: str
    score: Callable[[Floats], Floats]


# where the distribution is known


def by_distribution(mechanism: Any, inputs: tuple[Block, Block]) -> Observer | None:
    """The log ratio of the outputs' probabilities, where noise is added to each value by itself.

    Normalizing sums are the same for both inputs, so they are left out.

    Parameters:
        mechanism: what is audited.
        inputs: the two, each a block of one series.
    """
    if any(block.missing.any() for block in inputs) or len(inputs[0]) != len(inputs[1]):
        return None
    if isinstance(mechanism, (Laplace, Gaussian)):
        noises, grids = list(mechanism.distributions), list(mechanism.grids)
    elif isinstance(mechanism, RandomizedResponse):
        noises = list(mechanism.distributions)
        grids = [1.0] * len(noises)
    elif isinstance(mechanism, NoisyTimes):
        noises, grids = [mechanism.distribution], [mechanism.time_step]
    else:
        return None
    readings = [mechanism.domain.to_grid(block.values).ravel() for block in inputs]
    noises, scale = noises * len(inputs[0]), np.tile(grids, len(inputs[0]))

    def score(outputs: Floats) -> Floats:
        """How much each of the ``outputs`` speaks for the first input."""
        shown = np.rint(outputs[:, 1:] / scale)  # the first number is how many rows there are
        total = np.zeros(len(outputs))
        for j in np.flatnonzero(readings[0] != readings[1]):
            first, second = (
                _log_weight(noises[j], shown[:, j], reading[j]) for reading in readings
            )
            total += first - second
        return total

    return Observer(KNOWN_NOISE, score)


def _log_weight(noise: Any, shown: Floats, reading: int) -> Floats:
    if hasattr(noise, "choices"):
        weights = np.log([noise.pmf(k) for k in range(noise.choices)])
        return np.asarray(weights[(shown - reading).astype(np.int64) % noise.choices])
    if isinstance(noise, DiscreteLaplace):
        return np.asarray(-np.abs(shown - reading) / float(noise.scale))
    return np.asarray(-((shown - reading) ** 2) / (2 * float(noise.variance)))


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
    reach = math.ceil(-math.log(NOISE_TAIL) * float(mechanism.distributions[0].scale))
    length, w = len(inputs[0]), mechanism.window
    windows = [range(low, min(low + w, length - 1)) for low in range(1, length - 1, w)]
    if 2 * reach >= MAX_DRAWS or not windows:
        return None
    width, columns = mechanism.domain.columns, mechanism.columns
    values = np.concatenate([block.values[:, :columns] for block in inputs])
    grain = ROUNDED_SHARE * float(np.ptp(values)) or 1.0
    tables = [_every_draw(mechanism, block, windows, reach, grain) for block in inputs]

    def score(outputs: Floats) -> Floats:
        """How much each of the ``outputs`` speaks for the first input."""
        # a row of the output is its values and its status; the first number is how many there are
        shown = outputs[:, 1:].reshape(len(outputs), length, -1)[:, :, :width]
        total = np.zeros(len(outputs))
        for number, rows in enumerate(windows):
            seen = _bytes(shown[:, rows.start : rows.stop], columns, grain)
            first, second = (
                [table[number].get(output, 0.0) for output in seen] for table in tables
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.log(first) - np.log(second)
            total += np.clip(np.nan_to_num(ratio, nan=0.0), -MAX_SCORE, MAX_SCORE)
        return total

    return Observer(EVERY_DRAW, score)


@dataclass(frozen=True)
class _Given:
    """Hands a mechanism the noise that it is to add: the same for all windows of a series."""

    noise: Integers
    ahead: bool = False

    def __call__(self, distribution: Any, purpose: str, rows: Integers | None = None) -> Integers:
        assert rows is not None
        return np.repeat(self.noise, len(rows) // len(self.noise))

    def each(self, distribution: Distribution, purpose: str) -> Any:
        """No ``distribution`` for a ``purpose``: noise is drawn once a window."""
        raise NotImplementedError("noise is asked for by window")

    def scalable(self, purpose: str) -> Any:
        """Never asked for by mechanisms that draw once a window, for no ``purpose``."""
        raise NotImplementedError("noise is asked for by window")


def _every_draw(
    mechanism: SamplingPeriod, block: Block, windows: list[range], reach: int, grain: float
) -> list[dict[bytes, float]]:
    """For each window, the weight of all draws that give a certain output."""
    late, scale = mechanism.domain.latency, float(mechanism.distributions[0].scale)
    total = len(block) + late
    tables: list[dict[bytes, float]] = [{} for _ in windows]
    for low in range(-reach, reach + 1, BATCH_SERIES):
        draws = np.arange(low, min(low + BATCH_SERIES, reach + 1))
        readings, state = exact.to_the_end(mechanism, tuple(block.values), len(draws))
        made = mechanism.domain.from_grid(mechanism.perturb(readings, _Given(draws), state))
        shown = made.reshape(len(draws), total, -1)[:, late:]
        weights = np.exp(-np.abs(draws) / scale).tolist()
        for table, rows in zip(tables, windows, strict=True):
            seen = _bytes(shown[:, rows.start : rows.stop], mechanism.columns, grain)
            for output, weight in zip(seen, weights, strict=True):
                table[output] = table.get(output, 0.0) + weight
    return tables


def _bytes(shown: Floats, columns: int, grain: float) -> list[bytes]:
    """Each output as bytes, its values rounded, so that equal ones are found at once."""
    values = np.rint(shown[:, :, :columns] / grain) + 0.0  # -0.0 is 0.0
    rows = np.concatenate([values, shown[:, :, columns:]], axis=2)
    return [row.tobytes() for row in rows]


# where it is learned


def learn(fit: Both, count: Both, choose: Both, others: Sequence[Observer] = ()) -> Observer:
    """The best of many ways to tell two inputs apart; three sets of outputs that share no run.

    ``others`` are observers who have learned already, and are chosen from with the rest.

    Parameters:
        fit: outputs that say what to look at.
        count: outputs that say what that tells.
        choose: outputs to choose by.
        others: observers who have learned already.
    """
    varies = np.array([len(np.unique(column)) > 1 for column in np.concatenate(fit).T], np.bool_)
    observers = [*others]
    if varies.any():
        parts = [(first[:, varies], second[:, varies]) for first, second in (fit, count)]
        for statistic in _looked_at(parts[0], parts[1]):
            for ratio in _ratios(statistic, parts[1]):
                observers.append(Observer(_plainly(statistic.name), _of_columns(ratio, varies)))
    if not observers:
        return Observer(NOTHING, lambda outputs: np.zeros(len(outputs)))
    return observers[int(np.argmax([success(observer.score, choose) for observer in observers]))]


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
    """How often an observer is right, the inputs weighing the same; nothing seen is half right.

    Parameters:
        score: of each output.
        outputs: of the first input and of the second.
    """
    first, second = (np.sign(score(part)) for part in outputs)
    return float(0.5 + (first.mean() - second.mean()) / 4)


def _looked_at(fit: Both, count: Both) -> Iterator[Statistic]:
    yield from statistics(*fit)
    if fit[0].shape[1] <= MAX_DISTANCE_NUMBERS:
        for name, take in _distances(fit):
            # not from the outputs that distances are measured to: each is near to itself
            cuts = BinEdges.of(np.concatenate([take(part) for part in count]), SINGLE_CELLS)
            yield Statistic(name, cuts.cells, _cell_of(cuts, take))


def _cell_of(cuts: BinEdges, take: Callable[[Floats], Floats]) -> Callable[[Floats], Any]:
    return lambda outputs: cuts(take(outputs))


def _ratios(statistic: Statistic, count: Both) -> Iterator[Callable[[Floats], Floats]]:
    """The log ratio of each cell as counted, and made to rise or fall throughout."""
    ones, others = (statistic.count(part) for part in count)
    ratios = [log_ratio(ones, others)]
    if statistic.ordered and statistic.cells > MAX_DISTINCT_VALUES:
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
    clouds = [scale(part[:MAX_CLOUD_OUTPUTS]) for part in fit]
    trees = [KDTree(cloud) for cloud in clouds]

    def nearer(flat: int | None) -> Callable[[Floats], Floats]:
        """How much nearer outputs are to a surface of ``flat`` dimensions, or to a point."""

        def take(outputs: Floats) -> Floats:
            """How much nearer each of the ``outputs`` is to those of the first input."""
            points = scale(outputs)
            far = [
                _distance(points, cloud, tree, flat)
                for cloud, tree in zip(clouds, trees, strict=True)
            ]
            return np.asarray(np.log(far[1] + ROUNDING) - np.log(far[0] + ROUNDING))

        return take

    yield "the nearest simulated output", nearer(None)
    for dimensions, name in ((1, "curve"), (2, "surface")):
        if dimensions < min(
            clouds[0].shape[1], SURFACE_NEIGHBORS - 1, len(clouds[0]), len(clouds[1])
        ):
            yield f"the {name} through simulated outputs", nearer(dimensions)


def _distance(points: Floats, cloud: Floats, tree: Any, flat: int | None) -> Floats:
    """To the nearest of a cloud; or to the line or plane through the nearest ones."""
    count = 1 if flat is None else min(SURFACE_NEIGHBORS, len(cloud))
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
        """The spread of each number of ``outputs``."""
        absent = np.isnan(outputs)
        counts = np.maximum((~absent).sum(axis=0), 1)
        middle = np.nansum(outputs, axis=0) / counts
        spread = np.sqrt(np.nansum((outputs - middle) ** 2, axis=0) / counts)
        return cls(middle, np.where(spread > 0, spread, 1.0), np.asarray(absent.any(axis=0)))

    def __call__(self, outputs: Floats) -> Floats:
        absent = np.isnan(outputs)
        scaled = np.where(absent, 0.0, (outputs - self.middle) / self.spread)
        return np.concatenate([scaled, GAP_SPREADS * absent[:, self.gaps]], axis=1)
