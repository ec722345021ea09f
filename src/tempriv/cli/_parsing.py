"""Options that are written in several words, and what those words say."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tempriv.errors import require

PAIRS = ("--bounds", "--origin", "--clamp", "--stays")
OTHER_NAMES = {
    "averaged": ("average-over",),
    "chosen_from_values": ("landmarks-from-values",),
    "empty": ("empty-cost",),
    "epsilon": ("claim",),
    "epsilon_forever": ("epsilon",),
    "grid": ("resolution",),
    "longest": ("longest-group",),
    "missing": ("missing-cost",),
    "most": ("alerts",),
    "noise": ("order-noise",),
    "port": ("metrics",),
    "repeated": ("repeated-cost",),
    "seen": ("as",),
    "share": ("grouping-share",),
    "threshold": ("free-slots",),
    "value": ("value-of-interest",),
    "window": ("span", "smooth"),
}
"""The options that fill an argument where they have another name."""


def join_pairs(arguments: list[str]) -> list[str]:
    """Options that take two words, written as one: ``--bounds 0 5`` becomes ``--bounds=0,5``.

    >>> join_pairs(["--bounds", "-1", "5", "--grid", "calendar", "days.csv"])
    ['--bounds=-1,5', '--grid=calendar', '--calendar=days.csv']
    """
    joined: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in PAIRS and len(rest) >= 2 and _is_number(rest[0]) and _is_number(rest[1]):
            joined.append(f"{word}={rest.pop(0)},{rest.pop(0)}")
        elif word == "--grid" and rest[:1] == ["calendar"] and "--calendar" not in arguments:
            rest.pop(0)
            joined.append("--grid=calendar")
            if rest and not rest[0].startswith("-"):
                joined.append(f"--calendar={rest.pop(0)}")
        else:
            joined.append(word)
    return joined


def typed_option(arguments: list[str]) -> Callable[[str, str], str | None]:
    """What gives the option, as it was typed, that filled an argument with a value.

    >>> typed = typed_option(["laplace", "--resolution", "0.30", "--bounds=5,1"])
    >>> typed("grid", "0.3"), typed("bounds", "5 1"), typed("epsilon", "0.3")
    ('--resolution 0.30', '--bounds 5 1', None)
    """
    options: dict[str, list[str]] = {}
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, joined, text = word.partition("=")
        if word.startswith("--"):
            options.setdefault(name, []).append(text.replace(",", " ") if joined else following)

    def find(argument: str, value: str) -> str | None:
        for name in (argument.replace("_", "-"), *OTHER_NAMES.get(argument, ())):
            for text in options.get(f"--{name}", []):
                if text == value or _numbers(text) == _numbers(value):
                    return f"--{name} {text}"
        return None

    return find


def _numbers(text: str) -> list[float | str]:
    """The words of a text, numbers as such, so that 0.30 is 0.3."""
    return [float(word) if _is_number(word) else word for word in text.split()]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def pair(name: str, text: str) -> tuple[float, float]:
    parts = text.replace(",", " ").split()
    require(
        len(parts) == 2 and all(_is_number(part) for part in parts),
        f"{name} {text}: must be two numbers, such as {name} 0 5",
    )
    return float(parts[0]), float(parts[1])


def names(text: str, option: str = "--categories") -> tuple[str, ...]:
    """Names with commas between them, or a JSON list where a name has a comma itself.

    >>> names("up,down"), names('["up, up"]')
    (('up', 'down'), ('up, up',))
    """
    if not text.startswith("["):
        return tuple(text.split(","))
    try:
        listed = json.loads(text)
    except ValueError:
        listed = None
    require(
        isinstance(listed, list) and all(isinstance(name, str) for name in listed),
        f"{option} {text}: must be names with commas between them, or a JSON list of names",
    )
    return tuple(listed)


def for_columns(name: str, given: list[Any], columns: int) -> list[Any]:
    """One setting for each value column; a single one serves all."""
    require(
        len(given) in (1, columns),
        f"{name}: {len(given)} given for {columns} value columns; give one, or one for each",
    )
    return given * columns if len(given) == 1 else given
