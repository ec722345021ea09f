"""Fixtures that several test files use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tempriv.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.create(tmp_path / "ledger.sqlite") as opened:
        yield opened
