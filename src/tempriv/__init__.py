"""Publish time series about people with a privacy guarantee that can be checked.

The public names of the package. Each is loaded when first used, so that the command line starts
fast. ``__init__.pyi`` holds the same names for type checkers; ``make generate`` writes it.
"""

from importlib import import_module as _import_module
from typing import Any

from tempriv import _version

__version__ = _version.VERSION

_PUBLIC = {
    "data.aggregate": ("CountTable", "aggregate"),
    "data.series": ("SeriesTable",),
    "errors": ("BudgetError", "DataError", "TemprivError"),
    "ledger.ledger": ("Ledger", "Receipt"),
    "ledger.scope": ("Scope",),
    "mechanisms.adaptive.fast": ("Fast",),
    "mechanisms.adaptive.pattern": ("PatternLDP", "PatternSampling"),
    "mechanisms.adaptive.pegasus": ("PeGaSus",),
    "mechanisms.counting.running_count": ("RunningCount", "window_sum"),
    "mechanisms.fourier": ("FourierPerturbation",),
    "mechanisms.landmarks.adaptive": ("AdaptiveLandmarks",),
    "mechanisms.landmarks.count_bound": ("CountBoundLandmarks",),
    "mechanisms.landmarks.skip": ("SkipLandmarks",),
    "mechanisms.landmarks.split": ("SplitLandmarks",),
    "mechanisms.landmarks.uniform": ("UniformLandmarks",),
    "mechanisms.reorder.backward_forward": ("Backward", "Forward"),
    "mechanisms.reorder.noisy_order": ("NoisyOrder",),
    "mechanisms.reorder.shuffle": ("BlockShuffle",),
    "mechanisms.reorder.threshold": ("DualThreshold", "Threshold"),
    "mechanisms.retime.noisy_curve": ("NoisyCurve",),
    "mechanisms.retime.noisy_times": ("NoisyTimes",),
    "mechanisms.retime.sampling_period": ("SamplingPeriod",),
    "mechanisms.sparse_vector": ("SparseVector",),
    "mechanisms.stream": ("Stream", "resume"),
    "mechanisms.value.gaussian": ("Gaussian",),
    "mechanisms.value.laplace": ("Laplace",),
    "mechanisms.value.memoized_response": ("MemoizedResponse",),
    "mechanisms.value.planar_laplace": ("PlanarLaplace",),
    "mechanisms.value.randomized_response": ("RandomizedResponse",),
    "mechanisms.w_event.absorption": ("BudgetAbsorption",),
    "mechanisms.w_event.distribution": ("BudgetDistribution",),
    "mechanisms.w_event.sample": ("SampleOnce",),
    "mechanisms.w_event.uniform": ("UniformBudget",),
    "privacy.guarantees": (
        *("Approximate", "Concentrated", "Guarantee", "NoGuarantee", "Published", "Pure"),
    ),
    "privacy.sensitivity": ("sensitivity",),
    "privacy.units": (
        *("Answers", "BlockSwap", "Contribution", "Event", "Landmarks", "Pace", "Person"),
        *("Readings", "SlotOrigin", "Swap", "Timestamps", "WholeSeries", "Window"),
        "WithinDistance",
    ),
    "releases.release": ("Release", "read"),
    "releases.run": ("release",),
    "sampling.keys": ("Key",),
}
# modules under a shorter name
_SHORT = {"spark": "integrations.spark"}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(["__version__", *_MODULES])


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = getattr(_import_module(f"tempriv.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
    if name in _SHORT:
        return _import_module(f"tempriv.{_SHORT[name]}")
    raise AttributeError(f"module 'tempriv' has no attribute {name!r}")
