"""A release: released values with everything needed to judge them, and their files.

Nothing here is computed from private data outside the mechanism. A release says that ids, times,
row counts and the missing pattern are published as they are.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from tempriv.data.arrow import decoded, is_text, to_array
from tempriv.data.csv import in_csv
from tempriv.errors import TemprivError, require
from tempriv.privacy import guarantees, serialization
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Published
from tempriv.releases.description import (
    ledger_sentence,
    read_about,
    signed,
    value_spec,
    value_types,
)
from tempriv.releases.meaning import meaning_in, plain_words
from tempriv.releases.to_file import (
    ReleaseWriter,
    require_new_output,
)

if TYPE_CHECKING:
    from tempriv.releases.signature import SigningKey


@dataclass(frozen=True)
class Release:
    """Values that may be handed out, with the guarantee that goes with them.

    Parameters:
        about: everything but the values as JSON, the same that is written beside a file.
        table: the values as an Arrow table, with ids and times.
        kind: the kind of frame that came in, and that ``frame`` gives.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> from tempriv.releases.run import release
    >>> released = release(np.ones(4), Laplace(epsilon=1.0, bounds=(0, 2)))
    >>> released, str(released.guarantee.loss)
    (Release(4 rows, Laplace), 'epsilon = 1')
    """

    about: dict[str, Any]
    table: pa.Table
    kind: str = "arrow"

    def __repr__(self) -> str:
        return f"Release({self.about['rows']} rows, {self.about['mechanism'][serialization.KIND]})"

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """What is guaranteed, to whom."""
        return cast(Guarantee | NoGuarantee, guarantees.decode(self.about["guarantee"]))

    @property
    def meaning(self) -> dict[str, Any]:
        """What the guarantee means for its unit, a whole series and a whole person.

        >>> from tempriv.mechanisms.value.laplace import Laplace
        >>> from tempriv.releases.run import release
        >>> released = release(np.ones(24), Laplace(epsilon=1.0, bounds=(0, 2)))
        >>> [(each["about"], each["epsilon"]) for each in released.meaning["statements"]]
        [('unit', 1.0), ('series', 24.0), ('person', None)]
        """
        return meaning_in(self.about)

    @property
    def published(self) -> Published:
        """What the mechanism's paper claims, and whether that holds."""
        return cast(Published, guarantees.decode(self.about["published"]))

    @property
    def values(self) -> npt.NDArray[Any]:
        """One column as an array, several as a matrix; missing numbers are NaN."""
        arrays = [to_array(self.table.column(name)) for name in self.about["columns"]["values"]]
        if len({array.dtype.kind for array in arrays}) > 1:
            arrays = [array.astype(object) for array in arrays]  # a number must not become another
        return arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=1)

    @property
    def frame(self) -> Any:
        """The table in the kind of frame that came in (polars, pandas), else as Arrow.

        Categories come in the order of the rows: the order of those that came in could tell that
        of the private rows. In polars they are an Enum, whose categories are its own.
        """
        if self.kind == "polars":
            return _polars(self.table)
        return _pandas(self.table) if self.kind == "pandas" else self.table

    def write(
        self, path: str | Path, force: bool = False, signing_key: SigningKey | None = None
    ) -> Path:
        """Write the values, and what is guaranteed beside them.

        Parameters:
            path: the new file, ending in .csv or .parquet.
            force: replace a file that exists.
            signing_key: signs the description; there is no signature without one.

        Returns:
            The path of the file.

        Raises:
            TemprivError: the file exists, or its name has another ending.
        """
        path = Path(path)
        require_new_output(path, force)
        with ReleaseWriter(path, self.about["release"]) as writing:
            for batch in self.table.to_batches():
                writing.add(batch)
            about = writing.close(self.about)
            writing.publish(signed(about, signing_key))
        return path

    def plot(self, series: str | None = None) -> Any:
        """A matplotlib figure of one series; needs the 'plots' extra.

        Parameters:
            series: its id; the first by default.

        Returns:
            The figure, to be shown or saved.
        """
        from tempriv.report.plots.series import plot_release

        return plot_release(self, series)

    def _repr_html_(self) -> str:
        rows = [
            ("Guarantee", self.meaning["headline"]),
            ("In plain words", plain_words(self.about)),
            ("Protected by", self.about["mechanism"][serialization.KIND]),
            ("Rows", f"{self.about['rows']:,} in {self.about['series']:,} series"),
            *(
                (f"Expected error of {e['column']}", f"{e['error']:.4g} ({e['measure']})")
                for e in self.about["expected_error"]
            ),
            *(("Afterwards", step["sentence"]) for step in self.about.get("after", [])),
            ("Not protected", "; ".join(self.about["not_protected"])),
            ("Ledger", ledger_sentence(self.about)),
        ]
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(k)}</th>"
            f"<td style='text-align:left'>{html.escape(str(v))}</td></tr>"
            for k, v in rows
        )
        return f"<table>{cells}</table>"


def _polars(table: pa.Table) -> Any:
    """As a polars frame; what it calls Categorical refers to all categories of the process."""
    import polars

    words, plain_table = {}, table
    for i, name in enumerate(table.column_names):
        if pa.types.is_dictionary(table.column(i).type):
            column = decoded(table.column(i))
            words[name] = pa.compute.unique(column).drop_null()
            plain_table = plain_table.set_column(i, name, column)
    frame: Any = polars.from_arrow(plain_table)
    kinds = {
        name: polars.Enum(polars.Series(known.to_pylist(), dtype=polars.String))
        for name, known in words.items()
        if is_text(known.type)
    }
    return frame.cast(kinds) if kinds else frame


def _pandas(table: pa.Table) -> Any:
    """As a pandas frame in which whole numbers and truth values stay such beside missing ones."""
    import pandas

    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        whole = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
        if whole and column.null_count:
            kind = "boolean" if pa.types.is_boolean(column.type) else _nullable(column.type)
            frame[name] = pandas.array(column.to_pylist(), dtype=kind)
    return frame


def _nullable(kind: pa.DataType) -> str:
    """What pandas calls whole numbers that may be missing.

    >>> _nullable(pa.int64()), _nullable(pa.uint8())
    ('Int64', 'UInt8')
    """
    name = str(kind)
    return f"UI{name[2:]}" if name.startswith("ui") else f"I{name[1:]}"


def read(path: str | Path) -> Release:
    """Read a release from its file and the description beside it.

    Parameters:
        path: the released file, .csv or .parquet.

    Returns:
        The release, as it was written.

    Raises:
        TemprivError: there is no such file, or no sound description beside it.

    >>> import tempfile
    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> from tempriv.releases.run import release
    >>> released = release(np.ones(4), Laplace(epsilon=1.0, bounds=(0, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read(released.write(Path(folder) / "out.csv"))
    Release(4 rows, Laplace)
    """
    path = Path(path)
    about = read_about(path)
    return Release(about, read_table(path, about))


def read_table(path: Path, about: dict[str, Any]) -> pa.Table:
    """The values of the released file at ``path``, with the types that ``about`` names."""
    columns = about["columns"]
    kinds = value_types(about)
    try:
        if path.suffix.lower() == ".parquet":
            table = pa.parquet.read_table(path).replace_schema_metadata(None)
        else:
            # a column without any value would have no type
            moved = "types" in columns and "after" not in about
            texts = moved or "categories" in value_spec(about)
            value = pa.string() if texts else pa.float64()
            types = dict.fromkeys(columns["values"], value)
            types |= {name: in_csv(kind) for name, kind in kinds.items()}
            words = [columns["series"]] if columns["ids"] == "text" else []
            words.append(columns.get("status"))
            types |= {name: pa.string() for name in words if name is not None}
            how = pa.csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
            parse = pa.csv.ParseOptions(newlines_in_values=moved)
            table = pa.csv.read_csv(path, convert_options=how, parse_options=parse)
        for i, name in enumerate(table.column_names):
            # what a file does not know comes back as something else
            if name in kinds and kinds[name] != table.column(i).type:
                table = table.set_column(i, name, table.column(i).cast(kinds[name]))
    except pa.ArrowException:
        raise TemprivError(
            f"{path}: cannot be read as the table that its description tells of"
        ) from None
    for name in [*columns["values"], columns["series"] or columns["values"][0]]:
        require(name in table.column_names, f"{path}: has no column {name!r}", TemprivError)
    return table
