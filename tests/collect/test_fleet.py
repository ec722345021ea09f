"""A fleet of made-up devices: the same bits however they are sent, whatever fails on the way."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime

import httpx
import msgspec
import numpy as np
import pytest

from tempriv import Laplace
from tempriv.collect.protocol.assignment import assignment_hash, in_range
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.frequency import FrequencyCampaignPlan
from tempriv.collect.protocol.kinds.stream import StreamCampaignPlan, StreamState
from tempriv.collect.protocol.kinds.upload import UploadCampaignPlan
from tempriv.collect.protocol.simulated import POOL_SERIES, falling_weights
from tempriv.collect.server.results import result_of
from tempriv.collect.server.tokens import digest_of
from tempriv.collect.simulation.faults import DELAY_BATCHES, REORDER_BATCHES, Faults
from tempriv.collect.simulation.fleet import (
    Fleet,
    FleetAnswers,
    cut,
    keep_fleet,
    open_fleet,
    replayed,
)
from tempriv.collect.simulation.traffic import Traffic, _bounded_calls
from tempriv.errors import StateError, TemprivError, UsageError
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.sax import Sax
from tempriv.sampling.keys import EPOCH
from tests.support.collecting import categories, serving, shapes, stream, upload

BEGUN = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
SEED = 20_260_302


def campaign_of(kind, plan):
    return Campaign.begin(kind, "Trial", "What?", plan, now=BEGUN, nonce="5" * 32)


def about_category(oracle, size=6, people=1000):
    names = tuple(f"c{i}" for i in range(size))
    return campaign_of(
        "frequency",
        FrequencyCampaignPlan(epsilon=1.0, people=people, categories=names, oracle=oracle),
    )


def about_shapes(method, labels=(), people=1000):
    sax = Sax(symbols=3, segment=4, longest=4)
    plan = ShapesPlan(epsilon=2.0, shapes=2, people=people, sax=sax, method=method, labels=labels)
    return campaign_of("shapes", plan)


def about_stream(method="LBU", people=1000):
    plan = StreamCampaignPlan(
        epsilon=1.0,
        people=people,
        categories=("in", "out", "off"),
        method=method,
        window=3,
        every=60.0,
        steps=6,
    )
    return campaign_of("stream", plan)


def about_upload(people=1000):
    mechanism = Laplace(epsilon=1.0, bounds=(0, 5))
    return campaign_of(
        "upload", UploadCampaignPlan(epsilon=1.0, people=people, mechanism=mechanism, readings=6)
    )


CAMPAIGNS = {
    **{oracle: about_category(oracle) for oracle in ("grr", "oue", "olh", "hadamard")},
    **{method: about_shapes(method) for method in ("one-shot", "nearest", "published")},
    "labels": about_shapes("nearest", ("x", "y")),
    "stream": about_stream(),
    "upload": about_upload(),
}


def questions(campaign, fleet):
    """Every question of a campaign, as it is when all devices answer."""
    found = []
    run = campaign.start()
    found.append(run.question)
    replayed(fleet, campaign, seen=lambda run: found.append(run.question))
    return [asked for asked in found if asked is not None]


# devices


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_any_cutting_and_any_choice_of_devices_gives_the_same_bits(name):
    campaign = CAMPAIGNS[name]
    fleet = Fleet.from_seed(SEED, devices=300, first=EPOCH - 150)  # over the end of a link
    numbers = np.concatenate([*fleet.blocks()])
    some = numbers[[0, 7, 8, 149, 150, 151, 299]]
    for asked in questions(campaign, fleet):
        answers = FleetAnswers(fleet, campaign, asked.id, asked.body)
        whole = answers.rows(numbers)
        assert whole.shape == (300, asked.answer_bytes)
        parts = [
            FleetAnswers(fleet, campaign, asked.id, asked.body).rows(one)
            for one in cut(fleet.blocks(), 7)
        ]
        assert np.array_equal(np.concatenate(parts), whole)
        assert np.array_equal(answers.rows(some), whole[some - numbers[0]])
        assert np.array_equal(
            Fleet.from_seed(SEED).secrets(some), fleet.secrets(numbers)[some - numbers[0]]
        )
        assert asked.fits(whole[:, -asked.report_bytes :]).all()
        assert (whole[:, : len(asked.head)] == np.frombuffer(asked.head, np.uint8)).all()
        tokens = whole[:, len(asked.head) : len(asked.head) + 16]
        assert len({row.tobytes() for row in tokens}) == 300


def test_devices_questions_and_fleets_have_noise_of_their_own():
    campaign, numbers = about_category("oue", size=64), np.arange(1, 200)
    asked = campaign.start().question
    rows = FleetAnswers(Fleet.from_seed(1), campaign, asked.id, asked.body).reports(numbers)
    other = FleetAnswers(Fleet.from_seed(2), campaign, asked.id, asked.body).reports(numbers)
    later = FleetAnswers(Fleet.from_seed(1), campaign, f"{campaign.id}/1", asked.body).reports(
        numbers
    )
    assert len({row.tobytes() for row in rows}) == len(numbers)
    assert (rows != other).any(axis=1).all() and (rows != later).any(axis=1).all()


def test_secrets_are_their_own_and_a_server_is_told_digests():
    fleet, numbers = Fleet.from_seed(SEED), np.array([3, 70_000, 2_000_000])
    secrets = fleet.secrets(numbers)
    assert len({row.tobytes() for row in secrets}) == 3
    assert fleet.digests(numbers) == [digest_of(row.tobytes()).hex() for row in secrets]
    assert not np.array_equal(secrets, Fleet.from_seed(SEED + 1).secrets(numbers))


def test_what_devices_hold_is_spread_as_it_is_meant_to_be():
    """A million draws: a share is within 5 standard deviations but for a chance below 1e-6 each."""
    fleet = Fleet.from_seed(SEED, devices=1 << 20)
    counts = np.zeros(POOL_SERIES)
    for numbers in fleet.blocks():
        assert len(numbers) <= EPOCH
        counts += np.bincount(
            fleet.choices("series", falling_weights(POOL_SERIES), numbers), minlength=POOL_SERIES
        )
    share = falling_weights(POOL_SERIES) / falling_weights(POOL_SERIES).sum()
    many = 1 << 20
    assert (np.abs(counts - many * share) < 5 * np.sqrt(many * share * (1 - share))).all()


def test_estimates_find_what_devices_hold():
    """By a seed, so this is no chance; within 5 standard errors."""
    for oracle in ("grr", "oue", "olh", "hadamard"):
        campaign = about_category(oracle, people=20_000)
        run = replayed(Fleet.from_seed(SEED, devices=20_000), campaign)
        rows = campaign.definition.result(run, [])["categories"]
        true = 20_000 * falling_weights(6) / falling_weights(6).sum()
        for row, count in zip(rows, true, strict=True):
            assert abs(row["count"] - count) < 5 * (row["standard_error"] + np.sqrt(count))


def test_ranges_join_and_rise():
    fleet = Fleet.from_seed(1, devices=10)
    fleet.add(11, 5)
    fleet.add(100, 5)
    assert fleet.ranges == [(1, 15), (100, 5)] and len(fleet) == 20
    assert fleet.first(17).ranges == [(1, 15), (100, 2)] and fleet.first(3).ranges == [(1, 3)]
    with pytest.raises(UsageError, match="must come after"):
        fleet.add(50, 1)


def test_a_fleet_is_the_same_after_a_restart(tmp_path):
    path, server = tmp_path / "fleet.json", "http://127.0.0.1:8000"
    fleet = open_fleet(path, server, None)
    fleet.add(1, 10)
    keep_fleet(path, server, fleet)
    assert path.stat().st_mode & 0o777 == 0o600
    again, numbers = open_fleet(path, server, None), np.arange(1, 5)
    assert np.array_equal(again.secrets(numbers), fleet.secrets(numbers)) and len(again) == 10
    with pytest.raises(StateError, match="of the server"):
        open_fleet(path, "http://127.0.0.1:9", None)
    with pytest.raises(StateError, match="another seed"):
        open_fleet(path, server, 5)
    for damage in (b"", b"{}", b"[]", path.read_bytes().replace(b"10", b"-1")):
        path.write_bytes(damage)
        with pytest.raises(StateError, match="damaged"):
            open_fleet(path, server, None)


def test_a_fleet_that_is_stopped_while_it_enrols_knows_its_devices(service, tmp_path, monkeypatch):
    monkeypatch.setattr("tempriv.collect.simulation.traffic.DEVICE_BATCH", 100)
    path, server = tmp_path / "fleet.json", "http://testserver"
    token = service.admin["authorization"].removeprefix("Bearer ")
    fleet, kept = open_fleet(path, server, None), []

    def keep(made):
        keep_fleet(path, server, made)
        kept.append((len(made), service.get("/v1/fleet")["enrolled"]))
        if len(made) == 200:
            raise KeyboardInterrupt

    traffic = Traffic(fleet, server, token, connections=1, http=service.http)
    with pytest.raises(KeyboardInterrupt):
        traffic.enroll(350, keep)
    assert kept == [(0, 0), (100, 100), (200, 200)]
    again = open_fleet(path, server, None)
    numbers = np.concatenate([*again.blocks()])
    assert len(again) == 200 and np.array_equal(again.secrets(numbers), fleet.secrets(numbers))


def test_a_seed_that_could_not_be_read_again_is_refused(tmp_path):
    with pytest.raises(UsageError, match="seed"):
        open_fleet(tmp_path / "fleet.json", "x", (1 << 128) + 1)


# faults


def test_faults_follow_from_the_seed_and_happen_as_often_as_they_should():
    faults = Faults(seed=SEED, loss=0.1, duplicate=0.2, gone=0.05)
    fates = [faults.fate("q", batch, 0) for batch in range(5000)]
    assert fates == [faults.fate("q", batch, 0) for batch in range(5000)]
    assert fates != [Faults(seed=1, loss=0.1, duplicate=0.2).fate("q", b, 0) for b in range(5000)]
    lost = sum(one.lost_there for one in fates), sum(one.lost_back for one in fates)
    twice = sum(one.copies == 2 for one in fates)
    # binomials of 5000: 5 standard deviations, a chance below 1e-6 each, if there were no seed
    assert all(abs(one - 500) < 107 for one in lost) and abs(twice - 1000) < 142
    gone = faults.gone_of(np.arange(1, 100_001))
    assert abs(gone.sum() - 5000) < 345
    assert np.array_equal(gone[500:600], faults.gone_of(np.arange(501, 601)))
    assert not Faults().gone_of(np.arange(1000)).any()


@pytest.mark.parametrize(
    "on", [{}, {"reorder": True}, {"delay": True}, {"reorder": True, "delay": True}]
)
def test_every_batch_leaves_once_and_few_wait_at_a_time(on):
    taken = [0]

    def parcels():
        for i in range(3000):
            taken[0] = i
            yield i

    left, most = [], 0
    for one in Faults(seed=3, **on).in_order("q", parcels()):
        most = max(most, taken[0] - one)
        left.append(one)
    assert sorted(left) == list(range(3000))
    assert (left == list(range(3000))) == (not on)
    assert most <= 1 + (REORDER_BATCHES if on.get("reorder") else 0) + (
        DELAY_BATCHES if on.get("delay") else 0
    )


def test_parts_are_parts():
    for wrong in ({"loss": 1.0}, {"gone": -0.1}, {"duplicate": 2.0}):
        with pytest.raises(UsageError, match="must be a part"):
            Faults(**wrong)
    assert Faults(loss=0.01, reorder=True).sentence == "loss 0.01, reorder"
    assert Faults().sentence == "none"


def test_only_a_few_requests_are_ahead():
    class Pool:
        def submit(self, call, parcel):
            started.append(parcel)
            return parcel

    started = []
    ahead = _bounded_calls(Pool(), None, iter(range(100)), 8)
    for i, (parcel, _) in enumerate(ahead):
        assert parcel == i and len(started) <= i + 8


# a real server in this process


@pytest.fixture
def service(tmp_path):
    with serving(tmp_path) as found:
        yield found


def begin(service, given):
    """With an id that is the same each time, so that faults and lots are, too."""
    return service.begin(given | {"nonce": "7" * 32})["id"]


def traffic_to(service, faults=None, batch=64, devices=600, **given):
    token = service.admin["authorization"].removeprefix("Bearer ")
    traffic = Traffic(
        Fleet.from_seed(SEED),
        "http://testserver",
        token,
        faults=faults,
        batch=batch,
        connections=1,
        http=service.http,
        wait=lambda seconds: service.tick(60.0),
        **given,
    )
    traffic.enroll(devices)
    return traffic


BAD = Faults(seed=5, loss=0.2, duplicate=0.2, reorder=True, delay=True)
ASKED = {
    "frequency": lambda: categories(600),
    "shapes": lambda: shapes(600, method="nearest"),
    "published": lambda: shapes(600, method="published"),
    "upload": lambda: upload(600),
}


@pytest.mark.parametrize("faults", [Faults(), BAD], ids=["fine", "bad"])
@pytest.mark.parametrize("kind", ASKED)
def test_over_any_network_a_server_finds_what_the_devices_find_without_one(service, kind, faults):
    traffic = traffic_to(service, faults, batch=50)
    name = begin(service, ASKED[kind]())
    summary = traffic.run(name)
    told = service.get(f"/v1/campaigns/{name}/result")
    campaign = Campaign.from_dict(told["spec"])
    run = replayed(traffic.fleet, campaign)
    expected = json.loads(json.dumps(result_of(campaign, run, [], told["finished_at"])))
    for one in (told, expected):
        one.pop("created", None)
    assert told == expected
    asked = summary.total("taken") + summary.total("there_already")
    assert summary.total("late") == summary.total("refused") == summary.total("unsent") == 0
    assert asked == told["people"] > 500
    assert (summary.total("there_already") > 0) == (faults is BAD)
    if kind == "upload":
        sent = {int(n): row for n, row in uploads(service, name)}
        answers = FleetAnswers(traffic.fleet, campaign, f"{name}/0", campaign.start().question.body)
        numbers = np.array(sorted(sent))
        rows = answers.reports(numbers)
        assert all(sent[n] == row.tobytes() for n, row in zip(numbers.tolist(), rows, strict=True))


def uploads(service, name):
    from tempriv.collect.server.views import uploads_of

    with service.collection.store.reading() as db:
        return uploads_of(db, name)


@pytest.mark.parametrize("method", ["LBU", "LSP", "LBA", "LPU", "LPA"])
def test_a_stream_is_followed_step_by_step(service, method):
    traffic = traffic_to(service, BAD, devices=300)
    name = begin(service, stream(250, method=method, steps=6, window=2))
    service.tick()
    summary = traffic.run(name)
    told = service.get(f"/v1/campaigns/{name}/result")
    campaign = Campaign.from_dict(told["spec"])
    shares = {}

    def seen(run):
        assert isinstance(run, StreamState)
        if run.protocol.question is None:
            shares[run.protocol.step] = list(run.protocol.release)

    replayed(traffic.fleet, campaign, seen=seen)
    assert [one["step"] for one in told["steps"]] == list(range(6))
    assert {one["step"]: one["shares"] for one in told["steps"] if one["step"] in shares} == shares
    assert summary.total("late") == summary.total("refused") == 0


def test_devices_that_are_gone_are_not_waited_for_when_questions_are_closed(service):
    faults = Faults(seed=8, gone=0.1, loss=0.1)
    traffic = traffic_to(service, faults)
    name = begin(service, shapes(600, method="published"))
    summary = traffic.run(name, close_questions=True)
    told = service.get(f"/v1/campaigns/{name}/result")
    campaign = Campaign.from_dict(told["spec"])
    run = replayed(traffic.fleet, campaign, answering=lambda q, numbers: ~faults.gone_of(numbers))
    assert told["shapes"] == json.loads(json.dumps(result_of(campaign, run, [], None)))["shapes"]
    there = ~faults.gone_of(np.concatenate([*traffic.fleet.blocks()]))
    assert told["people"] == summary.total("taken") + summary.total("there_already")
    assert 500 < told["people"] <= there.sum()


def test_a_fleet_that_was_stopped_goes_on_with_the_same_answers(service):
    traffic = traffic_to(service, batch=100)
    name = begin(service, categories(600))

    class Stop(Exception):
        pass

    def watch(what, done, total):
        if done >= 300 and "/" in what:
            raise Stop

    traffic._watch = watch
    with pytest.raises(Stop):
        traffic.run(name)
    again = Traffic(
        traffic.fleet,
        "http://testserver",
        traffic._staff._token,
        batch=70,
        connections=1,
        http=service.http,
        wait=lambda seconds: service.tick(60.0),
    )
    (tally,) = again.run(name).tallies
    assert tally.there_already == 300 and tally.taken == 300
    campaign = Campaign.from_dict(service.get(f"/v1/campaigns/{name}")["spec"])
    told = service.get(f"/v1/campaigns/{name}/result")["categories"]
    assert told == result_of(campaign, replayed(again.fleet, campaign), [], None)["categories"]


def test_who_comes_late_is_told_so_and_sends_no_more(service):
    traffic = traffic_to(service, batch=100)
    name = begin(service, categories(600))
    told = service.question(name)
    service.close(name)
    campaign = Campaign.from_dict(service.get(f"/v1/campaigns/{name}")["spec"])
    tally = traffic.answer(campaign, told)
    assert tally.late == 100 and tally.unsent == 500 and tally.acknowledged == 100


def test_once_answers_one_question_and_nothing_runs_is_the_end(service):
    traffic = traffic_to(service)
    assert traffic.run().tallies == ()
    name = begin(service, shapes(600, method="nearest"))
    assert [one.question for one in traffic.run(once=True).tallies] == [f"{name}/0"]
    assert service.question(name)["id"] == f"{name}/1"
    other = begin(service, categories(600))
    answered = Counter(one.question.partition("/")[0] for one in traffic.run().tallies)
    assert answered[other] == 1 and answered[name] > 3


def test_a_server_s_odd_replies_are_tried_again_or_refused(service):
    replies = iter(
        [
            httpx.Response(503),
            httpx.Response(429, headers={"retry-after": "3"}),
            httpx.Response(200, content=b"?"),
            httpx.Response(200, content=msgspec.msgpack.encode({"outcomes": b"", "reasons": []})),
            httpx.Response(422, json={"reason": "a batch: too large"}),
        ]
    )
    waits = []
    campaign = about_category("grr", people=10)
    asked = campaign.start().question
    told = {"id": asked.id, "body": asked.body, "lots": None, "bitmap": None}
    with httpx.Client(transport=httpx.MockTransport(lambda request: next(replies))) as http:
        traffic = Traffic(
            Fleet.from_seed(1, devices=10),
            "http://127.0.0.1:1",
            "admin-1.x",
            http=http,
            connections=1,
            wait=waits.append,
        )
        with pytest.raises(TemprivError, match="refuses a batch of answers: a batch: too large"):
            traffic.answer(campaign, told)
    assert len(waits) == 4 and waits[1] >= 3
    assert traffic.summary.waits == 1, "it was away once"


def test_the_asked_are_those_of_lots_or_of_the_bitmap(service):
    traffic = traffic_to(service, devices=300)
    name = begin(service, stream(100, method="LPU", steps=6, window=2))
    service.tick()
    told = service.question(name)
    campaign = Campaign.from_dict(service.get(f"/v1/campaigns/{name}")["spec"])
    numbers = np.concatenate([*traffic.asked_of(campaign, told)])
    assert len(numbers) == told["expected"] == 50
    everyone = traffic.asked_of(campaign, {"lots": None, "bitmap": None})
    assert len(np.concatenate([*everyone])) == 300
    half = {"lots": ["0" * 16, "8" + "0" * 15], "bitmap": None}
    chosen = np.concatenate([*traffic.asked_of(campaign, half)])
    assert (
        in_range(assignment_hash(campaign.id, chosen), 0, 1 << 63).all() and 100 < len(chosen) < 200
    )
