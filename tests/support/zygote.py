"""Runs tempriv commands in forked children, so that a test can kill hundreds of them quickly.

Reads one JSON line per command: {"arguments": [...], "home": PATH, "stdin": PATH, "stdout": PATH};
answers with the child's pid, and later with its exit status (negative: the signal that ended it).
What a child says of itself is added to errors.txt in its home.
"""

import contextlib
import io
import json
import os
import sys
from pathlib import Path

# everything that a command would import, loaded once; none of it starts a thread
import duckdb  # noqa: F401
import numpy as np
import pyarrow.csv
import pyarrow.parquet  # noqa: F401

import tempriv.cli.budget
import tempriv.cli.mechanisms
import tempriv.cli.release
import tempriv.cli.stream
import tempriv.data.reader
import tempriv.releases.run
import tempriv.report.page
import tempriv.streaming
from tempriv.cli.app import main


def run(command: dict) -> None:
    os.environ["XDG_DATA_HOME"] = command["home"]
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    os.dup2(os.open(Path(command["home"], "errors.txt"), append, 0o600), 2)
    descriptor = os.open(command.get("stdin") or os.devnull, os.O_RDONLY)
    os.dup2(descriptor, 0)
    out = command.get("stdout") or os.devnull
    os.dup2(os.open(out, append, 0o600), 1)
    sys.argv = ["tempriv", *command["arguments"]]
    main()


def serve() -> None:
    # loads the compiled kernels, and what reads the words of a command: children then share them
    tempriv.release(np.ones(3), tempriv.Laplace(epsilon=0.01, bounds=(0, 5)))
    sys.argv = ["tempriv", "release", "an input and no output"]
    with contextlib.suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()):
        main()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(json.loads(line))
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
