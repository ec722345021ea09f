"""The least discrete Gaussian noise for (epsilon, delta), against plain enumeration."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tempriv as tp
from tempriv.accounting.composition import gaussian_noise
from tempriv.accounting.gaussian_noise import NoisyNumbers, discrete_delta
from tempriv.errors import UsageError
from tempriv.ledger.ledger import Ledger
from tempriv.ledger.scope import Scope
from tempriv.privacy import guarantees, serialization
from tempriv.privacy.guarantees import Approximate, Calibrated, Concentrated, Guarantee, at_most
from tempriv.privacy.units import Contribution, Event, WholeSeries, Window
from tempriv.sampling.distributions import DiscreteGaussian


def enumerated_delta(variance, changes, epsilon):
    """The hockey-stick divergence over all outputs of so many numbers, one by one."""
    law = DiscreteGaussian(Fraction(variance))
    reach = math.ceil(12 * math.sqrt(variance)) + max(changes)
    ks = range(-reach, reach + 1)
    weights = {k: law.pmf(k) for k in range(-2 * reach, 2 * reach + 1)}
    total = []
    for point in itertools.product(ks, repeat=len(changes)):
        first = math.prod(weights[k] for k in point)
        second = math.prod(weights[k - c] for k, c in zip(point, changes, strict=True))
        total.append(max(0.0, first - math.exp(epsilon) * second))
    return math.fsum(total)


@pytest.mark.parametrize(
    ("variance", "change", "epsilon"),
    [(0.7, 1, 1.0), (17.85, 1, 1.0), (50.0, 7, 0.3), (3.0, 9, 2.0), (40.0, 1, 0.001)],
)
def test_the_delta_of_one_number_is_that_of_all_its_outputs(variance, change, epsilon):
    exact = enumerated_delta(variance, [change], epsilon)
    assert exact * (1 - 1e-9) <= discrete_delta(variance, change, epsilon) <= exact * (1 + 1e-9)


@pytest.mark.parametrize("changes", [(1, 1), (3, 2), (4, 4)])
@pytest.mark.parametrize("variance", [4, 9, 20])
def test_the_delta_of_several_numbers_is_never_below_the_truth(variance, changes):
    square = sum(change**2 for change in changes)
    rho = square / (2 * variance)
    exact = enumerated_delta(variance, changes, 1.0)
    bound = NoisyNumbers(Fraction(variance) * Fraction(rho), 2).delta(rho, 1.0)
    assert exact <= bound
    # and the continuous noise of a variance that is one step less is no tighter
    assert bound <= enumerated_delta(variance - 1.6, changes, 1.0) * 1.2 + 1e-9


def test_noise_is_the_least_for_one_reading():
    """4.22 times the sensitivity at (1, 1e-6), where the tail bound of zCDP takes 5.35."""
    for bounds, grid in (((0, 5), None), ((0, 1), 1), ((0, 1000), 2.0**-12)):
        asked = tp.Gaussian(epsilon=1.0, delta=1e-6, bounds=bounds, grid=grid)
        assert asked.sigmas[0] / bounds[1] == pytest.approx(gaussian_noise(1.0, 1e-6), rel=2e-3)
        numbers = asked._noisy_numbers
        assert numbers.delta(asked.rho, 1.0) <= 1e-6 < numbers.delta(asked.rho * (1 + 1e-7), 1.0)
        assert asked.guarantee.loss == Calibrated(asked.rho, 1.0, 1e-6)


COUNTED = Contribution(WholeSeries(30), per_step=2, total=7)


@pytest.mark.parametrize(
    ("given", "most"),
    [
        ({"bounds": (0, 5), "unit": Window(24)}, 1.0001),
        ({"bounds": ((0, 5), (0, 1))}, 1.0001),
        ({"bounds": (0, 1), "grid": 1, "unit": Window(24)}, 1.01),
        ({"bounds": (0, 99), "unit": COUNTED}, 1.01),
    ],
    ids=["window", "columns", "window of bits", "counts"],
)
def test_noise_for_several_numbers_is_near_the_least(given, most):
    asked = tp.Gaussian(epsilon=1.0, delta=1e-6, **given)
    assert asked._noisy_numbers.delta(asked.rho, 1.0) <= 1e-6
    # as if one continuous number were that far away
    assert 1 / math.sqrt(2 * asked.rho) <= gaussian_noise(1.0, 1e-6) * most
    assert asked.guarantee.loss.epsilon_at(1e-6) == 1.0


def test_a_spec_has_its_rho_and_is_checked_when_it_is_read():
    asked = tp.Gaussian(epsilon=1.0, delta=1e-6, bounds=(0, 5))
    text = json.loads(json.dumps(serialization.encode(asked)))
    assert serialization.decode(text, (tp.Gaussian, Event)) == asked
    with pytest.raises(UsageError, match="does not keep epsilon=1.0 at delta=1e-06"):
        replace(asked, rho=asked.rho * 1.001)
    # a spec of 0.8.0 has no such fields, and keeps its digest
    assert "delta" not in serialization.encode(tp.Gaussian(rho=0.5, bounds=(0, 5)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "rho=None: give it, or epsilon and delta"),
        ({"epsilon": 1.0}, "delta=None: must be given with epsilon"),
        ({"rho": 1.0, "delta": 1e-6}, "epsilon=None: must be > 0"),
        ({"epsilon": -1.0, "delta": 1e-6}, "epsilon=-1.0: "),
        ({"epsilon": 1.0, "delta": 0.0}, "delta=0.0: "),
        ({"epsilon": 1.0, "delta": 1.0}, "delta=1.0: "),
        ({"epsilon": 1.0, "delta": "x"}, "delta=x: "),
    ],
)
def test_what_cannot_be_calibrated_to_is_refused(given, said):
    with pytest.raises(UsageError, match=said):
        tp.Gaussian(bounds=(0, 5), **given)


def test_both_statements_of_calibrated_noise_hold_for_groups_and_compare():
    loss = Calibrated(0.02, 1.0, 1e-6)
    assert loss.grouped(2) == Calibrated(0.08, 2.0, Approximate(1.0, 1e-6).grouped(2).delta)
    assert at_most(loss, Concentrated(0.02)) and at_most(loss, Approximate(1.0, 1e-6))
    assert not at_most(Concentrated(0.02), loss) and at_most(loss, loss)
    data = serialization.encode(Guarantee(loss, Event()))
    assert guarantees.decode(data).loss == loss
    assert "epsilon = 1, delta = 1e-06" in Guarantee(loss, Event()).sentence
    assert "2.72, except with probability 1e-06" in Guarantee(loss, Event()).plain


def test_one_release_may_take_all_of_a_limit_and_nothing_fits_beside_it(tmp_path):
    asked = tp.Gaussian(epsilon=1.0, delta=1e-6, bounds=(0, 5)).guarantee
    small = tp.Gaussian(rho=1e-6, bounds=(0, 5)).guarantee
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        for name, first in (("alone", asked), ("second", small)):
            ledger.create_dataset(name, epsilon=1.0, delta=1e-6, unit=Event())
            (total,) = ledger.charge(name, first, Scope(), release_id=name).totals
            assert not total.exceeded
            with pytest.raises(tp.BudgetError):
                ledger.charge(name, asked, Scope(), release_id=f"{name} again")
        assert ledger.show("alone").totals[0].spent == 1.0
        with pytest.raises(tp.BudgetError):
            ledger.charge("alone", small, Scope(), release_id="small")
        # with room for both, they add up by rho
        ledger.create_dataset("roomy", epsilon=3.0, delta=1e-6, unit=Event())
        for i in range(3):
            ledger.charge("roomy", asked, Scope(), release_id=f"roomy {i}")


def test_noise_reaches_what_it_says():
    """The released numbers have the deviation that was found."""
    asked = tp.Gaussian(epsilon=1.0, delta=1e-6, bounds=(0, 5))
    out = asked.start(tp.Key.from_seed(1)).push(np.zeros(40_000))
    assert np.std(out) == pytest.approx(4.22 * 5, rel=0.02)  # 5.6 standard errors
