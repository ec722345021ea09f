"""What becomes of readings, counted."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tempriv.streaming._kernels import (
    BEYOND_LANDMARKS,
    BEYOND_LENGTH,
    LATE,
    OFF_STEP,
    REPEATED,
)

NAME_OF_VERDICT = {
    LATE: "late",
    REPEATED: "repeated",
    BEYOND_LENGTH: "beyond",
    BEYOND_LANDMARKS: "unpromised",
    OFF_STEP: "unreadable",
}
REASONS = {
    "late": "not later than all readings of its series",
    "repeated": "at a time that its series already has",
    "beyond": "past the length that is guaranteed",
    "unpromised": "a landmark past the number that was given",
    "unreadable": "not a reading",
}
REASON_OFF_STEP = "at a time that is no multiple of the stream's step"


@dataclass
class Counts:
    """What happened to the lines; numbers only."""

    released: int = 0
    again: int = 0
    late: int = 0
    repeated: int = 0
    beyond: int = 0
    unpromised: int = 0
    unreadable: int = 0
    waiting: int = 0

    def and_before(self, before: Counts) -> Counts:
        """These counts and those of earlier runs, ``before``; what waits now is not added up."""
        current, earlier = asdict(self), asdict(before)
        totals = {name: current[name] + earlier[name] for name in current}
        return Counts(**{**totals, "waiting": self.waiting})

    @property
    def put_aside(self) -> int:
        return sum(getattr(self, name) for name in REASONS)
