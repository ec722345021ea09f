"""How much is promised: what follows from what, against exact laws of small mechanisms."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempriv import guarantees, spec
from tempriv.audit.exact import Comparison, audit
from tempriv.errors import Refusal
from tempriv.guarantees import (
    Approximate,
    Concentrated,
    Guarantee,
    NoGuarantee,
    Published,
    Pure,
    at_most,
    rho_for,
)
from tempriv.mechanisms import RandomizedResponse
from tempriv.noise import DiscreteGaussian
from tempriv.units import Event, Near, Person, WholeSeries, Window
from tests.conformance import quick

# a tail bound at delta near 1 is worth less than what it comes from, so samples stay below
LOSSES = [
    *map(Pure, (0.0, 0.1, 0.5, 1.0, 2.0)),
    *map(Approximate, (0.1, 1.0, 5.0, 8.0), (1e-9, 1e-6, 1e-6, 0.1)),
    *map(Concentrated, (0.0, 0.005, 0.5, 2.0)),
]
UNITS = [
    Event(), Window(2), Window(3), WholeSeries(2), WholeSeries(5), Person(2, Event()),
    Near(10.0), Near(25.0),
]  # fmt: skip
SAMPLES = [
    Guarantee(loss, unit, model)
    for loss in LOSSES
    for unit in UNITS
    for model in ("local", "central")
]


# implication


def test_implication_is_reflexive():
    for sample in [*SAMPLES, NoGuarantee("no reason"), NoGuarantee("another")]:
        assert sample.implies(sample)
    assert all(at_most(loss, loss) for loss in LOSSES)


def test_implication_is_transitive():
    follows = {
        (a, b) for a, b in itertools.product(range(len(SAMPLES)), repeat=2)
        if SAMPLES[a].implies(SAMPLES[b])
    }  # fmt: skip
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
    near = Guarantee(Pure(1.0), Near(100.0))
    assert isinstance(near.for_unit(Event()), NoGuarantee)
    assert not near.implies(Guarantee(Pure(1e6), Event()))
    assert near.for_unit(Near(250.0)) == Guarantee(Pure(3.0), Near(250.0))
    assert Guarantee(Pure(1.0), Event()).implies(near)


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
    """Randomised response reaches the group bound: the conversion could not be smaller."""
    response = RandomizedResponse(epsilon=epsilon, categories=tuple("abc"[:choices]))
    restated = response.guarantee.for_unit(unit)
    length = 1 if isinstance(unit, Person) else 3
    verdict = audit(response, tuple(range(choices)), length, guarantee=restated)
    assert verdict.holds
    assert verdict.found == pytest.approx(restated.loss.epsilon, rel=1e-9)
    less = Guarantee(Pure(restated.loss.epsilon * 0.999), unit)
    assert not audit(response, tuple(range(choices)), length, guarantee=less).holds


def leaky(truth, epsilon, delta):
    """Randomised response that blurts out the truth with probability delta."""
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


# conversions


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("variance", [1, 4, 25])
def test_the_tail_bound_holds_for_gaussian_noise(variance, delta):
    epsilon = Concentrated(1 / (2 * variance)).epsilon_at(delta)
    compared = Comparison.of(shifted_gaussian(variance, 0), shifted_gaussian(variance, 1))
    assert compared.hockey_stick(epsilon) <= delta


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_pure_is_concentrated_with_half_the_square(epsilon):
    """On randomised response, whose loss is always plus or minus epsilon."""
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
    again = guarantees.decode(json.loads(json.dumps(spec.encode(sample))))
    assert again == sample and spec.digest(again) == spec.digest(sample)


def test_other_values_survive_json():
    for value in (NoGuarantee("why"), Published("a", "b", True, "c"), *LOSSES):
        assert guarantees.decode(json.loads(json.dumps(spec.encode(value)))) == value


@pytest.mark.parametrize("unit", UNITS, ids=str)
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
    said = [Guarantee(Pure(epsilon), Event()).plain for epsilon in (0.5, 3.0, 8.0, 5000.0)]
    kinds = ("a strong", "a moderate", "a weak", "a weak")
    assert all(kind in text for kind, text in zip(kinds, said, strict=True))
    assert f"{math.exp(3):.3g}" in said[1]


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
    with pytest.raises(Refusal) as refusal:
        make()
    assert said in str(refusal.value)
    assert any(word in str(refusal.value) for word in ("must", "needs"))
