"""``tempriv reproduce`` as typed, in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tempriv", "reproduce", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
