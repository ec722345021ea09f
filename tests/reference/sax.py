"""Series to symbols by the definition, in exact fractions; and the normal law in many digits."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction


def normal_below(x: Fraction, digits: int = 60) -> Decimal:
    """The probability below x, by the Taylor series of the error function about 0.

    Its terms alternate and may be large: computed with digits to spare.
    """
    with localcontext() as context:
        context.prec = digits + 40
        at = Decimal(x.numerator) / Decimal(x.denominator)
        term, total, k = at, at, 0
        while abs(term) > Decimal(10) ** -(digits + 10):
            k += 1
            term = -term * at * at / (2 * k)
            total += term / (2 * k + 1)
        return Decimal("0.5") + total / (2 * machin_pi()).sqrt()


def machin_pi() -> Decimal:
    """pi = 16 arctan 1/5 - 4 arctan 1/239 (Machin 1706), at the precision that is asked for."""
    return 16 * _arctan_of_one_over(5) - 4 * _arctan_of_one_over(239)


def _arctan_of_one_over(n: int) -> Decimal:
    power, k = Decimal(1) / n, 0
    total = power
    while abs(power) > Decimal(10) ** -110:
        k += 1
        power = -power / (n * n)
        total += power / (2 * k + 1)
    return total


def reaches(off: Fraction, edge: Fraction, variance: Fraction) -> bool:
    """off >= edge * sqrt(variance), without the root."""
    if edge >= 0:
        return off >= 0 and off**2 >= edge**2 * variance
    return off >= 0 or off**2 <= edge**2 * variance


def symbols(
    series: Sequence[float],
    edges: Sequence[float],
    segment: int,
    *,
    keep: bool = True,
    compressed: bool = True,
    longest: int = 10**9,
) -> list[int]:
    """The number of edges that the z-scored mean of each segment reaches."""
    exact = [Fraction(float(value)) for value in series]
    mean = sum(exact, Fraction(0)) / len(exact)
    variance = sum(((x - mean) ** 2 for x in exact), Fraction(0)) / len(exact)
    found: list[int] = []
    for begin in range(0, len(exact), segment):
        part = exact[begin : begin + segment]
        if len(part) < segment and not keep:
            break
        if variance == 0:
            symbol = sum(edge <= 0 for edge in edges)
        else:
            off = sum(part, Fraction(0)) / len(part) - mean
            symbol = sum(reaches(off, Fraction(edge), variance) for edge in edges)
        if not (compressed and found and found[-1] == symbol):
            found.append(symbol)
    return found[:longest]
