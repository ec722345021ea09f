"""What simulated devices hold and draw with: series, shares and keyed noise by device number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tempriv.local.frequency.base import Bytes, Integers
from tempriv.sampling.keys import SeriesKey
from tempriv.sampling.keystream import Keystream, StepRange

Floats = npt.NDArray[np.float64]
POOL_SERIES = 24


@dataclass(frozen=True)
class DeviceKeystreams:
    """Keystreams of devices by their rising numbers: the number is the step of a key chain."""

    chain: SeriesKey
    numbers: Integers

    def __call__(self, purpose: str) -> Keystream:
        """Return the keystream of all these devices for one purpose."""
        first, last = int(self.numbers[0]), int(self.numbers[-1])
        stream = Keystream([StepRange(self.chain, first, last - first + 1)], purpose)
        return stream.rows(self.numbers - first)


Reports = Callable[[Integers, DeviceKeystreams], Bytes]


class SimulatedDevices(Protocol):
    """Devices that are told apart by their numbers only."""

    def choices(self, purpose: str, weights: Floats, numbers: Integers) -> Integers:
        """Which of some things each device has, one as often as its weight says.

        Parameters:
            purpose: name of the draw.
            weights: how often each thing comes.
            numbers: of the devices.
        """
        ...


def falling_weights(count: int) -> Floats:
    """Weights 1, 1/2, 1/3, ...: the first is the most frequent.

    Parameters:
        count: number of weights.
    """
    return 1 / np.arange(1, count + 1)


def series_pool(readings: int) -> Floats:
    """A pool of series from -1 to 1: waves, ramps, steps and humps at different phases.

    Parameters:
        readings: length of each series.
    """
    time = np.arange(readings) / max(1, readings)
    rows = []
    for i in range(POOL_SERIES):
        phase = (time + (i // 4) / (POOL_SERIES // 4)) % 1.0
        forms: list[Any] = [
            np.sin(2 * math.pi * phase),
            2 * phase - 1,
            np.where(phase < 0.5, -1.0, 1.0),
            np.exp(-((phase - 0.5) ** 2) / 0.02) * 2 - 1,
        ]
        rows.append(forms[i % 4])
    return np.array(rows)
