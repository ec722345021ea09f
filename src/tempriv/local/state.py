"""What states of servers have in common: they are read strictly, or refused as damaged."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import StateError, TemprivError, require
from tempriv.local.wire import TOKEN_BYTES, campaign_name, strict_json

Integers = npt.NDArray[np.int64]

DAMAGED = "the state of the server is damaged, or none of this kind"
DAMAGE = (
    *(TemprivError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError),
    RecursionError,
)
LARGEST = 1 << 62


@contextmanager
def damage_is_refused() -> Iterator[None]:
    """Whatever goes wrong while a state is read is its damage."""
    try:
        yield
    except DAMAGE:
        raise StateError(DAMAGED) from None


def sound(condition: bool) -> None:
    require(condition, DAMAGED, StateError)


def members(value: Any, names: Iterable[str]) -> dict[str, Any]:
    """An object with just these members."""
    sound(isinstance(value, dict) and value.keys() == set(names))
    return dict(value)


def state_object(data: Any, kind: str, names: Iterable[str]) -> dict[str, Any]:
    """The body of a state: what kind it is stands under ``is``."""
    found = members(strict_json(data), {"is", *names})
    sound(found["is"] == kind)
    return found


def whole_number(value: Any, least: int = 0, most: int = LARGEST) -> int:
    sound(type(value) is int and least <= value <= most)
    return int(value)


def finite(value: Any) -> float:
    sound(type(value) in (int, float) and math.isfinite(value))
    return float(value)


def truth(value: Any) -> bool:
    sound(type(value) is bool)
    return bool(value)


def texts(values: Any) -> tuple[str, ...]:
    """Different texts in a list."""
    sound(isinstance(values, list) and all(type(one) is str for one in values))
    sound(len(set(values)) == len(values))
    return tuple(values)


def campaign_of(value: Any) -> str:
    campaign_name(value)
    return str(value)


def received_of(
    body: dict[str, Any], size: int, most: int = LARGEST
) -> tuple[Integers, int, set[bytes]]:
    """Support of each cell, how many answered, and the tokens of their answers."""
    received = whole_number(body["received"], 0, most)
    support = body["support"]
    sound(isinstance(support, list) and len(support) == size)
    # whatever the oracle, an answer supports a cell once or not at all
    counts = [whole_number(one, 0, received) for one in support]
    names = texts(body["tokens"])
    tokens = {base64.b64decode(name, validate=True) for name in names}
    sound(len(tokens) == received and all(len(token) == TOKEN_BYTES for token in tokens))
    return np.array(counts, dtype=np.int64), received, tokens
