# written by make generate; do not edit
from tempriv.data.aggregate import CountTable as CountTable, aggregate as aggregate
from tempriv.data.series import SeriesTable as SeriesTable
from tempriv.errors import BudgetError as BudgetError, DataError as DataError, RepeatedReleaseWarning as RepeatedReleaseWarning, TemprivError as TemprivError, TemprivWarning as TemprivWarning, WeakGuaranteeWarning as WeakGuaranteeWarning
from tempriv.ledger.ledger import Ledger as Ledger, Receipt as Receipt
from tempriv.ledger.scope import Scope as Scope
from tempriv.mechanisms.adaptive.fast import Fast as Fast
from tempriv.mechanisms.adaptive.pattern import PatternLDP as PatternLDP, PatternSampling as PatternSampling
from tempriv.mechanisms.adaptive.pegasus import PeGaSus as PeGaSus
from tempriv.mechanisms.counting.running_count import RunningCount as RunningCount, window_sum as window_sum
from tempriv.mechanisms.fourier import FourierPerturbation as FourierPerturbation
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks as AdaptiveLandmarks
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks as CountBoundLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks as SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks as SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks as UniformLandmarks
from tempriv.mechanisms.reorder.backward_forward import Backward as Backward, Forward as Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder as NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle as BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold as DualThreshold, Threshold as Threshold
from tempriv.mechanisms.retime.noisy_curve import NoisyCurve as NoisyCurve
from tempriv.mechanisms.retime.noisy_times import NoisyTimes as NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod as SamplingPeriod
from tempriv.mechanisms.sparse_vector import SparseVector as SparseVector
from tempriv.mechanisms.stream import Stream as Stream, resume as resume
from tempriv.mechanisms.value.gaussian import Gaussian as Gaussian
from tempriv.mechanisms.value.laplace import Laplace as Laplace
from tempriv.mechanisms.value.memoized_response import MemoizedResponse as MemoizedResponse
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace as PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse as RandomizedResponse
from tempriv.mechanisms.w_event.absorption import BudgetAbsorption as BudgetAbsorption
from tempriv.mechanisms.w_event.distribution import BudgetDistribution as BudgetDistribution
from tempriv.mechanisms.w_event.sample import SampleOnce as SampleOnce
from tempriv.mechanisms.w_event.uniform import UniformBudget as UniformBudget
from tempriv.privacy.guarantees import Approximate as Approximate, Concentrated as Concentrated, Guarantee as Guarantee, NoGuarantee as NoGuarantee, Published as Published, Pure as Pure
from tempriv.privacy.sensitivity import sensitivity as sensitivity
from tempriv.privacy.units.answers import Answers as Answers
from tempriv.privacy.units.contribution import Contribution as Contribution
from tempriv.privacy.units.distance import WithinDistance as WithinDistance
from tempriv.privacy.units.landmarks import Landmarks as Landmarks, MarkedMoment as MarkedMoment, Readings as Readings
from tempriv.privacy.units.order import BlockSwap as BlockSwap, SlotOrigin as SlotOrigin, Swap as Swap
from tempriv.privacy.units.presence import Presence as Presence
from tempriv.privacy.units.replacement import Event as Event, Person as Person, WholeSeries as WholeSeries, Window as Window
from tempriv.privacy.units.time import Pace as Pace, Timestamps as Timestamps
from tempriv.releases.release import Release as Release, read as read
from tempriv.releases.run import release as release
from tempriv.releases.signature import SigningKey as SigningKey
from tempriv.sampling.keys import Key as Key
from tempriv.summaries.run import summarize as summarize

__version__: str
