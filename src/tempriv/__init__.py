"""Publish time series about people with a privacy guarantee that can be checked.

The public names of the package: those listed here, every mechanism and every unit. Each is loaded
when first used, so that the command line starts fast. ``make generate`` writes what is generated:
the indexes of mechanisms and units, and ``__init__.pyi`` with all names for type checkers.
"""

import json as _json
from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import Any

from tempriv import _version

__version__ = _version.VERSION

_PUBLIC = {
    "data.aggregate": ("CountTable", "aggregate"),
    "data.series": ("SeriesTable",),
    "errors": (
        *("BudgetError", "DataError", "RepeatedReleaseWarning", "TemprivError", "TemprivWarning"),
        "WeakGuaranteeWarning",
    ),
    "ledger.ledger": ("Ledger", "Receipt"),
    "ledger.scope": ("Scope",),
    "mechanisms.counting.running_count": ("window_sum",),
    "mechanisms.stream": ("Stream", "resume"),
    "privacy.guarantees": (
        *("Approximate", "Concentrated", "Guarantee", "NoGuarantee", "Published", "Pure"),
    ),
    "privacy.sensitivity": ("sensitivity",),
    "releases.release": ("Release", "read"),
    "releases.run": ("release",),
    "releases.signature": ("SigningKey",),
    "sampling.keys": ("Key",),
    "summaries.run": ("summarize",),
}
# modules under a shorter name
_SHORT = {"spark": "integrations.spark"}
_INDEXES = ("mechanisms/index.json", "privacy/units/index.json")
_MODULES = {
    **{name: f"tempriv.{module}" for module, names in _PUBLIC.items() for name in names},
    **{
        entry["kind"]: entry["module"]
        for index in _INDEXES
        for entry in _json.loads((_Path(__file__).parent / index).read_text())
    },
}

__all__ = sorted(["__version__", *_MODULES])


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = getattr(_import_module(_MODULES[name]), name)
        globals()[name] = value
        return value
    if name in _SHORT:
        return _import_module(f"tempriv.{_SHORT[name]}")
    raise AttributeError(f"module 'tempriv' has no attribute {name!r}")
