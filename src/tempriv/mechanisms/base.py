"""What a mechanism is, and the one way that private readings pass through one.

A mechanism is a frozen spec that owns its guarantee. A stream carries its readings: the same code
takes one reading, a block, or a file of ten thousand series, and gives the same bits.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, get_args

import numpy as np
import numpy.typing as npt

from tempriv.data.series import Block, Flags
from tempriv.mechanisms.domains import Domain, Floats, Integers, ValueKind
from tempriv.mechanisms.options import Option, Settings, options_of
from tempriv.privacy.guarantees import (
    SHOWN_DELTA,
    Approximate,
    Calibrated,
    Concentrated,
    Guarantee,
    NoGuarantee,
    Published,
)
from tempriv.privacy.units import Unit
from tempriv.sampling import distributions
from tempriv.sampling._kernels import Halves
from tempriv.sampling.distributions import Distribution, DrawnByHalves, Varying
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import Keystream, StepRange

if TYPE_CHECKING:
    from tempriv.mechanisms.checks import Check, ReleasedRows
    from tempriv.mechanisms.reorder._kernels import Carriage
    from tempriv.mechanisms.stream import Stream


class RowNoise(Protocol):
    """Draws that a kernel in plain Python asks for row by row, in an audit."""

    def at(self, row: int) -> int:
        """The draw of a ``row``."""

    def above(self, row: int, cut: int) -> bool:
        """Whether the draw of a ``row`` exceeds the ``cut``."""


class LaplaceRows(Protocol):
    """Laplace noise row by row, at scales that are found out as a kernel goes on."""

    def laplace(self, row: int, scale: float) -> int:
        """The draw of a ``row`` at a ``scale``, or ``UNDECIDED``."""


class ScalableNoise(Protocol):
    """As ``sampling.distributions.ScalableLaplace``."""

    @property
    def words(self) -> LaplaceRows:
        """What a kernel is handed."""


KernelNoise = Integers | Halves | RowNoise
"""What a kernel reads by ``at`` or ``above``: drawn numbers, their first digits, or an audit's."""


class NoiseSource(Protocol):
    """Where a mechanism gets its randomness: keyed noise, or every outcome in an audit."""

    @property
    def ahead(self) -> bool:
        """Whether rows may be drawn that turn out not to be needed."""

    def __call__(
        self, distribution: Distribution | Varying, purpose: str, rows: Integers | None = None, /
    ) -> Integers:
        """One draw for every row of the block at hand, or for some of its rows.

        Parameters:
            distribution: what is drawn.
            purpose: what the draws are for; those of unlike purposes are independent.
            rows: the rows to draw for, rising; all of them if left out.
        """

    def each(self, distribution: Distribution, purpose: str, /) -> KernelNoise:
        """The same for a kernel that asks row by row, by ``at`` or ``above`` of its module.

        ``Halves`` may be unsure of a row: see ``reorder.backward_forward.decided``.

        Parameters:
            distribution: what is drawn.
            purpose: what the draws are for.
        """

    def scalable(self, purpose: str, /) -> ScalableNoise:
        """Laplace noise whose scale a kernel finds as it goes.

        Parameters:
            purpose: what the draws are for.
        """


class KeyedNoise:
    """Noise from the keys of some runs of series.

    Parameters:
        runs: the steps of each series, with its key.
    """

    ahead: ClassVar[bool] = True

    def __init__(self, runs: Sequence[StepRange]):
        self.runs = runs
        self._keystreams: dict[str, Keystream] = {}  # of purposes drawn for a few rows at a time

    def __call__(
        self, distribution: Distribution | Varying, purpose: str, rows: Integers | None = None, /
    ) -> Integers:
        if rows is None:
            assert not isinstance(distribution, Varying)
            return distributions.draw(distribution, self.runs, purpose)
        if not len(rows):
            return distribution.sample(Keystream([], purpose))
        # whoever asks for the second time may ask for a thousandth
        known = self._keystreams.get(purpose)
        keystream = Keystream(self.runs, purpose) if known is None else known.cached()
        self._keystreams[purpose] = keystream
        return distribution.sample(keystream.rows(rows))

    def each(self, distribution: Distribution, purpose: str, /) -> KernelNoise:
        """Drawn numbers, or their first digits where the ``distribution`` has such for ``purpose``.

        Parameters:
            distribution: what is drawn.
            purpose: what the draws are for.
        """
        if isinstance(distribution, DrawnByHalves):
            return distribution.halves(Keystream(self.runs, purpose))
        return self(distribution, purpose)

    def scalable(self, purpose: str, /) -> distributions.ScalableLaplace:
        """Laplace noise for a ``purpose`` whose scale a kernel finds as it goes."""
        return distributions.ScalableLaplace(self.runs, purpose)


class KernelRows(NamedTuple):
    """The rows of a block as kernels take them, which write outputs, statuses and memory.

    Parameters:
        readings: a row for each reading, a column for each value.
        missing: which of them are missing.
        which: the series of each row.
        steps: the step of each row in its series.
        memory: what is remembered of each series, as whole numbers.
        reals: the same memory, read as floating-point numbers.
        outputs: as many as there are readings.
        status: of each row, zero at first.
    """

    readings: Integers
    missing: Flags
    which: Integers
    steps: Integers
    memory: Integers
    reals: Floats
    outputs: Integers
    status: npt.NDArray[np.int8]


@dataclass
class SeriesState:
    """Where the series of a block stand, and what the mechanism remembers of each.

    Parameters:
        counts: how many rows of each series there are, one series after the other.
        starts: how many rows of each series came before.
        missing: which readings are missing; where whole rows are moved, in one column which of
            them are none: steps after the end of a series, while its last rows come out.
        memory: a row of whole numbers for each series, zeros at its start, changed in place.
        further: how many of each series' rows are steps after its end, which bring out what comes
            late.
        spent: the part of epsilon that went into each row, filled in by mechanisms whose rows
            differ in it: its owner may want to know.
        status: filled in by mechanisms that have statuses.
        carriage: takes rows to their slots while a kernel decides on them, which costs next to
            nothing then.
    """

    counts: Integers
    starts: Integers
    missing: Flags
    memory: Integers
    further: int = 0
    spent: Floats | None = None
    status: npt.NDArray[np.int8] = field(init=False)
    carriage: Carriage | None = None

    def __post_init__(self) -> None:
        self.status = np.zeros(len(self.missing), dtype=np.int8)

    @classmethod
    def fresh(cls, mechanism: Mechanism, series: int, rows: int, further: int = 0) -> SeriesState:
        """Series from their first step, nothing missing.

        Parameters:
            mechanism: what they go through.
            series: how many there are.
            rows: how many each of them has.
            further: how many of these are none, but bring out what comes late.
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

    def kernel_rows(self, readings: Integers) -> KernelRows:
        """The rows for a kernel, with outputs of zero.

        Parameters:
            readings: those of the block.
        """
        return KernelRows(
            np.ascontiguousarray(readings),
            self.missing,
            self.which,
            self.steps,
            self.memory,
            self.memory.view(np.float64),
            np.zeros(readings.shape, dtype=np.int64),
            self.status,
        )


Description = Mapping[str, Any]
"""What a release says of itself, as JSON."""

Hides = Literal["values", "answers", "counts", "moments", "order", "pace"]
HIDES: tuple[Hides, ...] = get_args(Hides)
Noise = Literal["laplace", "gaussian", "either"]

UNITS = ("event", "window", "series")

NOT_PROTECTED = (
    "which series there are (their ids, or as many pseudonyms), and how many",
    "the times of readings, and how many there are in each series",
    "which readings are missing",
)
NOT_PROTECTED_OF_COUNTS = (
    "the time steps and the columns: they were declared, not taken from the data",
    "what was counted, and how much one person could add to it at most",
)


DONE = {
    "numbers": "random noise was added to each of them",
    "categories": "each of them was kept or exchanged at random",
    "places": "each of them was moved at random",
}


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """How the command line and the documentation offer a mechanism.

    Parameters:
        name: as typed after ``--mechanism``.
        hides: what it hides; lists are grouped by this.
        purpose: what it is for, in one line.
        example: options of a release that works.
        count_example: the same for counts of people; None if counts cannot go through it.
        units: which of ``--unit event|window|series`` it takes; none if its own options say what
            is protected.
        noise: whether the budget is epsilon (``laplace``), rho or epsilon with delta
            (``gaussian``), or either of them by choice.
        budget: the field that the budget goes to, where that is not rho.
        on_times: what it does to times, if it works on them and not on values.
        takes_delta: whether it takes a delta beside epsilon for something else than noise.
        calibrated: whether it finds the least noise for epsilon and delta itself.
        rank: its place among those that hide the same; equal ones are in alphabetical order.
    """

    name: str
    hides: Hides
    purpose: str
    example: str
    count_example: str | None = None
    units: tuple[str, ...] = UNITS
    noise: Noise = "laplace"
    budget: str = "epsilon"
    on_times: str = ""
    takes_delta: bool = False
    calibrated: bool = False
    rank: int = 0


@dataclass(frozen=True, kw_only=True)
class ReportTexts:
    """What a report says of released values. What is empty here is said by what the values are.

    Parameters:
        done: what was done to the values.
        band: what the band around values in a picture is.
        errors: what the table of errors shows.
        single: the head of the column with the error of one value.
        besides: what has to be said beside errors.
        status: what the column of statuses tells, with ``{}`` for its name.
        outside: whether values outside the bounds can come out and must be left in.
        measured: what the errors are that the owner's report measures.
        scope: for which values errors are stated, if not for all.
        without: without what in a series errors are as stated, if they grow with it.
        counted: what shares are counted over, ``readings`` or ``series``.
    """

    done: str = ""
    band: str = "± expected error"
    errors: str = ""
    single: str = "one value"
    besides: str = ""
    status: str = (
        "The column “{}” tells fresh values (“released”, also where a reading was missing) from "
        "an earlier one that stands again (“repeated”) and from rows for which nothing more comes "
        "out (“empty”)."
    )
    outside: bool = True
    measured: str = "Error: the mean size of released value minus reading."
    scope: str = ""
    without: str = ""
    counted: str = "readings"


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A frozen, keyword-only dataclass of simple types, with the guarantee that it keeps.

    A subclass says what readings are (``domain``), what it does to them (``perturb``), what that
    guarantees, and how to offer and explain it. Everything else has a default here.
    """

    spec_order: ClassVar[tuple[str, ...]] = ()
    """The names of fields in files, in their order there, where another than declared."""
    command: ClassVar[CommandLine]
    texts: ClassVar[ReportTexts] = ReportTexts()
    extra_options: ClassVar[tuple[Option, ...]] = ()
    """Options that fill no field by themselves; ``settings_from`` makes something of them."""

    accepts_null: ClassVar[bool] = True
    """Whether missing readings stay missing and others are unaffected."""
    has_status: ClassVar[bool] = False
    """Whether outputs may repeat earlier ones or be empty, and say so."""
    values_are_readings: ClassVar[bool] = True
    """Whether what comes out is of the kind that came in, not a sum or an alert."""
    accumulates: ClassVar[bool] = False
    """Whether each value is about the sum of all readings of its series so far."""
    is_retimed: ClassVar[bool] = False
    """Whether values were read at another time than their own, which is all that is off."""

    @property
    def causal(self) -> bool:
        """Whether an output never depends on later readings."""
        return True

    @property
    def bounded_memory(self) -> bool:
        """Whether a stream holds no more however long it runs."""
        return True

    @property
    def takes_whole(self) -> bool:
        """Whether nothing comes out before the last reading is in."""
        return False

    @property
    def memory_size(self) -> int:
        """How many whole numbers it remembers of each series; none, if rows are independent."""
        return 0

    @property
    def horizon(self) -> int | None:
        """The most readings of a series that it can take, if there is a limit."""
        return None

    @property
    def error_name(self) -> str:
        """What ``errors`` measure."""
        return "mean absolute error"

    if TYPE_CHECKING:  # a field of most, a property of some

        @property
        def unit(self) -> Unit:
            """What is protected."""

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """What its readings are, and how they become whole numbers on a public grid."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee | NoGuarantee:
        """What is true of its output."""

    @property
    @abstractmethod
    def published(self) -> Published:
        """What the literature claims of it, and whether that holds."""

    @property
    @abstractmethod
    def errors(self) -> tuple[float, ...]:
        """The expected error of one released value, for each column, as ``error_name`` says."""

    @abstractmethod
    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The mechanism itself: grid readings to grid outputs.

        Parameters:
            readings: a row for each reading, a column for each value.
            noise: where all randomness comes from.
            state: where the series of the block stand, and what is remembered of each.

        Returns:
            As many rows as there are readings.
        """

    def start(self, key: Key, series: str = "series") -> Stream:
        """Begin a stream of one series.

        Parameters:
            key: secret; the same key on other readings would publish their difference.
            series: the id of the series, which decides its noise along with the key.
        """
        from tempriv.mechanisms.stream import start

        return start(self, key, series)

    # what others ask

    @property
    def most_landmarks(self) -> int | None:
        """How many landmarks of a series there is room for; None where there is no limit."""
        return None

    def landmarks_so_far(self, memory: Integers) -> int:
        """How many landmarks a series had.

        Parameters:
            memory: what is remembered of it, as one row.
        """
        return 0

    def require_room(self, block: Block, memory: Integers) -> None:
        """Refuse readings that the mechanism cannot take, before anything of them is used.

        Parameters:
            block: readings, as they came in.
            memory: what is remembered of each of its series.
        """
        return

    def could_remember(self, memory: Integers, step: int) -> bool:
        """Whether a series can be remembered so; a tampered state must not loosen the guarantee.

        Parameters:
            memory: what a state says is remembered of a series.
            step: how many readings of it there were.
        """
        return True

    @property
    def done(self) -> str:
        """What was done to the values, for a report."""
        return self.texts.done or DONE[self.value_kind]

    @property
    def report_texts(self) -> ReportTexts:
        """What a report says of released values, all of it filled in."""
        return replace(self.texts, done=self.done)

    @property
    def value_kind(self) -> ValueKind:
        """What released values are."""
        return self.domain.kind

    @property
    def averaging_factor(self) -> float | None:
        """How errors shrink in averages, where they are independent from one value to the next.

        The mean size of an average over n values is this times ``errors`` over sqrt(n); None where
        errors of neighboring values go together.
        """
        return None

    @property
    def delta_reason(self) -> str | None:
        """Why there is a delta beside epsilon, as a clause; None where there is none."""
        guarantee = self.guarantee
        loss = guarantee.loss if isinstance(guarantee, Guarantee) else None
        if isinstance(loss, Calibrated):
            return "Gaussian noise of any size needs one; this noise was calibrated to the two"
        if isinstance(loss, Concentrated):
            return (
                "the guarantee is a rho, which is an epsilon at each delta; it is told at "
                f"delta = {SHOWN_DELTA:g}"
            )
        return None

    def rows_together(self) -> Mapping[int, Approximate]:
        """What all rows together tell of two readings that trade places, by their distance.

        Empty where the guarantee is about all rows.
        """
        return {}

    def less_noisy(self) -> Mechanism | None:
        """Another mechanism that keeps the same guarantee with smaller errors, if it knows one."""
        return None

    def reading_epsilon(self) -> float | None:
        """The epsilon that every reading spends, if that is public and the same for all."""
        return None

    def without_noise(self, readings: Floats) -> Floats:
        """What would come out of readings without noise, for the owner's report.

        Parameters:
            readings: a row for each, as they were.
        """
        return readings

    def status_fits(self, rows: ReleasedRows) -> bool:
        """Whether statuses are such as it gives, and fit the values beside them.

        Parameters:
            rows: of a released table.
        """
        return rows.ends_are_empty if self.domain.latency else rows.repeat_the_last

    def value_ranges(self, chance: float) -> list[tuple[float, float]] | None:
        """What all released values of each column lie within; None if that is not known.

        Parameters:
            chance: of a value that lies outside.
        """
        return None

    def check_output(self, rows: ReleasedRows) -> list[Check]:
        """Whatever else can be seen of its output, for ``tempriv verify``.

        Parameters:
            rows: of a released table.
        """
        return []

    def beyond_guarantee(self) -> list[str]:
        """What can be learned that the guarantee does not cover, as sentences for a report."""
        return []

    def not_protected(self, about: Description) -> list[str]:
        """What a release says that it does not protect.

        Parameters:
            about: the description of the release.
        """
        return list(NOT_PROTECTED_OF_COUNTS if about.get("counted") else NOT_PROTECTED)

    @classmethod
    def unit_from(cls, given: Settings) -> Unit | None:
        """What is protected, if its own options say so.

        Parameters:
            given: the options by their names, parsed.
        """
        return None

    @classmethod
    def build(cls, budget: Mapping[str, float], settings: Settings, unit: Unit | None) -> Mechanism:
        """The mechanism at a budget.

        Parameters:
            budget: epsilon, rho or another field that the budget goes to.
            settings: what ``settings_from`` gave.
            unit: what is protected; None leaves it to the mechanism.
        """
        own = {} if unit is None else {"unit": unit}
        return cls(**budget, **settings, **own)

    @classmethod
    def settings_from(cls, given: Settings, columns: int) -> dict[str, Any]:
        """The fields that typed options fill, apart from budget and unit.

        Parameters:
            given: the options by their names, parsed; those that were left out are not there.
            columns: how many value columns there are.
        """
        return {
            option.field: given[option.name]
            for option in options_of(cls)
            if option.field is not None and option.name in given
        }
