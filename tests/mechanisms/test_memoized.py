"""Memoized answers: what any number of reports gives away, by enumeration, and that they stay."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import stats

import tempriv as tp
from tempriv.audit.exact import Comparison, audit, distribution
from tempriv.data.series import Block
from tempriv.errors import TemprivError
from tempriv.local.frequency.longitudinal import collect, other_probability
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.stream import Seen, Stream, resume
from tempriv.mechanisms.value.memoized_response import MemoizedResponse
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.privacy.units import Answers
from tempriv.sampling.keys import EPOCH, Key
from tempriv.sampling.keystream import StepRange
from tests.mutants.answers import AnewEachTime
from tests.support.statistics import assert_proportion

NAMES = ("a", "b", "c", "d")


def memo(forever=1.0, instant=0.7, choices=2, **given):
    return MemoizedResponse(
        epsilon_forever=forever, epsilon_instant=instant, categories=NAMES[:choices], **given
    )


# the guarantee, by enumeration of the code that runs


@functools.cache
def laws(mechanism, length):
    """The exact law of the reports, for every series of answers of this length."""
    every = itertools.product(range(mechanism.choices), repeat=length)
    return {truth: distribution(mechanism, truth, 0.0) for truth in every}


def worst(mechanism, unit, length, claimed=0.0):
    """The largest log ratio over all neighbors, as ``audit`` finds it; laws are listed once."""
    found = laws(mechanism, length)
    return max(
        (
            Comparison.of(found[one], found[other]).pure_loss(claimed)
            for one in found
            for other in unit.neighbors(one, range(mechanism.choices))
        ),
        default=0.0,
    )


@pytest.mark.parametrize(("choices", "length"), [(2, 1), (2, 4), (3, 1), (3, 3), (4, 2)])
@pytest.mark.parametrize("distinct", [1, 2, 3, 4])
def test_permanent_answers_cost_exactly_what_is_promised(choices, length, distinct):
    """d answers, or as many as fit: both ends of the bound are met."""
    mechanism, unit = memo(0.8, None, choices), Answers(distinct)
    promised = mechanism.guarantee_for(unit).loss.epsilon
    assert promised == pytest.approx(0.8 * min(distinct, choices))
    reached = 0.8 * min(distinct, choices, length)
    assert worst(mechanism, unit, length, promised) == pytest.approx(reached, rel=1e-9)


@pytest.mark.parametrize(
    ("choices", "length"),
    [
        (2, 1),
        (2, 3),
        (2, 4),
        (3, 2),
        pytest.param(3, 3, marks=pytest.mark.long),
        pytest.param(2, 5, marks=pytest.mark.long),
    ],
)
def test_a_second_response_only_takes_away(choices, length):
    mechanism = memo(1.0, 0.7, choices)
    for unit in (Answers(1), Answers(2), tp.Event(), tp.Window(2), tp.WholeSeries(length)):
        promised = mechanism.guarantee_for(unit).loss.epsilon
        assert worst(mechanism, unit, length, promised) <= promised * (1 + 1e-9)


@pytest.mark.parametrize("unit", [Answers(1), Answers(2), tp.Event(), tp.Window(2)], ids=repr)
def test_the_audit_holds_for_every_unit_that_a_promise_is_given_for(unit):
    mechanism = memo(1.0, 0.7)
    verdict = audit(mechanism, (0, 1), 3, 0.0, guarantee=mechanism.guarantee_for(unit))
    assert verdict.holds and verdict.pairs > 0
    assert verdict.found == pytest.approx(worst(mechanism, unit, 3))


def test_many_reports_reach_the_promise_but_never_pass_it():
    """By counts of reports, so that long series can be looked at too."""
    mechanism = memo(1.0, 0.7)
    first, second = mechanism.permanent_distribution.keep, mechanism.instant_distribution.keep

    def loss(reports):
        yes = np.arange(reports + 1)
        given = [stats.binom.pmf(yes, reports, p) for p in (second, 1 - second)]
        mixed = [first * given[i] + (1 - first) * given[1 - i] for i in (0, 1)]
        return float(np.max(np.abs(np.log(mixed[0] / mixed[1]))))

    for length in (1, 2, 4):
        assert loss(length) == pytest.approx(worst(mechanism, Answers(1), length), rel=1e-9)
    growing = [loss(reports) for reports in (1, 2, 5, 10, 30)]
    assert growing == sorted(growing)
    assert growing[0] == pytest.approx(mechanism.epsilon_once)
    assert 0.999 < growing[-1] <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("lengths", "least"), [((1, 3, 5), 0.5), pytest.param((1, 5, 6), 0.6, marks=pytest.mark.long)]
)
def test_one_changed_reading_can_cost_the_whole_second_response(lengths, least):
    """Once both permanent answers are known, the second response alone hides which was used."""
    mechanism = memo(2.0, 0.7)
    losses = [worst(mechanism, tp.Event(), length) for length in lengths]
    assert losses == sorted(losses)
    assert losses[0] == pytest.approx(mechanism.epsilon_once)
    assert least < losses[-1] <= 0.7, losses


@pytest.mark.parametrize("unit", [tp.Event(), tp.Window(2), tp.WholeSeries(5)], ids=repr)
def test_without_a_second_response_a_change_shows(unit):
    mechanism = memo(1.0, None, unit=unit)
    assert isinstance(mechanism.guarantee, NoGuarantee)
    verdict = audit(mechanism, (0, 1), 2, 0.0, guarantee=Guarantee(Pure(1.0), unit))
    assert not verdict.holds and verdict.found == math.inf


def test_answers_that_are_no_categories_are_one_answer():
    """Two unknown answers look alike, so that they count as one that stays the same."""
    mechanism = memo(1.0, None, 3)
    assert audit(mechanism, (0, 1, 2, 9), 2, 0.0).holds
    as_two = mechanism.guarantee_for(Answers(2))
    assert audit(mechanism, (0, 1, 2), 2, 0.0, guarantee=as_two).holds
    assert not audit(mechanism, (0, 1, 2, 9), 2, 0.0, guarantee=as_two).holds


def test_the_audit_sees_answers_that_are_not_kept():
    """Every report is paid for: three times what is guaranteed, after three."""
    broken = AnewEachTime(epsilon_forever=1.0, categories=NAMES[:2])
    verdict = audit(broken, (0, 1), 3, 0.0)
    assert not verdict.holds and verdict.found == pytest.approx(3.0)


@pytest.mark.parametrize("choices", [2, 3, 4])
@pytest.mark.parametrize("instant", [None, 0.9])
def test_a_single_report_is_a_randomized_response_by_itself(choices, instant):
    mechanism = memo(1.3, instant, choices)
    found = laws(mechanism, 1)
    for truth in range(choices):
        for report in range(choices):
            chance = mechanism.keep if report == truth else other_probability(mechanism)
            assert found[truth,][((report,),),] == pytest.approx(chance, rel=1e-12)
        wrong = math.fsum(p for ((report,),), p in found[truth,].items() if report != (truth,))
        assert mechanism.errors == pytest.approx((wrong,))
    assert worst(mechanism, Answers(1), 1) == pytest.approx(mechanism.epsilon_once)


@pytest.mark.parametrize(
    ("forever", "instant", "expected"),
    [
        (1e-9, 1e-9, 1e-18 / 3),  # (r - 1)(s - 1) / (r + s + k - 2), to first order
        (40.0, 40.0, 40 - math.log(2)),
        (800.0, 1.0, 1.0),
        (1.0, 800.0, 1.0),
        (800.0, 900.0, 800.0),
        (40.0, None, 40.0),
    ],
)
def test_what_one_report_gives_away_is_a_number_for_any_budget(forever, instant, expected):
    """Also where the truth is kept with a chance that a float takes for 1."""
    assert memo(forever, instant, 3).epsilon_once == pytest.approx(expected, rel=1e-8)


def test_promises_in_words():
    assert memo(2.0, 1.0).guarantee.unit == Answers(1)
    assert "stays the same" in memo().guarantee.sentence
    assert "but not when they change" in memo().guarantee_for(Answers(2)).sentence
    assert "can show that the truth changed" in memo(1.0, None, unit=tp.Event()).guarantee.sentence
    assert memo().published.holds
    with pytest.raises(TemprivError, match="must be Answers, Event"):
        memo().guarantee_for(tp.WithinDistance(5.0))


def test_promises_are_never_rounded_down():
    """0.1 taken ten times is more than 1.0, as the float 0.1 is more than a tenth."""
    promised = memo(0.1, 0.1).guarantee_for(tp.Window(10)).loss.epsilon
    assert promised == math.nextafter(1.0, 2.0)
    with pytest.raises(TemprivError, match="beyond all numbers"):
        memo(1e308, 1.0, 2, unit=Answers(2))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"epsilon_forever": 0.0}, "epsilon_forever=0.0: must be > 0"),
        ({"epsilon_instant": -1.0}, "epsilon_instant=-1.0: must be > 0"),
        ({"categories": ("only",)}, "at least two"),
        ({"categories": ("a", "a")}, "name each only once"),
        ({"categories": "ab"}, "must be a list of names"),
        ({"categories": (("a", "b"), ("c", "d"))}, "one list of names, for one column"),
        ({"unit": tp.Person(2, tp.Event())}, "must be Answers, Event"),
    ],
)
def test_specs_that_cannot_be_meant_are_refused(given, sentence):
    with pytest.raises(TemprivError, match=sentence):
        MemoizedResponse(**{"epsilon_forever": 1.0, "categories": ("a", "b"), **given})


# devices


def named(truth):
    return [NAMES[t] for t in truth]


@pytest.mark.parametrize("instant", [None, 1.0])
def test_reports_are_the_same_for_any_cutting_and_after_a_restart(instant):
    mechanism = memo(1.0, instant, 3)
    truth = np.random.default_rng(3).integers(0, 3, size=(4, 20))
    whole = collect(mechanism, truth, Key.from_seed(1))
    for i, one in enumerate(truth):  # one device at a time, each from a key of its own
        for cut in (1, 7, 19):
            key = Key.from_seed(1)
            stream = mechanism.start(key, f"person {i}")
            first = stream.push(named(one[:cut])).tolist()
            stream = resume(mechanism, stream.state(), key)
            rest = stream.push(named(one[cut:])).tolist()
            assert first + rest == named(whole[i])


def test_a_permanent_answer_is_always_the_same_and_another_under_another_key():
    mechanism = memo(1.0, None, 4)
    truth = np.random.default_rng(4).integers(0, 4, size=400)
    maps = []
    for seed in range(40):
        given = mechanism.start(Key.from_seed(seed)).push(named(truth))
        seen = [set(given[truth == value]) for value in range(4)]
        assert all(len(one) == 1 for one in seen)
        maps.append(tuple(one.pop() for one in seen))
    assert len(set(maps)) > 10


def long_after(mechanism, seed, memory):
    """A stream whose first keys were erased long ago."""
    chain = Key.from_seed(seed).again("test", "a").at_epoch(3)
    return Stream(mechanism, chain, "a", Seen(b"\0" * 32), 3 * EPOCH + 5, memory=memory)


def test_a_permanent_answer_outlives_the_key_that_drew_it():
    mechanism = memo(1.0, None, 4)
    first = mechanism.start(Key.from_seed(1), "a")
    answers = first.push(NAMES).tolist()
    for seed in range(20):
        assert long_after(mechanism, seed, first._memory.copy()).push(NAMES).tolist() == answers
    forgotten = [long_after(mechanism, seed, None).push(NAMES).tolist() for seed in range(20)]
    assert any(others != answers for others in forgotten)


def test_a_key_that_has_moved_on_cannot_draw_them_again():
    late = Key.from_seed(1).series("test", "a").at_epoch(1)
    with pytest.raises(TemprivError, match="erased"):
        perturb_block(memo(), Block.of(np.zeros((1, 1)), "a", 0), [StepRange(late, 0, 1)])


def test_a_missing_first_reading_draws_them_all_the_same():
    mechanism = memo(1.0, None, 3)
    whole = mechanism.start(Key.from_seed(2)).push(["c", "a", "b", "c"])
    gappy = mechanism.start(Key.from_seed(2)).push([None, "a", "b", "c"])
    assert gappy.tolist() == [None, *whole[1:]]


def test_an_empty_block_draws_nothing():
    mechanism = memo(1.0, None, 3)
    stream = mechanism.start(Key.from_seed(2))
    begun = stream.state()
    assert stream.push([]).tolist() == []
    assert stream.state() == begun
    assert stream.push(["a"]).tolist() == mechanism.start(Key.from_seed(2)).push(["a"]).tolist()


PEOPLE = 20_000


@functools.cache
def reported(instant):
    """Of each person: answers a, b, c and c again."""
    return collect(memo(1.0, instant, 3), np.tile([0, 1, 2, 2], (PEOPLE, 1)), Key.from_seed(5))


def test_permanent_answers_follow_their_distribution():
    """Alpha 1e-9; detects 6 % off in the chance of a true answer, 10 % in that of two."""
    permanent, law = reported(None), memo(1.0, None, 3).permanent_distribution
    for truth in range(3):
        kept = int((permanent[:, truth] == truth).sum())
        assert_proportion(kept, PEOPLE, law.keep, detects=0.06)
    for one, other in ((0, 1), (1, 2)):  # answers to two truths are independent of each other
        both = int(((permanent[:, one] == one) & (permanent[:, other] == other)).sum())
        assert_proportion(both, PEOPLE, law.keep**2, detects=0.1)
    np.testing.assert_array_equal(permanent[:, 2], permanent[:, 3])


def test_reports_follow_their_distributions():
    """Alpha 1e-9; detects 8 % off in the chance of a true report, and of two reports alike."""
    mechanism, reports = memo(1.0, 1.5, 3), reported(1.5)
    for step, truth in enumerate((0, 1, 2, 2)):
        kept = int((reports[:, step] == truth).sum())
        assert_proportion(kept, PEOPLE, mechanism.keep, detects=0.08)
    # two reports through one permanent answer agree if both kept it, or both took one other
    second = mechanism.instant_distribution
    agree = second.keep**2 + 2 * other_probability(second) ** 2
    found = int((reports[:, 2] == reports[:, 3]).sum())
    assert_proportion(found, PEOPLE, agree, detects=0.08)
    # with a permanent answer for each report this would be another number
    fresh = mechanism.keep**2 + 2 * other_probability(mechanism) ** 2
    assert fresh < 0.8 * agree
