"""What a release answers, what its owner learns, and that no answer depends on private data."""

from __future__ import annotations

import itertools
import json
import math
import stat
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import tempriv as tp
from tempriv.audit.attacks.value import most_success
from tempriv.errors import UsageError
from tempriv.privacy.guarantees import Approximate, Concentrated, Pure, guess_cap
from tempriv.releases.description import sidecar_path
from tempriv.releases.evidence import STATEMENTS, check_statements, read_statements, template
from tempriv.releases.owner_file import LinkageTrial, owner_evidence_path
from tempriv.releases.run import ReleaseRun
from tempriv.releases.to_file import release_file
from tempriv.releases.verify import verify
from tests.conformance.cases import NAMED

LAPLACE = tp.Laplace(epsilon=1.0, bounds=(0, 5))


def table(values, series=20):
    """Some series of readings, one after the other."""
    steps = len(values) // series
    ids = np.repeat([f"s{i:02}" for i in range(series)], steps)
    return pa.table({"id": ids, "t": list(range(steps)) * series, "v": np.asarray(values, float)})


def to_file(data, output, mechanism=LAPLACE, **more):
    layout = {"time": "t", "series": "id"}
    run = ReleaseRun(tp.SeriesTable(data, values=("v",), **layout), mechanism)
    return release_file(run, output, **more)


def leaves(answers):
    """Every answer, at whatever depth."""
    if isinstance(answers, list):
        return [leaf for one in answers for leaf in leaves(one)]
    if isinstance(answers, dict) and "source" not in answers:
        return [leaf for one in answers.values() for leaf in leaves(one)]
    return [answers]


# the questions


def test_the_registry_is_complete_up_to_its_third_tier():
    about = tp.release(np.ones(6), LAPLACE).about
    assert about["format"] == 2
    registry = about["evidence"]["registry"]
    assert [set(registry[f"tier_{i}"]) for i in (1, 2, 3)] == [
        {"curator", "intended_use", "data_product", "publication_date"},
        {"flavor", "privacy_unit", "privacy_loss", "deployment_model"},
        {
            *("data_domain", "unprotected_quantities", "privacy_unit_in_detail"),
            *("post_processing", "composition", "implementation", "security", "rationale"),
            *("contact", "license"),
        },
    ]
    assert registry["tier_2"]["privacy_loss"]["answer"] == {"epsilon": 1.0}
    assert registry["tier_3"]["data_domain"]["answer"] == "numbers: value from 0 to 5"


def test_every_answer_says_where_it_comes_from():
    stated = {name: f"our {name}" for name in STATEMENTS}
    for given in ({}, stated):
        evidence = tp.release(np.ones(6), LAPLACE, statements=given).about["evidence"]
        parts = [evidence[name] for name in ("registry", "nist_sp_800_226", "gdpr")]
        for answer in leaves(parts):
            assert answer["source"] in ("release", "theory", "curator", "not stated")
            assert (answer["answer"] is None) == (answer["source"] == "not stated")
        said = json.dumps(parts)
        assert all((f"our {name}" in said) == bool(given) for name in STATEMENTS)


def some_table(mechanism, readings):
    """Readings of a case as a table; names of categories by their numbers."""
    columns = {f"c{i}": readings[:, i].tolist() for i in range(readings.shape[1])}
    for name, known in zip(columns, mechanism.domain.categories or (), strict=False):
        columns[name] = [known[int(max(0, one)) % len(known)] for one in columns[name]]
    return pa.table(columns)


def test_every_mechanism_has_evidence_that_verifies(tmp_path):
    """What is written is computed again, and no sound value lies beyond the reach of noise."""
    released, reached = Counter(), set()
    for name, case in NAMED.items():
        kind = type(case.mechanism).__name__
        if released[kind]:
            continue
        rng = np.random.default_rng(1)
        try:
            table = some_table(case.mechanism, case.readings(rng, 12))
            clip = case.mechanism.domain.bounds is not None
            release = tp.release(table, case.mechanism, values=table.column_names, clip=clip)
        except tp.TemprivError:
            continue  # it takes another table
        path = release.write(tmp_path / "out.csv", force=True)
        checks = {check.what: check for check in verify(path)}
        assert checks["the evidence follows from the description"].state == "ok", name
        reach = checks.get("no value lies beyond what noise reaches")
        assert reach is None or not reach.wrong, (name, reach.found)
        released[kind] += 1
        reached |= {kind} if reach is not None and reach.good else set()
    assert len(released) > 12
    assert {"Laplace", "Gaussian"} <= reached


def test_statements_are_known_and_are_texts(tmp_path):
    with pytest.raises(UsageError, match=r"phone: not a statement .* one of curator, contact"):
        tp.release(np.ones(6), LAPLACE, statements={"phone": "7"})
    with pytest.raises(UsageError, match="must be a text of 1 to"):
        check_statements({"contact": "x" * 5000})
    with pytest.raises(UsageError, match="must be a text"):
        check_statements({"contact": "bell \x07"})
    filled = template()
    (tmp_path / "about.toml").write_text(
        "\n".join(
            line.removeprefix("# ").replace('""', '"said"') if " = " in line else line
            for line in filled.splitlines()
        )
    )
    assert read_statements(tmp_path / "about.toml") == dict.fromkeys(STATEMENTS, "said")


# caps


def guesses(loss, candidates, outputs):
    """The best share of right guesses that some output distributions within a loss allow."""
    rng = np.random.default_rng(7)
    best = 0.0
    for _ in range(300):
        base = rng.dirichlet(np.ones(outputs))
        rows = []
        for _ in range(candidates):
            tilt = rng.choice([1.0, math.exp(loss.epsilon)], size=outputs)
            rows.append(base * tilt / (base * tilt).sum())
        rows = np.array(rows)
        ratio = (rows[:, None] / rows[None]).max()
        if ratio <= math.exp(loss.epsilon):
            best = max(best, rows.max(axis=0).sum() / candidates)
    return best


@pytest.mark.parametrize(("epsilon", "candidates"), [(0.5, 2), (1.0, 3), (2.0, 5)])
def test_no_guess_is_better_than_its_cap_and_some_reaches_it(epsilon, candidates):
    loss = Pure(epsilon)
    cap = guess_cap(loss, candidates)
    assert guesses(loss, candidates, 8) <= cap + 1e-12
    # randomized response over as many answers as candidates
    keep = math.exp(epsilon) / (math.exp(epsilon) + candidates - 1)
    assert cap == pytest.approx(keep)
    # and, with probability delta, the truth itself
    both = guess_cap(Approximate(epsilon, 0.01), candidates)
    assert both == pytest.approx(keep + 0.01 * (1 - keep))


def test_caps_are_those_of_attacks_for_two_candidates():
    for loss in (Pure(0.3), Approximate(1.0, 1e-3), Concentrated(0.02), Concentrated(2.0)):
        assert guess_cap(loss) == most_success(loss)
        caps = [guess_cap(loss, k) for k in (2, 3, 10, 1000)]
        assert caps == sorted(caps, reverse=True)


def test_the_whole_series_is_capped_beside_the_unit():
    """A unit of one reading says little about who a series belongs to, and that is told."""
    data = table(np.zeros(20 * 24), 20)
    gdpr = tp.release(data, LAPLACE, values="v", time="t", series="id").about["evidence"]["gdpr"]
    unit, whole = gdpr["singling_out"]
    assert (unit["cap"], whole["cap"]) == (0.7311, 1.0)
    assert "This rules nothing out" in whole["answer"]
    linked, ids = gdpr["linkability"]
    assert (linked["candidates"], linked["chance"], linked["cap"]) == (20, 0.05, 1.0)
    assert "published as they are" in ids["answer"]
    strong = tp.Laplace(epsilon=0.1, bounds=(0, 5), unit=tp.WholeSeries(24))
    about = tp.release(data, strong, values="v", time="t", series="id", pseudonyms=True).about
    linked, ids = about["evidence"]["gdpr"]["linkability"]
    # two series trade places: epsilon 0.2 among 20
    assert linked["cap"] == pytest.approx(math.exp(0.2) / (math.exp(0.2) + 19), abs=1e-4)
    assert linked["cap"] >= math.exp(0.2) / (math.exp(0.2) + 19)
    assert "nobody without the key" in ids["answer"]


def test_nothing_is_capped_where_nothing_is_guaranteed():
    about = tp.release(np.ones(6), LAPLACE, key=tp.Key.from_seed(1)).about
    found = about["evidence"]["gdpr"]["singling_out"][0]
    assert found["cap"] is None and "no cap follows" in found["answer"]
    order = tp.BlockShuffle(epsilon=1.0, block=4)
    inference = tp.release(np.arange(8.0), order).about["evidence"]["gdpr"]["inference"][0]
    assert inference["cap"] is None


# the owner's file


def test_descriptions_do_not_depend_on_the_readings(tmp_path):
    """Two tables of one shape, one key each from the same seed: equal but for the values."""
    found = []
    for name, data in (("a", np.zeros(480)), ("b", np.linspace(0, 5, 480))):
        run = ReleaseRun(
            tp.SeriesTable(table(data), values=("v",), time="t", series="id"),
            LAPLACE,
            tp.Key.from_seed(3),
        )
        (tmp_path / name).mkdir()
        about = release_file(run, tmp_path / name / "out.csv")
        for changing in ("output", "created"):
            about.pop(changing)
        found.append(about)
    assert found[0] == found[1]
    kept = [(tmp_path / name / "out.csv.owner.json").read_bytes() for name in "ab"]
    assert kept[0] != kept[1], "this is where the readings show"


def test_what_an_attack_reaches_is_for_the_owner_alone(tmp_path):
    rng = np.random.default_rng(5)
    data = table(rng.uniform(0, 5, 50 * 200), 50)
    output = tmp_path / "out.csv"
    about = to_file(data, output, tp.Laplace(epsilon=8.0, bounds=(0, 5)))
    path = owner_evidence_path(output)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = json.loads(path.read_text())
    found = kept["linkage"]
    assert kept["release"] == about["release"] and "not to be handed out" in kept["private"]
    assert found["found_first"] > 0.9 and found["chance_first"] == 0.02
    public = output.read_text() + sidecar_path(output).read_text()
    assert "found_first" not in public
    # whole series protected: no better than chance, with 50 of them looked for
    to_file(
        data, output, tp.Laplace(epsilon=0.1, bounds=(0, 5), unit=tp.WholeSeries(200)), force=True
    )
    found = json.loads(path.read_text())["linkage"]
    # alpha 1e-4 at the cap of about 2.5 %: 8 of 50 would be more
    assert found["found_first"] < 8 / 50
    with pytest.raises(tp.TemprivError, match="exists already, from another release"):
        output.unlink()
        to_file(data, output)


@pytest.mark.parametrize(
    ("data", "mechanism"),
    [
        (table(np.zeros(24), 1), LAPLACE),  # one series
        (table(np.arange(40.0), 2), tp.BlockShuffle(epsilon=1.0, block=4)),
        (table(np.zeros(40), 2), tp.RunningCount(epsilon=1.0, bounds=(0, 5))),
    ],
    ids=["one series", "moved rows", "running counts"],
)
def test_nothing_is_measured_where_there_are_no_copies_to_tell_apart(data, mechanism, tmp_path):
    to_file(data, tmp_path / "out.csv", mechanism)
    assert not owner_evidence_path(tmp_path / "out.csv").exists()


def test_an_older_measurement_does_not_stand_beside_a_new_release(tmp_path):
    output = tmp_path / "out.csv"
    to_file(table(np.zeros(40), 2), output)
    assert owner_evidence_path(output).exists()
    to_file(table(np.zeros(40), 1), output, force=True)
    assert not owner_evidence_path(output).exists()


def test_blocks_of_any_size_give_the_same_measurement():
    rng = np.random.default_rng(8)
    private, noise = rng.uniform(0, 5, (6, 40, 1)), rng.laplace(0, 1, (6, 40, 1))
    private[2, 5] = np.nan
    from tempriv.data.series import Block

    def block(values, ids, start):
        rows = values.reshape(-1, 1)
        count = np.full(len(ids), values.shape[1])
        return Block(np.nan_to_num(rows), np.isnan(rows), ids, count, np.full(len(ids), start))

    found = []
    for cuts in ((0, 40), (0, 7, 8, 40)):
        trial = LinkageTrial([5.0])
        for low, high in itertools.pairwise(cuts):
            ids = tuple("abcdef")
            blocks = [block(each[:, low:high], ids, low) for each in (private, private + noise)]
            trial.watch(*blocks)
        found.append(trial.found())
    assert found[0] == found[1]
    assert found[0]["found_first"] > 1 / 6
