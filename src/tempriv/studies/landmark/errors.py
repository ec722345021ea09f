"""Figures 7 and 11 of the paper on landmarks: errors of the schemes, with and without dummies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tempriv.landmarks.dummy_sets import Score
from tempriv.studies.common import ResultTable, Row, Section, Tables
from tempriv.studies.landmark.data import (
    BOUNDED,
    COPENHAGEN,
    FARTHER,
    HUE,
    INSIDE,
    NAMES,
    SHARES,
    TDRIVE,
    Flags,
    LandmarkDataset,
    LandmarkInputs,
    percent,
)
from tempriv.studies.landmark.experiment import (
    ADAPTIVE,
    BOUND,
    CONSTANT,
    DUMMY_SHARE,
    EPSILON,
    EVENT,
    OURS,
    SKIP,
    SPLIT,
    THEIRS,
    UNIFORM,
    USER,
    Errors,
    LandmarkSize,
    drawn_bound,
    dummy_marks,
    errors_of,
    levels,
    protects,
    schemes,
)

PLAIN, WITH_DUMMIES, DRAWN = "", "dummies", "drawn bound"
RATIOS = (0.01, 0.1, 0.25, 0.5)
SCORES: tuple[Score, ...] = ("distance", "count", "temporal")
# kappa, increase, decrease, least: the paper gives none of them
PARAMETERS = (
    (1.0, 0.5, 0.2, 0.1),
    (2.0, 0.5, 0.2, 0.1),
    (2.0, 0.5, 0.5, 0.05),
    (0.5, 0.5, 0.2, 0.1),
    (0.5, 0.2, 0.2, 0.3),
)


def _compared(
    dataset: LandmarkDataset, share: float, runs: int
) -> Iterator[tuple[str, str, Errors, str]]:
    """Levels, a constant, the schemes, and the schemes that hide which moments are landmarks."""
    marks = [dataset.marks[share]] * runs

    def run(mechanism: Any, landmarks: Sequence[Flags] = marks) -> Errors:
        """The errors of a ``mechanism`` with some ``landmarks`` for each run."""
        return errors_of(dataset, share, mechanism, landmarks, 7)

    for level, mechanism in levels(dataset).items():
        yield level, PLAIN, run(mechanism), protects(mechanism)
    plain = schemes(dataset, share, EPSILON)
    skipped = run(plain[SKIP], [np.ones_like(marks[0])])
    yield CONSTANT, PLAIN, skipped, "everything: nothing is released"
    for scheme, mechanism in plain.items():
        yield scheme, PLAIN, run(mechanism), protects(mechanism)
    chosen = dummy_marks(dataset.marks[share], EPSILON * DUMMY_SHARE, runs, 7)
    for scheme, mechanism in schemes(dataset, share, EPSILON * (1 - DUMMY_SHARE)).items():
        if scheme != BOUND:
            yield scheme, WITH_DUMMIES, run(mechanism, chosen), protects(mechanism)
    drawn = drawn_bound(dataset)
    yield BOUND, DRAWN, run(drawn), protects(drawn)


def figure_7(name: str, data: Sequence[LandmarkDataset], size: LandmarkSize) -> ResultTable:
    """Every scheme on every data set; those that hide which moments are landmarks beside them.

    Parameters:
        name: of the table.
        data: the data sets.
        size: how much of everything.
    """
    lines = tuple(
        (
            *(dataset.name, dataset.unit, share, int(dataset.marks[share].sum()), scheme, hidden),
            *(errors.marks, errors.mean, errors.spread, errors.clamped, what),
        )
        for dataset, share in itertools.product(data, SHARES)
        for scheme, hidden, errors, what in _compared(dataset, share, size.runs)
    )
    columns = (
        *("data", "unit", "share", "landmarks", "scheme", "hidden", "marks", "error"),
        *("standard_error", "clamped", "protects"),
    )
    return ResultTable(name, f"mean absolute error, epsilon 1, {size.runs} runs", columns, lines)


def figure_11(data: Sequence[LandmarkDataset], size: LandmarkSize) -> ResultTable:
    """Uniform with dummies, by the part of epsilon that selects them and by the score.

    ``shown`` is the share of regular moments outside the selected set, which are certainly none.

    Parameters:
        data: the data sets.
        size: how much of everything.
    """
    lines: list[tuple[Any, ...]] = []
    for dataset, share, score in itertools.product(data, SHARES, SCORES):
        if score == "temporal" and not dataset.marks[share].any():
            continue  # there is no landmark to be near to
        for ratio in RATIOS:
            marks = dummy_marks(dataset.marks[share], EPSILON * ratio, size.runs, 11, score)
            mechanism = schemes(dataset, share, EPSILON * (1 - ratio))[UNIFORM]
            errors = errors_of(dataset, share, mechanism, marks, 11)
            regular = int(np.count_nonzero(~dataset.marks[share]))
            shown = (dataset.length - errors.marks) / regular if regular else 0.0
            lines.append(
                (
                    dataset.name,
                    dataset.unit,
                    share,
                    score,
                    ratio,
                    errors.marks,
                    shown,
                    errors.mean,
                    errors.spread,
                )
            )
    columns = (
        *("data", "unit", "share", "score", "ratio", "marks", "shown", "error"),
        "standard_error",
    )
    title = f"mean absolute error of Uniform with dummies, epsilon 1, {size.runs} runs"
    return ResultTable("figure-11", title, columns, tuple(lines))


def parameters(data: Sequence[LandmarkDataset], size: LandmarkSize) -> ResultTable:
    """Adaptive with other parameters, as parts of Uniform's error.

    Parameters:
        data: the data sets.
        size: how much of everything.
    """
    lines: list[tuple[Any, ...]] = []
    for dataset, share in itertools.product(data, SHARES):
        marks = [dataset.marks[share]] * size.runs
        made = schemes(dataset, share, EPSILON)
        base = errors_of(dataset, share, made[UNIFORM], marks, 5).mean
        for kappa, increase, decrease, least in PARAMETERS:
            mechanism = replace(
                made[ADAPTIVE], kappa=kappa, increase=increase, decrease=decrease, least=least
            )
            errors = errors_of(dataset, share, mechanism, marks, 5)
            lines.append(
                (
                    dataset.name,
                    share,
                    kappa,
                    increase,
                    decrease,
                    least,
                    errors.mean,
                    errors.spread,
                    errors.mean / base,
                )
            )
    columns = (
        *("data", "share", "kappa", "increase", "decrease", "least", "error", "standard_error"),
        "of_uniform",
    )
    title = f"mean absolute error of Adaptive by its parameters, epsilon 1, {size.runs} runs"
    return ResultTable("adaptive-parameters", title, columns, tuple(lines))


def tables(inputs: LandmarkInputs, size: LandmarkSize) -> Iterator[ResultTable]:
    """The tables of both figures, from ``inputs``, in a ``size``."""
    yield figure_7("figure-7", inputs.theirs, size)
    yield figure_7("figure-7-neighbors", inputs.honest, size)
    yield figure_11(inputs.theirs, size)
    yield parameters(inputs.theirs, size)


# statements


@dataclass(frozen=True)
class _Figure7:
    """Errors by data set, share and scheme."""

    table: ResultTable

    def of(self, data: str, share: float, scheme: str, hidden: str = PLAIN) -> float:
        """The error of a ``scheme`` on ``data`` at a ``share``; ``hidden`` as in the table."""
        return self.table.number("error", data=data, share=share, scheme=scheme, hidden=hidden)

    def below(self, data: str, share: float, first: str, second: str) -> bool:
        """Whether one scheme's error is less by more than chance: three standard errors.

        Parameters:
            data: the name of the data set.
            share: the part of steps that are landmarks.
            first: a scheme.
            second: another.
        """
        apart = self.of(data, share, second) - self.of(data, share, first)
        both = [
            self.table.column(
                "standard_error", data=data, share=share, scheme=scheme, hidden=PLAIN
            )[0]
            for scheme in (first, second)
        ]
        return bool(apart > 3 * np.hypot(*both))

    def best(self, data: str, share: float, scheme: str) -> bool:
        """Whether a ``scheme`` is the best of the paper's on ``data`` at a ``share``."""
        return all(self.below(data, share, scheme, other) for other in THEIRS if other != scheme)

    def worsened(self, data: str, scheme: str) -> float:
        """What dummies do to the error, at worst, where there are landmarks and others.

        Parameters:
            data: the name of the data set.
            scheme: its name.
        """
        return max(
            self.of(data, share, scheme, WITH_DUMMIES) / self.of(data, share, scheme)
            for share in INSIDE
        )


def rows(tables: Tables) -> Iterator[Row]:
    """Verdicts on what the paper says of its schemes, from ``tables``."""
    yield from _levels(_Figure7(tables["figure-7"]))
    yield from _copenhagen(_Figure7(tables["figure-7"]), tables["adaptive-parameters"])
    yield from _hue(_Figure7(tables["figure-7"]))
    yield from _tdrive(_Figure7(tables["figure-7"]), tables["adaptive-parameters"])
    yield from _ours(_Figure7(tables["figure-7"]), tables["figure-7-neighbors"])
    yield from _dummies(_Figure7(tables["figure-7"]))
    yield from _ratios(tables["figure-11"])


def _levels(figure: _Figure7) -> Iterator[Row]:
    section = Section("No landmarks and nothing else (Section 4.2.1, Figure 7)")
    for share, level in ((0.0, EVENT), (1.0, USER)):
        for data, scheme in itertools.product(NAMES, (UNIFORM, SKIP, ADAPTIVE)):
            ratio = figure.of(data, share, scheme) / figure.of(data, share, level)
            what = f"{data}, {percent(share)}: error of {scheme} as a part of {level}'s"
            if scheme == UNIFORM or (scheme == SKIP and share == 0):
                yield section.holds(what, 1, ratio, "'the same behavior'", 0.05)
            elif scheme == SKIP:
                how = "it releases nothing of the data, only a constant"
                yield section.fails(what, 1, ratio, how, 0.05)
            else:
                yield section.ours(what, ratio, "it repeats some releases")


def _copenhagen(figure: _Figure7, parameters: ResultTable) -> Iterator[Row]:
    section, data = Section("Contacts in Copenhagen (Section 4.2.1, Figure 7a)"), COPENHAGEN
    how = "another telephone and other contacts, chosen by frequency"
    best = sum(figure.best(data, share, SKIP) for share in (0.2, 0.4))
    yield section.holds("of 20 and 40 %: shares at which Skip is the best", 2, best, how)
    best = sum(figure.best(data, share, ADAPTIVE) for share in (0.6, 0.8))
    what = "of 60 and 80 %: shares at which Adaptive is the best"
    yield section.fails(what, 2, best, "it and Uniform are coins, wrong in half of all cases")
    what = "100 %: error of Skip, %"
    yield section.ours(
        what, figure.of(data, 1.0, SKIP), "not comparable: 100 for the constant no, 0 for yes"
    )
    less = float(figure.below(data, 0.0, ADAPTIVE, EVENT))
    what = "0 %: whether Adaptive is better than event level"
    yield section.fails(what, 1, less, "a bit changes by 1, the scale is 1 / epsilon")
    (error,) = parameters.column("of_uniform", data=data, share=0.0, kappa=0.5, increase=0.5)
    what = "0 %: error of Adaptive as a part of Uniform's, kappa 0.5"
    yield section.ours(what, error, "then a change of a bit counts as one")
    for share in INSIDE:
        guess = min(share_wrong := figure.of(data, share, CONSTANT), 100 - share_wrong)
        least = min(figure.of(data, share, scheme) for scheme in (*THEIRS, *OURS))
        what = f"{percent(share)}: least error of all schemes, as a part of the better constant's"
        yield section.ours(what, least / guess, "always no, or always yes")


def _hue(figure: _Figure7) -> Iterator[Row]:
    section, data = Section("Energy in HUE (Section 4.2.1, Figure 7b)"), HUE
    some = SHARES[1:]
    best = sum(figure.best(data, share, SKIP) for share in some)
    what = "of 20 to 100 %: shares at which Skip is the best"
    yield section.holds(what, 5, best, "'Skip achieves a constant low mean absolute error'")
    less = sum(figure.below(data, share, ADAPTIVE, UNIFORM) for share in some)
    yield section.holds(
        "of 20 to 100 %: shares at which Adaptive is better than Uniform", 5, less, "figure-7.csv"
    )
    between = sum(
        figure.below(data, share, EVENT, ADAPTIVE) and figure.below(data, share, ADAPTIVE, USER)
        for share in some
    )
    what = "of 20 to 100 %: shares at which Adaptive is between event and user level"
    yield section.holds(what, 5, between, "figure-7.csv")
    for share in INSIDE:
        ratio = figure.of(data, share, ADAPTIVE) / figure.of(data, share, UNIFORM)
        what = f"{percent(share)}: error of Adaptive as a part of Uniform's"
        yield section.ours(what, ratio, "'by far better'")
    useless = sum(
        figure.below(data, share, CONSTANT, scheme)
        for share, scheme in itertools.product(INSIDE, (*THEIRS, *OURS))
    )
    what = "of 20 cases (20 to 80 %, five schemes): worse than always saying 0 kWh"
    yield section.ours(what, useless, "that is wrong by 0.88 kWh")


def _tdrive(figure: _Figure7, parameters: ResultTable) -> Iterator[Row]:
    section, data = Section("Places in T-Drive (Section 4.2.1, Figure 7c)"), TDRIVE
    many = (0.6, 0.8, 1.0)
    gains = {s: 1 - figure.of(data, s, ADAPTIVE) / figure.of(data, s, UNIFORM) for s in many}
    agreeing = sum(0.1 <= gain <= 0.2 for gain in gains.values())
    yield section.fails(
        "of 60 to 100 %: shares at which Adaptive beats Uniform by 10 to 20 %",
        3,
        agreeing,
        "by less; its parameters are not told",
    )
    for share, gain in gains.items():
        what = f"{percent(share)}: how much better Adaptive is than Uniform"
        yield section.ours(what, gain, "kappa 1, as the text has it")
        (ratio,) = parameters.column("of_uniform", data=data, share=share, kappa=2.0, decrease=0.2)
        yield section.ours(f"{what}, kappa 2", 1 - ratio, "adaptive-parameters.csv")
    less = sum(figure.of(data, s, ADAPTIVE) < 0.8 * figure.of(data, s, SKIP) for s in many)
    yield section.holds(
        "of 60 to 100 %: shares at which Adaptive is better than Skip by over 20 %",
        3,
        less,
        "figure-7.csv",
    )


def _ours(figure: _Figure7, neighbors: ResultTable) -> Iterator[Row]:
    section = Section("The best fixed split, and a bound on the number (ours)")
    for data, share in itertools.product((HUE, TDRIVE), INSIDE):
        for scheme in OURS:
            ratio = figure.of(data, share, scheme) / figure.of(data, share, UNIFORM)
            what = f"{data}, {percent(share)}: error of {scheme} as a part of Uniform's"
            how = "shows which are landmarks" if scheme == SPLIT else "any K + 1 readings"
            yield section.ours(what, ratio, how)
    section = Section("Neighbors that differ by what they can (ours)")
    for data, change in ((BOUNDED, "0 to 5 kWh"), (FARTHER, "200 m")):
        first, *_ = neighbors.where(data=data, share=0.2, scheme=UNIFORM, hidden=PLAIN)
        theirs = figure.of(HUE if data == BOUNDED else TDRIVE, 0.2, UNIFORM)
        what = f"20 %, Uniform: error for {change} as a multiple of that for 1"
        yield section.ours(what, first["error"] / theirs, "figure-7-neighbors.csv")
    for scheme in (EVENT, SKIP, UNIFORM, ADAPTIVE, SPLIT):
        first, *_ = neighbors.where(data=BOUNDED, share=0.2, scheme=scheme, hidden=PLAIN)
        what = f"HUE, 20 %, {scheme}: error when noise is put on the bounds 0 and 5, kWh"
        yield section.ours(what, first["clamped"], "always 0 is wrong by 0.88")


def _dummies(figure: _Figure7) -> Iterator[Row]:
    section = Section("Schemes with dummies (Section 4.3.3, Figure 7)")
    for data, scheme in itertools.product(NAMES, THEIRS):
        what = f"{data}, {scheme}: error with dummies over that without, at most, 20 to 80 %"
        yield section.ours(
            what,
            figure.worsened(data, scheme),
            "'a slight deterioration'; 1 % of epsilon, Euclidean score",
        )
    for data in (COPENHAGEN, TDRIVE):
        worse = sum(not figure.below(data, share, SKIP, USER) for share in SHARES[1:])
        what = f"{data}, of 20 to 100 %: shares at which Skip is no better than user level"
        yield section.fails(what, 5, worse, "at 20 and 40 % it is better")
    less = sum(
        figure.below(data, share, ADAPTIVE, USER)
        for data, share in itertools.product((HUE, TDRIVE), SHARES)
    )
    yield section.ours(
        "HUE and T-Drive, of 12 cases: Adaptive is better than user level", less, "'almost always'"
    )


def _ratios(table: ResultTable) -> Iterator[Row]:
    section = Section("Budget for selecting dummies (Section 4.3.2, Figure 11)")
    for score in SCORES:
        for data in NAMES:
            each = {
                share: {
                    r: table.column("error", data=data, share=share, score=score, ratio=r)[0]
                    for r in RATIOS
                }
                for share in INSIDE
            }
            if data == COPENHAGEN:
                ratio = max(max(errors.values()) / min(errors.values()) for errors in each.values())
                what = f"{data}, {score} score: greatest error over the least, 20 to 80 %"
                yield section.holds(what, 1, ratio, "'constant performance': all are coins", 0.03)
                continue
            best = sum(min(errors, key=errors.__getitem__) == RATIOS[0] for errors in each.values())
            what = f"{data}, {score} score, of 20 to 80 %: shares at which 1 % is the best"
            if score == "temporal":
                yield section.holds(what, 4, best, "sets do not shrink with epsilon")
            else:
                yield section.fails(what, 4, best, "more epsilon for selecting means fewer dummies")
    for score, ratio in itertools.product(SCORES, (RATIOS[0], RATIOS[-1])):
        (shown,) = table.column("shown", data=HUE, share=0.2, score=score, ratio=ratio)
        what = (
            f"HUE, 20 %, {score} score, {percent(ratio)}: share of regular moments shown to be that"
        )
        yield section.ours(what, shown, "share outside the selected set")
