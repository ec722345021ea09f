"""Who is asked which question: a public draw that everybody can repeat."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from tempriv.sampling.keys import fingerprints

AssignmentHashes = npt.NDArray[np.uint64]
ALL = 1 << 64


def assignment_hash(campaign: str, numbers: npt.NDArray[np.int64]) -> AssignmentHashes:
    """The lot of each device in a campaign, uniform from 0 to 2^64 - 1.

    It follows from the id of the campaign and the number of the device, so each device finds its
    own. Whoever begins a campaign may try nonces until the draw suits them: no guarantee rests on
    it.

    >>> assignment_hash("0" * 32, np.array([1, 2]))
    array([4539576928906195236, 2261510932801575504], dtype=uint64)
    """
    key = hashlib.blake2b(f"tempriv lots {campaign}".encode(), digest_size=32).digest()
    places = np.asarray(numbers).astype(np.uint64)
    return fingerprints(key, places, np.zeros(len(places), dtype=np.uint64))


def in_range(lots: AssignmentHashes, low: int, high: int) -> npt.NDArray[np.bool_]:
    """Which lots lie from low on and below high, which may be 2^64."""
    found = lots >= np.uint64(low)
    if high < ALL:
        found &= lots < np.uint64(high)
    return np.asarray(found)


def range_of(begin: float, share: float) -> tuple[int, int]:
    """The lots of a share of all devices, from where the last range ended.

    >>> range_of(0.5, 0.75) == (1 << 63, ALL)
    True
    """
    low = min(ALL, max(0, round(begin * ALL)))
    return low, min(ALL, max(low, round((begin + share) * ALL)))
