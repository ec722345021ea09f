"""Who is asked which question: a public draw that everybody can repeat."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from tempriv.sampling.keys import fingerprints

AssignmentHashes = npt.NDArray[np.uint64]
HASH_VALUES = 1 << 64
"""How many hashes there are."""


def assignment_hash(campaign: str, numbers: npt.NDArray[np.int64]) -> AssignmentHashes:
    """Return the assignment hash of each device in a campaign, uniform from 0 to 2^64 - 1.

    It follows from the id of the campaign and the number of the device, so each device finds its
    own. Whoever begins a campaign may try nonces until the draw suits them: no guarantee rests on
    it.

    Parameters:
        campaign: id of the campaign.
        numbers: numbers of devices.

    >>> assignment_hash("0" * 32, np.array([1, 2]))
    array([4539576928906195236, 2261510932801575504], dtype=uint64)
    """
    key = hashlib.blake2b(f"tempriv lots {campaign}".encode(), digest_size=32).digest()
    steps = np.asarray(numbers).astype(np.uint64)
    return fingerprints(key, steps, np.zeros(len(steps), dtype=np.uint64))


def in_range(hashes: AssignmentHashes, low: int, high: int) -> npt.NDArray[np.bool_]:
    """Return which hashes lie from ``low`` on and below ``high``; both may be 2^64.

    Parameters:
        hashes: assignment hashes.
        low: least hash in the range.
        high: least hash above the range.

    >>> in_range(np.array([0, 5], dtype=np.uint64), 1, HASH_VALUES)
    array([False,  True])
    >>> in_range(np.arange(2), HASH_VALUES, HASH_VALUES)
    array([False, False])
    """
    if low >= HASH_VALUES:  # an empty range at the end, whose bound is no 64-bit number
        return np.zeros(len(hashes), dtype=np.bool_)
    inside = hashes >= np.uint64(low)
    if high < HASH_VALUES:
        inside &= hashes < np.uint64(high)
    return np.asarray(inside)


def range_of(begin: float, share: float) -> tuple[int, int]:
    """Return the range of hashes of a share of all devices.

    Parameters:
        begin: where the last range ended, from 0 to 1.
        share: part of all devices, from 0 to 1.

    >>> range_of(0.5, 0.75) == (1 << 63, HASH_VALUES)
    True
    """
    low = min(HASH_VALUES, max(0, round(begin * HASH_VALUES)))
    return low, min(HASH_VALUES, max(low, round((begin + share) * HASH_VALUES)))
