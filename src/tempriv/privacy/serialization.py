"""Specs as JSON: frozen dataclasses of simple types to plain dictionaries and back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from tempriv.errors import StateError, TemprivError

KIND = "is"
SPEC_NAME = "spec_name"  # in the metadata of a field whose name in files is another
LEFT_OUT = {"left_out": True}
"""The metadata of a field that files have only where it is not None.

A field that is added later is marked so: specs without it keep their digests, and their noise.
"""


def spec_name(kind: type) -> str:
    """The name of a class, ``kind``, in files and digests.

    Noise depends on the digest of a spec, so this name never changes. A class that is renamed in
    Python keeps its first name as the class attribute ``spec_name``.
    """
    name: str = kind.__dict__.get("spec_name", kind.__name__)
    return name


def spec_names(data: Any) -> list[str]:
    """The names of the classes in the JSON form of a spec, ``data``, and of what it is made of.

    >>> spec_names({"is": "Person", "max_series": 2, "each": {"is": "Event"}})
    ['Person', 'Event']
    """
    if isinstance(data, dict):
        inner = [name for item in data.values() for name in spec_names(item)]
        return [data[KIND], *inner] if KIND in data else inner
    if isinstance(data, list):
        return [name for item in data for name in spec_names(item)]
    return []


@dataclass(frozen=True, kw_only=True)
class IndexEntry:
    """Where a class of specs is defined, so that it is found without loading the others.

    Parameters:
        kind: the name of the class.
        spec_name: its name in files.
        module: where it is.
    """

    kind: str
    spec_name: str
    module: str

    def load(self) -> Any:
        """The class itself."""
        return getattr(import_module(self.module), self.kind)


EntryKind = TypeVar("EntryKind", bound=IndexEntry)


@cache
def read_index(path: Path, entry: type[EntryKind]) -> tuple[EntryKind, ...]:
    """The entries of an index, which ``make generate`` writes.

    Parameters:
        path: the index, a JSON file.
        entry: the class of its entries.
    """
    return tuple(entry(**fields) for fields in json.loads(path.read_text()))


def encode(value: Any) -> Any:
    """The JSON form of a spec, ``value``; the class name stands under the key ``is``.

    Fields are in the order in which they are declared, unless the class has a ``spec_order``: the
    digest of a campaign is that of its text, so a field that moves to a base keeps its place.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.metadata.get(SPEC_NAME, field.name): encode(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if not ("left_out" in field.metadata and getattr(value, field.name) is None)
        }
        order = getattr(value, "spec_order", ())
        first = {name: fields[name] for name in order if name in fields}
        return {KIND: spec_name(type(value)), **first, **fields}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def decode(data: Any, kinds: tuple[type, ...]) -> Any:
    """The value that ``encode`` wrote.

    Parameters:
        data: its JSON form.
        kinds: the classes that may be built; no other ever is.

    Raises:
        StateError: if a class is unknown, or its fields cannot be read.
    """
    if isinstance(data, dict):
        name = data.get(KIND)
        for kind in kinds:
            if spec_name(kind) == name:
                names: dict[str, str] = {
                    field.metadata[SPEC_NAME]: field.name
                    for field in dataclasses.fields(kind)
                    if SPEC_NAME in field.metadata
                }
                fields: dict[str, Any] = {
                    names.get(str(key), str(key)): decode(item, kinds)
                    for key, item in data.items()
                    if key != KIND
                }
                try:
                    return kind(**fields)
                except TemprivError:
                    raise
                except Exception as problem:
                    raise StateError(f"{name}: its fields cannot be read") from problem
        raise StateError(f"{name!r}: not a kind of value that this version of tempriv knows")
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
    """The one byte form of a spec, ``value``, so that equal specs have equal digests."""
    return json.dumps(_one_form(encode(value)), sort_keys=True, separators=(",", ":")).encode()


def digest(value: Any) -> str:
    """The digest of a spec, ``value``; part of what all noise depends on."""
    return hashlib.blake2b(canonical(value), digest_size=16).hexdigest()
