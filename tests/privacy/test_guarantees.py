"""How much is guaranteed: what follows from what, against exact laws of small mechanisms."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempriv.audit.exact import Comparison, audit, distribution, slot_distribution
from tempriv.errors import TemprivError, UsageError
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import Threshold
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy import guarantees, serialization
from tempriv.privacy.guarantees import (
    Approximate,
    Concentrated,
    Guarantee,
    NoGuarantee,
    Published,
    Pure,
    at_most,
    rho_for,
)
from tempriv.privacy.units import (
    Answers,
    Contribution,
    Event,
    Person,
    WholeSeries,
    Window,
    WithinDistance,
)
from tempriv.privacy.units.order import BlockSwap, SlotOrigin, Swap
from tempriv.sampling.distributions import DiscreteGaussian
from tests.conformance.case_checks import quick

# a tail bound at delta near 1 is worth less than what it comes from, so samples stay below
LOSSES = [
    *map(Pure, (0.0, 0.1, 0.5, 1.0, 2.0)),
    *map(Approximate, (0.1, 1.0, 5.0, 8.0), (1e-9, 1e-6, 1e-6, 0.1)),
    *map(Concentrated, (0.0, 0.005, 0.5, 2.0)),
]
UNITS = [
    Event(),
    Window(2),
    Window(3),
    WholeSeries(2),
    WholeSeries(5),
    Person(2, Event()),
    WithinDistance(10.0),
    WithinDistance(25.0),
]
ORDERS = [Swap(2), Swap(4), BlockSwap(3), SlotOrigin(4)]
SAMPLES = [
    Guarantee(loss, unit, model)
    for loss in LOSSES
    for unit in (*UNITS, *ORDERS)
    for model in ("local", "central")
]


# implication


def test_implication_is_reflexive():
    for sample in [*SAMPLES, NoGuarantee("no reason"), NoGuarantee("another")]:
        assert sample.implies(sample)
    assert all(at_most(loss, loss) for loss in LOSSES)


def test_implication_is_transitive():
    follows = {
        (a, b)
        for a, b in itertools.product(range(len(SAMPLES)), repeat=2)
        if SAMPLES[a].implies(SAMPLES[b])
    }
    after = defaultdict(list)
    for a, b in follows:
        after[a].append(b)
    for a, b in follows:
        for c in after[b]:
            assert (a, c) in follows, f"{SAMPLES[a]} to {SAMPLES[b]} to {SAMPLES[c]}"


def test_implication_has_a_direction():
    """Stronger never follows from weaker."""
    daily = Guarantee(Pure(1.0), Window(24))
    assert daily.implies(Guarantee(Pure(1.0), Event()))
    assert not Guarantee(Pure(1.0), Event()).implies(daily)
    assert Guarantee(Pure(1.0), Event()).implies(Guarantee(Pure(24.0), Window(24)))
    assert not Guarantee(Pure(1.0), Event()).implies(Guarantee(Pure(23.9), Window(24)))
    assert not Guarantee(Approximate(1.0, 1e-9), Event()).implies(Guarantee(Pure(1.0), Event()))
    assert not Guarantee(Concentrated(0.1), Event()).implies(Guarantee(Pure(9.0), Event()))
    assert not Guarantee(Approximate(0.1, 1e-9), Event()).implies(
        Guarantee(Concentrated(9.0), Event())
    )
    assert Guarantee(Pure(1.0), Event(), "local").implies(Guarantee(Pure(1.0), Event(), "central"))
    assert not Guarantee(Pure(1.0), Event(), "central").implies(Guarantee(Pure(1.0), Event()))


def test_a_place_says_nothing_about_a_reading():
    near = Guarantee(Pure(1.0), WithinDistance(100.0))
    assert isinstance(near.for_unit(Event()), NoGuarantee)
    assert not near.implies(Guarantee(Pure(1e6), Event()))
    assert near.for_unit(WithinDistance(250.0)) == Guarantee(Pure(3.0), WithinDistance(250.0))
    assert Guarantee(Pure(1.0), Event()).implies(near)


def test_exact_values_in_another_order_promise_nothing_about_values():
    for unit in ORDERS:
        promise = Guarantee(Pure(0.0), unit)
        for other in UNITS:
            assert isinstance(promise.for_unit(other), NoGuarantee)
            assert not promise.implies(Guarantee(Pure(1e6), other))
    # values that are hidden hide their places, at twice the loss or once
    for unit in (Swap(4), BlockSwap(4), SlotOrigin(4)):
        assert Guarantee(Pure(1.0), Event()).for_unit(unit).loss == Pure(2.0)
        assert Guarantee(Pure(1.0), Window(4)).for_unit(unit).loss == Pure(1.0)
        assert Guarantee(Concentrated(0.1), Event()).for_unit(unit).loss == Concentrated(0.4)


def test_one_row_by_itself_promises_nothing_about_the_whole_output():
    """Threshold keeps its guarantee for single rows, and none for what they show together."""
    for window in (3, 4):
        mechanism = Threshold(epsilon=4.0, window=window)
        assert audit(mechanism, (), 2 * window).holds
        assert isinstance(mechanism.guarantee.for_unit(Swap(2)), NoGuarantee)
        for unit in (Swap(2), BlockSwap(2)):
            verdict = audit(mechanism, (), 2 * window, guarantee=Guarantee(Pure(9.0), unit))
            assert verdict.found == math.inf and not verdict.holds


def test_no_guarantee_poisons():
    nothing = NoGuarantee("the noise comes from a seed")
    for sample in SAMPLES:
        assert not nothing.implies(sample)
        assert sample.implies(nothing)
    assert nothing.for_unit(Window(3)) is nothing
    assert "the noise comes from a seed" in nothing.sentence
    assert "the noise comes from a seed" in nothing.plain


# groups


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("choices", [2, 3])
@pytest.mark.parametrize(
    "unit", [Window(2), Window(3), WholeSeries(3), Person(2, Event())], ids=str
)
def test_groups_lose_exactly_what_composition_says(epsilon, choices, unit):
    """Randomized response reaches the group bound: the conversion could not be smaller."""
    response = RandomizedResponse(epsilon=epsilon, categories=tuple("abc"[:choices]))
    restated = response.guarantee.for_unit(unit)
    length = 1 if isinstance(unit, Person) else 3
    verdict = audit(response, tuple(range(choices)), length, guarantee=restated)
    assert verdict.holds
    assert verdict.found == pytest.approx(restated.loss.epsilon, rel=1e-9)
    less = Guarantee(Pure(restated.loss.epsilon * 0.999), unit)
    assert not audit(response, tuple(range(choices)), length, guarantee=less).holds


def leaky(truth, epsilon, delta):
    """Randomized response that blurts out the truth with probability delta."""
    keep = 1 / (1 + math.exp(-epsilon))
    return {
        ("leak", truth): delta,
        ("answer", truth): (1 - delta) * keep,
        ("answer", 1 - truth): (1 - delta) * (1 - keep),
    }


def product(laws):
    found = {}
    for outcomes in itertools.product(*(law.items() for law in laws)):
        found[tuple(o for o, _ in outcomes)] = math.prod(p for _, p in outcomes)
    return found


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("delta", [1e-3, 0.05])
@pytest.mark.parametrize("links", [1, 2, 3, 4])
def test_approximate_groups_are_covered(epsilon, delta, links):
    grouped = Approximate(epsilon, delta).grouped(links)
    one = product([leaky(0, epsilon, delta)] * links)
    other = product([leaky(1, epsilon, delta)] * links)
    needed = Comparison.of(one, other).hockey_stick(grouped.epsilon)
    assert needed <= grouped.delta
    if links == 1:
        assert needed == pytest.approx(delta)
    else:
        assert needed > delta, "a group needs more than one link does"


def test_a_wide_group_does_not_overflow():
    assert Approximate(1.0, 1e-6).grouped(10_000).epsilon == 10_000
    assert Approximate(1.0, 0.0).grouped(10_000).delta == 0
    restated = Guarantee(Approximate(1.0, 1e-6), Event()).for_unit(WholeSeries(100_000))
    assert not restated.implies(Guarantee(Approximate(1e6, 0.5), Event()))


def shifted_gaussian(variance, shift):
    law = DiscreteGaussian(Fraction(variance))
    return {k + shift: p for k, p in law.outcomes(1e-15)}


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("links", [1, 2, 3])
def test_concentrated_groups_lose_exactly_the_square(width, links):
    """Discrete Gaussian noise reaches the bound at whole orders."""
    rho = Concentrated(width**2 / (2 * 9))
    compared = Comparison.of(shifted_gaussian(9, 0), shifted_gaussian(9, width * links))
    assert compared.concentrated_loss(0.0) == pytest.approx(rho.grouped(links).rho, rel=1e-6)


# several exact releases of one series


def joint(releases, series):
    """The law of what several releases show together, each of some steps of the series."""
    return product([distribution(mechanism, series[part]) for mechanism, part in releases])


def told_apart(releases, unit, length=4):
    """The largest loss over neighbors, of all that the releases show."""
    series, alike = tuple(range(length)), []
    for other in unit.neighbors(series, ()):
        compared = Comparison.of(joint(releases, series), joint(releases, other))
        alike.append(compared.pure_loss(0.0))
    return max(alike)


SHUFFLE = BlockShuffle(epsilon=0.7, block=4)
WHOLE = slice(0, 4)


def test_exact_releases_of_the_same_readings_lose_the_sum():
    unit = BlockSwap(4)
    assert told_apart([(SHUFFLE, WHOLE)], unit) == pytest.approx(0.7)
    assert told_apart([(SHUFFLE, WHOLE)] * 2, unit) == pytest.approx(1.4)
    other = BlockShuffle(epsilon=0.2, block=4)
    assert told_apart([(SHUFFLE, WHOLE), (other, WHOLE)], unit) == pytest.approx(0.9)


@pytest.mark.parametrize(
    "parts",
    [
        (slice(0, 2), slice(2, 4)),
        (slice(0, 3), slice(1, 4)),
        (slice(0, 3), slice(0, 4)),
        (slice(1, 3), slice(0, 4)),
        (slice(0, 4, 2), slice(1, 4, 2)),
    ],
    ids=["touching", "overlapping", "longer", "within", "interleaved"],
)
def test_exact_releases_of_unlike_readings_hide_no_swap_between_them(parts):
    """A swap across the border shows for certain, although each release is within its epsilon."""
    releases = [(SHUFFLE, part) for part in parts]
    assert told_apart(releases, BlockSwap(4)) == math.inf
    assert told_apart(releases, Swap(2)) == math.inf
    series = (0, 1, 2, 3)
    certain = [
        other
        for other in Swap(4).neighbors(series, ())
        if not joint(releases, series).keys() & joint(releases, other).keys()
    ]
    assert certain


def test_releases_of_whole_blocks_are_apart():
    halves = [(BlockShuffle(epsilon=0.7, block=2), part) for part in (slice(0, 2), slice(2, 4))]
    assert told_apart(halves, BlockSwap(2)) == pytest.approx(0.7)
    # as one piece beside the first of its blocks
    longer = [halves[0], (BlockShuffle(epsilon=0.7, block=2), WHOLE)]
    assert told_apart(longer, BlockSwap(2)) == pytest.approx(1.4)
    # blocks that are counted from unlike starts
    shifted = [halves[0], (BlockShuffle(epsilon=0.7, block=2), slice(1, 3))]
    assert told_apart(shifted, BlockSwap(2)) == math.inf


@pytest.mark.parametrize("window", [3, 4])
def test_single_rows_of_two_releases_may_tell_an_origin_for_certain(window):
    """So guarantees for single rows do not add up: from bounded odds to none by a second one."""
    mechanism = Threshold(epsilon=4.0, window=window)
    length, slot = 2 * window, window - 1
    came = {}  # the probability that the row in a slot came from a step
    for (sources, _), probability in slot_distribution(mechanism, length).items():
        for place, source in enumerate(sources):
            came[place, source] = came.get((place, source), 0.0) + probability

    alone = [came[slot, origin] for origin in range(slot - window + 1, slot + 1)]
    assert max(alone) / min(alone) <= math.exp(mechanism.guarantee.loss.epsilon) * (1 + 1e-9)
    # the same reading in this slot of one output, and window - 1 slots later in the other
    both = {
        origin: came.get((slot, origin), 0.0) * came.get((slot + window - 1, origin), 0.0)
        for origin in range(length)
    }
    assert [origin for origin, chance in both.items() if chance > 0] == [slot]
    assert both[slot] > 0.01, "and that is no rare event"


# conversions


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("variance", [1, 4, 25])
def test_the_tail_bound_holds_for_gaussian_noise(variance, delta):
    epsilon = Concentrated(1 / (2 * variance)).epsilon_at(delta)
    compared = Comparison.of(shifted_gaussian(variance, 0), shifted_gaussian(variance, 1))
    assert compared.hockey_stick(epsilon) <= delta


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_pure_is_concentrated_with_half_the_square(epsilon):
    """On randomized response, whose loss is always plus or minus epsilon."""
    keep = 1 / (1 + math.exp(-epsilon))
    compared = Comparison.of({0: keep, 1: 1 - keep}, {0: 1 - keep, 1: keep})
    assert compared.concentrated_loss(0.0) <= epsilon**2 / 2
    assert at_most(Pure(epsilon), Concentrated(epsilon**2 / 2))
    assert not at_most(Pure(epsilon), Concentrated(epsilon**2 / 2 * 0.999))


@quick
@given(st.floats(1e-6, 100), st.floats(1e-12, 0.5))
def test_rho_for_is_the_inverse_of_the_tail_bound(epsilon, delta):
    rho = rho_for(epsilon, delta)
    assert Concentrated(rho).epsilon_at(delta) == pytest.approx(epsilon, rel=1e-6)
    assert not at_most(Concentrated(rho * 1.001), Approximate(epsilon, delta))


@quick
@given(st.floats(0, 50), st.floats(1e-12, 0.5), st.floats(1e-12, 0.5))
def test_a_smaller_delta_costs_more_epsilon(rho, one, other):
    low, high = sorted((one, other))
    assert Concentrated(rho).epsilon_at(low) >= Concentrated(rho).epsilon_at(high) >= rho
    assert Concentrated(rho).epsilon_at(0) == math.inf
    assert Pure(rho).epsilon_at(low) == rho
    assert Approximate(rho, high).epsilon_at(high) == rho
    assert Approximate(rho, high).epsilon_at(low) == (rho if low == high else math.inf)


# words and forms


@pytest.mark.parametrize("sample", SAMPLES[::7], ids=str)
def test_guarantees_survive_json(sample):
    again = guarantees.decode(json.loads(json.dumps(serialization.encode(sample))))
    assert again == sample and serialization.digest(again) == serialization.digest(sample)


def test_other_values_survive_json():
    for value in (NoGuarantee("why"), Published("a", "b", True, "c"), *LOSSES):
        assert guarantees.decode(json.loads(json.dumps(serialization.encode(value)))) == value


@pytest.mark.parametrize("unit", [*UNITS, Swap(4), BlockSwap(3)], ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_sentences_name_unit_and_numbers(loss, unit):
    guarantee = Guarantee(loss, unit)
    assert unit.sentence in guarantee.sentence and unit.sentence in guarantee.plain
    for number in vars(loss).values():
        assert f"{number:.4g}" in guarantee.sentence
    assert "anyone who sees the output" in guarantee.sentence
    assert "data owner" in Guarantee(loss, unit, "central").sentence
    assert "multiplies the odds" in guarantee.plain
    assert ("except with probability" in guarantee.plain) == (not isinstance(loss, Pure))


def test_plain_words_follow_the_numbers():
    said = [Guarantee(Pure(epsilon), WholeSeries(9)).plain for epsilon in (0.5, 3.0, 8.0, 5000.0)]
    kinds = ("a strong", "a moderate", "a weak", "a very weak")
    assert all(kind in text for kind, text in zip(kinds, said, strict=True))
    assert "protects practically nothing" in said[3]
    assert f"{math.exp(3):.3g}" in said[1]


@pytest.mark.parametrize(
    ("unit", "length", "strong"),
    [
        (Event(), None, False),
        (Event(), 672, False),
        (Event(), 1, True),
        (Window(24), None, False),
        (Window(24), 672, False),
        (Window(24), 24, True),
        (WholeSeries(672), None, True),
        (Person(2, Event()), 672, False),
        (Person(2, WholeSeries(672)), 672, True),
        (Contribution(Window(24)), 672, False),
        (Contribution(WholeSeries(672)), None, True),
        (WithinDistance(200.0), 1, False),
        (Swap(24), 24, False),
        (Answers(1), 24, False),
    ],
    ids=str,
)
def test_strong_is_only_what_covers_a_whole_series(unit, length, strong):
    said = Guarantee(Pure(0.1), unit).plain_for(length)
    assert ("a strong guarantee" in said) == strong
    assert strong or "that alone, and" in said


def test_above_ten_practically_nothing_is_protected():
    at, above = Guarantee(Pure(10.0), Window(24)), Guarantee(Pure(10.01), Window(24))
    assert (at.protects_little, above.protects_little) == (False, True)
    guarantees.require_strength(at, accept_weak=False)
    guarantees.require_strength(above, accept_weak=True)
    with pytest.raises(UsageError, match=r"epsilon=10.01: protects practically .*accept_weak"):
        guarantees.require_strength(above, accept_weak=False)
    # rho is judged by the epsilon that is shown, which grows with sqrt(rho)
    assert Guarantee(Concentrated(2.0), Event()).protects_little
    assert not Guarantee(Concentrated(1.0), Event()).protects_little


def test_published_claims_say_whether_they_hold():
    assert "does not hold" in Published("a claim", "a paper", False, "Why.").sentence
    assert "does not hold" not in Published("a claim", "a paper", True, "Why.").sentence


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Pure(-1.0), "epsilon=-1.0: "),
        (lambda: Pure(math.nan), "epsilon=nan: "),
        (lambda: Pure(math.inf), "epsilon=inf: "),
        (lambda: Pure("1"), "epsilon=1: "),
        (lambda: Approximate(-1.0, 0.1), "epsilon=-1.0: "),
        (lambda: Approximate(1.0, 1.5), "delta=1.5: "),
        (lambda: Approximate(1.0, -0.1), "delta=-0.1: "),
        (lambda: Approximate(1.0, math.nan), "delta=nan: "),
        (lambda: Approximate(1.0, "x"), "delta=x: "),
        (lambda: Concentrated(-0.5), "rho=-0.5: "),
        (lambda: Concentrated(math.inf), "rho=inf: "),
        (lambda: rho_for(1.0, 0.0), "delta=0.0: "),
        (lambda: rho_for(-1.0, 0.5), "epsilon=-1.0: "),
    ],
)
def test_impossible_losses_are_refused(make, said):
    with pytest.raises(TemprivError) as refusal:
        make()
    assert said in str(refusal.value)
    assert any(word in str(refusal.value) for word in ("must", "needs"))


def test_a_promise_about_one_row_says_that_it_is_about_one_row():
    promise = Guarantee(loss=Pure(0.5), unit=SlotOrigin(10))
    assert "the values of a single row of the output and nothing else" in promise.sentence
    assert "the values of that row and nothing else" in promise.plain
    assert "far less than a guarantee about all rows" in promise.plain
    assert "whatever else they know" not in promise.sentence
