"""The tables of people that the study scores: real contacts, and made-up homes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tempriv.sampling.keys import Generator
from tempriv.studies.common import Floats, read_columns, require_files

FILES = (Path("copenhagen/bt_contacts_5min.csv"),)
PEOPLE, DAYS, HOURS = 670, 28, 24
SLOTS_IN_HOUR = 12
CONTACTS_HIGH, HOMES_HIGH = 12.0, 20.0
"""The public bounds: twelve slots of five minutes in an hour, and 20 kWh."""
JITTER = 0.1


@dataclass(frozen=True)
class PeopleInputs:
    """The average day of each person, a row of 24 hours.

    Parameters:
        contacts: slots with a contact in an hour.
    """

    contacts: Floats


def read(folder: Path) -> PeopleInputs:
    """Each person's slots with contact per hour over 28 days, taken as their own readings.

    Parameters:
        folder: that holds the files.
    """
    require_files(folder, FILES)
    slot, first, second = read_columns(folder / FILES[0], ("slot", "user_a", "user_b"), np.int64)
    # one contact in a slot is as good as several
    pairs = np.unique(
        np.concatenate([np.stack([slot, first], 1), np.stack([slot, second], 1)]), axis=0
    )
    counts = np.zeros((PEOPLE, DAYS * HOURS))
    hours = np.minimum(pairs[:, 0] // SLOTS_IN_HOUR, DAYS * HOURS - 1)
    np.add.at(counts, (pairs[:, 1], hours), 1)
    return PeopleInputs(counts.reshape(PEOPLE, DAYS, HOURS).mean(axis=1))


def resampled(profiles: Floats, count: int, generator: Generator) -> Floats:
    """So many people, drawn with replacement and each scaled a little; all of them if as many.

    Parameters:
        profiles: a row for each person.
        count: how many.
        generator: of ordinary random numbers.
    """
    if count == len(profiles):
        return profiles
    chosen = generator.integers(0, len(profiles), count)
    scale = np.exp(generator.normal(0, JITTER, (count, 1)))
    return np.asarray(np.clip(profiles[chosen] * scale, 0, CONTACTS_HIGH))


def homes(count: int, generator: Generator) -> Floats:
    """Made-up homes, whose levels are lognormal: a few use many times what most do.

    Parameters:
        count: how many.
        generator: of ordinary random numbers.
    """
    hour = np.arange(HOURS)
    shape = 0.35 + 0.5 * np.exp(-0.5 * ((hour - 19) / 2.5) ** 2)
    shape += 0.25 * np.exp(-0.5 * ((hour - 7.5) / 1.5) ** 2)
    levels = 0.4 * np.exp(generator.normal(0, 0.9, (count, 1)))
    own = np.exp(generator.normal(0, 0.35, (count, HOURS)))
    return np.asarray(np.clip(levels * shape / shape.mean() * own, 0, HOMES_HIGH))
