"""The audit itself: what it enumerates is the law, and it sees what is wrong by one per cent."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from tempriv.audit import exact
from tempriv.audit.exact import Comparison, Outcomes, audit, distribution
from tempriv.mechanisms.sparse_vector import SparseVector
from tempriv.mechanisms.value.gaussian import Gaussian
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.guarantees import Approximate, Concentrated, Guarantee, NoGuarantee, Pure
from tempriv.privacy.units import Contribution, Event, Person, WholeSeries, Window, WithinDistance
from tempriv.sampling import distributions

BOUNDED = {"bounds": (0, 2), "grid": 1}
MECHANISMS = [
    (Laplace(epsilon=2.0, **BOUNDED), (0.0, 5.0), 1),
    (Laplace(epsilon=4.0, bounds=((0, 1), (0, 1)), grid=1), ((0.0, 1.0), (3.0, -3.0)), 2),
    (Gaussian(rho=1.0, **BOUNDED), (2.0, 1.0), 1),
    (RandomizedResponse(epsilon=1.0, categories=("a", "b", "c")), (0, 2), 0),
    (PlanarLaplace(epsilon=6.0, unit=WithinDistance(1.0), origin=(0, 0), grid=1), ((0.0, 0.4),), 1),
]


# enumeration


@pytest.mark.parametrize("tail", [1e-2, 1e-4])
@pytest.mark.parametrize(("mechanism", "example", "draws"), MECHANISMS, ids=lambda x: str(x)[:20])
def test_all_but_the_tails_is_listed(mechanism, example, draws, tail):
    found = distribution(mechanism, example, tail)
    total = math.fsum(found.values())
    assert total <= 1 + 1e-12
    assert total >= 1 - max(draws, 1) * len(example) * tail - 1e-12
    if draws == 0:
        assert total == pytest.approx(1, abs=1e-15)


def test_probabilities_are_those_of_independent_noise():
    mechanism = Laplace(epsilon=2.0, **BOUNDED)
    (law,) = mechanism.distributions
    found = distribution(mechanism, (1.0, 7.0), 1e-4)
    for i, j in itertools.product(range(-3, 4), repeat=2):
        assert found[(((1 + i,), (2 + j,)),)] == pytest.approx(law.pmf(i) * law.pmf(j), rel=1e-12)


def test_persons_have_independent_series():
    response = RandomizedResponse(epsilon=2.0, categories=("a", "b"), unit=Person(2, Event()))
    found = distribution(response, ((0,), (1,)))
    keep = response.distributions[0].keep
    assert found[((0,),), ((1,),)] == pytest.approx(keep**2)
    assert found[((1,),), ((0,),)] == pytest.approx((1 - keep) ** 2)
    assert len(found) == 4


def test_places_are_given_in_meters():
    mechanism = PlanarLaplace(epsilon=9.0, unit=WithinDistance(1.0), origin=(52.0, 13.0), grid=1)
    found = distribution(mechanism, ((2.2, -3.4),), 1e-2)
    assert max(found, key=found.get) == (((2, -3),),)


def test_a_path_has_the_probability_of_its_choices():
    law = distributions.Bernoulli(Fraction(1, 4))
    source = Outcomes([1, 0], tail=0.0)
    source.begin(2)
    assert source.draw(law, "a").tolist() == [1, 0]
    assert source.probability == pytest.approx(1 / 4 * 3 / 4)
    assert source.sizes == [2, 2]


def test_equal_purposes_are_the_same_noise():
    """The keyed source gives equal words to equal purposes, and so does the enumerating one."""
    law = distributions.Bernoulli(Fraction(1, 4))
    source = Outcomes([1], tail=0.0)
    source.begin(1)
    assert source.draw(law, "a").tolist() == source.draw(law, "a").tolist() == [1]
    assert source.draw(law, "b").tolist() == [0]
    assert len(source.sizes) == 2
    with pytest.raises(AssertionError, match="'a': two distributions drawn from the same words"):
        source.draw(distributions.UniformChoice(3), "a")
    source.begin(1)
    source.draw(law, "a")
    assert len(source.sizes) == 3, "another series has noise of its own"


def test_a_number_of_draws_that_depends_on_noise_is_followed():
    """A coin decides whether another is thrown: three paths."""

    @dataclass(frozen=True)
    class Twice:
        domain = RandomizedResponse(epsilon=1.0, categories=("a", "b")).domain
        unit = Event()
        memory_size, has_status = 0, False

        def perturb(self, readings, noise, state):
            coin = distributions.Bernoulli(Fraction(1, 2))
            first = noise(coin, "first")
            return first[:, None] + (noise(coin, "second")[:, None] if first[0] else 0)

    found = distribution(Twice(), (0,))
    assert found == {(((0,),),): 0.5, (((1,),),): 0.25, (((2,),),): 0.25}


# comparison


@pytest.mark.parametrize("choices", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_hockey_stick_of_randomized_response(choices, epsilon):
    """(e^epsilon - e^x) / (e^epsilon + k - 1) for every x below epsilon, and 0 from there on."""
    names = tuple("abcde"[:choices])
    response = RandomizedResponse(epsilon=epsilon, categories=names)
    compared = Comparison.of(distribution(response, (0,)), distribution(response, (1,)))
    for x in (0.0, 0.1, epsilon / 2, epsilon, 2 * epsilon):
        closed = (math.exp(epsilon) - math.exp(x)) / (math.exp(epsilon) + choices - 1)
        assert compared.hockey_stick(x) == pytest.approx(max(0.0, closed), abs=1e-12)
    assert compared.pure_loss(epsilon) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("choices", [2, 5])
def test_a_large_budget_is_measured_to_the_last_digits(choices):
    """Of 1 minus the probability of the truth, nothing would be left at such a budget."""
    response = RandomizedResponse(epsilon=40.0, categories=tuple("abcde"[:choices]))
    compared = Comparison.of(distribution(response, (0,)), distribution(response, (1,)))
    assert compared.pure_loss(40.0) == pytest.approx(40, rel=1e-12)
    verdict = audit(response, tuple(range(choices)), 1)
    assert verdict.holds and verdict.found == pytest.approx(40, rel=1e-12)


def test_disjoint_outputs_lose_without_bound():
    compared = Comparison.of({0: 1.0}, {1: 1.0})
    assert compared.pure_loss(9.0) == compared.concentrated_loss(9.0) == math.inf


def test_hockey_stick_of_three_answers():
    """Three answers, of which j are replaced, lose (3 - 2 j) epsilon."""
    epsilon = 1.0
    response = RandomizedResponse(epsilon=epsilon, categories=("a", "b"))
    one, other = (distribution(response, (x, x, x)) for x in (0, 1))
    keep = response.distributions[0].keep
    for x in (0.0, 0.5, 1.0, 2.0, 2.9):
        closed = sum(
            math.comb(3, j)
            * max(
                0.0,
                keep ** (3 - j) * (1 - keep) ** j - math.exp(x) * keep**j * (1 - keep) ** (3 - j),
            )
            for j in range(4)
        )
        assert Comparison.of(one, other).hockey_stick(x) == pytest.approx(closed, abs=1e-15)


def test_renyi_divergence_of_randomized_response():
    """The largest D_a / a over the orders, against the closed form."""
    keep = 1 / (1 + math.exp(-1.0))
    compared = Comparison.of({0: keep, 1: 1 - keep}, {0: 1 - keep, 1: keep})
    closed = max(
        math.log(keep**a * (1 - keep) ** (1 - a) + (1 - keep) ** a * keep ** (1 - a)) / (a - 1) / a
        for a in exact.ORDERS
    )
    assert compared.concentrated_loss(0.5) == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize("alone", [0.999, 0.5, 2e-3])
def test_unequal_supports_lose_without_bound(alone):
    compared = Comparison.of({0: 1 - alone, 1: alone}, {0: 1.0})
    assert compared.pure_loss(9.0) == math.inf
    assert compared.concentrated_loss(9.0) == math.inf
    assert compared.hockey_stick(50.0) == pytest.approx(alone)
    assert Comparison.of({0: 1.0}, {0: 1 - alone, 1: alone}).hockey_stick(50.0) == 0


@pytest.mark.parametrize("alone", [1e-4, 1e-7, 1e-10])
def test_rare_outputs_that_only_one_gives_break_any_usual_promise(alone):
    """The loss found is at least what the mass that was not listed leaves open."""
    compared = Comparison.of({0: 1 - alone, 1: alone}, {0: 1.0})
    assert compared.pure_loss(1.0) > 10
    # the rarer, the less a guarantee by rho minds
    assert compared.concentrated_loss(0.1) > 0.4


def test_what_tails_leave_open_is_counted_in_favor():
    """Each lists what the other cut off; with tails that heavy nothing can be said against them."""
    compared = Comparison.of({0: 0.5, 1: 0.3}, {0: 0.5, 2: 0.3})
    assert compared.pure_loss(0.5) == pytest.approx(math.log(0.3 / 0.2), rel=1e-9)
    assert compared.hockey_stick(math.log(1.5)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("tail", [1e-3, 1e-6, 1e-12])
def test_tails_of_any_size_accuse_nobody(tail):
    assert audit(Laplace(epsilon=1.5, **BOUNDED), (0.0, 9.0), 1, tail).holds
    assert audit(Laplace(epsilon=30.0, **BOUNDED), (0.0, 9.0), 1, tail).holds
    assert audit(Gaussian(rho=0.5, **BOUNDED), (0.0, 9.0), 1, tail).holds
    assert audit(Gaussian(rho=20.0, **BOUNDED), (0.0, 9.0), 1, tail).holds


# verdicts


class Scaled(Laplace):
    """The guarantee of Laplace with a little less or more noise."""

    factor = Fraction(1)

    @property
    def distributions(self):
        return [
            distributions.DiscreteLaplace(law.scale * self.factor) for law in super().distributions
        ]


class Less(Scaled):
    factor = Fraction(99, 100)


class More(Scaled):
    factor = Fraction(100, 99)


@pytest.mark.parametrize("unit", [Event(), Window(2), Person(2, Event())], ids=str)
@pytest.mark.parametrize("epsilon", [3.0, 6.0])
def test_one_per_cent_of_the_scale_is_seen(unit, epsilon):
    given = {"epsilon": epsilon, "bounds": (0, 1), "grid": 1, "unit": unit}
    length = 1 if isinstance(unit, Person) else 2
    less, right, more = (
        audit(kind(**given), (0.0, 1.0), length, 1e-6) for kind in (Less, Scaled, More)
    )
    assert not less.holds
    assert less.found == pytest.approx(epsilon / 0.99, rel=1e-9)
    assert right.holds and right.found == pytest.approx(epsilon, rel=1e-9)
    assert more.holds and more.found == pytest.approx(epsilon * 0.99, rel=1e-9)


class LessVariance(Gaussian):
    @property
    def distributions(self):
        return [
            distributions.DiscreteGaussian(law.variance * Fraction(99, 100))
            for law in super().distributions
        ]


def test_one_per_cent_of_the_variance_is_seen():
    verdict = audit(LessVariance(rho=0.5, **BOUNDED), (0.0, 2.0), 1, 1e-13)
    assert not verdict.holds
    assert verdict.found == pytest.approx(0.5 / 0.99, rel=1e-6)


def test_the_worst_pair_is_named():
    verdict = audit(Laplace(epsilon=1.0, **BOUNDED), (0.0, 1.0, 2.0), 1, 1e-6)
    assert verdict.worst is not None
    assert {x for ((x,),) in [(pair,) for pair in verdict.worst]} == {0.0, 2.0}
    assert verdict.pairs == 6
    assert "holds" in verdict.sentence and "claimed epsilon = 1" in verdict.sentence
    wrong = audit(
        Laplace(epsilon=1.0, **BOUNDED),
        (0.0, 2.0),
        1,
        1e-6,
        guarantee=Guarantee(Pure(0.9), Event()),
    )
    assert not wrong.holds and "DOES NOT HOLD" in wrong.sentence


def test_the_unit_of_the_promise_is_audited():
    """Not the one that the mechanism was set up for."""
    response = RandomizedResponse(epsilon=1.0, categories=("a", "b"))
    for unit, links in ((Window(2), 2), (Person(2, Event()), 2), (Person(2, Window(2)), 4)):
        holds = Guarantee(Pure(links), unit)
        assert audit(response, (0, 1), 2, guarantee=holds).found == pytest.approx(links)
        assert audit(response, (0, 1), 2, guarantee=holds).holds
        assert not audit(response, (0, 1), 2, guarantee=Guarantee(Pure(1.0), unit)).holds


def test_nothing_promised_is_nothing_to_audit():
    response = RandomizedResponse(epsilon=1.0, categories=("a", "b"))
    with pytest.raises(AssertionError, match="nothing is guaranteed"):
        audit(response, (0, 1), 1, guarantee=NoGuarantee("a seed"))


@dataclass(frozen=True)
class Leaky(distributions.CategoryFlip):
    """Outcome ``choices`` says: tell the truth, plainly marked."""

    delta: float = 0.0

    def outcomes(self, tail):
        kept = [(k, (1 - self.delta) * p) for k, p in super().outcomes(tail)]
        return [*kept, (self.choices, self.delta)]


class BlurtsOut(RandomizedResponse):
    """(epsilon, 0.01): one answer in a hundred is the marked truth."""

    delta = 0.01

    def perturb(self, readings, noise, state):
        law = Leaky(self.distributions[0].epsilon, 2, self.delta)
        drawn = noise(law, "column 0")[:, None]
        return np.where(drawn == 2, 10 + readings, (readings + drawn) % 2)


def test_approximate_promises():
    mechanism = BlurtsOut(epsilon=1.0, categories=("a", "b"))

    def verdict(loss, unit=None, length=1):
        return audit(mechanism, (0, 1), length, guarantee=Guarantee(loss, unit or Event()))

    right = verdict(Approximate(1.0, 0.01))
    assert right.holds and right.found == math.inf
    assert right.delta == pytest.approx(0.01, rel=1e-9)
    assert not verdict(Approximate(1.0, 0.0099)).holds
    assert verdict(Approximate(0.9, 0.08)).holds
    assert not verdict(Approximate(0.9, 0.01)).holds
    assert not verdict(Pure(1.0)).holds
    assert not verdict(Concentrated(10.0)).holds
    assert not verdict(Approximate(1.0, 0.0)).holds
    grouped = Approximate(1.0, 0.01).grouped(2)
    assert verdict(grouped, Window(2), 2).holds
    assert not verdict(Approximate(2.0, 0.01), Window(2), 2).holds


def test_pure_is_also_approximate():
    response = RandomizedResponse(epsilon=1.0, categories=("a", "b"))
    (law,) = response.distributions
    needed = law.keep - math.exp(0.5) * (1 - law.keep)
    for delta, holds in ((needed * 1.001, True), (needed * 0.999, False)):
        promise = Guarantee(Approximate(0.5, delta), Event())
        assert audit(response, (0, 1), 1, guarantee=promise).holds == holds


def test_readings_out_of_bounds_are_clipped_in_the_audit_too():
    mechanism = Laplace(epsilon=1.0, **BOUNDED)
    assert distribution(mechanism, (-1e300,), 1e-6) == distribution(mechanism, (0.0,), 1e-6)
    assert distribution(mechanism, (1e300,), 1e-6) == distribution(mechanism, (2.0,), 1e-6)


# what a kernel asks row by row


class AQuarterOfTheNoise(SparseVector):
    @property
    def distributions(self):
        return tuple(distributions.DiscreteLaplace(law.scale / 4) for law in super().distributions)


@pytest.mark.parametrize("height", [8, 16, 24, 28, 40])
def test_answers_that_are_all_but_certain_still_count(height):
    """Far above the threshold the other answer is rare: its side must not be lost in rounding."""
    given = {
        "epsilon": 4.0,
        "bounds": (0, height),
        "threshold": 0,
        "most": 1,
        "grid": 1,
        "threshold_share": 0.5,
        "unit": Contribution(WholeSeries(2)),
    }
    near = (height - 1, height)
    right = audit(SparseVector(**given), near, 2, 1e-9)
    assert right.holds and right.found > 2
    wrong = audit(AQuarterOfTheNoise(**given), near, 2, 1e-9)
    assert not wrong.holds and wrong.found > 8
