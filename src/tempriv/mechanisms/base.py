"""What a mechanism is, and the one way that private readings pass through one.

A mechanism is a frozen spec that owns its guarantee. A stream carries its readings: the same code
takes one reading, a block, or a file of ten thousand series, and gives the same bits.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from tempriv.data.series import Flags
from tempriv.mechanisms.checks import Check, ReleasedRows
from tempriv.mechanisms.domains import Domain, Floats, Integers, ValueKind
from tempriv.mechanisms.options import Option, options_of
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


class Mechanism(ABC):
    """A frozen, keyword-only dataclass of simple types, with the guarantee that it keeps.

    A subclass says what readings are (``domain``), what it does to them (``perturb``), what that
    guarantees, and how to offer and explain it. Everything else has a default here.
    """

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

    def check_output(self, rows: ReleasedRows) -> list[Check]:
        """Whatever else can be seen of its output, for ``tempriv verify``.

        Parameters:
            rows: of a released table.
        """
        return []

    def beyond_guarantee(self) -> list[str]:
        """What can be learned that the guarantee does not cover, as sentences for a report."""
        return []

    def not_protected(self, about: Mapping[str, Any]) -> list[str]:
        """What a release says that it does not protect.

        Parameters:
            about: the description of the release.
        """
        return list(NOT_PROTECTED_OF_COUNTS if about.get("counted") else NOT_PROTECTED)

    @classmethod
    def unit_from(cls, given: Mapping[str, Any]) -> Unit | None:
        """What is protected, if its own options say so.

        Parameters:
            given: the options by their names, parsed.
        """
        return None

    @classmethod
    def build(
        cls, budget: Mapping[str, float], settings: Mapping[str, Any], unit: Unit | None
    ) -> Mechanism:
        """The mechanism at a budget.

        Parameters:
            budget: epsilon, rho or another field that the budget goes to.
            settings: what ``settings_from`` gave.
            unit: what is protected; None leaves it to the mechanism.
        """
        own = {} if unit is None else {"unit": unit}
        return cls(**budget, **settings, **own)

    @classmethod
    def settings_from(cls, given: Mapping[str, Any], columns: int) -> dict[str, Any]:
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
