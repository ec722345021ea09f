"""One file a family; ``ALL`` lists every mechanism."""

from __future__ import annotations

from typing import Any

from tempriv import spec, units
from tempriv.errors import StateRefusal, require
from tempriv.mechanisms.budgets import (
    BudgetAbsorption,
    BudgetDistribution,
    SampleOnce,
    UniformBudget,
)
from tempriv.mechanisms.counting import RunningCount
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
from tempriv.mechanisms.protocol import Mechanism
from tempriv.mechanisms.sparse import SparseVector
from tempriv.mechanisms.value import Gaussian, Laplace, PlanarLaplace, RandomizedResponse

ALL: tuple[type, ...] = (
    *(Laplace, Gaussian, RandomizedResponse, PlanarLaplace, MemoizedResponse, SparseVector),
    *(UniformBudget, SampleOnce, BudgetDistribution, BudgetAbsorption, Fast, PeGaSus),
    *(PatternLDP, PatternSampling),
    *(RunningCount, FourierPerturbation),
    *(Backward, Forward, Threshold, DualThreshold, BlockShuffle, NoisyOrder),
    *(SamplingPeriod, NoisyCurve, NoisyTimes),
    *(UniformLandmarks, SkipLandmarks, AdaptiveLandmarks, SplitLandmarks, CountBoundLandmarks),
)


def decode(data: Any) -> Mechanism:
    """A mechanism from the JSON form of its spec."""
    found = spec.decode(data, ALL + units.ALL)
    require(isinstance(found, ALL), "not the spec of a mechanism", StateRefusal)
    mechanism: Mechanism = found
    return mechanism
