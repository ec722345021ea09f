"""What messages between a server and devices have in common, whatever they are about."""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import Any

from tempriv.errors import TemprivError, require
from tempriv.sampling.keys import tokens

TOKEN_BYTES = 16
CAMPAIGN_DIGITS = 32


class MessageError(TemprivError):
    """A message that is not one, or not for here and now."""

    exit_status = 3


def new_token() -> bytes:
    """Tells an answer that came twice from two that are alike; it says nothing of its device."""
    return tokens(1)


def is_version(value: Any, version: int, what: str) -> None:
    require(
        type(value) is int and value == version,
        f"version {value!r:.20}: this is version {version} of the {what}",
        MessageError,
    )


def whole(name: str, value: Any, least: int, most: int) -> None:
    require(
        isinstance(value, int) and not isinstance(value, bool) and least <= value <= most,
        f"{name}: must be a whole number from {least} to {most}",
        MessageError,
    )


def some_bytes(name: str, value: Any, least: int, most: int) -> None:
    require(
        isinstance(value, bytes) and least <= len(value) <= most,
        f"{name}: must be {least} to {most} bytes",
        MessageError,
    )


def campaign_name(value: Any) -> None:
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
