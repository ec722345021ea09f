"""Many series through one mechanism, as the studies run it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.data.series import Block
from tempriv.mechanisms.perturb import perturb_block
from tempriv.privacy import serialization
from tempriv.sampling.keys import EPOCH, Key
from tempriv.sampling.keystream import StepRange

Floats = npt.NDArray[np.float64]
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
