"""``tempriv simulate`` against ``tempriv serve``, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.server.results import result_of
from tempriv.collect.simulation.faults import Faults
from tempriv.collect.simulation.fleet import Fleet, replayed
from tempriv.collect.simulation.traffic import Traffic
from tests.support.collecting import categories

SEED = 20_260_302


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Process:
    """``tempriv serve``, which may be killed and started again on the same store."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/health").status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.05)
        raise AssertionError("the server does not start")

    def start(self):
        words = ["serve", "--port", str(self.port), "--quiet"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tempriv", *words],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def token(self):
        return (self.folder / "admin.token").read_text().strip()

    def staff(self, method, path, **given):
        headers = {"authorization": f"Bearer {self.token}"}
        found = httpx.request(method, self.url + path, headers=headers, **given)
        assert found.status_code < 300, found.text
        return found.json()


@pytest.fixture
def process(tmp_path):
    found = Process(tmp_path)
    yield found
    found.kill()


def test_through_kills_of_the_server_every_answer_is_counted_once(process):
    kills = []

    def watch(what, done, total):
        if "/" in what and done >= 600 * (len(kills) + 1) and len(kills) < 2:
            kills.append(done)
            process.kill()
            process.start()

    faults = Faults(seed=2, loss=0.05, duplicate=0.1, reorder=True)
    with Traffic(
        Fleet.from_seed(SEED), process.url, process.token, faults=faults, batch=40, watch=watch
    ) as traffic:
        traffic.enroll(2000)
        name = process.staff("POST", "/v1/campaigns", json=categories(2000))["id"]
        summary = traffic.run(name)
    assert len(kills) == 2 and 1 <= summary.waits <= 2
    told = process.staff("GET", f"/v1/campaigns/{name}/result")
    campaign = Campaign.from_dict(told["spec"])
    run = replayed(traffic.fleet, campaign)
    assert told["people"] == 2000 == summary.total("taken") + summary.total("there_already")
    assert told["categories"] == result_of(campaign, run, [], None)["categories"]


def test_the_command_enrols_answers_and_tells(process, run, monkeypatch):
    monkeypatch.chdir(process.folder)
    name = process.staff("POST", "/v1/campaigns", json=categories(500))["id"]
    words = ["simulate", "--url", process.url, "--devices", 500, "--seed", 7, "--batch", 100]
    status, out, problems = run(*words)
    assert status == 0, problems
    assert name in out and "500 devices, 500 answers acknowledged; 5 requests" in out
    assert problems == "", "quiet in a pipe"
    status, out, _ = run(*words, "--json", "--loss", 0.1)
    assert status == 0 and json.loads(out)["tallies"] == []
    assert process.staff("GET", "/v1/fleet")["enrolled"] == 500, "the same devices as before"
    status, out, _ = run(*words)
    assert "500 devices are there, and no campaign asked them anything." in out
    wrong = process.folder / "wrong.token"
    wrong.write_text(process.token[:-4] + "AAAA")
    status, _, problems = run(*words, "--token-file", wrong)
    assert status == 3 and "the server does not take this token" in problems
    monkeypatch.setenv("TEMPRIV_TOKEN", process.token)
    analyst = process.staff("POST", "/v1/staff", json={"role": "analyst", "name": "a"})["token"]
    monkeypatch.setenv("TEMPRIV_TOKEN", analyst)
    assert run(*words)[0] == 0, "no device is new"
    status, _, problems = run(*words[:4], 600)
    assert status == 1 and "an admin's is needed" in problems
    status, _, problems = run(*words, "--fleet", "other.json", "--devices", 500)
    assert status == 1 and "an admin's is needed" in problems
    monkeypatch.setenv("TEMPRIV_TOKEN", process.token)
    status, _, problems = run(*words[:3], "--fleet", "other.json", "--devices", 5)
    assert status == 0 and "500 devices that other.json does not tell of" in problems
    (process.folder / "fleet.json").write_text(
        (process.folder / "fleet.json").read_text().replace("500", "900")
    )
    status, _, problems = run(*words)
    assert status == 1 and "tells of 900 devices, and the server has 505" in problems


def test_the_command_says_what_is_missing(run, tmp_path):
    status, _, problems = run("simulate", "--devices", 5)
    assert status == 1 and "admin.token: no such file" in problems and "TEMPRIV_TOKEN" in problems
    (tmp_path / "admin.token").write_text("admin-1." + "A" * 43)
    status, _, problems = run("simulate", "--url", f"http://127.0.0.1:{free_port()}")
    assert status == 1 and "is it running? tempriv serve starts one" in problems
    assert "Traceback" not in problems
    for wrong in (b"", b" \n", "admin-1.é".encode(), b"\xff\xfe", b"admin-1.a b"):
        (tmp_path / "odd.token").write_bytes(wrong)
        status, _, problems = run("simulate", "--token-file", tmp_path / "odd.token")
        assert status == 1 and "odd.token: holds no token" in problems, wrong
    for wrong in ("", "../v1", "abc", "A" * 32, "é" * 32):
        status, _, problems = run("simulate", "--campaign", wrong)
        assert status == 2 and "must be an id" in problems, wrong
    status, _, problems = run("simulate", "--once", "--follow")
    assert status == 2 and "contradict" in problems
    status, _, problems = run("simulate", "--loss", 1.5)
    assert status == 2 and "--loss 1.5: must be a part" in problems
    status, out, _ = run("simulate", "--help")
    assert status == 0 and "tempriv simulate --url" in out
