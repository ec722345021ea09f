"""The log of a server: lines of JSON that hold nothing of what was sent."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path
from typing import Any

log = logging.getLogger("tempriv.collect")


def log_line(**facts: Any) -> None:
    log.info(json.dumps(facts))


def log_problem(event: str, problem: BaseException, **facts: Any) -> None:
    """Log the kind and place of a ``problem`` as ``event``; its message could quote data."""
    last = traceback.extract_tb(problem.__traceback__)[-1:]
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in last]
    line = {"event": event, "problem": type(problem).__name__, "at": places, **facts}
    log.error(json.dumps(line))
