"""Run a module as if the operating system had nothing that Windows lacks.

    python -m tests.support.portable MODULE ARGUMENTS...

Modules of POSIX cannot be imported, and functions of ``os`` that Windows lacks are gone.
"""

from __future__ import annotations

import os
import runpy
import sys

MODULES = ("fcntl", "resource", "termios", "pwd", "grp", "syslog", "readline")
FUNCTIONS = ("pread", "pwrite", "preadv", "pwritev", "fdatasync", "fchmod", "fchown", "pidfd_open")


def leave_out_posix() -> None:
    """From now on; what has been imported before keeps what it has."""
    sys.modules.update(dict.fromkeys(MODULES))  # None: refused by import
    for name in FUNCTIONS:
        if hasattr(os, name):
            delattr(os, name)


if __name__ == "__main__":
    leave_out_posix()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
