"""Hand out time series about people, with a privacy promise that can be checked.

The public names. Each is loaded when first used, so that the command line starts fast.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from tempriv import version as _version

if TYPE_CHECKING:
    from tempriv.errors import BudgetRefusal, DataRefusal, Refusal
    from tempriv.guarantees import (
        Approximate,
        Concentrated,
        Guarantee,
        NoGuarantee,
        Published,
        Pure,
    )
    from tempriv.ledger import Ledger, Receipt, Scope
    from tempriv.mechanisms.run import release
    from tempriv.mechanisms.stream import Stream, resume
    from tempriv.mechanisms.value import Gaussian, Laplace, PlanarLaplace, RandomizedResponse
    from tempriv.randomness import Key
    from tempriv.releases import Release, read
    from tempriv.series import Series
    from tempriv.units import Contribution, Event, Near, Person, WholeSeries, Window

__version__ = _version.VERSION

_ROOMS = {
    "errors": ("BudgetRefusal", "DataRefusal", "Refusal"),
    "guarantees": (
        "Approximate",
        "Concentrated",
        "Guarantee",
        "NoGuarantee",
        "Published",
        "Pure",
    ),
    "ledger": ("Ledger", "Receipt", "Scope"),
    "mechanisms.stream": ("Stream", "resume"),
    "mechanisms.run": ("release",),
    "mechanisms.value": ("Gaussian", "Laplace", "PlanarLaplace", "RandomizedResponse"),
    "randomness": ("Key",),
    "releases": ("Release", "read"),
    "series": ("Series",),
    "units": ("Contribution", "Event", "Near", "Person", "WholeSeries", "Window"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Approximate",
    "BudgetRefusal",
    "Concentrated",
    "Contribution",
    "DataRefusal",
    "Event",
    "Gaussian",
    "Guarantee",
    "Key",
    "Laplace",
    "Ledger",
    "Near",
    "NoGuarantee",
    "Person",
    "PlanarLaplace",
    "Published",
    "Pure",
    "RandomizedResponse",
    "Receipt",
    "Refusal",
    "Release",
    "Scope",
    "Series",
    "Stream",
    "WholeSeries",
    "Window",
    "__version__",
    "read",
    "release",
    "resume",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(_import_module(f"tempriv.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tempriv' has no attribute {name!r}")
