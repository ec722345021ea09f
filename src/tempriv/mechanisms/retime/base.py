"""What mechanisms have in common that hide when readings were, or draw curves through them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tempriv.errors import require
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import FINENESS, power_of_two, power_of_two_below
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Pure

MAX_WINDOW_READINGS = 1 << 14
MAX_SCALE_GRID_STEPS = 1 << 40  # of noise
SOURCE = (
    "Local Differentially Private Release of Infinite Streams With Temporal Relevance, WWW 2025 "
    "submission"
)

NOT_PROTECTED_OF_TIMES = (
    "which series there are (their ids, or as many pseudonyms), and how many",
    "how many readings there are in each series, and their order",
    "which readings are missing",
)
STATUS_OF_CURVES = (
    "The column “{}” tells values (“released”, also where a reading was missing) from the first "
    "and the last row of a series, where curves have their ends and nothing comes out (“empty”)."
)


@dataclass(frozen=True, kw_only=True)
class RetimeMechanism(Mechanism):
    """Hides when readings were, or draws curves through a few of them at a time.

    Parameters:
        epsilon: the budget.
    """

    epsilon: float

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        return Guarantee(Pure(self.epsilon), self.unit)


def require_window(window: object) -> None:
    """Refuse what is no number of readings, or too many for memory.

    Parameters:
        window: what was given.
    """
    require(
        isinstance(window, int)
        and not isinstance(window, bool)
        and 1 <= window <= MAX_WINDOW_READINGS,
        f"window={window}: must be a whole number of readings from 1 to {MAX_WINDOW_READINGS:,}",
    )


def require_drawable(scale: Fraction) -> None:
    """Refuse noise too wide to be drawn.

    Parameters:
        scale: how wide it is, in grid steps.
    """
    require(
        scale <= MAX_SCALE_GRID_STEPS,
        f"noise of 2^{int(scale).bit_length()} grid steps: choose a coarser grid, or a greater "
        "epsilon",
    )


def time_grid(given: float | None, tau: float) -> float:
    """The grid of times: as given, or fine enough to vanish beside tau.

    Parameters:
        given: a power of two, or None.
        tau: within how much times are hidden.
    """
    if given is None:
        return power_of_two_below(tau / FINENESS)
    power_of_two(given)
    require(given <= tau, f"grid={given:g}: must be at most tau={tau:g}")
    return float(given)


def widest(tau: float, grid: float) -> int:
    """By how many grid steps two times can differ, rounded down to the grid.

    Parameters:
        tau: how far apart they are, at most.
        grid: of times.
    """
    return math.ceil(Fraction(tau) / Fraction(grid))
