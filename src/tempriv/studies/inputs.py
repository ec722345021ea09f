"""What every study of real data needs: files that must be there, columns of them, stand-ins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange

Floats = npt.NDArray[np.float64]


def listed(names: Sequence[Any]) -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"]), listed(["a"])
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
            f"{folder / part}: no such file; give --data a folder that holds {listed(files)}",
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
        raise DataError(f"{path}: must be a table with columns {listed(names)}") from wrong


def uniform(name: str, *shape: int, seed: int = 0) -> Floats:
    """Numbers from 0 to 1, the same each time for a name and a seed; for what nobody protects.

    >>> float(uniform("walk", 3)[0]) == float(uniform("walk", 3)[0]) != float(uniform("x", 3)[0])
    True
    """
    run = StepRange(Key.from_seed(seed).series("study", name), 0, int(np.prod(shape)))
    drawn = distributions.draw(distributions.UniformChoice(1 << 20), [run], "value")
    return np.asarray((drawn / (1 << 20)).reshape(shape))
