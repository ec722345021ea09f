"""What every part of the study on landmarks shares: schemes, dummies, and runs of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.landmarks.dummies import DummyLandmarks
from tempriv.landmarks.dummy_sets import Score
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.privacy.guarantees import NoGuarantee
from tempriv.sampling.keys import Key
from tempriv.studies.common import mean_and_error, run_mechanism
from tempriv.studies.landmark.data import LandmarkDataset

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

EVENT, USER = "event level", "user level"
SKIP, UNIFORM, ADAPTIVE = "Skip", "Uniform", "Adaptive"
SPLIT, BOUND = "SplitLandmarks", "CountBoundLandmarks"
THEIRS = (SKIP, UNIFORM, ADAPTIVE)
OURS = (SPLIT, BOUND)
LEVELS = (EVENT, USER)
CONSTANT = "a public constant"
EPSILON = 1.0
DUMMY_SHARE = 0.01  # part of epsilon that selects dummies, "1% or even less" (Section 3.4.2)
BOUND_MARGIN = (
    0.05  # a public bound on the number of landmarks: so much of the length above the share
)
COUNT_SHARE = 0.1  # part of epsilon that counts landmarks, where the bound is drawn
MISS = 1e-3


@dataclass(frozen=True, kw_only=True)
class LandmarkSize:
    """How much of everything: ``runs`` of each scheme, ``placements`` of synthetic landmarks."""

    runs: int
    placements: int


QUICK = LandmarkSize(runs=40, placements=20)
FULL = LandmarkSize(runs=100, placements=100)


@dataclass(frozen=True)
class Errors:
    """Over runs: the mean error, its standard error, and how many marks were used."""

    mean: float
    spread: float
    marks: float
    clamped: float


def schemes(data: LandmarkDataset, share: float, epsilon: float) -> dict[str, Any]:
    """The paper's three and ours. Landmarks follow the values in all data, and that is said.

    Parameters:
        data: the data set.
        share: the part of steps that are landmarks.
        epsilon: the budget of each.
    """
    over = data.over(epsilon)
    bound = min(data.length, round((share + BOUND_MARGIN) * data.length))
    return {
        SKIP: SkipLandmarks(over=over, chosen_from_values=True),
        UNIFORM: UniformLandmarks(over=over, chosen_from_values=True),
        ADAPTIVE: AdaptiveLandmarks(
            over=over, kappa=1.0, increase=0.5, decrease=0.2, least=0.1, chosen_from_values=True
        ),
        SPLIT: SplitLandmarks(over=over, chosen_from_values=True),
        BOUND: CountBoundLandmarks(over=over, count=bound, chosen_from_values=True),
    }


def drawn_bound(data: LandmarkDataset, epsilon: float = EPSILON) -> CountBoundLandmarks:
    """A tenth of epsilon for a private bound on the number of landmarks, the rest for values.

    Parameters:
        data: the data set.
        epsilon: the budget of both together.
    """
    return CountBoundLandmarks(
        over=data.over(epsilon * (1 - COUNT_SHARE)),
        count_epsilon=epsilon * COUNT_SHARE,
        miss=MISS,
        chosen_from_values=True,
    )


def protects(mechanism: Any) -> str:
    """The guarantee of a ``mechanism`` in a few words."""
    if isinstance(mechanism.guarantee, NoGuarantee):
        return "nothing: landmarks follow the values"
    return str(mechanism.unit.sentence)


def dummy_marks(
    marks: Flags, epsilon: float, runs: int, seed: int, score: Score = "distance"
) -> list[Flags]:
    """Landmarks and dummies, selected anew for each run.

    Parameters:
        marks: which steps are landmarks.
        epsilon: the budget of the selection.
        runs: how many runs.
        seed: of the random numbers.
        score: how near sets are to the landmarks.
    """
    selector = DummyLandmarks(epsilon=epsilon, score=score)
    key = Key.from_seed(seed)
    return [selector.select(marks, key, f"run {run}").marks for run in range(runs)]


def errors_of(
    data: LandmarkDataset, share: float, mechanism: Any, marks: Sequence[Flags], seed: int
) -> Errors:
    """Runs of one mechanism, each with the marks of its own; errors are means over a series.

    Parameters:
        data: the data set.
        share: the part of steps that are landmarks.
        mechanism: what releases the series.
        marks: the landmarks of each run.
        seed: of the random numbers.
    """
    marked = hasattr(mechanism, "over")  # a scheme takes a mark behind each reading
    true = data.values[share]
    series = [data.rows(share, used_marks) if marked else true for used_marks in marks]
    each, within = [], []
    for run in run_mechanism(mechanism, series, seed):
        released = np.asarray(run.data)
        each.append(float(data.error(true, released).mean()))
        within.append(float(data.error(true, data.clamp(released)).mean()))
    used = float(np.mean([np.count_nonzero(used_marks) for used_marks in marks]))
    return Errors(*mean_and_error(each), used, float(np.mean(within)))


def levels(data: LandmarkDataset, epsilon: float = EPSILON) -> dict[str, Any]:
    """One reading, and all of them, protected: all of epsilon for each, or an equal part.

    Parameters:
        data: the data set.
        epsilon: the budget of a reading, or of all.
    """
    over = data.over(epsilon)
    return {EVENT: over, USER: replace(over, epsilon=over.epsilon / data.length)}
