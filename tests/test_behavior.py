"""The program puts out what 0.8.0 put out; see ``tests.support.behavior``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import behavior

GOLDEN = Path(__file__).parent / "golden" / "behavior-0.8.0.json"
SPLIT = ("release", "stream", "collect")  # one test for each mechanism or kind of these
SLOW = {f"audit/{name}-landmarks" for name in ("uniform", "split", "count-bound", "skip")}


def is_long(name: str) -> bool:
    """All but the first variant of a mechanism as a stream, and the slowest enumerations."""
    group, _, rest = name.partition("/")
    if group != "stream":
        return name in SLOW
    mechanism, _, variant = rest.partition("/")
    return variant != next(iter(behavior.RELEASES[mechanism]))


def groups() -> dict[tuple[str, bool], list[str]]:
    found: dict[tuple[str, bool], list[str]] = {}
    for name in behavior.CASES:
        parts = name.split("/")
        group = "/".join(parts[:2]) if parts[0] in SPLIT else parts[0]
        found.setdefault((group, is_long(name)), []).append(name)
    return found


GROUPS = [
    pytest.param(names, id=f"{group}{', more' * long}", marks=[pytest.mark.long] * long)
    for (group, long), names in groups().items()
]


@pytest.mark.parametrize("names", GROUPS)
def test_behavior_is_that_of_0_8_0(names: list[str]) -> None:
    expected = json.loads(GOLDEN.read_text())
    assert behavior.differing(expected, behavior.digests(names)) == []


def test_every_case_is_recorded() -> None:
    assert sorted(json.loads(GOLDEN.read_text())) == sorted(behavior.CASES)
