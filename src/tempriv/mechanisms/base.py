"""What a mechanism is, and the one way that private readings pass through one.

A mechanism is a frozen spec that owns its guarantee. A stream carries its readings: the same code
takes one reading, a block, or a file of ten thousand series, and gives the same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tempriv.data.series import Flags
from tempriv.mechanisms.domains import Domain, Floats, Integers
from tempriv.mechanisms.reorder._kernels import Carriage
from tempriv.mechanisms.reorder.distributions import FreeSlotDistribution, LagDistribution
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Published
from tempriv.privacy.units import Unit
from tempriv.sampling import distributions
from tempriv.sampling.distributions import Distribution, Varying
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import Keystream, StepRange

if TYPE_CHECKING:
    from tempriv.mechanisms.stream import Stream


class NoiseSource(Protocol):
    """Where a mechanism gets its randomness: keyed noise, or every outcome in an audit."""

    @property
    def ahead(self) -> bool:
        """Whether rows may be drawn that turn out not to be needed."""

    def __call__(
        self, law: Distribution | Varying, purpose: str, rows: Integers | None = None
    ) -> Integers:
        """One draw of the law for every row of the block at hand, for the named purpose.

        Or for some of the rows, given by rising position.
        """

    def each(self, law: Distribution, purpose: str) -> Any:
        """The same for a kernel that asks row by row, by ``kernels.at`` or ``kernels.above``.

        See ``order.decided`` for ``kernels.Halves``, which may be unsure of a row.
        """

    def scalable(self, purpose: str) -> Any:
        """As ``noise.ScalableLaplace``: Laplace noise whose scale a kernel finds as it goes."""


class KeyedNoise:
    """Noise from the keys of some runs of series."""

    ahead: ClassVar[bool] = True

    def __init__(self, runs: Sequence[StepRange]):
        self.runs = runs
        self._words: dict[str, Keystream] = {}  # of purposes drawn for a few rows at a time

    def __call__(
        self, law: Distribution | Varying, purpose: str, rows: Integers | None = None
    ) -> Integers:
        if rows is None:
            assert not isinstance(law, Varying)
            return distributions.draw(law, self.runs, purpose)
        if not len(rows):
            return law.sample(Keystream([], purpose))
        # whoever asks for the second time may ask for a thousandth
        words = self._words.get(purpose)
        self._words[purpose] = Keystream(self.runs, purpose) if words is None else words.cached()
        return law.sample(self._words[purpose].rows(rows))

    def each(self, law: Distribution, purpose: str) -> Any:
        if isinstance(law, (LagDistribution, FreeSlotDistribution)):
            return law.halves(Keystream(self.runs, purpose))
        return self(law, purpose)

    def scalable(self, purpose: str) -> distributions.ScalableLaplace:
        return distributions.ScalableLaplace(self.runs, purpose)


@dataclass
class SeriesState:
    """Where the series of a block stand, and what the mechanism remembers of each.

    Where whole rows are moved, ``missing`` says in one column which of them are none: steps after
    the end of a series, while its last rows come out. A ``carriage`` takes rows to their slots
    while a kernel decides on them, which costs next to nothing then.

    Where outputs come late, ``further`` steps after the end of each series bring out the last ones.

    ``memory`` has a row of whole numbers for each series, zeros at its start, and is changed in
    place. ``status`` is filled in by mechanisms that have statuses, ``spent`` by those that give
    each row a part of epsilon of its own: its owner may want to know.
    """

    counts: Integers
    starts: Integers
    missing: Flags
    memory: Integers
    further: int = 0
    spent: Floats | None = None
    status: npt.NDArray[np.int8] = field(init=False)
    carriage: Carriage = field(default_factory=Carriage)

    def __post_init__(self) -> None:
        self.status = np.zeros(len(self.missing), dtype=np.int8)

    @classmethod
    def fresh(cls, mechanism: Mechanism, series: int, rows: int, further: int = 0) -> SeriesState:
        """So many series of so many rows each, from their first step, nothing missing.

        The last ``further`` of the rows are none, but bring out what comes late.
        """
        return cls(
            counts=np.full(series, rows, dtype=np.int64),
            starts=np.zeros(series, dtype=np.int64),
            missing=np.zeros((series * rows, mechanism.domain.columns or 1), dtype=np.bool_),
            memory=np.zeros((series, mechanism.memory_size), dtype=np.int64),
            further=further,
        )

    @functools.cached_property
    def which(self) -> Integers:
        """The series of each row."""
        return np.asarray(np.repeat(np.arange(len(self.counts)), self.counts), dtype=np.int64)

    @functools.cached_property
    def steps(self) -> Integers:
        """The step of each row in its series."""
        before = np.cumsum(self.counts) - self.counts
        rows: Integers = np.arange(len(self.missing)) + np.repeat(self.starts - before, self.counts)
        return rows


class Mechanism(Protocol):
    """A frozen, keyword-only dataclass of simple types, with the guarantee that it keeps."""

    accepts_null: ClassVar[bool]  # missing readings stay missing and others are unaffected
    has_status: ClassVar[bool]  # outputs may repeat earlier ones or be empty, and say so

    @property
    def causal(self) -> bool:
        """Whether an output never depends on later readings."""

    @property
    def bounded_memory(self) -> bool:
        """Whether a stream holds no more however long it runs."""

    @property
    def takes_whole(self) -> bool:
        """Whether nothing comes out before the last reading is in."""

    @property
    def memory_size(self) -> int:
        """How many whole numbers it remembers of each series; none, if rows are independent."""

    @property
    def horizon(self) -> int | None:
        """The most readings of a series that it can take, if there is a limit."""

    @property
    def unit(self) -> Unit: ...

    @property
    def domain(self) -> Domain:
        """What its readings are, and how they become whole numbers on a public grid."""

    @property
    def guarantee(self) -> Guarantee | NoGuarantee: ...

    @property
    def published(self) -> Published: ...

    @property
    def errors(self) -> tuple[float, ...]:
        """The expected error of one released value, for each column, as ``error_name`` says."""

    @property
    def error_name(self) -> str: ...

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The mechanism itself: grid readings to grid outputs. All randomness is in ``draw``."""

    def start(self, key: Key, series: str = "series") -> Stream: ...
