"""PatternLDP for whole series: against a plain loop, what it hides and what not; its pipelines."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tempriv.errors import DataError, KeyReuseError, UsageError
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.privacy.units.replacement import WholeSeries
from tempriv.sampling.distributions import CategoryFlip
from tempriv.sampling.keys import Key
from tempriv.studies.privshape import baselines, pattern_ldp
from tempriv.studies.privshape.pattern_ldp import (
    EvenSamples,
    OfflinePattern,
    Points,
    bounded_noise,
    breaks,
    flattened,
)
from tests.support.statistics import ALPHA, assert_proportion

VARIANTS = ("as run", "repaired", "clipped")


@pytest.fixture(scope="module")
def walks():
    steps = np.random.default_rng(0).normal(size=(40, 120))
    rows = np.cumsum(steps, axis=1)
    return (rows - rows.mean(axis=1, keepdims=True)) / rows.std(axis=1, keepdims=True)


# the same by a plain loop


def kept_of(row):
    """One series at a time: the cone of slopes that still reach every reading."""
    kept, low, high = [0], -math.inf, math.inf
    for step in range(1, len(row)):
        start = kept[-1]
        gap, rise = step - start, row[step] - row[start]
        if not low <= rise / gap <= high:
            kept.append(step)
            low, high = -math.inf, math.inf
        else:
            low, high = max(low, (rise - 0.5) / gap), min(high, (rise + 0.5) / gap)
    return kept if kept[-1] == len(row) - 1 else [*kept, len(row) - 1]


def scores_of(values, kept, summed):
    """PID control errors, and no step between one and the next higher one above 3."""
    # two points before the first, level with it
    at, height = [-2, -1, *kept], [values[0], values[0], *(values[k] for k in kept)]
    errors, scores = [0.0, 0.0], []
    for n in range(2, len(at)):
        slope = (height[n - 1] - height[n - 2]) / (at[n - 1] - at[n - 2])
        errors.append(abs(height[n - 1] + slope * (at[n] - at[n - 1]) - height[n]))
        mean = sum(errors[max(0, n + 1 - summed) :]) / 5
        change = (errors[n] - errors[n - 1]) / (at[n] - at[n - 1])
        scores.append(max(0.8 * errors[n] + 0.1 * mean + 0.5 * change, 1.5))
    before = None
    for n in sorted(range(len(scores)), key=scores.__getitem__):
        if before is not None:
            scores[n] = min(scores[n], before + 3)
        before = scores[n]
    return scores


def plain(row, epsilon, as_run, uniform):
    """What one person sends."""
    shift = 2 if as_run else 0
    kept = kept_of(row[shift:])
    values = row[: len(row) - shift]
    scores = scores_of(values, kept, 7 if as_run else 5)
    share = (2 / 3 if as_run else 1.0) * epsilon / sum(scores)
    reach = math.log(10 / min(scores) + 1)
    sent = []
    for n, score in enumerate(scores):
        budget, u = share * score, next(uniform)
        tail = math.exp(-budget * reach)
        ratio = 0.5 / (1 - tail)
        if u >= 0.5:
            drawn = -math.log((0.5 + ratio - u) / ratio) / budget
        elif as_run:
            drawn = math.log(u * ratio + tail) / budget
        else:
            drawn = math.log(u / ratio + tail) / budget
        sent.append(values[kept[max(n - shift, 0)]] + drawn)
    line = np.interp(np.arange(len(values)), kept, sent)
    return np.concatenate([line, np.full(shift, line[-1])])


@pytest.mark.parametrize("variant", ["as run", "repaired"])
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_all_people_at_once_send_what_each_of_them_would(walks, variant, epsilon):
    found = OfflinePattern(epsilon=epsilon, variant=variant)._noisy(walks, np.random.default_rng(3))
    numbers = np.random.default_rng(3)
    uniform = iter(lambda: numbers.random(), None)
    expected = np.array([plain(row, epsilon, variant == "as run", uniform) for row in walks])
    # what a rounding makes of noise of a small budget
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_points_are_those_of_a_plain_loop(walks):
    for row, flags in zip(walks, breaks(walks), strict=True):
        assert np.flatnonzero(flags).tolist() == kept_of(row)


def test_scores_climb_by_three_at_most_in_each_series_by_itself(walks):
    wild = walks * np.linspace(1, 60, len(walks))[:, None]  # some with large gaps between scores
    points = Points(wild, breaks(wild))
    scores, found = points.scores(), flattened(points.scores(), points)
    assert (found < scores).any()
    for i, start in enumerate(points.starts):
        own = slice(start, points.starts[i + 1] if i + 1 < len(points.starts) else None)
        climbs = np.diff(np.sort(found[own]))
        assert climbs.max(initial=0) <= 3 + 1e-9
        assert (np.diff(found[own][np.argsort(scores[own])]) >= -1e-9).all()
        assert (found[own] <= scores[own] + 1e-9).all()


# the two slips


def test_bounded_noise_has_the_distribution_it_should_and_the_slip_has_not():
    """A Dvoretzky-Kiefer-Wolfowitz band at alpha: finds deviations of F by more than 0.021."""
    draws, budget, reach = 100_000, 0.7, 2.0
    uniform = np.random.default_rng(1).random(draws)
    grid = np.linspace(-reach, reach, 401)
    tail = math.exp(-budget * reach)
    below = (np.exp(-budget * np.abs(grid)) - tail) / (2 * (1 - tail))
    law = np.where(grid < 0, below, 1 - below)
    band = math.sqrt(math.log(2 / ALPHA) / (2 * draws))
    assert 2 * band < 0.021
    off = []
    for slip in (False, True):
        values = bounded_noise(
            uniform, np.full(draws, budget), np.full(draws, reach), upside_down=slip
        )
        share = np.searchsorted(np.sort(values), grid, side="right") / draws
        off.append(np.abs(share - law).max())
    assert off[0] < band < off[1]


def test_with_the_slip_noise_leaves_its_reach():
    small = np.full(2, 0.01)
    found = bounded_noise(np.array([0.499, 0.501]), small, np.full(2, 2.0), upside_down=True)
    assert found[0] > 200
    assert abs(found[1]) < 2


def test_without_noise_values_stand_where_they_were_and_as_run_two_points_late(walks):
    enormous = 1e9
    repaired = OfflinePattern(epsilon=enormous, variant="repaired").perturbed(
        walks, Key.from_seed(1)
    )
    as_run = OfflinePattern(epsilon=enormous, variant="as run").perturbed(walks, Key.from_seed(1))
    for row, sound, late in zip(walks, repaired.series, as_run.series, strict=True):
        kept = kept_of(row)
        assert np.allclose(sound[kept], row[kept], atol=1e-5)
        kept = kept_of(row[2:])
        assert len(kept) > 4
        assert np.allclose(late[kept[2:]], row[kept[:-2]], atol=1e-5)
        assert np.allclose(late[kept[:2]], row[0], atol=1e-5)


# what is guaranteed


@pytest.mark.parametrize("variant", VARIANTS)
def test_budgets_of_a_series_add_up_and_promise_nothing(walks, variant):
    mechanism = OfflinePattern(epsilon=3.0, variant=variant)
    points = Points(walks, breaks(walks))
    budgets, _ = mechanism._shared(points, 5)
    totals = np.add.reduceat(budgets, points.starts)
    assert np.allclose(totals, 2.0 if variant == "as run" else 3.0)
    labelled = OfflinePattern(epsilon=3.0, variant=variant, classes=(0, 1))
    assert math.isclose(labelled.values_epsilon, 2.0)
    assert isinstance(mechanism.guarantee, NoGuarantee)
    assert ("bounded" in mechanism.guarantee.reason) == (variant != "clipped")
    assert not mechanism.published.holds


def test_bounded_noise_tells_two_series_apart_for_certain():
    rows = np.repeat([[0.0] * 20, [5.0] * 20], 200, axis=0)
    sent = OfflinePattern(epsilon=0.1).perturbed(rows, Key.from_seed(0)).series
    assert sent[:200].max() < 2.04 < 5 - 2.04 < sent[200:].min()


@pytest.mark.parametrize("variant", VARIANTS)
def test_where_a_line_bends_shows_which_points_were_kept(variant):
    """No noise hides it: a straight series is sent as a straight one, another one never is."""
    straight = np.tile(np.linspace(-1, 1, 30), (100, 1))
    broken = straight.copy()
    broken[:, 15:] -= 3.0
    bends = []
    for rows in (straight, broken):
        sent = OfflinePattern(epsilon=0.5, variant=variant).perturbed(rows, Key.from_seed(2)).series
        bends.append(np.abs(np.diff(sent[:, :28], 2)).max(axis=1) > 1e-6)
    assert not bends[0].any()
    assert bends[1].all()


def test_even_samples_promise_epsilon_for_a_whole_series_and_its_label():
    mechanism = EvenSamples(epsilon=1.5, length=20, points=4, bound=2.0, classes=(1, 2, 4))
    assert mechanism.guarantee == Guarantee(Pure(1.5), WholeSeries(20), "local")
    # the worst pair of inputs: every reading from one bound to the other, and another label
    values = 4 * Fraction(2 * 2 * 1024) / mechanism.distribution.scale
    law = CategoryFlip(Fraction(1.5) / 3, 3)
    label = math.log(law.pmf(0) / law.pmf(1))
    assert values == 1
    assert math.isclose(float(values) + label, 1.5, rel_tol=1e-12)
    alone = EvenSamples(epsilon=1.5, length=20, points=4, bound=2.0)
    assert 4 * Fraction(2 * 2 * 1024) / alone.distribution.scale == Fraction(3, 2)


def test_even_samples_depend_on_clipped_readings_at_public_steps_only():
    mechanism = EvenSamples(epsilon=1.0, length=50, points=5)
    rows = np.random.default_rng(0).normal(size=(30, 50))
    rows[:, 0] = 3.0
    sent = mechanism.perturbed(rows, Key.from_seed(3)).series
    other = rows + 0.0
    other[:, 0] = 400.0
    other[:, np.setdiff1d(np.arange(50), mechanism.steps)] = 7.0
    assert (mechanism.perturbed(other, Key.from_seed(3)).series == sent).all()
    other[0, mechanism.steps[1]] += 0.5
    changed = mechanism.perturbed(other, Key.from_seed(3)).series != sent
    assert changed[0].any() and not changed[1:].any()
    assert mechanism.steps.tolist() == [0, 12, 24, 36, 49]
    assert np.abs(np.diff(sent[0], 2))[:11].max() < 1e-9 * np.abs(sent[0]).max()


def test_noise_of_even_samples_is_of_the_distribution():
    mechanism = EvenSamples(epsilon=8.0, length=4, points=4)
    sent = mechanism.perturbed(np.zeros((20_000, 4)), Key.from_seed(4)).series
    drawn = np.rint(sent * 1024).astype(np.int64)
    assert (drawn / 1024 == sent).all()
    # the share beyond one scale: e^-1, but for the grid
    scale = float(mechanism.distribution.scale)
    edge = math.floor(scale)
    beyond = 2 * mechanism.distribution.pmf(edge + 1) / -math.expm1(-1 / scale)
    assert_proportion(int((np.abs(drawn) > edge).sum()), drawn.size, beyond, detects=0.04)


def test_a_key_serves_even_samples_once():
    mechanism, key = EvenSamples(epsilon=1.0, length=10, points=3), Key.from_seed(0)
    mechanism.perturbed(np.zeros((2, 10)), key)
    with pytest.raises(KeyReuseError):
        mechanism.perturbed(np.ones((2, 10)), key)
    mechanism.perturbed(np.ones((2, 10)), key, part="others")


@pytest.mark.parametrize("kind", [OfflinePattern, EvenSamples])
def test_labels_are_kept_as_often_as_a_third_of_epsilon_says(kind):
    size = {"length": 6, "points": 3} if kind is EvenSamples else {}
    mechanism = kind(epsilon=3.0, classes=(4, 1, 2), **size)
    truth = np.repeat([1, 2, 4], 10_000)
    sent = mechanism.perturbed(np.zeros((30_000, 6)), Key.from_seed(5), truth).labels
    keep = math.e / (math.e + 2)
    for label in (1, 2, 4):
        own = sent[truth == label]
        assert_proportion(int((own == label).sum()), len(own), keep, detects=0.08)
        for other in {1, 2, 4} - {label}:
            assert_proportion(int((own == other).sum()), len(own), (1 - keep) / 2, detects=0.17)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_same_for_a_key_and_a_part_however_large_the_blocks(walks, variant, monkeypatch):
    mechanism = OfflinePattern(epsilon=2.0, variant=variant)
    first = mechanism.perturbed(walks, Key.from_seed(1)).series
    assert (mechanism.perturbed(walks, Key.from_seed(1)).series == first).all()
    assert (mechanism.perturbed(walks, Key.from_seed(1), part="b").series != first).any()
    assert (mechanism.perturbed(walks, Key.from_seed(2)).series != first).any()
    monkeypatch.setattr(pattern_ldp, "BATCH_READINGS", 7 * walks.shape[1])
    again = mechanism.perturbed(walks, Key.from_seed(1)).series
    assert np.allclose(again[:7], first[:7])  # later blocks have numbers of their own
    assert again.shape == first.shape and np.isfinite(again).all()


def test_refusals(walks):
    key = Key.from_seed(0)
    with pytest.raises(UsageError, match="epsilon=0"):
        OfflinePattern(epsilon=0)
    with pytest.raises(UsageError, match="variant='published'"):
        OfflinePattern(epsilon=1.0, variant="published")
    with pytest.raises(UsageError, match="two or more different labels"):
        OfflinePattern(epsilon=1.0, classes=(1, 1))
    with pytest.raises(UsageError, match="points=1"):
        EvenSamples(epsilon=1.0, length=10, points=1)
    with pytest.raises(UsageError, match="bound=0"):
        EvenSamples(epsilon=1.0, length=10, bound=0)
    with pytest.raises(UsageError, match="labels: must be given if"):
        OfflinePattern(epsilon=1.0).perturbed(walks, key, np.zeros(len(walks)))
    with pytest.raises(DataError, match=r"one of \(1, 2\)"):
        OfflinePattern(epsilon=1.0, classes=(1, 2)).perturbed(walks, key, np.zeros(len(walks)))
    with pytest.raises(DataError, match="missing or infinite"):
        OfflinePattern(epsilon=1.0).perturbed(np.full((1, 9), np.nan), key)
    with pytest.raises(DataError, match="must be a matrix"):
        OfflinePattern(epsilon=1.0).perturbed(walks[0], key)
    with pytest.raises(DataError, match="length=10"):
        EvenSamples(epsilon=1.0, length=10).perturbed(walks, key)


# pipelines


def pulses(count, seed):
    """Two shapes, each anywhere within 40 steps."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    shapes = np.array([[1.0, 2.0, 3.0, 2.0, 1.0, 0.0], [3.0, 1.0, -1.0, -3.0, -1.0, 1.0]])
    rows = 0.05 * rng.normal(size=(count, 40))
    for row, label, start in zip(rows, labels, rng.integers(0, 34, size=count), strict=True):
        row[start : start + 6] += shapes[label]
    return rows, labels


def test_shape_distance_is_that_of_all_shifts_one_by_one():
    rows = np.random.default_rng(0).normal(size=(6, 9))
    distances, shifts = baselines.shape_distances(rows[:4], rows[4:])
    for i, row in enumerate(rows[:4]):
        for j, center in enumerate(rows[4:]):
            moved = {
                by: float(baselines.shifted(row[None], np.array([by]))[0] @ center)
                for by in range(-8, 9)
            }
            best = max(moved, key=moved.__getitem__)
            scale = np.linalg.norm(row) * np.linalg.norm(center)
            assert shifts[i, j] == best
            assert math.isclose(distances[i, j], 1 - moved[best] / scale, abs_tol=1e-12)


@pytest.mark.parametrize("people", [5, 30])
def test_an_extracted_shape_correlates_best(people):
    rng = np.random.default_rng(1)
    rows = baselines.z_scored(rng.normal(size=(people, 12)) + np.sin(np.arange(12)))
    found = baselines.extracted_shape(rows)
    best = ((rows @ found) ** 2).sum()
    others = baselines.z_scored(found + 0.1 * rng.normal(size=(500, 12)))
    assert (((rows @ others.T) ** 2).sum(axis=0) < best).all()
    assert (rows @ found).sum() > 0


def test_k_shape_finds_shapes_wherever_they_are():
    rows, labels = pulses(80, seed=2)
    centers = baselines.kshape_centers(rows, 2, Key.from_seed(1))
    found = baselines.nearest(baselines.z_scored(rows), centers, distance="shape")
    assert max(np.mean(found == labels), np.mean(found != labels)) == 1
    again = baselines.kshape_centers(rows, 2, Key.from_seed(1))
    assert (again == centers).all()
    with pytest.raises(UsageError, match="clusters=81"):
        baselines.kshape_centers(rows, 81, Key.from_seed(1))
    with pytest.raises(UsageError, match="distance='dtw'"):
        baselines.nearest(rows, centers, distance="dtw")


def test_means_forest_and_rand_index_on_what_is_easy():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(4)
    labels = np.repeat([1, 2, 4], 60)
    rows = labels[:, None] + np.sin(np.arange(15)) + 0.1 * rng.normal(size=(180, 15))
    key = Key.from_seed(0)
    centers = baselines.kmeans_centers(rows, 3, key)
    heights = np.sort((centers - np.sin(np.arange(15))).mean(axis=1))
    assert np.allclose(heights, [1, 2, 4], atol=0.05)
    found = baselines.nearest(rows, centers)
    assert baselines.adjusted_rand(labels, found) == 1
    assert abs(baselines.adjusted_rand(labels, rng.permutation(found))) < 0.1
    right = baselines.forest_accuracy(rows, labels, rows, labels, key, least_leaf=5, trees=5)
    wrong = baselines.forest_accuracy(
        rows, np.roll(labels, 60), rows, labels, key, least_leaf=5, trees=5
    )
    assert (right, wrong) == (1, 0)
