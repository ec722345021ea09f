"""The data of the study on shapes: Symbols and Trace made many, and trigonometric waves.

The data sets are not part of this package. ``data`` names a folder with ``ucr/Symbols.csv`` and
``ucr/Trace.csv`` (columns split, label, t0, t1 and so on; a row for each series, z-scored), from
the UCR archive (Dau and others 2019).

The paper (Mao, Ye, Hu, Wang and Huang 2024, table II) makes 40,000 series of each: of Symbols by a
neural network, of Trace by the generator of Roverso 2000. Neither is at hand, so the generator here
is our own. Unlike theirs it makes the test series of other originals than the training series.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.local.shapes.sax import Sax
from tempriv.local.shapes.sequences import Sequences
from tempriv.sampling.keys import Key, simulation
from tempriv.studies.common import require_files

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SYMBOLS = Path("ucr") / "Symbols.csv"
TRACE = Path("ucr") / "Trace.csv"
FILES = (SYMBOLS, TRACE)

CLASSES_OF_THE_CODE = (1, 2, 4)
"""Of Trace. The authors' program drops class 3, and their results are of these; the paper says "the
same as" tslearn, whose examples have 1, 2 and 3."""

PEOPLE, TEST_SERIES = 39_000, 1_000  # 40,000 together, of which the paper's authors test with 1,000
TEST_SHARE = 0.2  # of the originals of each class: test series are made of these only
CHUNK_SERIES = 4096  # series made at a time, from random numbers of their own

SYMBOLS_SAX = Sax(symbols=6, segment=25, longest=15)
TRACE_SAX = Sax(symbols=4, segment=10, longest=10)

WAVE_LENGTHS = (200, 400, 600, 800, 1000)
WAVE_SERIES = 20_000

Part = Literal["train", "test"]


@dataclass(frozen=True)
class Labelled:
    """Series, a row each, and what each is an example of."""

    series: Floats
    labels: Integers

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, which: npt.NDArray[np.bool_] | Integers) -> Labelled:
        """The series and labels ``which`` are chosen."""
        return Labelled(self.series[which], self.labels[which])


@dataclass(frozen=True)
class Task:
    """What a mechanism learns from and what it is tested on."""

    name: str
    train: Labelled
    test: Labelled
    sax: Sax
    made_up: bool = False

    @property
    def classes(self) -> tuple[int, ...]:
        return tuple(np.unique(self.train.labels).tolist())


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """How much a made series may differ from its original; all drawn evenly up to these.

    In turn: it starts late by up to ``delay`` of its length (at its first value until then); its
    clock runs up to ``stretch`` faster or slower, and up to ``bend`` unevenly, in two slow waves
    (past its end it stays at its last value); all values are multiplied by up to 1 +- ``scale``;
    and three slow waves of up to ``ripple`` standard deviations together are added. One in a
    hundred series is its original.
    """

    delay: float
    stretch: float
    bend: float
    scale: float
    ripple: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require(
                isinstance(value, (int, float)) and 0 <= value < 1,
                f"{name}={value}: must be a number from 0 to below 1",
            )
        require(
            self.stretch + self.bend < 1,
            f"stretch={self.stretch} and bend={self.bend}: must be below 1 together, or time would "
            "run backwards",
        )


TRACE_STRENGTH = Augmentation(delay=0.2, stretch=0.15, bend=0.2, scale=0.3, ripple=0.07)
SYMBOLS_STRENGTH = Augmentation(delay=0.02, stretch=0.04, bend=0.07, scale=0.3, ripple=0.07)
ORIGINAL_SHARE = 0.01
BENDS, RIPPLES = 2, 3


# originals


def read(folder: Path) -> tuple[Labelled, Labelled]:
    """Symbols and Trace from their folder, or one sentence that says what is missing."""
    require_files(folder, FILES)
    return read_series(folder / SYMBOLS), read_series(folder / TRACE)


def read_series(path: Path) -> Labelled:
    """All series of a file; UCR's own split into train and test is not used.

    Parameters:
        path: the file.
    """
    import pyarrow
    import pyarrow.csv

    try:
        table = pyarrow.csv.read_csv(path)
        labels = table["label"].to_numpy().astype(np.int64)
        names = [name for name in table.column_names if name not in ("split", "label")]
        columns = [table[name].to_numpy().astype(np.float64) for name in names]
    except (pyarrow.ArrowException, KeyError, ValueError) as wrong:
        raise DataError(
            f"{path}: must be a table with columns split, label, t0, t1 and so on, all numbers"
        ) from wrong
    require(
        len(names) >= 2 and names == [f"t{i}" for i in range(len(names))],
        f"{path}: must have columns t0, t1 and so on, in this order",
        DataError,
    )
    series = np.stack(columns, axis=1)
    require(bool(np.isfinite(series).all()), f"{path}: must not have missing readings", DataError)
    return Labelled(series, labels)


def of_classes(originals: Labelled, classes: tuple[int, ...]) -> Labelled:
    """Only series of these classes.

    Parameters:
        originals: the series that others are made of.
        classes: labels of those to take.
    """
    require(
        set(classes) <= set(originals.labels.tolist()),
        f"classes={classes}: must be labels of the data",
    )
    return originals.take(np.isin(originals.labels, classes))


def parted(
    originals: Labelled, key: Key, held_out: float = TEST_SHARE
) -> tuple[Labelled, Labelled]:
    """Originals to train and to test with: of each class the same share, no original in both.

    Parameters:
        originals: the series that others are made of.
        key: of the random numbers.
        held_out: the share of each class to test with.
    """
    require(0 < held_out < 1, f"held_out={held_out}: must be between 0 and 1")
    generator = simulation(key, "held out")
    tested = np.zeros(len(originals), dtype=np.bool_)
    for label in np.unique(originals.labels):
        members = np.flatnonzero(originals.labels == label)
        require(
            len(members) >= 2, f"class {label}: must have at least two series, to part", DataError
        )
        count = min(max(1, round(held_out * len(members))), len(members) - 1)
        tested[generator.permutation(members)[:count]] = True
    return originals.take(~tested), originals.take(tested)


# many of few


def augmented(
    originals: Labelled, count: int, key: Key, strength: Augmentation, part: str
) -> Iterator[Labelled]:
    """So many series made of the originals, chunk by chunk; the same for a key and a part.

    Parameters:
        originals: the series that others are made of.
        count: how many series.
        key: of the random numbers.
        strength: how much a made series may differ from its original.
        part: what they are for.
    """
    require(count >= 1, f"count={count}: must be >= 1")
    for number in range(-(-count // CHUNK_SERIES)):
        generator = simulation(key, f"made series {part} {number}")
        size = min(CHUNK_SERIES, count - number * CHUNK_SERIES)
        # all of a chunk is drawn, so that a smaller count is the beginning of a larger one
        which = generator.integers(len(originals), size=CHUNK_SERIES)
        drawn = generator.random((CHUNK_SERIES, 4 + 2 * BENDS + 2 * RIPPLES))
        chosen = originals.take(which[:size])
        yield Labelled(varied(chosen.series, strength, drawn[:size]), chosen.labels)


def varied(series: Floats, strength: Augmentation, drawn: Floats) -> Floats:
    """Each series varied by its own numbers between 0 and 1.

    Parameters:
        series: a row each.
        strength: how much a made series may differ from its original.
        drawn: numbers between 0 and 1, a row for each series.
    """
    length = series.shape[1]
    clock = np.arange(length) / (length - 1)
    kept, delay, stretch, scale = drawn[:, :4].T
    even = 2 * drawn[:, 4:] - 1
    bends, ripples = even[:, : 2 * BENDS], even[:, 2 * BENDS :]
    changed = np.where(kept < ORIGINAL_SHARE, 0.0, 1.0)[:, None]

    speed = 1 + strength.stretch * (2 * stretch - 1)
    at = (clock - strength.delay * delay[:, None]) * speed[:, None]
    at += strength.bend * _waves(clock, bends, slope=True)
    at = clock + changed * (at - clock)
    changed_series = _at_times(series, np.clip(at, 0.0, 1.0) * (length - 1))
    changed_series *= 1 + changed * strength.scale * (2 * scale - 1)[:, None]
    changed_series += changed * strength.ripple * _waves(clock, ripples, slope=False)
    return changed_series


def _waves(clock: Floats, weights: Floats, slope: bool) -> Floats:
    """Waves of 1, 2, ... periods, mixed by each row's weights: up to 1; or with a slope up to 1."""
    each = weights.shape[1] // 2
    total = np.zeros((len(weights), len(clock)))
    for k in range(each):
        turn = 2 * np.pi * (k + 1) * clock
        wave = np.outer(weights[:, 2 * k], np.sin(turn))
        wave += np.outer(weights[:, 2 * k + 1], np.cos(turn) - (1 if slope else 0))
        total += wave / (2 * np.pi * (k + 1) if slope else 1.0)
    # a sine and a cosine of height 1 together reach the root of 2
    return np.asarray(total / (each * np.sqrt(2)))


def _at_times(series: Floats, at: Floats) -> Floats:
    """Values between readings, by lines."""
    left = np.minimum(at.astype(np.int64), series.shape[1] - 2)
    part = at - left
    low = np.take_along_axis(series, left, axis=1)
    high = np.take_along_axis(series, left + 1, axis=1)
    return np.asarray(low + part * (high - low))


def collected(chunks: Iterator[Labelled]) -> Labelled:
    """All chunks together."""
    parts = list(chunks)
    return Labelled(
        np.concatenate([part.series for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )


def made(
    name: str,
    originals: Labelled,
    sax: Sax,
    strength: Augmentation,
    people: int,
    tested: int,
    seed: int,
    made_up: bool = False,
) -> Task:
    """So many training series, and so many test series made of other originals.

    Parameters:
        name: of the data set.
        originals: the series that others are made of.
        sax: how series become sequences.
        strength: how much a made series may differ from its original.
        people: how many training series.
        tested: how many test series.
        seed: of the random numbers.
        made_up: whether the originals are not real.
    """
    key = Key.from_seed(seed)
    learned, asked = parted(originals, key)
    train = collected(augmented(learned, people, key, strength, "train"))
    test = collected(augmented(asked, tested, key, strength, "test"))
    return Task(name, train, test, sax, made_up)


def trace(
    originals: Labelled,
    people: int = PEOPLE,
    tested: int = TEST_SERIES,
    seed: int = 0,
    classes: tuple[int, ...] = CLASSES_OF_THE_CODE,
    strength: Augmentation = TRACE_STRENGTH,
) -> Task:
    """Three classes of Trace, for classification (section V-E).

    Parameters:
        originals: the series that others are made of.
        people: how many training series.
        tested: how many test series.
        seed: of the random numbers.
        classes: labels of those to take.
        strength: how much a made series may differ from its original.
    """
    chosen = of_classes(originals, classes)
    return made("Trace", chosen, TRACE_SAX, strength, people, tested, seed)


def symbols(
    originals: Labelled,
    people: int = PEOPLE,
    tested: int = TEST_SERIES,
    seed: int = 0,
    strength: Augmentation = SYMBOLS_STRENGTH,
) -> Task:
    """The six classes of Symbols, for clustering (section V-D).

    Parameters:
        originals: the series that others are made of.
        people: how many training series.
        tested: how many test series.
        seed: of the random numbers.
        strength: how much a made series may differ from its original.
    """
    return made("Symbols", originals, SYMBOLS_SAX, strength, people, tested, seed)


def read_tasks(folder: Path) -> tuple[Task, Task]:
    """Symbols and Trace, made many, from a folder that holds them."""
    originals = read(folder)
    return symbols(originals[0]), trace(originals[1])


def waves(length: int, people: int = WAVE_SERIES, shown: int | None = None) -> Labelled:
    """Sines (label 0) and cosines (1) by turns over one period, z-scored (section V-I).

    Of a class all are the same. ``shown`` keeps the first so many points only (figure 17).

    Parameters:
        length: points of a period.
        people: how many waves.
        shown: how many points are kept.

    >>> some = waves(200, people=4)
    >>> some.labels.tolist(), some.series.shape, TRACE_SAX.sequences(some.series).texts()[:2]
    ([0, 1, 0, 1], (4, 200), ['cdcbab', 'dcbabcd'])
    """
    shown = length if shown is None else shown
    require(2 <= shown <= length, f"shown={shown}: must be from 2 to length={length}")
    turn = np.linspace(0, 2 * np.pi, length)[:shown]
    both = np.stack([np.sin(turn), np.cos(turn)])
    both = (both - both.mean(axis=1, keepdims=True)) / both.std(axis=1, keepdims=True)
    labels = np.arange(people) % 2
    return Labelled(both[labels], labels)


# what the shapes of a task look like


@dataclass(frozen=True)
class Shapes:
    """How the classes of a task look after SAX."""

    different: int  # sequences
    modes: dict[int, str]
    shares: dict[int, float]  # of a class that is its mode
    first_symbol: float  # the share of test series that the first symbol alone tells


def shapes_of(task: Task) -> Shapes:
    """The most frequent sequence of each class of a ``task``, and what first symbols tell."""
    train, test = task.sax.sequences(task.train.series), task.sax.sequences(task.test.series)
    modes, shares = {}, {}
    for label in task.classes:
        sequences, counts = train.take(task.train.labels == label).distinct()
        best = int(np.argmax(counts))
        modes[label], shares[label] = sequences.texts()[best], float(counts[best] / counts.sum())
    return Shapes(
        len(train.distinct()[0]),
        modes,
        shares,
        first_symbol_accuracy(train, task.train.labels, test, task.test.labels),
    )


def first_symbol_accuracy(
    train: Sequences, labels: Integers, test: Sequences, truth: Integers
) -> float:
    """How often the most frequent class of a series' first symbol is right; without any noise.

    Parameters:
        train: sequences to learn from.
        labels: of these.
        test: sequences to tell.
        truth: their labels.
    """
    first, asked = train.matrix()[:, 0], test.matrix()[:, 0]
    names = np.unique(labels)
    counts = np.array(
        [[np.sum(labels[first == s] == name) for name in names] for s in range(train.symbols)]
    )
    return float(np.mean(names[np.argmax(counts, axis=1)][asked] == truth))
