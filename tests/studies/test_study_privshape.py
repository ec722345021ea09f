"""The study of shapes: a small one on made-up data, and the real one where data are."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tempriv.local.shapes.protocol import Shape
from tempriv.local.shapes.sax import Sax
from tempriv.studies import privshape
from tempriv.studies.privshape import data, experiment, tables, verdicts
from tempriv.studies.privshape.data import Labelled
from tempriv.studies.privshape.experiment import (
    AUTOMATIC,
    BASELINE,
    COMPARED,
    EPSILONS,
    FIGURE_9,
    FIGURE_11,
    FIRST,
    FULL,
    PUBLISHED,
    QUICK,
    RULES,
    VARIANTS,
    Judged,
    PrivShapeInputs,
    PrivShapeSize,
    apart,
    asked_levels,
    each_of,
    first_of_each,
    first_symbols,
    judged,
    mean_of,
    people_for,
    people_of,
    plan_for,
    tied,
)
from tempriv.studies.privshape.figures import PICTURES
from tests.support.reproducing import run
from tests.support.stand_ins import shape_tasks
from tests.support.statistics import COMPILED

SMALL = PrivShapeSize(
    runs=2, slow=1, others=1, swept=1, perturbed=60, trees=2, shaped=40, fine=False
)
TABLES = {
    *("data", "figure-9", "figure-11", "figure-12", "figures-13-14", "figure-15", "figures-16-17"),
    *("figure-18", "table-3", "table-4", "table-5", "theorem-4", "ties", "users"),
}


@pytest.fixture(scope="module")
def inputs():
    """Of Symbols three classes only: which of 18 candidates to keep takes a tenth of a second."""
    symbols, trace = shape_tasks(people=600, tested=60)
    some = (part.take(part.labels <= 3) for part in (symbols.train, symbols.test))
    return PrivShapeInputs(
        replace(symbols, **dict(zip(("train", "test"), some, strict=True))), trace
    )


@pytest.fixture(scope="module")
def made(inputs):
    if not COMPILED:
        pytest.skip("hundreds of campaigns: too long as plain Python")
    with pytest.MonkeyPatch.context() as patch:
        # to ask for whole sequences takes half a second each time
        patch.setitem(experiment.METHODS, AUTOMATIC, "nearest")
        for name in ("T_SYMBOLS", "W_SYMBOLS", "T_TRACE", "W_TRACE"):
            patch.setattr(tables, name, getattr(tables, name)[:2])
        return privshape.STUDY.run(inputs, SMALL)


def waves_people():
    series = data.waves(200, people=20_000)
    some = Labelled(series.series[:100], series.labels[:100])
    return people_of(series, some, Sax(symbols=4, segment=10, longest=10))


# runs


def test_people_are_counted_by_sequence_and_label(inputs):
    people = people_for(inputs.trace)
    assert people.size == 600 and people.names == ("1", "2", "4")
    pairs = list(zip(people.texts, people.labels, strict=True))
    assert len(set(pairs)) == len(pairs)
    found = data.shapes_of(inputs.trace)
    assert people.modes == tuple(found.modes.values())
    for j, label in enumerate(inputs.trace.classes):
        own = people.counts[np.array(people.labels) == j].sum()
        assert own == np.sum(inputs.trace.train.labels == label)


def test_shapes_are_judged_by_their_labels_and_by_the_modes():
    people = waves_people()
    plan = plan_for(people, PUBLISHED, 4.0, "levenshtein", True)
    sine, cosine = people.modes

    def judge(*shapes):
        return judged(people, plan, [Shape(*one) for one in shapes])

    right = ((sine, 9.0, 1.0, "0"), (cosine, 8.0, 1.0, "1"))
    assert judge(*right) == Judged(1.0, 1.0)
    assert judge((sine, 9.0, 1.0, "1"), (cosine, 8.0, 1.0, "0")) == Judged(0.0, 0.0)
    assert judge((sine, 9.0, 1.0, "0"), (sine, 8.0, 1.0, "1")) == Judged(0.5, 0.5)
    # a beginning only is no mode, nor is one that is second to another shape of its label
    assert judge((sine, 9.0, 1.0, "0", False), right[1]).recovered == 0.5
    assert judge(*right, ("a", 10.0, 1.0, "1")).recovered == 0.5
    assert first_of_each(people, [Shape("a", 1.0, 1.0, "1")])[0] is None


def test_clusters_are_judged_without_labels():
    people = waves_people()
    plan = plan_for(people, PUBLISHED, 4.0, "dtw", False)
    found = judged(people, plan, [Shape(mode, 1.0, 1.0) for mode in people.modes])
    assert found == Judged(1.0, 1.0)
    assert judged(people, plan, [Shape(people.modes[0], 1.0, 1.0)]) == Judged(0.0, 0.5)


def test_waves_are_told_apart():
    """Every sine is the same, so 20,000 people at epsilon 4 leave hardly any doubt."""
    people = waves_people()
    for name in (PUBLISHED, "nearest"):
        found = each_of(people, {name: 2}, 4.0, "levenshtein", True)[name]
        assert found.score == 1.0 and found.runs == 2


def test_means_have_standard_errors():
    found = mean_of([Judged(0.0, 1.0), Judged(1.0, 1.0)])
    assert found.line == (0.5, 0.5, 1.0, 0.0, 2)
    assert np.isnan(mean_of([Judged(1.0, 1.0)]).score_error)


def test_the_first_symbol_alone_is_what_it_is_without_noise(inputs):
    people = first_symbols(inputs.trace)
    assert max(map(len, people.texts)) == 1
    found = each_of(people, {FIRST: 1}, 8.0, "levenshtein", True)[FIRST]
    assert found.score == data.shapes_of(inputs.trace).first_symbol


def test_rules_for_ties_choose_among_the_nearest_only():
    """Of the two waves "cdcbab" and "dcbabcd" the first is one edit from each of two shapes."""
    people = waves_people()
    shapes = [
        Shape("cdcba", 5.0, 1.0, "1"),
        Shape("dcdcbab", 9.0, 1.0, "0"),
        Shape("dcbabcd", 1.0, 1.0, "1"),
    ]
    found, share = tied(people, shapes, "levenshtein", 0)
    assert share == 0.5
    # 2.0 and 2.6 in their places; the second is more frequent; half of the series are sines
    assert found["by place"] == found["first"] == 0.5
    assert found["most frequent"] == 1.0
    assert 0.5 < found["at random"] < 1.0
    plan = plan_for(people, PUBLISHED, 4.0, "levenshtein", True)
    for some in (shapes, shapes[::-1], [replace(one, count=-one.count) for one in shapes]):
        assert judged(people, plan, some).score == tied(people, some, plan.distance, 0)[0][RULES[0]]


def test_the_paper_s_epsilons_and_some_of_them():
    assert len(FIGURE_9) == 12 and FIGURE_9[-1] == 10  # 0.1, 0.5, 1, 2, ..., 10
    assert len(FIGURE_11) == 17 and FIGURE_11[3] == 1.5 and FIGURE_11[-1] == 8
    assert FULL.epsilons(FIGURE_11) == FIGURE_11
    assert QUICK.epsilons(FIGURE_9) == QUICK.epsilons(FIGURE_11) == (0.1, *EPSILONS, 8.0)
    assert [FULL.runs_at(one, slow) for one in (1.0, 3.0) for slow in (True, False)] == [
        *(40, 40),
        *(FULL.others, FULL.others),
    ]


def test_distances_are_those_of_the_nearest_shape():
    people = waves_people()
    assert people.modes == ("cdcbab", "dcbabcd")
    found = apart(people, ["dcbabcd", "cdcba"], "levenshtein")
    assert [one[0] for one in found] == ["cdcba", "dcbabcd"]
    assert found[0][2] == 1.0 and found[1][1:] == (0.0, 0.0, 0.0)


def test_levels_have_no_more_candidates_than_the_tree(inputs):
    people = people_for(inputs.trace)
    for name, most in ((BASELINE, lambda n: 4 * 3 ** (n - 1)), (PUBLISHED, lambda n: 27)):
        plan = plan_for(people, name, 4.0, "levenshtein", True)
        found = asked_levels(people, plan, 1)
        assert [level for level, _ in found] == list(range(1, len(found) + 1))
        assert found[0] == (1, 4)
        assert all(many <= most(level) for level, many in found)


# the whole


def test_every_figure_has_its_table(made):
    assert set(made.tables) == TABLES
    for name, table in made.tables.items():
        assert len(table.lines) > 0
        assert all(len(line) == len(table.columns) for line in table.lines), name
    for epsilon in EPSILONS:
        methods = made.tables["figure-11"].column("method", epsilon=epsilon)
        assert methods == [*COMPARED, FIRST, *VARIANTS]
        assert made.tables["figure-9"].column("method", epsilon=epsilon) == methods
        assert made.tables["ties"].column("rule", epsilon=epsilon) == list(RULES)
    assert set(made.tables["figure-12"].column("method")) == {*COMPARED, *VARIANTS}
    assert {line["points"] for line in made.tables["figures-16-17"].where()} == set(
        data.WAVE_LENGTHS
    )
    assert {line["distance"] for line in made.tables["figure-15"].where()} == set(tables.KINDS)


def test_statements_are_different_and_those_without_data_as_said(made):
    rows = {(row.section, row.what): row for row in made.rows}
    assert len(rows) == len(made.rows) > 60
    for row in made.rows:
        if "Theorem" in row.section or "Sines" in row.section:
            assert row.is_confirmed, row


def test_the_files_and_pictures_come_out(made, tmp_path):
    # to lay out and paint all of them takes many seconds
    study = replace(privshape.STUDY, pictures={"ties": PICTURES["ties"]})
    written = study.write(tmp_path / "new", made)
    assert {path.name for path in written} == {
        *("privshape.csv", "privshape.md", "ties.png"),
        *(f"{name}.csv" for name in TABLES),
    }
    assert all(path.stat().st_size > 100 for path in written)
    assert "protects nobody" in (tmp_path / "new" / "privshape.md").read_text()


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_shows_something(made, name):
    figure = PICTURES[name](made.tables)
    assert figure.axes and all(axis.lines or axis.patches for axis in figure.axes)


# the command


def test_the_command_says_what_it_needs(tmp_path):
    for arguments, words in (
        (["privshape"], "privshape: needs --data, a folder that holds ucr/Symbols.csv"),
        (["privshape", "--data", str(tmp_path)], "Symbols.csv: no such file; give --data"),
    ):
        done = run(*arguments)
        assert done.returncode == 2 and words in done.stderr and not done.stdout


DATA = pytest.mark.skipif(
    "TEMPRIV_DATA" not in os.environ, reason="TEMPRIV_DATA names no folder of data"
)


@DATA
@pytest.mark.skipif(not COMPILED, reason="hours as plain Python")
@pytest.mark.long
def test_the_real_study_is_as_said(tmp_path):
    folder = Path(os.environ["TEMPRIV_DATA"])
    done = run("privshape", "--data", str(folder), "--output", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) > 60
    assert (tmp_path / "figure-11.png").exists()


@DATA
@pytest.mark.skipif(not COMPILED, reason="campaigns among 39,000 people")
def test_on_trace_our_shapes_are_those_of_the_classes_and_the_published_ones_are_not():
    """Ours recovers nearly all modes at epsilon 2 in each of three runs, PrivShape 0.6 of them.

    It is not less accurate, and PrivShape is as accurate as another program on the authors' series.
    """
    trace = data.read(Path(os.environ["TEMPRIV_DATA"]))[1]
    people = people_for(data.trace(trace))
    ours = each_of(people, {AUTOMATIC: 3}, 2.0, "levenshtein", True)[AUTOMATIC]
    published = each_of(people, {PUBLISHED: 20}, 2.0, "levenshtein", True)[PUBLISHED]
    assert ours.recovered > published.recovered + 0.2
    assert ours.score > published.score
    known = verdicts.KNOWN[2.0]
    assert abs(published.score - known) < 3 * np.hypot(published.score_error, verdicts.KNOWN_ERROR)
