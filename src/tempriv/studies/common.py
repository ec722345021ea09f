"""What all studies share: input files, running a mechanism, result tables, verdicts and figures.

A study is a ``Study``: where its data come from, the tables that it computes from them, one for
each figure or table of the paper, the verdicts on the paper's statements and the pictures, both
made from these tables alone.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from tempriv.data.files import follow_umask, write_durably
from tempriv.errors import DataError, require
from tempriv.mechanisms.domains import EARTH_RADIUS
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange
from tempriv.utility.simulation import perturb_series

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Released = list[Any]
Progress = Callable[[str], None]
Verdict = Literal["holds", "holds, sharper is known", "does not hold", "ours"]

UNIFORM_LEVELS = 1 << 20


# input files


def join_names(names: Sequence[Any]) -> str:
    """Names in a sentence.

    >>> join_names(["a", "b", "c"]), join_names(["a"])
    ('a, b and c', 'a')
    """
    if len(names) == 1:
        return str(names[0])
    return f"{', '.join(map(str, names[:-1]))} and {names[-1]}"


def require_files(folder: Path, files: Sequence[Path]) -> None:
    """Refuse a folder without one of the files, in a sentence that names all of them."""
    for part in files:
        require(
            (folder / part).is_file(),
            f"{folder / part}: no such file; give [[data]] a folder that holds {join_names(files)}",
        )


def read_columns(
    path: Path, names: Sequence[str], dtype: npt.DTypeLike | None = None
) -> list[npt.NDArray[Any]]:
    """Columns of a CSV or Parquet file.

    Parameters:
        path: the file.
        names: which columns, in the order in which they are returned.
        dtype: what to convert them to; as they are by default.
    """
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    try:
        if path.suffix == ".csv":
            table = pyarrow.csv.read_csv(path)
        else:
            table = pyarrow.parquet.read_table(path, columns=list(names))
        return [np.asarray(table[name].to_numpy(), dtype=dtype) for name in names]
    except (pyarrow.ArrowException, KeyError) as wrong:
        raise DataError(f"{path}: must be a table with columns {join_names(names)}") from wrong


def to_meters(degrees: Floats, latitude: float) -> Floats:
    """Differences of longitude and latitude as meters east and north, on a plane.

    Parameters:
        degrees: a row of longitude and latitude for each place, as differences to the center.
        latitude: that of the center, in degrees.
    """
    shrink = np.cos(np.radians(latitude))
    return np.asarray(np.radians(degrees) * EARTH_RADIUS * np.array([shrink, 1.0]))


def uniform(name: str, *shape: int, seed: int = 0) -> Floats:
    """Numbers from 0 to 1, the same each time for a name and a seed; for what nobody protects.

    >>> float(uniform("walk", 3)[0]) == float(uniform("walk", 3)[0]) != float(uniform("x", 3)[0])
    True
    """
    return np.asarray(uniform_integers(name, UNIFORM_LEVELS, *shape, seed=seed) / UNIFORM_LEVELS)


def uniform_integers(
    name: str, choices: int, *shape: int, seed: int = 0, purpose: str = "value"
) -> Integers:
    """Whole numbers from 0 to ``choices`` - 1, the same each time for a name and a seed.

    Parameters:
        name: what they are for.
        choices: how many numbers there are to choose from.
        seed: of the random numbers.
        purpose: of the draw.
        shape: of the array.
    """
    steps = StepRange(Key.from_seed(seed).series("study", name), 0, int(np.prod(shape)))
    drawn = distributions.draw(distributions.UniformChoice(choices), [steps], purpose)
    return np.asarray(drawn.reshape(shape))


# runs


def run_mechanism(mechanism: Any, series: Sequence[Floats], seed: int) -> Released:
    """Release series of any lengths, each as it is once all of it is out.

    Parameters:
        mechanism: what releases them.
        series: an array of rows for each.
        seed: of the noise.
    """
    counts = np.array([len(values) for values in series], dtype=np.int64)
    out = perturb_series(mechanism, np.concatenate(series), counts, seed, "study").astype(float)
    return [out[end - count : end] for end, count in zip(np.cumsum(counts), counts, strict=True)]


def standard_error(values: npt.ArrayLike, alone: float = 0.0) -> float:
    """Of the mean of some values; ``alone`` where there is one value only."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2:
        return alone
    return float(np.std(values, ddof=1) / len(values) ** 0.5)


def mean_and_error(values: npt.ArrayLike, alone: float = 0.0) -> tuple[float, float]:
    """The mean of some values, and its standard error.

    Parameters:
        values: the values.
        alone: the standard error where there is one value only.
    """
    return float(np.mean(np.asarray(values, dtype=np.float64))), standard_error(values, alone)


# tables


@dataclass(frozen=True)
class ResultTable:
    """The numbers behind one figure or table of the paper, a line each.

    Parameters:
        name: of the figure, and of the file.
        title: what the numbers are, in a sentence.
        columns: the names of the columns.
        lines: a tuple of values for each line.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    lines: Sequence[tuple[Any, ...]]

    def where(self, **wanted: Any) -> list[dict[str, Any]]:
        """The lines that have these values, by the names of their columns."""
        named = [dict(zip(self.columns, line, strict=True)) for line in self.lines]
        return [line for line in named if all(line[key] == value for key, value in wanted.items())]

    def column(self, name: str, **wanted: Any) -> list[Any]:
        """The values of a column, in the lines that have these values in others.

        Parameters:
            name: of the column.
            wanted: values of other columns.
        """
        return [line[name] for line in self.where(**wanted)]

    def unique(self, name: str) -> list[Any]:
        """The different values of the column ``name``, in their order."""
        return list(dict.fromkeys(self.column(name)))

    def number(self, name: str, **wanted: Any) -> float:
        """The value of a column in the one line that has these values in others.

        Parameters:
            name: of the column.
            wanted: values of other columns.
        """
        (value,) = self.column(name, **wanted)
        return float(value)

    def as_csv(self) -> bytes:
        """The table as a file, numbers with all their digits."""
        return _csv(self.columns, self.lines)


def _csv(columns: Sequence[str], lines: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for line in lines:
        writer.writerow(
            [repr(float(cell)) if isinstance(cell, (float, np.floating)) else cell for cell in line]
        )
    return text.getvalue().encode()


# verdicts


@dataclass(frozen=True)
class Row:
    """One number: where it stands, what was published, what comes out here, and how.

    Parameters:
        section: of the paper.
        what: what the number is.
        published: None where the source gives no number.
        ours: what comes out here.
        verdict: whether the published number holds.
        how: where ours comes from.
        within: how far ours may be off, as a part of it (the digits that were printed).
        at_most: a bound that ours must keep.
    """

    section: str
    what: str
    published: float | None
    ours: float
    verdict: Verdict
    how: str
    within: float = 1e-9
    at_most: float | None = None

    @property
    def agrees(self) -> bool:
        """Whether ours is the published number, to the digits that were given."""
        if self.published is None:
            return True
        return abs(self.ours - self.published) <= self.within * abs(self.published)

    @property
    def is_confirmed(self) -> bool:
        """Whether the numbers bear the verdict out."""
        if self.at_most is not None and not self.ours <= self.at_most:
            return False
        if self.verdict == "ours":
            return self.agrees
        return self.published is not None and self.agrees == (self.verdict != "does not hold")


@dataclass(frozen=True)
class Section:
    """Makes the rows of one section of the paper; arguments are those of ``Row``."""

    title: str

    def ours(self, what: str, ours: float, how: str, at_most: float | None = None) -> Row:
        """A number that the paper does not give.

        Parameters:
            what: what the number is.
            ours: what comes out here.
            how: where it comes from.
            at_most: a bound that it must keep.
        """
        return Row(self.title, what, None, ours, "ours", how, at_most=at_most)

    def holds(
        self, what: str, published: float, ours: float, how: str, within: float = 1e-9
    ) -> Row:
        """A published number that comes out here too.

        Parameters:
            what: what the number is.
            published: the number of the paper.
            ours: what comes out here.
            how: where ours comes from.
            within: how far ours may be off, as a part of it.
        """
        return Row(self.title, what, published, ours, "holds", how, within)

    def fails(
        self, what: str, published: float, ours: float, how: str, within: float = 1e-9
    ) -> Row:
        """A published number that does not come out here.

        Parameters:
            what: what the number is.
            published: the number of the paper.
            ours: what comes out here.
            how: where ours comes from.
            within: how far ours may be off and still agree, as a part of it.
        """
        return Row(self.title, what, published, ours, "does not hold", how, within)

    def row(
        self,
        what: str,
        published: float | None,
        ours: float,
        verdict: Verdict,
        how: str,
        within: float = 1e-9,
    ) -> Row:
        """A number with a verdict that is chosen by the caller.

        Parameters:
            what: what the number is.
            published: the number of the paper, if there is one.
            ours: what comes out here.
            verdict: whether the published number holds.
            how: where ours comes from.
            within: how far ours may be off, as a part of it.
        """
        return Row(self.title, what, published, ours, verdict, how, within)


def format_number(value: float | None) -> str:
    """Six digits, whole numbers in full.

    >>> [format_number(value) for value in (1037520.0, 14.464231, 1.45e-05, None)]
    ['1,037,520', '14.4642', '1.45e-05', '']
    """
    if value is None:
        return ""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.6g}"


def rows_as_csv(rows: Sequence[Row]) -> bytes:
    """The rows as a file, numbers with all their digits."""
    columns = ("section", "what", "published", "ours", "verdict", "how")
    lines = (
        (
            *(row.section, row.what, None if row.published is None else float(row.published)),
            *(float(row.ours), row.verdict, row.how),
        )
        for row in rows
    )
    return _csv(columns, lines)


def rows_as_markdown(title: str, remarks: Sequence[str], rows: Sequence[Row]) -> bytes:
    """The rows as a page to read, a table for each section, with remarks below.

    Parameters:
        title: of the page.
        remarks: a sentence or two each.
        rows: the verdicts.
    """
    lines = [f"# {title}", ""]
    for section in dict.fromkeys(row.section for row in rows):
        lines += [f"## {section}", "", "| | published | ours | |", "|---|---:|---:|---|"]
        for row in (row for row in rows if row.section == section):
            numbers = f"{format_number(row.published)} | {format_number(row.ours)}"
            lines.append(f"| {row.what} (`{row.how}`) | {numbers} | {row.verdict} |")
        lines.append("")
    lines += ["## Remarks", "", *(f"- {remark}" for remark in remarks), ""]
    return "\n".join(lines).encode()


# studies

Tables = dict[str, ResultTable]
Inputs = TypeVar("Inputs")
Size = TypeVar("Size")


def all_rows(*parts: ModuleType) -> Callable[[Tables], Iterator[Row]]:
    """The verdicts of the ``rows`` of some modules, one after the other."""
    return lambda tables: itertools.chain.from_iterable(part.rows(tables) for part in parts)


@dataclass(frozen=True)
class StudyResult:
    """The verdicts, and the table behind each figure, by name."""

    rows: tuple[Row, ...]
    tables: Tables = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Study(Generic[Inputs, Size]):
    """One paper: what it is computed from, its tables, verdicts and pictures.

    Parameters:
        name: of the study, and of its files.
        title: of its page.
        remarks: what there is to know about the numbers, a sentence or two each.
        files: what the folder with the data must hold.
        holds: the same in words, where the names of the files say too little.
        read: reads them.
        quick: how much is computed by default.
        full: how much is computed for the whole study.
        tables: the tables, one at a time.
        rows: the verdicts on the paper's statements, from the tables.
        pictures: a matplotlib figure by name, from the tables.
    """

    name: str
    title: str
    remarks: tuple[str, ...]
    files: tuple[Path, ...]
    read: Callable[[Path], Inputs]
    quick: Size
    full: Size
    tables: Callable[[Inputs, Size], Iterator[ResultTable]]
    rows: Callable[[Tables], Iterable[Row]]
    pictures: Mapping[str, Callable[[Tables], Any]]
    holds: str = ""

    def run(
        self, inputs: Inputs, size: Size | None = None, progress: Progress = lambda part: None
    ) -> StudyResult:
        """Compute everything.

        Parameters:
            inputs: what ``read`` gives, or made-up data of the same kind.
            size: how much of everything; ``quick`` by default.
            progress: called with the name of each finished table.
        """
        progress("first table")
        tables: Tables = {}
        for table in self.tables(inputs, self.quick if size is None else size):
            tables[table.name] = table
            progress(f"{table.name} done, next")
        return StudyResult(tuple(self.rows(tables)), tables)

    def write(self, folder: Path, result: StudyResult) -> list[Path]:
        """Write the verdicts as table and page, a table for each figure, and the pictures.

        Parameters:
            folder: where to; it is made if it does not exist.
            result: what ``run`` gave.

        Returns:
            The files.
        """
        written = write_rows(folder, self.name, self.title, self.remarks, result.rows)
        for table in result.tables.values():
            written.append(_write_public(folder / f"{table.name}.csv", table.as_csv()))
        for name, draw in self.pictures.items():
            written.append(write_picture(folder / f"{name}.png", draw(result.tables)))
        return written


def write_rows(
    folder: Path, name: str, title: str, remarks: Sequence[str], rows: Sequence[Row]
) -> list[Path]:
    """Write verdicts as CSV and as a page to read.

    Parameters:
        folder: where to; it is made if it does not exist.
        name: of the files.
        title: of the page.
        remarks: a sentence or two each.
        rows: the verdicts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pages = {".csv": rows_as_csv(rows), ".md": rows_as_markdown(title, remarks, rows)}
    return [_write_public(folder / f"{name}{suffix}", data) for suffix, data in pages.items()]


def write_picture(path: Path, figure: Any) -> Path:
    """Write a matplotlib figure in the format that the name of the file says.

    Parameters:
        path: the file.
        figure: a matplotlib figure.
    """
    data = io.BytesIO()
    figure.savefig(data, format=path.suffix[1:], dpi=120)
    return _write_public(path, data.getvalue())


def _write_public(path: Path, data: bytes) -> Path:
    write_durably(path, data)
    follow_umask(path)
    return path
