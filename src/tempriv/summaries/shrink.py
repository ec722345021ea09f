"""What is made of noisy numbers afterwards: shrinkage, order, shares. None of it costs privacy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

GRID = 41  # levels of a prior that are tried, from far below the noise to far above it
DECAYS = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0])


def shrunk(
    noisy: Floats, variance: Floats, log_decays: tuple[Floats, ...]
) -> tuple[Floats, Floats]:
    """The posterior mean and variance of coefficients that fall with their frequencies.

    They are normal with variance e^level prod_i e^(-slope_i log_decay_i), where level and slopes
    have the largest marginal likelihood on a grid.

    Parameters:
        noisy: the coefficients with their noise.
        variance: of the noise of each, above 0.
        log_decays: for each way in which they fall, the logarithm of 1 + frequency of each.
    """
    best, chosen = -np.inf, variance
    spread = float(np.mean(variance))
    power = np.maximum(noisy**2, variance)
    top = float(np.log(max(power.max(), spread))) + 1
    slopes = np.stack(np.meshgrid(*[DECAYS] * len(log_decays), indexing="ij"), -1)
    for slope in slopes.reshape(-1, len(log_decays)):
        shape = np.exp(-sum(s * d for s, d in zip(slope, log_decays, strict=True)))
        levels = np.exp(np.linspace(np.log(spread) - 6, max(top + 3, np.log(spread)), GRID))
        whole = levels[:, None] * shape.ravel()[None, :] + variance.ravel()[None, :]
        likelihood = -0.5 * (np.log(whole) + noisy.ravel()[None, :] ** 2 / whole).sum(1)
        at = int(likelihood.argmax())
        if likelihood[at] > best:
            best, chosen = float(likelihood[at]), levels[at] * shape
    return _mixed(noisy, variance, chosen)


WIDE_SHARE, WIDE = 0.1, 9.0
"""So many coefficients are larger than their frequency tells, by so many times the noise."""


def _mixed(noisy: Floats, variance: Floats, narrow: Floats) -> tuple[Floats, Floats]:
    """The posterior mean and variance where a few coefficients stand out from the rest."""
    wide = narrow + WIDE * variance
    gains = [prior / (prior + variance) for prior in (narrow, wide)]
    densities = [
        share * np.exp(-(noisy**2) / (2 * (prior + variance))) / np.sqrt(prior + variance)
        for share, prior in ((1 - WIDE_SHARE, narrow), (WIDE_SHARE, wide))
    ]
    # where both vanish the wide one is right
    standing_out = np.where(densities[0] > 0, densities[1] / np.maximum(sum(densities), 1e-300), 1)
    gain = gains[0] + standing_out * (gains[1] - gains[0])
    between = standing_out * (1 - standing_out) * ((gains[1] - gains[0]) * noisy) ** 2
    return gain * noisy, gain * variance + between


def onto_simplex(values: Floats) -> Floats:
    """The nearest shares to these ``values``: none below 0, and 1 in all."""
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(falling > over)[-1])
    return np.asarray(np.maximum(values - over[last], 0.0))


def rising(values: Floats, weights: Floats) -> Floats:
    """The nearest sequence to these ``values`` that never falls, by adjacent violators.

    Parameters:
        values: in order.
        weights: how much each counts.
    """
    levels: list[float] = []
    masses: list[float] = []
    counts: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        levels.append(value)
        masses.append(weight)
        counts.append(1)
        while len(levels) > 1 and levels[-2] > levels[-1]:
            mass = masses[-2] + masses[-1]
            levels[-2] = (levels[-2] * masses[-2] + levels[-1] * masses[-1]) / mass
            masses[-2], counts[-2] = mass, counts[-2] + counts[-1]
            del levels[-1], masses[-1], counts[-1]
    return np.asarray(np.repeat(levels, counts))


POWERS = np.linspace(0.0, 12.0, 25)


def peak_counts(noisy: Floats, deviation: float, profile: Floats) -> tuple[Floats, Floats]:
    """How many people peak in each cell: the posterior mean and deviation.

    Most people peak where the mean is high: counts are normal around a multiple of a power of the
    mean, with a variance in proportion. Powers and variances are averaged by their likelihood.

    Parameters:
        noisy: the counts with their noise.
        deviation: of the noise.
        profile: the released mean of each cell above the lower bound.
    """
    whole = max(float(noisy.sum()), deviation)
    relative = np.maximum(profile / max(float(profile.max()), 1e-300), 1e-3)
    levels = np.exp(np.linspace(np.log(deviation) - 4, np.log(whole) + 1, GRID))
    powers = relative[None, :] ** POWERS[:, None]
    shares = (powers / powers.sum(axis=1, keepdims=True))[:, None, :]
    # at least a little in each cell, whatever its mean
    prior = levels[None, :, None] ** 2 * (0.9 * shares + 0.1 / len(noisy))
    variance = prior + deviation**2
    off = noisy - whole * shares
    likelihood = -0.5 * (np.log(variance) + off**2 / variance).sum(axis=2)
    weights = np.exp(likelihood - likelihood.max())[:, :, None]
    weights /= weights.sum()
    means = whole * shares + prior / variance * off
    mean = (weights * means).sum(axis=(0, 1))
    within = prior / variance * deviation**2
    spread = (weights * (within + (means - mean) ** 2)).sum(axis=(0, 1))
    return mean, np.sqrt(spread)
