"""Readings with a mark: the last column says which rows are landmarks, and never comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tempriv.data.series import Block, Bounds, Categories, Flags
from tempriv.errors import DataError, require
from tempriv.mechanisms.domains import (
    Categorical,
    Domain,
    Floats,
    Integers,
    Locations,
    Numbers,
    ValueKind,
)

MARKS = ("0", "1")


@dataclass(frozen=True)
class WithLandmarks(Domain):
    """Columns of readings, and one with 1 at landmarks and 0 elsewhere.

    Parameters:
        readings: what the other columns are.
    """

    readings: Numbers | Categorical | Locations

    marked = True

    @property
    def kind(self) -> ValueKind:
        return self.readings.kind

    @property
    def released(self) -> Domain:
        return self.readings

    @property
    def columns(self) -> int:
        return self.readings.columns + 1

    @property
    def bounds(self) -> Bounds | None:
        return None if self.readings.bounds is None else (*self.readings.bounds, (0.0, 1.0))

    @property
    def categories(self) -> Categories | None:
        known = self.readings.categories
        return None if known is None else (*known, MARKS)

    def to_grid(self, values: Floats) -> Integers:
        """The ``values`` on the grid of readings, and marks as 0 and 1."""
        marks = (values[:, -1:] != 0).astype(np.int64)  # in doubt a landmark
        return np.concatenate([self.readings.to_grid(values[:, :-1]), marks], axis=1)

    def from_grid(self, outputs: Integers) -> Floats:
        """Of the columns that come out.

        Parameters:
            outputs: what a mechanism made of readings.
        """
        return self.readings.from_grid(outputs)

    def missing_after(self, missing: Flags) -> Flags:
        """Which outputs are ``missing``: marks do not come out."""
        return self.readings.missing_after(missing[:, :-1])

    def require_marks(self, block: Block) -> None:
        """Refuse readings without a mark; a row without any reading needs none.

        Parameters:
            block: readings, with their marks as the last column.
        """
        unmarked = block.missing[:, -1] & ~block.missing[:, :-1].all(axis=1)
        require(
            not unmarked.any(),
            f"the mark of {np.count_nonzero(unmarked)} readings is missing: the last column must "
            "be 1 at landmarks and 0 elsewhere",
            DataError,
        )


def without_landmarks(form: Domain) -> Domain:
    """The domain of what comes out, of any ``form``: marks stay in."""
    return form.readings if isinstance(form, WithLandmarks) else form
