"""Frequency oracles from their definitions. Nothing here uses the package."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

Law = dict[bytes, float]


def _little(number: int, choices: int) -> bytes:
    wide = 1
    while 256**wide < choices:
        wide += 1
    return number.to_bytes(wide, "little")


def grr(epsilon: float, size: int, value: int) -> Law:
    weights = [math.exp(epsilon) if v == value else 1.0 for v in range(size)]
    return {_little(v, size): w / sum(weights) for v, w in enumerate(weights)}


def oue(epsilon: float, size: int, value: int) -> Law:
    law = {}
    for bits in itertools.product((0, 1), repeat=size):
        mass, number = 1.0, 0
        for v, bit in enumerate(bits):
            chance = 0.5 if v == value else 1 / (math.exp(epsilon) + 1)
            mass *= chance if bit else 1 - chance
            number += bit << v
        law[number.to_bytes((size + 7) // 8, "little")] = mass
    return law


def is_prime(number: int) -> bool:
    return number > 1 and all(number % d for d in range(2, number))


def olh_shape(epsilon: float, size: int) -> tuple[int, int]:
    """How many cells, and the prime."""
    cells = round(math.exp(epsilon)) + 1
    prime = max(size, 16 * cells)
    while not is_prime(prime):
        prime += 1
    return cells, prime


def cell_of(a: int, b: int, value: int, cells: int, prime: int) -> int:
    """The last cell that begins at or before the place of the value."""
    place = (a * value + b) % prime
    return max(cell for cell in range(cells) if cell * prime <= place * cells)


def olh(epsilon: float, size: int, value: int) -> Law:
    cells, prime = olh_shape(epsilon, size)
    mass = math.exp(epsilon) + cells - 1
    law = {}
    for a, b in itertools.product(range(prime), repeat=2):
        true = cell_of(a, b, value, cells, prime)
        for said in range(cells):
            weight = math.exp(epsilon) if said == true else 1.0
            report = _little(a * prime + b, prime**2) + _little(said, cells)
            law[report] = weight / mass / prime**2
    return law


def matrix(order: int) -> list[list[int]]:
    """Sylvester's: four copies of the half, the last one with the opposite signs."""
    if order == 1:
        return [[1]]
    half = matrix(order // 2)
    return [row + row for row in half] + [row + [-x for x in row] for row in half]


def order_of(size: int) -> int:
    order = 1
    while order < size:
        order *= 2
    return order


def hadamard(epsilon: float, size: int, value: int) -> Law:
    order = order_of(size)
    true = math.exp(epsilon) / (math.exp(epsilon) + 1)
    law = {}
    for row in range(1, order):
        sign = matrix(order)[row][value]
        for said in (1, -1):
            mass = (true if said == sign else 1 - true) / (order - 1)
            law[_little(2 * (row - 1) + (said < 0), 2 * (order - 1))] = mass
    return law


LAWS: dict[str, Callable[[float, int, int], Law]] = {
    "GRR": grr,
    "OUE": oue,
    "OLH": olh,
    "Hadamard": hadamard,
}


def supported(name: str, epsilon: float, size: int, report: bytes) -> Iterator[int]:
    """The values that a report speaks for."""
    number = int.from_bytes(report, "little")
    if name == "OLH":
        cells, prime = olh_shape(epsilon, size)
        wide = len(_little(0, prime**2))
        a, b = divmod(int.from_bytes(report[:wide], "little"), prime)
        said = int.from_bytes(report[wide:], "little")
    for v in range(size):
        if name == "GRR":
            holds = number == v
        elif name == "OUE":
            holds = bool(number >> v & 1)
        elif name == "OLH":
            holds = cell_of(a, b, v, cells, prime) == said
        else:
            holds = matrix(order_of(size))[number // 2 + 1][v] == (-1 if number % 2 else 1)
        if holds:
            yield v


def variance(name: str, epsilon: float, size: int, share: float) -> float:
    """Of an estimated count, for each person: closed forms.

    GRR and OUE: as in Wang et al. 2017, with the terms of the share itself. OLH: theirs, for hashes
    that collide with 1 / cells. Hadamard: ours, of the agreeing rows.
    """
    e = math.exp(epsilon)
    if name == "GRR":
        return (size - 2 + e) / (e - 1) ** 2 + share * (size - 2) / (e - 1)
    if name == "OUE":
        return 4 * e / (e - 1) ** 2 + share
    if name == "OLH":
        g = round(e) + 1
        spread = e * (g - 1) / (e + g - 1) ** 2
        contrast = (e - 1) * (g - 1) / (g * (e + g - 1))
        none = (e - 1 + g) ** 2 / ((e - 1) ** 2 * (g - 1))
        return none + share * (spread / contrast**2 - none)
    order = order_of(size)
    # the sum of a report's signs over the rows: order / (order - 1) (2 keep - 1) apart
    apart = order / (order - 1) * (e - 1) / (e + 1)
    mean = (e - 1) / (e + 1) - apart
    none = (1 - mean**2) / apart**2
    full = (1 - ((e - 1) / (e + 1)) ** 2) / apart**2
    return none + share * (full - none)
