"""The mechanisms there are: found by name, loaded when asked for.

A mechanism is registered by being defined: a subclass of ``Mechanism`` with a ``command`` of its
own. ``index.json`` says which module defines which, so that one is found without loading all;
``make generate`` writes it. Mechanisms of other packages join through the entry point group
``tempriv.mechanisms``, whose entries name their classes.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from tempriv.errors import StateError, UsageError, require
from tempriv.privacy import serialization
from tempriv.privacy.serialization import IndexEntry, read_index
from tempriv.privacy.units import units_named

if TYPE_CHECKING:
    from tempriv.mechanisms.base import Mechanism

GROUP = "tempriv.mechanisms"  # of entry points
INDEX = Path(__file__).with_name("index.json")


@dataclass(frozen=True, kw_only=True)
class MechanismEntry(IndexEntry):
    """Where a mechanism is defined.

    Parameters:
        name: on the command line.
    """

    name: str


@cache
def entries() -> tuple[MechanismEntry, ...]:
    """All mechanisms, in the order in which they are listed."""
    others = [_entry(point.load()) for point in entry_points(group=GROUP)]
    return (*read_index(INDEX, MechanismEntry), *others)


def names() -> tuple[str, ...]:
    """The names of all mechanisms on the command line."""
    return tuple(entry.name for entry in entries())


def find(name: str) -> type[Mechanism]:
    """The mechanism of a name on the command line.

    Parameters:
        name: such as ``laplace``.

    Raises:
        UsageError: if there is none of that name.

    >>> find("laplace").__name__
    'Laplace'
    """
    for entry in entries():
        if entry.name == name:
            kind: type[Mechanism] = entry.load()
            return kind
    raise UsageError(f"mechanism={name}: must be one of {', '.join(names())}")


def classes() -> tuple[type[Mechanism], ...]:
    """All mechanisms; loads every one of them."""
    return tuple(entry.load() for entry in entries())


def decode(data: object) -> Mechanism:
    """A mechanism from the JSON form of its spec.

    Parameters:
        data: what ``serialization.encode`` wrote.

    Raises:
        StateError: if it is not the spec of a mechanism that this version knows.
    """
    named = serialization.spec_names(data)
    kinds = tuple(entry.load() for entry in entries() if entry.spec_name in named)
    mechanism: Mechanism = serialization.decode(data, (*kinds, *units_named(named)))
    require(isinstance(mechanism, kinds), "not the spec of a mechanism", StateError)
    return mechanism


def _entry(kind: type[Mechanism]) -> MechanismEntry:
    return MechanismEntry(
        name=kind.command.name,
        kind=kind.__name__,
        spec_name=serialization.spec_name(kind),
        module=kind.__module__,
    )


def discover() -> list[MechanismEntry]:
    """The mechanisms that the modules of this package define; loads all of them.

    They come in the order in which they are offered: by what they hide, then as they rank within
    that.
    """
    from tempriv import mechanisms
    from tempriv.mechanisms.base import HIDES, Mechanism

    for module in pkgutil.walk_packages(mechanisms.__path__, f"{mechanisms.__name__}."):
        import_module(module.name)
    found: list[type[Mechanism]] = []
    rest = Mechanism.__subclasses__()
    while rest:
        kind = rest.pop()
        rest += kind.__subclasses__()
        if "command" in vars(kind) and kind.__module__.startswith(f"{mechanisms.__name__}."):
            found.append(kind)

    def place(kind: type[Mechanism]) -> tuple[int, int, str]:
        command = kind.command
        return HIDES.index(command.hides), command.rank, command.name

    return [_entry(kind) for kind in sorted(found, key=place)]
