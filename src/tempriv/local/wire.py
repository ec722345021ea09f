"""Strict decoding, or refusal: messages between a server and devices, and states of servers.

``require_*`` check parts of messages and raise ``MessageError``. The functions of the second half
read a server's own state, and raise ``StateError`` where it is damaged.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
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
    """Refuse a ``value`` that is not this ``version`` of ``what``, such as answers about shapes."""
    require(
        type(value) is int and value == version,
        f"version {value!r:.20}: this is version {version} of the {what}",
        MessageError,
    )


def require_whole(name: str, value: Any, least: int, most: int) -> None:
    """Refuse a ``value`` that is no whole number from ``least`` to ``most``; ``name`` says which it
    is.
    """
    require(
        isinstance(value, int) and not isinstance(value, bool) and least <= value <= most,
        f"{name}: must be a whole number from {least} to {most}",
        MessageError,
    )


def require_bytes(name: str, value: Any, least: int, most: int) -> None:
    """Refuse a ``value`` that is not ``least`` to ``most`` bytes; ``name`` says which it is."""
    require(
        isinstance(value, bytes) and least <= len(value) <= most,
        f"{name}: must be {least} to {most} bytes",
        MessageError,
    )


def require_campaign(value: Any) -> None:
    """Refuse a ``value`` that is no campaign's name."""
    digits = set("0123456789abcdef")
    require(
        isinstance(value, str) and len(value) == CAMPAIGN_DIGITS and set(value) <= digits,
        f"campaign: must be {CAMPAIGN_DIGITS} hexadecimal digits",
        MessageError,
    )


def strict_json(text: str | bytes | bytearray) -> Any:
    """A ``text`` as every reader of JSON takes it: no member twice, no NaN or Infinity by name.

    Raises ValueError or RecursionError.
    """
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)


def json_object(text: Any, what: str, names: set[str], about: str, largest: int) -> dict[str, Any]:
    """A JSON object with just these members, none of them twice, all of its numbers finite.

    Parameters:
        text: as it was received.
        what: kind of message, its member ``tempriv``.
        names: of the other members.
        about: subject of such messages, for the refusal.
        largest: bytes that the text may have.
    """
    fits = isinstance(text, (str, bytes, bytearray)) and len(text) <= largest
    subject = f"not a message about {about}"
    require(fits, f"{subject}: it must be a text of at most {largest} bytes", MessageError)
    try:
        fields = strict_json(text)
    except (ValueError, RecursionError):
        fields = None
    require(isinstance(fields, dict), f"{subject}: no JSON object", MessageError)
    require(fields.pop("tempriv", None) == what, f"not a {what}", MessageError)
    odd = sorted(names ^ set(fields))
    require(not odd, f"{what}: has members too many or too few: {odd[:3]}", MessageError)
    for name, value in fields.items():
        big = isinstance(value, float) and not math.isfinite(value)
        require(not big, f"{name}: must be finite", MessageError)
    return dict(fields)


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """What one reader takes from a member that is there twice, another does not."""
    by_name = dict(members)
    if len(by_name) < len(members):
        raise ValueError("a member is there twice")
    return by_name


def json_text(what: str, fields: dict[str, Any]) -> str:
    """The JSON form of a message of kind ``what``: its ``fields``, those of bytes in base64."""
    plain = {
        name: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for name, value in fields.items()
    }
    return json.dumps({"tempriv": what, **plain}, sort_keys=True)


def split_head(
    data: Any, head: struct.Struct, magic: bytes, kind: int, about: str, largest: int
) -> tuple[list[Any], bytes]:
    """Take the head off a message in bytes.

    Parameters:
        data: the message.
        head: the layout; it begins with ``magic`` and ``kind``.
        magic: first bytes of such messages.
        kind: number of the kind of message that is expected.
        about: subject of such messages, for the refusal.
        largest: bytes that the message may have.

    Returns:
        The further fields of the head, and what follows it.
    """
    require(
        isinstance(data, (bytes, bytearray)) and head.size < len(data) <= largest,
        f"not a message about {about}: it is too short, or too long",
        MessageError,
    )
    first, second, *fields = head.unpack_from(data)
    require((first, second) == (magic, kind), "not a message of this kind", MessageError)
    return fields, bytes(data[head.size :])


def from_base64(name: str, value: Any) -> bytes:
    """The bytes of a ``value`` in base64; ``name`` says which member it is."""
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
    """Refuse a state as damaged, if this ``condition`` does not hold."""
    require(condition, DAMAGED, StateError)


def members(value: Any, names: Iterable[str]) -> dict[str, Any]:
    """The object ``value``, which has just the members ``names``."""
    require_state(isinstance(value, dict) and value.keys() == set(names))
    return dict(value)


def state_object(data: Any, kind: str, names: Iterable[str]) -> dict[str, Any]:
    """The body of a state.

    Parameters:
        data: the state, in JSON.
        kind: what stands under ``is``.
        names: of its other members.
    """
    body = members(strict_json(data), {"is", *names})
    require_state(body["is"] == kind)
    return body


def whole_number(value: Any, least: int = 0, most: int = MAX_WHOLE_NUMBER) -> int:
    """The whole number ``value`` of a state, from ``least`` to ``most``."""
    require_state(type(value) is int and least <= value <= most)
    return int(value)


def finite(value: Any) -> float:
    """The number ``value`` of a state, not infinite."""
    require_state(type(value) in (int, float) and math.isfinite(value))
    return float(value)


def boolean(value: Any) -> bool:
    """The truth value ``value`` of a state."""
    require_state(type(value) is bool)
    return bool(value)


def unique_texts(values: Any) -> tuple[str, ...]:
    """The different texts in the list ``values`` of a state."""
    require_state(isinstance(values, list) and all(type(text) is str for text in values))
    require_state(len(set(values)) == len(values))
    return tuple(values)


def decode_campaign(value: Any) -> str:
    """The campaign's name in ``value``."""
    require_campaign(value)
    return str(value)


def decode_received(
    body: dict[str, Any], size: int, most: int = MAX_WHOLE_NUMBER
) -> tuple[Integers, int, set[bytes]]:
    """What a server's state says of the answers to its open question.

    Parameters:
        body: of the state.
        size: how many cells the question has.
        most: answers there can be.

    Returns:
        The support of each cell, how many answered, and the tokens of their answers.
    """
    received = whole_number(body["received"], 0, most)
    support = body["support"]
    require_state(isinstance(support, list) and len(support) == size)
    # whatever the oracle, an answer supports a cell once or not at all
    counts = [whole_number(count, 0, received) for count in support]
    names = unique_texts(body["tokens"])
    tokens = {base64.b64decode(name, validate=True) for name in names}
    require_state(len(tokens) == received and all(len(token) == TOKEN_BYTES for token in tokens))
    return np.array(counts, dtype=np.int64), received, tokens
