"""Audits of mechanisms that move rows: which pairs they try, what they see and conclude."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from tempriv.audit import cases, exact, statistical
from tempriv.cli.app import main
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units.order import SlotOrigin, Swap
from tempriv.sampling.keys import Key
from tests.mechanisms.test_order import EACH, said
from tests.mechanisms.test_order_refusals import refusal
from tests.support.statistics import COMPILED, assert_cells

pytest_plugins = ["tests.support.statistics"]

AUDITED = [
    Backward(epsilon=1.0, window=4),
    Threshold(epsilon=3.5, window=5),
    DualThreshold(epsilon=1.0, window=4),
    BlockShuffle(epsilon=1.0, block=3, offset=1),
    NoisyOrder(epsilon=5.0, window=2),
    NoisyOrder(epsilon=2.0, window=2, latency=2, delta=0.5),
]


@pytest.mark.parametrize("mechanism", AUDITED, ids=said)
def test_many_runs_have_the_distribution_that_is_enumerated(mechanism, seed):
    """What the statistical audit looks at, against the exact law: chi-square, alpha 1e-9."""
    runs, length = (200_000 if COMPILED else 20_000), (3 if mechanism.takes_whole else 4)
    key = Key.from_seed(seed).series("audit", "a")
    made = statistical.outputs(mechanism, tuple(range(length)), runs, key)
    single = isinstance(mechanism.guarantee.unit, SlotOrigin)
    law: dict[tuple[float, ...], float] = {}
    for (rows, status), mass in exact.distribution(mechanism, tuple(range(length)), 1e-6).items():
        rows = [-1 if row is None else row for row in rows]
        seen = (rows[-1],) if single else (*rows, *status)
        law[seen] = law.get(seen, 0.0) + mass
    if single:
        assert made.shape == (runs, 1, 1)
        found = np.nan_to_num(made[:, :, 0], nan=-1)
    else:
        assert made.shape == (runs, length, 2)
        found = np.concatenate([np.nan_to_num(made[:, :, 0], nan=-1), made[:, :, 1]], axis=1)
    kinds, counts = np.unique(found, axis=0, return_counts=True)
    shown = {tuple(row): n for row, n in zip(kinds.tolist(), counts.tolist(), strict=True)}
    assert shown.keys() <= law.keys()
    often = [one for one, mass in law.items() if mass * runs > 150]
    cells, masses = [shown.get(one, 0) for one in often], [law[one] for one in often]
    rest = 1 - math.fsum(masses)
    if rest * runs > 150:
        cells, masses = [*cells, runs - sum(cells)], [*masses, rest]
    else:  # to the likeliest
        at = int(np.argmax(masses))
        cells[at] += runs - sum(cells)
        masses[at] += rest
    assert_cells(cells, masses, detects=0.04 if COMPILED else 0.12)


@pytest.mark.parametrize(
    "mechanism", [one for one in EACH if one.guarantee != EACH[1].guarantee], ids=said
)
def test_a_promise_that_holds_is_not_called_broken(mechanism, seed):
    runs = 40_000 if COMPILED else 8_000
    verdict = statistical.audit(mechanism, runs=runs, key=Key.from_seed(seed))
    assert verdict.holds, verdict.sentence
    small = cases.small_case(mechanism)
    if small is not None:
        assert exact.audit(small.mechanism, small.alphabet, small.length, small.tail).holds


class Sure(BlockShuffle):
    """Neighbors of two blocks are claimed too."""

    guarantee = property(lambda self: Guarantee(Pure(self.epsilon), Swap(2)))


class Even(Forward):
    """What the paper's odds would be, if none were overwritten."""

    guarantee = property(lambda self: Guarantee(Pure(self.epsilon / 2), SlotOrigin(self.window)))


@pytest.mark.parametrize(
    "mechanism", [Sure(epsilon=0.5, block=2), Even(epsilon=1.0, window=10)], ids=said
)
def test_a_promise_that_does_not_hold_is_called_broken(mechanism, seed):
    runs = 100_000 if COMPILED else 20_000
    verdict = statistical.audit(mechanism, runs=runs, key=Key.from_seed(seed))
    assert not verdict.holds, verdict.sentence


def test_every_kind_of_pair_is_tried():
    """Far apart and side by side, in the block or window that is guaranteed, and told apart."""
    shuffled = cases.worst_pairs(BlockShuffle(epsilon=1.0, block=4, offset=1))
    assert ((0, 1, 2, 3, 4), (0, 4, 2, 3, 1)) in shuffled
    slot = cases.worst_pairs(Threshold(epsilon=5.0, window=10))
    assert ((1, *[0] * 8, 2), (2, *[0] * 8, 1)) in slot and (
        (*[0] * 8, 1, 2),
        (*[0] * 8, 2, 1),
    ) in slot
    order = cases.worst_pairs(NoisyOrder(epsilon=1.0, window=4))
    assert max(abs(x.index(0) - y.index(0)) for x, y in order) == 3
    assert all(len(pair[0]) == 24 for pair in cases.worst_pairs(NoisyOrder(epsilon=1.0, window=50)))


def test_series_that_cannot_trade_places_are_refused():
    for mechanism, length in ((EACH[0], 1), (BlockShuffle(epsilon=1.0, block=4, offset=1), 2)):
        for call in (cases.worst_pairs, cases.small_case):
            said = refusal(lambda call=call, m=mechanism, n=length: call(m, n))
            assert "too few for two of them to trade places" in said


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("threshold", "--epsilon", 3.5, "--window", 4), "exact, every outcome of 4 readings"),
        (("block-shuffle", "--epsilon", 1, "--block", 30), "exact, every outcome of 7 readings"),
        (("noisy-order", "--epsilon", 6, "--window", 2), "exact, every outcome of 3 readings"),
        (("noisy-order", "--epsilon", 1, "--window", 10, "--runs", 20_000), "from 20,000 runs"),
        (("backward", "--epsilon", 1, "--window", 30, "--runs", 20_000), "from 20,000 runs"),
        (("forward", "--epsilon", 1, "--window", 5), "nothing is guaranteed, so there is nothing"),
        (("backward", "--epsilon", 1, "--window", 5, "--steps", 1), "1 readings: too few"),
    ],
    ids=str,
)
def test_the_command_audits_orders_or_says_why_not(words, line, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["tempriv", "audit", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capfd.readouterr()
    assert line in out + err and "Traceback" not in err
    refused = "nothing" in line or "too few" in line
    assert (ended.value.code or 0) == (2 if refused else 0)
    assert refused or "verdict" in out
