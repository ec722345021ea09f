"""Sentences of releases that an earlier version wrote, in the words of this one."""

from __future__ import annotations

from typing import Any

# words of the sentences of releases that version 0.8.0 wrote, and what they are now
REWORDED = (
    ("promised", "guaranteed"),
    ("promises", "guarantees"),
    ("promise", "guarantee"),
    ("neighbour", "neighbor"),
    ("metre", "meter"),
    ("andomised", "andomized"),
    ("ecognise", "ecognize"),
    ("entred", "entered"),
    ("entre", "enter"),
    ("ehaviour", "ehavior"),
    ("inimise", "inimize"),
    ("aximise", "aximize"),
    ("ormalis", "ormaliz"),
    ("ummaris", "ummariz"),
    ("emoised", "emoized"),
    ("olour", "olor"),
    ("nalyse", "nalyze"),
    ("the law is drawn", "the distribution is drawn"),
)


def reworded(data: Any) -> Any:
    """A description, ``data``, in the words of this version, to be compared with one of it.

    >>> reworded({"sentence": "a promise within 5 meters"})
    {'sentence': 'a guarantee within 5 meters'}
    """
    if isinstance(data, dict):
        return {name: reworded(item) for name, item in data.items()}
    if isinstance(data, (list, tuple)):
        return [reworded(item) for item in data]
    if isinstance(data, str):
        for old, new in REWORDED:
            data = data.replace(old, new)
    return data
