"""A server that is killed again and again while devices answer through a bad network.

Each device that reaches it is counted once, and what comes out is what comes out without a network.
"""

import json
import random
import threading
import time

import httpx
import pytest

from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.server.results import result_of
from tempriv.collect.simulation.faults import Faults
from tempriv.collect.simulation.fleet import Fleet, replayed
from tempriv.collect.simulation.traffic import Traffic
from tests.support import postgres
from tests.support.collect_processes import served
from tests.support.collecting import bearer, categories, shapes, upload

BAD = {"loss": 0.05, "duplicate": 0.05, "gone": 0.02, "reorder": True, "delay": True}
MOST_SECONDS = 900  # that a campaign may take on a busy machine


def begun(server, given):
    with httpx.Client(base_url=server.url, headers=bearer(server.admin), timeout=60) as http:
        found = http.post("/v1/campaigns", json=given)
        assert found.status_code == 201, found.text
        return Campaign.from_dict(found.json()["spec"])


def ended(server, campaign):
    with httpx.Client(base_url=server.url, headers=bearer(server.admin), timeout=60) as http:
        document = http.get(f"/v1/campaigns/{campaign.id}").json()
        return document, http.get(f"/v1/campaigns/{campaign.id}/result").json()


def played_through_kills(server, traffic, campaign, kills, rng):
    """Answers come in from another thread; here the server is killed and started again."""
    problems = []

    def answer():
        try:
            traffic.run(campaign.id, close_questions=True)
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    began = time.monotonic()
    while thread.is_alive():
        assert time.monotonic() - began < MOST_SECONDS, "the campaign does not end"
        thread.join(rng.uniform(0.02, 0.5))
        if thread.is_alive() and server.kills < kills:
            server.kill()
            server.start()
    assert not problems, problems


def collected(home, store, devices, kills, batch, campaigns, **faults):
    """Campaigns until the server was killed so often; each ends as it does without a network."""
    rng, fleet = random.Random(devices), Fleet.from_seed(devices)
    bad = Faults(seed=3, **(BAD | faults))
    with (
        served(home, store) as server,
        Traffic(fleet, server.url, server.admin, faults=bad, batch=batch) as traffic,
    ):
        traffic.enroll(devices)
        rounds = 0
        while rounds < len(campaigns) or server.kills < kills:
            campaign = begun(server, campaigns[rounds % len(campaigns)](devices))
            before = len(traffic.summary.tallies)
            played_through_kills(server, traffic, campaign, kills, rng)
            document, told = ended(server, campaign)
            tallies = traffic.summary.tallies[before:]
            reached = sum(one.taken + one.there_already for one in tallies)
            run = replayed(fleet, campaign, answering=lambda _, numbers: ~bad.gone_of(numbers))
            expected = result_of(campaign, run, [], told["finished_at"])
            assert document["state"] == "finished"
            assert json.loads(json.dumps(expected)) == told
            assert document["received"] == told["people"] == reached
            assert sum(one.late + one.refused + one.unsent for one in tallies) == 0
            rounds += 1
        assert server.kills >= kills
        assert "fault" not in server.log(), server.log()
    print(
        f"{devices:,} devices, {rounds} campaigns, {server.kills} kills: one answer of each device "
        "that reached the server, and the result without a network"
    )


def a_store(kind, home):
    return f"sqlite:///{home}/collect.db" if kind == "sqlite" else postgres.new_database()


STORES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.services)]


@pytest.mark.parametrize("kind", STORES)
def test_a_killed_server_counts_each_device_once(tmp_path, kind):
    collected(tmp_path, a_store(kind, tmp_path), 2000, 2, 50, [shapes])


@pytest.mark.services
@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_server_killed_20_times_counts_each_of_100000_devices_once(tmp_path, kind):
    store = a_store(kind, tmp_path)
    collected(tmp_path, store, 100_000, 20, 250, [shapes, categories, lambda n: upload(n, 8)])
