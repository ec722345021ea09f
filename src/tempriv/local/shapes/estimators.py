"""Shapes in scikit-learn's manner: ``fit`` runs a whole campaign, ``predict`` takes the nearest.

Whoever calls ``fit`` holds everyone's series, so what is guaranteed is guaranteed towards those who
get ``shapes_``. Where nobody is to hold them, series stay on devices: see ``local.shapes.roles``.
"""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, extra_packages, require
from tempriv.local.shapes.distance import DistanceKind as Distance
from tempriv.local.shapes.messages import MOST_LABELS, MOST_TEXT_CHARACTERS
from tempriv.local.shapes.plan import MOST_SHAPES, Method, ShapesPlan
from tempriv.local.shapes.sax import Sax
from tempriv.local.shapes.simulate import Outcome, Through, nearest, simulate, with_label

with extra_packages("shapes", "estimators"):
    from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

Integers = npt.NDArray[np.int64]
LARGEST_SEED = 1 << 31


class _ShapeEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: their parameters, and the campaign that ``fit`` runs."""

    def __init__(
        self,
        *,
        epsilon: float = 4.0,
        n_shapes: int | None = 3,
        symbols: int = 4,
        segment: int = 10,
        longest: int = 10,
        distance: Distance = "levenshtein",
        method: Method = "automatic",
        through: Through = "messages",
        random_state: Any = None,
    ):
        self.epsilon = epsilon
        self.n_shapes = n_shapes
        self.symbols = symbols
        self.segment = segment
        self.longest = longest
        self.distance = distance
        self.method = method
        self.through = through
        self.random_state = random_state

    def _simulate(
        self, series: Any, shapes: Any, names: tuple[str, ...] = (), labels: Any = None
    ) -> Outcome:
        self.sax_ = Sax(
            symbols=_whole("symbols", self.symbols),
            segment=_whole("segment", self.segment),
            longest=_whole("longest", self.longest),
        )
        plan = ShapesPlan(
            epsilon=_real("epsilon", self.epsilon),
            shapes=_whole("n_shapes", shapes),
            people=len(series),
            sax=self.sax_,
            distance=self.distance,
            method=self.method,
            labels=names,
        )
        seed = _seed(self.random_state)
        return simulate(plan, series, labels, through=self.through, seed=seed)

    def _keep(self, outcome: Outcome) -> None:
        self.outcome_, self.shapes_ = outcome, outcome.shapes
        self.guarantee_ = outcome.guarantee

    def _nearest(self, series: Any) -> tuple[Integers, npt.NDArray[np.float64]]:
        return nearest(self.shapes_, self.sax_.sequences(series), self.distance)

    def _of_fitted(self, series: Any) -> tuple[Integers, npt.NDArray[np.float64]]:
        """The number of the nearest shape and how far it is, for each of other series."""
        check_is_fitted(self)
        return self._nearest(_series(self, series, reset=False))


class ShapeClusterer(ClusterMixin, _ShapeEstimator):  # type: ignore[misc]
    """The shapes that many series have in common, each series protected whole; clusters by them.

    Each series belongs to one person and answers one question, with noise; the caller sees all of
    them, so the guarantee is towards whoever gets ``shapes_``. It does not cover ``labels_`` and
    ``predict``, which look at the series themselves and are as private as they are. No parameter
    may be found by trying out what suits the data.

    Parameters:
        epsilon: what the answer of a series may cost.
        n_shapes: how many shapes are looked for.
        symbols: letters of the alphabet, as for ``Sax``.
        segment: readings to a symbol, as for ``Sax``.
        longest: symbols of a sequence at most, as for ``Sax``.
        distance: how sequences are compared: ``levenshtein``, ``dtw`` or ``euclidean``.
        method: how shapes are found (see ``tempriv.local.shapes.protocol``).
        through: ``messages`` of real devices, or ``grouped``: a fast trial without a guarantee.
        random_state: makes an experiment that can be repeated; nothing is guaranteed then.

    Attributes:
        shapes_: text, count, error and ends of each shape, the most frequent first.
        guarantee_: what is guaranteed about a series.
        outcome_: everything that is known of the campaign, such as ``rounds`` and ``share(shape)``.
        labels_: the number of the nearest shape of each series.
        sax_: how series became sequences.
        n_features_in_: readings of a series, if X was a matrix.

    >>> waves = [np.sin(np.arange(60) / 6 + phase) for phase in (0, 3) for _ in range(500)]
    >>> found = ShapeClusterer(n_shapes=2, symbols=3, longest=6, random_state=1).fit(waves)
    >>> [shape.text for shape in found.shapes_], found.predict([waves[0], waves[-1]]).tolist()
    (['cacb', 'acab'], [0, 1])
    >>> found.guarantee_.sentence
    'Protects nothing: the noise comes from seed 1, so anyone can take it off again.'
    """

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Ask everyone once.

        Parameters:
            X: a matrix with a row for each series, or a list of series of any lengths.
            y: is not looked at.
        """
        series = _series(self, X, reset=True)
        self._keep(self._simulate(series, self.n_shapes))
        self.labels_ = self._nearest(series)[0]
        return self

    def predict(self, X: Any) -> Integers:  # noqa: N803
        """The number of the nearest shape, for each series of ``X``."""
        return self._of_fitted(X)[0]

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """How far the series of ``X`` are from their nearest shape on average, negated.

        ``y`` is not looked at.
        """
        return -float(self._of_fitted(X)[1].mean())


class ShapeClassifier(ClassifierMixin, _ShapeEstimator):  # type: ignore[misc]
    """Frequent shapes of each label, each series with its label protected whole; classifies.

    Labels are asked for together with shapes in the last round, so a label is protected like its
    series. Which labels there are is taken from ``y`` and not protected; have all of them in it
    whoever takes part. What holds for ``ShapeClusterer`` holds here too.

    Parameters:
        n_shapes: how many shapes are looked for in all; as many as labels by default.
        epsilon, symbols, segment, longest, distance, method, through, random_state: those of
            ``ShapeClusterer``.

    Attributes:
        classes_: the labels, sorted.
        shapes_, guarantee_, outcome_, sax_, n_features_in_: those of ``ShapeClusterer``; a shape
            has its ``label`` as text.

    >>> waves = [np.sin(np.arange(60) / 6 + phase) for phase in (0, 3) for _ in range(500)]
    >>> which = ["late"] * 500 + ["early"] * 500
    >>> found = ShapeClassifier(symbols=3, longest=6, random_state=1).fit(waves, which)
    >>> found.predict([waves[0], waves[-1]]).tolist(), found.score(waves, which)
    (['late', 'early'], 1.0)
    """

    def __init__(
        self,
        *,
        epsilon: float = 4.0,
        n_shapes: int | None = None,
        symbols: int = 4,
        segment: int = 10,
        longest: int = 10,
        distance: Distance = "levenshtein",
        method: Method = "automatic",
        through: Through = "messages",
        random_state: Any = None,
    ):
        super().__init__(
            epsilon=epsilon,
            n_shapes=n_shapes,
            symbols=symbols,
            segment=segment,
            longest=longest,
            distance=distance,
            method=method,
            through=through,
            random_state=random_state,
        )

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Ask everyone once, for shape and label together.

        Parameters:
            X: a matrix with a row for each series, or a list of series of any lengths.
            y: the label of each series.
        """
        require(y is not None, "requires y to be passed, but the target y is None", DataError)
        series = _series(self, X, reset=True)
        targets = column_or_1d(y, warn=True)
        check_classification_targets(targets)
        require(
            len(targets) == len(series),
            f"y has {len(targets)} labels for {len(series)} series: must be one for each",
            DataError,
        )
        self.classes_, numbers = np.unique(targets, return_inverse=True)
        names = tuple(str(name) for name in self.classes_.tolist())
        _require_labels(names)
        # one label says nothing, and is not asked for
        labels = names if len(names) > 1 else ()
        shapes = min(len(names), MOST_SHAPES) if self.n_shapes is None else self.n_shapes
        outcome = self._simulate(series, shapes, labels, numbers.tolist() if labels else None)
        self._keep(outcome if labels else with_label(outcome, names[0]))
        self._classes_of_shapes = np.array([names.index(shape.label) for shape in self.shapes_])
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The label of the nearest shape, for each series of ``X``."""
        which = self._of_fitted(X)[0]
        return self.classes_[self._classes_of_shapes[which]]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scores are for many people; of a few dozen the noise shows nothing
        tags.classifier_tags.poor_score = True
        return tags


def _require_labels(names: tuple[str, ...]) -> None:
    require(
        len(names) <= MOST_LABELS,
        f"y has {len(names):,} different labels: must have at most {MOST_LABELS:,}",
        DataError,
    )
    require(
        len(set(names)) == len(names),
        "y has labels that are different but look alike as texts, such as 1 and '1'",
        DataError,
    )
    longest = max(map(len, names))
    require(
        longest <= MOST_TEXT_CHARACTERS,
        f"y has a label of {longest:,} characters: must have at most {MOST_TEXT_CHARACTERS}",
        DataError,
    )


def _whole(name: str, value: Any) -> int:
    """Of any kind of whole numbers, as grids of parameters have them; truth values are none."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    require(whole, f"{name}={value!r}: must be a whole number", DataError)
    return int(value)


def _real(name: str, value: Any) -> float:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    require(real, f"{name}={value!r}: must be a number", DataError)
    return float(value)


def _seed(random_state: Any) -> int | None:
    """None is the operating system's randomness; all else is for experiments."""
    if random_state is None:
        return None
    if isinstance(random_state, (bool, numbers.Integral)):
        return _whole("random_state", random_state)
    return int(check_random_state(random_state).randint(LARGEST_SEED))


def _series(estimator: Any, series: Any, reset: bool) -> Any:
    """A checked matrix; or a list, where series have different lengths."""
    if _are_ragged(series):
        if reset and hasattr(estimator, "n_features_in_"):
            del estimator.n_features_in_
        return [np.asarray(row, dtype=np.float64) for row in series]
    # one to say how long its sequence is, one to say which: nothing is learned of fewer
    least = 2 if reset else 1
    return validate_data(estimator, series, reset=reset, dtype=np.float64, ensure_min_samples=least)


def _are_ragged(series: Any) -> bool:
    array = isinstance(series, np.ndarray)
    if not (isinstance(series, (list, tuple)) or (array and series.dtype == object)):
        return False
    if (array and series.ndim != 1) or not len(series):
        return False
    if not all(
        np.ndim(row) == 1 if isinstance(row, np.ndarray) else isinstance(row, (list, tuple))
        for row in series
    ):
        return False
    return array or len({len(row) for row in series}) > 1
