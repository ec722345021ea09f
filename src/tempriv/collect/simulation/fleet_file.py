"""A fleet between two runs: its seed and which devices are enrolled, in a small private file."""

from __future__ import annotations

import json
from pathlib import Path

from tempriv.collect.simulation.fleet import Fleet
from tempriv.data.files import write_durably
from tempriv.errors import StateError, require
from tempriv.local.wire import DAMAGE_ERRORS, members, require_state, strict_json, whole_number
from tempriv.sampling.keys import tokens

KEPT = ("tempriv", "server", "seed", "ranges")
KIND = "fleet 1"
MOST_SEED = 1 << 128


def open_fleet(path: Path, server: str, seed: int | None) -> Fleet:
    """The fleet that a file tells of; without one, a new fleet without devices.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> place = Path(folder.name) / "fleet.json"
    >>> fleet = open_fleet(place, "http://127.0.0.1:8000", seed=7)
    >>> fleet.add(1, 1000)
    >>> keep_fleet(place, "http://127.0.0.1:8000", fleet)
    >>> len(open_fleet(place, "http://127.0.0.1:8000", seed=None))
    1000
    """
    require(seed is None or 0 <= seed <= MOST_SEED, "seed: must be from 0 to 2**128")
    if not path.exists():
        return Fleet.from_seed(int.from_bytes(tokens(1), "big") if seed is None else seed)
    try:
        found = members(strict_json(path.read_bytes()), KEPT)
        require_state(found["tempriv"] == KIND and isinstance(found["server"], str))
        kept = whole_number(found["seed"], most=MOST_SEED)
        fleet = Fleet.from_seed(kept)
        for first, count in found["ranges"]:
            fleet.add(whole_number(first), whole_number(count, 1))
    except DAMAGE_ERRORS:
        raise StateError(f"{path}: is damaged, or tells of no fleet") from None
    require(
        found["server"] == server,
        f"{path}: has devices of the server {found['server']}; name another file with [[fleet]]",
        StateError,
    )
    require(
        seed is None or seed == kept,
        f"{path}: has devices of another seed; name another file with [[fleet]]",
        StateError,
    )
    return fleet


def keep_fleet(path: Path, server: str, fleet: Fleet) -> None:
    """Whoever reads it can answer as these devices, so only its owner may."""
    told = {"tempriv": KIND, "server": server, "seed": fleet.key.seed, "ranges": fleet.ranges}
    write_durably(path, json.dumps(told).encode())
