"""Made-up data of the kinds that studies read, so that they run without the real ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tempriv.sampling.keys import Key, simulation
from tempriv.studies.common import uniform, uniform_integers
from tempriv.studies.landmark.data import (
    CENTER,
    PRINTED_THRESHOLDS,
    SHARES,
    LandmarkInputs,
    inputs_of,
)
from tempriv.studies.privshape import data as privshape
from tempriv.studies.privshape.data import (
    CLASSES_OF_THE_CODE,
    SYMBOLS_SAX,
    SYMBOLS_STRENGTH,
    TRACE_SAX,
    TRACE_STRENGTH,
    Labelled,
    Task,
    made,
)
from tempriv.studies.sppa import data as sppa
from tempriv.studies.sppa.data import Activities, SppaInputs
from tempriv.studies.tldp.data import Stock, TldpInputs

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def landmark_inputs(entries: int, seed: int = 0) -> LandmarkInputs:
    """Made-up data of the same kinds, so that everything can be run without the real ones."""
    # 40 contacts, the first the most frequent; a taxi that stands now and then
    contacts = (40 * uniform("contacts", entries, seed=seed) ** 2).astype(np.int64)
    energy = np.interp(uniform("energy", entries, seed=seed), SHARES, PRINTED_THRESHOLDS)
    drives = uniform("drives", entries // 20 + 1, seed=seed) < 0.6
    moves = 2 * uniform("moves", entries, 2, seed=seed) - 1
    moves *= np.where(np.repeat(drives, 20)[:entries], 0.01, 0.0005)[:, None]
    places = np.array(CENTER) + np.cumsum(moves, axis=0)
    seconds = np.arange(entries, dtype=np.float64) * 177
    return inputs_of(contacts, energy, places, seconds)


def sppa_inputs(series: int, steps: int, seed: int = 0) -> SppaInputs:
    """Made-up data of the same kinds, so that everything can be run without the real ones."""

    def drawn(name: str, *shape: int) -> Floats:
        """Numbers from -1 to 1 for a ``name``."""
        return 2 * uniform(name, *shape, seed=seed) - 1

    def taxis(name: str) -> tuple[Floats, ...]:
        """Ways of taxis for a ``name``."""
        # turns now and then, at a speed that changes
        turns = np.cumsum(drawn(f"{name} turns", series, steps) ** 5, axis=1)
        speeds = 100 * (1 + drawn(f"{name} speeds", series, steps))
        moves = np.stack([speeds * np.cos(turns), speeds * np.sin(turns)], axis=2)
        return tuple(np.cumsum(moves, axis=1))

    def gazes() -> tuple[Floats, ...]:
        places = 0.5 + 0.4 * drawn("places", series, steps // 10 + 1, 2)
        still = np.repeat(places, 10, axis=1)[:, :steps]
        return tuple(still + 0.01 * drawn("trembling", series, steps, 2))

    def phone() -> tuple[Activities, ...]:
        streams = []
        times = np.arange(4 * steps)[:, None]
        labels = np.repeat([5, 4, 1, 2], steps)
        shaken = drawn("phone", series, 4 * steps, 6)
        for person in range(series):
            size = np.where(labels < 4, 0.4 * labels, 0.02)[:, None]
            swing = np.sin(times * (0.2 + 0.1 * labels[:, None]) + np.arange(6))
            upright = (labels == 5)[:, None] * np.array([1.0, 0, 0, 0, 0, 0])
            streams.append(Activities(size * (swing + 0.3 * shaken[person]) + upright, labels))
        return tuple(streams)

    activities = phone()
    return SppaInputs(
        sppa._porto(taxis("Porto")),
        sppa._shenzhen(taxis("Shenzhen")),
        sppa._gaze(gazes()),
        sppa._phone(activities),
        activities,
    )


def tldp_inputs(days: int, segments: int, steps: int, seed: int = 0) -> TldpInputs:
    """A random walk for prices, and walks about six places for taxis."""

    def coins(name: str, *shape: int) -> Integers:
        """Numbers -1 and 1, each equally likely, for a ``name``."""
        return 2 * uniform_integers(name, 2, *shape, seed=seed, purpose="coin") - 1

    moves = coins("prices", days)
    close = 100 * np.exp(np.cumsum(0.01 * moves))
    steps_taken = coins("taxis", segments, steps, 2)
    angles = np.arange(segments) % 6 * (2 * np.pi / 6)
    centers = 10_000 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    taxis = centers[:, None, :] + 300.0 * np.cumsum(steps_taken, axis=1)
    return TldpInputs(Stock(close, (moves > 0).astype(np.int64)), taxis)


def shape_tasks(people: int, tested: int, seed: int = 0) -> tuple[Task, Task]:
    """Made-up tasks in place of Symbols and Trace: six and three bent lines with small noise."""
    bends = {
        1: (0.0, 1.5, -1.5, 0.5),
        2: (1.0, -1.5, 0.5, 1.5),
        3: (-1.5, 1.5, 0.5, 1.0),
        4: (-1.5, 0.5, 0.7, 1.0),
        5: (0.5, -1.0, 1.5, -1.0),
        6: (1.5, 0.0, -1.5, 1.0),
    }
    generator = simulation(Key.from_seed(seed), "stand-in")

    def originals(classes: tuple[int, ...], length: int) -> Labelled:
        """Ten bent lines of some ``length`` for each of the ``classes``."""
        labels = np.repeat(classes, 10)
        heights = np.array([bends[label] for label in labels.tolist()])
        heights = heights + 0.1 * generator.standard_normal(heights.shape)
        at = np.tile(np.linspace(0, heights.shape[1] - 1, length), (len(labels), 1))
        return Labelled(privshape._at_times(heights, at), labels.astype(np.int64))

    sizes = (people, tested, seed, True)
    return (
        made("Symbols", originals((1, 2, 3, 4, 5, 6), 398), SYMBOLS_SAX, SYMBOLS_STRENGTH, *sizes),
        made("Trace", originals(CLASSES_OF_THE_CODE, 275), TRACE_SAX, TRACE_STRENGTH, *sizes),
    )
