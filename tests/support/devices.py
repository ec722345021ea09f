"""What tests of devices share: campaigns of every kind, and a server that can be made to lie."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from datetime import UTC, datetime

import httpx
import numpy as np

from tempriv import Laplace
from tempriv.collect import Client
from tempriv.collect.protocol.assignment import assignment_hash
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.frequency import FrequencyCampaignPlan
from tempriv.collect.protocol.kinds.stream import StreamCampaignPlan
from tempriv.collect.protocol.kinds.upload import UploadCampaignPlan
from tempriv.collect.server.tokens import Token, parse
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.sax import Sax
from tempriv.privacy.units import WholeSeries

URL = "http://127.0.0.1:8000"
BEGUN = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
NUMBER = 17
ENROLMENT = Token("enrol", NUMBER, bytes(range(32))).text
SERIES = [float(3 + i % 7) for i in range(24)]
SECRET_VALUE = 1234.567891  # would be noticed anywhere


def frequency_campaign(epsilon=1.0, **given):
    plan = FrequencyCampaignPlan(
        epsilon=epsilon, people=10, categories=("gas", "oil", "wood"), **given
    )
    return Campaign.begin("frequency", "Heating", "How?", plan, now=BEGUN, nonce="1" * 32)


def shapes_campaign(epsilon=1.0, method="nearest", labels=()):
    sax = Sax(symbols=3, segment=4, longest=4)
    plan = ShapesPlan(
        epsilon=epsilon, shapes=2, people=10, sax=sax, method=method, labels=labels, readings=24
    )
    return Campaign.begin("shapes", "Days", "Which?", plan, now=BEGUN, nonce="2" * 32)


def stream_campaign(epsilon=1.0, method="LBU", every=1800.0, window=2, steps=20, nonce="3" * 32):
    plan = StreamCampaignPlan(
        epsilon=epsilon,
        people=10,
        categories=("in", "out"),
        method=method,
        window=window,
        every=every,
        steps=steps,
    )
    return Campaign.begin("stream", "Home", "In?", plan, now=BEGUN, nonce=nonce)


def upload_campaign(mechanism=None, readings=24, epsilon=1.0):
    mechanism = mechanism or Laplace(epsilon=epsilon, bounds=(0, 5), unit=WholeSeries(24))
    plan = UploadCampaignPlan(epsilon=epsilon, people=10, mechanism=mechanism, readings=readings)
    return Campaign.begin("upload", "Meter", "All of it", plan, now=BEGUN, nonce="4" * 32)


CAMPAIGNS = {
    "frequency": frequency_campaign,
    "shapes": shapes_campaign,
    "stream": stream_campaign,
    "upload": upload_campaign,
}
ALL_KINDS = tuple(CAMPAIGNS)


def honest(campaign, number=NUMBER, step=0):
    """The question that a server has open for this device."""
    run = campaign.start()
    if campaign.kind == "stream":
        for _ in range(step):
            run = run.after(np.zeros(run.question.cells, dtype=np.int64), 0).next_step()
    asked = run.question
    low, high = asked.low, asked.high
    if campaign.kind == "shapes":
        own = int(assignment_hash(campaign.id, np.array([number]))[0])
        low, high = max(0, own - 5), own + 5  # a lot is drawn; the test draws this one
    lots = None if campaign.kind == "stream" else [f"{low:016x}", f"{high:016x}"]
    return {"id": asked.id, "number": 0, "body": asked.body, "lots": lots, "asked": True}


class Server:
    """Does as the contract says, until it is told otherwise."""

    def __init__(self, *campaigns):
        self.campaigns = list(campaigns)
        self.documents = [self.document(one) for one in campaigns]
        self.questions = {one.id: honest(one) for one in campaigns}
        self.enrolled = {}
        self.answers = []  # (question, bytes), as they come
        self.requests = []  # (method, path, body)
        self.before = lambda request: None  # may raise, or give a response instead
        self.after = lambda request, response: response

    @staticmethod
    def document(campaign):
        return {
            "id": campaign.id,
            "spec": campaign.to_dict(),
            "state": "running",
            "sentences": ["This reveals nothing at all."],
        }

    def __call__(self, request):
        body = request.content
        self.requests.append((request.method, request.url.path, body))
        early = self.before(request)
        response = early if early is not None else self.reply(request, body)
        return self.after(request, response)

    def reply(self, request, body):
        path = request.url.path
        if path == "/v1/devices":
            (one,) = json.loads(body)["devices"]
            before = self.enrolled.setdefault(one["token"], one["secret_hash"])
            same = before == one["secret_hash"]
            outcome = (
                "refused" if not same else "there already" if self.asked_before else "enrolled"
            )
            self.asked_before = True
            return httpx.Response(
                200, json={"devices": [{"number": self.number, "outcome": outcome}]}
            )
        token = parse(request.headers["authorization"].removeprefix("Bearer "))
        if hashlib.sha256(token.secret).hexdigest() not in self.enrolled.values():
            return httpx.Response(401, json={"reason": "a valid token is needed"})
        if path == "/v1/campaigns":
            return httpx.Response(200, json={"campaigns": self.documents})
        name, _, what = path.removeprefix("/v1/campaigns/").partition("/")
        if what == "question":
            return httpx.Response(200, json={"question": self.questions.get(name)})
        given = json.loads(body)
        answer = (given["question"], base64.b64decode(given["answer"]))
        there = answer in self.answers
        self.answers.append(answer)
        return httpx.Response(200, json={"outcome": "there already" if there else "taken"})

    asked_before = False
    number = NUMBER  # of whoever enrolls

    def paths(self):
        return [path for _, path, _ in self.requests]

    def http(self):
        return httpx.Client(transport=httpx.MockTransport(self))


@contextlib.contextmanager
def device(server, home, clock=lambda: BEGUN, **given):
    given = {"kinds": ALL_KINDS, "enrollment": ENROLMENT, **given}
    with Client(URL, home, clock=clock, http=server.http(), **given) as client:
        yield holding(client)


def holding(client):
    client.hold(series=SERIES, label="flat", category="gas")
    client.observe("in")
    return client
