"""What a device keeps: who can read it, what a thief learns, and what a kill at any point costs."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import shutil
import stat
import threading
from pathlib import Path

import httpx
import numpy as np
import pytest

from tempriv.collect import Client
from tempriv.collect.device.answers import DeviceAnswers, OwnedData
from tempriv.collect.device.checks import verified_question
from tempriv.collect.device.home import Home
from tempriv.collect.device.limits import DeviceLimits
from tempriv.collect.device.outbox import Outbox, PendingAnswer
from tempriv.errors import DataError, StateError, TemprivError, UsageError
from tempriv.local.streams.messages import StreamAnswer
from tempriv.sampling.keys import fresh_series_key
from tests.support.devices import (
    ALL_KINDS,
    BEGUN,
    CAMPAIGNS,
    ENROLMENT,
    NUMBER,
    SECRET_VALUE,
    URL,
    Server,
    device,
    frequency_campaign,
    holding,
    honest,
    shapes_campaign,
    stream_campaign,
)


def test_only_the_owner_can_read_what_is_kept(tmp_path):
    old = os.umask(0)
    try:
        server = Server(frequency_campaign(), stream_campaign(), shapes_campaign())
        server.before = lambda request: (
            httpx.Response(503) if "answers" in request.url.path else None
        )
        with device(server, tmp_path / "home") as client:
            client.run_once()
            places = [tmp_path / "home", *(tmp_path / "home").rglob("*")]
            assert any(one.name.endswith(".letter") for one in places)
            for one in places:
                mode = stat.S_IMODE(one.stat().st_mode)
                assert mode == (0o700 if one.is_dir() else 0o600), one
    finally:
        os.umask(old)


def test_nothing_private_is_told_written_or_logged(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    server = Server(*(make() for make in CAMPAIGNS.values()))
    with device(server, tmp_path) as client:
        client.hold(series=[SECRET_VALUE] * 24, label="secret-label", category="secret-category")
        client.observe("secret-value")
        visit = client.run_once()
        offers = client.offers()
        with pytest.raises(DataError) as refused:
            client.hold(series=[SECRET_VALUE, float("nan")])
        told = [repr(client), repr(client._data), repr(visit), repr(offers), str(refused.value)]
        told += [caplog.text, repr(client._home), repr(client._wire), repr(client._home.identity)]
        key = client._home.link.secret.hex()
        secret = client._home.identity.token.partition(".")[2]
    assert visit.taken == 4
    raw = np.array([SECRET_VALUE]).tobytes()
    for text in told:
        assert not any(word in text for word in ("1234.5", "secret-", key, secret))
    for path in tmp_path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"secret-" not in data and b"1234.5" not in data and raw not in data
    for _, path, body in server.requests:
        assert secret not in path and b"secret-" not in body


def test_what_is_held_is_refused_when_it_is_given_and_not_when_it_is_asked_for(tmp_path):
    with device(Server(), tmp_path) as client:
        for wrong in ([], [[1.0]], [1.0, None], ["a"], [float("inf")]):
            with pytest.raises(TemprivError):
                client.hold(series=wrong)
        for name in ("label", "category"):
            with pytest.raises(UsageError, match="must be a text"):
                client.hold(**{name: 5})
        with pytest.raises(UsageError, match="must be a text"):
            client.observe(5)


def test_a_stolen_folder_undoes_nothing_that_was_sent(tmp_path):
    server = Server(frequency_campaign())
    with device(server, tmp_path) as client:
        client.run_once()  # enrolls, answers
        before = client._home.link
    assert before.epoch == 1
    campaign = stream_campaign()
    server.documents.append(server.document(campaign))
    server.questions[campaign.id] = honest(campaign)
    with device(server, tmp_path) as client:
        client.run_once()
        after = client._home.link
    assert after.epoch == 2 and after == before.at_epoch(2)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert before.secret.hex().encode() not in kept


def test_a_restored_folder_repeats_its_answer_and_never_puts_its_noise_on_other_data(tmp_path):
    campaign, link = frequency_campaign(), fresh_series_key()
    asked = verified_question(campaign, honest(campaign), NUMBER, BEGUN)

    def report(folder, own):
        (tmp_path / folder).mkdir()
        answers = DeviceAnswers(tmp_path / folder, DeviceLimits(), 0)
        held = OwnedData(category=own, has_category=True)
        return StreamAnswer.from_bytes(answers.draw(campaign, asked, held, link, 0)).report

    assert report("a", "gas") == report("b", "gas")
    # with one noise on three values all three reports would differ, always; here they may agree
    agree = 0
    for i in range(40):
        link = fresh_series_key()
        agree += report(f"c{i}", "gas") == report(f"d{i}", "oil")
    assert agree > 0  # 40 times, each with a chance of 2 p q + q^2 > 0.4: all fail below 1e-9


def test_a_letter_is_whole_or_not_there(tmp_path):
    outbox = Outbox(tmp_path / "outbox")
    letter = PendingAnswer("0" * 32, "0/0", b"noise", "2026-01-01T00:00:00Z", 3)
    outbox.put(letter)
    with pytest.raises(StateError, match="waits already"):
        outbox.put(letter)
    assert list(outbox) == [letter] and "noise" not in repr(letter)
    (outbox.folder / ".x.1.partial").write_bytes(b"half")
    (outbox.folder / "damaged.letter").write_bytes(b'{"campaign": 5}')
    assert list(Outbox(tmp_path / "outbox")) == [letter]
    assert len(outbox) == 1


@pytest.mark.parametrize("name", ["identity.json", "noise.json"])
def test_a_damaged_home_is_refused(tmp_path, name):
    with Client(URL, tmp_path, enrollment=ENROLMENT):
        pass
    for damage in (b"", b"{}", b"[1]", b'{"secret": "00", "link": 0}'):
        (tmp_path / name).write_bytes(damage)
        with pytest.raises(StateError, match="damaged"):
            Client(URL, tmp_path)


def test_after_it_is_closed_a_device_does_nothing(tmp_path):
    server = Server(frequency_campaign())
    with device(server, tmp_path) as client:
        pass
    client.close()
    campaign = frequency_campaign()
    for call in (
        client.run_once,
        client.run,
        client.offers,
        client.withdraw,
        client.spent,
        lambda: client.observe("in"),
        lambda: client.hold(category="gas"),
        lambda: client.consent(campaign),
        lambda: client._home.advance(5),
        lambda: client._home.is_over("leaving"),
    ):
        with pytest.raises(StateError, match="is closed"):
            call()
    assert not server.requests


def test_closing_waits_for_a_visit_and_ends_the_run(tmp_path):
    server, asked, go_on = Server(frequency_campaign()), threading.Event(), threading.Event()

    def before(request):
        asked.set()
        go_on.wait(10)

    server.before = before
    problems = []
    with device(server, tmp_path) as client:

        def running():
            try:
                client.run()
            except TemprivError as problem:
                problems.append(problem)

        runner = threading.Thread(target=running)
        runner.start()
        assert asked.wait(10)
        closer = threading.Thread(target=client.close)
        closer.start()
        with pytest.raises(StateError, match="another process"):
            Home(tmp_path)
        go_on.set()
        runner.join(10)
        closer.join(10)
    assert not problems and len(server.answers) == 1
    Home(tmp_path).close()


def test_a_copy_of_a_home_is_refused_and_a_moved_one_is_not(tmp_path):
    server = Server(frequency_campaign())
    with device(server, tmp_path / "home") as client:
        client._enroll()
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    before = {path: path.read_bytes() for path in (tmp_path / "copy").glob("*.json")}
    with pytest.raises(StateError, match="Go on with the folder that it was copied from"):
        Client(URL, tmp_path / "copy", enrollment=ENROLMENT)
    assert all(path.read_bytes() == data for path, data in before.items())
    (tmp_path / "home").rename(tmp_path / "moved")
    with device(server, tmp_path / "moved") as client:
        assert client.run_once().taken == 1
    shutil.copytree(tmp_path / "copy", tmp_path / "moved", dirs_exist_ok=True)
    (tmp_path / "moved" / "lock").unlink()
    with pytest.raises(StateError, match="put back"):
        Client(URL, tmp_path / "moved")


def test_a_home_of_an_earlier_version_is_taken_as_it_is(tmp_path):
    with device(Server(), tmp_path) as client:
        client.run_once()
    place = tmp_path / "identity.json"
    kept = json.loads(place.read_text())
    place.write_text(json.dumps({k: v for k, v in kept.items() if k not in ("over", "place")}))
    with device(Server(), tmp_path) as client:
        assert client.number == NUMBER and client._home.identity.enrolled


def test_a_folder_with_other_things_in_it_is_left_as_it_is(tmp_path):
    home = tmp_path / "papers"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    for name in (".draft.partial", "letter.txt"):
        (home / name).write_text("mine")
    with pytest.raises(StateError, match="is no home of a device, and not empty"):
        Client(URL, home, enrollment=ENROLMENT)
    assert stat.S_IMODE(home.stat().st_mode) == 0o755
    assert sorted(one.name for one in home.iterdir()) == [".draft.partial", "letter.txt"]
    with pytest.raises(StateError, match="must be a folder"):
        Client(URL, home / "letter.txt", enrollment=ENROLMENT)
    with device(Server(frequency_campaign()), tmp_path / "home") as client:
        client.run_once()
    (tmp_path / "home" / "identity.json").unlink()
    with pytest.raises(StateError, match="not empty"):  # and not a new device on its ledgers
        Client(URL, tmp_path / "home", enrollment=ENROLMENT)


def test_a_letter_that_cannot_be_read_now_is_not_lost(tmp_path, monkeypatch):
    server = Server(frequency_campaign())
    server.before = lambda request: httpx.Response(503) if "answers" in request.url.path else None
    with device(server, tmp_path) as client:
        assert client.run_once().waiting == 1
        server.before = lambda request: None
        real = Path.read_bytes

        def failing(path):
            if path.suffix == ".letter":
                raise OSError(errno.EMFILE, "too many open files")
            return real(path)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", failing)
            assert client.run_once().waiting == 1
        assert client.run_once().taken == 1
    assert len(server.answers) == 1


def test_a_key_chain_never_goes_back(tmp_path):
    with contextlib.closing(Home(tmp_path)) as home:
        stale = home.link
        home.advance(6)
        ahead = home.link
        home._link = stale  # as of somebody who knew it before
        home.advance(2)
        assert home.link == ahead
    with contextlib.closing(Home(tmp_path)) as home:
        assert home.link.epoch == 7


class Killed(BaseException):
    """The process is no more."""


class Killing:
    """Counts what a device does to its disk and to the network, and ends it at one point.

    From then on nothing it tries does anything, as after a real kill.
    """

    def __init__(self, monkeypatch, server, at=None):
        self.count, self.at, self.server = 0, at, server
        for name in ("open", "fsync", "replace", "unlink"):
            monkeypatch.setattr(os, name, self.wrapped(getattr(os, name)))
        server.before = lambda request: self.point()
        server.after = lambda request, response: self.point() or response

    def wrapped(self, real):
        def call(*given, **named):
            self.point()
            return real(*given, **named)

        return call

    def point(self):
        if self.at is not None and self.count >= self.at:
            raise Killed
        self.count += 1


def lives(monkeypatch, server, home, at, **held):
    """One life of a device, up to a point or to its end; how many points it passed."""
    with monkeypatch.context() as patch:
        killing = Killing(patch, server, at)
        client = None
        with contextlib.suppress(Killed):
            client = holding(
                Client(
                    URL,
                    home,
                    enrollment=ENROLMENT,
                    clock=lambda: BEGUN,
                    http=server.http(),
                    kinds=ALL_KINDS,
                )
            )
            client.hold(**held)
            client.run_once()
            client.run_once()
    server.before, server.after = lambda request: None, lambda request, response: response
    if client is not None:
        client._home.close()
    return killing.count


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_kill_at_any_point_loses_at_most_the_answer(tmp_path, monkeypatch, kind):
    """And never gets the server two answers, though the device holds other things afterwards."""
    campaign = CAMPAIGNS[kind]()
    points = lives(monkeypatch, Server(campaign), tmp_path / "whole", None)
    assert points > 20
    arrived = 0
    for at in range(points):
        home, server = tmp_path / str(at), Server(campaign)
        lives(monkeypatch, server, home, at)
        early = [path for path in server.paths() if "answers" in path]
        paid = [*(home / "answered").glob("*"), *(home / "streams").glob("*.json")]
        assert not early or paid, "paid before it leaves"
        for held in ({"series": [5.0] * 24, "category": "wood"}, {"category": "oil"}):
            lives(monkeypatch, server, home, None, **held)
        sent = {body for _, path, body in server.requests if "answers" in path}
        assert len(sent) <= 1, f"two answers after a kill at point {at}"
        assert not list((home / "outbox").iterdir())
        arrived += len(sent)
    assert arrived > points / 2
