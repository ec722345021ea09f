"""What tests of the collecting server share: an app with a clock of its own, devices, answers."""

from __future__ import annotations

import base64
import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from fastapi.testclient import TestClient

from tempriv.collect.server.app import ADMIN_FILE, make_app
from tempriv.collect.server.rate_limits import RateLimits
from tempriv.collect.server.tokens import Token, digest_of, parse
from tempriv.local.shapes import messages as shapes_messages
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.roles import simulate_answers
from tempriv.local.shapes.sax import Sax
from tempriv.local.streams import messages as streams_messages
from tempriv.sampling.keys import Key, fresh_series_key
from tempriv.sampling.keystream import Keystream, StepRange

BEGUN = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
GENEROUS = RateLimits(device_rate=1e6, staff_rate=1e6, address_rate=1e6, failures=10**6)


class Clock:
    """Time passes when a test says so."""

    def __init__(self) -> None:
        self.now = BEGUN

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class Service:
    """A server in this process, and whoever talks to it."""

    http: TestClient
    clock: Clock
    home: Path
    secrets: dict[int, bytes] = field(default_factory=dict)

    @property
    def admin(self) -> dict[str, str]:
        return bearer((self.home / ADMIN_FILE).read_text().strip())

    @property
    def collection(self) -> Any:
        return self.http.app.state.service  # type: ignore[attr-defined]

    def staff(self, role: str) -> dict[str, str]:
        made = self.http.post("/v1/staff", json={"role": role, "name": "x"}, headers=self.admin)
        return bearer(made.json()["token"])

    def tick(self, seconds: float = 0.0) -> None:
        self.clock.pass_by(seconds)
        self.collection.store.submit(self.collection.tick).result()

    def enroll(self, count: int) -> list[int]:
        made = self.http.post("/v1/enrolments", json={"count": count}, headers=self.admin).json()
        tokens = [parse(text) for text in made["tokens"]]
        fresh = {token.number: os.urandom(32) for token in tokens if token is not None}
        given = [
            {"token": text, "secret_hash": digest_of(secret).hex()}
            for text, secret in zip(made["tokens"], fresh.values(), strict=True)
        ]
        found = []
        for low in range(0, count, 1000):
            told = self.http.post("/v1/devices", json={"devices": given[low : low + 1000]}).json()
            found += told["devices"]
        assert {one["outcome"] for one in found} == {"enrolled"}
        self.secrets |= fresh
        return [one["number"] for one in found]

    def device(self, number: int) -> dict[str, str]:
        return bearer(Token("device", number, self.secrets[number]).text)

    def begin(self, given: dict[str, Any]) -> dict[str, Any]:
        made = self.http.post("/v1/campaigns", json=given, headers=self.admin)
        assert made.status_code == 201, made.text
        return dict(made.json())

    def get(self, path: str, who: dict[str, str] | None = None) -> Any:
        found = self.http.get(path, headers=self.admin if who is None else who)
        assert found.status_code == 200, found.text
        return found.json()

    def close(self, campaign: str) -> Any:
        """Go on with what was received to the question that is open."""
        given = {"question": self.question(campaign)["id"]}
        path = f"/v1/campaigns/{campaign}/close-question"
        found = self.http.post(path, json=given, headers=self.admin)
        assert found.status_code == 200, found.text
        return found.json()

    def question(self, campaign: str, number: int | None = None) -> Any:
        who = self.admin if number is None else self.device(number)
        return self.get(f"/v1/campaigns/{campaign}/question", who)["question"]

    def answer(self, campaign: str, question: str, number: int, data: bytes) -> Any:
        given = {"question": question, "answer": base64.b64encode(data).decode()}
        path = f"/v1/campaigns/{campaign}/answers"
        return self.http.post(path, json=given, headers=self.device(number))

    def batch(self, question: str, answers: dict[int, bytes], secrets: bytes | None = None) -> Any:
        """The reasons, one for each answer, in the order they are given."""
        numbers = list(answers)
        given = {
            "question": question,
            "devices": np.array(numbers, dtype=">u8").tobytes(),
            "secrets": secrets or b"".join(self.secrets[one] for one in numbers),
            "answers": b"".join(answers.values()),
        }
        headers = {"content-type": "application/msgpack"}
        data = msgspec.msgpack.encode(given)
        found = self.http.post("/v1/answers", content=data, headers=headers)
        assert found.status_code == 200, found.text
        told = msgspec.msgpack.decode(found.content)
        return [told["reasons"][code].partition(":")[0] for code in told["outcomes"]]


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@contextlib.contextmanager
def serving(
    home: Path, url: str | None = None, clock: Clock | None = None, limits: RateLimits = GENEROUS
) -> Iterator[Service]:
    clock = clock or Clock()
    app = make_app(
        url or f"sqlite:///{home}/collect.db", home=home, clock=clock, limits=limits, ticking=False
    )
    with TestClient(app, raise_server_exceptions=False) as http:
        yield Service(http, clock, home)


# campaigns


def categories(people: int, epsilon: float = 1.0, **other: Any) -> dict[str, Any]:
    return {
        "kind": "frequency",
        "title": "Heating",
        "asks": "How is the home heated?",
        "epsilon": epsilon,
        "people": people,
        "plan": {"categories": ["gas", "oil", "wood"], "oracle": "automatic"},
        **other,
    }


def shapes(people: int, epsilon: float = 4.0, method: str = "published") -> dict[str, Any]:
    sax = Sax(symbols=3, segment=10, longest=6)
    plan = ShapesPlan(epsilon=epsilon, shapes=2, people=people, sax=sax, method=method)  # type: ignore[arg-type]
    return {
        "kind": "shapes",
        "title": "Mornings",
        "asks": "What does a morning look like?",
        "epsilon": epsilon,
        "people": people,
        "plan": plan.to_dict(),
    }


def stream(people: int, method: str = "LBU", steps: int = 5, window: int = 2) -> dict[str, Any]:
    plan = {
        "categories": ["home", "away"],
        "method": method,
        "window": window,
        "every": 60.0,
        "steps": steps,
        "oracle": "automatic",
    }
    return {
        "kind": "stream",
        "title": "Who is home",
        "asks": "Is anybody home?",
        "epsilon": 1.0,
        "people": people,
        "plan": plan,
    }


def upload(people: int, readings: int = 4) -> dict[str, Any]:
    from tempriv import Laplace
    from tempriv.privacy import serialization

    mechanism = serialization.encode(Laplace(epsilon=1.0, bounds=(0, 5)))
    return {
        "kind": "upload",
        "title": "Meters",
        "asks": "Readings of a day",
        "epsilon": 1.0,
        "people": people,
        "plan": {"mechanism": mechanism, "readings": readings},
    }


KINDS = {"frequency": categories, "shapes": shapes, "stream": stream, "upload": upload}


# answers


def about_value(question: dict[str, Any], value: int) -> bytes:
    """The answer of a device with this value to a question about one."""
    body = streams_messages.StreamQuestion.from_json(json.dumps(question["body"]))
    words = Keystream([StepRange(fresh_series_key(), 0, 1)], "stream report")
    return streams_messages.StreamAnswer(
        campaign=body.campaign,
        step=body.step,
        part=body.part,
        token=os.urandom(16),
        report=body.frequency.report(value, words),
    ).to_bytes()


def about_shapes(question: dict[str, Any], series: Any, seed: int) -> list[bytes]:
    body = shapes_messages.ShapesQuestion.from_json(json.dumps(question["body"]))
    return simulate_answers(body, series, None, Key.from_seed(seed))


def readings(campaign: str, values: list[float]) -> bytes:
    head = b"tu\x02\x01" + bytes.fromhex(campaign) + os.urandom(16)
    return head + np.array(values, dtype="<f8").tobytes()
