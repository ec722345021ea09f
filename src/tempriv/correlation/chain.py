"""Markov chains: how likely one state follows another, and how likely it was before."""

from __future__ import annotations

import csv
import functools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.data.files import follow_umask, write_durably
from tempriv.errors import DataError, require

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Rows = tuple[tuple[float, ...], ...]

MAX_STATES = 300
SUM_TOLERANCE = 1e-9
STATIONARY_TOLERANCE = 1e-10
"""A distribution this near to a stationary one, relatively, counts as that."""
MIN_PROBABILITY = 1e-250
"""Smaller chances are not computed with: they may have lost digits, or all of them."""
NO_STATE = -1


def _rows(name: str, rows: Any, states: int | None, private: bool) -> Rows:
    """A checked row-stochastic matrix; of a private one no entry is told."""
    try:
        matrix = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    square = matrix.ndim == 2 and 0 < len(matrix) == matrix.shape[1]
    require(square, f"{name}: must be a square matrix of numbers; give a row for each state")
    require(
        len(matrix) <= MAX_STATES,
        f"{name}: {len(matrix)} states; must be at most {MAX_STATES}; join some of them",
    )
    require(
        states is None or len(matrix) == states,
        f"{name}: {len(matrix)} rows; must be {states}, one for each state",
    )
    for row, entries in enumerate(matrix):
        _check_distribution(f"{name}: row {row}", entries, private)
    return tuple(tuple(float(entry) for entry in row) for row in matrix)


def _check_distribution(name: str, entries: Floats, private: bool) -> None:
    fine = bool(np.all(np.isfinite(entries)) and np.all(entries >= 0))
    require(fine, f"{name} has a probability that is negative or no number; give 0 to 1")
    total = math.fsum(entries)
    shown = "does not sum to 1" if private else f"sums to {total:.9g}, not to 1"
    require(abs(total - 1) <= SUM_TOLERANCE, f"{name} {shown}; divide it by its sum")


def _reachable(follows: Flags) -> Flags:
    """Which state can be followed, in any number of steps, by which; itself always."""
    reach: Flags = follows | np.eye(len(follows), dtype=np.bool_)
    while True:
        further: Flags = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
        if np.array_equal(further, reach):
            return reach
        reach = further


def followers(reached: Flags, matrix: Floats) -> Flags:
    """The states that can follow those that are ``reached`` by ``matrix``, however unlikely."""
    counted = reached.astype(np.float32) @ (matrix > 0).astype(np.float32)
    return np.asarray(counted > 0)


def _stationary(matrix: Floats) -> Floats:
    """The stationary distribution of a chain in one part; no subtraction, so no digits are lost.

    Grassmann, Taksar and Heyman 1985: the states are taken out one by one, the last first.
    """
    left = matrix.copy()
    for k in range(len(left) - 1, 0, -1):
        left[:k, k] /= left[k, :k].sum()
        left[:k, :k] += np.outer(left[:k, k], left[k, :k])
    shares = np.ones(len(left))
    for k in range(1, len(left)):
        shares[k] = shares[:k] @ left[:k, k]
    return np.asarray(shares / shares.sum())


@dataclass(frozen=True, kw_only=True, repr=False)
class Chain:
    """How a person's state moves on, as a Markov chain.

    Losses that look back need the reversed matrix, the chance that y came before x. It follows from
    ``forward`` and ``start`` and is another one at each step, unless the start is stationary; or
    ``backward`` is given, and holds at every step.

    Parameters:
        forward: ``forward[x][y]`` is the chance that y follows x.
        start: the distribution at the first step; by default the stationary one, in which it
            stays.
        backward: the reversed matrix of every step.
        private: whether its numbers come from private data.

    Guarantees: a ``private`` chain, as every one estimated from private data is, shows no number of
    its own when it is printed or refused.

    >>> chain = Chain(forward=[[0.9, 0.1], [0.3, 0.7]])
    >>> chain.shares.round(6).tolist()
    [0.75, 0.25]
    >>> chain.reversed_at(1)[0].round(6).tolist()
    [[0.9, 0.1], [0.3, 0.7]]
    """

    forward: Sequence[Sequence[float]]
    start: Sequence[float] | None = None
    backward: Sequence[Sequence[float]] | None = None
    private: bool = False

    def __post_init__(self) -> None:
        put = functools.partial(object.__setattr__, self)
        put("private", bool(self.private))
        put("forward", _rows("forward", self.forward, None, self.private))
        if self.backward is not None:
            put("backward", _rows("backward", self.backward, self.states, self.private))
        if self.start is not None:
            try:
                start = np.asarray(self.start, dtype=np.float64)
            except (TypeError, ValueError):
                start = np.zeros(0)
            require(
                start.shape == (self.states,),
                f"start: must have {self.states} probabilities, one for each state",
            )
            _check_distribution("start", start, self.private)
            put("start", tuple(float(share) for share in start))
        elif self.backward is None:
            reach = _reachable(self.matrix > 0)
            require(
                bool(np.all(reach)),
                "forward: some states are never reached from others, so where the chain began "
                "matters for ever; give start, or backward",
            )

    def __repr__(self) -> str:
        if self.private:
            return "Chain(private=True)"
        parts = [f"forward={self.forward}"]
        parts += [f"start={self.start}"] if self.start is not None else []
        parts += [f"backward={self.backward}"] if self.backward is not None else []
        return f"Chain({', '.join(parts)})"

    @classmethod
    def smoothed_identity(cls, states: int, smoothing: float) -> Chain:
        """A state stays with chance (1 + s) / (1 + n s); the smaller s, the stronger correlation.

        As in Section 4.1.2 of the landmark paper, after Cao et al. With s = 0 nothing ever changes.

        Parameters:
            states: how many there are, n.
            smoothing: s, from 0 on.

        >>> Chain.smoothed_identity(2, 0.5).forward
        ((0.75, 0.25), (0.25, 0.75))
        """
        require(
            1 <= states <= MAX_STATES, f"states={states}: must be from 1 to {MAX_STATES} states"
        )
        fine = math.isfinite(smoothing) and smoothing >= 0
        require(fine, f"smoothing={smoothing}: must be a number >= 0")
        matrix = (np.eye(states) + smoothing) / (1 + states * smoothing)
        return cls(forward=_as_rows(matrix), start=(1 / states,) * states)

    @classmethod
    def estimate(
        cls,
        series: Iterable[Any],
        states: int,
        pseudocount: float = 1.0,
        start: Sequence[float] | None = None,
        private: bool = True,
    ) -> Chain:
        """Estimate which state follows which from some series; no pair is taken across two of them.

        The more is added to the counts, the weaker the correlation looks.

        Parameters:
            series: lists of states 0, 1, ...; -1 is a gap, and no pair is taken across it.
            states: how many there are.
            pseudocount: added to each count: without it a pair that was not seen is impossible.
            start: the distribution at the first step.
            private: whether the series are private.

        Raises:
            DataError: a state is none, or is never followed by another.

        >>> Chain.estimate([[0, 0, 1], [1, 1, 0]], 2)
        Chain(private=True)
        >>> Chain.estimate([[0, 0, 1], [1, 1, 0]], 2, private=False).forward
        ((0.5, 0.5), (0.5, 0.5))
        """
        require(
            1 <= states <= MAX_STATES, f"states={states}: must be from 1 to {MAX_STATES} states"
        )
        fine = math.isfinite(pseudocount) and pseudocount >= 0
        require(fine, f"pseudocount={pseudocount}: must be a number >= 0")
        counts = np.full((states, states), float(pseudocount))
        for states_of_series in series:
            seen = np.asarray(states_of_series)
            whole = seen.ndim == 1 and np.issubdtype(seen.dtype, np.integer)
            require(
                whole or seen.size == 0,
                "series: must be lists of states, whole numbers from 0 on; use states_of",
                DataError,
            )
            seen = seen.astype(np.int64).ravel()
            require(
                bool(np.all((seen >= NO_STATE) & (seen < states))),
                f"series: a state is not among 0 to {states - 1}; give more states",
                DataError,
            )
            before, after = seen[:-1], seen[1:]
            known = (before != NO_STATE) & (after != NO_STATE)
            np.add.at(counts, (before[known], after[known]), 1)
        left = counts.sum(axis=1)
        require(
            bool(np.all(left > 0)),
            "series: a state is never followed by another reading; give a pseudocount above 0, or "
            "fewer states",
            DataError,
        )
        return cls(
            forward=_as_rows(counts / left[:, None]),
            start=None if start is None else tuple(start),
            private=private,
        )

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.forward)

    @functools.cached_property
    def matrix(self) -> Floats:
        """``forward``, its rows divided by their sums."""
        return _normalized(self.forward)

    @functools.cached_property
    def shares(self) -> Floats:
        """The distribution of states at the first step."""
        if self.start is not None:
            return np.array(self.start) / math.fsum(self.start)
        require(self.start_is_known, "start: a chain with a backward matrix has none; give it")
        return _stationary(self.matrix)

    @property
    def start_is_known(self) -> bool:
        """Whether the distribution at the first step is given, or follows from the matrix."""
        return self.start is not None or bool(np.all(_reachable(self.matrix > 0)))

    @functools.cached_property
    def settled(self) -> Floats | None:
        """The stationary distribution that the start tends to; None if it has transient states."""
        reach = _reachable(self.matrix > 0)
        both = reach & reach.T
        shares = np.zeros(self.states)
        for state in range(self.states):
            part = np.flatnonzero(both[state])
            if part[0] == state and self.shares[part].sum() > 0:
                if not np.array_equal(reach[state], both[state]):
                    return None
                alone = _stationary(self.matrix[np.ix_(part, part)])
                shares[part] = alone * self.shares[part].sum()
        return shares

    def distance(self, shares: Floats) -> float:
        """How far from the settled distribution, relatively, at most; it never grows with time.

        shares / settled of the next step are averages of those of this one, by the reversed chain.
        """
        if self.settled is None:
            return math.inf
        possible = self.settled > 0
        return float(np.max(np.abs(shares[possible] / self.settled[possible] - 1)))

    @functools.cached_property
    def is_homogeneous(self) -> bool:
        """Whether the reversed matrix is the same at every step."""
        if self.backward is not None or self.start is None:
            return True
        return self.distance(self.shares) <= STATIONARY_TOLERANCE

    def reversed_at(self, step: int, shares: Floats | None = None) -> tuple[Floats, Flags]:
        """Pr(state before | state at ``step``), and which states are possible at all there.

        ``shares`` are those at the step before, if they are at hand.
        """
        if self.backward is not None:
            return _normalized(self.backward), np.ones(self.states, dtype=np.bool_)
        if shares is None:
            shares = self.shares
            for _ in range(0 if self.is_homogeneous else step - 1):
                shares = np.asarray(shares @ self.matrix)
        joint = (self.matrix * shares[:, None]).T
        totals = joint.sum(axis=1)
        possible: Flags = totals > 0
        before = np.divide(joint, totals[:, None], where=possible[:, None], out=joint * 0)
        return before, possible

    def to_json(self) -> str:
        """All of it, a private one too: keep what this returns where the data are."""
        fields: dict[str, Any] = {"forward": self.forward}
        if self.start is not None:
            fields["start"] = self.start
        if self.backward is not None:
            fields["backward"] = self.backward
        if self.private:
            fields["private"] = True
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> Chain:
        """The chain in a ``text`` that ``to_json`` gave, or a matrix as JSON.

        >>> Chain.from_json('{"forward": [[0.5, 0.5], [0.5, 0.5]]}').states
        2
        """
        try:
            fields = json.loads(text)
        except ValueError:
            fields = None
        if isinstance(fields, list):
            fields = {"forward": fields}
        wanted = isinstance(fields, dict) and "forward" in fields
        require(wanted, 'a chain: must be JSON with "forward", a row for each state', DataError)
        unknown = sorted(fields.keys() - {"forward", "start", "backward", "private"})
        require(
            not unknown,
            f"a chain: {', '.join(map(repr, unknown))} is not known; it has forward, start, "
            "backward and private",
            DataError,
        )
        return cls(**fields)


def _as_rows(matrix: Floats) -> Rows:
    return tuple(tuple(float(entry) for entry in row) for row in matrix)


def _normalized(rows: Sequence[Sequence[float]]) -> Floats:
    matrix = np.array(rows)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def read_chain(path: str | Path) -> Chain:
    """Read a chain from JSON (see ``Chain.to_json``), or a matrix from CSV without a heading.

    Parameters:
        path: the file.

    Raises:
        DataError: it holds no chain.
    """
    path = Path(path)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise DataError(f"{path.name}: cannot be read; give a JSON or CSV file") from problem
    if text.lstrip()[:1] in ("{", "["):
        return Chain.from_json(text)
    try:
        rows = [[float(cell) for cell in row] for row in csv.reader(text.splitlines()) if row]
    except ValueError as problem:
        raise DataError(
            f"{path.name}: a cell is no number; give the matrix without a heading, or JSON"
        ) from problem
    require(
        all(len(row) == len(rows) for row in rows),
        f"{path.name}: must be a square matrix; give a row and a column for each state",
        DataError,
    )
    return Chain(forward=_as_rows(np.array(rows)) if rows else ())


def write_chain(chain: Chain, path: str | Path) -> None:
    """Write a chain as JSON; a private one can be read by its owner only.

    Parameters:
        chain: the chain.
        path: the file, replaced if it exists.
    """
    path = Path(path)
    write_durably(path, (chain.to_json() + "\n").encode())
    if not chain.private:
        follow_umask(path)


def equal_width(low: float, high: float, states: int) -> tuple[float, ...]:
    """The edges of equally wide bins between two public bounds.

    Parameters:
        low: the lower bound.
        high: the upper one.
        states: how many bins.

    >>> equal_width(0, 5, 5)
    (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    """
    fine = math.isfinite(low) and math.isfinite(high) and low < high
    require(fine, f"bounds={low},{high}: must be two numbers, the lower first")
    require(1 <= states <= MAX_STATES, f"states={states}: must be from 1 to {MAX_STATES} states")
    return tuple(float(edge) for edge in np.linspace(low, high, states + 1))


def states_of(values: Any, edges: Sequence[float]) -> Integers:
    """The bin of each number: state i from edge i on, and before the next edge.

    Edges are public and fixed before the data are seen; edges taken from data, such as quantiles,
    would tell of them. What lies outside counts to the nearest bin; what is missing becomes -1.

    Parameters:
        values: numbers, NaN where missing.
        edges: the edges of the bins, rising.

    >>> states_of([0.5, 2.0, 9.0, -1.0, float("nan")], edges=(0, 1, 2, 3)).tolist()
    [0, 2, 2, 0, -1]
    """
    between = np.asarray(edges, dtype=np.float64)
    fine = between.ndim == 1 and len(between) >= 2 and bool(np.all(np.diff(between) > 0))
    require(fine, "edges: must be two or more rising numbers; equal_width makes them")
    numbers = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    states = np.searchsorted(between[1:-1], numbers, side="right")
    return np.where(np.isnan(numbers), NO_STATE, states).astype(np.int64)
