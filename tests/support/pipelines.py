"""What tests of streams share: a look into a state as it was committed."""

from __future__ import annotations

from pathlib import Path

from tempriv.streaming.state_file import Checkpoint, open_readonly, read_checkpoint


def standing_of(state: Path) -> Checkpoint:
    """Where a stream stood at its last commit."""
    with open_readonly(state) as db:
        return read_checkpoint(db, state)
