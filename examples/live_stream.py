"""Protects readings as they come, stops in the middle, and goes on from a saved state.

Run it with ``python examples/live_stream.py``; it writes nothing.
"""

import csv

import numpy as np

import tempriv as tp
from tempriv.datasets import METERS

with METERS.open(newline="") as file:
    readings = [float(row["energy_kWh"]) for row in csv.DictReader(file) if row["home"] == "home-1"]

mechanism = tp.Laplace(epsilon=1.0, bounds=(0, 5))
key = tp.Key.generate()
stream = mechanism.start(key, series="home-1")
print(mechanism.guarantee.sentence)

# one at a time, as a meter would send them
released = [stream.push(reading)[0] for reading in readings[:10]]

# the state holds what is needed to go on, but not the key; keep both, apart, and to yourself
state = stream.state()
del stream

# later, with the same key: the rest in one block
stream = tp.resume(mechanism, state, key)
released += stream.push(readings[10:]).tolist()
released += stream.finish()[:, 0].tolist()
print(f"{len(released)} readings released, in pieces of one and of {len(readings) - 10}")

# sent again from the saved state, the same readings get the same bits: there is no second noise
again = tp.resume(mechanism, state, key).push(readings[10:])
print("the same bits when sent again:", bool(np.array_equal(again, released[10:])))

# a key makes the noise of a series once
try:
    mechanism.start(key, series="home-1")
except tp.TemprivError as refusal:
    print("refused:", refusal)

print(
    f"mean of the readings {np.mean(readings):.3f} kWh, of what was released "
    f"{np.mean(released):.3f} kWh"
)
