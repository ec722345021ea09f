"""What a study finds: rows of published numbers with ours beside them, and tables of figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tempriv.data.files import follow_umask, write_durably

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


def gathered(
    made: Iterable[ResultTable], first: str, progress: Callable[[str], None]
) -> dict[str, ResultTable]:
    """Tables by name as they are made, with a word after each; ``first`` is the one before."""
    progress(first)
    found: dict[str, ResultTable] = {}
    for table in made:
        found[table.name] = table
        progress(f"{table.name} done, next")
    return found


def number(value: float | None) -> str:
    """Six digits, whole numbers in full.

    >>> number(1037520.0), number(14.464231), number(1.45e-05), number(None)
    ('1,037,520', '14.4642', '1.45e-05', '')
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
            numbers = f"{number(row.published)} | {number(row.ours)}"
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
    return [_public(folder / f"{name}{suffix}", data) for suffix, data in pages.items()]


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
        written.append(_public(folder / f"{table.name}.csv", table.as_csv()))
    for drawn, draw in pictures.items():
        written.append(write_picture(folder / f"{drawn}.png", draw(made.tables)))
    return written


def write_picture(path: Path, figure: Any) -> Path:
    data = io.BytesIO()
    figure.savefig(data, format=path.suffix[1:], dpi=120)
    return _public(path, data.getvalue())


def _public(path: Path, data: bytes) -> Path:
    write_durably(path, data)
    follow_umask(path)
    return path
