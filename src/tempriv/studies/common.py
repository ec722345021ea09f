"""What all studies share: input files, running a mechanism, result tables and figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tempriv.data.files import follow_umask, write_durably
from tempriv.data.series import Block
from tempriv.errors import DataError, require
from tempriv.mechanisms.perturb import perturb_block
from tempriv.privacy import serialization
from tempriv.report.plots.series import GRAY, INK, RULE
from tempriv.sampling import distributions
from tempriv.sampling.keys import EPOCH, Key
from tempriv.sampling.keystream import StepRange

Floats = npt.NDArray[np.float64]


def join_names(names: Sequence[Any]) -> str:
    """Names in a sentence.

    >>> join_names(["a", "b", "c"]), join_names(["a"])
    ('a, b and c', 'a')
    """
    if len(names) == 1:
        return str(names[0])
    return f"{', '.join(map(str, names[:-1]))} and {names[-1]}"


def require_files(folder: Path, files: Sequence[Path]) -> None:
    """One sentence that says which is missing, and what else the folder must hold."""
    for part in files:
        require(
            (folder / part).is_file(),
            f"{folder / part}: no such file; give --data a folder that holds {join_names(files)}",
        )


def read_columns(path: Path, names: Sequence[str]) -> list[npt.NDArray[Any]]:
    """Columns of a CSV or Parquet file, in the order of the names."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    try:
        if path.suffix == ".csv":
            table = pyarrow.csv.read_csv(path)
        else:
            table = pyarrow.parquet.read_table(path, columns=list(names))
        return [table[name].to_numpy() for name in names]
    except (pyarrow.ArrowException, KeyError) as wrong:
        raise DataError(f"{path}: must be a table with columns {join_names(names)}") from wrong


def uniform(name: str, *shape: int, seed: int = 0) -> Floats:
    """Numbers from 0 to 1, the same each time for a name and a seed; for what nobody protects.

    >>> float(uniform("walk", 3)[0]) == float(uniform("walk", 3)[0]) != float(uniform("x", 3)[0])
    True
    """
    run = StepRange(Key.from_seed(seed).series("study", name), 0, int(np.prod(shape)))
    drawn = distributions.draw(distributions.UniformChoice(1 << 20), [run], "value")
    return np.asarray((drawn / (1 << 20)).reshape(shape))


def subplots(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    from tempriv.report.plots.series import figure_class

    figure = figure_class()(figsize=size, layout="constrained", facecolor="white")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color=RULE, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=9, color=GRAY, labelcolor=INK)
    return figure, axes


def label_axes(axis: Any, title: str, across: str, up: str) -> None:
    axis.set_title(title, loc="left", fontsize=10.5, color=INK)
    axis.set_xlabel(across, fontsize=10, color=INK)
    axis.set_ylabel(up, fontsize=10, color=INK)


def shared_legend(figure: Any, axes: Iterable[Any], columns: int) -> None:
    """One for all panels, above them."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        found.values(),
        found.keys(),
        loc="outside upper center",
        ncols=columns,
        frameon=False,
        fontsize=10,
    )


Released = list[Any]


def run_mechanism(mechanism: Any, series: Sequence[Floats], seed: int) -> Released:
    """Series of any lengths through a mechanism, each as it is once all of it is out."""
    counts = np.array([len(one) for one in series], dtype=np.int64)
    rows = np.concatenate(series)
    rows = rows.reshape(len(rows), -1)
    block = Block(
        values=rows,
        missing=np.zeros(rows.shape, dtype=np.bool_),
        ids=tuple(map(str, range(len(series)))),
        counts=counts,
        starts=np.zeros(len(series), dtype=np.int64),
    )
    # one chain of keys serves all series, each at steps of its own
    late = int(mechanism.domain.latency or 0)
    chain, runs, start = Key.from_seed(seed).series(serialization.digest(mechanism), "study"), [], 0
    for count in counts.tolist():
        chain = chain.at_epoch(start // EPOCH)
        runs.append(StepRange(chain, start, count))
        start += count + late
    out = perturb_block(mechanism, block, runs, ending=True)
    whole = np.ma.array(out.values.astype(np.float64), mask=out.missing)
    return [whole[end - count : end] for end, count in zip(np.cumsum(counts), counts, strict=True)]


Verdict = Literal["holds", "holds, sharper is known", "does not hold", "ours"]


@dataclass(frozen=True)
class Row:
    """One number: where it stands, what was published, what comes out here, and how.

    ``published`` is None where the source gives no number; ``within`` is how far ours may be off,
    as a part of it (the digits that were printed). ``at_most`` is a bound that ours must keep.
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
    def as_said(self) -> bool:
        """Whether the numbers bear the verdict out."""
        if self.at_most is not None and not self.ours <= self.at_most:
            return False
        if self.verdict == "ours":
            return self.agrees
        return self.published is not None and self.agrees == (self.verdict != "does not hold")


@dataclass(frozen=True)
class ResultTable:
    """The numbers behind one figure or table of the paper, a line each."""

    name: str
    title: str
    columns: tuple[str, ...]
    lines: tuple[tuple[Any, ...], ...]

    def where(self, **wanted: Any) -> list[dict[str, Any]]:
        """The lines that have these values, by the names of their columns."""
        named = [dict(zip(self.columns, line, strict=True)) for line in self.lines]
        return [line for line in named if all(line[key] == value for key, value in wanted.items())]

    def of(self, column: str, **wanted: Any) -> list[Any]:
        return [line[column] for line in self.where(**wanted)]

    def as_csv(self) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        for line in self.lines:
            writer.writerow(
                [repr(float(one)) if isinstance(one, (float, np.floating)) else one for one in line]
            )
        return text.getvalue().encode()


@dataclass(frozen=True)
class Study:
    """The statements, and the table behind each figure, by name."""

    rows: tuple[Row, ...]
    tables: dict[str, ResultTable]


def collect_tables(
    made: Iterable[ResultTable], first: str, progress: Callable[[str], None]
) -> dict[str, ResultTable]:
    """Tables by name as they are made, with a word after each; ``first`` is the one before."""
    progress(first)
    found: dict[str, ResultTable] = {}
    for table in made:
        found[table.name] = table
        progress(f"{table.name} done, next")
    return found


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


COLUMNS = ("section", "what", "published", "ours", "verdict", "how")


def as_csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        published = "" if row.published is None else repr(float(row.published))
        ours = repr(float(row.ours))
        writer.writerow([row.section, row.what, published, ours, row.verdict, row.how])
    return text.getvalue().encode()


def as_markdown(title: str, remarks: Sequence[str], rows: Sequence[Row]) -> bytes:
    lines = [f"# {title}", ""]
    for section in dict.fromkeys(row.section for row in rows):
        lines += [f"## {section}", "", "| | published | ours | |", "|---|---:|---:|---|"]
        for row in (row for row in rows if row.section == section):
            numbers = f"{format_number(row.published)} | {format_number(row.ours)}"
            lines.append(f"| {row.what} (`{row.how}`) | {numbers} | {row.verdict} |")
        lines.append("")
    lines += ["## Remarks", "", *(f"- {remark}" for remark in remarks), ""]
    return "\n".join(lines).encode()


def write(
    folder: Path, name: str, title: str, remarks: Sequence[str], rows: Sequence[Row]
) -> list[Path]:
    """The table as CSV and as a page to read."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {".csv": as_csv(rows), ".md": as_markdown(title, remarks, rows)}
    return [_write_public(folder / f"{name}{suffix}", data) for suffix, data in pages.items()]


def write_study(
    folder: Path,
    name: str,
    title: str,
    remarks: Sequence[str],
    made: Study,
    pictures: Mapping[str, Callable[[dict[str, ResultTable]], Any]],
) -> list[Path]:
    """The statements as table and page, a table for each figure, and the pictures of them."""
    written = write(folder, name, title, remarks, made.rows)
    for table in made.tables.values():
        written.append(_write_public(folder / f"{table.name}.csv", table.as_csv()))
    for drawn, draw in pictures.items():
        written.append(write_picture(folder / f"{drawn}.png", draw(made.tables)))
    return written


def write_picture(path: Path, figure: Any) -> Path:
    data = io.BytesIO()
    figure.savefig(data, format=path.suffix[1:], dpi=120)
    return _write_public(path, data.getvalue())


def _write_public(path: Path, data: bytes) -> Path:
    write_durably(path, data)
    follow_umask(path)
    return path
