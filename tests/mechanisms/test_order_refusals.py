"""What mechanisms that move rows refuse: parameters, readings, and states that were changed."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys

import numpy as np
import pytest

from tempriv.errors import DataError, TemprivError
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.mechanisms.stream import MAGIC, resume
from tempriv.sampling.keys import Key
from tests.mechanisms.test_order import EACH, each, said


def refusal(make):
    with pytest.raises(TemprivError) as refused:
        make()
    said = str(refused.value)
    assert "\n" not in said and said
    return said


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Backward(epsilon=1.0, window=1), "window=1: must be a whole number"),
        (lambda: Forward(epsilon=1.0, window=1), "window=1: must be a whole number"),
        (
            lambda: Threshold(epsilon=1.0, window=2),
            "window=2: must be a whole number of time steps >= 3",
        ),
        (lambda: DualThreshold(epsilon=1.0, window=2), "window=2: must be a whole number"),
        (lambda: NoisyOrder(epsilon=1.0, window=1), "window=1: must be a whole number"),
        (lambda: BlockShuffle(epsilon=1.0, block=1), "block=1: must be a whole number"),
        (lambda: BlockShuffle(epsilon=1.0, block=3, offset=3), "offset=3: must be at most 2"),
        (lambda: BlockShuffle(epsilon=1.0, block=3, offset=-1), "offset=-1: must be a whole"),
        (
            lambda: Threshold(epsilon=1.0, window=9, threshold=1),
            "threshold=1: must be a whole number from 2 to 8 with a window of 9, or leave it out",
        ),
        (
            lambda: Threshold(epsilon=1.0, window=9, threshold=9),
            "threshold=9: must be a whole number from 2 to 8",
        ),
        (lambda: Threshold(epsilon=1.0, window=9, threshold=3), "threshold=3: needs epsilon >= "),
        (lambda: DualThreshold(epsilon=1.0, window=9, threshold=3), "threshold=3: needs epsilon"),
        (lambda: Threshold(epsilon=1e-12, window=9), "epsilon=1e-12: too small for a window of 9"),
        (lambda: Threshold(epsilon=1.0, window=10**6), "window=1000000: must be at most 4096"),
        (lambda: Threshold(epsilon=1.0, window=5000), "window=5000: must be at most 4096"),
        (lambda: Backward(epsilon=1.0, window=10**12), "window=1000000000000: must be at most"),
        (lambda: BlockShuffle(epsilon=1.0, block=10**12), "block=1000000000000: must be at most"),
        (
            lambda: NoisyOrder(epsilon=1.0, window=4, noise="gauss"),
            "noise='gauss': must be 'staircase' or 'laplace'",
        ),
        (
            lambda: NoisyOrder(epsilon=1.0, window=4, delta=1e-6),
            "delta=1e-06: must be left out without a latency",
        ),
        (lambda: NoisyOrder(epsilon=1.0, window=4, latency=1), "latency=1: must be a whole number"),
        (
            lambda: NoisyOrder(epsilon=1.0, window=4, latency=99, delta=0.0),
            "delta=0.0: must be between 0 and 1",
        ),
        (lambda: NoisyOrder(epsilon=1e-9, window=4, latency=99), "latency=99: "),
        # so flat a law, cut so short, would be drawn again and again
        (lambda: NoisyOrder(epsilon=1e-6, window=2, latency=2, delta=0.6), "latency=2: "),
    ],
)
def test_bad_parameters_get_one_sentence(make, sentence):
    assert sentence in refusal(make)


@pytest.mark.parametrize("noise", ["staircase", "laplace"])
@pytest.mark.parametrize(
    ("epsilon", "window", "delta"), [(1.0, 4, 1e-6), (4.0, 10, 1e-9), (0.1, 2, 1e-3)]
)
def test_a_latency_out_of_reach_names_the_one_that_would_do(epsilon, window, delta, noise):
    """And that is the shortest."""
    given = {"epsilon": epsilon, "window": window, "delta": delta, "noise": noise}
    sentence = refusal(lambda: NoisyOrder(latency=2, **given))
    latency = int(sentence.partition("; latency=")[2].partition(" ")[0])
    assert NoisyOrder(latency=latency, **given).guarantee.loss.delta <= delta
    assert f"latency={latency}" in refusal(lambda: NoisyOrder(latency=latency - 1, **given))


@each
def test_rows_of_another_width_are_refused_before_anything_is_taken(mechanism):
    stream = mechanism.start(Key.from_seed(9), "a")
    stream.push(np.arange(6.0)[:, None])
    state = stream.state()
    for wrong in (np.zeros((2, 2)), [["a", "b"]], np.zeros((3, 0))):
        with pytest.raises(DataError, match="value column"):
            stream.push(wrong)
        assert stream.state() == state
    stream.push(np.arange(3.0)[:, None])  # it goes on


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([b"bytes"], "bytes"),
        ([1j], "complex"),
        ([{"a": 1}], "dict"),
        ([math.nan, 1.0], "NaN or infinite"),
        (["a", math.inf], "NaN or infinite"),
        ([[1], [1, 2]], "row"),
        (np.zeros((2, 2, 2)), "one row of values"),
    ],
    ids=str,
)
@each
def test_readings_that_are_none_get_one_sentence(mechanism, values, sentence):
    stream = mechanism.start(Key.from_seed(9), "a")
    state = stream.state()
    assert sentence in refusal(lambda: stream.push(values))
    assert stream.state() == state
    stream.push([1.0, 2.0])


def test_what_is_masked_is_not_looked_at_whatever_it_is():
    for hidden in (math.nan, math.inf, 1j, b"bytes"):
        values = np.ma.array(np.array(["a", hidden, "b"], dtype=object), mask=[0, 1, 0])
        out = Backward(epsilon=1.0, window=3).start(Key.from_seed(9), "a").push(values)
        assert set(out.tolist()) <= {"a", "b", None}


FORGED = """
import hashlib, json, sys
import numpy as np
from tempriv.errors import TemprivError
from tempriv import *
from tempriv.mechanisms.stream import MAGIC, packed, resume
from tempriv.sampling.keys import Key

for mechanism in map(eval, sys.argv[1:]):
    stream = mechanism.start(Key.from_seed(3), "a")
    stream.push(np.arange(50.0))
    body = json.loads(stream.state()[len(MAGIC) + 16 :])
    memory = stream._memory.copy()
    rng = np.random.default_rng(1)
    for value in (-(10**12), -1000, -2, 1000, 10**12, None):
        other = memory.copy()
        places = rng.integers(0, memory.size, 3)
        other.ravel()[places] = value if value is not None else other.ravel()[places[::-1]] + 1
        data = json.dumps({**body, "memory": packed(other)}, sort_keys=True).encode()
        state = MAGIC + hashlib.blake2b(data, digest_size=16).digest() + data
        try:
            again = resume(mechanism, state, Key.from_seed(3))
            out = np.ma.filled(again.push(np.arange(50.0, 150.0)), 0.0)
            assert set(out.tolist()) <= set(range(150)), "rows that never went in"
        except TemprivError:
            pass
    print("sound", mechanism, flush=True)
"""
WITH_STATES = [one for one in EACH if one.bounded_memory]


@pytest.fixture(scope="module")
def forgery():
    """One process for all of them; what it writes over may end it."""
    words = [sys.executable, "-c", FORGED, *map(repr, WITH_STATES)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("mechanism", WITH_STATES, ids=said)
def test_a_forged_state_is_refused_or_does_no_harm(mechanism, forgery):
    """Compiled loops do not check where they write: a state must, before they get it."""
    ended = f"ended with {forgery.returncode}: {forgery.stderr[-300:]}"
    assert f"sound {mechanism}" in forgery.stdout.splitlines(), ended


def test_all_forged_states_are_survived(forgery):
    assert (forgery.returncode, forgery.stderr) == (0, "")


@pytest.mark.parametrize("mechanism", WITH_STATES, ids=said)
def test_a_state_with_too_few_rows_is_refused(mechanism):
    """The kernels reach back a window; where nothing is held there, they must not read."""
    stream = mechanism.start(Key.from_seed(3), "a")
    stream.push(np.arange(50.0))
    body = json.loads(stream.state()[len(MAGIC) + 16 :])
    kind, rows = body["held"]
    fewer = [kind, json.dumps(json.loads(rows)[1:])]
    for held in (fewer, []):
        data = json.dumps({**body, "held": held}, sort_keys=True).encode()
        state = MAGIC + hashlib.blake2b(data, digest_size=16).digest() + data
        assert "damaged" in refusal(lambda state=state: resume(mechanism, state, Key.from_seed(3)))
