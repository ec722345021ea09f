"""Memoized answers from their definition. Nothing here uses the package."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def reports(values: Floats, choices: int, noise: list[Integers]) -> Floats:
    """One column of reports: noise for every truth, and for the second response if there is one.

    The first row's noise says what is answered to each truth from then on.
    """
    permanent = {truth: (truth + int(noise[truth][0])) % choices for truth in range(choices)}
    second = noise[choices] if len(noise) > choices else np.zeros(len(values), dtype=np.int64)
    out = []
    for value, shift in zip(values[:, 0].tolist(), second.tolist(), strict=True):
        # what is no category counts as the last
        truth = math.floor(value) if 0 <= value < choices else choices - 1
        out.append(float((permanent[truth] + shift) % choices))
    return np.array(out)[:, None]
