"""A mechanism with what its definition says of it, and how to watch it draw."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, settings

from tempriv.data.series import Block
from tempriv.mechanisms.base import KeyedNoise
from tempriv.mechanisms.domains import OpaqueRows as MovedRows
from tempriv.mechanisms.landmarks.domain import WithLandmarks, without_landmarks
from tempriv.mechanisms.perturb import limit_of
from tempriv.mechanisms.reorder.distributions import FreeSlotDistribution, LagDistribution
from tempriv.mechanisms.stream import Stream
from tempriv.privacy.units import Contribution, Unit
from tempriv.sampling import distributions
from tempriv.sampling.distributions import Varying
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import Keystream
from tests.support.statistics import COMPILED

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Rows = Any  # an array of rows, masked where readings are missing

EXAMPLES = 20 if COMPILED else 10
DRAWS = 200_000 if COMPILED else 10_000
SIGMAS = 5

quick = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@dataclass(frozen=True)
class Small:
    """An instance to enumerate: readings as they come in, some of them out of bounds."""

    alphabet: tuple[Any, ...]
    length: int
    tail: float = 1e-6


@dataclass(frozen=True)
class Case:
    """A mechanism with example parameters, and what the definition says of it."""

    name: str
    mechanism: Any
    readings: Callable[[np.random.Generator, int], Floats]
    still: tuple[float, ...]  # a reading on the grid
    released: Callable[[Floats, list[Integers]], Floats]  # by definition, from readings and noise
    parameters: tuple[Fraction | float, ...]  # of the laws, by definition
    cost: Callable[[Integers, int], Floats]  # the error of an outcome in a column
    smalls: tuple[Small, ...] = ()
    tight: bool = True  # the exact loss is the guaranteed one
    independent: bool = True  # every row has noise of its own and nothing else
    promises: bool = True  # something, that is
    sparse: int = 1  # rows for one draw of each law
    sampled: bool = True  # so many draws can be made; else another case has the same law
    key: Callable[[int], Key] = Key.from_seed

    @property
    def columns(self) -> int:
        return len(self.still)

    def rng(self, purpose: str) -> np.random.Generator:
        data = f"{self.name} {purpose}".encode()
        return np.random.default_rng(
            int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")
        )

    def rows(self, count: int, purpose: str) -> Floats:
        """Valid readings, no more than the unit covers."""
        return self.readings(self.rng(purpose), min(count, limit_of(self.mechanism) or count))

    def gappy(self, count: int, purpose: str) -> Rows:
        rows = self.rows(count, purpose)
        gaps = self.rng("gaps " + purpose).random(rows.shape) < 0.3
        if self.marked:  # a reading has a mark, and may be a part of a row
            gaps[:, -1] &= gaps[:, :-1].all(axis=1)
        return np.ma.array(rows, mask=gaps)

    @property
    def unit(self) -> Unit:
        unit: Unit = self.mechanism.unit
        return unit

    @property
    def moves(self) -> bool:
        """Whether rows are moved whole, whatever is in them."""
        return isinstance(self.mechanism.domain, MovedRows)

    @property
    def marked(self) -> bool:
        """Whether the last column says which rows are landmarks, and stays in."""
        return isinstance(self.mechanism.domain, WithLandmarks)

    def told(self, rows: Rows) -> Rows:
        """The columns that come out."""
        return rows[:, : self.columns - self.marked]

    @property
    def latency(self) -> int:
        latency: int = self.mechanism.domain.latency
        return latency

    @property
    def draws_curves(self) -> bool:
        """Whether the points of a window come out late, and none of the ends of a series."""
        return self.latency > 0 and not self.moves

    def fitting(self, values: Floats) -> Floats:
        """Counts must lie on their grid; other readings are taken as they come."""
        if not isinstance(self.unit, Contribution):
            return values
        grid = np.array(self.mechanism.grid)
        return np.where(np.abs(values) < 2.0**50, np.rint(values / grid) * grid, values)

    def push(self, stream: Stream, rows: Rows) -> Rows:
        """Categories go in and come out by name; here they are numbers all along."""
        categories = self.mechanism.domain.categories
        return self._numbers(stream.push(rows if categories is None else named(rows, categories)))

    def _numbers(self, released: Rows) -> Rows:
        categories = without_landmarks(self.mechanism.domain).categories
        if categories is None or released.dtype != object:
            return self.told(released)
        codes = [{name: i for i, name in enumerate((*column, None))} for column in categories]
        numbers = [[codes[c][name] for c, name in enumerate(row)] for row in released]
        found = np.array(numbers, dtype=np.float64).reshape(len(released), len(categories))
        return np.ma.array(found, mask=found == [len(column) for column in categories])

    def finish(self, stream: Stream) -> Rows:
        """What is held back to the end; all of it, where a mechanism takes whole series."""
        rest = self._numbers(stream.finish())
        assert self.mechanism.takes_whole or self.latency or len(rest) == 0
        return rest

    def release(self, rows: Rows, key: Key, series: str = "a") -> Rows:
        stream = self.mechanism.start(key, series)
        return together([self.push(stream, rows), self.finish(stream)])


def together(parts: list[Rows]) -> Rows:
    """As one array; masked only if something is."""
    parts = [part for part in parts if len(part)] or parts[:1]
    return parts[0] if len(parts) == 1 else np.ma.concatenate(parts)


def named(rows: Rows, categories: Any) -> Any:
    """Category numbers as names, None where masked."""
    names = np.empty(rows.shape, dtype=object)
    for c, column in enumerate(categories):
        known = np.array([*column, "none of them"], dtype=object)
        values = np.ma.getdata(rows)[:, c]
        there = np.isin(values, np.arange(len(column)))
        names[:, c] = known[np.where(there, values, len(column)).astype(np.int64)]
    names[np.ma.getmaskarray(rows)] = None
    return names


def same(one: Rows, other: Rows) -> bool:
    """The same numbers to the last bit, missing in the same places."""
    a, b = np.ma.asarray(one), np.ma.asarray(other)
    gaps = np.ma.getmaskarray(a), np.ma.getmaskarray(b)
    return (
        a.shape == b.shape
        and bool(np.array_equal(*gaps))
        and np.where(gaps[0], 0.0, a.data).tobytes() == np.where(gaps[1], 0.0, b.data).tobytes()
    )


def near(one: Rows, other: Rows) -> bool:
    """Numbers within a billionth of the largest of them, missing in the same places."""
    a, b = np.ma.asarray(one), np.ma.asarray(other)
    gaps = np.ma.getmaskarray(a), np.ma.getmaskarray(b)
    if a.shape != b.shape or not np.array_equal(*gaps):
        return False
    sizes = np.ma.filled(np.abs(b).max(axis=0), 0.0) if len(b) else 0.0
    return bool((np.abs(np.ma.filled(a - b, 0.0)) <= 1e-9 * sizes).all())


@dataclass(frozen=True)
class Drawn:
    """What a law gave; or, without a law, words whose scale a kernel finds as it goes."""

    law: Any
    purpose: str
    values: Any
    rows: Any = None  # all of them, unless it was drawn for some: then their steps
    start: int = 0  # the step of the first of all
    parameters: Any = None  # of the law of each row, where laws vary from row to row

    @property
    def steps(self) -> list[int]:
        if self.rows is None:
            return list(range(self.start, self.start + len(self.values)))
        return [int(row) for row in self.rows]


@contextlib.contextmanager
def recorded() -> Iterator[list[Drawn]]:
    """What the mechanism draws from the keyed source."""
    drawn: list[Drawn] = []
    real = distributions.draw

    def draw(law: Any, runs: Any, purpose: str) -> Integers:
        values = real(law, runs, purpose)
        drawn.append(Drawn(law, purpose, values, start=runs[0].start))
        return values

    class Scalable(distributions.ScalableLaplace):
        def __init__(self, runs: Any, purpose: str):
            super().__init__(runs, purpose)
            drawn.append(Drawn(None, purpose, self.words))

    call, each = KeyedNoise.__call__, KeyedNoise.each

    def for_some(self: Any, law: Any, purpose: str, rows: Any = None) -> Integers:
        values = call(self, law, purpose, rows)
        if rows is not None and len(rows):
            steps, parameters = rows + self.runs[0].start, None
            if isinstance(law, Varying):
                parameters = [parameter(law.distributions[number]) for number in law.which]
                law = None
            drawn.append(Drawn(law, purpose, values, steps, parameters=parameters))
        return values

    def by_halves(self: Any, law: Any, purpose: str) -> Any:
        if isinstance(law, (LagDistribution, FreeSlotDistribution)):
            # every digit of every row: the kernel looks at no more than it needs
            drawn.append(Drawn(law, purpose, law.sample(Keystream(self.runs, purpose))))
        return each(self, law, purpose)

    with (
        # rows that are drawn ahead may be drawn again; what comes out is the same
        mock.patch.object(KeyedNoise, "ahead", False),
        mock.patch.object(KeyedNoise, "__call__", for_some),
        mock.patch.object(KeyedNoise, "each", by_halves),
        mock.patch.object(distributions, "draw", draw),
        mock.patch.object(distributions, "ScalableLaplace", Scalable),
    ):
        yield drawn


@contextlib.contextmanager
def plain_kernels() -> Iterator[None]:
    """Every compiled function of the package runs as the Python it was written in."""
    with contextlib.ExitStack() as stack:
        for module in [m for n, m in sys.modules.items() if n.partition(".")[0] == "tempriv"]:
            for name, value in list(vars(module).items()):
                if hasattr(value, "py_func"):
                    stack.enter_context(mock.patch.object(module, name, value.py_func))
        yield


def parameter(law: Any) -> Any:
    return getattr(law, dataclasses.fields(law)[0].name)


def with_status(case: Case, rows: Rows, key: Key) -> tuple[Rows, list[int]]:
    """Released rows, and which of them are released, repeated or empty."""
    stream = case.mechanism.start(key, "a")
    parts = [stream.push_block(Block.of(rows, "a", 0)), stream.finish_block()]
    parts = [part for part in parts if len(part)]
    made = np.ma.array(
        np.concatenate([part.values for part in parts]),
        mask=np.concatenate([part.missing for part in parts]),
    )
    return made, np.concatenate([part.status for part in parts]).tolist()
