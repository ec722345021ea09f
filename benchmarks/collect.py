"""Answers of devices into a server and on disk, beside a route that only validates and inserts."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Row

DEVICES = 120_000
BATCH = 1_000
CONNECTIONS = 8
ROUNDS = 3
WANTED, PART = 60_000, 0.8
FLEET = 1_000_000
MOST_SECONDS = 180


def rows() -> list[Row]:
    """Nothing where the server's packages are not installed: they are an extra."""
    if find_spec("fastapi") is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/collect.db"
        secrets, campaigns = _prepared(url)
        batches = [_batches(one, secrets) for one in campaigns]
        with _server(url) as (port, _):
            ours = bare = float("inf")
            for encoded in batches:
                ours = min(ours, _sent(port, "/v1/answers", encoded))
                bare = min(bare, _sent(port, "/bare", encoded))
    speed, other = DEVICES / ours, DEVICES / bare
    return [
        _whole_campaign(),
        Row(
            f"answers into a server, batches of {BATCH:,}, on disk",
            f"{speed:,.0f}/s",
            f"a route that only validates and inserts: {other:,.0f}/s",
            speed / other,
            f"at least {WANTED:,}/s and {PART:.0%}",
            speed >= WANTED and speed / other >= PART,
        ),
    ]


def _whole_campaign() -> Row:
    """A fleet that enrolls and answers all rounds of a shapes campaign, and the server's memory."""
    import httpx

    from tempriv.collect.simulation.fleet import Fleet
    from tempriv.collect.simulation.traffic import Traffic
    from tempriv.local.shapes.plan import ShapesPlan
    from tempriv.local.shapes.sax import Sax

    with (
        tempfile.TemporaryDirectory() as folder,
        _server(f"sqlite:///{folder}/collect.db") as (port, process),
    ):
        token = (Path(folder) / "admin.token").read_text().strip()
        url = f"http://127.0.0.1:{port}"
        with Traffic(Fleet.from_seed(1), url, token) as traffic:
            began = time.perf_counter()
            traffic.enroll(FLEET)
            enrolled, before = time.perf_counter() - began, _megabytes(process)
            sax = Sax(symbols=4, segment=10, longest=10)
            plan = ShapesPlan(epsilon=2.0, shapes=3, people=FLEET, sax=sax, method="published")
            given = {
                "kind": "shapes",
                "title": "Mornings",
                "asks": "What is a morning like?",
                "epsilon": 2.0,
                "people": FLEET,
                "plan": plan.to_dict(),
            }
            headers = {"authorization": f"Bearer {token}"}
            began = time.perf_counter()
            httpx.post(f"{url}/v1/campaigns", json=given, headers=headers).raise_for_status()
            traffic.run()
            took, after = time.perf_counter() - began, _megabytes(process)
    return Row(
        f"a shapes campaign (PrivShape) over {FLEET // 10**6} million devices, end to end",
        f"{took:.1f} s, and {enrolled:.1f} s to enroll; server {before:.0f} MB before it, "
        f"{after:.0f} MB at its peak",
        "",
        None,
        f"at most {MOST_SECONDS} s",
        took + enrolled <= MOST_SECONDS,
    )


def _megabytes(process: subprocess.Popen[bytes]) -> float:
    """The most memory that a process has had."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (line,) = [one for one in status.splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) / 1000


def _prepared(url: str) -> tuple[Any, list[Any]]:
    """A store with devices and a campaign for each round, none of which ends by itself."""
    from tempriv.collect.protocol.campaign import Campaign
    from tempriv.collect.protocol.kinds.frequency import FrequencyCampaignPlan
    from tempriv.collect.server.database import Database
    from tempriv.collect.server.service import CollectionService
    from tempriv.collect.server.tokens import digest_of, parse

    store = Database(url)
    store.open()
    service = CollectionService(store)
    secrets = os.urandom(32 * DEVICES)
    for low in range(0, DEVICES, 10_000):
        made = store.submit(lambda db: service.make_tokens(db, 10_000)).result()
        given = [
            (parse(text), digest_of(secrets[32 * (low + i) : 32 * (low + i + 1)]))
            for i, text in enumerate(made)
        ]
        store.submit(lambda db, given=given: service.enroll(db, given)).result()  # type: ignore[misc]
    plan = FrequencyCampaignPlan(epsilon=1.0, people=DEVICES + 1, categories=tuple("abcdefgh"))
    found = []
    for number in range(ROUNDS):
        campaign = Campaign.begin(
            "frequency", f"Round {number}", "Which?", plan, now=datetime.now(UTC)
        )
        store.submit(lambda db, campaign=campaign: service.begin(db, campaign, 1)).result()  # type: ignore[misc]
        found.append(campaign)
    store.close()
    return secrets, found


def _batches(campaign: Any, secrets: bytes) -> list[bytes]:
    import msgspec

    from tempriv.collect.server.routes.answers import AnswerBatch

    asked = campaign.start().question
    assert asked is not None
    answers = np.zeros((DEVICES, asked.answer_bytes), dtype=np.uint8)
    answers[:, : len(asked.head)] = np.frombuffer(asked.head, dtype=np.uint8)
    answers[:, -1] = np.arange(DEVICES) % 8
    numbers = np.arange(1, DEVICES + 1).astype(">u8").tobytes()
    size = asked.answer_bytes
    flat = answers.tobytes()
    return [
        msgspec.msgpack.encode(
            AnswerBatch(
                asked.id,
                numbers[8 * low : 8 * (low + BATCH)],
                secrets[32 * low : 32 * (low + BATCH)],
                flat[size * low : size * (low + BATCH)],
            )
        )
        for low in range(0, DEVICES, BATCH)
    ]


@contextmanager
def _server(url: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    import httpx

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "benchmarks.collect_server", url, str(port)]
    with subprocess.Popen(words, cwd=Path(__file__).parent.parent) as process:
        for _ in range(300):
            try:
                httpx.get(f"http://127.0.0.1:{port}/health")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield port, process
        process.terminate()


def _sent(port: int, path: str, encoded: list[bytes]) -> float:
    import httpx

    async def send() -> float:
        waiting = iter(encoded)
        headers = {"content-type": "application/msgpack"}
        limits = httpx.Limits(max_connections=CONNECTIONS)
        url = f"http://127.0.0.1:{port}{path}"
        async with httpx.AsyncClient(limits=limits, timeout=60) as client:

            async def one() -> None:
                for body in waiting:
                    answer = await client.post(url, content=body, headers=headers)
                    assert answer.status_code == 200, answer.text

            began = time.perf_counter()
            await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
            return time.perf_counter() - began

    return asyncio.run(send())
