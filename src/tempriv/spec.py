"""Specs as JSON: frozen dataclasses of simple types to plain dictionaries and back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

from tempriv.errors import Refusal, StateRefusal

KIND = "is"


def encode(value: Any) -> Any:
    """The JSON form of a spec; the class name stands under the key ``is``."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {KIND: type(value).__name__, **fields}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def decode(data: Any, kinds: tuple[type, ...]) -> Any:
    """The value that ``encode`` wrote; only the given classes are ever built."""
    if isinstance(data, dict):
        name = data.get(KIND)
        for kind in kinds:
            if kind.__name__ == name:
                fields = {k: decode(v, kinds) for k, v in data.items() if k != KIND}
                try:
                    return kind(**fields)
                except Refusal:
                    raise
                except Exception as problem:
                    raise StateRefusal(f"{name}: its fields cannot be read") from problem
        raise StateRefusal(f"{name!r}: not a kind of value that this version of tempriv knows")
    if isinstance(data, list):
        return tuple(decode(item, kinds) for item in data)
    return data


def _one_form(data: Any) -> Any:
    """Numbers that are equal are written alike: 1, 1.0 and True are."""
    if isinstance(data, dict):
        return {name: _one_form(item) for name, item in data.items()}
    if isinstance(data, list):
        return [_one_form(item) for item in data]
    if isinstance(data, bool) or (isinstance(data, float) and data.is_integer()):
        return int(data)
    return data


def canonical(value: Any) -> bytes:
    """The one byte form of a spec, so that equal specs have equal digests."""
    return json.dumps(_one_form(encode(value)), sort_keys=True, separators=(",", ":")).encode()


def digest(value: Any) -> str:
    """Names a spec; part of what all noise depends on."""
    return hashlib.blake2b(canonical(value), digest_size=16).hexdigest()
