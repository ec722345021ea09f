"""Timing of calls and of whole commands, on one core."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass
class Row:
    """One line of the table: what was measured, against what, and what was asked for."""

    work: str
    ours: str
    yardstick: str
    ratio: float | None
    wanted: str
    reached: bool | None


def one_core() -> None:
    """Everything from here on, child processes included, runs on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def best_of(calls: Sequence[Callable[[], object]], rounds: int = 7) -> list[float]:
    """The least seconds of each call; they take turns, so that a busy machine hurts all alike."""
    for call in calls:
        call()
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            began = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - began)
    return best


def command(arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds and peak megabytes of a whole process."""
    began = time.perf_counter()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, env=os.environ | {"LANG": "C"})
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    if status:
        sys.exit(f"failed: {' '.join(arguments)}")
    return took, usage.ru_maxrss / 1000
