"""Samplers: exact integers from AES words, beside numpy's floating-point Laplace."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from benchmarks.measure import Row, best_of
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import Keystream, StepRange

DRAWS = 1 << 22
BATCH_ROWS = distributions.BATCH_ROWS


def rows() -> list[Row]:
    key = Key.from_seed(1).series("bench", "series")
    run = [StepRange(key, 0, DRAWS)]
    unsafe = np.random.default_rng(1)
    scales = np.random.default_rng(2).uniform(10, 1e6, BATCH_ROWS)
    laws = {
        "discrete Laplace, fixed scale 2^20 grid steps": distributions.DiscreteLaplace(
            Fraction(1 << 20)
        ),
        "discrete Laplace, fixed scale 1,280 (a default grid)": distributions.DiscreteLaplace(
            Fraction(1280)
        ),
        "discrete Gaussian, deviation 1,000": distributions.DiscreteGaussian(Fraction(10**6)),
        "randomized response, 5 categories": distributions.CategoryFlip(Fraction(1), 5),
        "planar Laplace on a lattice": distributions.PlanarLattice(Fraction(1, 500)),
    }

    def varying() -> None:
        for start in range(0, DRAWS, BATCH_ROWS):
            distributions.discrete_laplace_varying(
                scales, Keystream([StepRange(key, start, BATCH_ROWS)], "varying")
            )

    calls = [lambda: unsafe.laplace(size=DRAWS), varying]
    calls += [lambda law=law: distributions.draw(law, run, "bench") for law in laws.values()]
    yardstick, varied, *others = best_of(calls)
    against = f"numpy laplace, {DRAWS / yardstick / 1e6:.0f} million/s"
    found = []
    for name, seconds in zip(laws, others, strict=True):
        wanted = 1.5 if "Laplace, fixed" in name else None
        ratio = yardstick / seconds
        found.append(
            Row(
                name,
                f"{DRAWS / seconds / 1e6:.1f} million/s",
                against,
                ratio,
                "at least 1.5 times" if wanted else "",
                ratio >= wanted if wanted else None,
            )
        )
    rate = DRAWS / varied
    found.append(
        Row(
            "discrete Laplace, a scale for each row",
            f"{rate / 1e6:.1f} million/s",
            against,
            yardstick / varied,
            "at least 3 million/s",
            rate >= 3e6,
        )
    )
    return found + opendp_rows(yardstick)


def opendp_rows(yardstick: float) -> list[Row]:
    """OpenDP's vector Laplace, when it is installed (pip install 'tempriv[bench]')."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return []
    dp.enable_features("contrib")
    count = 20_000
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    laplace = dp.m.make_laplace(*space, scale=1.0)
    data = [0.0] * count
    seconds = best_of([lambda: laplace(data)], rounds=3)[0]
    per_draw = yardstick / DRAWS
    return [
        Row(
            "OpenDP vector Laplace, for comparison",
            f"{count / seconds / 1e6:.3f} million/s",
            "numpy laplace",
            per_draw / (seconds / count),
            "",
            None,
        )
    ]
