"""Campaigns of every kind over a server: who is asked, what is counted, how they go on and end."""

import contextlib
import io
import json
import zipfile

import numpy as np
import pytest
from sqlalchemy import func, select

from tempriv.cli.app import app as commands
from tempriv.collect.protocol.assignment import HASH_VALUES, assignment_hash, in_range
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.base import OneQuestionState
from tempriv.collect.server import schema
from tempriv.collect.server.results import result_of
from tempriv.local.frequency.oracles import ORACLES
from tempriv.local.shapes.plan import METHODS
from tempriv.local.streams.protocol import METHODS as STREAM_METHODS
from tests.support import postgres
from tests.support.collecting import (
    KINDS,
    Clock,
    about_shapes,
    about_value,
    categories,
    readings,
    serving,
    shapes,
    stream,
    upload,
)

STORES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.services)]


@pytest.fixture(params=STORES)
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/collect.db"
    return postgres.new_database()


@pytest.fixture
def service(tmp_path, url):
    with serving(tmp_path, url) as found:
        yield found


def count(service, table):
    with service.collection.store.reading() as db:
        return db.execute(select(func.count()).select_from(table)).scalar_one()


def waves(people):
    steps = np.arange(60)
    return np.array([np.sin(steps / 6 + (3 if i % 2 else 0)) for i in range(people)])


# who is asked


def test_each_device_is_asked_one_question_of_a_shapes_campaign(service):
    numbers = service.enroll(300)
    campaign = service.begin(shapes(300))["id"]
    asked = dict.fromkeys(numbers, 0)
    while (question := service.question(campaign)) is not None:
        mine = [one for one in numbers if service.question(campaign, one)["asked"]]
        low, high = (int(one, 16) for one in question["lots"])
        lots = assignment_hash(campaign, np.array(numbers))
        assert mine == [n for n, on in zip(numbers, in_range(lots, low, high), strict=True) if on]
        for one in mine:
            asked[one] += 1
        assert question["expected"] == len(mine)
        service.close(campaign)
    assert set(asked.values()) == {1}
    assert high == HASH_VALUES


def test_a_question_ends_when_all_have_answered_and_as_many_are_there_as_announced(service):
    numbers = service.enroll(4)
    campaign = service.begin(categories(5))["id"]
    question = service.question(campaign)
    answers = {one: about_value(question, 0) for one in numbers}
    assert service.batch(question["id"], answers) == ["taken"] * 4
    service.tick(10)
    assert service.get(f"/v1/campaigns/{campaign}")["state"] == "running"
    (late,) = service.enroll(1)
    assert service.question(campaign)["expected"] == 5
    assert service.batch(question["id"], {late: about_value(question, 1)}) == ["taken"]
    assert service.get(f"/v1/campaigns/{campaign}")["state"] == "finished"


def test_patience_and_the_deadline_end_what_nobody_answers(service):
    service.enroll(3)
    patient = service.begin(categories(5, patience=100.0))["id"]
    deadline = "2026-03-02T12:01:00Z"
    short = service.begin(shapes(300) | {"deadline": deadline})["id"]
    service.tick(59)
    assert service.question(patient) and service.question(short)
    service.tick(2)
    assert service.get(f"/v1/campaigns/{short}")["state"] == "finished"
    assert service.get(f"/v1/campaigns/{patient}")["state"] == "running"
    service.tick(60)
    assert service.get(f"/v1/campaigns/{patient}")["state"] == "finished"
    told = service.get(f"/v1/campaigns/{patient}/result")
    assert told["people"] == 0 and told["amplified"] is None


def test_a_campaign_waits_until_it_opens(service):
    service.enroll(2)
    campaign = service.begin(categories(2, opens="2026-03-02T13:00:00Z"))
    assert campaign["state"] == "waiting" and campaign["question"] is None
    service.tick(3600)
    assert service.question(campaign["id"])


# what is counted


def test_an_answer_is_counted_once_however_often_it_is_sent(service):
    one, two = service.enroll(2)
    campaign = service.begin(categories(3))["id"]
    question = service.question(campaign)["id"]
    data = about_value(service.question(campaign), 1)
    told = [service.answer(campaign, question, one, data).json()["outcome"] for _ in range(3)]
    assert told == ["taken", "there already", "there already"]
    other = about_value(service.question(campaign), 2)  # the first one counts
    assert service.batch(question, {one: other, two: other}) == ["there already", "taken"]
    assert service.get(f"/v1/campaigns/{campaign}")["received"] == 2
    assert service.close(campaign)["state"] == "finished"
    assert service.batch(question, {one: data}) == ["there already"]
    assert service.get(f"/v1/campaigns/{campaign}/result")["people"] == 2


def test_a_device_twice_in_a_batch_is_counted_once(service):
    service.enroll(2)
    campaign = service.begin(categories(3))["id"]
    question = service.question(campaign)
    data = about_value(question, 1)
    import msgspec

    given = {
        "question": question["id"],
        "devices": np.array([2, 1, 2], dtype=">u8").tobytes(),
        "secrets": b"".join(service.secrets[one] for one in (2, 1, 2)),
        "answers": 3 * data,
    }
    headers = {"content-type": "application/msgpack"}
    found = service.http.post("/v1/answers", content=msgspec.msgpack.encode(given), headers=headers)
    assert msgspec.msgpack.decode(found.content)["outcomes"] == bytes([0, 0, 1])


def test_late_foreign_and_malformed_answers_are_refused_with_a_reason(service):
    one, two, gone = service.enroll(3)
    first, other = (service.begin(categories(4))["id"] for _ in range(2))
    question = service.question(first)
    data = about_value(question, 0)

    def reason(*given):
        found = service.answer(*given)
        return found.status_code, found.json()["reason"].partition(":")[0]

    assert reason(first, f"{other}/0", one, data) == (
        409,
        "the question belongs to another campaign",
    )
    assert reason(other, f"{other}/0", one, data) == (422, "malformed")
    assert reason(first, question["id"], one, data[:-1]) == (422, "malformed")
    assert reason(first, question["id"], one, data[:-1] + b"\xff") == (422, "malformed")
    assert reason(first, f"{first}/7", one, data) == (404, "no such question")
    assert reason("f" * 32, f"{'f' * 32}/0", one, data) == (404, "no such question")
    assert (
        service.batch(question["id"], {one: data, two: data}, bytes(64))
        == ["unknown device, or a wrong secret"] * 2
    )
    service.http.delete(f"/v1/devices/{gone}", headers=service.admin)
    assert service.batch(question["id"], {gone: data}) == ["unknown device, or a wrong secret"]
    service.close(first)
    assert reason(first, question["id"], one, data) == (409, "late")
    assert service.get(f"/v1/campaigns/{first}")["received"] == 0
    service.http.post(f"/v1/campaigns/{other}/cancel", headers=service.admin)
    assert reason(other, f"{other}/0", one, about_value(question, 0)) == (409, "late")


def test_who_is_not_asked_is_not_counted(service):
    numbers = service.enroll(200)
    campaign = service.begin(shapes(200))["id"]
    question = service.question(campaign)
    others = [one for one in numbers if not service.question(campaign, one)["asked"]]
    data = about_shapes(question, waves(len(others)), 1)
    told = service.batch(question["id"], dict(zip(others, data, strict=True)))
    assert set(told) == {"not asked"}


def test_reports_are_stored_apart_from_who_sent_them_and_then_forgotten(service):
    numbers = service.enroll(50)
    campaign = service.begin(categories(60))["id"]
    question = service.question(campaign)
    answers = {one: about_value(question, one % 3) for one in numbers}
    service.batch(question["id"], answers)
    with service.collection.store.reading() as db:
        (row,) = db.execute(select(schema.pending)).all()
    reports = [one[-1:] for one in answers.values()]
    assert bytes(row.reports) == b"".join(sorted(reports)) != b"".join(reports)
    service.tick()
    assert count(service, schema.pending) == 0
    assert count(service, schema.answered) == 50
    with service.collection.store.reading() as db:
        support = db.execute(select(schema.questions.c.support)).scalar_one()
    assert np.frombuffer(support, "<i8").tolist() == [reports.count(bytes([i])) for i in range(3)]
    service.close(campaign)
    with service.collection.store.reading() as db:
        assert db.execute(select(schema.questions.c.support)).scalar_one() == b""


def test_cancelling_forgets_what_came_in(service):
    (one,) = service.enroll(1)
    for kind, data in (("frequency", None), ("upload", [1.0, 2.0, 3.0, 4.0])):
        campaign = service.begin(KINDS[kind](2))["id"]
        question = service.question(campaign)
        sent = about_value(question, 0) if data is None else readings(campaign, data)
        assert service.answer(campaign, question["id"], one, sent).status_code == 200
        service.http.post(f"/v1/campaigns/{campaign}/cancel", headers=service.admin)
        assert count(service, schema.pending) == count(service, schema.uploads) == 0
        result = service.http.get(f"/v1/campaigns/{campaign}/result", headers=service.admin)
        assert result.status_code == 409 and "canceled" in result.json()["reason"]


# the same as without a network


def test_a_shapes_campaign_ends_as_it_does_in_one_process(service):
    numbers = service.enroll(3000)
    document = service.begin(shapes(3000))
    campaign = Campaign.from_dict(document["spec"])
    assert campaign.id == document["id"]
    run = campaign.start()
    series = waves(3000)
    while (question := service.question(campaign.id)) is not None:
        asked = run.question
        lots = assignment_hash(campaign.id, np.array(numbers))
        mine = np.flatnonzero(in_range(lots, asked.low, asked.high))
        data = about_shapes(question, series[mine], 5)
        for low in range(0, len(mine), 1000):
            part = slice(low, low + 1000)
            answers = {numbers[i]: one for i, one in zip(mine[part], data[part], strict=True)}
            assert set(service.batch(question["id"], answers)) == {"taken"}
        rows = np.frombuffer(b"".join(data), np.uint8).reshape(len(data), -1)
        run = run.after(asked.support(rows[:, -asked.report_bytes :]), len(mine))
    told = service.get(f"/v1/campaigns/{campaign.id}/result")
    assert json.loads(json.dumps(result_of(campaign, run, [], told["finished_at"]))) == told
    assert len(told["shapes"]) == 2
    assert told["people"] == 3000 and told["amplified"]["epsilon"] <= 4


SMALL = (
    [shapes(people, method=method) for people in (1, 2, 3, 5, 10) for method in METHODS]
    + [
        categories(people) | {"plan": {"categories": ["a", "b"], "oracle": oracle}}
        for people in (1, 2)
        for oracle in ("automatic", *ORACLES)
    ]
    + [stream(people, method, steps=3) for people in (1, 2, 5) for method in STREAM_METHODS]
    + [upload(people) for people in (1, 2)]
)


def _label(given):
    words = [given["plan"].get(name) for name in ("method", "oracle")]
    return "-".join([given["kind"], str(given["people"]), *filter(None, words)])


def _answer(kind, campaign, question):
    if kind == "upload":
        return readings(campaign, [1.0, 2.0, 3.0, 4.0])
    if kind == "shapes":
        return about_shapes(question, waves(1), 5)[0]
    return about_value(question, 1)


@pytest.mark.parametrize("given", SMALL, ids=_label)
def test_a_small_campaign_comes_to_its_end(service, caplog, given):
    """Rounds may be for nobody; each answer counts, and nothing is logged as a problem."""
    numbers = service.enroll(given["people"])
    begun = service.http.post("/v1/campaigns", json=given, headers=service.admin)
    if begun.status_code != 201:  # methods that ask a part of the people at a time need some
        assert given["plan"]["method"] in ("LPU", "LPD", "LPA")
        assert "people" in begun.json()["reason"]
        return
    campaign = begun.json()["id"]
    answered = 0
    with caplog.at_level("ERROR", "tempriv.collect"):
        for _ in range(40):
            if service.get(f"/v1/campaigns/{campaign}")["state"] == "finished":
                break
            question = service.question(campaign)
            for number in numbers:
                if question is None or not service.question(campaign, number)["asked"]:
                    continue
                data = _answer(given["kind"], campaign, question)
                reply = service.answer(campaign, question["id"], number, data)
                assert reply.json()["outcome"] == "taken"
                answered += 1
                if service.question(campaign) != question:
                    question = service.question(campaign)
            service.tick(61)
    assert service.get(f"/v1/campaigns/{campaign}")["state"] == "finished"
    assert service.get(f"/v1/campaigns/{campaign}")["received"] == answered > 0
    assert service.get(f"/v1/campaigns/{campaign}/result")
    assert not caplog.records


@pytest.mark.parametrize("when", ["answer", "close", "clock"])
def test_a_campaign_that_cannot_be_evaluated_fails_and_no_other(tmp_path, url, monkeypatch, when):
    """Answers are kept, and a server that can evaluate them does so when it starts."""
    clock = Clock()
    with serving(tmp_path, url, clock) as service:
        numbers = service.enroll(2)
        broken, other = (service.begin(categories(2, patience=100.0))["id"] for _ in range(2))
        with monkeypatch.context() as patch:
            support = OneQuestionState.after
            patch.setattr(OneQuestionState, "after", lambda self, counts, people: 1 // 0)
            for number in numbers[: 2 if when == "answer" else 1]:
                question = service.question(broken)
                sent = service.answer(broken, question["id"], number, about_value(question, 1))
                assert sent.json()["outcome"] == "taken"
            if when == "close":
                service.close(broken)
            if when == "clock":
                patch.setattr(
                    OneQuestionState,
                    "after",
                    lambda self, counts, people: (
                        1 // 0 if self.campaign.id == broken else support(self, counts, people)
                    ),
                )
                service.tick(101)
                assert service.get(f"/v1/campaigns/{other}")["state"] == "finished"
        assert service.get(f"/v1/campaigns/{broken}")["state"] == "failed"
        result = service.http.get(f"/v1/campaigns/{broken}/result", headers=service.admin)
        assert (result.status_code, "failed" in result.json()["reason"]) == (409, True)
        assert service.enroll(1)  # the server goes on
    clock.pass_by(101)
    with serving(tmp_path, url, clock) as service:
        assert service.get(f"/v1/campaigns/{broken}")["state"] == "finished"
        people = 2 if when == "answer" else 1
        assert service.get(f"/v1/campaigns/{broken}/result")["people"] == people


def test_a_failed_campaign_can_be_canceled(service, monkeypatch):
    numbers = service.enroll(1)
    campaign = service.begin(categories(1))["id"]
    monkeypatch.setattr(OneQuestionState, "after", lambda self, counts, people: 1 // 0)
    question = service.question(campaign)
    service.answer(campaign, question["id"], numbers[0], about_value(question, 1))
    assert count(service, schema.pending) == 1
    service.http.post(f"/v1/campaigns/{campaign}/cancel", headers=service.admin)
    assert service.get(f"/v1/campaigns/{campaign}")["state"] == "cancelled"
    assert count(service, schema.pending) == 0


# streams


@pytest.mark.parametrize("method", ["LBU", "LPU", "LPA", "LBD"])
def test_a_stream_follows_the_clock_and_asks_whom_the_course_asks(service, method):
    numbers = service.enroll(40)
    campaign = service.begin(stream(40, method))["id"]
    for step in range(5):
        while (question := service.question(campaign)) is not None:
            assert question["id"].split("/")[1] == str(step)
            asked = [one for one in numbers if service.question(campaign, one)["asked"]]
            assert question["expected"] == len(asked)
            others = sorted(set(numbers) - set(asked))
            answers = {one: about_value(question, one % 2) for one in (*asked, *others)}
            told = service.batch(question["id"], answers)
            assert told == ["taken"] * len(asked) + ["not asked"] * len(others)
        assert len(service.get(f"/v1/campaigns/{campaign}/result")["steps"]) == step + 1
        service.tick(60)
    document = service.get(f"/v1/campaigns/{campaign}")
    assert document["state"] == "finished"
    steps = service.get(f"/v1/campaigns/{campaign}/result")["steps"]
    assert steps[0]["published"] or method in ("LPA", "LBD")
    for one in steps:
        bounds = zip(one["low"], one["high"], strict=True)
        assert all(0 <= low <= high <= 1 for low, high in bounds)


def test_steps_that_passed_while_the_server_was_away_are_told_as_repeated(tmp_path, url):
    with serving(tmp_path, url) as service:
        numbers = service.enroll(10)
        campaign = service.begin(stream(10))["id"]
        question = service.question(campaign)
        service.batch(question["id"], {one: about_value(question, 0) for one in numbers})
        clock, secrets = service.clock, service.secrets
    clock.pass_by(60 * 3)
    with serving(tmp_path, url, clock) as service:
        service.secrets = secrets
        service.tick()
        assert service.question(campaign)["id"] == f"{campaign}/3/publish"
        steps = service.get(f"/v1/campaigns/{campaign}/result")["steps"]
        assert [(one["step"], one["published"]) for one in steps] == [
            (0, True),
            (1, False),
            (2, False),
        ]
        assert steps[2]["shares"] == steps[0]["shares"]
        service.tick(3600)
        assert service.get(f"/v1/campaigns/{campaign}")["state"] == "finished"
        assert len(service.get(f"/v1/campaigns/{campaign}/result")["steps"]) == 5


def test_a_stream_waits_for_its_people_and_takes_no_more(service):
    service.enroll(5)
    campaign = service.begin(stream(8))
    assert campaign["state"] == "waiting"
    service.enroll(5)
    service.tick(1)
    assert service.question(campaign["id"])["expected"] == 8


def test_of_closed_steps_it_is_not_known_for_long_who_answered(service):
    numbers = service.enroll(10)
    campaign = service.begin(stream(10, steps=30))["id"]
    for _ in range(20):
        question = service.question(campaign)
        service.batch(question["id"], {one: about_value(question, 0) for one in numbers})
        service.tick(60)
    assert count(service, schema.answered) <= 60


# uploads


def test_uploads_come_out_as_they_were_sent(service, tmp_path):
    numbers = service.enroll(3)
    campaign = service.begin(upload(3))["id"]
    question = service.question(campaign)["id"]
    sent = {one: [one + 0.5, float("nan"), -1.25, 7.0] for one in numbers}
    answers = {one: readings(campaign, values) for one, values in sent.items()}
    bad = readings(campaign, [1.0, 2.0, float("inf"), 0.0])
    assert service.batch(question, {numbers[0]: bad}) == ["malformed"]
    assert service.batch(question, answers) == ["taken"] * 3
    release = f"/v1/campaigns/{campaign}/release"
    table = service.http.get(f"{release}?form=csv", headers=service.admin).text
    expected = ["device,reading,value"]
    for one in numbers:
        expected += [f"{one},0,{one + 0.5}", f"{one},1,", f"{one},2,-1.25", f"{one},3,7"]
    assert table.splitlines() == expected


# after a restart


@pytest.mark.parametrize("kind", KINDS)
def test_a_campaign_goes_on_after_a_restart(tmp_path, url, kind):
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(serving(tmp_path, url))
        numbers = service.enroll(100)
        campaign = service.begin(KINDS[kind](100))["id"]
        clock, secrets = service.clock, service.secrets
        for part in (numbers[:50], numbers[50:]):
            question = service.question(campaign)
            mine = [one for one in part if service.question(campaign, one)["asked"]]
            if kind == "shapes":
                data = about_shapes(question, waves(len(mine)), 3)
            elif kind == "upload":
                data = [readings(campaign, [1.0, 2.0, 3.0, 4.0]) for _ in mine]
            else:
                data = [about_value(question, 0) for _ in mine]
            if mine:
                sent = dict(zip(mine, data, strict=True))
                assert set(service.batch(question["id"], sent)) == {"taken"}
            stack.close()
            service = stack.enter_context(serving(tmp_path, url, clock))
            service.secrets = secrets
            if mine and service.question(campaign):
                assert set(service.batch(question["id"], sent)) == {"there already"}
        document = service.get(f"/v1/campaigns/{campaign}")
        assert document["state"] == ("finished" if kind in ("frequency", "upload") else "running")


# what comes out


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_can_be_verified_from_its_files(service, tmp_path, kind, run_command):
    numbers = service.enroll(20)
    campaign = service.begin(KINDS[kind](20))["id"]
    while (question := service.question(campaign)) is not None:
        if kind in ("frequency", "stream"):
            service.batch(question["id"], {one: about_value(question, 0) for one in numbers})
        if kind == "upload":
            sent = {one: readings(campaign, [1.0, 2.0, 3.0, 4.0]) for one in numbers}
            service.batch(question["id"], sent)
        if kind == "shapes":
            service.close(campaign)
    packed = service.http.get(f"/v1/campaigns/{campaign}/release", headers=service.admin).content
    zipfile.ZipFile(io.BytesIO(packed)).extractall(tmp_path)
    (table,) = tmp_path.glob("campaign-*.csv")
    told = run_command(["verify", str(table)])
    assert "ok" in told and "WRONG" not in told
    beside = tmp_path / f"{table.name}.release.json"
    about = json.loads(beside.read_text())
    for damage in (
        {"guarantee": about["guarantee"] | {"loss": {"is": "Pure", "epsilon": 0.01}}},
        {"mechanism": about["mechanism"] | {"epsilon": 0.5}},
        {"release": "0" * 32},
    ):
        beside.write_text(json.dumps(about | damage))
        assert "WRONG" in run_command(["verify", str(table)], fails=True)
    beside.write_text(json.dumps(about))
    table.write_text(table.read_text() + "\n")
    assert "WRONG" in run_command(["verify", str(table)], fails=True)


@pytest.fixture
def run_command(capsys):
    from tempriv.cli import verify  # noqa: F401
    from tempriv.errors import TemprivError

    def run(words, fails=False):
        with pytest.raises(TemprivError) if fails else contextlib.nullcontext():
            commands(words, standalone_mode=False)
        return capsys.readouterr().out

    return run


# what is told


def test_a_preview_says_what_a_device_reveals_and_begins_nothing(service):
    service.enroll(2)
    for kind, made in KINDS.items():
        given = made(40_000)
        told = service.http.post("/v1/campaigns/preview", json=given, headers=service.admin).json()
        assert told["sentence"] and len(told["sentences"]) >= 3
        assert any("epsilon = " in one or "odds" in one for one in told["sentences"])
        assert "announced" in " ".join(told["warnings"])
        assert (told["amplified"] is not None) == (kind in ("shapes", "frequency"))
    weak = categories(40, epsilon=9.0)
    told = service.http.post("/v1/campaigns/preview", json=weak, headers=service.admin).json()
    assert any("weak" in one for one in told["warnings"])
    assert service.get("/v1/campaigns")["campaigns"] == []


def test_a_campaign_that_protects_practically_nothing_has_to_be_meant(service):
    service.enroll(2)
    weak, post = categories(40, epsilon=11.0), service.http.post
    told = post("/v1/campaigns/preview", json=weak, headers=service.admin).json()
    assert told["protects_little"]
    assert any("epsilon = 11 protects practically nothing" in one for one in told["warnings"])
    refused = post("/v1/campaigns", json=weak, headers=service.admin)
    assert refused.status_code == 422 and "accept_weak" in refused.json()["reason"]
    assert service.get("/v1/campaigns")["campaigns"] == []
    made = post("/v1/campaigns", json={**weak, "accept_weak": True}, headers=service.admin)
    assert made.status_code == 201 and "accept_weak" not in made.json()["spec"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"plan": {}}, "plan"),
        ({"plan": {"categories": ["a"], "oracle": "grr"}}, "categories"),
        ({"plan": {"categories": ["a", "a"], "oracle": "grr"}}, "plan"),
        ({"plan": {"categories": ["a", "b"], "oracle": "magic"}}, "oracle"),
        ({"deadline": "2026-03-01T00:00:00Z"}, "deadline"),
        ({"deadline": "tomorrow"}, "deadline"),
        ({"opens": "2026-03-02 13:00"}, "opens"),
        ({"epsilon": 0}, "epsilon"),
        ({"title": " "}, "title"),
        ({"nonce": "x"}, "nonce"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_campaign_that_cannot_be_is_refused_with_a_reason(service, change, reason):
    found = service.http.post("/v1/campaigns", json=categories(5) | change, headers=service.admin)
    assert found.status_code in (409, 422)
    assert reason in found.json()["reason"]
    assert service.get("/v1/campaigns")["campaigns"] == []


def test_devices_see_only_campaigns_that_go_on(service):
    (one,) = service.enroll(1)
    over = service.begin(categories(1))["id"]
    service.http.post(f"/v1/campaigns/{over}/cancel", headers=service.admin)
    running = service.begin(categories(1))["id"]
    told = service.get("/v1/campaigns", service.device(one))["campaigns"]
    assert [document["id"] for document in told] == [running]
    told = service.get("/v1/campaigns")["campaigns"]
    assert [document["id"] for document in told] == [running, over]


def test_whoever_watches_is_told_of_every_change(service):
    (one,) = service.enroll(1)
    campaign = service.begin(categories(1))["id"]
    question = service.question(campaign)
    path = f"/v1/campaigns/{campaign}/events"
    service.answer(campaign, question["id"], one, about_value(question, 0))
    with service.http.stream("GET", path, headers=service.admin) as found:
        assert found.headers["content-type"].startswith("text/event-stream")
        told = [json.loads(line[6:]) for line in found.iter_lines() if line.startswith("data: ")]
    assert told[-1]["state"] == "finished"


def test_metrics_count_and_name_nobody(service):
    numbers = service.enroll(2)
    campaign = service.begin(categories(3))["id"]
    question = service.question(campaign)
    service.batch(question["id"], {one: about_value(question, 0) for one in numbers})
    told = service.http.get("/metrics", headers=service.admin).text
    assert "tempriv_answers_taken_total 2" in told and "tempriv_devices_enrolled 2" in told
    assert campaign not in told


# older stores


def test_an_older_store_is_brought_up_to_date(tmp_path, url):
    from tempriv.collect.server.database import Database

    old = Database(url)
    engine = old._connected()
    with engine.begin() as db:
        assert schema.migrate(db, upto=1) == 0
        assert schema.version_of(db) == 1
    engine.dispose()
    with serving(tmp_path, url) as service:
        with service.collection.store.reading() as db:
            assert schema.version_of(db) == schema.VERSION == 2
        (one,) = service.enroll(1)
        campaign = service.begin(upload(1))["id"]
        sent = readings(campaign, [1.0] * 4)
        assert service.answer(campaign, f"{campaign}/0", one, sent).status_code == 200


def test_a_store_of_a_newer_version_is_refused(tmp_path, url):
    from sqlalchemy import update

    from tempriv.collect.server.database import Database
    from tempriv.errors import TemprivError

    with serving(tmp_path, url) as service:
        job = update(schema.about).values(value="99")
        service.collection.store.submit(lambda db: db.execute(job)).result()
    with pytest.raises(TemprivError, match="version 99"):
        Database(url).open()


def test_who_has_answered_is_looked_up_and_not_searched_for(tmp_path):
    from tempriv.collect.server import database

    with serving(tmp_path) as service, service.collection.store.reading() as db:
        asked = []
        real, numbers = database.execute, np.arange(5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                database, "execute", lambda db, *given: asked.append(given) or real(db, *given)
            )
            database.answered_of(db, 1, numbers)
            database.secrets_of(db, numbers)
        for query, *given in asked:
            plan = [row[3] for row in real(db, f"EXPLAIN QUERY PLAN {query}", *given).fetchall()]
            assert any(one.startswith(("SEARCH answered", "SEARCH devices")) for one in plan), plan
            assert not any(one.startswith(("SCAN answered", "SCAN devices")) for one in plan), plan


# what goes wrong with one campaign is no matter of the others


def test_a_stream_that_nobody_came_to_ends_at_its_deadline_and_others_go_on(service):
    service.enroll(2)
    deadline = "2026-03-02T12:01:00Z"
    alone = service.begin(stream(8) | {"deadline": deadline})["id"]
    other = service.begin(categories(5, patience=100.0))["id"]
    service.tick(61)
    assert service.get(f"/v1/campaigns/{alone}")["state"] == "finished"
    told = service.http.get(f"/v1/campaigns/{alone}/result", headers=service.admin)
    assert told.status_code == 409 and "before it began" in told.json()["reason"]
    service.tick(60)
    assert service.get(f"/v1/campaigns/{other}")["state"] == "finished"


def test_a_stream_whose_steps_have_passed_ends(service):
    service.enroll(3)
    campaign = service.begin(stream(4))["id"]
    service.clock.pass_by(3600)
    service.enroll(1)
    service.tick()
    assert service.get(f"/v1/campaigns/{campaign}")["state"] == "finished"


def test_one_damaged_campaign_does_not_stop_the_others(service):
    from sqlalchemy import update

    service.enroll(2)
    damaged, other = (service.begin(categories(5, patience=100.0))["id"] for _ in range(2))
    job = update(schema.campaigns).where(schema.campaigns.c.id == damaged).values(course="{}")
    service.collection.store.submit(lambda db: db.execute(job)).result()
    service.collection._forget()
    service.tick(101)
    assert service.get(f"/v1/campaigns/{other}")["state"] == "finished"
    assert service.http.get("/v1/campaigns", headers=service.admin).status_code == 200


@pytest.mark.parametrize("names", [["\ud800", "b"], ["a\nb", "c"], ["\u2028", "b"]])
def test_names_that_cannot_be_written_on_a_line_are_refused(service, names):
    given = categories(5) | {"plan": {"categories": names, "oracle": "grr"}}
    body = json.dumps(given).encode()
    headers = service.admin | {"content-type": "application/json"}
    found = service.http.post("/v1/campaigns", content=body, headers=headers)
    assert found.status_code in (400, 409, 422), found.text


def test_a_campaign_that_could_not_be_read_again_is_not_begun(service):
    names = [f"{i}{'é' * 94}" for i in range(4000)]
    given = categories(5) | {"plan": {"categories": names, "oracle": "grr"}}
    body = json.dumps(given, ensure_ascii=False).encode()
    headers = service.admin | {"content-type": "application/json"}
    found = service.http.post("/v1/campaigns", content=body, headers=headers)
    assert found.status_code == 409 and "too long" in found.json()["reason"]
    assert service.get("/v1/campaigns")["campaigns"] == []
    service.begin(categories(5))


def test_a_question_is_closed_once_however_often_it_is_asked_for(service):
    service.enroll(300)
    campaign = service.begin(shapes(300))["id"]
    given = {"question": service.question(campaign)["id"]}
    path = f"/v1/campaigns/{campaign}/close-question"
    told = [service.http.post(path, json=given, headers=service.admin) for _ in range(2)]
    assert [one.status_code for one in told] == [200, 409]
    assert len(service.get(f"/v1/campaigns/{campaign}")["rounds"]) == 1


def test_who_withdraws_after_answering_stays_counted_and_expected(service):
    numbers = service.enroll(5)
    campaign = service.begin(categories(5))["id"]
    question = service.question(campaign)
    first, quiet, *others = numbers
    assert service.batch(question["id"], {first: about_value(question, 0)}) == ["taken"]
    for one in (first, quiet):
        service.http.delete(f"/v1/devices/{one}", headers=service.admin)
    for one in others[:-1]:
        assert service.batch(question["id"], {one: about_value(question, 0)}) == ["taken"]
    service.collection._forget()  # as after a restart
    assert service.get(f"/v1/campaigns/{campaign}")["state"] == "running"
    assert service.batch(question["id"], {others[-1]: about_value(question, 0)}) == ["taken"]
    assert service.get(f"/v1/campaigns/{campaign}")["state"] == "finished"


def test_nothing_is_taken_after_its_time_even_before_the_clock_ticks(service):
    (one,) = service.enroll(1)
    campaign = service.begin(categories(5, patience=10.0))["id"]
    question = service.question(campaign)
    service.clock.pass_by(11)
    assert service.batch(question["id"], {one: about_value(question, 0)}) == ["late"]


@pytest.mark.services
def test_a_server_that_lost_its_lock_takes_it_again_or_writes_nothing(tmp_path):
    from sqlalchemy import text

    from tempriv.collect.server.database import ADVISORY_LOCK, Database

    url = postgres.new_database()
    with serving(tmp_path, url) as service:
        store = service.collection.store

        def lose():
            gone = text(f"SELECT pg_terminate_backend({store._holder})")
            with store.reading() as db:
                db.execute(gone)

        lose()
        service.enroll(1)  # taken again: nobody else was there
        lose()
        other = Database(url)._connected().connect()
        other.execute(text(f"SELECT pg_advisory_lock({ADVISORY_LOCK})"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tempriv.collect.server.database.LOCK_TRIES", 2)
            made = service.http.post("/v1/enrolments", json={"count": 1}, headers=service.admin)
        assert made.status_code == 503
        other.close()


def test_intervals_of_a_stream_that_asks_some_hold_the_share_of_all():
    """200 draws; a right 95 % interval misses 24 or more of them with probability below 1e-4."""
    from datetime import UTC, datetime

    from tempriv.collect.protocol.kinds.stream import StreamCampaignPlan

    plan = StreamCampaignPlan(
        epsilon=8.0,
        people=4000,
        categories=("home", "away"),
        method="LPU",
        window=20,
        every=60.0,
        steps=5,
    )
    campaign = Campaign.begin(
        "stream", "Home", "Home?", plan, now=datetime(2026, 1, 1, tzinfo=UTC), nonce="0" * 32
    )
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        run = campaign.start()
        people = np.arange(4000) < 1200  # a share of 0.3
        asked = rng.permutation(people)[:200]
        counts = np.bincount(1 - asked.astype(int), minlength=2)
        support = run.protocol.question.frequency.simulate_support(counts, rng)
        low, high = run.after(support, 200).bounds
        held += low[0] <= 0.3 <= high[0]
    assert held > 200 - 24, held


@pytest.mark.parametrize(
    ("method", "shares", "longest", "fewest"),
    [
        ("published", (0.25, 0.25, 0.25, 0.25), 10, 2500),
        ("nearest", (0.3, 0.3, 0.1, 0.3), 20, 476),
        ("published", (0.02, 0.08, 0.70, 0.20), 6, 2000),
    ],
)
def test_a_preview_counts_on_the_smallest_group_that_is_asked(method, shares, longest, fewest):
    from tempriv.collect.protocol.kinds.shapes import smallest_round
    from tempriv.local.shapes.plan import ShapesPlan
    from tempriv.local.shapes.sax import Sax

    plan = ShapesPlan(
        epsilon=1.0,
        shapes=3,
        people=100_000,
        sax=Sax(longest=longest),
        method=method,
        shares=shares,
    )
    assert smallest_round(plan) == fewest
