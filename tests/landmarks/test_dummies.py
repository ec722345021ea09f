"""Dummy landmarks as published and what they show, and marks that do hide."""

from __future__ import annotations

import doctest
import itertools
import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from tempriv.errors import KeyReuseError, UsageError
from tempriv.landmarks import dummies, dummy_sets
from tempriv.landmarks.dummies import DummyLandmarks, RandomizedMarks
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.privacy.units import Event
from tempriv.sampling.exponential import ExponentialChoice
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import Keystream, StepRange
from tests.reference import dummies as reference
from tests.support.paths import DOCS
from tests.support.scripted import ONES, Scripted, run
from tests.support.statistics import assert_cells, assert_proportion

pytest_plugins = ["tests.support.statistics"]


def marked(length, landmarks):
    return np.isin(np.arange(length), sorted(landmarks))


def some_landmarks(rng, most, least=1):
    length = int(rng.integers(2, most))
    count = int(rng.integers(min(least, length), length + 1))
    return length, set(rng.choice(length, count, replace=False).tolist())


# bins


def test_bins_are_those_of_the_rule(seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        length, landmarks = some_landmarks(rng, 80, least=0)
        bins = dummy_sets.histogram(marked(length, landmarks))
        width, counts, capacity = reference.bins(length, landmarks)
        assert (bins.width, bins.counts.tolist(), bins.capacity.tolist()) == (
            width,
            counts,
            capacity,
        )


def test_the_last_bin_has_room_for_its_moments_only():
    bins = dummy_sets.histogram(marked(12, {0, 5, 6}))
    assert bins.width == 5 and bins.capacity.tolist() == [5, 5, 2]
    # all of Algorithm 1's histograms fit the series, and the last one is the series
    options = dummy_sets.partitioned(marked(12, {0, 5, 6}))
    assert all((options.counts(i) <= bins.capacity).all() for i in range(len(options)))
    assert options.counts(len(options) - 1).tolist() == [5, 5, 2]


@pytest.mark.parametrize("landmarks", [set(), {7}], ids=["none", "one"])
def test_without_a_spread_there_is_one_bin(landmarks):
    bins = dummy_sets.histogram(marked(10, landmarks))
    assert bins.width == 10 and bins.capacity.tolist() == [10]


# options


@pytest.mark.parametrize("distance", ["euclidean", "wasserstein"])
def test_partitioned_is_algorithm_1(distance, seed):
    rng = np.random.default_rng(seed)
    difference = {"euclidean": reference.squares, "wasserstein": reference.transport}[distance]
    bins_seen = set()
    for _ in range(150):
        length, landmarks = some_landmarks(rng, 40)
        options = dummy_sets.partitioned(marked(length, landmarks), distance)
        width, counts, capacity = reference.bins(length, landmarks)
        wanted = reference.algorithm_1(counts, capacity, difference)
        assert [options.counts(i).tolist() for i in range(len(options))] == wanted
        far = [difference(counts, option) for option in wanted]
        far = [width * d if distance == "wasserstein" else math.sqrt(d) for d in far]
        assert options.distances == pytest.approx([float(d) for d in far])
        assert (options.normalized <= 1 + 1e-12).all()
        bins_seen.add(len(counts))
    assert len(bins_seen) > 5


def test_a_histogram_is_as_near_as_its_moments_are_on_average(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        length, landmarks = some_landmarks(rng, 40)
        options = dummy_sets.partitioned(marked(length, landmarks))
        width, counts, _ = reference.bins(length, landmarks)
        for i in range(len(options)):
            total = Fraction(0)
            for b, more in enumerate(options.counts(i) - counts):
                inside = range(b * width, min((b + 1) * width, length))
                regular = [t for t in inside if t not in landmarks]
                total += int(more) * reference.nearness(regular, landmarks) if regular else 0
            assert options.nearness[i] == pytest.approx(float(total / (i + 1)))
        assert options.utilities("temporal").tolist() == (-options.nearness).tolist()
        count = len(landmarks)
        assert options.utilities("count").tolist() == [
            -(count + i + 1) for i in range(len(options))
        ]
        assert options.utilities("distance").tolist() == (-options.distances).tolist()


@pytest.mark.parametrize("distance", ["wasserstein", "temporal"])
@pytest.mark.parametrize("name", ["optimal", "heuristic"])
def test_sets_are_those_of_the_definition(name, distance, seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        length, landmarks = some_landmarks(rng, 10)
        options = getattr(dummy_sets, name)(marked(length, landmarks), distance)
        wanted = getattr(reference, name)(length, landmarks, distance)
        assert options.sets is not None
        assert [set(np.flatnonzero(one).tolist()) for one in options.sets] == wanted
        far = [reference.distance(length, landmarks, list(s - landmarks), distance) for s in wanted]
        assert options.distances == pytest.approx([float(d) for d in far])
        assert (options.normalized <= 1).all()


def test_a_greedy_choice_can_be_farther_than_the_best():
    landmarks = marked(8, {0, 3, 4})
    best, greedy = (f(landmarks, "wasserstein") for f in (dummy_sets.optimal, dummy_sets.heuristic))
    assert (best.distances <= greedy.distances + 1e-12).all()
    assert (best.distances < greedy.distances - 1e-9).any()
    near = dummy_sets.heuristic(landmarks, "temporal")
    assert near.distances.tolist() == dummy_sets.optimal(landmarks, "temporal").distances.tolist()


def test_many_moments_take_no_time(seed):
    """A hundred thousand steps are laid out at once; the bins are filled evenly."""
    rng = np.random.default_rng(seed)
    marks = rng.random(100_000) < 0.2
    options = dummy_sets.partitioned(marks)
    assert len(options) == np.count_nonzero(~marks)
    assert np.ptp(options.counts(999) - options.bins.counts) <= 1
    hidden = DummyLandmarks(epsilon=0.01).select(marks, Key.from_seed(3), "long")
    assert hidden.marks[marks].all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: dummy_sets.optimal(marked(18, {0})), "17 regular moments: optimal compares"),
        (lambda: dummy_sets.heuristic(marked(5001, {0})), "5001 moments: heuristic holds"),
        (lambda: dummy_sets.heuristic([1, 0], "euclidean"), "all equally far"),
        (lambda: dummy_sets.optimal([1, 0], "euclidean"), "all equally far"),
        (lambda: dummy_sets.optimal([1, 0], "other"), "must be temporal or wasserstein"),
        (lambda: dummy_sets.partitioned([1, 0], "temporal"), "by euclidean or wasserstein"),
        (lambda: dummy_sets.partitioned([0, 0], "wasserstein"), "no landmarks have none"),
        (lambda: dummy_sets.heuristic([0, 0]), "needs a landmark"),
        (lambda: dummy_sets.optimal([0, 0]), "needs a landmark"),
        (lambda: dummy_sets.optimal([0, 0], "wasserstein"), "needs a landmark"),
        (lambda: dummy_sets.partitioned([0, 0]).utilities("temporal"), "score='count'"),
        (lambda: dummy_sets.partitioned([]), "one mark"),
        (lambda: dummy_sets.partitioned([[1]]), "one mark"),
        (lambda: DummyLandmarks(epsilon=0), "epsilon=0: must be a number > 0"),
        (lambda: DummyLandmarks(epsilon=1, sensitivity=-1), "sensitivity=-1"),
        (lambda: DummyLandmarks(epsilon=1, options="all"), "options='all'"),
        (lambda: DummyLandmarks(epsilon=1, score="good"), "score='good'"),
        (lambda: DummyLandmarks(epsilon=1, options="optimal"), "distance='euclidean'"),
        (lambda: RandomizedMarks(epsilon=1, recall=1), "recall=1: must be > 0 and < 1"),
        (lambda: RandomizedMarks(epsilon=-1, recall=0.5), "epsilon=-1"),
    ],
    ids=itertools.count(),
)
def test_what_cannot_be_meant_is_refused(call, sentence):
    with pytest.raises(UsageError, match=sentence):
        call()


def test_too_many_bins_for_transport_are_refused():
    marks = np.zeros(80_000, dtype=bool)
    marks[:4] = True
    with pytest.raises(UsageError, match="40000 bins of 79996 regular moments: too many"):
        dummy_sets.partitioned(marks, "wasserstein")


# the selection


def test_the_choice_follows_its_distribution(seed):
    law = ExponentialChoice(np.array([-3.0, 0.5, 0.0, -1.25]), 1.5, 2.0)
    weights = np.exp(1.5 * law.utilities / 4)
    assert law.probabilities == pytest.approx(weights / weights.sum(), rel=1e-12)
    assert [law.pmf(k) for k in range(-1, 5)] == [0, *law.probabilities, 0]
    assert law.outcomes(0.0) == list(enumerate(law.probabilities.tolist()))
    drawn = law.sample(Keystream([run(seed % 2**32, 200_000)], "choice"))
    assert_cells(np.bincount(drawn, minlength=4), law.probabilities, detects=0.03)


def test_a_large_budget_overflows_nothing():
    law = ExponentialChoice(np.array([-1e6, -1e3, -2e6]), 1e3, 1.0)
    assert law.probabilities.tolist() == [0, 1, 0]
    assert law.sample(Keystream([run(5, 100)], "choice")).tolist() == [1] * 100


def test_the_choice_is_exact_at_the_edge():
    """One of three, each a third: 2^64 / 3 begins with 0x5555..., and never ends."""
    law = ExponentialChoice(np.zeros(3), 1.0, 1.0)
    third = ONES // 3
    more = [((0,), depth) for depth in range(2)]
    for digits, expected in [
        ([third], None),  # the next digits decide
        ([third - 1], 0),
        ([third + 1], 1),
        ([third, third, third - 1], 0),
        ([third, third, third + 1], 1),
        ([2 * third, 2 * third - 1], 1),
        ([2 * third, 2 * third + 1], 2),
    ]:
        script = dict(zip([((), 0), *more], ({0: digit} for digit in digits), strict=False))
        words = Scripted(Keystream([run(5, 1)], "choice"), script)
        drawn = int(law.sample(words)[0])
        assert drawn in (0, 1) if expected is None else drawn == expected


@pytest.mark.parametrize("chosen", [0, 1, 2], ids=str)
def test_dummies_are_drawn_without_replacement(chosen, seed):
    """7 moments in bins of 5 and 2: the law is that of one draw after the other."""
    length, landmarks = 7, {0, 6}
    options = dummy_sets.partitioned(marked(length, landmarks))
    width, _, capacity = reference.bins(length, landmarks)
    counts = options.counts(chosen)
    assert len(set(capacity)) == 2
    density = {
        t: Fraction(int(counts[t // width]), capacity[t // width])
        for t in range(length)
        if t not in landmarks
    }
    law = reference.without_replacement(density, chosen + 1)
    assert len(set(law.values())) > 1
    draws = 6_000
    key = Key.from_seed(seed)
    found: dict[frozenset[int], int] = {}
    for i in range(draws):
        words = Keystream([StepRange(key.series("draws", str(i)), 0, length)], "dummies")
        added = frozenset(np.flatnonzero(dummies.sample_from(options, chosen, words)).tolist())
        found[added] = found.get(added, 0) + 1
    assert found.keys() <= law.keys()
    sets = sorted(law, key=sorted)
    assert_cells([found.get(s, 0) for s in sets], [float(law[s]) for s in sets], detects=0.2)


@pytest.mark.parametrize(
    "hiding",
    [
        DummyLandmarks(epsilon=0.5),
        DummyLandmarks(epsilon=0.5, score="count", distance="wasserstein"),
        DummyLandmarks(epsilon=0.5, options="heuristic", distance="temporal", score="count"),
        DummyLandmarks(epsilon=0.5, options="optimal", distance="wasserstein", score="distance"),
    ],
    ids=["partitioned", "transport", "heuristic", "optimal"],
)
def test_landmarks_stay_and_dummies_join(hiding):
    marks = marked(14, {2, 3, 9})
    sizes = set()
    for seed in range(40):
        hidden = hiding.select(marks, Key.from_seed(seed), "ann")
        assert hidden.marks[marks].all() and np.count_nonzero(hidden.marks) > 3
        sizes.add(np.count_nonzero(hidden.marks))
        assert (
            hidden.marks.tolist() == hiding.select(marks, Key.from_seed(seed), "ann").marks.tolist()
        )
    assert len(sizes) > 1
    key = Key.from_seed(1)
    hiding.select(marks, key, "ann")
    with pytest.raises(KeyReuseError):
        hiding.select(~marks, key, "ann")


def test_where_every_moment_is_a_landmark_nothing_is_added():
    hiding = DummyLandmarks(epsilon=1.0)
    assert hiding.select([1, 1, 1], Key.from_seed(1), "ann").marks.all()
    assert hiding.exposed([1, 1, 1]) == 0


# what dummies show


@pytest.mark.parametrize("score", ["temporal", "count", "distance"])
def test_a_moment_left_out_is_certainly_no_landmark(score):
    """Landmarks {1, 4} of 6 and {1, 4, t}: whatever epsilon is granted, delta stays."""
    length, landmarks, granted = 6, {1, 4}, 20.0
    hiding = DummyLandmarks(epsilon=0.1, score=score)
    one = reference.partitioned_law(length, landmarks, score, 0.1)
    assert math.fsum(one.values()) == pytest.approx(1)
    left_out = []
    for t in sorted(set(range(length)) - landmarks):
        other = reference.partitioned_law(length, landmarks | {t}, score, 0.1)
        assert all(t in marks for marks in other)
        left_out.append(math.fsum(p for marks, p in one.items() if t not in marks))
        delta = reference.hockey_stick(one, other, granted)
        assert delta >= left_out[-1] * (1 - 1e-9) > 0.2
    # what the package says is their average, so some moment has that much at least
    assert np.mean(left_out) == pytest.approx(hiding.exposed(marked(length, landmarks)))


@pytest.mark.parametrize("name", ["optimal", "heuristic"])
def test_sets_show_landmarks_too(name):
    """The published claim is epsilon = 0.1: neighbors would be within 5 % of each other."""
    length, landmarks, epsilon = 7, {2, 5}, 0.1

    def law(places):
        options = getattr(reference, name)(length, places, "wasserstein")
        utilities = [
            -float(reference.distance(length, places, list(one - places), "wasserstein"))
            for one in options
        ]
        return reference.sets_law(options, utilities, epsilon)

    one, other = law(landmarks), law({2, 4})
    between = reference.hockey_stick(one, other, 0.0)
    assert between > 0.2 > math.tanh(epsilon / 2)
    # a set without the moment 5 proves that it is no landmark: all of that probability is delta
    lost = math.fsum(p for marks, p in other.items() if 5 not in marks)
    assert reference.hockey_stick(other, one, 20.0) >= lost > 0.2
    hiding = DummyLandmarks(epsilon=epsilon, options=name, distance="wasserstein", score="distance")
    assert hiding.selection(
        hiding.generate(marked(length, landmarks))
    ).probabilities == pytest.approx([one[marks] for marks in sorted(one, key=len)])


def test_more_budget_shows_more(seed):
    """T = 100 with 20 landmarks anywhere, scored by Euclidean distance: about .51, then .90."""
    rng = np.random.default_rng(seed)
    shown = {epsilon: [] for epsilon in (0.01, 0.1, 0.5, 1.0)}
    for _ in range(100):
        marks = marked(100, rng.choice(100, 20, replace=False))
        for epsilon, found in shown.items():
            found.append(DummyLandmarks(epsilon=epsilon, score="distance").exposed(marks))
        falls = np.diff([found[-1] for found in shown.values()])
        assert (falls > 0).all()
    assert min(shown[0.01]) > 0.50 and np.mean(shown[0.01]) == pytest.approx(0.513, abs=0.003)
    assert min(shown[0.5]) > 0.85 and np.mean(shown[0.5]) == pytest.approx(0.90, abs=0.01)


def test_dummies_say_that_they_promise_nothing():
    hiding = DummyLandmarks(epsilon=0.01)
    assert isinstance(hiding.guarantee, NoGuarantee)
    assert "contains all landmarks" in hiding.guarantee.sentence
    assert not hiding.published.holds
    hidden = hiding.select(marked(9, {4}), Key.generate(), "ann")
    assert hidden.guarantee == hiding.guarantee
    assert "4" not in repr(hiding.generate(marked(9, {4})))


# marks that hide


def chances(marking):
    """The two exact chances of a mark: without and with a landmark."""
    with localcontext() as context:
        context.prec = 60
        return [real.formula() for real in marking._reals()]


MARKINGS = [
    RandomizedMarks(epsilon=epsilon, recall=recall)
    for epsilon in (0.1, 1.0, 3.0)
    for recall in (0.05, 0.5, 0.95, 0.999)
]


@pytest.mark.parametrize("marking", MARKINGS, ids=lambda m: f"{m.epsilon}-{m.recall}")
def test_no_answer_tells_more_than_epsilon(marking):
    """Every answer to every row of three marks, over all neighbors, in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        rate, recall = chances(marking)
        assert float(rate) == pytest.approx(marking.rate, rel=1e-9)
        assert recall == Decimal(Fraction(marking.recall).numerator) / Decimal(
            Fraction(marking.recall).denominator
        )
        bound = Decimal(Fraction(marking.epsilon).numerator) / Decimal(
            Fraction(marking.epsilon).denominator
        )
        worst = Decimal(0)
        for marks in itertools.product([0, 1], repeat=3):
            for place in range(3):
                other = [*marks[:place], 1 - marks[place], *marks[place + 1 :]]
                for answer in itertools.product([0, 1], repeat=3):
                    one, two = (
                        math.prod(
                            (recall if m else rate) if a else 1 - (recall if m else rate)
                            for m, a in zip(row, answer, strict=True)
                        )
                        for row in (marks, other)
                    )
                    worst = max(worst, (one / two).ln())
        # not above epsilon, and no less either: a lower rate would break it
        assert abs(worst - bound) < Decimal("1e-50")


def test_recall_costs_dummies():
    assert RandomizedMarks(epsilon=1.0, recall=0.95).rate == pytest.approx(0.8641, abs=5e-5)
    assert RandomizedMarks(epsilon=1.0, recall=0.5).rate == pytest.approx(0.5 * math.exp(-1))
    assert RandomizedMarks(epsilon=800.0, recall=0.5).rate == 0


def test_answers_follow_their_distribution(seed):
    marking = RandomizedMarks(epsilon=1.0, recall=0.7)
    marks = np.arange(400_000) % 2 == 0
    answers = marking.answer(marks, Keystream([run(seed % 2**32, len(marks))], "marks"))
    for kind, chance in ((marks, 0.7), (~marks, marking.rate)):
        count = int(np.count_nonzero(answers[kind]))
        assert_proportion(count, 200_000, chance, detects=0.04)


def test_answers_are_exact_at_the_edge():
    """Half of all words: 2^63 is the first that gives no mark to a landmark."""
    marking = RandomizedMarks(epsilon=1.0, recall=0.5)
    for word, expected in [(2**63 - 1, True), (2**63, False), (2**63 + 1, False)]:
        words = Scripted(Keystream([run(5, 1)], "marks"), {((), 0): {0: word}})
        assert marking.answer(np.array([True]), words).tolist() == [expected]


def test_randomized_marks_say_what_is_true():
    marking = RandomizedMarks(epsilon=1.0, recall=0.9)
    assert marking.guarantee == Guarantee(Pure(1.0), Event(), "local")
    marks = marked(50, {1, 2, 30})
    hidden = marking.select(marks, Key.generate(), "ann")
    assert hidden.guarantee == marking.guarantee and len(hidden.marks) == 50
    seeded = marking.select(marks, Key.from_seed(1), "ann")
    assert isinstance(seeded.guarantee, NoGuarantee) and "seed 1" in seeded.guarantee.reason
    key = Key.generate()
    marking.select(marks, key, "ann")
    with pytest.raises(KeyReuseError):
        marking.select(~marks, key, "ann")


def test_a_union_keeps_all_landmarks_and_no_promise():
    whole = RandomizedMarks(epsilon=0.1, recall=0.1, union=True)
    marks = marked(2000, set(range(0, 2000, 3)))
    assert whole.select(marks, Key.generate(), "ann").marks[marks].all()
    assert isinstance(whole.guarantee, NoGuarantee)
    some = RandomizedMarks(epsilon=0.1, recall=0.1).select(marks, Key.generate(), "ann")
    assert not some.marks[marks].all()


# the page


def test_every_example_of_the_page_runs_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "dummy-landmarks.md").read_text()
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", page, flags=re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, "the page", "the page", 0)
    assert len(test.examples) >= 15
    runner = doctest.DocTestRunner(verbose=False)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
