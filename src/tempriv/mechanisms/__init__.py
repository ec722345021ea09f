"""One file a family; ``ALL`` lists every mechanism."""

from __future__ import annotations

from typing import Any

from tempriv.errors import StateError, require
from tempriv.mechanisms.adaptive.fast import Fast
from tempriv.mechanisms.adaptive.pattern import PatternLDP, PatternSampling
from tempriv.mechanisms.adaptive.pegasus import PeGaSus
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.counting.running_count import RunningCount
from tempriv.mechanisms.fourier import FourierPerturbation
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.mechanisms.retime.noisy_curve import NoisyCurve
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.mechanisms.sparse_vector import SparseVector
from tempriv.mechanisms.value.gaussian import Gaussian
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.memoized_response import MemoizedResponse
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.mechanisms.w_event.absorption import BudgetAbsorption
from tempriv.mechanisms.w_event.distribution import BudgetDistribution
from tempriv.mechanisms.w_event.sample import SampleOnce
from tempriv.mechanisms.w_event.uniform import UniformBudget
from tempriv.privacy import serialization, units

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
    found = serialization.decode(data, ALL + units.all_units())
    require(isinstance(found, ALL), "not the spec of a mechanism", StateError)
    mechanism: Mechanism = found
    return mechanism
