"""Estimators of shapes: scikit-learn's own checks, ragged series, and what is guaranteed."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("rapidfuzz")

from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from tempriv.errors import DataError, TemprivError
from tempriv.local.shapes.estimators import ShapeClassifier, ShapeClusterer
from tempriv.local.shapes.plan import METHODS, ShapesPlan
from tempriv.local.shapes.protocol import Shape, ShapesProtocol
from tempriv.local.shapes.sax import Sax
from tempriv.local.shapes.sequences import Sequences
from tempriv.local.shapes.simulate import describe_outcome, guarantee_of, nearest, simulate
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.privacy.units import WholeSeries
from tempriv.report.shapes import page
from tempriv.studies.privshape.pattern_ldp import OfflinePattern

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
    plan = ShapesPlan(epsilon=4.0, shapes=2, people=3000, sax=SAX, method=method, labels=names)
    numbers = [names.index(label) for label in labels] if labelled else None
    for through in ("messages", "grouped"):
        done = []
        found = simulate(plan, series, numbers, through=through, seed=3, progress=done.append)
        assert sum(done) == sum(one.people for one in found.rounds) <= 3000
        assert {shape.text[:3] for shape in found.shapes} & {"acb", "cab"}
        told = describe_outcome(found, declared=False)
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
    assert guarantee_of(plan) == found.guarantee_ and isinstance(
        guarantee_of(plan, seed=0), NoGuarantee
    )


def test_a_seed_repeats_and_another_does_not():
    series, _ = waves(300)
    first, second, other = (
        ShapeClusterer(n_shapes=2, **FORMS, random_state=seed).fit(series).outcome_
        for seed in (5, 5, 6)
    )
    assert first == second and first.shapes != other.shapes
    from numpy.random import RandomState

    assert ShapeClusterer(**FORMS, random_state=RandomState(1)).fit(series).shapes_


def test_sureness_is_told_of_whole_sequences_only():
    """Where all must name some candidate, large counts say nothing of who has it: nobody may."""
    series = [np.ones(40)] * 2000
    sax = Sax(symbols=4, segment=4, longest=4)
    for method in ("nearest", "published", "baseline"):
        plan = ShapesPlan(epsilon=4.0, shapes=3, people=2000, sax=sax, method=method)
        found = simulate(plan, series, through="grouped", seed=1)
        assert {found.is_sure(shape) for shape in found.shapes} == {None}, method
        told = describe_outcome(found)
        assert {one["sure"] for one in told["shapes"]} == {None}
        text = page(told)
        assert "surely there" not in text.lower()
        said = "noisy reports" if method == "baseline" else "nearest to about"
        assert f"{said}" in text
    plan = ShapesPlan(epsilon=4.0, shapes=3, people=2000, sax=sax, method="one-shot")
    found = simulate(plan, series, through="grouped", seed=1)
    assert found.is_sure(found.shapes[0]) is True
    assert "surely there" in page(describe_outcome(found)).lower()


def test_only_what_is_from_the_paper_says_so():
    series = waves(300)[0]
    for method in METHODS:
        plan = ShapesPlan(epsilon=4.0, shapes=2, people=300, sax=SAX, method=method)
        told = describe_outcome(simulate(plan, series, seed=1))
        ours = method not in ("published", "baseline")
        assert (plan.published is None) == ours == (told["published"] is None)
        assert ("none: not from the paper" in page(told)) == ours


def test_the_authors_are_those_of_the_paper():
    found = [
        ShapesPlan(epsilon=1.0, shapes=1, people=9, sax=SAX, method="published").published.source
    ]
    found.append(OfflinePattern(epsilon=1.0).published.source)
    assert all(one.startswith("Mao, Ye, Hu, Wang and Huang 2024") for one in found)


def test_several_shapes_of_a_label_are_kept_and_need_not_be_sure():
    """Several of a label classify better: they are kept where they are likely its own."""
    assert "likely its own" in ShapesProtocol._of_each_label.__doc__
    series, labels = waves(200)
    plan = ShapesPlan(
        epsilon=4.0,
        shapes=2,
        people=200,
        sax=Sax(symbols=4, segment=4, longest=8),
        labels=("early", "late"),
    )
    numbers = [plan.labels.index(label) for label in labels]
    kept = [simulate(plan, series, numbers, through="grouped", seed=seed) for seed in range(8)]
    assert any(found.is_sure(shape) is False for found in kept for shape in found.shapes)


def test_shares_are_shown_from_none_to_all():
    series = waves(300)[0]
    found = simulate(ShapesPlan(epsilon=0.5, shapes=2, people=300, sax=SAX), series, seed=1)
    for count in (-50.0, 10.0, 900.0):
        shape = Shape("ab", count, 20.0)
        share, low, high = found.share(shape)
        assert 0 <= low <= share <= high <= 1
        told = describe_outcome(replace(found, shapes=(shape,)))
        shown = page(told).replace("\u00a0", " ")
        assert f"{100 * share:.1f} %" in shown and f"{100 * low:.1f} to {100 * high:.1f} %" in shown
        assert told["shapes"][0]["count"] == count, "counts stay unbiased"


def test_labels_stand_side_by_side_in_a_report():
    series, labels = waves(3000)
    plan = ShapesPlan(epsilon=4.0, shapes=2, people=3000, sax=SAX, labels=("early", "late"))
    numbers = [plan.labels.index(label) for label in labels]
    text = page(describe_outcome(simulate(plan, series, numbers, seed=1)))
    (pictures,) = re.findall(r'<div class="pair".*?</div>', text, re.DOTALL)
    assert pictures.count("<figure>") >= 2
    assert "label early" in pictures and "label late" in pictures


@pytest.mark.parametrize("method", METHODS)
def test_a_campaign_refuses_by_its_plan_or_not_at_all(method):
    """Whether people are too few must not depend on what they would answer."""
    sax = Sax(symbols=2, segment=10, longest=12)
    flat = np.ones((100, 200))
    zigzag = np.array([np.repeat([0.0, 1.0] * 10, 10)] * 100)
    refused = 0
    for people in (1, 2, 5, 12, 20, 100):
        plan = ShapesPlan(epsilon=8.0, shapes=1, people=people, sax=sax, method=method)
        said = set()
        for series, seed in itertools.product((flat, zigzag), range(6)):
            for through in ("messages", "grouped"):
                try:
                    found = simulate(plan, series[:people], through=through, seed=seed)
                except DataError as reason:
                    said.add(str(reason))
                    continue
                said.add("played")
                assert found.shapes
                assert sum(one.people for one in found.rounds) <= people
                json.dumps(describe_outcome(found), allow_nan=False)
                assert page(describe_outcome(found))
                if method != "automatic":
                    assert found.counted > 0
        (only,) = said
        if only != "played":
            refused += 1
            assert "too few" in only and f"take method {method}" not in only
            assert ("one-shot" in only) == (method not in ("automatic",)), only
            enough = int(re.search(r"(\d+) would do", only)[1])
            more = ShapesPlan(epsilon=8.0, shapes=1, people=enough, sax=sax, method=method)
            assert simulate(more, np.ones((enough, 200)), through="grouped", seed=1).counted > 0
    assert 0 < refused < 6


def test_a_campaign_that_runs_out_of_people_ends_with_what_it_knows():
    sax = Sax(symbols=6, segment=1, longest=10)
    series = np.random.default_rng(1).normal(size=(4, 60))
    plan = ShapesPlan(epsilon=8.0, shapes=2, people=4, sax=sax)
    counted = set()
    for seed in range(20):
        found = simulate(plan, series, seed=seed)
        told = describe_outcome(found)
        counted.add(found.counted)
        if not found.counted:
            assert found.share(found.shapes[0]) == (0.0, 0.0, 1.0)
            assert told["shapes"][0]["standard_error"] is None
            assert "nobody was left" in page(told).lower() and "not known" in page(told)
    assert 0 in counted


@pytest.mark.parametrize("through", ["messages", "grouped"])
def test_series_longer_than_was_declared_are_refused(through):
    series = waves(300, (60, 90))[0]
    plan = ShapesPlan(epsilon=4.0, shapes=2, people=300, sax=SAX, readings=89)
    with pytest.raises(DataError, match="readings=89: a series has 90 readings"):
        simulate(plan, series, through=through)
    with pytest.raises(DataError, match="readings=89"):
        simulate(plan, np.ones((300, 90)), through=through)
    longer = ShapesPlan(epsilon=4.0, shapes=2, people=300, sax=SAX, readings=90)
    assert simulate(longer, series, through=through).shapes


def test_a_campaign_has_the_name_it_was_given():
    series = waves(300)[0]
    plan = ShapesPlan(epsilon=4.0, shapes=2, people=300, sax=SAX)
    for through in ("messages", "grouped"):
        assert simulate(plan, series, through=through, campaign="a" * 32).campaign == "a" * 32


def test_what_noise_makes_up_is_not_sure():
    """Nobody has a shape of its own: of 40 campaigns about 1 may call one sure; 9: alpha 1e-4."""
    rng = np.random.default_rng(4)
    plan = ShapesPlan(epsilon=1.0, shapes=3, people=400, sax=Sax(symbols=4, segment=1, longest=6))
    series = rng.normal(size=(400, 40))
    wrong = 0
    for seed in range(40):
        found = simulate(plan, series, through="grouped", seed=seed)
        wrong += any(found.is_sure(shape) for shape in found.shapes)
    assert wrong < 9
    common = simulate(plan, [np.arange(40.0)] * 400, through="grouped", seed=1)
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
        ({"epsilon": True}, [[1.0, 2.0], [1.0]], "epsilon=True"),
        ({"epsilon": "4"}, [[1.0, 2.0], [1.0]], "epsilon='4'"),
        ({"segment": True}, [[1.0, 2.0], [1.0]], "segment=True"),
        ({"n_shapes": 0}, [[1.0, 2.0], [1.0]], "shapes=0"),
        ({"random_state": True}, [[1.0, 2.0], [1.0]], "random_state=True"),
        ({"n_shapes": 2.5}, [[1.0, 2.0], [1.0]], "n_shapes=2.5"),
        ({"through": "post"}, [[1.0, 2.0], [1.0]], "through='post'"),
        ({"method": "best"}, [[1.0, 2.0], [1.0]], "method=best"),
        ({}, [[1.0, np.nan], [1.0]], "missing or infinite"),
        ({}, [[1.0, 2.0], []], "empty"),
        ({"random_state": -1}, [[1.0, 2.0], [1.0]], "seed=-1"),
        ({"method": "nearest"}, [[1.0, 2.0], [1.0]], "too few"),
    ],
    ids=[
        "epsilon",
        "truth",
        "text",
        "segment",
        "none",
        "state",
        "shapes",
        "through",
        "method",
        "missing",
        "empty",
        "seed",
        "few",
    ],
)
def test_refusals_name_the_value(settings, series, said):
    with pytest.raises(TemprivError, match=said):
        ShapeClusterer(**settings).fit(series)


def test_labels_must_be_there():
    with pytest.raises(DataError, match="one for each"):
        ShapeClassifier().fit([[1.0, 2.0], [1.0]], ["a"])


def test_numbers_of_any_kind_are_taken():
    series, labels = waves(300)
    for epsilon, whole in ((np.float32(4), np.int64(2)), (Fraction(4), np.uint8(2)), (4, 2)):
        found = ShapeClusterer(epsilon=epsilon, n_shapes=whole, **FORMS, random_state=np.int32(1))
        assert found.fit(series).outcome_.plan.epsilon == 4.0
    with pytest.raises(TemprivError, match="shapes=0"):
        ShapeClassifier(n_shapes=0, **FORMS).fit(series, labels)


def test_labels_too_many_too_long_or_alike():
    series = [[1.0, 2.0, 3.0]] * 1025
    with pytest.raises(DataError, match="1,025 different labels: must have at most 1,024"):
        ShapeClassifier().fit(series, np.arange(1025))
    with pytest.raises(DataError, match="a label of 300 characters: must have at most 200"):
        ShapeClassifier().fit(series, ["x" * 300, "y"] * 512 + ["y"])
    # as many shapes as labels, but no more than there may be
    found = ShapeClassifier(segment=1, random_state=1).fit(series[:400], np.arange(400) % 300)
    assert found.outcome_.plan.shapes == 256
    with pytest.raises(TemprivError, match="a label of 201 characters"):
        ShapesPlan(epsilon=1.0, shapes=2, people=9, sax=SAX, labels=("a", "b" * 201))
    with pytest.raises(TemprivError, match="1,025 labels: must be at most 1,024"):
        ShapesPlan(epsilon=1.0, shapes=2, people=9, sax=SAX, labels=tuple(map(str, range(1025))))


def test_what_can_never_be_asked_for_at_once_is_refused_before():
    labels = tuple(map(str, range(400)))
    given = {"epsilon": 1.0, "shapes": 2, "people": 9, "labels": labels}
    given["sax"] = Sax(symbols=26, longest=3)
    with pytest.raises(TemprivError, match="26 symbols and 400 labels: too many to ask"):
        ShapesPlan(method="one-shot", **given)
    assert ShapesPlan(method="nearest", **given)
