"""Estimators of shapes: scikit-learn's own checks, ragged series, and what is promised."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("rapidfuzz")

from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from tempriv.errors import DataRefusal, Refusal
from tempriv.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.population.campaign import about, nearest, play, promise
from tempriv.population.estimators import ShapeClassifier, ShapeClusterer
from tempriv.population.sax import Sax
from tempriv.population.sequences import Sequences
from tempriv.population.shapes_course import METHODS, Plan, Shape
from tempriv.units import WholeSeries

NOT_FOR_SHAPES = {
    "check_clustering": "its clusters are clouds of points that differ in level, which shapes "
    "leave out, and of fifty points the noise shows nothing",
}
SAX = Sax(symbols=3, segment=10, longest=6)
FORMS = {"symbols": 3, "longest": 6}


def waves(people: int, lengths=(60,)) -> tuple[list[np.ndarray], list[str]]:
    """Two shapes, three of one for each of the other; of several lengths."""
    series, labels = [], []
    for i in range(people):
        length = lengths[i % len(lengths)]
        turned = i % 4 == 0
        wave = np.repeat([2.0, 0.0, 1.0] if turned else [0.0, 2.0, 1.0], length // 3)
        series.append((1 + i % 7) * wave + i)
        labels.append("early" if turned else "late")
    return series, labels


@parametrize_with_checks(
    [ShapeClusterer(), ShapeClassifier(), ShapeClusterer(segment=1, through="grouped")],
    expected_failed_checks=lambda one: NOT_FOR_SHAPES if isinstance(one, ShapeClusterer) else {},
)
def test_as_scikit_learn_wants_it(estimator, check):
    check(estimator)


@pytest.mark.parametrize("through", ["messages", "grouped"])
def test_shapes_of_ragged_series(through):
    series, _ = waves(2000, (60, 90, 120))
    found = ShapeClusterer(n_shapes=2, **FORMS, through=through, random_state=1).fit(series)
    assert [shape.text for shape in found.shapes_] == ["acb", "cab"]
    # of 1,960 asked, three quarters; the standard error is about 20, so six of them: alpha 2e-9
    assert abs(found.shapes_[0].count - 1470) < 6 * found.shapes_[0].error
    assert found.labels_.tolist() == [int(i % 4 == 0) for i in range(2000)]
    assert found.score(series) == 0.0 and found.score([series[0][::-1]]) < 0
    assert not hasattr(found, "n_features_in_")
    as_objects = np.empty(len(series), dtype=object)
    as_objects[:] = series
    again = clone(found).fit(as_objects)
    assert again.shapes_ == found.shapes_


def test_a_matrix_has_features_and_ragged_series_none():
    series, _ = waves(400)
    found = ShapeClusterer(n_shapes=2, **FORMS, random_state=1).fit(np.array(series))
    assert found.n_features_in_ == 60
    with pytest.raises(ValueError, match="60 features"):
        found.predict(np.ones((2, 59)))
    assert found.predict([series[0], series[1][:50]]).shape == (2,)
    found.fit(waves(400, (60, 90))[0])
    assert not hasattr(found, "n_features_in_")


def test_labels_come_with_shapes():
    series, labels = waves(2000, (60, 90))
    found = ShapeClassifier(**FORMS, random_state=2).fit(series, labels)
    assert found.classes_.tolist() == ["early", "late"]
    assert {shape.label for shape in found.shapes_} == {"early", "late"}
    assert found.score(series, labels) == 1.0
    numbers = [7 if label == "early" else 9 for label in labels]
    assert set(clone(found).fit(series, numbers).predict(series[:4]).tolist()) == {7, 9}


def test_one_label_is_not_asked_for():
    series, _ = waves(400)
    found = ShapeClassifier(**FORMS, random_state=2).fit(series, ["only"] * 400)
    assert found.outcome_.plan.labels == ()
    assert set(found.predict(series)) == {"only"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("labelled", [False, True], ids=["shapes", "labels"])
def test_every_method_asks_everyone_at_most_once(method, labelled):
    series, labels = waves(3000)
    names = ("early", "late") if labelled else ()
    plan = Plan(epsilon=4.0, shapes=2, people=3000, sax=SAX, method=method, labels=names)
    numbers = [names.index(label) for label in labels] if labelled else None
    for through in ("messages", "grouped"):
        done = []
        found = play(plan, series, numbers, through=through, seed=3, progress=done.append)
        assert sum(done) == sum(one.people for one in found.rounds) <= 3000
        assert {shape.text[:3] for shape in found.shapes} & {"acb", "cab"}
        told = about(found, declared=False)
        assert any("taken from the table" in point for point in told["not_protected"]) == labelled


def test_the_promise_is_that_of_devices():
    series, _ = waves(200)
    found = ShapeClusterer(n_shapes=2, **FORMS).fit(series)
    assert found.guarantee_ == Guarantee(Pure(4.0), WholeSeries(1_000_000), "local")
    other = ShapeClusterer(n_shapes=2, **FORMS).fit(series)
    assert [s.count for s in other.shapes_] != [s.count for s in found.shapes_]  # alpha below 1e-2
    for more in ({"random_state": 1}, {"through": "grouped"}):
        nothing = ShapeClusterer(n_shapes=2, **FORMS, **more).fit(series).guarantee_
        assert isinstance(nothing, NoGuarantee)
    plan = found.outcome_.plan
    assert promise(plan) == found.guarantee_ and isinstance(promise(plan, seed=0), NoGuarantee)


def test_a_seed_repeats_and_another_does_not():
    series, _ = waves(300)
    first, second, other = (
        ShapeClusterer(n_shapes=2, **FORMS, random_state=seed).fit(series).outcome_
        for seed in (5, 5, 6)
    )
    assert first == second and first.shapes != other.shapes
    from numpy.random import RandomState

    assert ShapeClusterer(**FORMS, random_state=RandomState(1)).fit(series).shapes_


def test_what_noise_makes_up_is_not_sure():
    """Nobody has a shape of its own: of 40 campaigns about 1 may call one sure; 9: alpha 1e-4."""
    rng = np.random.default_rng(4)
    plan = Plan(epsilon=1.0, shapes=3, people=400, sax=Sax(symbols=4, segment=1, longest=6))
    series = rng.normal(size=(400, 40))
    wrong = 0
    for seed in range(40):
        found = play(plan, series, through="grouped", seed=seed)
        wrong += any(found.is_sure(shape) for shape in found.shapes)
    assert wrong < 9
    common = play(plan, [np.arange(40.0)] * 400, through="grouped", seed=1)
    assert common.is_sure(common.shapes[0]) and common.shapes[0].text == "abcd"


def test_nearest_compares_what_goes_on_with_a_beginning():
    own = Sequences.of(["abab", "ba"], symbols=2)
    shapes = [Shape("ab", 9.0, 1.0, None, False), Shape("baba", 10.0, 1.0)]
    found, far = nearest(shapes, own, "levenshtein")
    assert found.tolist() == [0, 1] and far.tolist() == [0.0, 2.0]
    ended = [Shape("ab", 9.0, 1.0), Shape("baba", 10.0, 1.0)]
    assert nearest(ended, own, "levenshtein")[1].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("settings", "series", "said"),
    [
        ({"epsilon": 0.0}, [[1.0, 2.0], [1.0]], "epsilon=0.0"),
        ({"n_shapes": 2.5}, [[1.0, 2.0], [1.0]], "n_shapes=2.5"),
        ({"through": "post"}, [[1.0, 2.0], [1.0]], "through='post'"),
        ({"method": "best"}, [[1.0, 2.0], [1.0]], "method=best"),
        ({}, [[1.0, np.nan], [1.0]], "missing or infinite"),
        ({}, [[1.0, 2.0], []], "empty"),
        ({"random_state": -1}, [[1.0, 2.0], [1.0]], "seed=-1"),
        ({"method": "nearest"}, [[1.0, 2.0], [1.0]], "too few"),
    ],
    ids=["epsilon", "shapes", "through", "method", "missing", "empty", "seed", "few"],
)
def test_refusals_name_the_value(settings, series, said):
    with pytest.raises(Refusal, match=said):
        ShapeClusterer(**settings).fit(series)


def test_labels_must_be_there():
    with pytest.raises(DataRefusal, match="one for each"):
        ShapeClassifier().fit([[1.0, 2.0], [1.0]], ["a"])
