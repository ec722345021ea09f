"""What tests of streams share: a look into a state as it was committed."""

from __future__ import annotations

from pathlib import Path

from tempriv.streaming.store import Standing, looking, read_standing


def standing_of(state: Path) -> Standing:
    """Where a stream stood at its last commit."""
    with looking(state) as db:
        return read_standing(db, state)
