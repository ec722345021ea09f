"""Strict decoding, or refusal: messages between a server and devices, and states of servers.

``require_*`` check parts of messages and raise ``MessageError``. The functions of the second half
read a server's own state, and raise ``StateError`` where it is damaged.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import StateError, TemprivError, require
from tempriv.sampling.keys import tokens

Integers = npt.NDArray[np.int64]

TOKEN_BYTES = 16
CAMPAIGN_DIGITS = 32
MAX_WHOLE_NUMBER = 1 << 62


class MessageError(TemprivError):
    """A message that is not one, or not for here and now."""

    exit_status = 3


def new_token() -> bytes:
    """Tells an answer that came twice from two that are alike; it says nothing of its device."""
    return tokens(1)


def require_version(value: Any, version: int, what: str) -> None:
    require(
        type(value) is int and value == version,
        f"version {value!r:.20}: this is version {version} of the {what}",
        MessageError,
    )


def require_whole(name: str, value: Any, least: int, most: int) -> None:
    require(
        isinstance(value, int) and not isinstance(value, bool) and least <= value <= most,
        f"{name}: must be a whole number from {least} to {most}",
        MessageError,
    )


def require_bytes(name: str, value: Any, least: int, most: int) -> None:
    require(
        isinstance(value, bytes) and least <= len(value) <= most,
        f"{name}: must be {least} to {most} bytes",
        MessageError,
    )


def require_campaign(value: Any) -> None:
    digits = set("0123456789abcdef")
    require(
        isinstance(value, str) and len(value) == CAMPAIGN_DIGITS and set(value) <= digits,
        f"campaign: must be {CAMPAIGN_DIGITS} hexadecimal digits",
        MessageError,
    )


def strict_json(text: str | bytes | bytearray) -> Any:
    """What every reader of JSON takes it for: no member twice, no NaN or Infinity by name.

    Raises ValueError or RecursionError.
    """
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)


def json_object(text: Any, what: str, names: set[str], about: str, largest: int) -> dict[str, Any]:
    """A JSON object with just these members, none of them twice, all of its numbers finite."""
    fits = isinstance(text, (str, bytes, bytearray)) and len(text) <= largest
    subject = f"not a message about {about}"
    require(fits, f"{subject}: it must be a text of at most {largest} bytes", MessageError)
    try:
        found = strict_json(text)
    except (ValueError, RecursionError):
        found = None
    require(isinstance(found, dict), f"{subject}: no JSON object", MessageError)
    require(found.pop("tempriv", None) == what, f"not a {what}", MessageError)
    odd = sorted(names ^ set(found))
    require(not odd, f"{what}: has members too many or too few: {odd[:3]}", MessageError)
    for name, value in found.items():
        big = isinstance(value, float) and not math.isfinite(value)
        require(not big, f"{name}: must be finite", MessageError)
    return dict(found)


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """What one reader takes from a member that is there twice, another does not."""
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a member is there twice")
    return found


def from_base64(name: str, value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise MessageError(f"{name}: must be base64") from None


# states of servers

DAMAGED = "the state of the server is damaged, or none of this kind"
DAMAGE_ERRORS = (
    *(TemprivError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError),
    RecursionError,
)


@contextmanager
def refuse_damage() -> Iterator[None]:
    """Whatever goes wrong while a state is read is its damage."""
    try:
        yield
    except DAMAGE_ERRORS:
        raise StateError(DAMAGED) from None


def require_state(condition: bool) -> None:
    require(condition, DAMAGED, StateError)


def members(value: Any, names: Iterable[str]) -> dict[str, Any]:
    """An object with just these members."""
    require_state(isinstance(value, dict) and value.keys() == set(names))
    return dict(value)


def state_object(data: Any, kind: str, names: Iterable[str]) -> dict[str, Any]:
    """The body of a state: what kind it is stands under ``is``."""
    found = members(strict_json(data), {"is", *names})
    require_state(found["is"] == kind)
    return found


def whole_number(value: Any, least: int = 0, most: int = MAX_WHOLE_NUMBER) -> int:
    require_state(type(value) is int and least <= value <= most)
    return int(value)


def finite(value: Any) -> float:
    require_state(type(value) in (int, float) and math.isfinite(value))
    return float(value)


def boolean(value: Any) -> bool:
    require_state(type(value) is bool)
    return bool(value)


def unique_texts(values: Any) -> tuple[str, ...]:
    """Different texts in a list."""
    require_state(isinstance(values, list) and all(type(one) is str for one in values))
    require_state(len(set(values)) == len(values))
    return tuple(values)


def decode_campaign(value: Any) -> str:
    """A campaign's name."""
    require_campaign(value)
    return str(value)


def decode_received(
    body: dict[str, Any], size: int, most: int = MAX_WHOLE_NUMBER
) -> tuple[Integers, int, set[bytes]]:
    """Support of each cell, how many answered, and the tokens of their answers."""
    received = whole_number(body["received"], 0, most)
    support = body["support"]
    require_state(isinstance(support, list) and len(support) == size)
    # whatever the oracle, an answer supports a cell once or not at all
    counts = [whole_number(one, 0, received) for one in support]
    names = unique_texts(body["tokens"])
    tokens = {base64.b64decode(name, validate=True) for name in names}
    require_state(len(tokens) == received and all(len(token) == TOKEN_BYTES for token in tokens))
    return np.array(counts, dtype=np.int64), received, tokens
