"""Servers that ask for too much, or lie: they get no more than the owner of a device agreed to."""

from __future__ import annotations

import copy
from datetime import timedelta

import httpx
import numpy as np
import pytest

from tempriv import Gaussian, Laplace
from tempriv.collect import Client
from tempriv.collect.device import client as client_module
from tempriv.collect.device.answers import DeviceAnswers, OwnedData
from tempriv.collect.device.checks import campaign_of, verified_question
from tempriv.collect.device.limits import DeviceLimits
from tempriv.collect.protocol.assignment import assignment_hash
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.stream import StreamCampaignPlan
from tempriv.errors import BudgetError, StateError, UsageError
from tempriv.local.shapes.sax import Sax
from tempriv.local.wire import MessageError
from tempriv.privacy.guarantees import Concentrated
from tempriv.privacy.units import Event, WholeSeries
from tempriv.sampling.keys import fresh_series_key
from tests.support.collecting import Clock
from tests.support.devices import (
    BEGUN,
    ENROLMENT,
    NUMBER,
    SERIES,
    URL,
    Server,
    device,
    frequency_campaign,
    honest,
    shapes_campaign,
    stream_campaign,
    upload_campaign,
)

# what the owner agreed to


def gaussian_campaign():
    mechanism = Gaussian(rho=0.01, bounds=(0, 5), unit=WholeSeries(24))
    return upload_campaign(mechanism, epsilon=Concentrated(0.01).epsilon_at(1e-6))


OVER = {
    "epsilon": (frequency_campaign(2.5), {}, "answers nothing above 2"),
    "epsilon of a stream": (
        stream_campaign(2.5),
        {"stream_limit": 100.0},
        "answers nothing above 2",
    ),
    "limit": (frequency_campaign(1.0), {"limit": 0.5}, "more than its limit of 0.5"),
    "kind": (upload_campaign(), {"kinds": ("shapes",)}, "has not agreed to it"),
    "usual kinds": (upload_campaign(), {"kinds": DeviceLimits().kinds}, "has not agreed to it"),
    # 3600 seconds touch 3 steps of 1800, and so two windows of 2
    "stream": (stream_campaign(), {"stream_limit": 1.5}, "seconds may come to epsilon=2"),
    "unit": (upload_campaign(Laplace(epsilon=1.0, bounds=(0, 5))), {}, "comes to 24"),
    "delta": (
        gaussian_campaign(),
        {},
        "only with a delta",
    ),
    "owner": (frequency_campaign(), {"agree": lambda campaign: False}, "has not agreed"),
}


@pytest.mark.parametrize("case", OVER)
def test_a_campaign_beyond_the_limits_is_never_even_asked_about(tmp_path, case):
    campaign, given, reason = OVER[case]
    server = Server(campaign)
    with device(server, tmp_path, **given) as client:
        visit = client.run_once()
        assert reason in visit.declined[campaign.id]
        assert client.spent() == 0
    assert server.paths() == ["/v1/devices", "/v1/campaigns"]


def test_an_owner_may_agree_to_less_protection_of_uploads(tmp_path):
    campaign = upload_campaign(Laplace(epsilon=1.0, bounds=(0, 5)))
    with device(Server(campaign), tmp_path / "a", upload_unit=Event()) as client:
        assert client.run_once().taken == 1 and client.spent() == 1.0
    campaign = gaussian_campaign()
    with device(Server(campaign), tmp_path / "b", most_delta=1e-6) as client:
        assert client.run_once().taken == 1 and client.spent() <= 1.0


def test_limits_are_numbers(tmp_path):
    for wrong in (
        {"most_epsilon": 0},
        {"limit": -1},
        {"stream_seconds": float("nan")},
        {"kinds": ("everything",)},
        {"most_delta": 1.0},
    ):
        with pytest.raises(UsageError):
            Client(URL, tmp_path, enrollment=ENROLMENT, **wrong)


def test_what_a_campaign_means_is_worked_out_on_the_device(tmp_path):
    campaign = frequency_campaign()
    with device(Server(campaign), tmp_path) as client:
        (offer,) = client.offers()
        assert offer.refusal is None and offer.campaign == campaign
        told = " ".join(offer.sentences)
        assert "reveals nothing" not in told, "the server said so"
        assert "3 categories" in told and "epsilon = 1 of this device's 8; 0 of that" in told
        assert any("86400" in s or "3600" in s for s in client.consent(stream_campaign()))
        assert client.spent() == 0


def test_over_many_campaigns_no_more_than_the_limit_is_given(tmp_path):
    """A server that makes one campaign after the other."""
    plan = frequency_campaign(1.5).plan
    many = [
        Campaign.begin("frequency", "Heating", "How?", plan, now=BEGUN, nonce=f"{i:032x}")
        for i in range(20)
    ]
    server = Server(*many)
    with device(server, tmp_path, limit=4.0) as client:
        visit = client.run_once()
        assert visit.taken == 2 and len(visit.declined) == 18
        assert client.spent() == 3.0


def test_over_many_streams_no_more_than_the_limit_is_given_within_an_hour(tmp_path):
    many = [
        stream_campaign(nonce=f"{i:032x}", every=60.0, window=60, epsilon=2.0, method="LSP")
        for i in range(5)
    ]
    server, clock = Server(*many), Clock()
    clock.now = BEGUN
    with device(server, tmp_path, clock=clock, stream_limit=4.0) as client:
        visit = client.run_once()
        assert visit.taken == 2 and len(visit.declined) == 3
        assert all("with the answers about other streams" in one for one in visit.declined.values())
        clock.pass_by(59)
        assert client.run_once().taken == 0
    # a second start changes nothing, and other limits wait until no answer counts
    with device(server, tmp_path, clock=clock, stream_limit=4.0) as client:
        assert client.run_once().taken == 0
    with (
        pytest.raises(StateError, match="may change 3542 seconds from now"),
        device(server, tmp_path, clock=clock, stream_limit=5.0),
    ):
        pass
    clock.pass_by(3600)
    with device(server, tmp_path, clock=clock, stream_limit=5.0):
        pass


def test_a_reply_that_is_held_back_gets_no_more_than_the_limit(tmp_path):
    """What is paid counts from when the device looks at what it holds, not from when it asked."""
    many = [
        stream_campaign(
            nonce=f"{i:032x}", every=60.0, window=200, epsilon=2.0, steps=400, method="LSP"
        )
        for i in range(4)
    ]
    server, clock, sent = Server(*many), Clock(), []
    clock.now = BEGUN

    def replying(request):
        path = request.url.path
        if path.endswith("/answers"):
            sent.append(clock.now)
        if not path.endswith("/question"):
            return None
        name = path.split("/")[3]
        step = int((clock.now - BEGUN).total_seconds() // 60)
        question = changed(honest(many[0]), campaign=name, step=step)
        if clock.now == BEGUN:
            clock.pass_by(3700)  # the bytes come one by one
        return httpx.Response(200, json={"question": question | {"id": f"{name}/{step}/publish"}})

    server.before = replying
    with device(server, tmp_path, clock=clock, stream_limit=4.0) as client:
        visit = client.run_once()
        assert "by this device's clock it is step 61" in visit.declined[many[0].id]
        client.run_once()
    assert len(sent) == 2, "epsilon 2 each, and 4 within an hour"


def test_two_steps_of_a_window_are_not_told_from_one_moment(tmp_path):
    campaign = stream_campaign(method="LSP", window=2, every=600.0)
    server, clock = Server(campaign), Clock()
    clock.now = BEGUN

    def replying(request):
        if request.url.path.endswith("/question") and clock.now == BEGUN:
            clock.pass_by(1200)

    server.before = replying
    with device(server, tmp_path, clock=clock, stream_limit=100.0) as client:
        client.run_once()
        assert not server.answers, "the question is about a step that is past"
        server.questions[campaign.id] = changed(honest(campaign), step=2) | {
            "id": f"{campaign.id}/2/publish"
        }
        assert client.run_once().taken == 1


# servers that lie


def changed(question, **body):
    found = copy.deepcopy(question)
    found["body"] |= body
    return found


def lies():
    """Of each kind of campaign: questions that its plan cannot lead to."""
    frequency, shapes, stream = (
        frequency_campaign(),
        shapes_campaign(labels=("a", "b")),
        stream_campaign(),
    )
    adaptive, upload = stream_campaign(method="LBA"), upload_campaign()
    own = int(assignment_hash(shapes.id, np.array([NUMBER]))[0])
    wide = Sax(symbols=8, segment=1, longest=4).to_dict()
    other = frequency_campaign(0.5).id
    yield "more epsilon", frequency, changed(honest(frequency), epsilon=1.0000001)
    yield "less epsilon", frequency, changed(honest(frequency), epsilon=0.5)
    yield "more values", frequency, changed(honest(frequency), size=4)
    yield "another oracle", frequency, changed(honest(frequency), oracle="oue")
    yield "another step", frequency, changed(honest(frequency), step=1)
    yield "another campaign", frequency, changed(honest(frequency), campaign=other)
    yield "another id", frequency, honest(frequency) | {"id": f"{other}/0"}
    yield "a member more", frequency, changed(honest(frequency), also=1)
    yield "no body", frequency, honest(frequency) | {"body": None}
    yield "no question", frequency, "gas?"
    yield "epsilon of shapes", shapes, changed(honest(shapes), epsilon=3.0)
    yield "finer letters", shapes, changed(honest(shapes), sax=wide)
    yield "more readings", shapes, changed(honest(shapes), readings=10**6)
    yield "round of a length", shapes, changed(honest(shapes), round=1)
    yield "oracle of a length", shapes, changed(honest(shapes), oracle="oue")
    yield "no lots", shapes, honest(shapes) | {"lots": None}
    yield (
        "lots of others",
        shapes,
        honest(shapes) | {"lots": [f"{own + 1:016x}", f"{own + 9:016x}"]},
    )
    yield "lots that are none", shapes, honest(shapes) | {"lots": ["-1", "zz"]}
    level = {
        "kind": "level",
        "oracle": "grr",
        "high": 3,
        "low": 1,
        "candidates": ["a", "b"],
        "round": 3,
        "ends": True,
    }
    yield "labels at a level", shapes, changed(honest(shapes), **level, labels=["a", "b"])
    yield "an exponential", shapes, changed(honest(shapes), **level | {"oracle": "exponential"})
    yield (
        "other labels",
        shapes,
        changed(honest(shapes), **level | {"kind": "refine", "labels": ["a", "c"]}),
    )
    yield (
        "whole where none is planned",
        shapes,
        changed(
            honest(shapes),
            kind="whole",
            oracle="olh",
            high=3,
            round=1,
            labels=["a", "b"],
            ends=True,
        ),
    )
    yield "letters that are none", shapes, changed(honest(shapes), **level | {"candidates": ["z"]})
    yield "all of a window at once", stream, changed(honest(stream), epsilon=1.0)
    yield "a later step", stream, changed(honest(stream), step=1) | {"id": f"{stream.id}/1/publish"}
    yield (
        "a comparison",
        stream,
        changed(honest(stream), part="compare") | {"id": f"{stream.id}/0/compare"},
    )
    yield "values of a stream", stream, changed(honest(stream), size=3)
    publish = {"id": f"{adaptive.id}/0/publish"}
    yield (
        "more than its half",
        adaptive,
        publish
        | {
            "asked": True,
            "lots": None,
            "body": honest(adaptive)["body"] | {"part": "publish", "epsilon": 0.6},
        },
    )
    yield (
        "no part of its half",
        adaptive,
        publish
        | {
            "asked": True,
            "lots": None,
            "body": honest(adaptive)["body"] | {"part": "publish", "epsilon": 0.3000001},
        },
    )
    yield (
        "next to nothing",
        adaptive,
        publish
        | {
            "asked": True,
            "lots": None,
            "body": honest(adaptive)["body"] | {"part": "publish", "epsilon": 1e-300},
        },
    )
    yield "other readings", upload, changed(honest(upload), readings=25)
    weak = copy.deepcopy(honest(upload)["body"]["mechanism"]) | {"epsilon": 50.0}
    yield "a weaker mechanism", upload, changed(honest(upload), mechanism=weak)


LIES = {name: (campaign, question) for name, campaign, question in lies()}


@pytest.mark.parametrize("name", LIES)
def test_a_question_that_does_not_follow_from_its_campaign_gets_nothing(tmp_path, name):
    campaign, question = LIES[name]
    server = Server(campaign)
    server.questions[campaign.id] = question
    with device(server, tmp_path) as client:
        visit = client.run_once()
        assert visit.reached and visit.declined[campaign.id]
        assert client.spent() == 0 and visit.waiting == 0
        # and the honest one afterwards is answered: a lie costs nothing
        server.questions[campaign.id] = honest(campaign)
        assert client.run_once().taken == 1
    assert len(server.answers) == 1


def test_questions_of_later_rounds_that_the_plan_leads_to_are_answered():
    """The check is no stricter than the course: whatever a server asks in a whole campaign fits."""
    for method in ("automatic", "one-shot", "nearest", "published", "baseline"):
        for labels in ((), ("x", "y")):
            campaign = shapes_campaign(method=method, labels=labels)
            run, kinds = campaign.start(), set()
            while (asked := run.question) is not None:
                told = {
                    "id": asked.id,
                    "body": asked.body,
                    "asked": True,
                    "lots": ["0", "1" + "0" * 16],
                }
                assert verified_question(campaign, told, NUMBER, BEGUN) is not None
                kinds.add(asked.kind)
                run = run.after(np.arange(asked.cells) % 3, 3 * asked.cells)
            assert "length" in kinds and len(kinds) > 1
    for method in ("LBU", "LSP", "LBD", "LBA", "LPU", "LPD", "LPA"):
        plan = StreamCampaignPlan(
            epsilon=1.0,
            people=100,
            categories=("in", "out"),
            method=method,
            window=3,
            every=60.0,
            steps=9,
        )
        campaign = Campaign.begin("stream", "Home", "In?", plan, now=BEGUN, nonce="3" * 32)
        run, count = campaign.start(), 0
        while not run.is_over:
            asked = run.question
            if asked is None:
                run = run.next_step()
                continue
            now = BEGUN + timedelta(seconds=60 * run.protocol.step + 59)
            told = {"id": asked.id, "body": asked.body, "asked": True, "lots": None}
            assert verified_question(campaign, told, NUMBER, now) is not None
            people = 50
            swing = people if run.protocol.step % 2 else 0
            run = run.after(np.array([swing, people - swing]), people)
            count += 1
        assert count >= 3


def raw(campaign, **plan):
    """A campaign as nobody could begin it."""
    made = copy.copy(campaign)
    object.__setattr__(made, "plan", copy.copy(campaign.plan))
    for name, value in plan.items():
        object.__setattr__(made.plan, name, value)
        if name == "epsilon":
            object.__setattr__(made, name, value)
    return made


ODD = {
    "every": raw(stream_campaign(), every=1e-320),
    "epsilon": raw(frequency_campaign(), epsilon=5e-324),
    "no number": raw(frequency_campaign(), epsilon=[]),
}


@pytest.mark.parametrize("case", [*ODD, "question", "forbidden", "damage"])
def test_one_odd_campaign_keeps_no_other_from_its_answer(tmp_path, monkeypatch, case):
    campaign, fine = frequency_campaign(), shapes_campaign()
    server = Server(campaign, fine)
    if case in ODD:  # were it let through: a device does not rely on what else is checked
        real = client_module.campaign_of
        monkeypatch.setattr(
            client_module,
            "campaign_of",
            lambda told: ODD[case] if told["id"] == campaign.id else real(told),
        )
    status = {"question": 404, "forbidden": 403}.get(case)
    if status:
        refusal = httpx.Response(status, json={"reason": "no such campaign"})
        server.before = lambda request: (
            refusal if request.url.path == f"/v1/campaigns/{campaign.id}/question" else None
        )
    if case == "damage":
        server.questions[campaign.id] = changed(honest(campaign), epsilon=[])
    with device(server, tmp_path) as client:
        offers = client.offers()
        assert len(offers) == 2 and offers[1].refusal is None
        visit = client.run_once()
        assert visit.reached and visit.taken == 1 and len(visit.declined) == (case != "epsilon")
        if status:
            assert "no such campaign" in " ".join(visit.declined.values())
    assert [question for question, _ in server.answers] == [f"{fine.id}/0"]


def test_a_stream_of_short_steps_is_not_asked_about_all_the_time(tmp_path):
    with device(Server(stream_campaign(every=1.0, window=1000, steps=1000)), tmp_path) as client:
        client.run_once()
        assert client._pause == 1.0


@pytest.mark.parametrize("moment", [-1.0, 8 * 86_400.0])
def test_before_it_opens_and_after_its_deadline_nothing_is_answered(tmp_path, moment):
    campaign = frequency_campaign()
    server = Server(campaign)
    now = BEGUN + timedelta(seconds=moment)
    with device(server, tmp_path, clock=lambda: now) as client:
        client.run_once()
    assert "question" not in " ".join(server.paths()) and not server.answers
    with pytest.raises(MessageError, match="not open"):
        verified_question(campaign, honest(campaign), NUMBER, now)


def test_a_campaign_under_another_id_is_refused(tmp_path):
    mild, grave = frequency_campaign(0.1), frequency_campaign(2.0)
    server = Server(mild, grave)
    server.documents[1] = server.documents[1] | {"id": mild.id}
    server.documents += [{}, None, {"id": 1, "spec": {"kind": []}}, {"id": "x", "spec": "y"}]
    with device(server, tmp_path) as client:
        visit = client.run_once()
        assert visit.taken == 1 and client.spent() == 0.1
        assert "does not follow from it" in visit.declined[mild.id]
    spec = grave.to_dict()
    spec["epsilon"] = 0.1  # under the id of the other
    with pytest.raises(MessageError, match="does not follow from it"):
        campaign_of({"id": grave.id, "spec": spec})


def test_a_second_question_of_a_campaign_gets_nothing(tmp_path):
    campaign = shapes_campaign()
    server = Server(campaign)
    with device(server, tmp_path) as client:
        client.run_once()
        body = {
            "kind": "level",
            "oracle": "grr",
            "high": 3,
            "low": 1,
            "candidates": ["a", "b"],
            "round": 3,
            "ends": True,
        }
        server.questions[campaign.id] = changed(honest(campaign), **body) | {
            "id": f"{campaign.id}/3"
        }
        client.run_once()
    assert [question for question, _ in server.answers] == [f"{campaign.id}/0"]


def test_a_step_is_answered_once_and_steps_pass_by_the_device_s_own_clock(tmp_path):
    campaign = stream_campaign()
    server, clock = Server(campaign), Clock()
    clock.now = BEGUN
    with device(server, tmp_path, clock=clock) as client:
        assert client.run_once().taken == 1
        assert client.run_once().taken == 0
        # the server hurries on: by the device's clock it is still the first step
        server.questions[campaign.id] = honest(campaign, step=1)
        assert "by this device's clock it is step 0" in client.run_once().declined[campaign.id]
        clock.pass_by(1800)
        assert client.run_once().taken == 1
    with device(server, tmp_path, clock=clock) as client:
        assert "answers a question once" in client.run_once().declined[campaign.id]
        clock.pass_by(-1800)  # a clock that goes back gets nobody a second answer
        server.questions[campaign.id] = honest(campaign)
        assert "is past" in client.run_once().declined[campaign.id]
    assert len(server.answers) == 2


@pytest.mark.parametrize("name", ["fine", *LIES])
def test_nothing_that_a_server_sees_but_reports_depends_on_what_is_held(tmp_path, name):
    """The same requests of the same length, and the same refusals, whatever the device holds."""
    campaign, question = LIES.get(name, (shapes_campaign(labels=("a", "b")), None))
    seen = []
    holdings = [
        {"series": SERIES, "label": "a", "category": "gas", "value": "in"},
        {"series": [0.0], "label": None, "category": None, "value": None},
        {"series": np.linspace(-1e9, 1e9, 1000), "label": "z", "category": "coal", "value": "up"},
    ]
    for i, held in enumerate(holdings):
        server = Server(campaign)
        server.questions[campaign.id] = question or honest(campaign)
        with device(server, tmp_path / str(i)) as client:
            client.observe(held.pop("value"))
            client.hold(**held)
            visit = client.run_once()
        seen.append(([(m, p, len(b)) for m, p, b in server.requests], visit))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("make", [shapes_campaign, upload_campaign])
def test_readings_beyond_those_of_the_plan_are_never_touched(tmp_path, make):
    """Else the time between question and answer would tell how long a series is."""
    campaign, link = make(), fresh_series_key()
    size = campaign.start().question.report_bytes
    asked = verified_question(campaign, honest(campaign), NUMBER, BEGUN)

    class Short(np.ndarray):
        """Only slices of it may be used."""

        def tobytes(self, *given):
            assert self.size <= 24
            return super().tobytes(*given)

    reports = set()
    for count in (24, 25, 100_000):
        held = OwnedData(series=np.arange(float(count)).view(Short), label="a")
        (tmp_path / str(count)).mkdir()
        answers = DeviceAnswers(tmp_path / str(count), DeviceLimits(kinds=("shapes", "upload")), 0)
        reports.add(answers.draw(campaign, asked, held, link, 0)[-size:])
    assert len(reports) == 1, "the same readings, and so the same noise"


def test_budget_refusals_are_budget_refusals():
    with pytest.raises(BudgetError):
        DeviceLimits(most_epsilon=0.5).refuse(frequency_campaign())
