"""Nothing needs what Windows lacks: releases, streams and campaigns run without it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.paths import ROOT
from tests.test_behavior import GOLDEN

CASES = (
    *("release/laplace/event", "release/gaussian/event"),
    *("stream/laplace/event", "stream/block-shuffle/rows", "stream/laplace/jsonl"),
    *("collect/upload/laplace/event", "collect/frequency/grr", "collect/device"),
)


def without_posix(module: str, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.portable", module, *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("group", ("release", "stream", "collect"))
def test_the_same_bits_come_out_without_posix(group):
    """A stream is stopped and goes on from its state; a campaign runs from plan to result."""
    only = [word for name in CASES if name.startswith(group) for word in ("--only", name)]
    ended = without_posix("tests.support.behavior", "--compare", GOLDEN, *only)
    count = sum(name.startswith(group) for name in CASES)
    assert (ended.returncode, ended.stdout) == (0, f"{count} cases, all as they were\n"), ended


def test_the_modules_are_really_gone():
    """Blind tests would pass."""
    command = "import tests.support.portable as p; p.leave_out_posix(); import fcntl"
    ended = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert "ModuleNotFoundError: import of fcntl halted" in ended.stderr
