"""Hand out time series about people, with a privacy promise that can be checked.

The public names. Each is loaded when first used, so that the command line starts fast.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from tempriv import version as _version

if TYPE_CHECKING:
    from tempriv.errors import BudgetRefusal, DataRefusal, Refusal
    from tempriv.events import Counted, aggregate
    from tempriv.guarantees import (
        Approximate,
        Concentrated,
        Guarantee,
        NoGuarantee,
        Published,
        Pure,
    )
    from tempriv.ledger import Ledger, Receipt, Scope
    from tempriv.mechanisms.budgets import (
        BudgetAbsorption,
        BudgetDistribution,
        SampleOnce,
        UniformBudget,
    )
    from tempriv.mechanisms.counting import RunningCount, window_sum
    from tempriv.mechanisms.fast import Fast
    from tempriv.mechanisms.fourier import FourierPerturbation
    from tempriv.mechanisms.landmark import SkipLandmarks, SplitLandmarks, UniformLandmarks
    from tempriv.mechanisms.landmark_adaptive import AdaptiveLandmarks
    from tempriv.mechanisms.landmark_bound import CountBoundLandmarks
    from tempriv.mechanisms.memoized import MemoizedResponse
    from tempriv.mechanisms.order import Backward, Forward
    from tempriv.mechanisms.order_swap import BlockShuffle, NoisyOrder
    from tempriv.mechanisms.order_threshold import DualThreshold, Threshold
    from tempriv.mechanisms.pattern import PatternLDP, PatternSampling
    from tempriv.mechanisms.pegasus import PeGaSus
    from tempriv.mechanisms.period import SamplingPeriod
    from tempriv.mechanisms.period_values import NoisyCurve, NoisyTimes
    from tempriv.mechanisms.run import release
    from tempriv.mechanisms.sparse import SparseVector
    from tempriv.mechanisms.stream import Stream, resume
    from tempriv.mechanisms.value import Gaussian, Laplace, PlanarLaplace, RandomizedResponse
    from tempriv.randomness import Key
    from tempriv.releases import Release, read
    from tempriv.sensitivities import sensitivity
    from tempriv.series import Series
    from tempriv.units import (
        Answers,
        BlockSwap,
        Contribution,
        Event,
        Landmarks,
        Near,
        Pace,
        Person,
        Readings,
        SlotOrigin,
        Swap,
        Timestamps,
        WholeSeries,
        Window,
    )

__version__ = _version.VERSION

_ROOMS = {
    "errors": ("BudgetRefusal", "DataRefusal", "Refusal"),
    "events": ("Counted", "aggregate"),
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
    "mechanisms.budgets": (
        "BudgetAbsorption",
        "BudgetDistribution",
        "SampleOnce",
        "UniformBudget",
    ),
    "mechanisms.counting": ("RunningCount", "window_sum"),
    "mechanisms.fast": ("Fast",),
    "mechanisms.fourier": ("FourierPerturbation",),
    "mechanisms.landmark": ("SkipLandmarks", "SplitLandmarks", "UniformLandmarks"),
    "mechanisms.landmark_adaptive": ("AdaptiveLandmarks",),
    "mechanisms.landmark_bound": ("CountBoundLandmarks",),
    "mechanisms.memoized": ("MemoizedResponse",),
    "mechanisms.order": ("Backward", "Forward"),
    "mechanisms.order_swap": ("BlockShuffle", "NoisyOrder"),
    "mechanisms.order_threshold": ("DualThreshold", "Threshold"),
    "mechanisms.pattern": ("PatternLDP", "PatternSampling"),
    "mechanisms.pegasus": ("PeGaSus",),
    "mechanisms.period": ("SamplingPeriod",),
    "mechanisms.period_values": ("NoisyCurve", "NoisyTimes"),
    "mechanisms.run": ("release",),
    "mechanisms.sparse": ("SparseVector",),
    "mechanisms.value": ("Gaussian", "Laplace", "PlanarLaplace", "RandomizedResponse"),
    "randomness": ("Key",),
    "releases": ("Release", "read"),
    "sensitivities": ("sensitivity",),
    "series": ("Series",),
    "units": (
        *("Answers", "BlockSwap", "Contribution", "Event", "Landmarks", "Near", "Pace", "Person"),
        *("Readings", "SlotOrigin", "Swap", "Timestamps", "WholeSeries", "Window"),
    ),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "AdaptiveLandmarks",
    "Answers",
    "Approximate",
    "Backward",
    "BlockShuffle",
    "BlockSwap",
    "BudgetAbsorption",
    "BudgetDistribution",
    "BudgetRefusal",
    "Concentrated",
    "Contribution",
    "CountBoundLandmarks",
    "Counted",
    "DataRefusal",
    "DualThreshold",
    "Event",
    "Fast",
    "Forward",
    "FourierPerturbation",
    "Gaussian",
    "Guarantee",
    "Key",
    "Landmarks",
    "Laplace",
    "Ledger",
    "MemoizedResponse",
    "Near",
    "NoGuarantee",
    "NoisyCurve",
    "NoisyOrder",
    "NoisyTimes",
    "Pace",
    "PatternLDP",
    "PatternSampling",
    "PeGaSus",
    "Person",
    "PlanarLaplace",
    "Published",
    "Pure",
    "RandomizedResponse",
    "Readings",
    "Receipt",
    "Refusal",
    "Release",
    "RunningCount",
    "SampleOnce",
    "SamplingPeriod",
    "Scope",
    "Series",
    "SkipLandmarks",
    "SlotOrigin",
    "SparseVector",
    "SplitLandmarks",
    "Stream",
    "Swap",
    "Threshold",
    "Timestamps",
    "UniformBudget",
    "UniformLandmarks",
    "WholeSeries",
    "Window",
    "__version__",
    "aggregate",
    "read",
    "release",
    "resume",
    "sensitivity",
    "window_sum",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(_import_module(f"tempriv.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tempriv' has no attribute {name!r}")
