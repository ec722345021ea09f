"""Toeplitz inverse covariance clustering: which of a few ways of moving a stream is in, and when.

Hallac, Vare, Boyd and Leskovec, "Toeplitz Inverse Covariance-Based Clustering of Multivariate Time
Series Data" (KDD 2017). Each cluster is a Gaussian of ``window`` consecutive readings whose
inverse covariance is sparse and block Toeplitz, since it must not matter when a window begins. Two
steps take turns until nothing changes: a path of least cost through the clusters, in which each
change of cluster costs ``switching`` (their Section 4.1), and a Gaussian for each cluster from the
windows on it (Section 4.2). Neither raises the objective.

Where their text leaves it open: columns are brought to variance 1, a ``floor`` stands on every
variance, so that a stream that repeats has a Gaussian too, and the first clusters are pieces of
the stream that were merged by likelihood, so nothing is drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# of the inner iteration: at most so many steps, until residuals are so small a part; Boyd et al.,
# "Distributed Optimization and Statistical Learning via the Alternating Direction Method of
# Multipliers" (2011), Section 3.4
MAX_STEPS = 3000
ACCURACY = 1e-4
RELAXATION = 1.6
CHECKED_STEPS, MAX_RESIDUAL_RATIO = 20, 5.0
PIECES_PER_CLUSTER = 20  # for each cluster, to begin with


def stacked(values: Floats, window: int) -> Floats:
    """Each reading with those before it, oldest first: rows of ``window`` times the columns.

    Parameters:
        values: a row for each step.
        window: in readings.

    >>> stacked(np.array([[1.0], [2.0], [3.0]]), 2).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    steps = len(values) - window + 1
    return np.concatenate([values[i : i + steps] for i in range(window)], axis=1)


# the path


def cheapest_path(costs: Floats, switching: float) -> Integers:
    """A cluster for every step, so that costs and ``switching`` for each change are least.

    Their Algorithm 1: of a step's clusters each is reached from itself or from the cheapest one.

    Parameters:
        costs: of each cluster, a row for each step.
        switching: what each change of cluster costs.

    >>> cheapest_path(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), 0.4).tolist()
    [0, 1, 0]
    >>> cheapest_path(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), 0.6).tolist()
    [0, 0, 0]
    """
    steps, clusters = costs.shape
    before = np.empty((steps, clusters), dtype=np.int64)
    stay = np.arange(clusters)
    total = costs[0].copy()
    for step in range(1, steps):
        best = int(total.argmin())
        change = total[best] + switching
        moved = total > change
        before[step] = np.where(moved, best, stay)
        total = np.where(moved, change, total) + costs[step]
    path = np.empty(steps, dtype=np.int64)
    path[-1] = total.argmin()
    for step in range(steps - 1, 0, -1):
        path[step - 1] = before[step, path[step]]
    return path


# the gaussians


def toeplitz_mean(matrix: Floats, window: int) -> Floats:
    """The nearest symmetric block Toeplitz matrix: blocks as far from the diagonal are averaged.

    Parameters:
        matrix: of window times columns.
        window: in readings.

    >>> toeplitz_mean(np.array([[1.0, 2.0], [4.0, 5.0]]), 2).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    columns = len(matrix) // window
    even = (matrix + matrix.T) / 2
    blocks = even.reshape(window, columns, window, columns).transpose(0, 2, 1, 3)
    means = np.empty_like(blocks)
    for apart in range(window):
        rows = np.arange(window - apart)
        block = blocks[rows + apart, rows].mean(axis=0)
        means[rows + apart, rows] = block
        means[rows, rows + apart] = block.T
    return means.transpose(0, 2, 1, 3).reshape(matrix.shape)


def lasso_objective(inverse: Floats, covariance: Floats, penalty: float) -> float:
    """-log det + trace + penalty times the sum of sizes; infinite where it is no inverse.

    Parameters:
        inverse: of a covariance.
        covariance: that was seen.
        penalty: for each unit of size of an entry.
    """
    sign, log = np.linalg.slogdet(inverse)
    if sign <= 0 or np.linalg.eigvalsh(inverse)[0] <= 0:
        return float("inf")
    return float(-log + np.sum(covariance * inverse) + penalty * np.abs(inverse).sum())


def toeplitz_lasso(
    covariance: Floats, window: int, penalty: float, start: Floats | None = None
) -> Floats:
    """The sparse block Toeplitz inverse of least ``lasso_objective``, by ADMM (Section 4.2).

    Parameters:
        covariance: that was seen.
        window: in readings.
        penalty: for each unit of size of an entry.
        start: the inverse to begin with.

    >>> toeplitz_lasso(np.array([[0.5]]), 1, penalty=0.5).round(4).tolist()  # 1 / (0.5 + 0.5)
    [[1.0]]
    """
    if start is None:
        start = toeplitz_mean(np.asarray(np.linalg.inv(covariance)), window)
        if np.linalg.eigvalsh(start)[0] <= 0:
            start = toeplitz_mean(np.diag(1 / np.diag(covariance)), window)
    sizes = np.linalg.eigvalsh(start)
    # the curvature of log det lies between the squares of these, inverted
    rho = float(1 / (sizes[0] * sizes[-1]))
    sparse, dual = start, (np.linalg.inv(start) - covariance) / rho
    for step in range(1, MAX_STEPS + 1):
        values, vectors = np.linalg.eigh(rho * (sparse - dual) - covariance)
        # without cancellation for large negative values
        root = np.sqrt(values**2 + 4 * rho)
        grown = np.where(values > 0, (values + root) / (2 * rho), 2 / (root - values))
        dense = (vectors * grown) @ vectors.T
        previous, eager = sparse, RELAXATION * dense + (1 - RELAXATION) * sparse
        mean = toeplitz_mean(eager + dual, window)
        sparse = np.sign(mean) * np.maximum(np.abs(mean) - penalty / rho, 0.0)
        dual = dual + eager - sparse
        primal = _part(dense - sparse, sparse)
        moved = _part(sparse - previous, dual)
        if max(primal, moved) < ACCURACY:
            break
        # Boyd et al. (2011), Section 3.4.1: neither residual is left far behind
        if (
            step % CHECKED_STEPS == 0
            and not 1 / MAX_RESIDUAL_RATIO < primal / max(moved, 1e-300) < MAX_RESIDUAL_RATIO
        ):
            factor = 2.0 if primal > moved else 0.5
            rho, dual = rho * factor, dual / factor
    return sparse if np.linalg.eigvalsh(sparse)[0] > 0 else toeplitz_mean(dense, window)


def _part(change: Floats, of: Floats) -> float:
    return float(np.linalg.norm(change) / max(float(np.linalg.norm(of)), 1e-300))


@dataclass(frozen=True, eq=False)
class Gaussians:
    """A mean and an inverse covariance for each cluster, of windows of readings of variance 1."""

    means: Floats
    inverses: Floats

    def costs(self, windows: Floats, floor: float) -> Floats:
        """Minus the log-likelihood of every window in every cluster.

        Parameters:
            windows: rows of so many readings.
            floor: of every variance.
        """
        costs = np.empty((len(windows), len(self.means)))
        for k, (mean, inverse) in enumerate(zip(self.means, self.inverses, strict=True)):
            apart = windows - mean
            squares = np.sum((apart @ inverse) * apart, axis=1)
            log = np.linalg.slogdet(inverse)[1]
            costs[:, k] = (
                squares + floor * np.trace(inverse) - log + windows.shape[1] * np.log(2 * np.pi)
            ) / 2
        return costs


# the whole


@dataclass(frozen=True, eq=False)
class Clustered:
    """A cluster for each reading, their gaussians, and the objective after every round."""

    labels: Integers
    gaussians: Gaussians
    objectives: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Clustering:
    """How to cluster: the letters K, w, lambda and beta of the paper, and ours.

    The objective is minus the log-likelihood of all windows, plus ``sparsity`` times the sizes of
    all entries of the inverses, plus ``switching`` for each change of cluster.

    >>> quiet, loud = np.zeros((300, 1)), np.ones((300, 1))
    >>> swing = np.sin(np.arange(600.0))[:, None] * np.concatenate([0.1 + quiet, 5 * loud])
    >>> found = Clustering(clusters=2, window=2, switching=10.0).of(swing)
    >>> np.flatnonzero(np.diff(found.labels)).tolist()
    [299]
    """

    clusters: int
    window: int = 3
    sparsity: float = 1.0
    switching: float = 100.0
    floor: float = 0.01
    rounds: int = 30

    def __post_init__(self) -> None:
        for name, least in (("clusters", 1), ("window", 1), ("rounds", 1)):
            value = getattr(self, name)
            require(
                isinstance(value, int) and value >= least,
                f"{name}={value}: must be a whole number >= {least}",
            )
        for name in ("sparsity", "switching"):
            value = getattr(self, name)
            require(value >= 0, f"{name}={value}: must be >= 0")
        require(self.floor > 0, f"floor={self.floor}: must be > 0")

    def of(self, values: Any) -> Clustered:
        """The clusters of a stream of ``values`` of shape (steps, columns)."""
        values = np.asarray(values, dtype=np.float64)
        values = values.reshape(len(values), -1)
        least = max(2 * self.clusters, 2) * self.window
        require(
            len(values) >= least,
            f"{len(values)} readings: must be at least {least} for {self.clusters} clusters of "
            f"windows of {self.window}",
            DataError,
        )
        spread = values.std(axis=0)
        values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        windows = stacked(values, self.window)
        path = merged_pieces(values, self.clusters, self.floor)[self.window - 1 :]
        gaussians = self.fit_gaussians(windows, path, None)
        objectives: list[float] = []
        for _ in range(self.rounds):
            cheapest = cheapest_path(gaussians.costs(windows, self.floor), self.switching)
            same = bool((cheapest == path).all()) and bool(objectives)
            path = cheapest
            objectives.append(self.objective(windows, path, gaussians))
            if same:
                break
            gaussians = self.fit_gaussians(windows, path, gaussians)
            objectives.append(self.objective(windows, path, gaussians))
        # the first readings are in no window that ends with them
        labels = np.concatenate([np.full(self.window - 1, path[0]), path])
        return Clustered(labels, gaussians, tuple(objectives))

    def objective(self, windows: Floats, path: Integers, gaussians: Gaussians) -> float:
        """What is minimized, for ``windows`` on a ``path`` through these ``gaussians``."""
        costs = gaussians.costs(windows, self.floor)
        along = float(costs[np.arange(len(path)), path].sum())
        sizes = float(np.abs(gaussians.inverses).sum())
        changes = int(np.count_nonzero(np.diff(path)))
        return along + self.sparsity * sizes + self.switching * changes

    def fit_gaussians(self, windows: Floats, path: Integers, before: Gaussians | None) -> Gaussians:
        """The best Gaussian for each cluster's windows; an empty cluster keeps the one it had.

        Parameters:
            windows: rows of so many readings.
            path: the cluster of each window.
            before: the gaussians that the clusters had.
        """
        size = windows.shape[1]
        if before is None:
            identity = np.repeat(np.eye(size)[None], self.clusters, axis=0)
            before = Gaussians(np.zeros((self.clusters, size)), identity)
        means, inverses = before.means.copy(), before.inverses.copy()
        for k in range(self.clusters):
            mine = windows[path == k]
            if not len(mine):
                continue
            means[k] = mine.mean(axis=0)
            apart = mine - means[k]
            covariance = apart.T @ apart / len(mine) + self.floor * np.eye(size)
            penalty = 2 * self.sparsity / len(mine)
            lasso = toeplitz_lasso(covariance, self.window, penalty, before.inverses[k])
            # the iteration ends near the least: never take what is worse than before
            inverses[k] = min(
                (lasso, before.inverses[k]),
                key=lambda inverse: lasso_objective(inverse, covariance, penalty),
            )
        return replace(before, means=means, inverses=inverses)


def merged_pieces(values: Floats, clusters: int, floor: float) -> Integers:
    """Equal pieces of the stream, merged two by two where a common Gaussian costs least.

    Parameters:
        values: a row for each step.
        clusters: how many are left.
        floor: of every variance.

    >>> merged_pieces(np.repeat([0.0, 9.0, 0.0], 40)[:, None], 2, 0.01)[[0, 60, 119]].tolist()
    [0, 1, 0]
    """
    steps, columns = values.shape
    # a piece must have a covariance of its own
    number = max(clusters, min(PIECES_PER_CLUSTER * clusters, steps // (2 * columns + 2)))
    piece = np.arange(steps) * number // steps
    counts = np.bincount(piece, minlength=number).astype(np.float64)
    sums = np.zeros((number, columns))
    squares = np.zeros((number, columns, columns))
    for k in range(number):
        mine = values[piece == k]
        sums[k], squares[k] = mine.sum(axis=0), mine.T @ mine

    def spread(count: Floats, total: Floats, square: Floats) -> Floats:
        """The cost of one Gaussian for pieces with this ``count``, ``total`` and ``square``."""
        mean = total / count[..., None]
        around = square / count[..., None, None] - mean[..., :, None] * mean[..., None, :]
        return np.asarray(count * np.linalg.slogdet(around + floor * np.eye(columns))[1])

    alone = spread(counts, sums, squares)
    rise = np.full((number, number), np.inf)

    def compare(k: int, others: Integers) -> None:
        """Note by how much the cost rises if piece ``k`` is merged with each of ``others``."""
        both = spread(
            counts[k] + counts[others], sums[k] + sums[others], squares[k] + squares[others]
        )
        rise[k, others] = rise[others, k] = both - alone[k] - alone[others]

    for k in range(1, number):
        compare(k, np.arange(k))
    group, left = np.arange(number), list(range(number))
    while len(left) > clusters:
        kept, merged = sorted(int(i) for i in np.unravel_index(int(rise.argmin()), rise.shape))
        group[group == merged] = kept
        counts[kept] += counts[merged]
        sums[kept] += sums[merged]
        squares[kept] += squares[merged]
        left.remove(merged)
        rise[merged, :] = rise[:, merged] = np.inf
        alone[kept] = spread(
            counts[kept : kept + 1], sums[kept : kept + 1], squares[kept : kept + 1]
        )[0]
        compare(kept, np.array([i for i in left if i != kept], dtype=np.int64))
    return np.asarray(np.unique(group, return_inverse=True)[1][piece], dtype=np.int64)
