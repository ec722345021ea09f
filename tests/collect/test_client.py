"""A device over a network: how it enrolls, takes part, and gets its answers through.

Most tests talk to a server of a few lines; the last ones to the real one.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import pickle
import socket
import threading
import time
from collections import Counter

import httpx
import numpy as np
import pytest

from tempriv import Laplace
from tempriv.collect import Client
from tempriv.collect.device.client import Visit
from tempriv.collect.device.http import (
    AccessError,
    HttpClient,
    UnreachableError,
    new_http,
    origin_of,
)
from tempriv.collect.device.outbox import Outbox, PendingAnswer
from tempriv.collect.server.tokens import Token
from tempriv.errors import StateError, UsageError
from tempriv.privacy.units import WholeSeries
from tests.support.collecting import Clock, serving
from tests.support.collecting import categories as about_categories
from tests.support.collecting import shapes as about_shapes
from tests.support.collecting import stream as about_stream
from tests.support.devices import (
    ALL_KINDS,
    BEGUN,
    CAMPAIGNS,
    ENROLMENT,
    NUMBER,
    SERIES,
    URL,
    Server,
    device,
    frequency_campaign,
    honest,
    stream_campaign,
    upload_campaign,
)

# taking part


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_device_answers_each_kind_once_with_bytes_that_a_server_takes(tmp_path, kind):
    campaign = CAMPAIGNS[kind]()
    server = Server(campaign)
    with device(server, tmp_path / "home") as client:
        visit = client.run_once()
        assert visit.reached and visit.taken == 1 and visit.waiting == 0 and not visit.declined
        client.run_once()
    ((question, data),) = server.answers
    asked = campaign.start().question
    assert question == asked.id and len(data) == asked.answer_bytes
    assert data.startswith(asked.head)
    rows = np.frombuffer(data, dtype=np.uint8)[None, -asked.report_bytes :]
    assert asked.fits(rows).all()


@pytest.mark.parametrize("kind", ["frequency", "shapes", "upload"])
def test_who_has_answered_does_not_ask_again(tmp_path, kind):
    server = Server(CAMPAIGNS[kind]())
    with device(server, tmp_path) as client:
        client.run_once()
    server.requests.clear()
    with device(server, tmp_path) as client:
        assert client.run_once().declined == {}
        assert client.spent() == 1.0
    assert server.paths() == ["/v1/campaigns"]


def test_nothing_is_answered_that_is_not_asked_of_this_device(tmp_path):
    campaign = frequency_campaign()
    server = Server(campaign)
    for question in (None, honest(campaign) | {"asked": False}):
        server.questions[campaign.id] = question
        with device(server, tmp_path) as client:
            assert client.run_once().taken == 0
    assert not server.answers


def test_an_upload_protects_every_reading_and_hides_how_long_the_series_is(tmp_path):
    sent = {}
    for count in (1, 24, 100):
        server = Server(upload_campaign())
        with device(server, tmp_path / str(count)) as client:
            client.hold(series=np.full(count, 1e6))  # out of bounds: it counts as the bound
            client.run_once()
        sent[count] = np.frombuffer(server.answers[0][1][36:], dtype="<f8")
    assert all(one.shape == (24,) and np.isfinite(one).all() for one in sent.values())
    assert not np.array_equal(sent[24], sent[100])


def test_a_category_that_nobody_asks_for_becomes_any_of_them():
    from tempriv.collect.protocol.kinds.base import category_index
    from tempriv.sampling.keys import SeriesKey

    chains = [
        SeriesKey(hashlib.sha256(bytes([i % 256, i // 256])).digest(), 0) for i in range(3000)
    ]
    counts = Counter(category_index(("gas", "oil", "wood"), "coal", chain) for chain in chains)
    # each is binomial(3000, 1/3); 5 standard deviations are 129, passed with chance below 1e-6
    assert all(abs(counts[i] - 1000) < 129 for i in range(3))
    assert {category_index(("gas", "oil", "wood"), "oil", chain) for chain in chains[:50]} == {1}


def test_categories_that_could_be_decide_which_campaigns_are_answered(tmp_path):
    """Not the one that it is: every device with this vocabulary does the same."""
    for own in ("gas", "coal"):
        server = Server(frequency_campaign())
        with device(server, tmp_path / own) as client:
            client.hold(category=own, categories=("gas", "coal"))
            declined = client.run_once().declined
        assert list(declined.values()) == [
            "this device holds nothing for a campaign of kind frequency"
        ]
        assert not server.answers
    with device(Server(), tmp_path / "gas") as client:
        with pytest.raises(UsageError, match="must be one of categories") as refused:
            client.hold(category="coke", categories=("gas", "coal"))
        assert "coke" not in str(refused.value)
        client.hold(category="oil", categories=("gas", "oil"))


def test_a_device_that_holds_nothing_takes_no_part(tmp_path):
    server = Server(*(make() for make in CAMPAIGNS.values()))
    with Client(
        URL,
        tmp_path,
        enrollment=ENROLMENT,
        clock=lambda: BEGUN,
        http=server.http(),
        kinds=ALL_KINDS,
    ) as client:
        assert len(client.run_once().declined) == 4
    assert server.paths() == ["/v1/devices", "/v1/campaigns"]


# enrolling


def test_enrolling_is_the_same_request_until_it_is_known_to_have_worked(tmp_path):
    server = Server()

    def lost(request, response):
        raise httpx.ReadTimeout("the reply is lost")

    server.after = lost
    for _ in range(2):
        with device(server, tmp_path) as client:
            assert not client.run_once().reached
    server.after = lambda request, response: response
    with device(server, tmp_path, enrollment=None) as client:
        assert client.run_once().reached
    bodies = {body for _, path, body in server.requests if path == "/v1/devices"}
    assert len(bodies) == 1
    kept = (tmp_path / "identity.json").read_text()
    assert ENROLMENT not in kept and json.loads(kept)["enrolled"]
    secret = bytes.fromhex(json.loads(kept)["secret"])
    assert secret.hex() not in bodies.pop().decode(), "the server is told a digest"


def test_a_token_that_another_device_used_is_refused_for_good(tmp_path):
    server = Server()
    with device(server, tmp_path / "one") as client:
        client.run_once()
    with (
        device(server, tmp_path / "two") as client,
        pytest.raises(AccessError, match="ask for a new one"),
    ):
        client.run_once()


def test_who_is_not_enrolled_needs_a_token_and_a_home_has_one_device(tmp_path):
    with pytest.raises(UsageError, match="give enrollment"):
        Client(URL, tmp_path)
    with pytest.raises(UsageError, match="one-time token"):
        Client(URL, tmp_path, enrollment="device-17.x")
    with (
        Client(URL, tmp_path, enrollment=ENROLMENT),
        pytest.raises(StateError, match="another process"),
    ):
        Client(URL, tmp_path)
    with pytest.raises(StateError, match="belongs to the server"):
        Client("https://elsewhere.example.org", tmp_path)
    with pytest.raises(UsageError, match="this is device 17"):
        Client(URL, tmp_path, enrollment=Token("enrol", 18, bytes(32)).text)
    with Client(URL, tmp_path) as client:
        assert client.number == NUMBER
        with pytest.raises(StateError, match="not copied"):
            pickle.dumps(client)


def test_a_server_that_gives_another_number_is_refused(tmp_path):
    server = Server()
    told = {"devices": [{"number": 18, "outcome": "enrolled"}]}
    server.before = lambda request: httpx.Response(200, json=told)
    with device(server, tmp_path) as client, pytest.raises(AccessError):
        client.run_once()


def test_who_withdraws_sends_nothing_any_more(tmp_path):
    """Though the server says that it has forgotten the device, and goes on asking."""
    server = Server(frequency_campaign(), stream_campaign())
    server.before = lambda request: httpx.Response(503) if "answers" in request.url.path else None
    with device(server, tmp_path) as client:
        assert client.run_once().waiting == 1
        server.before = lambda request: (
            httpx.Response(200, json={}) if request.method == "DELETE" else None
        )
        client.withdraw()
        server.requests.clear()
        assert client.run_once() == Visit()
        with pytest.raises(StateError, match="has withdrawn"):
            client.offers()
    with device(server, tmp_path) as client:
        assert client.run_once() == Visit()
    assert not server.answers and not server.requests


def test_who_withdraws_while_the_server_is_away_tells_it_later_and_answers_nothing(tmp_path):
    server = Server(frequency_campaign())
    with device(Server(), tmp_path) as client:
        client.run_once()
    server.before = lambda request: httpx.Response(503)
    with device(server, tmp_path) as client:
        with pytest.raises(UnreachableError):
            client.withdraw()
        assert not client.run_once().reached
    server.before = lambda request: httpx.Response(200, json={})
    with device(server, tmp_path) as client:
        assert client.run_once().reached
    assert {(method, path) for method, path, _ in server.requests} == {
        ("DELETE", f"/v1/devices/{NUMBER}")
    }
    assert len(server.requests) == 3 and not server.answers


OTHER = Token("enrol", 18, bytes(32)).text


@pytest.mark.parametrize("how", ["refused", "forgotten", "withdrawn"])
def test_a_device_begins_again_in_its_home_with_what_is_left_of_its_limits(tmp_path, how):
    server, first = Server(frequency_campaign()), []
    with device(server, tmp_path) as client:
        if how == "refused":
            server.enrolled[ENROLMENT] = "of another device"
            with pytest.raises(AccessError, match="same folder"):
                client.run_once()
        else:
            server.before = lambda request: (
                httpx.Response(503) if "answers" in request.url.path else None
            )
            client.run_once()
            first = [client._home.identity.token, client._home.link.epoch]
            server.before = lambda request: httpx.Response(401, json={"reason": "not known"})
        if how == "forgotten":
            with pytest.raises(AccessError):
                client.run_once()
        if how == "withdrawn":
            client.withdraw()
    server.before = lambda request: None
    server.requests.clear()
    server.number = 18
    with device(server, tmp_path, enrollment=OTHER) as client:
        assert client.number == 18 and client.spent() == (1.0 if first else 0.0)
        visit = client.run_once()
        assert visit.reached and visit.taken == (0 if first else 1), "a campaign has one answer"
        assert client._home.identity.token != (first or [""])[0]
        assert client._home.link.epoch == 1
        assert client.spent() == 1.0
    with device(server, tmp_path, enrollment=OTHER) as client:
        assert client.number == 18
    with pytest.raises(UsageError, match="this is device 18"):
        Client(URL, tmp_path, enrollment=ENROLMENT)


def test_who_withdraws_begins_again_only_when_the_server_has_heard(tmp_path):
    server = Server()
    with device(server, tmp_path) as client:
        client.run_once()
        server.before = lambda request: httpx.Response(503)
        with pytest.raises(UnreachableError):
            client.withdraw()
    with pytest.raises(UsageError, match="has heard that it withdraws"):
        Client(URL, tmp_path, enrollment=OTHER)


# on the way


def test_an_answer_is_sent_with_the_same_bytes_until_it_is_taken(tmp_path):
    campaign = frequency_campaign()
    server, tries = Server(campaign), [0]

    def failing(request):
        if "answers" not in request.url.path:
            return None
        tries[0] += 1
        if tries[0] == 1:
            raise httpx.ConnectError("no way")
        return {
            2: httpx.Response(503),
            3: httpx.Response(429, headers={"retry-after": "7"}),
            4: httpx.Response(200, text="<html>"),
            5: httpx.Response(404, text="<html>"),
            6: httpx.Response(307, headers={"location": "https://evil.example.org"}),
            7: httpx.Response(200, json={"outcome": "perhaps"}),
        }.get(tries[0])

    server.before = failing
    with device(server, tmp_path) as client:
        for _ in range(4):
            visit = client.run_once()
            assert not visit.reached and visit.waiting == 1
    with device(server, tmp_path) as client:  # in another process, with something else in hand
        client.hold(category="wood")
        for _ in range(3):
            assert not client.run_once().reached
        assert client.run_once().taken == 1
    sent = {body for _, path, body in server.requests if "answers" in path}
    assert len(sent) == 1 and len(server.answers) == 1


@pytest.mark.parametrize(("status", "waiting"), [(409, 0), (422, 0), (404, 0), (500, 1), (401, 1)])
def test_what_is_refused_for_good_is_not_sent_again(tmp_path, status, waiting):
    campaign = frequency_campaign()
    server = Server(campaign)
    refused = httpx.Response(status, json={"reason": "late: the question is closed"})
    server.before = lambda request: refused if "answers" in request.url.path else None
    with device(server, tmp_path) as client:
        if status == 401:
            with pytest.raises(AccessError):
                client.run_once()
        else:
            visit = client.run_once()
            assert visit.refused == (("late: the question is closed",) if not waiting else ())
        assert len(list(Outbox(tmp_path / "outbox"))) == waiting
        server.before = lambda request: None
        assert client.run_once().taken == waiting


def test_after_the_deadline_nothing_is_sent(tmp_path):
    campaign, clock = frequency_campaign(), Clock()
    clock.now = BEGUN
    server = Server(campaign)
    server.before = lambda request: httpx.Response(503) if "answers" in request.url.path else None
    with device(server, tmp_path, clock=clock) as client:
        assert client.run_once().waiting == 1
        server.before = lambda request: None
        clock.pass_by(8 * 86_400)
        assert client.run_once().waiting == 0
    assert not server.answers


def test_running_waits_longer_while_the_server_is_away_and_stops(tmp_path, monkeypatch):
    server = Server()
    waits = []
    with device(server, tmp_path) as client:
        monkeypatch.setattr(client, "_wait", waits.append)
        server.before = lambda request: httpx.Response(503, headers={"retry-after": "40"})
        client.run(until=lambda: len(waits) >= 12)
        assert all(one >= 40 for one in waits), "as the server wants it"
        server.before = lambda request: httpx.Response(503)
        waits.clear()
        client.run(until=lambda: len(waits) >= 12)
        for i, wait in enumerate(waits):
            whole = min(300.0, 0.5 * 2**i)
            assert whole / 2 <= wait <= whole
        assert len(set(waits)) == 12, "never in step with others"
        server.before = lambda request: None
        waits.clear()
        client.run(until=lambda: len(waits) >= 5, pause=30.0)
        assert all(15 <= one <= 45 for one in waits)
        client.run(until=BEGUN)  # it is over already
        assert len(waits) == 5
        monkeypatch.setattr(client, "_wait", lambda seconds: client.stop())
        client.run()


def test_between_visits_a_step_of_a_stream_does_not_pass(tmp_path, monkeypatch):
    with device(Server(stream_campaign(every=20.0, window=200, steps=400)), tmp_path) as client:
        waits = []
        monkeypatch.setattr(client, "_wait", waits.append)
        client.run(until=lambda: len(waits) >= 3)
        assert max(waits) <= 7.5


def test_an_address_must_be_encrypted_unless_it_is_this_machine(tmp_path):
    for url in (
        "http://collect.example.org",
        "ftp://127.0.0.1",
        "127.0.0.1:8000",
        "https://name:password@collect.example.org",
        "http://10.0.0.1:8000",
    ):
        with pytest.raises(UsageError, match="url"):
            origin_of(url)
    assert origin_of("http://10.0.0.1:8000", plain=True)
    assert origin_of("http://localhost:8000/") == "http://localhost:8000"


def test_an_address_that_cannot_be_one_is_refused_with_a_sentence():
    for url in (
        "http://127.0.0.1:99999",
        "http://127.0.0.1:abc",
        "https://ho st",
        "https://[::1",
        "https://" + "a" * 70 + ".org",
        "https://a..org",
        "https://host/#part",
        "http://127.0.0.1:0",
        "https://",
    ):
        with pytest.raises(UsageError, match="must be an address such as"):
            origin_of(url)
    assert origin_of("http://[::1]:8000") == "http://[::1]:8000"
    assert origin_of("https://büro.example.org") and origin_of("https://a.example.org./x/")


def test_a_digit_that_is_no_number_is_no_time_to_wait(tmp_path):
    server = Server()
    server.before = lambda request: httpx.Response(503, headers=[(b"retry-after", b"\xb2")])
    with device(server, tmp_path) as client:
        assert not client.run_once().reached


@pytest.mark.parametrize("deadline", ["tomorrow", "2026-03-02T12:00:00"])
def test_a_letter_with_a_broken_deadline_stops_no_visit(tmp_path, deadline):
    server = Server(frequency_campaign())
    with device(server, tmp_path) as client:
        client._outbox.put(PendingAnswer("0" * 32, "0/0", b"x", deadline, 0))
        visit = client.run_once()
        assert visit.taken == 1 and visit.waiting == 0


def test_nobody_is_followed_elsewhere(tmp_path):
    elsewhere = {"location": "https://elsewhere.example.org/v1/campaigns"}
    server = Server()
    server.before = lambda request: (
        httpx.Response(307, headers=elsewhere, json={"campaigns": []})
        if request.url.path == "/v1/campaigns"
        else None
    )
    with device(server, tmp_path) as client:
        assert not client.run_once().reached
    assert len(server.requests) == 2
    with new_http() as http:
        assert not http.follow_redirects


def test_whatever_connections_are_given_nobody_is_followed(tmp_path):
    hosts = []

    def reply(request):
        hosts.append(request.url.host)
        return httpx.Response(307, headers={"location": "http://evil.example.org/v1/devices"})

    http = httpx.Client(transport=httpx.MockTransport(reply), follow_redirects=True)
    with http, Client(URL, tmp_path, enrollment=ENROLMENT, http=http) as client:
        assert not client.run_once().reached
    assert hosts == ["127.0.0.1"]


def test_a_packed_reply_is_not_unpacked(tmp_path):
    read = []

    class Packed(httpx.SyncByteStream):
        def __iter__(self):
            read.append(True)
            yield gzip.compress(b'{"campaigns": []}')

    def reply(request):
        assert request.headers["accept-encoding"] == "identity"
        return httpx.Response(200, headers={"content-encoding": "gzip, gzip"}, stream=Packed())

    http = httpx.Client(transport=httpx.MockTransport(reply))
    with http, pytest.raises(UnreachableError, match="packed"):
        HttpClient(URL, http).ask("GET", "/v1/campaigns")
    assert not read


def test_a_reply_without_end_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("tempriv.collect.device.http.MAX_REPLY_BYTES", 1000)
    server = Server()
    server.before = lambda request: (
        httpx.Response(200, content=b"1" * 2000) if request.url.path == "/v1/campaigns" else None
    )
    with device(server, tmp_path) as client:
        assert not client.run_once().reached


@pytest.mark.parametrize("early", [b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n", b""])
def test_a_reply_that_drips_is_given_up(monkeypatch, early):
    """Each byte comes in time; in the head of the reply as in its body."""
    monkeypatch.setattr("tempriv.collect.device.http.REPLY_SECONDS", 0.5)
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as place, new_http() as http:

        def drip():
            other, _ = place.accept()
            with other, contextlib.suppress(OSError):
                other.recv(65536)
                other.sendall(early)
                for byte in (early and b" " * 90) or b"HTTP/1.1 200 OK\r\nx: " + b"y" * 90:
                    other.sendall(bytes([byte]))
                    if over.wait(0.05):
                        return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        began = time.monotonic()
        with pytest.raises(UnreachableError, match="takes"):
            HttpClient(f"http://127.0.0.1:{place.getsockname()[1]}", http).ask(
                "GET", "/v1/campaigns"
            )
        assert time.monotonic() - began < 3
        over.set()
        thread.join()


# the real server


@pytest.fixture
def service(tmp_path):
    (tmp_path / "server").mkdir()
    with serving(tmp_path / "server") as found:
        yield found


def real_devices(service, tmp_path, count, **given):
    made = service.http.post("/v1/enrolments", json={"count": count}, headers=service.admin).json()
    return [
        Client(
            URL,
            tmp_path / f"device-{i}",
            enrollment=token,
            clock=service.clock,
            http=service.http,
            kinds=ALL_KINDS,
            most_epsilon=4.0,
            **given,
        )
        for i, token in enumerate(made["tokens"])
    ]


def visits(clients):
    return Counter(client.run_once().taken for client in clients)


def test_devices_answer_the_real_server_about_a_category(service, tmp_path):
    clients = real_devices(service, tmp_path, 12)
    for i, client in enumerate(clients):
        client.hold(category=("gas", "oil", "wood")[i % 3])
    visits(clients)  # they enroll
    name = service.begin(about_categories(12))["id"]
    assert visits(clients) == {1: 12}
    assert service.get(f"/v1/campaigns/{name}")["state"] == "finished"
    assert service.get(f"/v1/campaigns/{name}/result")["people"] == 12
    assert visits(clients) == {0: 12}


def test_devices_answer_the_real_server_about_shapes(service, tmp_path):
    clients = real_devices(service, tmp_path, 40)
    for i, client in enumerate(clients):
        client.hold(series=np.sin(np.arange(60) / 6 + 3 * (i % 2)))
    visits(clients)
    name = service.begin(about_shapes(40))["id"]
    taken = 0
    for _ in range(30):
        taken += sum(client.run_once().taken for client in clients)
        if service.get(f"/v1/campaigns/{name}")["state"] == "finished":
            break
        if service.question(name)["expected"] == 0:  # nobody has that lot
            service.close(name)
    assert taken > 20, "a tree that ends early leaves some unasked"
    assert service.get(f"/v1/campaigns/{name}/result")["shapes"]
    assert sum(client.spent() for client in clients) == 4.0 * taken
    assert {client.spent() for client in clients} <= {0.0, 4.0}


@pytest.mark.parametrize("method", ["LBU", "LPU", "LBA"])
def test_devices_follow_a_stream_of_the_real_server(service, tmp_path, method):
    clients = real_devices(service, tmp_path, 8, stream_seconds=120.0)
    for i, client in enumerate(clients):
        client.observe("home" if i % 2 else "away")
    visits(clients)
    name = service.begin(about_stream(8, method=method))["id"]
    service.tick()
    taken = 0
    for _ in range(5):
        for _ in range(2):
            taken += sum(client.run_once().taken for client in clients)
            service.tick()
        service.tick(60.0)
    assert service.get(f"/v1/campaigns/{name}")["state"] == "finished"
    assert len(service.get(f"/v1/campaigns/{name}/result")["steps"]) == 5
    assert taken >= (40 if method == "LBU" else 16)


def test_devices_upload_to_the_real_server_and_withdraw(service, tmp_path):
    clients = real_devices(service, tmp_path, 3)
    for client in clients:
        client.hold(series=SERIES[:4])
    visits(clients)
    given = {
        "kind": "upload",
        "title": "Meters",
        "asks": "A day",
        "epsilon": 1.0,
        "people": 3,
        "plan": upload_campaign(
            Laplace(epsilon=1.0, bounds=(0, 5), unit=WholeSeries(4)), 4
        ).plan.to_dict(),
    }
    name = service.begin(given)["id"]
    assert visits(clients) == {1: 3}
    assert service.get(f"/v1/campaigns/{name}/result")["series"] == 3
    clients[0].withdraw()
    assert clients[0].run_once() == Visit()
    assert service.get("/v1/fleet")["enrolled"] == 2


def test_a_campaign_that_the_real_server_shows_is_recomputed(service, tmp_path):
    (client,) = real_devices(service, tmp_path, 1)
    client.hold(category="gas")
    for made in (about_categories(5), about_shapes(50), about_stream(5)):
        service.begin(made)
    offers = client.offers()
    assert [one.campaign.kind for one in offers] == ["stream", "shapes", "frequency"]
    assert offers[2].refusal is None
    assert "holds nothing" in offers[0].refusal and "holds nothing" in offers[1].refusal
